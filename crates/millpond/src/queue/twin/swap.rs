//! Swapping the boxes: what a taker does that has emptied the outbox.
//!
//! A swap takes the putters' line away, in the middle of a push more often than not, and costs both sides
//! some hundred nanoseconds; what it brings makes up for that, or does not. A taker that is a little
//! faster than the putters always finds the outbox empty and the inbox not quite: it swaps again and again
//! for a handful of elements, and both sides do little else. On two cores a task of a pool without figures
//! took 150 ns like that, 7 tasks to a swap, where 35 ns were enough. And the faster the taker, the
//! worse: when a pop got cheaper, an element took 23 ns from thread to thread instead of 18.
//!
//! So a taker in such a *thin* stream steps back for a moment before it swaps, about 0.4 µs, and the
//! putters get some work done meanwhile. Which stream is thin is what the last swap of this kind says:
//!
//! - **T1** A few elements are no stream. Who takes one at a time, as in a round trip, does not wait for more.
//! - **T2** Many elements are worth a swap.
//! - **T3** A taker steps back without a lock, once for each swap, and never where the inbox is empty. So
//!   `poll` still does not wait: that moment is shorter than one for a lock that is taken.
//!
//! Who has looked out for an element, or has waited for one, swaps at once (`seek.rs`, `poll_take`), and
//! says nothing about the stream: to count its swaps, too, took their best case from bursts that are joined,
//! 51 ns a task, which was 62 then.

use super::Twin;
use super::inbox::Inbox;
use crate::queue::line::lock;
use crate::queue::ring::Ring;
use crate::queue::store::{End, Store};
use millpond_raw::sync::MutexGuard;
use millpond_raw::sync::atomic::Ordering;
use millpond_raw::sync::{hint, spins};
use std::ops::Range;

/// What a swap of a thin stream brings (T1, T2). In models every stream is thin.
const THIN: Range<usize> = if cfg!(millpond_shuttle) { 1..9 } else { 8..64 };

/// How long a taker steps back, in pauses of 20 to 40 ns.
const STEP_BACK: u32 = 16;

impl<T: Send> Twin<T> {
    /// Takes an element for a taker that has found the outbox empty and the sign up.
    #[inline(never)]
    pub(super) fn poll_inbox<'a>(
        &'a self,
        mut outbox: MutexGuard<'a, Ring<T>>,
        end: End,
    ) -> Option<T> {
        if THIN.contains(&self.outbox.swapped.load(Ordering::Relaxed)) {
            drop(outbox);
            // Models do not spin, see `spins`.
            let pauses = if spins() == 0 { 0 } else { STEP_BACK };
            (0..pauses).for_each(|_| hint::spin_loop());
            outbox = lock(&self.outbox.ring);
        }
        if outbox.len() == 0 {
            self.refill(&mut lock(&self.inbox.inbox), &mut outbox);
            self.outbox.swapped.store(outbox.len(), Ordering::Relaxed);
        }
        let element = outbox.pop(&self.clock, end)?;
        self.settle(outbox, 1);
        Some(element)
    }

    /// Moves all that is in the inbox to the outbox, which is empty. Returns whether there was any.
    pub(super) fn refill(&self, inbox: &mut Inbox<T>, outbox: &mut Ring<T>) -> bool {
        if inbox.ring.len() == 0 {
            // It may have been raised for what was in the outbox.
            self.inbox.is_ready.store(false, Ordering::Relaxed);
            return false;
        }
        std::mem::swap(&mut inbox.ring, outbox);
        self.inbox.is_ready.store(false, Ordering::Relaxed);
        true
    }
}
