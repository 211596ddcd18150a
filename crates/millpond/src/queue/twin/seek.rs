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
        if is_counted {
            self.stop_seeking();
        }
        got
    }

    /// Counts as a seeker while `looks` looks out for an element (B7), which must not panic.
    pub(in crate::queue) fn as_seeker(&self, looks: impl FnOnce() -> Option<T>) -> Option<T> {
        self.inbox.seekers.fetch_add(1, Ordering::Relaxed);
        let got = looks();
        self.stop_seeking();
        got
    }

    /// Also who has found nothing may leave something behind, and need not come back: a worker may be one too
    /// many meanwhile.
    fn stop_seeking(&self) {
        let mut inbox = lock(&self.inbox.inbox);
        let others = self.inbox.seekers.fetch_sub(1, Ordering::Relaxed) - 1;
        self.look(&mut inbox);
        let is_left = inbox.has_some();
        if is_left && others > 0 {
            self.shows_more();
        } else if is_left && inbox.wants_taker() {
            self.call_taker(inbox);
        }
    }

    /// Lets other seekers see that there is more, if only in the outbox, of which the sign does not tell. Called
    /// with the inbox's lock; who finds the inbox empty takes the sign back.
    fn shows_more(&self) {
        self.inbox.is_ready.store(true, Ordering::Relaxed);
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
            let is_left = outbox.len() > 1;
            if is_left && others > 0 {
                self.shows_more();
            } else if is_left && inbox.wants_taker() {
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
