//! Waiting until nothing is queued and nothing runs.
//!
//! - **QUIET-1** A pool is quiescent when nothing is queued and no worker but the caller, if it is one, runs anything. The
//!   worker that makes it so wakes the waiters after it counts as sleeping; a waiter is registered before each look.
//!
//! - **QUIET-2** A worker takes something from a queue only while it does not count as sleeping, and counts as sleeping
//!   again only when that is over. A look reads that all sleep, that all queues are empty, that all sleep, and that none
//!   has fallen asleep meanwhile. What was queued or in a worker's hand at its beginning would have to be in a queue at the
//!   second step, or in the hand of a worker at the first or the third, or its worker has fallen asleep in between.
//!
//! # Orderings
//!
//! - `[S-quiet]` Store-load: a waiter registers, then reads the word of the idle workers; a worker changes the word, then
//!   wakes whoever is registered, with a fence between (`[S-word]` of [`super::sleep`]). One of them sees the other.

use super::context::Context;
use super::engine::ForkJoinEngine;
use crate::executor::{TerminationError, WaiterRegistration, ended};
use crate::interrupt::{self, Look};
use crate::time::Deadline;
use millpond_raw::park::Site;
use millpond_raw::sync::atomic::{Ordering, fence};
use std::sync::Arc;

impl ForkJoinEngine {
    /// Whether nothing is queued, and not more than `own` workers run something (QUIET-2).
    pub(super) fn is_quiescent(&self, own: usize) -> bool {
        if self.is_forked() {
            return true;
        }
        let falls = self.sleep.falls();
        let all_sleep = || self.awake() <= own;
        // [S-quiet] unmodelled: shuttle checks the protocol, and it has no weak memory; a loom model is to come
        let pass = || fence(Ordering::SeqCst);
        pass();
        let before = all_sleep();
        pass();
        let is_empty = !self.has_visible_work();
        pass();
        let after = all_sleep();
        pass();
        before && is_empty && after && falls == self.sleep.falls()
    }

    /// Waits until it is quiescent. False if the deadline came first. A worker of the pool runs what is queued meanwhile.
    pub(super) fn await_quiescence(
        self: &Arc<Self>,
        deadline: Deadline,
    ) -> Result<bool, TerminationError> {
        let is_worker = self.is_worker_here();
        if is_worker {
            self.help_quiesce();
        }
        let mut registration = WaiterRegistration::new(&self.quiescence);
        let waited = interrupt::wait(
            Site::new("forkjoin.quiescence").on(&**self),
            &self.clock,
            deadline,
            |waker| {
                // Each time: a wake-up takes the registration away.
                registration.register(waker);
                // [S-quiet] unmodelled: shuttle checks the protocol, and it has no weak memory; a loom model is to come
                fence(Ordering::SeqCst);
                Look::done_if(self.is_quiescent(usize::from(is_worker)))
            },
        );
        ended(waited)
    }

    /// Runs everything that is queued, if the caller is a worker of the pool.
    pub(super) fn help_quiesce(self: &Arc<Self>) {
        Context::with_current(|here| {
            let Some(here) = here.filter(|here| Arc::ptr_eq(&here.engine, self)) else {
                return;
            };
            while let Some(item) = here.pop_any() {
                here.run_inside(|| here.run_any(item));
            }
        });
    }
}
