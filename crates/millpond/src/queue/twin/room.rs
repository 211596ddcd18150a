//! How much room there is, and who hears of it: the bound (B3) and the sign of a full queue (B8).
//!
//! Orderings are in the header of `twin.rs`.

use super::Twin;
use super::inbox::Inbox;
use crate::queue::line::{Calls, lock};
use crate::queue::ring::Ring;
use millpond_raw::sync::MutexGuard;
use millpond_raw::sync::atomic::Ordering;

/// The sign is down (B8).
pub(super) const HAS_ROOM: usize = 0;

/// The sign of a queue that is full unless more than this has been taken. It shows a bit less than the
/// count: before that would be wrong, somebody has looked and the sign is written anew.
#[inline]
fn sign(taken: usize) -> usize {
    taken << 1 | 1
}

impl<T: Send> Twin<T> {
    /// Whether there is room, after a look at what has gone out if need be.
    #[inline]
    pub(super) fn has_room(&self, inbox: &mut Inbox<T>) -> bool {
        inbox.has_room() || self.has_room_now(inbox)
    }

    #[cold]
    fn has_room_now(&self, inbox: &mut Inbox<T>) -> bool {
        self.look(inbox);
        inbox.has_room()
    }

    /// Looks at what has gone out, and lets others see what comes of it.
    pub(super) fn look(&self, inbox: &mut Inbox<T>) {
        // [B-room]
        inbox.see(self.outbox.taken.load(Ordering::SeqCst));
        self.show(inbox);
    }

    /// Raises the sign, or takes it down (B8).
    #[cold]
    pub(super) fn show(&self, inbox: &mut Inbox<T>) {
        let now = match inbox.has_room() {
            true => HAS_ROOM,
            false => sign(inbox.taken_seen()),
        };
        if now != inbox.shown {
            inbox.shown = now;
            // [B-full]
            self.full_at.store(now, Ordering::Release);
        }
    }

    /// Whether it is full for sure (B8).
    #[inline]
    pub(in crate::queue) fn is_full(&self) -> bool {
        // [B-full]
        let shown = self.full_at.load(Ordering::Acquire);
        shown != HAS_ROOM && shown == sign(self.outbox.taken.load(Ordering::Relaxed))
    }

    /// Counts what has gone out, unlocks, and calls putters for the room (B3).
    #[inline]
    pub(super) fn settle(&self, outbox: MutexGuard<'_, Ring<T>>, count: usize) {
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
        if self.putters_wait.load(Ordering::SeqCst) {
            self.finish(lock(&self.inbox.inbox), count);
        }
    }

    /// Calls putters for at most `most` places that are free, and unlocks.
    #[cold]
    pub(super) fn finish(&self, mut inbox: MutexGuard<'_, Inbox<T>>, most: usize) {
        self.look(&mut inbox);
        let mut calls = Calls::default();
        for _ in 0..inbox.free().min(most) {
            let Some(putter) = inbox.putters.pop() else {
                break;
            };
            calls.add(putter.waker);
        }
        self.note(&inbox);
        drop(inbox);
        calls.wake();
    }

    /// Says whether putters wait (B3).
    pub(super) fn note(&self, inbox: &Inbox<T>) {
        let wait = !inbox.putters.is_empty();
        if self.putters_wait.load(Ordering::Relaxed) != wait {
            // [B-room]
            self.putters_wait.store(wait, Ordering::SeqCst);
        }
    }
}
