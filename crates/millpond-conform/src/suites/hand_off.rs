//! Behaviours of a queue without capacity: a rendezvous of producers and consumers.

use super::item::{Item, Queue, assert_timed_offer_waits, item};
use crate::kit::{Actor, DropCount, Gate, Stress, delays, until};
use millpond::interrupt::Interrupted;
use millpond::queue::{
    AsyncQueue, BlockingQueue, CapacityError, HandOffQueue, OfferError, QueueExt, Reason,
};
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

/// Makes a hand-off queue.
pub type Hands = fn() -> HandOffQueue<Item>;

/// Tests of a hand-off queue, fair or not.
#[macro_export]
macro_rules! hand_off_suite {
    ($make:expr) => {
        $crate::bodies! { hand_off, ($make as $crate::suites::hand_off::Hands);
            it_is_empty_and_full_at_once
            an_offer_without_a_consumer_fails
            a_poll_without_a_producer_gives_nothing
            nothing_can_be_seen_or_removed_even_while_producers_wait
            a_put_waits_until_it_is_interrupted_and_leaves_nothing
            a_put_meets_a_take_and_a_second_put_waits_again
            a_timed_offer_waits_for_its_whole_timeout
            an_offer_meets_a_waiting_consumer
            a_drain_takes_from_waiting_producers_and_wakes_them
            waiters_are_served_in_the_order_of_the_policy
            the_order_holds_when_some_waiters_give_up
            its_capacity_cannot_be_changed
            debug_text_counts_the_waiters
            futures_and_threads_meet
            a_future_that_gives_up_gets_its_element_back
            nothing_that_was_handed_over_is_kept
        }
    };
}

fn hands(make: &Hands) -> Arc<HandOffQueue<Item>> {
    Arc::new(make())
}

/// A producer that waits, with an element of this rank.
fn waiting_producer(
    queue: &Arc<HandOffQueue<Item>>,
    rank: u32,
) -> Actor<Result<(), OfferError<Item>>> {
    let own = Arc::clone(queue);
    let producer = Actor::start("producer", move || own.put(item(rank)));
    producer.await_parked("queue.put");
    producer
}

/// A consumer that waits.
fn waiting_consumer(queue: &Arc<HandOffQueue<Item>>) -> Actor<Result<Item, Interrupted>> {
    let own = Arc::clone(queue);
    let consumer = Actor::start("consumer", move || own.take());
    consumer.await_parked("queue.take");
    consumer
}

/// Holds: SynchronousQueueTest.testEmptyFull, SynchronousQueueTest.testEmptyFull_fair
pub fn it_is_empty_and_full_at_once(make: &Hands) {
    let queue = make();
    assert!(queue.is_empty());
    assert_eq!(queue.len(), 0);
    assert_eq!(queue.capacity(), Some(0));
    assert_eq!(queue.remaining_capacity(), 0);
}

/// Holds: SynchronousQueueTest.testOffer, SynchronousQueueTest.testOffer_fair
/// Holds: SynchronousQueueTest.testAdd, SynchronousQueueTest.testAdd_fair
/// Holds: SynchronousQueueTest.testAddAll_ISE, SynchronousQueueTest.testAddAll_ISE_fair
pub fn an_offer_without_a_consumer_fails(make: &Hands) {
    let queue = make();
    for rank in 0..3 {
        let rejected = queue.offer(item(rank)).unwrap_err();
        assert_eq!(rejected.reason, Reason::Full);
        assert_eq!(rejected.element, item(rank));
    }
    for timeout in delays::instants() {
        let rejected = queue.offer_timeout(item(1), timeout).unwrap_err();
        assert_eq!(rejected.reason, Reason::TimedOut);
    }
    assert_eq!(queue.poll(), None, "nothing is left behind");
}

/// Holds: SynchronousQueueTest.testPoll, SynchronousQueueTest.testPoll_fair
/// Holds: SynchronousQueueTest.testRemove, SynchronousQueueTest.testRemove_fair
pub fn a_poll_without_a_producer_gives_nothing(make: &Hands) {
    assert_eq!(make().poll(), None);
}

/// Holds: SynchronousQueueTest.testPeek, SynchronousQueueTest.testPeek_fair
/// Holds: SynchronousQueueTest.testElement, SynchronousQueueTest.testElement_fair
/// Holds: SynchronousQueueTest.testContains, SynchronousQueueTest.testContains_fair
/// Holds: SynchronousQueueTest.testClear, SynchronousQueueTest.testClear_fair
/// Holds: SynchronousQueueTest.testContainsAll, SynchronousQueueTest.testContainsAll_fair
/// Holds: SynchronousQueueTest.testRetainAll
/// Holds: SynchronousQueueTest.testRemoveAll, SynchronousQueueTest.testRemoveAll_fair
/// Holds: SynchronousQueueTest.testToArray_fair
/// Holds: SynchronousQueueTest.testIterator, SynchronousQueueTest.testIterator_fair
/// Holds: SynchronousQueueTest.testIteratorRemove_fair
pub fn nothing_can_be_seen_or_removed_even_while_producers_wait(make: &Hands) {
    let queue = hands(make);
    let producer = waiting_producer(&queue, 1);
    assert_eq!(queue.peek(), None);
    assert!(!queue.contains(&item(1)));
    assert!(!queue.remove(&item(1)));
    assert!(queue.remove_where(usize::MAX, &mut |_| true).is_empty());
    queue.clear();
    assert!(queue.snapshot().is_empty());
    assert!(queue.is_empty());
    assert_eq!(queue.poll(), Some(item(1)), "it waits all the same");
    producer.finish().unwrap();
}

/// Holds: SynchronousQueueTest.testBlockingPut, SynchronousQueueTest.testBlockingPut_fair
pub fn a_put_waits_until_it_is_interrupted_and_leaves_nothing(make: &Hands) {
    let queue = hands(make);
    let producer = waiting_producer(&queue, 1);
    assert_eq!(queue.waiting_producers(), 1);
    producer.interrupt();
    let rejected = producer.finish().unwrap_err();
    assert_eq!(rejected.reason, Reason::Interrupted);
    assert_eq!(rejected.element, item(1));
    assert_eq!(queue.waiting_producers(), 0);
    assert_eq!(queue.poll(), None);
    let own = Arc::clone(&queue);
    let pending = Actor::start_interrupted("producer", move || own.put(item(2)));
    assert_eq!(pending.finish().unwrap_err().reason, Reason::Interrupted);
}

/// Holds: SynchronousQueueTest.testPutWithTake
pub fn a_put_meets_a_take_and_a_second_put_waits_again(make: &Hands) {
    let queue = hands(make);
    let (own, met) = (Arc::clone(&queue), Gate::new());
    let opener = met.clone();
    let producer = Actor::start("producer", move || {
        own.put(item(1)).unwrap();
        opener.open();
        own.put(item(2))
    });
    assert_eq!(queue.take(), Ok(item(1)));
    met.wait();
    producer.interrupt_at("queue.put");
    assert_eq!(producer.finish().unwrap_err().element, item(2));
    assert_eq!(queue.remaining_capacity(), 0);
}

/// Holds: SynchronousQueueTest.testTimedOffer
pub fn a_timed_offer_waits_for_its_whole_timeout(make: &Hands) {
    let queue: Queue = hands(make);
    assert_timed_offer_waits(&queue, item(1));
}

/// Holds: SynchronousQueueTest.testOfferInExecutor, SynchronousQueueTest.testOfferInExecutor_fair
pub fn an_offer_meets_a_waiting_consumer(make: &Hands) {
    let queue = hands(make);
    assert!(queue.offer(item(1)).is_err());
    let consumer = waiting_consumer(&queue);
    assert_eq!(queue.waiting_consumers(), 1);
    queue.offer(item(1)).unwrap();
    assert_eq!(consumer.finish(), Ok(item(1)));
    assert_eq!(queue.waiting_consumers(), 0);
}

/// Holds: SynchronousQueueTest.testDrainTo, SynchronousQueueTest.testDrainTo_fair
/// Holds: SynchronousQueueTest.testDrainToWithActivePut_fair
pub fn a_drain_takes_from_waiting_producers_and_wakes_them(make: &Hands) {
    let queue = hands(make);
    let mut sink = Vec::new();
    assert_eq!(queue.drain_into(&mut sink), 0, "nobody puts");
    let producers: Vec<_> = (0..3).map(|rank| waiting_producer(&queue, rank)).collect();
    let moved = queue.drain_to(2, &mut |item| sink.push(item));
    assert_eq!(moved, 2);
    assert_eq!(queue.drain_into(&mut sink), 1);
    for producer in producers {
        producer.finish().unwrap();
    }
    sink.sort();
    assert_eq!(sink, [0, 1, 2].map(item));
}

/// Holds: jtreg queues.SynchronousQueue/Fairness
pub fn waiters_are_served_in_the_order_of_the_policy(make: &Hands) {
    let queue = hands(make);
    let expected = if queue.is_fair() {
        [0, 1, 2]
    } else {
        [2, 1, 0]
    };
    let producers: Vec<_> = (0..3).map(|rank| waiting_producer(&queue, rank)).collect();
    assert_eq!(
        std::array::from_fn(|_| queue.poll().unwrap().rank),
        expected
    );
    producers
        .into_iter()
        .for_each(|producer| producer.finish().unwrap());

    let consumers: Vec<_> = (0..3).map(|_| waiting_consumer(&queue)).collect();
    let mut served = [0; 3];
    for (turn, consumer) in expected.into_iter().enumerate() {
        queue.offer(item(turn as u32)).unwrap();
        served[consumer as usize] = turn as u32;
    }
    for (consumer, turn) in consumers.into_iter().zip(served) {
        assert_eq!(consumer.finish(), Ok(item(turn)));
    }
}

/// A waiter that gives up changes nothing for the others.
pub fn the_order_holds_when_some_waiters_give_up(make: &Hands) {
    let queue = hands(make);
    let mut producers: Vec<_> = (0..3).map(|rank| waiting_producer(&queue, rank)).collect();
    let gone = producers.remove(1);
    gone.interrupt();
    assert_eq!(gone.finish().unwrap_err().element, item(1));
    let expected = if queue.is_fair() { [0, 2] } else { [2, 0] };
    assert_eq!(
        std::array::from_fn(|_| queue.poll().unwrap().rank),
        expected
    );
    producers
        .into_iter()
        .for_each(|producer| producer.finish().unwrap());
}

/// There is no capacity to change, and asking says so.
pub fn its_capacity_cannot_be_changed(make: &Hands) {
    let queue = make();
    for capacity in [0, 1, usize::MAX] {
        assert_eq!(queue.set_capacity(capacity), Err(CapacityError::Fixed));
    }
    assert!(queue.offer(item(1)).is_err());
}

/// The text says which kind it is and how many wait on each side.
pub fn debug_text_counts_the_waiters(make: &Hands) {
    let queue = hands(make);
    let producer = waiting_producer(&queue, 1);
    let text = format!("{queue:?}");
    assert!(text.contains("HandOffQueue"), "{text}");
    assert!(text.contains("waiting_producers: 1"), "{text}");
    assert!(queue.poll().is_some());
    producer.finish().unwrap();
}

/// A future can put to a thread, and a thread to a future.
pub fn futures_and_threads_meet(make: &Hands) {
    let queue = hands(make);
    let mut context = Context::from_waker(Waker::noop());
    let mut sending = pin!(queue.send(item(1)));
    assert!(sending.as_mut().poll(&mut context).is_pending());
    assert_eq!(queue.take(), Ok(item(1)));
    assert!(matches!(
        sending.as_mut().poll(&mut context),
        Poll::Ready(Ok(()))
    ));

    let mut receiving = pin!(queue.recv());
    assert!(receiving.as_mut().poll(&mut context).is_pending());
    queue.put(item(2)).unwrap();
    assert!(matches!(receiving.as_mut().poll(&mut context), Poll::Ready(got) if got == item(2)));
}

/// A future that is dropped in the middle has neither put nor taken.
pub fn a_future_that_gives_up_gets_its_element_back(make: &Hands) {
    let count = DropCount::new();
    let queue = hands(make);
    let mut context = Context::from_waker(Waker::noop());
    let mut sending = queue.send(item(1).counted(&count));
    assert!(pin!(&mut sending).poll(&mut context).is_pending());
    assert_eq!(sending.into_element(), Some(item(1)));
    assert_eq!(queue.poll(), None);
    {
        let receiving = pin!(queue.recv());
        assert!(receiving.poll(&mut context).is_pending());
    }
    assert_eq!(queue.waiting_consumers(), 0);
    assert!(queue.offer(item(2)).is_err(), "nobody waits any more");
}

/// Holds: SynchronousQueue20Test.testFairDoesntLeak, SynchronousQueue20Test.testUnfairDoesntLeak
pub fn nothing_that_was_handed_over_is_kept(make: &Hands) {
    let queue = hands(make);
    Stress::new("handed over").one_in(10).run(|round| {
        let count = Arc::new(DropCount::new());
        let (own, counted) = (Arc::clone(&queue), Arc::clone(&count));
        let producer = round.actor("producer", move |rng| {
            for rank in 0..4 {
                rng.jitter();
                own.put(item(rank).counted(&counted)).unwrap();
            }
        });
        for rank in 0..4 {
            assert_eq!(queue.take(), Ok(item(rank)));
        }
        producer.finish();
        // The producer's stack may be a moment behind its last wake-up.
        until("nothing is alive", || count.alive() == 0);
    });
}
