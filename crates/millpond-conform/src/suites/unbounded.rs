//! What queues do that have no bound.

use super::item::{Make, ROOM, empty, item, offer_all, polled};
use crate::kit::{Actor, Stopwatch, delays};
use std::sync::Arc;

/// Tests of a queue without a bound, made by a [`Make`].
#[macro_export]
macro_rules! unbounded_suite {
    ($make:expr) => {
        $crate::bodies! { unbounded, ($make as $crate::suites::item::Make);
            there_is_always_room
            offers_always_succeed
            a_timed_offer_does_not_wait
            a_put_never_waits_for_consumers
        }
    };
}

/// Holds: PriorityBlockingQueueTest.testConstructor1, DelayQueueTest.testConstructor1
/// Holds: PriorityBlockingQueueTest.testRemainingCapacity, DelayQueueTest.testRemainingCapacity
/// Holds: LinkedBlockingDequeTest.testConstructor1
pub fn there_is_always_room(make: &Make) {
    let queue = empty(make);
    for rank in 0..4 * ROOM as u32 {
        assert_eq!(queue.capacity(), None);
        assert_eq!(queue.remaining_capacity(), usize::MAX);
        offer_all(&queue, [rank]);
    }
    assert_eq!(polled(&queue).len(), 4 * ROOM);
}

/// Holds: PriorityBlockingQueueTest.testOffer, DelayQueueTest.testOffer, DelayQueueTest.testAdd
pub fn offers_always_succeed(make: &Make) {
    let queue = empty(make);
    for rank in 0..5000 {
        assert!(queue.offer(item(rank)).is_ok());
    }
    assert_eq!(queue.len(), 5000);
    assert!(polled(&queue).is_sorted());
}

/// Holds: PriorityBlockingQueueTest.testTimedOffer, DelayQueueTest.testTimedOffer
pub fn a_timed_offer_does_not_wait(make: &Make) {
    let queue = empty(make);
    let watch = Stopwatch::start();
    for timeout in delays::instants().into_iter().chain(delays::eternities()) {
        queue.offer_timeout(item(1), timeout).unwrap();
    }
    watch.assert_prompt();
}

/// Holds: PriorityBlockingQueueTest.testPutWithTake, DelayQueueTest.testPutWithTake
/// Holds: LinkedTransferQueueTest.testOfferInExecutor
pub fn a_put_never_waits_for_consumers(make: &Make) {
    let queue = empty(make);
    let own = Arc::clone(&queue);
    let producer = Actor::start("producer", move || {
        (0..4 * ROOM as u32).for_each(|rank| own.put(item(rank)).unwrap());
    });
    producer.finish();
    assert_eq!(queue.len(), 4 * ROOM);
    assert_eq!(queue.take(), Ok(item(0)));
}
