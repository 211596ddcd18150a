//! What a wheel promises, one by one. `model.rs` has it do everything at random.

use super::*;

const SECOND: Duration = Duration::from_secs(1);
pub(super) const YEAR: Duration = Duration::from_secs(365 * 24 * 60 * 60);

/// Not the system's time: a test is the same at any time of the day.
pub(super) fn start() -> Instant {
    crate::time::ManualClock::new().clock().now()
}

impl<P> Wheel<P> {
    /// Checks the invariants of all parts.
    pub(super) fn check(&self) {
        let soon = self.heap.check(&self.entries);
        let later = self.buckets.check(&self.entries, self.current);
        assert_eq!(soon + later, self.len());
        assert_eq!(self.entries.iter().count(), self.len());
        for (_, entry, _) in self.entries.iter() {
            let is_soon = entry.due != NEVER && granule(entry.due) <= self.current;
            assert_eq!(
                is_soon,
                matches!(locate(self.current, entry.due), Location::Heap)
            );
        }
    }
}

#[test]
fn a_lone_timer_an_hour_away_is_one_wake_up_at_its_time() {
    for offset in [0, 1, 999_999, 1 << GRANULE_BITS, u64::from(u32::MAX)] {
        let now = start() + Duration::from_nanos(offset);
        let mut wheel = Wheel::new(now);
        let due = now + 3600 * SECOND;
        wheel.insert(now, Deadline::at(due), ());
        assert_eq!(wheel.next(), Deadline::at(due));
        assert!(wheel.pop_due(due - Duration::from_nanos(1)).is_none());
        assert_eq!(wheel.next(), Deadline::at(due), "asking changes nothing");
        assert_eq!(wheel.pop_due(due), Some((due, ())));
        assert_eq!(wheel.next(), Deadline::NEVER);
    }
}

#[test]
fn entries_that_are_due_at_once_are_popped_in_the_order_of_insertion() {
    let now = start();
    let mut wheel = Wheel::new(now);
    for delay in [Duration::ZERO, SECOND, 3600 * SECOND] {
        let due = Deadline::after(now, delay);
        let keys: Vec<_> = (0..1000).map(|n| wheel.insert(now, due, n)).collect();
        for key in keys.iter().step_by(3) {
            wheel.remove(*key);
        }
        let later = now + delay;
        let order: Vec<_> = std::iter::from_fn(|| wheel.pop_due(later)).collect();
        let expected = (0..1000).filter(|n| n % 3 != 0).map(|n| (later, n));
        assert_eq!(order, expected.collect::<Vec<_>>());
    }
}

#[test]
fn a_thread_that_sleeps_until_the_next_wakes_spuriously_once_for_each_level_at_most() {
    let now = start();
    let mut wheel = Wheel::new(now);
    let due = |n: u32| now + 1000 * SECOND + Duration::from_micros(10) * n;
    let keys: Vec<_> = (0..100_000)
        .map(|n| wheel.insert(now, Deadline::at(due(n)), n))
        .collect();
    // In one bucket, and all but the last of them go.
    for key in &keys[..99_950] {
        wheel.remove(*key);
    }
    let mut wake_ups = 0;
    while let Some(next) = wheel.next().instant() {
        wake_ups += 1;
        while let Some((at, n)) = wheel.pop_due(next) {
            assert_eq!((at, n), (due(n), n));
        }
    }
    assert!(wake_ups <= 50 + 8, "{wake_ups} for 50");
}

#[test]
fn a_clock_that_jumps_five_hundred_years_and_back_harms_no_entry() {
    let now = start();
    let mut wheel = Wheel::new(now);
    wheel.insert(now, Deadline::at(now + SECOND), "soon");
    wheel.insert(now, Deadline::at(now + 1000 * YEAR), "beyond");
    wheel.insert(now, Deadline::NEVER, "never");
    assert_eq!(
        wheel.pop_due(now + 2000 * YEAR),
        Some((now + SECOND, "soon"))
    );
    assert_eq!(wheel.pop_due(now + 2000 * YEAR), None);
    assert_eq!(wheel.next(), Deadline::NEVER);
    wheel.insert(now, Deadline::at(now + 2 * SECOND), "again");
    assert_eq!(wheel.next(), Deadline::at(now + 2 * SECOND));
    assert_eq!(wheel.pop_due(now + SECOND), None);
    assert_eq!(
        wheel.pop_due(now + 2 * SECOND),
        Some((now + 2 * SECOND, "again"))
    );
    wheel.check();
    assert_eq!(wheel.take_where(|_| true), ["beyond", "never"]);
    assert_eq!(wheel.len(), 0);
}

#[test]
fn a_predicate_that_panics_has_removed_no_entry() {
    let now = start();
    let mut wheel = Wheel::new(now);
    for n in 0..10 {
        wheel.insert(now, Deadline::after(now, SECOND * n), n);
    }
    let asked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        wheel.take_where(|n| if *n < 5 { true } else { panic!("at {n}") })
    }));
    assert!(asked.is_err());
    wheel.check();
    assert_eq!(wheel.len(), 10);
}

#[test]
fn a_wheel_whose_entries_were_taken_is_empty_and_their_keys_fit_no_entry_of_its_successor() {
    let now = start();
    let mut wheel = Wheel::new(now);
    let due = |n: u32| Deadline::after(now, SECOND * n);
    let keys: Vec<_> = (0..1000).map(|n| wheel.insert(now, due(n), n)).collect();
    let never = wheel.insert(now, Deadline::NEVER, 1000);
    let mut taken = wheel.take_all();
    assert_eq!((wheel.len(), wheel.next()), (0, Deadline::NEVER));
    assert_eq!(wheel.pop_due(now + YEAR), None);
    assert!(keys.iter().all(|key| wheel.remove(*key).is_none()));
    taken.check();
    assert_eq!(taken.take_where(|_| true), (0..=1000).collect::<Vec<_>>());

    // On another clock, which shows another time.
    let now = now + YEAR;
    let mut next = wheel.successor(now);
    let fresh: Vec<_> = (0..=1000)
        .map(|n| next.insert(now, Deadline::after(now, SECOND * n), n))
        .collect();
    assert!(
        keys.iter()
            .zip(&fresh)
            .all(|(old, new)| old.index == new.index)
    );
    assert!(keys.iter().all(|key| next.get(*key).is_none()));
    assert!(keys.iter().all(|key| next.remove(*key).is_none()));
    assert!(next.remove(never).is_none());
    next.check();
    assert_eq!(next.len(), 1001);
    assert_eq!(next.pop_due(now), Some((now, 0)));
}
