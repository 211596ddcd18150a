//! Every interleaving of two who meet at a bounded queue, weak memory included.
//!
//! What is modelled here are the two protocols of the plain flavors that no lock orders. In the one
//! (`[B-room]`) a putter that finds no room says that it waits and looks again, a taker counts what it
//! has taken and looks whether somebody waits. loom shows a sequentially consistent load the newest of
//! the sequentially consistent stores, which is all that this pattern asks for; only the value that a
//! word was made with counts for it as older than any. So both words are written once before the race.
//! In the other (`[B-full]`) a full queue shows a sign, and who reads it is refused without a lock if
//! nothing has been taken since. The other protocols, and more threads, are in
//! `shuttle_library/queue.rs`.

use crate::model;
use millpond::queue::{BlockingQueue, LinkedQueue, Offered, Place};
use millpond_raw::sync::thread::spawn;
use std::sync::Arc;
use std::task::Waker;

/// B3: one who waits for room is called by whoever makes it.
#[test]
fn a_putter_that_waits_for_room_is_called_by_the_taker() {
    model(3, || {
        let queue = Arc::new(LinkedQueue::bounded(1).unwrap());
        queue.offer(0).unwrap();
        let (mut element, mut place) = (Some(9), Place::default());
        let waits = queue.poll_offer(&mut element, &mut place, Waker::noop());
        assert!(matches!(waits, Offered::Wait));
        queue.leave_offer(&mut element, &mut place);
        assert_eq!(queue.poll(), Some(0));
        queue.offer(1).unwrap();

        let putter = spawn({
            let queue = Arc::clone(&queue);
            move || queue.put(2).unwrap()
        });
        assert_eq!(queue.poll(), Some(1));
        putter.join().unwrap();
        assert_eq!(queue.poll(), Some(2));
    });
}

/// B8: each of two has at most one element in, so there is always room. A sign goes up all the same,
/// when the putters' side has yet to hear of what has gone, and must not refuse anybody.
#[test]
fn nobody_is_refused_while_there_is_room() {
    model(2, || {
        let queue = Arc::new(LinkedQueue::bounded(2).unwrap());
        let in_and_out = |queue: &LinkedQueue<u8>| {
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

/// B8: who raises the bound takes the sign down.
#[test]
fn nobody_is_refused_by_a_bound_that_was_raised_before() {
    model(3, || {
        let queue = Arc::new(LinkedQueue::bounded(1).unwrap());
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
