//! Every flavor does what its model does, whatever is done to it in whatever order; and no waiter is
//! forgotten.
//!
//! Consumers and producers wait here as in real life, with a wait slot and a waker, but in one thread: each
//! step of a waiter is a step of the script. After every step the waiters are checked. If there is
//! an element or room and a waiter for it, enough of the waiters have been woken (MONITOR-2,
//! MONITOR-3 and MONITOR-5).
//!
//! The seed is fixed; `MILLPOND_SEED` and `MILLPOND_CASES` change it and the number of scripts per
//! flavor, as `cargo xtask soak` does. Scripts that failed once are in `counterexamples/queue-*.txt`.

#![allow(
    clippy::disallowed_types,
    clippy::disallowed_methods,
    reason = "a test stands outside: it uses std's atomics beside what it tests"
)]

#[path = "../../millpond/tests/proptest_kit/mod.rs"]
mod proptest_kit;
#[path = "../../millpond/tests/queue_kit/mod.rs"]
mod queue_kit;
mod queue_script;

use millpond::queue::{
    BlockingDeque, BlockingQueue, DelayQueue, FifoQueue, Offered, PriorityQueue, Reason, Taken,
    WaitSlot, WeightedQueue,
};
use millpond::time::{Deadline, ManualClock};
use proptest::collection::vec;
use queue_kit::{EQUALS, Flavor, Model, PER_LEVEL, Refusal};
use queue_script::{Script, Step, step};
use std::fs;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Wake, Waker};
use std::time::{Duration, Instant};

/// An element; its holder has a clone of `alive`.
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
    place: WaitSlot,
    bell: Arc<Bell>,
    element: Option<Item>,
    value: u8,
    again: Deadline,
}

impl Waiter {
    fn new(element: Option<Item>) -> Self {
        Waiter {
            place: WaitSlot::default(),
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
    deque: Option<Arc<BlockingDeque<Item>>>,
    delay: Option<Arc<DelayQueue<Item>>>,
    hand: ManualClock,
    start: Instant,
    model: Model,
    consumers: Vec<Waiter>,
    producers: Vec<Waiter>,
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
            Flavor::FifoBounded => Arc::new(FifoQueue::bounded(some).unwrap().with_clock(clock)),
            Flavor::FifoGrowing => Arc::new(FifoQueue::unbounded().with_clock(clock)),
            Flavor::Deque => {
                Arc::clone(deque.insert(Arc::new(BlockingDeque::unbounded().with_clock(clock))))
                    as _
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
                    WeightedQueue::bounded(some as u64, weigh)
                        .unwrap()
                        .with_clock(clock),
                )
            }
        };
        let is_bounded = bound.is_some() || matches!(flavor, Flavor::FifoBounded | Flavor::Weighed);
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
            consumers: Vec::new(),
            producers: Vec::new(),
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
        done: Result<(), millpond::queue::OfferError<Item>>,
    ) {
        let done = done.map_err(|rejected| match rejected.reason {
            Reason::Full => Refusal::Full,
            Reason::TooHeavy { .. } => Refusal::TooHeavy,
            other => panic!("an offer that does not wait was rejected as {other:?}"),
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
                self.producers.push(Waiter::new(Some(item)));
                self.producer(self.producers.len() - 1);
            }
            Step::TakeLater => {
                self.consumers.push(Waiter::new(None));
                self.consumer(self.consumers.len() - 1);
            }
            Step::Putter(which) if !self.producers.is_empty() => {
                self.producer(which % self.producers.len());
            }
            Step::Taker(which) if !self.consumers.is_empty() => {
                self.consumer(which % self.consumers.len());
            }
            Step::PutterLeaves(which) if !self.producers.is_empty() => {
                let mut producer = self.producers.remove(which % self.producers.len());
                self.queue
                    .leave_offer(&mut producer.element, &mut producer.place);
                assert!(producer.element.is_some(), "what is not in comes back");
            }
            Step::TakerLeaves(which) if !self.consumers.is_empty() => {
                let mut consumer = self.consumers.remove(which % self.consumers.len());
                assert!(self.queue.leave_take(&mut consumer.place).is_none());
            }
            _ => {}
        }
    }

    /// A producer tries, again or for the first time. Sometimes its waker is another one by then.
    fn producer(&mut self, which: usize) {
        let producer = &mut self.producers[which];
        let id = producer.element.as_ref().map_or(0, |item| item.id);
        if id.is_multiple_of(2) {
            producer.bell = Arc::default();
        }
        producer.bell.0.store(false, Ordering::Relaxed);
        let waker = Waker::from(Arc::clone(&producer.bell));
        let offered = self
            .queue
            .poll_offer(&mut producer.element, &mut producer.place, &waker);
        match self.model.offer(producer.value, id, 0) {
            Ok(()) => {
                assert_eq!(offered, Offered::In);
                assert!(producer.element.is_none());
                self.producers.remove(which);
            }
            Err(Refusal::Full) => assert_eq!(offered, Offered::Wait),
            Err(Refusal::TooHeavy) => {
                assert!(matches!(offered, Offered::Never(Reason::TooHeavy { .. })));
                self.producers.remove(which);
            }
        }
    }

    /// A consumer tries, again or for the first time.
    fn consumer(&mut self, which: usize) {
        let consumer = &mut self.consumers[which];
        consumer.bell.0.store(false, Ordering::Relaxed);
        let waker = Waker::from(Arc::clone(&consumer.bell));
        match self.queue.poll_take(&mut consumer.place, &waker) {
            Taken::Got(item) => {
                assert_eq!(Some(item.id), self.model.poll());
                self.consumers.remove(which);
            }
            Taken::Wait(again) => {
                assert_eq!(self.model.poll(), None);
                consumer.again = again;
            }
        }
    }

    /// The observable state is that of the model.
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
        let held = seen.len() + self.producers.len();
        assert_eq!(Arc::strong_count(&self.alive), 1 + held, "elements alive");
    }

    /// No waiter is forgotten.
    fn check_calls(&self) {
        let called = self
            .consumers
            .iter()
            .filter(|consumer| consumer.is_called())
            .count();
        if self.model.flavor == Flavor::Delay {
            self.check_watch(called);
        } else {
            let wanted = self.model.ready().min(self.consumers.len());
            assert!(
                called >= wanted,
                "{wanted} consumers to call, {called} called"
            );
        }
        let (called, asleep): (Vec<_>, Vec<_>) = self
            .producers
            .iter()
            .partition(|producer| producer.is_called());
        let promised: u64 = called.iter().map(|p| self.model.weight(p.value)).sum();
        for producer in asleep {
            let weight = self.model.weight(producer.value);
            let never = self.model.bound.is_some_and(|bound| weight > bound);
            assert!(!never, "a producer sleeps that can never put");
            let free = self
                .model
                .free()
                .and_then(|free| free.checked_sub(promised));
            let fits = weight == 0 || free.is_some_and(|free| weight <= free);
            assert!(!fits, "a producer of {weight} sleeps beside {free:?} free");
        }
    }

    /// MONITOR-5: a waiter is woken, or knows when to check.
    fn check_watch(&self, called: usize) {
        let Some(due) = self.model.first_due() else {
            return;
        };
        let due = Deadline::at(self.start + Duration::from_millis(due));
        let watched = self.consumers.iter().any(|consumer| consumer.again <= due);
        assert!(
            self.consumers.is_empty() || called > 0 || watched,
            "nobody watches for {due:?}"
        );
        let watchers = self
            .consumers
            .iter()
            .filter(|consumer| !consumer.is_called() && consumer.again != Deadline::NEVER);
        assert!(watchers.count() <= 1, "only the leader watches the clock");
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
        consumers,
        producers,
        ..
    } = rig;
    drop((queue, deque, delay, consumers, producers));
    assert_eq!(Arc::strong_count(&alive), 1, "nothing leaks");
}

fn check(flavor: Flavor) {
    let scripts = (proptest::option::of(1..6_usize), vec(step(), 1..60));
    proptest_kit::ask(400, &scripts, |(bound, script)| play(flavor, bound, script));
}

/// A bug that was found once stays fixed. `counterexamples/README.md` says how a file gets there.
#[test]
fn every_script_that_ever_failed_plays_to_its_end() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("counterexamples");
    let mut played = 0;
    for entry in fs::read_dir(folder).unwrap() {
        let file = entry.unwrap().path();
        let name = file.file_name().unwrap().to_string_lossy().into_owned();
        if name.starts_with("queue-") {
            let text = fs::read_to_string(&file).unwrap();
            let script: Script = text
                .parse()
                .unwrap_or_else(|error| panic!("{name}: {error}"));
            println!("{name}");
            play(script.flavor, script.bound, script.steps);
            played += 1;
        }
    }
    assert!(played > 0, "there is nothing to play");
}

#[test]
fn a_preallocated_fifo_queue_does_what_its_model_does() {
    check(Flavor::FifoBounded);
}

#[test]
fn a_growing_fifo_queue_does_what_its_model_does() {
    check(Flavor::FifoGrowing);
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
fn a_weighted_queue_does_what_its_model_does() {
    check(Flavor::Weighed);
}
