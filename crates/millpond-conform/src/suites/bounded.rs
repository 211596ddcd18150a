//! What queues do that have a bound: rejecting, waiting for room, and changing the bound in use.

use super::item::{
    Make, Queue, assert_timed_offer_waits, full, item, offer_all, polled, ranks, with,
};
use crate::kit::{Actor, CountingWaker, DropCount, Stopwatch, delays};
use millpond::interrupt;
use millpond::queue::{CapacityError, OfferError, Offered, QueueExt, Reason, WaitSlot};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;

/// Tests of a queue with a bound, made by a [`Make`].
#[macro_export]
macro_rules! bounded_suite {
    ($make:expr) => {
        $crate::bodies! { bounded, ($make as $crate::suites::item::Make);
            a_queue_has_exactly_the_capacity_that_was_asked_for
            a_capacity_of_zero_is_an_error
            a_huge_capacity_is_an_error_or_costs_nothing
            room_and_length_add_up_to_the_capacity
            a_full_queue_returns_the_offered_element
            elements_that_do_not_fit_in_bulk_are_returned_and_the_rest_stays
            a_put_waits_for_room_until_it_is_interrupted
            a_pending_interrupt_ends_a_put_even_if_there_is_room
            a_put_waits_for_a_take
            a_timed_offer_waits_for_its_whole_timeout
            a_timed_offer_with_timeout_zero_is_an_offer
            a_timed_offer_succeeds_when_room_appears
            every_removal_wakes_a_waiting_put
            a_drain_that_fails_wakes_a_waiting_put
            each_waiting_put_is_woken_by_room_of_its_own
            more_capacity_wakes_waiting_producers
            less_capacity_keeps_the_elements_and_accepts_no_new_ones
            an_impossible_capacity_changes_nothing
            producers_that_gave_up_leave_nothing_behind
            a_wake_up_that_comes_too_late_is_passed_on_to_the_next_producer
        }
    };
}

/// A producer that waits for room, with an element of this rank.
fn waiting_producer(queue: &Queue, rank: u32) -> Actor<Result<(), OfferError<super::item::Item>>> {
    let own = Arc::clone(queue);
    let producer = Actor::start("producer", move || own.put(item(rank)));
    producer.await_parked_on("queue.put", &**queue);
    producer
}

/// Holds: ArrayBlockingQueueTest.testConstructor1, LinkedBlockingDequeTest.testConstructor1
pub fn a_queue_has_exactly_the_capacity_that_was_asked_for(make: &Make) {
    for capacity in [1, 2, 3, 20, 1000] {
        let queue = make(capacity).unwrap();
        assert_eq!(queue.capacity(), Some(capacity));
        assert_eq!(queue.remaining_capacity(), capacity);
        offer_all(&queue, 0..capacity as u32);
        assert_eq!(queue.remaining_capacity(), 0);
        assert!(queue.offer(item(0)).is_err());
    }
}

/// Holds: ArrayBlockingQueueTest.testConstructor_nonPositiveCapacity
/// Holds: LinkedBlockingQueueTest.testConstructor2
pub fn a_capacity_of_zero_is_an_error(make: &Make) {
    let error = make(0).expect_err("it holds nothing");
    assert_eq!(error, CapacityError::Zero);
    assert!(error.to_string().contains("at least 1"));
}

/// No queue allocates by the bound alone.
pub fn a_huge_capacity_is_an_error_or_costs_nothing(make: &Make) {
    for capacity in [usize::MAX, usize::MAX / 2, 1 << 40] {
        match make(capacity) {
            Ok(queue) => {
                offer_all(&queue, 0..3);
                assert_eq!(polled(&queue), [0, 1, 2]);
            }
            Err(error) => assert!(
                matches!(error, CapacityError::TooLarge { asked, most } if asked > most),
                "{error}"
            ),
        }
    }
}

/// Holds: ArrayBlockingQueueTest.testRemainingCapacity
/// Holds: LinkedBlockingQueueTest.testRemainingCapacity
/// Holds: LinkedBlockingDequeTest.testRemainingCapacity
pub fn room_and_length_add_up_to_the_capacity(make: &Make) {
    let queue = make(5).unwrap();
    for rank in 0..5 {
        assert_eq!(queue.remaining_capacity() + queue.len(), 5);
        assert_eq!(queue.len(), rank as usize);
        offer_all(&queue, [rank]);
    }
    for left in (0..5).rev() {
        assert!(queue.poll().is_some());
        assert_eq!(queue.remaining_capacity(), 5 - left);
        assert_eq!(queue.len(), left);
    }
}

/// Holds: ArrayBlockingQueueTest.testOffer, LinkedBlockingQueueTest.testOffer
/// Holds: LinkedBlockingDequeTest.testOffer
/// Holds: ArrayBlockingQueueTest.testAdd, LinkedBlockingQueueTest.testAdd
/// Holds: LinkedBlockingDequeTest.testAdd
/// Holds: LinkedBlockingQueueTest.testEmptyFull, LinkedBlockingDequeTest.testEmptyFull
pub fn a_full_queue_returns_the_offered_element(make: &Make) {
    let queue = full(make, 2);
    let watch = Stopwatch::start();
    let rejected = queue.offer(item(9).marked(7)).unwrap_err();
    watch.assert_prompt();
    assert_eq!(rejected.reason, Reason::Full);
    assert_eq!((rejected.element.rank, rejected.element.mark), (9, 7));
    assert_eq!(queue.remaining_capacity(), 0);
    assert_eq!(ranks(&queue), [0, 1]);
    assert!(queue.poll().is_some());
    assert!(queue.offer(rejected.element).is_ok());
}

/// Holds: ArrayBlockingQueueTest.testAddAll_insufficientSpace, LinkedBlockingQueueTest.testAddAll4
/// Holds: LinkedBlockingDequeTest.testAddAll4
/// Holds: ArrayBlockingQueueTest.testConstructor_collectionTooLarge
pub fn elements_that_do_not_fit_in_bulk_are_returned_and_the_rest_stays(make: &Make) {
    let queue = make(2).unwrap();
    let rejected = (0..4).find_map(|rank| queue.offer(item(rank)).err());
    assert_eq!(rejected.unwrap().element, item(2));
    assert_eq!(ranks(&queue), [0, 1]);
}

/// Holds: ArrayBlockingQueueTest.testBlockingPut, LinkedBlockingQueueTest.testBlockingPut
/// Holds: LinkedBlockingDequeTest.testBlockingPut
pub fn a_put_waits_for_room_until_it_is_interrupted(make: &Make) {
    let queue = full(make, 2);
    let producer = waiting_producer(&queue, 9);
    producer.interrupt();
    let rejected = producer.finish().unwrap_err();
    assert_eq!(rejected.reason, Reason::Interrupted);
    assert_eq!(rejected.element, item(9));
    assert_eq!(ranks(&queue), [0, 1]);
    assert_eq!(queue.remaining_capacity(), 0);
}

/// A pending interrupt ends every putting form that may wait, and the element comes back.
pub fn a_pending_interrupt_ends_a_put_even_if_there_is_room(make: &Make) {
    for fill in [0, 2] {
        let queue = make(2).unwrap();
        offer_all(&queue, 0..fill);
        let own = Arc::clone(&queue);
        let producer = Actor::start_interrupted("producer", move || {
            let rejected = own.put(item(9)).unwrap_err();
            assert_eq!(rejected.reason, Reason::Interrupted);
            assert!(!interrupt::is_interrupted(), "what is reported is cleared");
            rejected.element
        });
        assert_eq!(producer.finish(), item(9));
        let own = Arc::clone(&queue);
        let producer = Actor::start_interrupted("producer", move || {
            own.offer_timeout(item(9), delays::longer()).unwrap_err()
        });
        assert_eq!(producer.finish().reason, Reason::Interrupted);
        assert_eq!(queue.len(), fill as usize);
    }
}

/// Holds: ArrayBlockingQueueTest.testPutWithTake, LinkedBlockingQueueTest.testPutWithTake
/// Holds: LinkedBlockingDequeTest.testPutWithTake
pub fn a_put_waits_for_a_take(make: &Make) {
    let queue = full(make, 2);
    let producer = waiting_producer(&queue, 2);
    assert_eq!(queue.take(), Ok(item(0)));
    producer.finish().unwrap();
    assert_eq!(ranks(&queue), [1, 2]);
    let again = waiting_producer(&queue, 3);
    again.interrupt();
    assert_eq!(again.finish().unwrap_err().reason, Reason::Interrupted);
    assert_eq!(ranks(&queue), [1, 2]);
}

/// Holds: LinkedBlockingQueueTest.testTimedOffer
pub fn a_timed_offer_waits_for_its_whole_timeout(make: &Make) {
    let queue = full(make, 2);
    assert_timed_offer_waits(&queue, item(9));
    assert_eq!(ranks(&queue), [0, 1]);
}

/// No timeout at all tries once, and says that the time was up.
pub fn a_timed_offer_with_timeout_zero_is_an_offer(make: &Make) {
    let queue = full(make, 2);
    let watch = Stopwatch::start();
    for timeout in delays::instants() {
        let rejected = queue.offer_timeout(item(9), timeout).unwrap_err();
        assert_eq!(rejected.reason, Reason::TimedOut);
    }
    watch.assert_prompt();
    assert!(queue.poll().is_some());
    for timeout in delays::instants() {
        let _ = queue.poll();
        assert!(queue.offer_timeout(item(9), timeout).is_ok());
    }
}

/// Holds: ArrayBlockingQueueTest.testOfferInExecutor, LinkedBlockingQueueTest.testOfferInExecutor
/// Holds: LinkedBlockingDequeTest.testOfferInExecutor
pub fn a_timed_offer_succeeds_when_room_appears(make: &Make) {
    for timeout in delays::eternities() {
        let queue = full(make, 2);
        let own = Arc::clone(&queue);
        let producer = Actor::start("producer", move || {
            assert!(own.offer(item(2)).is_err());
            let watch = Stopwatch::start();
            own.offer_timeout(item(2), timeout).unwrap();
            watch.assert_prompt();
        });
        producer.await_parked_on("queue.put", &*queue);
        assert_eq!(queue.take(), Ok(item(0)));
        producer.finish();
        assert_eq!(polled(&queue), [1, 2]);
    }
}

/// Holds: ArrayBlockingQueueTest.testDrainToWithActivePut
pub fn every_removal_wakes_a_waiting_put(make: &Make) {
    for way in 0..5 {
        let queue = full(make, 2);
        let producer = waiting_producer(&queue, 2);
        match way {
            0 => drop(queue.poll()),
            1 => assert!(queue.remove(&item(1))),
            2 => queue.clear(),
            3 => assert!(queue.drain_into(&mut Vec::new()) >= 2),
            _ => assert_eq!(queue.poll_timeout(delays::long()), Ok(Some(item(0)))),
        }
        producer.finish().unwrap();
        // A drain that goes on while it frees the producer may have moved its element as well.
        assert!(queue.len() <= 2);
    }
}

/// Room that a failing drain has made is room.
pub fn a_drain_that_fails_wakes_a_waiting_put(make: &Make) {
    let queue = full(make, 2);
    let producer = waiting_producer(&queue, 2);
    let caught = catch_unwind(AssertUnwindSafe(|| {
        queue.drain_to(usize::MAX, &mut |_| resume_unwind(Box::new("no sack")))
    }));
    assert!(caught.is_err());
    producer.finish().unwrap();
    assert_eq!(ranks(&queue), [1, 2]);
}

/// Two waiting producers need two takes; one take wakes one.
pub fn each_waiting_put_is_woken_by_room_of_its_own(make: &Make) {
    let queue = full(make, 1);
    let producers = [1, 2].map(|rank| waiting_producer(&queue, rank));
    assert_eq!(queue.take(), Ok(item(0)));
    let mut rest = vec![queue.take().unwrap().rank, queue.take().unwrap().rank];
    rest.sort_unstable();
    assert_eq!(rest, [1, 2]);
    for producer in producers {
        producer.finish().unwrap();
    }
    assert!(queue.is_empty());
}

/// Growing a full queue lets in as many as there is new room for.
pub fn more_capacity_wakes_waiting_producers(make: &Make) {
    let queue = full(make, 1);
    let producers = [1, 2].map(|rank| waiting_producer(&queue, rank));
    queue.set_capacity(3).unwrap();
    for producer in producers {
        producer.finish().unwrap();
    }
    assert_eq!(queue.capacity(), Some(3));
    assert_eq!(queue.len(), 3);
    assert!(queue.offer(item(9)).is_err());
}

/// Shrinking below the length keeps the elements, and there is no room until they are gone.
pub fn less_capacity_keeps_the_elements_and_accepts_no_new_ones(make: &Make) {
    let queue = full(make, 4);
    queue.set_capacity(2).unwrap();
    assert_eq!(ranks(&queue), [0, 1, 2, 3]);
    assert_eq!(queue.remaining_capacity(), 0);
    let producer = waiting_producer(&queue, 9);
    for rank in 0..2 {
        assert_eq!(queue.poll(), Some(item(rank)));
        assert_eq!(queue.offer(item(8)).unwrap_err().reason, Reason::Full);
    }
    assert_eq!(queue.poll(), Some(item(2)));
    producer.finish().unwrap();
    assert_eq!(polled(&queue), [3, 9]);
    offer_all(&queue, [0, 1]);
    assert!(queue.offer(item(2)).is_err());
}

/// A failed change leaves the old bound and the elements.
pub fn an_impossible_capacity_changes_nothing(make: &Make) {
    let queue = with(make, 3);
    let before = queue.capacity();
    assert_eq!(queue.set_capacity(0), Err(CapacityError::Zero));
    assert_eq!(queue.capacity(), before);
    if let Err(error) = queue.set_capacity(usize::MAX) {
        assert!(matches!(error, CapacityError::TooLarge { .. }), "{error}");
        assert_eq!(queue.capacity(), before);
    }
    assert_eq!(polled(&queue), [0, 1, 2]);
}

/// A producer that gives up gets the element back, and no waker stays behind.
pub fn producers_that_gave_up_leave_nothing_behind(make: &Make) {
    let count = DropCount::new();
    let queue = full(make, 1);
    let (bell, waker) = CountingWaker::new();
    for _ in 0..100 {
        let (mut element, mut place) = (Some(item(9).counted(&count)), WaitSlot::default());
        let offered = queue.poll_offer(&mut element, &mut place, &waker);
        assert_eq!(offered, Offered::Wait);
        queue.leave_offer(&mut element, &mut place);
        assert_eq!(element, Some(item(9)));
    }
    drop(waker);
    assert_eq!(Arc::strong_count(&bell), 1, "no waker is left in the queue");
    assert_eq!(ranks(&queue), [0]);
}

/// A producer that is woken and then gives up does not swallow the wake-up.
pub fn a_wake_up_that_comes_too_late_is_passed_on_to_the_next_producer(make: &Make) {
    let queue = full(make, 1);
    let (_gone, waker) = CountingWaker::new();
    let (mut element, mut place) = (Some(item(8)), WaitSlot::default());
    let offered = queue.poll_offer(&mut element, &mut place, &waker);
    assert_eq!(offered, Offered::Wait);
    let stays = waiting_producer(&queue, 9);
    assert_eq!(queue.poll(), Some(item(0)));
    queue.leave_offer(&mut element, &mut place);
    if element.is_none() {
        assert_eq!(
            queue.take(),
            Ok(item(8)),
            "it was let in at the last moment"
        );
    }
    stays.finish().unwrap();
    assert_eq!(queue.take(), Ok(item(9)));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_suite_catches_a_queue_that_never_waits() {
        // A queue that rejects at once has no producer parked in it; the actor ends instead.
        let make: Make = |capacity| {
            millpond::queue::FifoQueue::bounded_growing(capacity)
                .map(|queue| Arc::new(queue) as Queue)
        };
        let queue = super::super::item::empty(&make);
        let caught = catch_unwind(AssertUnwindSafe(|| waiting_producer(&queue, 1)));
        assert!(caught.is_err(), "there is room, so nobody waits");
    }
}
