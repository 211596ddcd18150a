//! What a scheduled pool is to others: an executor, that can be ended, and looked at and changed while it
//! runs.

use super::ScheduledPool;
use super::ward::Ward;
use crate::executor::{
    DroppedTask, Executor, Lifecycle, NotTaken, RejectReason, Rejected, TerminationError,
};
use crate::manage::{Managed, Patch, PatchError, PoolSnapshot, RunState};
use crate::task::Task;
use crate::time::{Clock, Deadline};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// What comes to be run at once goes straight to the executor, as long as the pool is not shut down. It is not in
/// the figures of the schedule, and no [decorator](super::ScheduledBuilder::decorator) is around it.
impl<E: Executor + 'static> Executor for ScheduledPool<E> {
    fn execute(&self, task: Task) -> Result<(), Rejected<Task>> {
        match self.door() {
            Ok(_ward) => self.executor.execute(task),
            Err(reason) => Err(Rejected::new(task, reason)),
        }
    }

    fn execute_until(&self, task: Task, deadline: Deadline) -> Result<(), Rejected<Task>> {
        match self.door() {
            Ok(_ward) => self
                .executor
                .execute_until(task, self.below_until(deadline)),
            Err(reason) => Err(Rejected::new(task, reason)),
        }
    }

    fn try_execute(&self, task: Task) -> Result<(), NotTaken> {
        match self.door() {
            Ok(_ward) => self.executor.try_execute(task),
            Err(reason) => Err(NotTaken::Refused(Rejected::new(task, reason))),
        }
    }

    fn address(&self) -> usize {
        self.executor.address()
    }

    fn report_dropped(&self, dropped: DroppedTask) {
        self.executor.report_dropped(dropped);
    }

    fn clock(&self) -> Clock {
        self.core.clock.clone()
    }

    fn may_run_in_place(&self) -> bool {
        self.executor.may_run_in_place()
    }

    fn is_worker_here(&self) -> bool {
        self.executor.is_worker_here()
    }
}

impl<E: Executor> ScheduledPool<E> {
    /// The same deadline by the clock of the executor. Between two clocks that do not agree it is as far away
    /// as it is now by ours: nobody knows how they will go.
    fn below_until(&self, deadline: Deadline) -> Deadline {
        let (own, below) = (&self.core.clock, self.executor.clock());
        match own.agrees_with(&below) {
            true => deadline,
            false => deadline
                .left(own.now())
                .map_or(deadline, |left| below.deadline(left)),
        }
    }
}

impl<E> ScheduledPool<E> {
    /// As long as one has what this returns, the pool is not over, and neither is the executor if it ends
    /// with it.
    fn door(&self) -> Result<Arc<Ward>, RejectReason> {
        if self.core.is_forked() {
            return Err(RejectReason::Forked);
        }
        let ward = self.core.books().ward.clone();
        ward.ok_or(RejectReason::ShutDown)
    }
}

/// # Shutdown
///
/// What is due runs. What waits for its time still runs, too, and series end: both can be changed
/// ([`set_run_delayed_after_shutdown`](ScheduledPool::set_run_delayed_after_shutdown),
/// [`set_run_series_after_shutdown`](ScheduledPool::set_run_series_after_shutdown)). It has terminated when
/// nothing waits any more and all that it has handed over has ended; if the executor is its own, when that
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
        self.core.shut_down();
    }

    fn shutdown_now(&self) -> Vec<Task> {
        self.core.stop()
    }

    fn is_shutdown(&self) -> bool {
        self.core.is_forked() || self.core.books().state != RunState::Running
    }

    fn is_terminated(&self) -> bool {
        self.core.is_terminated()
    }

    fn await_termination_until(&self, deadline: Deadline) -> Result<bool, TerminationError> {
        self.core.await_end(deadline)
    }

    fn await_termination_timeout(&self, patience: Duration) -> Result<bool, TerminationError> {
        self.core.await_end(self.core.clock.deadline(patience))
    }

    fn is_caller_inside(&self) -> bool {
        self.core.is_caller_inside()
    }
}

/// What is managed is the executor.
impl<E: Executor + Managed + 'static> Managed for ScheduledPool<E> {
    fn snapshot(&self) -> PoolSnapshot {
        self.executor.snapshot()
    }

    fn apply(&self, patch: &Patch) -> Result<(), PatchError> {
        self.executor.apply(patch)
    }
}

impl<E> Clone for ScheduledPool<E> {
    fn clone(&self) -> Self {
        ScheduledPool {
            core: Arc::clone(&self.core),
            executor: Arc::clone(&self.executor),
            _owner: Arc::clone(&self._owner),
        }
    }
}

impl<E: Executor + 'static> fmt::Debug for ScheduledPool<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ScheduledPool")
            .field(&format_args!("{}", ScheduledPool::snapshot(self)))
            .finish()
    }
}
