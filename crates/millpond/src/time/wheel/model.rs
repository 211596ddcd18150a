//! The wheel against a sorted map: the same steps on both, and the invariants checked after each.

use super::tests::{YEAR, start};
use super::*;
use proptest::prelude::*;
use std::cell::Cell;
use std::collections::BTreeMap;
use std::rc::Rc;

/// In a bucket of up to this size the earliest is always known.
const SMALL: usize = 16;

/// A payload that counts its drops.
#[derive(Debug)]
struct Counted {
    id: u64,
    ended: Rc<Cell<u64>>,
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.ended.set(self.ended.get() + 1);
    }
}

#[derive(Clone, Debug)]
enum Step {
    /// Due so much after now.
    Insert(Duration),
    InsertPast(Duration),
    /// Due with the one that was inserted last.
    InsertEqual,
    InsertNever,
    /// One of the entries, by a number of any size.
    Remove(usize),
    RemoveFirst,
    /// Several, from the first on.
    RemoveMany(usize),
    /// With the key of a removed entry.
    RemoveAgain(usize),
    PopOne,
    /// Time passes, and all due entries are popped.
    Pass(Duration),
    /// The clock jumps, and nothing is popped.
    Leap(Duration),
    Back(Duration),
    /// As a thread that sleeps until the next entry is due.
    SleepUntilNext,
    First(usize),
    TakeEvery(u64),
}

fn spans() -> impl Strategy<Value = Duration> {
    prop_oneof![
        (0..3_000_000_u64).prop_map(Duration::from_nanos),
        (0..200_000_u64).prop_map(Duration::from_micros),
        (0..100_000_u64).prop_map(Duration::from_millis),
        (0..1_000_000_u64).prop_map(Duration::from_secs),
        // Multiples of a granule, where a bucket ends and the next begins.
        (0..300_000_u64).prop_map(|granules| Duration::from_nanos(granules << GRANULE_BITS)),
    ]
}

fn leaps() -> impl Strategy<Value = Duration> {
    prop_oneof![4 => spans(), 1 => (0..700_u32).prop_map(|years| YEAR * years)]
}

fn steps() -> impl Strategy<Value = Step> {
    prop_oneof![
        12 => spans().prop_map(Step::Insert),
        1 => leaps().prop_map(Step::Insert),
        2 => leaps().prop_map(Step::InsertPast),
        3 => Just(Step::InsertEqual),
        1 => Just(Step::InsertNever),
        1 => Just(Step::Insert(Duration::MAX)),
        4 => any::<usize>().prop_map(Step::Remove),
        2 => Just(Step::RemoveFirst),
        1 => (0..60_usize).prop_map(Step::RemoveMany),
        1 => any::<usize>().prop_map(Step::RemoveAgain),
        2 => Just(Step::PopOne),
        4 => spans().prop_map(Step::Pass),
        1 => leaps().prop_map(Step::Leap),
        1 => leaps().prop_map(Step::Back),
        3 => Just(Step::SleepUntilNext),
        1 => (0..20_usize).prop_map(Step::First),
        1 => (1..5_u64).prop_map(Step::TakeEvery),
    ]
}

/// The wheel, the map, and the expected state.
struct Pair {
    wheel: Wheel<Counted>,
    /// By due time, then by the order of insertion.
    model: BTreeMap<(Deadline, u64), Key>,
    base: Instant,
    now: Instant,
    removed: Vec<Key>,
    last: Deadline,
    inserted: u64,
    ended: Rc<Cell<u64>>,
    /// How many came out, whose end is up to the test.
    out: u64,
    any_removed: bool,
}

impl Pair {
    fn new() -> Self {
        let now = start();
        Pair {
            wheel: Wheel::new(now),
            model: BTreeMap::new(),
            base: now - PAST,
            now,
            removed: Vec::new(),
            last: Deadline::at(now),
            inserted: 0,
            ended: Rc::default(),
            out: 0,
            any_removed: false,
        }
    }

    /// What the wheel makes of a due time that it cannot tell.
    fn tellable(&self, due: Deadline) -> Deadline {
        let Some(instant) = due.instant() else {
            return due;
        };
        let since = instant.saturating_duration_since(self.base);
        if since.as_nanos() >= u128::from(NEVER) {
            return Deadline::NEVER;
        }
        Deadline::at(instant.max(self.base))
    }

    fn insert(&mut self, due: Deadline) {
        let id = self.inserted;
        self.inserted += 1;
        let ended = Rc::clone(&self.ended);
        let key = self.wheel.insert(self.now, due, Counted { id, ended });
        self.last = due;
        let due = self.tellable(due);
        self.model.insert((due, id), key);
        let (found, payload) = self.wheel.get(key).unwrap();
        assert_eq!((found, payload.id), (due, id));
    }

    fn remove(&mut self, (due, id): (Deadline, u64)) {
        let key = self.model.remove(&(due, id)).unwrap();
        assert_eq!(
            self.wheel.get(key).map(|(at, one)| (at, one.id)),
            Some((due, id))
        );
        assert_eq!(self.wheel.remove(key).unwrap().id, id);
        self.out += 1;
        self.removed.push(key);
        self.any_removed = true;
    }

    fn pop(&mut self) -> bool {
        let popped = self.wheel.pop_due(self.now);
        let first = self.model.first_key_value();
        let due = first.filter(|((due, _), _)| due.has_passed(self.now.max(self.base)));
        let due = due.map(|(spot, key)| (*spot, *key));
        assert_eq!(
            popped.as_ref().map(|(at, one)| (Deadline::at(*at), one.id)),
            due.map(|(spot, _)| spot),
        );
        if let Some((spot, key)) = due {
            self.model.remove(&spot);
            self.removed.push(key);
            self.out += 1;
        }
        popped.is_some()
    }

    fn nth(&self, n: usize) -> Option<(Deadline, u64)> {
        let n = n.checked_rem(self.model.len())?;
        self.model.keys().nth(n).copied()
    }

    fn run(&mut self, step: &Step) {
        match *step {
            Step::Insert(span) => self.insert(Deadline::after(self.now, span)),
            Step::InsertPast(span) => {
                let due = self.now.checked_sub(span).unwrap_or(self.now);
                self.insert(Deadline::at(due));
            }
            Step::InsertEqual => self.insert(self.last),
            Step::InsertNever => self.insert(Deadline::NEVER),
            Step::Remove(n) => self.nth(n).into_iter().for_each(|spot| self.remove(spot)),
            Step::RemoveFirst => self.nth(0).into_iter().for_each(|spot| self.remove(spot)),
            Step::RemoveMany(many) => {
                let first: Vec<_> = self.model.keys().copied().take(many).collect();
                first.into_iter().for_each(|spot| self.remove(spot));
            }
            Step::RemoveAgain(n) => {
                if let Some(n) = n.checked_rem(self.removed.len()) {
                    assert!(self.wheel.remove(self.removed[n]).is_none());
                    assert!(self.wheel.get(self.removed[n]).is_none());
                }
            }
            Step::PopOne => {
                self.pop();
            }
            Step::Pass(span) => {
                self.now = self.now.checked_add(span).unwrap_or(self.now);
                while self.pop() {}
            }
            Step::Leap(span) => self.now = self.now.checked_add(span).unwrap_or(self.now),
            Step::Back(span) => self.now = self.now.checked_sub(span).unwrap_or(self.now),
            Step::SleepUntilNext => {
                if let Some(next) = self.wheel.next().instant() {
                    self.now = self.now.max(next);
                    while self.pop() {}
                }
            }
            Step::First(max) => {
                let shown = self.wheel.first(max);
                let shown: Vec<_> = shown.iter().map(|(due, one)| (*due, one.id)).collect();
                let expected: Vec<_> = self.model.keys().copied().take(max).collect();
                assert_eq!(shown, expected);
            }
            Step::TakeEvery(nth) => {
                let taken = self.wheel.take_where(|one| one.id % 5 == nth);
                let spots = self.model.keys().filter(|(_, id)| id % 5 == nth);
                let spots: Vec<_> = spots.copied().collect();
                let expected: Vec<u64> = spots.iter().map(|(_, id)| *id).collect();
                let taken: Vec<u64> = taken.iter().map(|one| one.id).collect();
                assert_eq!(taken, expected);
                for spot in spots {
                    self.removed.extend(self.model.remove(&spot));
                    self.out += 1;
                    self.any_removed = true;
                }
            }
        }
    }

    fn check(&self) {
        self.wheel.check();
        assert_eq!(self.wheel.len(), self.model.len());
        let first = self.model.keys().next();
        let first = first.map_or(Deadline::NEVER, |(due, _)| *due);
        let next = self.wheel.next();
        assert!(next <= first, "{next:?} is after {first:?}");
        if !self.any_removed || self.wheel.len() <= SMALL {
            assert_eq!(next, first);
        }
        assert_eq!(next == Deadline::NEVER, first == Deadline::NEVER);
        assert_eq!(self.ended.get(), self.out, "payloads end with the test");
    }
}

fn play(steps: &[Step]) {
    let mut pair = Pair::new();
    for step in steps {
        pair.run(step);
        pair.check();
    }
    let Pair {
        wheel,
        ended,
        inserted,
        ..
    } = pair;
    drop(wheel);
    assert_eq!(ended.get(), inserted, "each once");
}

proptest! {
    #![proptest_config(crate::proptest_kit::config(400))]

    #[test]
    fn a_wheel_does_as_a_sorted_map_does(steps in prop::collection::vec(steps(), 1..120)) {
        play(&steps);
    }

    /// Many at once, so that buckets are crowded, and most are removed, the first ones first.
    #[test]
    fn a_wheel_does_as_a_sorted_map_does_in_a_storm_of_cancels(
        span in spans(),
        dues in prop::collection::vec(0.0..1.0_f64, 50..250),
        steps in prop::collection::vec(steps(), 1..30),
        many in 0..250_usize,
    ) {
        let mut all: Vec<Step> = dues.iter().map(|part| Step::Insert(span.mul_f64(*part))).collect();
        all.push(Step::RemoveMany(many));
        all.extend(steps);
        play(&all);
    }
}
