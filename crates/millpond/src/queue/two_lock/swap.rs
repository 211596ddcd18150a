//! Swapping the boxes, by a consumer that has emptied the outbox.
//!
//! A swap takes the producers' cache line, usually in the middle of a push, and costs both sides some hundred
//! nanoseconds. Whether that pays depends on how many elements it brings. A consumer that is slightly faster
//! than the producers always finds the outbox empty and a few elements in the inbox: it swaps again and again
//! for a handful, and both sides do little else. On two cores a task of a pool without metrics took 150 ns in
//! this state, 7 tasks to a swap, where 35 ns were enough. A faster consumer made it worse: when a pop became
//! cheaper, an element took 23 ns from thread to thread instead of 18.
//!
//! So a consumer of such a *thin* stream pauses before it swaps, for about 0.4 µs, while the producers proceed.
//! The last swap of this kind tells whether the stream is thin:
//!
//! - **SWAP-1** A few elements are no stream. A consumer of one element at a time, as in a round trip, does not
//!   pause.
//! - **SWAP-2** Many elements are worth a swap.
//! - **SWAP-3** A consumer pauses without a lock, once for each swap, and never while the inbox is empty. So
//!   `poll` still does not wait: the pause is shorter than waiting for a held lock.
//!
//! A consumer that has searched or waited for an element swaps at once (`search.rs`, `poll_take`), and its swap
//! is not recorded. With such swaps recorded, bursts that are joined lost their best case: 62 ns a task instead
//! of 51.

use super::TwoLock;
use super::inbox::Inbox;
use crate::queue::ring::Ring;
use crate::queue::store::{End, Store};
use crate::queue::wake_list::lock;
use millpond_raw::sync::MutexGuard;
use millpond_raw::sync::atomic::Ordering;
use millpond_raw::sync::{hint, spins};
use std::ops::Range;

/// How many elements a swap of a thin stream brings (SWAP-1, SWAP-2). In models every stream is thin.
const THIN: Range<usize> = if cfg!(millpond_shuttle) { 1..9 } else { 8..64 };

/// How long a thread of a thin stream pauses (SWAP-3, ROOM-3), in spins of 20 to 40 ns.
const PAUSES: u32 = 16;

/// Lets the other side proceed for a moment. The caller holds no lock.
pub(super) fn pause() {
    // Models do not spin, see `spins`.
    let pauses = if spins() == 0 { 0 } else { PAUSES };
    (0..pauses).for_each(|_| hint::spin_loop());
}

impl<T: Send> TwoLock<T> {
    /// Takes an element for a consumer that has found the outbox empty and `is_ready` set.
    #[inline(never)]
    pub(super) fn poll_inbox<'a>(
        &'a self,
        mut outbox: MutexGuard<'a, Ring<T>>,
        end: End,
    ) -> Option<T> {
        if THIN.contains(&self.outbox.last_swap.load(Ordering::Relaxed)) {
            drop(outbox);
            pause();
            outbox = lock(&self.outbox.ring);
        }
        if outbox.len() == 0 {
            self.refill(&mut lock(&self.inbox.inbox), &mut outbox);
            self.outbox.last_swap.store(outbox.len(), Ordering::Relaxed);
        }
        let element = outbox.pop(&self.clock, end)?;
        self.complete_take(outbox, 1);
        Some(element)
    }

    /// Moves the inbox's elements to the outbox, which is empty. Returns whether there were any.
    pub(super) fn refill(&self, inbox: &mut Inbox<T>, outbox: &mut Ring<T>) -> bool {
        if inbox.ring.len() == 0 {
            // It may have been set for elements in the outbox.
            self.inbox.is_ready.store(false, Ordering::Relaxed);
            return false;
        }
        inbox.ring.review_kept();
        std::mem::swap(&mut inbox.ring, outbox);
        self.inbox.is_ready.store(false, Ordering::Relaxed);
        true
    }
}
