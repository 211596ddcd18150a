//! Parking.

use super::{few_or_many, join_all, spawn_all};
use millpond_raw::park::{self, Block, Site, ThreadBlock, Woken};
use millpond_raw::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Arc;
use std::time::{Duration, Instant};

const HERE: Site = Site::new("scenario.wait");

/// A near deadline. Models have no clock; there it only means that the wait is timed.
#[allow(clippy::disallowed_methods, reason = "parking is below the clock")]
fn soon() -> Instant {
    Instant::now() + Duration::from_micros(50)
}

/// A park that takes a token shows what was written before the wake. Nothing else orders the two: the letter
/// is written and read with relaxed operations.
pub(crate) fn a_token_brings_what_was_written_before_the_wake() {
    let letter = Arc::new(AtomicUsize::new(0));
    let block = Arc::new(ThreadBlock::new());
    let writer = spawn_all(1, {
        let (letter, block) = (Arc::clone(&letter), Arc::clone(&block));
        move |_| {
            letter.store(7, Ordering::Relaxed);
            block.unpark();
        }
    });
    let _ = block.park(None);
    assert_eq!(letter.load(Ordering::Relaxed), 7);
    join_all(writer);
}

/// However many threads wake it and however they interleave, the strand sees all of them arrive.
pub(crate) fn no_wake_is_lost() {
    let threads = few_or_many(2, 4);
    let arrived = Arc::new(AtomicUsize::new(0));
    let here = park::current();
    let waker = here.waker();
    let others = spawn_all(threads, {
        let arrived = Arc::clone(&arrived);
        move |_| {
            arrived.fetch_add(1, Ordering::Release);
            waker.wake_by_ref();
        }
    });
    while arrived.load(Ordering::Acquire) < threads {
        here.park(HERE);
    }
    join_all(others);
}

/// A wake that races with a deadline is taken or kept, never dropped: after a timeout the token is
/// there for the next park, and never twice.
pub(crate) fn a_wake_at_the_deadline_is_taken_or_kept() {
    let block = Arc::new(ThreadBlock::new());
    let waker = Arc::clone(&block).waker();
    let other = spawn_all(1, move |_| waker.wake_by_ref());
    if block.park(Some(soon())) == Woken::TimedOut {
        let _ = block.park(None);
    }
    join_all(other);
    assert_eq!(
        block.park(Some(soon())),
        Woken::TimedOut,
        "one wake is one token"
    );
}
