//! A pool as others see it: an `Executor`, with a `Lifecycle`, that is `Managed`.

use super::config::TABLE;
use super::{RejectionPolicy, ThreadPool};
use crate::engine::dropped::DropSource;
use crate::engine::{RemovesTasks, Terminates};
use crate::executor::{
    CallerRun, DroppedTask, EndWaiters, EngineInternals, Executor, Internals, Lifecycle,
    RejectReason, Rejected, TerminationError, TimerSourceOffer, TryExecuteError,
};
use crate::manage::{Change, EngineSnapshot, Managed, Parameter, Patch, PatchError, RunState};
use crate::task::Task;
use crate::time::{Clock, Deadline, is_timer_thread};
use std::panic::Location;
use std::sync::Arc;
use std::time::Duration;

impl Executor for ThreadPool {
    #[inline]
    fn execute_task(&self, task: Task) -> Result<(), Rejected<Task>> {
        self.execute_task_until(task, Deadline::NEVER)
    }

    #[inline]
    fn execute_task_until(&self, task: Task, deadline: Deadline) -> Result<(), Rejected<Task>> {
        if self.engine.is_forked() {
            return Err(Rejected::new(task, RejectReason::Forked));
        }
        if self.engine.should_caller_run() {
            self.engine.run_in_caller(task);
            return Ok(());
        }
        match self.engine.admit(task) {
            Ok(()) => Ok(()),
            Err(rejected) => self.reject_until(rejected, deadline),
        }
    }

    fn try_execute_task(&self, task: Task) -> Result<(), TryExecuteError> {
        let engine = &self.engine;
        if engine.is_forked() {
            let rejected = Rejected::new(task, RejectReason::Forked);
            return Err(TryExecuteError::Rejected(rejected));
        }
        if is_timer_thread() {
            return engine
                .admit_from_timer(task)
                .map_err(TryExecuteError::WouldBlock);
        }
        match engine.admit(task) {
            Ok(()) => Ok(()),
            Err(rejected) => {
                let not_at_once = match engine.config().rejection() {
                    RejectionPolicy::Block(_) => engine.may_find_room(&rejected.reason),
                    // A handler of the user's may do anything.
                    RejectionPolicy::CallerRuns | RejectionPolicy::Custom(_) => true,
                    _ => false,
                };
                if not_at_once && !engine.is_shut_down() {
                    rejected.task.detach();
                    return Err(TryExecuteError::WouldBlock(rejected.task));
                }
                self.reject(rejected).map_err(TryExecuteError::Rejected)
            }
        }
    }

    fn on_worker_thread(&self) -> bool {
        self.engine.tombstones.tag().on_worker_thread()
    }

    fn as_managed(&self) -> Option<&dyn Managed> {
        Some(self)
    }

    fn internals(&self) -> Internals<'_> {
        Internals::of(Arc::as_ptr(&self.engine).addr(), self)
    }

    #[inline]
    fn try_caller_run(&self, location: &'static Location<'static>) -> Option<CallerRun<'_>> {
        // The rest is out of line, so that it is not in the code of every closure.
        if self.engine.config().caller_runs() {
            self.engine.try_caller_run(location)
        } else {
            None
        }
    }

    fn clock(&self) -> Clock {
        self.engine.clock.clone()
    }

    fn allows_inline(&self) -> bool {
        !self.engine.queue.holds_back()
    }
}

impl EngineInternals for ThreadPool {
    fn offer_timer_source(&self, offer: TimerSourceOffer) {
        self.engine.accept_timer_source(offer);
    }

    fn take_back(&self, wanted: &mut dyn FnMut(&Task) -> bool) -> Vec<Task> {
        self.engine.take_back_where(wanted)
    }

    fn report_dropped(&self, dropped: DroppedTask) {
        self.engine.report_dropped(dropped);
    }

    fn parameter_owner(&self, parameter: &str) -> Option<&str> {
        TABLE.has(parameter).then(|| self.name())
    }
}

impl Managed for ThreadPool {
    fn name(&self) -> &str {
        ThreadPool::name(self)
    }

    fn explain(&self) -> String {
        ThreadPool::explain(self).to_string()
    }

    fn engine_snapshot(&self) -> EngineSnapshot {
        self.as_engine_snapshot()
    }

    fn parameters(&self) -> Vec<Parameter> {
        ThreadPool::parameters(self)
    }

    fn check(&self, patch: &Patch) -> Result<Vec<Change>, PatchError> {
        self.engine.check(patch)
    }

    fn apply(&self, patch: &Patch) -> Result<Vec<Change>, PatchError> {
        ThreadPool::apply(self, patch)
    }
}

impl Lifecycle for ThreadPool {
    fn shutdown(&self) {
        self.engine.shut_down();
    }

    fn shutdown_now(&self) -> Vec<Task> {
        self.engine.stop()
    }

    fn is_shutdown(&self) -> bool {
        self.engine.shown() > RunState::Running
    }

    fn is_terminated(&self) -> bool {
        self.engine.shown() == RunState::Terminated
    }

    fn await_termination_until(&self, deadline: Deadline) -> Result<bool, TerminationError> {
        self.engine.await_termination(deadline)
    }

    fn await_termination_timeout(&self, timeout: Duration) -> Result<bool, TerminationError> {
        self.await_termination_until(self.engine.clock.deadline(timeout))
    }

    fn is_caller_inside(&self) -> bool {
        Terminates::is_caller_inside(&*self.engine)
    }

    fn end_waiters(&self) -> Option<EndWaiters<'_>> {
        Some(self.engine.termination().end_waiters())
    }
}
