//! Looking out for an element, before one waits for it: what a worker of a pool does (B7).
//!
//! The way of a lone element is the way of a round trip, so it is short. Its taker has seen the sign,
//! swaps the boxes under both locks, and is no seeker any more when it lets go of them: one look at the
//! putters' line, which nobody needs meanwhile, for the caller waits for the answer.

use super::Twin;
use crate::interrupt;
use crate::queue::line::{Calls, lock};
use crate::queue::store::{End, Store};
use millpond_raw::sync::atomic::Ordering;

impl<T: Send> Twin<T> {
    /// Looks out for an element for a moment (B7). `takes` hears when it is about to try, and when it
    /// has tried in vain.
    pub(in crate::queue) fn seek(&self, end: End, takes: impl Fn(bool)) -> Option<T> {
        self.inbox.seekers.fetch_add(1, Ordering::Relaxed);
        let is_ready = || self.inbox.is_ready.load(Ordering::Relaxed);
        let mut is_counted = true;
        let got = interrupt::seek(is_ready, || {
            takes(true);
            let got = self.poll_seeking(end, &mut is_counted);
            if got.is_none() {
                takes(false);
            }
            got
        });
        if !is_counted {
            return got;
        }
        let mut inbox = lock(&self.inbox.inbox);
        let others = self.inbox.seekers.fetch_sub(1, Ordering::Relaxed) - 1;
        self.look(&mut inbox);
        let is_left = got.is_some() && inbox.put != inbox.taken_seen;
        if is_left && others == 0 && inbox.wants_taker() {
            self.call_taker(inbox);
        }
        got
    }

    /// Takes an element for a seeker. If it has to swap the boxes for that, it uncounts the seeker on the
    /// way (B7), while it has the lock in any case.
    fn poll_seeking(&self, end: End, is_counted: &mut bool) -> Option<T> {
        let mut outbox = lock(&self.outbox.ring);
        let mut next = None;
        if outbox.len() == 0 {
            let mut inbox = lock(&self.inbox.inbox);
            if !self.refill(&mut inbox, &mut outbox) {
                return None;
            }
            *is_counted = false;
            let others = self.inbox.seekers.fetch_sub(1, Ordering::Relaxed) - 1;
            if outbox.len() > 1 && others == 0 && inbox.wants_taker() {
                next = inbox.call();
            }
        }
        let element = outbox.pop(&self.clock, end)?;
        self.settle(outbox, 1);
        if next.is_some() {
            Calls::of(next.map(|taker| taker.waker)).wake();
        }
        Some(element)
    }
}
