//! Every interleaving of two who meet at a bounded queue, weak memory included.
//!
//! What is modelled here is the one protocol of the plain flavors that no lock orders (`[B-room]`): a
//! putter that finds no room says that it waits and looks again, a taker counts what it has taken and
//! looks whether somebody waits. loom shows a sequentially consistent load the newest of the
//! sequentially consistent stores, which is all that this pattern asks for; only the value that a word
//! was made with counts for it as older than any. So both words are written once before the race. The
//! other protocols, and more threads, are in `shuttle_library/queue.rs`.

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
