//! Shutdown and stop of a pool, and what becomes of tasks that are taken out of its queues.

use super::engine::ForkJoinEngine;
use super::worker::Worker;
use crate::engine::{
    Ctl, Hold, RemovedTasks, RemovesTasks, Terminates, Termination, WorkerEngine, termination,
};
use crate::manage::RunState;
use crate::task::Task;
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
        self.stop_workers()
    }
}

impl RemovesTasks for ForkJoinEngine {
    fn removed(&self) -> &RemovedTasks {
        &self.removed
    }

    fn take_where(&self, _: &Hold<'_, Self>, wanted: &mut dyn FnMut(&Task) -> bool) -> Vec<Task> {
        self.remove_tasks(usize::MAX, wanted)
    }

    fn take_unstarted(&self, hold: &Hold<'_, Self>, _: &[Arc<Worker>]) -> Vec<Task> {
        self.pass_queues();
        self.take_where(hold, &mut |_| true)
    }

    /// Also called when jobs were taken out.
    fn tasks_removed(&self) {
        self.quiescence.wake_all();
        if self.is_shut_down() {
            self.wake_all();
            termination::try_terminate(self);
        }
    }

    fn wake_for_stop(&self) {
        // A caller of `install` whose job has not begun runs it itself.
        drop(self.outside.take_jobs());
        self.wake_all();
    }
}
