//! Shutdown and stop of a pool, and what becomes of tasks that are taken out of its queues.

use super::engine::ForkJoinEngine;
use crate::engine::events::EventSource;
use crate::engine::{Ctl, Terminates, Termination, WorkerEngine, termination};
use crate::manage::RunState;
use crate::task::{CancelReason, Task};
use crate::time::{Clock, Deadline};
use millpond_raw::park::Site;
use std::sync::Arc;

impl Terminates for ForkJoinEngine {
    const AWAIT_SITE: Site = Site::new("forkjoin.await_termination");

    fn shut_down(self: &Arc<Self>) {
        if self.is_common {
            return;
        }
        let is_first = self.ctl().advance_to(RunState::ShutDown);
        if is_first && !ForkJoinEngine::is_forked(self) {
            self.pass_queues();
            self.wake_all();
            termination::try_terminate(&**self);
        }
    }

    fn is_forked(&self) -> bool {
        ForkJoinEngine::is_forked(self)
    }

    fn is_over(&self) -> bool {
        self.ctl().read().state() == RunState::Terminated
    }

    fn clock(&self) -> &Clock {
        &self.clock
    }

    fn await_events(&self, deadline: Deadline) {
        self.await_delivery(deadline);
    }

    fn termination(&self) -> &Termination {
        &self.termination
    }
}

impl ForkJoinEngine {
    /// The state that users see, if the control word is this one. The common pool never ends, not even in a child, where
    /// it runs nothing.
    pub(super) fn shown(&self, ctl: Ctl) -> RunState {
        if self.is_common {
            ctl.state()
        } else {
            self.shown_state(|| ctl.state())
        }
    }

    pub(super) fn is_shut_down(&self) -> bool {
        !self.ctl().read().is_running()
    }

    /// FORKJOIN-3
    fn pass_queues(&self) {
        self.outside.pass();
        self.slots.iter().for_each(|slot| slot.deque.pass());
    }

    /// Accepts no more tasks, interrupts running ones, and hands back those that have not started.
    pub(super) fn stop(&self) -> Vec<Task> {
        if self.is_common {
            return Vec::new();
        }
        if self.is_forked() {
            self.ctl().advance_to(RunState::Stopped);
            return Vec::new();
        }
        let all = self.with_workers(|workers| {
            // WORKERS-1
            self.ctl().advance_to(RunState::Stopped);
            workers.list_all()
        });
        self.pass_queues();
        // Before anybody is interrupted: a worker that stops what it runs must not begin the next one.
        let mut unstarted = self.remove_tasks(usize::MAX, &mut |_| true);
        self.removed.hand_back(&mut unstarted);
        for worker in all {
            worker.stop.set();
        }
        // A caller of `install` whose job has not begun runs it itself.
        drop(self.outside.take_jobs());
        self.wake_all();
        termination::try_terminate(self);
        unstarted
    }

    /// Takes tasks out of the queues for their submitter, while the pool goes on.
    pub(super) fn take_back_where(&self, wanted: &mut dyn FnMut(&Task) -> bool) -> Vec<Task> {
        if self.is_forked() {
            return Vec::new();
        }
        let mut taken = self.remove_tasks(usize::MAX, wanted);
        if !taken.is_empty() {
            self.removed.hand_back(&mut taken);
            self.tasks_removed();
        }
        taken
    }

    /// Cancels tasks that have been taken out of the queues, and counts them. Returns how many were not tombstones.
    pub(super) fn give_up(&self, tasks: Vec<Task>, reason: CancelReason) -> usize {
        if tasks.is_empty() {
            return 0;
        }
        let report = |dropped| self.report_dropped(dropped);
        let given_up = self.removed.cancel(tasks, reason, report);
        self.tasks_removed();
        given_up
    }

    /// Tasks or jobs were taken out of a queue, not by a worker. They may have been the last that a shutdown waits for
    /// (END-1).
    pub(super) fn tasks_removed(&self) {
        self.quiescence.wake_all();
        if self.is_shut_down() {
            self.wake_all();
            termination::try_terminate(self);
        }
    }
}
