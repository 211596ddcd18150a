//! Every flavor does what its model does, whatever is done to it in whatever order; and nobody who
//! waits is forgotten.
//!
//! Takers and putters wait here as in real life, with a place and a waker, but in one thread: each
//! step of a waiter is a step of the script. After every step the waiters are looked at. If there is
//! something to be had and somebody waits for it, enough of those who wait have been called (Q2, Q3
//! and Q5 of the engine).
//!
//! `MILLPOND_SEED` runs one seed again, `MILLPOND_CASES` changes the number of scripts per flavor.

#![allow(
    clippy::disallowed_types,
    clippy::disallowed_methods,
    reason = "a test stands outside: it uses std's atomics beside what it tests"
)]

#[path = "../../millpond/tests/queue_kit/mod.rs"]
mod queue_kit;

use millpond::queue::{
    ArrayQueue, BlockingQueue, DelayQueue, DequeQueue, LinkedQueue, Offered, Place, PriorityQueue,
    Reason, Taken, WeighedQueue,
};
use millpond::time::{Deadline, ManualClock};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use queue_kit::{EQUALS, Flavor, Model, PER_LEVEL, Refusal};
use std::hash::{BuildHasher, Hasher};
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Wake, Waker};
use std::time::{Duration, Instant};

/// One step of a script. Numbers that choose among what is there are taken modulo its length.
#[derive(Clone, Debug)]
enum Step {
    Offer(u8),
    OfferFirst(u8),
    OfferAfter(u8, u64),
    Poll,
    PollLast,
    Remove { divisor: u8, limit: usize },
    Drain(usize),
    SetCapacity(usize),
    Advance(u64),
    PutLater(u8),
    TakeLater,
    Putter(usize),
    Taker(usize),
    PutterLeaves(usize),
    TakerLeaves(usize),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (0..24_u8).prop_map(Step::Offer),
        2 => (0..24_u8).prop_map(Step::OfferFirst),
        2 => (0..24_u8, 0..20_u64).prop_map(|(value, after)| Step::OfferAfter(value, after)),
        4 => Just(Step::Poll),
        2 => Just(Step::PollLast),
        1 => (1..5_u8, 0..4_usize).prop_map(|(divisor, limit)| Step::Remove { divisor, limit }),
        1 => (0..4_usize).prop_map(Step::Drain),
        1 => (0..30_usize).prop_map(Step::SetCapacity),
        2 => (0..12_u64).prop_map(Step::Advance),
        4 => (0..24_u8).prop_map(Step::PutLater),
        4 => Just(Step::TakeLater),
        3 => any::<usize>().prop_map(Step::Putter),
        3 => any::<usize>().prop_map(Step::Taker),
        1 => any::<usize>().prop_map(Step::PutterLeaves),
        1 => any::<usize>().prop_map(Step::TakerLeaves),
    ]
}

/// An element; whoever holds it holds a clone of `alive`.
#[derive(Debug)]
struct Item {
    value: u8,
    id: u32,
    _alive: Arc<()>,
}

#[derive(Default)]
struct Bell(AtomicBool);

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::Relaxed);
    }
}

struct Waiter {
    place: Place,
    bell: Arc<Bell>,
    element: Option<Item>,
    value: u8,
    again: Deadline,
}

impl Waiter {
    fn new(element: Option<Item>) -> Self {
        Waiter {
            place: Place::default(),
            bell: Arc::default(),
            value: element.as_ref().map_or(0, |item| item.value),
            element,
            again: Deadline::NEVER,
        }
    }

    fn is_called(&self) -> bool {
        self.bell.0.load(Ordering::Relaxed)
    }
}

/// The queue under test, beside its model.
struct Rig {
    queue: Arc<dyn BlockingQueue<Item>>,
    deque: Option<Arc<DequeQueue<Item>>>,
    delay: Option<Arc<DelayQueue<Item>>>,
    hand: ManualClock,
    start: Instant,
    model: Model,
    takers: Vec<Waiter>,
    putters: Vec<Waiter>,
    next: u32,
    alive: Arc<()>,
}

impl Rig {
    fn new(flavor: Flavor, bound: Option<usize>) -> Self {
        let hand = ManualClock::new();
        let clock = hand.clock();
        let start = clock.now();
        let some = bound.unwrap_or(3);
        let (mut deque, mut delay) = (None, None);
        let queue: Arc<dyn BlockingQueue<Item>> = match flavor {
            Flavor::Array => Arc::new(ArrayQueue::bounded(some).unwrap().with_clock(clock)),
            Flavor::Linked => Arc::new(LinkedQueue::unbounded().with_clock(clock)),
            Flavor::Deque => {
                Arc::clone(deque.insert(Arc::new(DequeQueue::unbounded().with_clock(clock)))) as _
            }
            Flavor::Priority => Arc::new(
                PriorityQueue::by(|one: &Item, other: &Item| {
                    (one.value >> EQUALS).cmp(&(other.value >> EQUALS))
                })
                .with_clock(clock),
            ),
            Flavor::Aging => Arc::new(
                PriorityQueue::by(|_: &Item, _: &Item| std::cmp::Ordering::Equal)
                    .aging(Duration::from_millis(PER_LEVEL), |item| {
                        u32::from(item.value)
                    })
                    .with_clock(clock),
            ),
            Flavor::Delay => {
                Arc::clone(delay.insert(Arc::new(DelayQueue::new().with_clock(clock)))) as _
            }
            Flavor::Weighed => {
                let weigh = |item: &Item| u64::from(item.value);
                Arc::new(
                    WeighedQueue::bounded(some as u64, weigh)
                        .unwrap()
                        .with_clock(clock),
                )
            }
        };
        let is_bounded = bound.is_some() || matches!(flavor, Flavor::Array | Flavor::Weighed);
        if is_bounded {
            queue.set_capacity(some).unwrap();
        }
        Rig {
            queue,
            deque,
            delay,
            hand,
            start,
            model: Model::new(flavor, is_bounded.then_some(some as u64)),
            takers: Vec::new(),
            putters: Vec::new(),
            next: 0,
            alive: Arc::new(()),
        }
    }

    fn item(&mut self, value: u8) -> Item {
        self.next += 1;
        Item {
            value,
            id: self.next,
            _alive: Arc::clone(&self.alive),
        }
    }

    fn expect_offer(
        expected: Result<(), Refusal>,
        done: Result<(), millpond::queue::Refused<Item>>,
    ) {
        let done = done.map_err(|refused| match refused.reason {
            Reason::Full => Refusal::Full,
            Reason::TooHeavy { .. } => Refusal::TooHeavy,
            other => panic!("an offer that does not wait was refused as {other:?}"),
        });
        assert_eq!(done, expected);
    }

    fn offer(&mut self, value: u8, first: bool, after: u64) {
        let item = self.item(value);
        let id = item.id;
        match (&self.deque, &self.delay) {
            (Some(deque), _) if first => {
                let expected = self.model.offer_first(value, id);
                Self::expect_offer(expected, deque.offer_first(item));
            }
            (_, Some(delay)) if after > 0 => {
                let expected = self.model.offer(value, id, after);
                let done = delay.offer_after(item, Duration::from_millis(after));
                Self::expect_offer(expected, done);
            }
            _ => {
                let expected = self.model.offer(value, id, 0);
                Self::expect_offer(expected, self.queue.offer(item));
            }
        }
    }

    fn run(&mut self, step: Step) {
        match step {
            Step::Offer(value) => self.offer(value, false, 0),
            Step::OfferFirst(value) => self.offer(value, true, 0),
            Step::OfferAfter(value, after) => self.offer(value, false, after),
            Step::Poll => {
                let expected = self.model.poll();
                assert_eq!(self.queue.poll().map(|item| item.id), expected);
            }
            Step::PollLast => {
                if let Some(deque) = &self.deque {
                    let expected = self.model.poll_last();
                    assert_eq!(deque.poll_last().map(|item| item.id), expected);
                }
            }
            Step::Remove { divisor, limit } => {
                let removed = self
                    .queue
                    .remove_where(limit, &mut |item| item.value % divisor == 0);
                let ids: Vec<_> = removed.iter().map(|item| item.id).collect();
                assert_eq!(ids, self.model.remove_where(limit, |v| v % divisor == 0));
            }
            Step::Drain(max) => {
                let mut ids = Vec::new();
                let moved = self.queue.drain_to(max, &mut |item| ids.push(item.id));
                let expected: Vec<_> = std::iter::from_fn(|| self.model.poll()).take(max).collect();
                assert_eq!((moved, ids), (expected.len(), expected));
            }
            Step::SetCapacity(capacity) => {
                let done = self.queue.set_capacity(capacity);
                assert_eq!(done.is_ok(), capacity > 0);
                if capacity > 0 {
                    self.model.bound = Some(capacity as u64);
                }
            }
            Step::Advance(by) => {
                self.model.now += by;
                self.hand.advance(Duration::from_millis(by));
            }
            Step::PutLater(value) => {
                let item = self.item(value);
                self.putters.push(Waiter::new(Some(item)));
                self.putter(self.putters.len() - 1);
            }
            Step::TakeLater => {
                self.takers.push(Waiter::new(None));
                self.taker(self.takers.len() - 1);
            }
            Step::Putter(which) if !self.putters.is_empty() => {
                self.putter(which % self.putters.len());
            }
            Step::Taker(which) if !self.takers.is_empty() => {
                self.taker(which % self.takers.len());
            }
            Step::PutterLeaves(which) if !self.putters.is_empty() => {
                let mut putter = self.putters.remove(which % self.putters.len());
                self.queue
                    .leave_offer(&mut putter.element, &mut putter.place);
                assert!(putter.element.is_some(), "what is not in comes back");
            }
            Step::TakerLeaves(which) if !self.takers.is_empty() => {
                let mut taker = self.takers.remove(which % self.takers.len());
                assert!(self.queue.leave_take(&mut taker.place).is_none());
            }
            _ => {}
        }
    }

    /// A putter tries, again or for the first time. Sometimes its waker is another one by then.
    fn putter(&mut self, which: usize) {
        let putter = &mut self.putters[which];
        let id = putter.element.as_ref().map_or(0, |item| item.id);
        if id.is_multiple_of(2) {
            putter.bell = Arc::default();
        }
        putter.bell.0.store(false, Ordering::Relaxed);
        let waker = Waker::from(Arc::clone(&putter.bell));
        let offered = self
            .queue
            .poll_offer(&mut putter.element, &mut putter.place, &waker);
        match self.model.offer(putter.value, id, 0) {
            Ok(()) => {
                assert_eq!(offered, Offered::In);
                assert!(putter.element.is_none());
                self.putters.remove(which);
            }
            Err(Refusal::Full) => assert_eq!(offered, Offered::Wait),
            Err(Refusal::TooHeavy) => {
                assert!(matches!(offered, Offered::Never(Reason::TooHeavy { .. })));
                self.putters.remove(which);
            }
        }
    }

    /// A taker tries, again or for the first time.
    fn taker(&mut self, which: usize) {
        let taker = &mut self.takers[which];
        taker.bell.0.store(false, Ordering::Relaxed);
        let waker = Waker::from(Arc::clone(&taker.bell));
        match self.queue.poll_take(&mut taker.place, &waker) {
            Taken::Got(item) => {
                assert_eq!(Some(item.id), self.model.poll());
                self.takers.remove(which);
            }
            Taken::Wait(again) => {
                assert_eq!(self.model.poll(), None);
                taker.again = again;
            }
        }
    }

    /// What can be seen from outside is what the model says.
    fn look(&self) {
        let mut seen = Vec::new();
        self.queue.visit(&mut |item| {
            seen.push(item.id);
            ControlFlow::Continue(())
        });
        let expected: Vec<_> = self.model.in_order().iter().map(|held| held.id).collect();
        assert_eq!(seen, expected, "the order seen");
        assert_eq!(self.queue.len(), expected.len());
        let capacity = self.model.bound.map(|bound| bound as usize);
        assert_eq!(self.queue.capacity(), capacity);
        let left = match capacity {
            None => usize::MAX,
            Some(_) => self.model.free().unwrap_or(0) as usize,
        };
        assert_eq!(self.queue.remaining_capacity(), left);
        let held = seen.len() + self.putters.len();
        assert_eq!(Arc::strong_count(&self.alive), 1 + held, "elements alive");
    }

    /// Nobody who waits is forgotten.
    fn check_calls(&self) {
        let called = self.takers.iter().filter(|taker| taker.is_called()).count();
        if self.model.flavor == Flavor::Delay {
            self.check_watch(called);
        } else {
            let wanted = self.model.ready().min(self.takers.len());
            assert!(called >= wanted, "{wanted} takers to call, {called} called");
        }
        let (called, asleep): (Vec<_>, Vec<_>) =
            self.putters.iter().partition(|putter| putter.is_called());
        let promised: u64 = called.iter().map(|p| self.model.weight(p.value)).sum();
        for putter in asleep {
            let weight = self.model.weight(putter.value);
            let never = self.model.bound.is_some_and(|bound| weight > bound);
            assert!(!never, "a putter sleeps that can never put");
            let free = self
                .model
                .free()
                .and_then(|free| free.checked_sub(promised));
            let fits = weight == 0 || free.is_some_and(|free| weight <= free);
            assert!(!fits, "a putter of {weight} sleeps beside {free:?} free");
        }
    }

    /// Q5: somebody is called, or knows when to look.
    fn check_watch(&self, called: usize) {
        let Some(due) = self.model.first_due() else {
            return;
        };
        let due = Deadline::at(self.start + Duration::from_millis(due));
        let watched = self.takers.iter().any(|taker| taker.again <= due);
        assert!(
            self.takers.is_empty() || called > 0 || watched,
            "nobody watches for {due:?}"
        );
        let watchers = self
            .takers
            .iter()
            .filter(|taker| !taker.is_called() && taker.again != Deadline::NEVER);
        assert!(
            watchers.count() <= 2,
            "one leads, and one may have led before"
        );
    }
}

fn play(flavor: Flavor, bound: Option<usize>, script: Vec<Step>) {
    let mut rig = Rig::new(flavor, bound);
    for step in script {
        rig.run(step);
        rig.look();
        rig.check_calls();
    }
    let Rig {
        queue,
        deque,
        delay,
        alive,
        takers,
        putters,
        ..
    } = rig;
    drop((queue, deque, delay, takers, putters));
    assert_eq!(Arc::strong_count(&alive), 1, "nothing leaks");
}

fn number(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok()?;
    match text.parse() {
        Ok(number) => Some(number),
        Err(_) => panic!("{name} is `{text}`: give it a number"),
    }
}

fn check(flavor: Flavor) {
    let fresh = || std::hash::RandomState::new().build_hasher().finish();
    let seed = number("MILLPOND_SEED").unwrap_or_else(fresh);
    let config = Config {
        cases: number("MILLPOND_CASES").map_or(400, |cases| cases as u32),
        failure_persistence: None,
        ..Config::default()
    };
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&seed.to_le_bytes());
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &bytes);
    let scripts = (proptest::option::of(1..6_usize), vec(step(), 1..60));
    let run = TestRunner::new_with_rng(config, rng).run(&scripts, |(bound, script)| {
        play(flavor, bound, script);
        Ok(())
    });
    if let Err(failure) = run {
        panic!("{flavor:?} differs from its model; MILLPOND_SEED={seed} runs it again\n{failure}");
    }
}

#[test]
fn an_array_queue_does_what_its_model_does() {
    check(Flavor::Array);
}

#[test]
fn a_linked_queue_does_what_its_model_does() {
    check(Flavor::Linked);
}

#[test]
fn a_deque_does_what_its_model_does() {
    check(Flavor::Deque);
}

#[test]
fn a_priority_queue_does_what_its_model_does() {
    check(Flavor::Priority);
}

#[test]
fn an_aging_queue_does_what_its_model_does() {
    check(Flavor::Aging);
}

#[test]
fn a_delay_queue_does_what_its_model_does() {
    check(Flavor::Delay);
}

#[test]
fn a_weighed_queue_does_what_its_model_does() {
    check(Flavor::Weighed);
}
