//! A pool as others see it: an `Executor`, with a `Lifecycle`, that is `Managed`.

use super::ForkJoinPool;
use super::config::TABLE;
use crate::engine::dropped::DropSource;
use crate::engine::{RemovesTasks, Terminates, WorkerEngine};
use crate::executor::{
    DroppedTask, EndWaiters, EngineInternals, Executor, Internals, Lifecycle, RejectReason,
    Rejected, TerminationError, TryExecuteError,
};
use crate::manage::{Change, EngineSnapshot, Managed, Parameter, Patch, PatchError, RunState};
use crate::task::Task;
use crate::time::{Clock, Deadline};
use std::sync::Arc;
use std::time::Duration;

impl Executor for ForkJoinPool {
    #[inline]
    fn execute_task(&self, task: Task) -> Result<(), Rejected<Task>> {
        if self.engine.is_forked() {
            return Err(Rejected::new(task, RejectReason::Forked));
        }
        self.engine.submit(task)
    }

    fn try_execute_task(&self, task: Task) -> Result<(), TryExecuteError> {
        if self.engine.is_forked() {
            let rejected = Rejected::new(task, RejectReason::Forked);
            return Err(TryExecuteError::Rejected(rejected));
        }
        // The timer's thread starts no thread: a factory is the user's.
        if self.engine.may_start_worker() {
            return Err(TryExecuteError::WouldBlock(task));
        }
        self.engine.submit(task).map_err(TryExecuteError::Rejected)
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

    fn clock(&self) -> Clock {
        self.engine.clock.clone()
    }
}

impl EngineInternals for ForkJoinPool {
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

impl Managed for ForkJoinPool {
    fn name(&self) -> &str {
        ForkJoinPool::name(self)
    }

    fn explain(&self) -> String {
        ForkJoinPool::explain(self)
    }

    fn engine_snapshot(&self) -> EngineSnapshot {
        self.as_engine_snapshot()
    }

    fn parameters(&self) -> Vec<Parameter> {
        ForkJoinPool::parameters(self)
    }

    fn check(&self, patch: &Patch) -> Result<Vec<Change>, PatchError> {
        self.engine.check(patch)
    }

    /// The common pool can be changed like any other.
    fn apply(&self, patch: &Patch) -> Result<Vec<Change>, PatchError> {
        ForkJoinPool::apply(self, patch)
    }
}

impl Lifecycle for ForkJoinPool {
    fn shutdown(&self) {
        self.engine.shut_down();
    }

    fn shutdown_now(&self) -> Vec<Task> {
        self.engine.stop()
    }

    fn is_shutdown(&self) -> bool {
        self.engine.shown(self.engine.ctl().read()) > RunState::Running
    }

    fn is_terminated(&self) -> bool {
        self.engine.shown(self.engine.ctl().read()) == RunState::Terminated
    }

    /// The common pool never terminates. With a deadline this waits until the pool has nothing to do; it returns false.
    fn await_termination_until(&self, deadline: Deadline) -> Result<bool, TerminationError> {
        if self.engine.is_common {
            if deadline != Deadline::NEVER {
                self.engine.await_quiescence(deadline)?;
            }
            return Ok(false);
        }
        self.engine.await_termination(deadline)
    }

    fn await_termination_timeout(&self, timeout: Duration) -> Result<bool, TerminationError> {
        self.await_termination_until(self.engine.clock.deadline(timeout))
    }

    fn is_caller_inside(&self) -> bool {
        !self.engine.is_common && Terminates::is_caller_inside(&*self.engine)
    }

    fn end_waiters(&self) -> Option<EndWaiters<'_>> {
        Some(self.engine.termination().end_waiters())
    }
}
