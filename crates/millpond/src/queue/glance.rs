//! What one sees of a queue in passing, without its lock.
//!
//! Whoever finds a queue empty or full looks again for a moment before it goes to sleep: falling
//! asleep and being woken costs a hundred times as much as most elements are late. Looking must not
//! disturb those who work, so it is a relaxed load or two of words that change only when the queue
//! turns empty or full. What one sees may be stale; it is only a reason to try.

use millpond_raw::pad::Padded;
use millpond_raw::sync::atomic::{AtomicU8, Ordering};

/// A queue seen in passing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Glance {
    /// Whether there seems to be an element.
    pub is_ready: bool,
    /// Whether there seems to be room.
    pub has_room: bool,
}

const READY: u8 = 1;
const ROOM: u8 = 2;

/// What a queue with one lock shows of itself.
#[derive(Debug)]
pub(super) struct Signs {
    word: Padded<AtomicU8>,
}

impl Signs {
    /// The sight of a queue with nothing in it and no room.
    pub(super) fn new() -> Self {
        Signs {
            word: Padded::new(AtomicU8::new(0)),
        }
    }

    /// Writes down how the queue looks. Whoever calls it holds the queue's lock.
    #[inline]
    pub(super) fn set(&self, is_ready: bool, has_room: bool) {
        let now = u8::from(is_ready) * READY + u8::from(has_room) * ROOM;
        if self.word.load(Ordering::Relaxed) != now {
            self.word.store(now, Ordering::Relaxed);
        }
    }

    #[inline]
    pub(super) fn glance(&self) -> Glance {
        let word = self.word.load(Ordering::Relaxed);
        Glance {
            is_ready: word & READY != 0,
            has_room: word & ROOM != 0,
        }
    }
}
