//! Waiting until nothing is queued and nothing runs.
//!
//! - **QUIET-1** A pool is quiescent when nothing is queued and no worker runs anything. The worker that makes it so wakes
//!   the waiters after it counts as sleeping; a waiter is registered before each look.
//! - **QUIET-2** A worker takes something from a queue only while it does not count as sleeping, and counts as sleeping
//!   again only when that is over. A look reads that all sleep, that all queues are empty, that all sleep, and that none
//!   has fallen asleep meanwhile. What was queued or in a worker's hand at its beginning would have to be in a queue at the
//!   second step, or in the hand of a worker at the first or the third, or its worker has fallen asleep in between.
//! - **QUIET-3** A worker that waits for quiescence runs whatever is queued. While there is nothing it is on the list of
//!   sleepers, so it is woken for work like any other, and two that wait do not wait for each other. For them, workers
//!   that are blocked or wait in a join do not count either: they may wait for the caller. From outside the pool is not
//!   quiescent while a worker waits for that, because it is inside of a task.
//! - **QUIET-4** Workers that wait for quiescence are counted, come and go under a lock, and all looks are taken under it. The
//!   one that finds the pool quiescent lets all through that are counted then, or the next one would wait for it.
//! - **QUIET-5** A worker with little stack left (HELP-4), or inside of [`blocking`](super::blocking()), does not help: tasks
//!   that help each other would overflow the stack. Then `help_quiesce` returns, and `await_quiescence` just waits.
//!
//! # Orderings
//!
//! - `[S-quiet]` A worker that falls asleep releases what it has run; a thread that sees it asleep and then has a fence
//!   acquires that: a quiescent pool shows what its tasks have done. And a worker that has ceased to sleep releases
//!   that with what it takes from a queue; a thread that sees the queue empty after that and then has a fence sees the
//!   worker awake.
//!
//! A waiter registers, then reads the word of the idle workers; a worker changes the word, then wakes the registered
//! waiters. Both take the lock of the [`WaitQueue`](millpond_raw::wait_queue::WaitQueue) in between, so one of them
//! sees the other.

use super::blocking::Parks;
use super::context::Context;
use super::engine::ForkJoinEngine;
use super::slot::PUBLISH_LATER;
use super::wait::has_stack;
use crate::executor::{TerminationError, WaiterRegistration, ended};
use crate::interrupt::{self, Look, WaitError};
use crate::time::Deadline;
use millpond_raw::park::Site;
use millpond_raw::sync::atomic::{Ordering, fence};
use std::sync::Arc;

const SITE: Site = Site::new("forkjoin.quiescence");

/// Workers that wait for quiescence (QUIET-4).
#[derive(Default)]
pub(super) struct QuietWorkers {
    /// So many are on the list of sleepers.
    count: usize,
    /// How often they were let through.
    rounds: u64,
}

impl ForkJoinEngine {
    /// Whether nothing is queued, and not more than `own` workers run something, which is the caller.
    pub(super) fn is_quiescent(&self, own: usize) -> bool {
        if self.is_forked() {
            return true;
        }
        let quiet = self.quiet.lock();
        (own > 0 || quiet.count == 0) && self.is_quiet(|| self.awake() <= own)
    }

    /// QUIET-2. To be called under the lock.
    fn is_quiet(&self, all_sleep: impl Fn() -> bool) -> bool {
        let falls = self.sleep.falls();
        // [S-quiet]
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

    /// Whether a worker that waits since this round may go on: the pool is quiescent, or was (QUIET-4).
    fn is_let_through(&self, round: u64) -> bool {
        let mut quiet = self.quiet.lock();
        if quiet.rounds != round {
            return true;
        }
        if !self.is_quiet(|| self.running() == 0) {
            return false;
        }
        quiet.rounds += 1;
        drop(quiet);
        self.quiescence.wake_all();
        true
    }

    /// Waits until it is quiescent. False if the deadline came first. A worker of the pool runs what is queued meanwhile.
    pub(super) fn await_quiescence(
        self: &Arc<Self>,
        deadline: Deadline,
    ) -> Result<bool, TerminationError> {
        Context::with_current(|here| {
            let here = here.filter(|here| Arc::ptr_eq(&here.engine, self));
            let waited = match here {
                Some(here) if here.may_help_all() => {
                    here.help_until_quiescent(|| here.sleep_until_quiescent(deadline))
                }
                here => self.await_idle(deadline, usize::from(here.is_some())),
            };
            ended(waited)
        })
    }

    fn await_idle(&self, deadline: Deadline, own: usize) -> Result<(), WaitError> {
        let mut registration = WaiterRegistration::new(&self.quiescence);
        interrupt::wait(SITE.on(self), &self.clock, deadline, |waker| {
            // Each time: a wake-up takes the registration away.
            registration.register(waker);
            Look::done_if(self.is_quiescent(own))
        })
    }

    /// Runs everything that is queued, and waits until no other worker runs anything, if the caller is a worker of the
    /// pool.
    pub(super) fn help_quiesce(self: &Arc<Self>) {
        Context::with_current(|here| {
            let here = here.filter(|here| Arc::ptr_eq(&here.engine, self));
            let Some(here) = here.filter(|here| here.may_help_all()) else {
                return;
            };
            let sleep = || here.sleep_until_quiescent(Deadline::NEVER);
            // An error cannot be: it has no deadline, and an interrupt waits.
            let _ = here.help_until_quiescent(|| interrupt::uninterruptible(sleep));
        });
    }
}

impl Context {
    /// QUIET-5. In a child that `fork()` has made nobody else is there, and a lock may be held for ever.
    fn may_help_all(&self) -> bool {
        has_stack() && !self.waits.is_counted() && !self.engine.is_forked()
    }

    /// Runs whatever is queued, and sleeps while there is nothing, until `sleep` says that it is over.
    fn help_until_quiescent(
        &self,
        sleep: impl Fn() -> Result<bool, WaitError>,
    ) -> Result<(), WaitError> {
        loop {
            // SPARE-4: the worker may sleep.
            if self.publish_all() {
                self.signal_job(true);
            }
            while let Some(item) = self.pop_any() {
                self.run_inside(|| self.run_any(item));
            }
            if sleep()? {
                return Ok(());
            }
        }
    }

    /// Sleeps until the pool is quiescent, or there is something to run (QUIET-3). Returns whether it is quiescent.
    fn sleep_until_quiescent(&self, deadline: Deadline) -> Result<bool, WaitError> {
        let engine = &self.engine;
        engine.sleep.begin_search();
        let round = {
            let mut quiet = engine.quiet.lock();
            quiet.count += 1;
            engine.sleep.begin_sleep(self.index);
            quiet.rounds
        };
        engine.ask_others(self.index, PUBLISH_LATER);
        engine.quiescence.wake_all();
        let mut registration = WaiterRegistration::new(&engine.quiescence);
        let mut is_over = false;
        let look = |waker: &_| {
            registration.register(waker);
            is_over = engine.is_let_through(round);
            // SLEEP-4
            Look::done_if(is_over || engine.finds_work() || !engine.sleep.is_asleep(self.index))
        };
        let wait = || interrupt::wait(SITE.on(&**engine), &engine.clock, deadline, look);
        let waited = self.with_parks(Parks::Idle, wait);
        drop(registration);
        {
            let mut quiet = engine.quiet.lock();
            engine.sleep.end_sleep(self.index);
            quiet.count -= 1;
        }
        self.end_search();
        waited.map(|()| is_over)
    }
}
