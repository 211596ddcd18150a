//! A pool of whichever kind: what clients do with thread pools and with fork-join pools alike.

use millpond::executor::{Executor, Lifecycle, Rejected, TerminationError};
use millpond::forkjoin::ForkJoinPool;
use millpond::pool::ThreadPool;
use millpond::task::{Task, TaskHandle};
use millpond::time::{Clock, Deadline};
use std::time::Duration;

/// A pool.
#[derive(Clone, Debug)]
pub(crate) enum AnyPool {
    Threads(ThreadPool),
    ForkJoin(ForkJoinPool),
}

macro_rules! either {
    ($self:ident, $pool:ident => $do:expr) => {
        match $self {
            AnyPool::Threads($pool) => $do,
            AnyPool::ForkJoin($pool) => $do,
        }
    };
}

impl AnyPool {
    /// Clears cancelled tasks out of the queue; a fork-join pool does it by itself.
    pub(crate) fn purge(&self) {
        if let AnyPool::Threads(pool) = self {
            pool.purge();
        }
    }

    /// Takes a task out of the queue; fork-join pools have no such call.
    pub(crate) fn remove<T: Send + 'static>(&self, handle: &TaskHandle<T>) -> bool {
        match self {
            AnyPool::Threads(pool) => pool.remove(handle),
            AnyPool::ForkJoin(_) => false,
        }
    }

    /// Looks at it.
    pub(crate) fn look(&self) {
        either!(self, pool => drop(pool.snapshot()));
    }
}

impl Executor for AnyPool {
    fn execute_task(&self, task: Task) -> Result<(), Rejected<Task>> {
        either!(self, pool => pool.execute_task(task))
    }

    fn clock(&self) -> Clock {
        either!(self, pool => Executor::clock(pool))
    }
}

impl Lifecycle for AnyPool {
    fn shutdown(&self) {
        either!(self, pool => pool.shutdown());
    }

    fn shutdown_now(&self) -> Vec<Task> {
        either!(self, pool => pool.shutdown_now())
    }

    fn is_shutdown(&self) -> bool {
        either!(self, pool => pool.is_shutdown())
    }

    fn is_terminated(&self) -> bool {
        either!(self, pool => pool.is_terminated())
    }

    fn await_termination_until(&self, deadline: Deadline) -> Result<bool, TerminationError> {
        either!(self, pool => pool.await_termination_until(deadline))
    }

    fn await_termination_timeout(&self, timeout: Duration) -> Result<bool, TerminationError> {
        either!(self, pool => pool.await_termination_timeout(timeout))
    }

    fn is_caller_inside(&self) -> bool {
        either!(self, pool => pool.is_caller_inside())
    }
}
