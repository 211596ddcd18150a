//! Every interleaving of two threads at a bounded queue, weak memory included.
//!
//! The models cover the two protocols of the plain queue that no lock orders. In the first (`[B-room]`) a producer
//! that finds no room announces that it waits and checks again; a consumer counts what it has taken and checks
//! whether a producer waits. Loom shows a sequentially consistent load the newest of the sequentially consistent
//! stores, which is all that this pattern needs; only the initial value of a word counts as older than any. So both
//! words are written once before the race. In the second (`[B-full]`) a full queue publishes a mark, and an offer
//! that reads it fails without a lock if nothing has been taken since. The other protocols, and more threads, are in
//! `shuttle_library/queue.rs`.

use crate::model;
use millpond::queue::{BlockingQueue, FifoQueue, Offered, WaitSlot};
use millpond_raw::sync::thread::spawn;
use std::sync::Arc;
use std::task::Waker;

/// FIFO-3: a consumer that makes room wakes a waiting producer.
#[test]
fn a_producer_that_waits_for_room_is_woken_by_the_consumer() {
    model(3, || {
        let queue = Arc::new(FifoQueue::bounded_growing(1).unwrap());
        queue.offer(0).unwrap();
        let (mut element, mut place) = (Some(9), WaitSlot::default());
        let waits = queue.poll_offer(&mut element, &mut place, Waker::noop());
        assert!(matches!(waits, Offered::Wait));
        queue.leave_offer(&mut element, &mut place);
        assert_eq!(queue.poll(), Some(0));
        queue.offer(1).unwrap();

        let producer = spawn({
            let queue = Arc::clone(&queue);
            move || queue.put(2).unwrap()
        });
        assert_eq!(queue.poll(), Some(1));
        producer.join().unwrap();
        assert_eq!(queue.poll(), Some(2));
    });
}

/// A consumer that polls before it parks takes an element that comes meanwhile, or is woken for it.
#[test]
fn a_consumer_that_polls_before_it_parks_meets_a_producer() {
    model(3, || {
        let queue = Arc::new(FifoQueue::bounded_growing(1).unwrap());
        let consumer = spawn({
            let queue = Arc::clone(&queue);
            move || queue.take().unwrap()
        });
        queue.put(1).unwrap();
        assert_eq!(consumer.join().unwrap(), 1);
        assert_eq!(queue.poll(), None);
    });
}

/// FIFO-8: each of two threads has at most one element in the queue, so there is always room. The full mark is set
/// all the same while the producers' side has an old value of `taken`, and no offer may fail by it.
#[test]
fn no_offer_fails_while_there_is_room() {
    model(2, || {
        let queue = Arc::new(FifoQueue::bounded_growing(2).unwrap());
        let in_and_out = |queue: &FifoQueue<u8>| {
            for number in 0..2 {
                queue.offer(number).expect("one of two places is free");
                assert!(queue.poll().is_some(), "one that has come has not gone");
            }
        };
        let other = spawn({
            let queue = Arc::clone(&queue);
            move || in_and_out(&queue)
        });
        in_and_out(&queue);
        other.join().unwrap();
        assert_eq!(queue.poll(), None);
    });
}

/// FIFO-8: raising the bound clears the full mark.
#[test]
fn no_offer_fails_by_a_bound_that_was_raised_before() {
    model(3, || {
        let queue = Arc::new(FifoQueue::bounded_growing(1).unwrap());
        queue.offer(0).unwrap();
        assert!(queue.offer(9).is_err(), "it is full");
        let other = spawn({
            let queue = Arc::clone(&queue);
            move || {
                queue.set_capacity(3).unwrap();
                queue.offer(1).expect("there is room for two more");
            }
        });
        let was_full = queue.offer(2).is_err();
        other.join().unwrap();
        assert_eq!(queue.offer(3).is_ok(), was_full, "the bound is exact");
    });
}
