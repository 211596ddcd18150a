//! How consumers wait, in every queue, also in one that only hands over.

use super::item::{Make, Queue, empty, item};
use crate::kit::{Actor, CountingWaker, DropCount, Gate, Stopwatch, delays, until};
use millpond::interrupt::{self, Interrupted};
use millpond::queue::{Taken, WaitSlot};
use std::sync::Arc;
use std::time::Duration;

/// Tests of how consumers wait in a queue that is made by a [`Make`].
#[macro_export]
macro_rules! waiting_suite {
    ($make:expr) => {
        $crate::bodies! { waiting, ($make as $crate::suites::item::Make);
            a_poll_with_timeout_zero_is_a_poll
            a_timed_poll_waits_for_its_whole_timeout_on_an_empty_queue
            a_timed_poll_gets_an_element_that_is_put_meanwhile
            a_poll_with_the_largest_timeout_waits_for_an_element
            a_waiting_poll_is_interrupted_and_says_so
            a_waiting_take_is_interrupted_and_says_so
            an_interrupt_that_is_pending_ends_a_take_at_once
            an_interrupt_that_is_reported_is_cleared
            a_consumer_that_gave_up_gets_nothing_afterwards
            consumers_that_gave_up_leave_nothing_behind
            a_wake_up_that_comes_too_late_is_passed_on_to_the_next_consumer
            elements_pass_between_threads
            a_waker_is_replaced_by_the_next_poll
        }
    };
}

/// Holds: ArrayBlockingQueueTest.testTimedPoll0, LinkedBlockingQueueTest.testTimedPoll0
/// Holds: LinkedBlockingDequeTest.testTimedPoll0, PriorityBlockingQueueTest.testTimedPoll0
/// Holds: LinkedTransferQueueTest.testTimedPoll0, SynchronousQueueTest.testTimedPoll0
/// Holds: SynchronousQueueTest.testTimedPoll0_fair
pub fn a_poll_with_timeout_zero_is_a_poll(make: &Make) {
    let queue = empty(make);
    let watch = Stopwatch::start();
    for timeout in delays::instants() {
        assert_eq!(queue.poll_timeout(timeout), Ok(None));
    }
    watch.assert_prompt();
    let producer = producer(&queue, 5);
    assert_eq!(queue.poll_timeout(delays::longer()), Ok(Some(item(5))));
    producer.finish();
    assert_eq!(queue.poll_timeout(Duration::ZERO), Ok(None));
}

/// A producer that puts an element of this rank.
fn producer(queue: &Queue, rank: u32) -> Actor<()> {
    let queue = Arc::clone(queue);
    Actor::start("producer", move || queue.put(item(rank)).unwrap())
}

/// Interrupts a consumer in the wait that begins when nothing is left for it.
fn interrupt_when_drained<R>(consumer: &Actor<R>, queue: &Queue) {
    until("the queue is empty", || queue.is_empty());
    consumer.await_parked_on("queue.take", &**queue);
    consumer.interrupt();
}

/// Holds: ArrayBlockingQueueTest.testTimedPoll, PriorityBlockingQueueTest.testTimedPoll
/// Holds: DelayQueueTest.testTimedPoll, LinkedTransferQueueTest.testTimedPoll
/// Holds: SynchronousQueueTest.testTimedPoll
pub fn a_timed_poll_waits_for_its_whole_timeout_on_an_empty_queue(make: &Make) {
    let queue = empty(make);
    let watch = Stopwatch::start();
    assert_eq!(queue.poll_timeout(delays::timeout()), Ok(None));
    watch.assert_at_least(delays::timeout());
    let producer = producer(&queue, 5);
    let watch = Stopwatch::start();
    assert_eq!(queue.poll_timeout(delays::longer()), Ok(Some(item(5))));
    watch.assert_prompt();
    producer.finish();
}

/// Holds: BlockingQueueTest.testTimedPollWithOffer, SynchronousQueueTest.testTimedPollWithOffer
pub fn a_timed_poll_gets_an_element_that_is_put_meanwhile(make: &Make) {
    let queue = empty(make);
    let (own, timed_out) = (Arc::clone(&queue), Gate::new());
    let opener = timed_out.clone();
    let consumer = Actor::start("consumer", move || {
        assert_eq!(own.poll_timeout(delays::timeout()), Ok(None));
        opener.open();
        let watch = Stopwatch::start();
        assert_eq!(own.poll_timeout(delays::longer()), Ok(Some(item(5))));
        watch.assert_prompt();
        assert_eq!(own.poll_timeout(delays::longer()), Err(Interrupted));
        watch.assert_prompt();
    });
    timed_out.wait();
    queue.offer_timeout(item(5), delays::longer()).unwrap();
    interrupt_when_drained(&consumer, &queue);
    consumer.finish();
}

/// The largest patiences mean for ever, and do not wrap around into the past.
pub fn a_poll_with_the_largest_timeout_waits_for_an_element(make: &Make) {
    for timeout in delays::eternities() {
        let queue = empty(make);
        let own = Arc::clone(&queue);
        let consumer = Actor::start("consumer", move || own.poll_timeout(timeout));
        consumer.await_parked_on("queue.take", &*queue);
        queue.offer(item(5)).unwrap();
        assert_eq!(consumer.finish(), Ok(Some(item(5))));
    }
}

/// Holds: ArrayBlockingQueueTest.testInterruptedTimedPoll
/// Holds: LinkedTransferQueueTest.testInterruptedTimedPoll
pub fn a_waiting_poll_is_interrupted_and_says_so(make: &Make) {
    let queue = empty(make);
    let own = Arc::clone(&queue);
    let consumer = Actor::start("consumer", move || {
        let first = own.poll_timeout(delays::longer());
        (first, own.poll_timeout(delays::longer()))
    });
    queue.put(item(5)).unwrap();
    interrupt_when_drained(&consumer, &queue);
    let (first, second) = consumer.finish();
    assert_eq!(first, Ok(Some(item(5))), "what is there comes first");
    assert_eq!(second, Err(Interrupted), "an interrupt is no timeout");
}

/// Holds: LinkedBlockingQueueTest.testBlockingTake, LinkedBlockingDequeTest.testBlockingTake
/// Holds: PriorityBlockingQueueTest.testBlockingTake, DelayQueueTest.testBlockingTake
pub fn a_waiting_take_is_interrupted_and_says_so(make: &Make) {
    let queue = empty(make);
    let (own, interrupted) = (Arc::clone(&queue), Gate::new());
    let opener = interrupted.clone();
    let consumer = Actor::start("consumer", move || {
        let taken = [own.take(), own.take(), own.take()];
        opener.open();
        // It goes on as if nothing had been.
        (taken, own.take())
    });
    queue.put(item(1)).unwrap();
    queue.put(item(2)).unwrap();
    interrupt_when_drained(&consumer, &queue);
    interrupted.wait();
    queue.put(item(3)).unwrap();
    let (taken, after) = consumer.finish();
    assert_eq!(taken, [Ok(item(1)), Ok(item(2)), Err(Interrupted)]);
    assert_eq!(after, Ok(item(3)));
}

/// Holds: BlockingQueueTest.testTakeFromEmptyAfterInterrupt
/// Holds: LinkedTransferQueueTest.testTimedPollAfterInterrupt
pub fn an_interrupt_that_is_pending_ends_a_take_at_once(make: &Make) {
    let queue = empty(make);
    for timed in [false, true] {
        let own = Arc::clone(&queue);
        let consumer = Actor::start_interrupted("consumer", move || {
            if timed {
                own.poll_timeout(delays::longer())
            } else {
                own.take().map(Some)
            }
        });
        assert_eq!(consumer.finish(), Err(Interrupted));
    }
}

/// Reporting an interrupt clears it, and what does not wait does not look.
pub fn an_interrupt_that_is_reported_is_cleared(make: &Make) {
    let queue = empty(make);
    let consumer = Actor::start_interrupted("consumer", move || {
        assert_eq!(queue.poll(), None);
        assert!(interrupt::is_interrupted(), "a poll does not wait");
        assert_eq!(queue.take(), Err(Interrupted));
        assert!(!interrupt::is_interrupted());
        assert_eq!(queue.poll_timeout(delays::timeout()), Ok(None));
    });
    consumer.finish();
}

/// An element that comes after a consumer has gone is for another one.
pub fn a_consumer_that_gave_up_gets_nothing_afterwards(make: &Make) {
    let queue = empty(make);
    let own = Arc::clone(&queue);
    let gone = Actor::start("gone", move || own.take());
    gone.await_parked_on("queue.take", &*queue);
    let own = Arc::clone(&queue);
    let stays = Actor::start("stays", move || own.take());
    stays.await_parked_on("queue.take", &*queue);
    gone.interrupt();
    assert_eq!(gone.finish(), Err(Interrupted));
    queue.offer(item(5)).expect("somebody waits for it");
    assert_eq!(stays.finish(), Ok(item(5)));
}

/// Holds: jtreg queues.BlockingQueue/PollMemoryLeak
pub fn consumers_that_gave_up_leave_nothing_behind(make: &Make) {
    let queue = empty(make);
    let (bell, waker) = CountingWaker::new();
    for _ in 0..100 {
        let mut place = WaitSlot::default();
        assert!(matches!(
            queue.poll_take(&mut place, &waker),
            Taken::Wait(_)
        ));
        assert_eq!(queue.leave_take(&mut place), None);
    }
    drop(waker);
    assert_eq!(Arc::strong_count(&bell), 1, "no waker is left in the queue");
    assert_eq!(bell.count(), 0);
}

/// A consumer that is woken and then gives up does not swallow the wake-up.
pub fn a_wake_up_that_comes_too_late_is_passed_on_to_the_next_consumer(make: &Make) {
    let count = DropCount::new();
    let queue = empty(make);
    let (bells, wakers): (Vec<_>, Vec<_>) = (0..2).map(|_| CountingWaker::new()).unzip();
    let mut places = [WaitSlot::default(), WaitSlot::default()];
    for (place, waker) in places.iter_mut().zip(&wakers) {
        assert!(matches!(queue.poll_take(place, waker), Taken::Wait(_)));
    }
    queue.offer(item(5).counted(&count)).unwrap();
    let called = usize::from(bells[1].count() > 0);
    assert_eq!(
        bells[0].count() + bells[1].count(),
        1,
        "one element, one call"
    );
    let given_up = queue.leave_take(&mut places[called]);
    let other = 1 - called;
    match given_up {
        // It was handed over, so the take has succeeded.
        Some(element) => assert_eq!(element, item(5)),
        None => {
            assert_eq!(bells[other].count(), 1, "the call is passed on");
            match queue.poll_take(&mut places[other], &wakers[other]) {
                Taken::Got(element) => assert_eq!(element, item(5)),
                Taken::Wait(_) => panic!("the element is lost"),
            }
        }
    }
    assert_eq!(queue.leave_take(&mut places[other]), None);
}

/// Holds: LinkedBlockingDequeTest.testPollInExecutor, LinkedTransferQueueTest.testPollInExecutor
/// Holds: SynchronousQueueTest.testPollInExecutor, SynchronousQueueTest.testPollInExecutor_fair
pub fn elements_pass_between_threads(make: &Make) {
    let queue = empty(make);
    let own = Arc::clone(&queue);
    let consumer = Actor::start("consumer", move || {
        assert_eq!(own.poll(), None);
        own.poll_timeout(delays::longer())
    });
    consumer.await_parked_on("queue.take", &*queue);
    producer(&queue, 5).finish();
    assert_eq!(consumer.finish(), Ok(Some(item(5))));
    assert!(queue.is_empty());
}

/// A future that is polled again with another waker is woken through that one.
pub fn a_waker_is_replaced_by_the_next_poll(make: &Make) {
    let queue = empty(make);
    let (old_bell, old) = CountingWaker::new();
    let (bell, waker) = CountingWaker::new();
    let mut place = WaitSlot::default();
    assert!(matches!(queue.poll_take(&mut place, &old), Taken::Wait(_)));
    assert!(matches!(
        queue.poll_take(&mut place, &waker),
        Taken::Wait(_)
    ));
    drop(old);
    assert_eq!(Arc::strong_count(&old_bell), 1, "the old waker is let go");
    queue.offer(item(5)).unwrap();
    assert_eq!((old_bell.count(), bell.count()), (0, 1));
    match queue.poll_take(&mut place, &waker) {
        Taken::Got(element) => assert_eq!(element, item(5)),
        Taken::Wait(_) => panic!("the element is lost"),
    }
}
