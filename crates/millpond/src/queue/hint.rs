//! The state of a queue as seen without its lock.
//!
//! A thread that finds a queue empty or full polls the hint for a moment before it parks: parking and being woken
//! costs a hundred times what most elements are late. Polling must not disturb other threads, so it is a relaxed
//! load or two of words that change only when the queue turns empty or full. A hint may be stale; it is only a
//! reason to try.

use millpond_raw::cache_padded::CachePadded;
use millpond_raw::sync::atomic::{AtomicU8, Ordering};

/// The state of a queue as seen without its lock; possibly stale.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueueHint {
    /// Whether there seems to be an element.
    pub is_ready: bool,
    /// Whether there seems to be room.
    pub has_room: bool,
}

const READY: u8 = 1;
const ROOM: u8 = 2;

/// The hint of a queue with one lock.
#[derive(Debug)]
pub(super) struct HintWord {
    word: CachePadded<AtomicU8>,
}

impl HintWord {
    /// The hint of a queue with no element and no room.
    pub(super) fn new() -> Self {
        HintWord {
            word: CachePadded::new(AtomicU8::new(0)),
        }
    }

    /// Updates the hint. The caller holds the queue's lock.
    #[inline]
    pub(super) fn set(&self, is_ready: bool, has_room: bool) {
        let now = u8::from(is_ready) * READY + u8::from(has_room) * ROOM;
        if self.word.load(Ordering::Relaxed) != now {
            self.word.store(now, Ordering::Relaxed);
        }
    }

    #[inline]
    pub(super) fn hint(&self) -> QueueHint {
        let word = self.word.load(Ordering::Relaxed);
        QueueHint {
            is_ready: word & READY != 0,
            has_room: word & ROOM != 0,
        }
    }
}
