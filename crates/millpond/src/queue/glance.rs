//! What one sees of a queue in passing, without its lock.
//!
//! Whoever finds a queue empty or full looks again for a moment before it goes to sleep: falling
//! asleep and being woken costs a hundred times as much as most elements are late. Looking must not
//! disturb those who work, so it is one relaxed load of a word that changes only when the queue turns
//! empty or full. What one sees may be stale; it is only a reason to try.

use millpond_raw::pad::Padded;
use millpond_raw::sync::atomic::{AtomicU8, Ordering};

const READY: u8 = 1;
const ROOM: u8 = 2;

/// A queue seen in passing: whether there seems to be an element, and whether there seems to be room.
#[derive(Debug)]
pub struct Glance {
    seen: Padded<AtomicU8>,
}

impl Glance {
    /// The sight of a queue with nothing in it and no room.
    pub fn new() -> Self {
        Glance {
            seen: Padded::new(AtomicU8::new(0)),
        }
    }

    /// Writes down how the queue looks. Whoever calls it holds the queue's lock.
    #[inline]
    pub fn set(&self, ready: bool, room: bool) {
        let now = u8::from(ready) * READY + u8::from(room) * ROOM;
        if self.seen.load(Ordering::Relaxed) != now {
            self.seen.store(now, Ordering::Relaxed);
        }
    }

    /// Whether there seems to be an element.
    #[inline]
    pub fn is_ready(&self) -> bool {
        self.seen.load(Ordering::Relaxed) & READY != 0
    }

    /// Whether there seems to be room.
    #[inline]
    pub fn has_room(&self) -> bool {
        self.seen.load(Ordering::Relaxed) & ROOM != 0
    }
}

impl Default for Glance {
    fn default() -> Self {
        Self::new()
    }
}
