//! The bound: waking producers for room (FIFO-3), and the mark of a full queue (FIFO-8).
//!
//! # Room by the handful
//!
//! A read of `taken` takes the consumers' cache line. Producers that are faster than the consumers keep the queue full
//! and live on the places that become free: with a bound of 1024 and two to eight threads on two CPUs, a read brought 10
//! to 12 places on average, and there was one for each dozen elements. It is the [thin stream](super::swap) of the other
//! side, with the same remedy. A producer that is out of room pauses before it reads `taken`, if the last read has
//! brought little:
//!
//! - **ROOM-1** One place is no stream: a producer that waits for a slow consumer does not pause for the next place. Nor
//!   does one that has found no place at all, so an offer that fails is not followed by a pause.
//! - **ROOM-2** Many places are worth a read. So is a good part of the bound: consumers of a small queue would run out
//!   of elements during a pause.
//! - **ROOM-3** A producer pauses without a lock, and once for each offer. So `offer` still does not wait: the pause is
//!   shorter than waiting for a held lock.
//!
//! Orderings are in the header of `mod.rs`.

use super::TwoLock;
use super::inbox::Inbox;
use super::swap::pause;
use crate::queue::ring::Ring;
use crate::queue::wake_list::{WakeList, lock};
use millpond_raw::sync::MutexGuard;
use millpond_raw::sync::atomic::Ordering;
use std::ops::Range;

/// How many free places a read of `taken` brings if they come by the handful (ROOM-1, ROOM-2). In models they always do.
const THIN: Range<usize> = if cfg!(millpond_shuttle) { 1..9 } else { 2..64 };

/// The part of the bound that is worth a read (ROOM-2), as a divisor.
const WORTHWHILE: usize = if cfg!(millpond_shuttle) { 1 } else { 8 };

/// Whether a read of `taken` that found so many places `free` has brought little.
fn is_thin(free: usize, bound: Option<usize>) -> bool {
    THIN.contains(&free) && bound.is_some_and(|bound| free < bound / WORTHWHILE)
}

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
        inbox.is_room_thin = is_thin(inbox.free(), inbox.bound());
        inbox.has_room()
    }

    /// Unlocks, lets consumers proceed for a moment, and locks again (ROOM-3).
    #[cold]
    pub(super) fn pause_for_room<'a>(
        &'a self,
        inbox: MutexGuard<'a, Inbox<T>>,
    ) -> MutexGuard<'a, Inbox<T>> {
        drop(inbox);
        pause();
        lock(&self.inbox.inbox)
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

#[cfg(all(test, not(any(millpond_loom, millpond_shuttle))))]
mod tests {
    use super::*;

    #[test]
    fn a_handful_of_places_is_thin_and_one_or_many_are_not() {
        let thin = |bound| {
            let is_thin = |free: &usize| is_thin(*free, bound);
            (0..1024).filter(is_thin).collect::<Vec<_>>()
        };
        assert_eq!(thin(Some(1024)), (2..64).collect::<Vec<_>>());
        assert_eq!(thin(Some(100)), (2..12).collect::<Vec<_>>());
        assert_eq!(thin(Some(16)), []);
        assert_eq!(thin(Some(1)), []);
        assert_eq!(thin(None), []);
    }
}
