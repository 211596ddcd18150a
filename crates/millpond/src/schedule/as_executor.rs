//! The traits of a scheduled pool: an executor with a life cycle, managed while it runs.

use super::ScheduledPool;
use super::liveness::Guard;
use crate::engine::Terminates;
use crate::executor::{
    DroppedTask, EndWaiters, EngineInternals, Executor, Internals, Lifecycle, RejectReason,
    Rejected, TerminationError, TryExecuteError,
};
use crate::manage::{Change, EngineSnapshot, Managed, Parameter, Patch, PatchError, RunState};
use crate::task::Task;
use crate::time::{Clock, Deadline};
use millpond_raw::sync::atomic::Ordering;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// A task that is to run at once goes straight to the executor, as long as the pool is not shut down. It is
/// [counted](super::ScheduleSnapshot::executed) and no more: what becomes of it is in the executor's metrics. No
/// [decorator](super::ScheduledBuilder::decorator) is around it.
impl<E: Executor + 'static> Executor for ScheduledPool<E> {
    fn execute_task(&self, task: Task) -> Result<(), Rejected<Task>> {
        let executed = match self.enter() {
            Ok(_guard) => self.executor.execute_task(task),
            Err(reason) => Err(Rejected::new(task, reason)),
        };
        self.count_executed(&executed, |_| true);
        executed
    }

    fn execute_task_until(&self, task: Task, deadline: Deadline) -> Result<(), Rejected<Task>> {
        let executed = match self.enter() {
            Ok(_guard) => self
                .executor
                .execute_task_until(task, self.executor_deadline(deadline)),
            Err(reason) => Err(Rejected::new(task, reason)),
        };
        self.count_executed(&executed, |_| true);
        executed
    }

    fn try_execute_task(&self, task: Task) -> Result<(), TryExecuteError> {
        let executed = match self.enter() {
            Ok(_guard) => self.executor.try_execute_task(task),
            Err(reason) => Err(TryExecuteError::Rejected(Rejected::new(task, reason))),
        };
        // A caller that would have to wait has not been rejected.
        self.count_executed(&executed, |error| {
            matches!(error, TryExecuteError::Rejected(_))
        });
        executed
    }

    fn as_managed(&self) -> Option<&dyn Managed> {
        Some(self)
    }

    fn internals(&self) -> Internals<'_> {
        Internals::of(self.executor.internals().address(), self)
    }

    fn clock(&self) -> Clock {
        self.engine.clock.clone()
    }

    fn allows_inline(&self) -> bool {
        self.executor.allows_inline()
    }

    fn on_worker_thread(&self) -> bool {
        self.executor.on_worker_thread()
    }
}

impl<E: Executor + 'static> EngineInternals for ScheduledPool<E> {
    fn report_dropped(&self, dropped: DroppedTask) {
        self.executor.internals().report_dropped(dropped);
    }

    fn parameter_owner(&self, parameter: &str) -> Option<&str> {
        self.owner_of(parameter)
    }
}

impl<E: Executor> ScheduledPool<E> {
    /// The same deadline by the clock of the executor. Between two clocks that do not agree it is as far away
    /// as it is now by ours: how they will run is not known.
    fn executor_deadline(&self, deadline: Deadline) -> Deadline {
        let (own, others) = (&self.engine.clock, self.executor.clock());
        if own.agrees_with(&others) {
            return deadline;
        }
        let left = deadline.remaining(own.now());
        left.map_or(deadline, |left| others.deadline(left))
    }
}

impl<E> ScheduledPool<E> {
    /// Counts a task that went straight to the executor.
    fn count_executed<R>(&self, executed: &Result<(), R>, is_rejected: impl FnOnce(&R) -> bool) {
        let counters = &self.engine.counters;
        let counter = match executed {
            Ok(()) => &counters.executed,
            Err(error) if is_rejected(error) => &counters.rejected,
            Err(_) => return,
        };
        counter.fetch_add(1, Ordering::Relaxed);
    }

    /// A caller enters, unless the pool is shut down. Its guard keeps the pool, and an executor of the pool's own,
    /// from terminating.
    fn enter(&self) -> Result<Guard, RejectReason> {
        if self.engine.is_forked() {
            return Err(RejectReason::Forked);
        }
        let mut state = self.engine.state();
        if state.guards.is_open() {
            Ok(state.guards.issue(&self.engine))
        } else {
            Err(RejectReason::ShutDown)
        }
    }
}

/// # Shutdown
///
/// What is due runs. Delayed tasks still run, too, and series end: both can be changed
/// ([`set_run_delayed_after_shutdown`](ScheduledPool::set_run_delayed_after_shutdown),
/// [`set_run_series_after_shutdown`](ScheduledPool::set_run_series_after_shutdown)). It has terminated when
/// nothing is pending and all that it has handed over has ended; if the executor is its own, when that
/// has terminated.
///
/// `shutdown_now` hands back what has not begun, tasks and series, also what is due and waits for a worker.
/// Running what it hands back of a series is one last run; dropping it cancels the series. The pool does not
/// wait for what it has handed back. If the executor is not its own, a
/// [`ThreadPool`](crate::pool::ThreadPool) gives back what is in its queue; what others have taken and not
/// begun is cancelled.
///
/// A task that waits for room in the executor is handed back, too: `shutdown_now` interrupts the wait. If an
/// executor that is not of this crate ignores interrupts, `shutdown_now` waits for it for a second by the pool's
/// clock, and then returns without this task; the task is cancelled if the executor gives it back later, and the
/// pool has not terminated before that.
impl<E: Executor + 'static> Lifecycle for ScheduledPool<E> {
    fn shutdown(&self) {
        self.engine.shut_down();
    }

    fn shutdown_now(&self) -> Vec<Task> {
        self.engine.stop()
    }

    fn is_shutdown(&self) -> bool {
        let state = self.engine.shown_state(|| self.engine.state().run_state);
        state > RunState::Running
    }

    fn is_terminated(&self) -> bool {
        self.engine.is_terminated()
    }

    fn await_termination_until(&self, deadline: Deadline) -> Result<bool, TerminationError> {
        self.engine.await_with_executor(deadline)
    }

    fn await_termination_timeout(&self, timeout: Duration) -> Result<bool, TerminationError> {
        let deadline = self.engine.clock.deadline(timeout);
        self.engine.await_with_executor(deadline)
    }

    fn is_caller_inside(&self) -> bool {
        self.engine.is_caller_inside()
    }

    fn end_waiters(&self) -> Option<EndWaiters<'_>> {
        let own = self.engine.termination().end_waiters();
        match &self.engine.owned {
            Some(owned) => Some(own.and(owned.end_waiters()?)),
            None => Some(own),
        }
    }
}

/// The schedule itself. The executor below is another engine, with its own handle
/// ([`executor`](ScheduledPool::executor)).
impl<E: Executor + 'static> Managed for ScheduledPool<E> {
    fn name(&self) -> &str {
        ScheduledPool::name(self)
    }

    fn explain(&self) -> String {
        ScheduledPool::explain(self)
    }

    fn engine_snapshot(&self) -> EngineSnapshot {
        self.as_engine_snapshot()
    }

    /// If the executor is an engine, or a wrapper of one that says so.
    fn executor(&self) -> Option<&dyn Managed> {
        self.executor.as_managed()
    }

    fn parameters(&self) -> Vec<Parameter> {
        ScheduledPool::parameters(self)
    }

    fn check(&self, patch: &Patch) -> Result<Vec<Change>, PatchError> {
        ScheduledPool::check(self, patch)
    }

    fn apply(&self, patch: &Patch) -> Result<Vec<Change>, PatchError> {
        ScheduledPool::apply(self, patch)
    }
}

impl<E> Clone for ScheduledPool<E> {
    fn clone(&self) -> Self {
        ScheduledPool {
            engine: Arc::clone(&self.engine),
            executor: Arc::clone(&self.executor),
            _last: Arc::clone(&self._last),
        }
    }
}

impl<E: Executor + 'static> fmt::Debug for ScheduledPool<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ScheduledPool")
            .field(&format_args!("{}", self.snapshot()))
            .finish()
    }
}
