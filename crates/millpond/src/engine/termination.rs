//! How an engine ends, and how others wait for that. (What all executors share of it: [`crate::executor`], in
//! `termination`.)
//!
//! ```text
//!   RUNNING --- shutdown ---> SHUT DOWN ---+ queue empty, workers gone
//!      |                          |        v
//!      +------- stop -------> STOPPED --> TIDYING --- the hook has returned ---> TERMINATED
//! ```
//!
//! - **END-1** A thread that takes something away that may have been the last (a worker, a queued task, an extra
//!   thread) calls [`try_terminate`] afterwards.
//! - **END-2** One thread moves the control word to TIDYING, under the registry's lock and with no worker registered
//!   (CTL-3). It alone calls the hook and announces the end.
//! - **END-3** A wait without a deadline inside a task of the engine, or inside its thread factory, is an error: the end would
//!   wait for the task, or for the thread that is to be started.
//! - **END-4** A thread that has an accepted task in hand which is in no queue any more, and which no worker runs, keeps
//!   the engine from its end by a [`Hold`] until the task is over and in the books. It takes the hold under the
//!   registry's lock, while the engine cannot have ended: the task is still queued, or the dead worker that it was given
//!   to is still registered. So whoever has waited for the end finds closures dropped, books closed and events told. What
//!   takes accepted tasks out of an engine has the hold as an argument.
//!
//! An engine without a control word implements [`Terminates`] alone, and decides by itself when it is over.

use super::ctl::Ctl;
use super::events::EventSource;
use super::spawn::WorkerEngine;
use super::workers::Worker;
use crate::executor::{EndWaiters, Inside, TerminationError, Waitable, ended};
use crate::interrupt;
use crate::manage::RunState;
use crate::time::Deadline;
use millpond_raw::park::Site;
use std::sync::Arc;

/// An engine that others can shut down, and wait for.
pub(crate) trait Terminates: EventSource {
    /// Names the wait for the end, in reports of blocked threads.
    const AWAIT_SITE: Site;

    /// Takes no more tasks. What was accepted still runs.
    fn shut_down(self: &Arc<Self>);

    /// Whether this is a child of the process that the engine was built in. Nothing of the engine runs here.
    fn is_forked(&self) -> bool;

    /// The run state that users see, if it is this one in the process that the engine was built in. In a child it has
    /// terminated, whatever is done to it there: all engines say so.
    fn shown_state(&self, state: impl FnOnce() -> RunState) -> RunState {
        if self.is_forked() {
            RunState::Terminated
        } else {
            state()
        }
    }

    /// Whether nothing of it runs any more. Changes before [`Termination::announce`] is called.
    fn is_over(&self) -> bool;

    /// Whether the end cannot come before the caller returns: it is a task of the engine, or its hook.
    fn is_caller_inside(&self) -> bool {
        !self.is_forked() && Inside::is(self)
    }

    fn termination(&self) -> &Termination;

    /// Waits until it is over. False if the deadline came first.
    fn await_termination(&self, deadline: Deadline) -> Result<bool, TerminationError> {
        interrupt::check()?;
        if self.is_forked() {
            return Ok(true);
        }
        if deadline == Deadline::NEVER && self.is_caller_inside() {
            return Err(TerminationError::OwnTask);
        }
        let over = |(): &mut ()| self.is_over().then_some(());
        let waiters = &self.termination().waiters;
        let is_over = ended(waiters.wait(Self::AWAIT_SITE, self.clock(), deadline, over))?;
        if is_over {
            // EVENTS-5
            self.await_delivery(deadline);
        }
        Ok(is_over)
    }
}

/// The threads that wait for the end of an engine.
pub(crate) struct Termination {
    waiters: Waitable<()>,
}

impl Termination {
    pub(crate) fn new() -> Self {
        Termination {
            waiters: Waitable::new(()),
        }
    }

    /// For a future that waits for the end.
    pub(crate) fn end_waiters(&self) -> EndWaiters<'_> {
        EndWaiters::new(self.waiters.registration())
    }

    /// Wakes all waiters. The engine is over.
    pub(crate) fn announce(&self) {
        self.waiters.change(|()| ());
    }
}

/// Terminates an engine whose last task has ended and whose last worker is gone (END-1).
pub(crate) fn try_terminate<E: WorkerEngine>(engine: &E) {
    loop {
        let ctl = engine.ctl().read();
        match ctl.state() {
            RunState::Running | RunState::Tidying | RunState::Terminated => return,
            RunState::ShutDown if engine.has_queued_tasks() => return,
            RunState::ShutDown | RunState::Stopped => {}
        }
        if ctl.workers() > 0 {
            return;
        }
        let tidied = engine.with_workers(|workers| {
            workers.is_empty().then(|| engine.ctl().try_tidy(ctl)) // END-2
        });
        match tidied {
            // A thread that is still registered calls this when it leaves.
            None => return,
            Some(false) => {}
            Some(true) => break,
        }
    }
    let inside = Inside::of(engine);
    engine.before_terminated();
    drop(inside);
    engine.ctl().advance_to(RunState::Terminated);
    engine.termination().announce();
}

/// The workers and extra threads of an engine.
type AllThreads<E> = Vec<Arc<Worker<<E as WorkerEngine>::Part>>>;

/// Keeps an engine from its end, on this thread, until it is dropped (END-4).
pub(crate) struct Hold<'a, E: WorkerEngine> {
    engine: &'a E,
    /// END-3: destructors of tasks run here.
    inside: Option<Inside>,
}

impl<'a, E: WorkerEngine> Hold<'a, E> {
    /// For a caller that has just called [`Workers::hold`](super::Workers::hold).
    pub(super) fn of(engine: &'a E) -> Self {
        Hold {
            engine,
            inside: Some(Inside::of(engine)),
        }
    }

    /// None if the engine was stopped: then the stop takes what is queued.
    pub(super) fn unless_stopped(engine: &'a E) -> Option<Self> {
        Hold::if_still(engine, Ctl::runs_queued_tasks)
    }

    /// For a caller that is about to take accepted tasks out of a queue. None if the engine is over: then nothing is queued.
    pub(crate) fn unless_over(engine: &'a E) -> Option<Self> {
        Hold::if_still(engine, |ctl| ctl.state() < RunState::Tidying)
    }

    /// Moves the engine to STOPPED, for a caller that will take what has not started, and lists all its threads. There is
    /// no hold if the engine is over: then nothing is queued.
    pub(super) fn stop(engine: &'a E) -> (AllThreads<E>, Option<Self>) {
        let (all, is_held) = engine.with_workers(|workers| {
            let is_over = engine.ctl().read().state() >= RunState::Tidying;
            if !is_over {
                workers.hold();
            }
            // WORKERS-1
            engine.ctl().advance_to(RunState::Stopped);
            (workers.list_all(), !is_over)
        });
        (all, is_held.then(|| Hold::of(engine)))
    }

    /// The control word moves to TIDYING under the registry's lock (END-2), so it is read under that.
    fn if_still(engine: &'a E, may_hold: impl FnOnce(Ctl) -> bool) -> Option<Self> {
        let is_held = engine.with_workers(|workers| {
            let may = may_hold(engine.ctl().read());
            if may {
                workers.hold();
            }
            may
        });
        is_held.then(|| Hold::of(engine))
    }
}

impl<E: WorkerEngine> Drop for Hold<'_, E> {
    fn drop(&mut self) {
        drop(self.inside.take());
        self.engine.with_workers(|workers| workers.release());
        // END-1
        try_terminate(self.engine);
    }
}

/// What the handles of an engine share and its workers do not: when it drops, no handle is left, and the engine is
/// shut down.
pub(crate) struct LastHandle<E: Terminates>(Arc<E>);

impl<E: Terminates> LastHandle<E> {
    pub(crate) fn new(engine: &Arc<E>) -> Self {
        LastHandle(Arc::clone(engine))
    }
}

impl<E: Terminates> Drop for LastHandle<E> {
    fn drop(&mut self) {
        self.0.shut_down();
    }
}
