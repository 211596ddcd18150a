//! The bound: waking producers for room (FIFO-3), and the mark of a full queue (FIFO-8).
//!
//! Orderings are in the header of `mod.rs`.

use super::TwoLock;
use super::inbox::Inbox;
use crate::queue::ring::Ring;
use crate::queue::wake_list::{WakeList, lock};
use millpond_raw::sync::MutexGuard;
use millpond_raw::sync::atomic::Ordering;

/// The mark of a queue that is not known to be full (FIFO-8).
pub(super) const NOT_FULL: usize = 0;

/// The mark of a queue that is full while `taken` has this value. It loses the top bit of the count; the mark is
/// rewritten long before the count could come round to the same value.
#[inline]
fn mark(taken: usize) -> usize {
    taken << 1 | 1
}

impl<T: Send> TwoLock<T> {
    /// Whether there is room. Reads `taken` again if there seems to be none.
    #[inline]
    pub(super) fn find_room(&self, inbox: &mut Inbox<T>) -> bool {
        inbox.has_room() || self.find_room_slow(inbox)
    }

    #[cold]
    fn find_room_slow(&self, inbox: &mut Inbox<T>) -> bool {
        self.refresh_taken(inbox);
        inbox.has_room()
    }

    /// Reads `taken` again, and updates the full mark accordingly.
    pub(super) fn refresh_taken(&self, inbox: &mut Inbox<T>) {
        // [B-room]
        inbox.set_taken(self.outbox.taken.load(Ordering::SeqCst));
        self.update_full_mark(inbox);
    }

    /// Publishes whether the queue is full (FIFO-8).
    #[cold]
    pub(super) fn update_full_mark(&self, inbox: &mut Inbox<T>) {
        let now = if inbox.has_room() {
            NOT_FULL
        } else {
            mark(inbox.taken_seen())
        };
        if now != inbox.full_mark {
            inbox.full_mark = now;
            // [B-full]
            self.full_mark.store(now, Ordering::Release);
        }
    }

    /// Whether it is certainly full (FIFO-8).
    #[inline]
    pub(in crate::queue) fn is_full(&self) -> bool {
        // [B-full]
        let full_mark = self.full_mark.load(Ordering::Acquire);
        full_mark != NOT_FULL && full_mark == mark(self.outbox.taken.load(Ordering::Relaxed))
    }

    /// Counts the elements taken, unlocks, and wakes producers for the room (FIFO-3).
    #[inline]
    pub(super) fn complete_take(&self, outbox: MutexGuard<'_, Ring<T>>, count: usize) {
        if !self.outbox.has_bound.load(Ordering::Relaxed) {
            let taken = self.outbox.taken.load(Ordering::Relaxed);
            let now = taken.wrapping_add(count);
            self.outbox.taken.store(now, Ordering::Relaxed);
            return;
        }
        // [B-room]
        self.outbox.taken.fetch_add(count, Ordering::SeqCst);
        drop(outbox);
        // [B-room]
        if self.producers_wait.load(Ordering::SeqCst) {
            self.wake_producers(lock(&self.inbox.inbox), count);
        }
    }

    /// Unlocks, and wakes a producer for each free place, at most `most`.
    #[cold]
    pub(super) fn wake_producers(&self, mut inbox: MutexGuard<'_, Inbox<T>>, most: usize) {
        self.refresh_taken(&mut inbox);
        let mut wakes = WakeList::default();
        for _ in 0..inbox.free().min(most) {
            let Some(producer) = inbox.producers.pop() else {
                break;
            };
            wakes.add(producer.waker);
        }
        self.update_producers_wait(&inbox);
        drop(inbox);
        wakes.wake();
    }

    /// Updates the flag of FIFO-3.
    pub(super) fn update_producers_wait(&self, inbox: &Inbox<T>) {
        let wait = !inbox.producers.is_empty();
        if self.producers_wait.load(Ordering::Relaxed) != wait {
            // [B-room]
            self.producers_wait.store(wait, Ordering::SeqCst);
        }
    }
}
