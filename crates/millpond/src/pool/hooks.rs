//! What a user hears of a pool's life: before and after each task, and at the end.

use crate::task::{About, Name, Priority, Task};
use crate::time::Deadline;
use std::fmt;
use std::panic::Location;
use std::sync::Arc;

/// Calls from a pool to its user. All of them do nothing unless they are written.
///
/// They run outside the pool's locks, on the worker that runs the task; [`terminated`] on whichever
/// thread ended the pool. A panic in one of them costs nothing but itself: not the worker, not the
/// count, not the task.
///
/// [`terminated`]: Hooks::terminated
///
/// ```
/// use millpond::executor::{ExecutorExt, Lifecycle};
/// use millpond::pool::{Ended, Hooks, TaskInfo, ThreadPool};
///
/// struct Log;
///
/// impl Hooks for Log {
///     fn after(&self, task: &TaskInfo, ended: Ended) {
///         println!("{} ended: {ended:?}", task.name().unwrap_or("a task"));
///     }
/// }
///
/// let pool = ThreadPool::builder("mill").hooks(Log).build()?;
/// pool.submit(|| 7)?.join()?;
/// pool.close();
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub trait Hooks: Send + Sync + 'static {
    /// A worker is about to run this task.
    #[doc(alias = "beforeExecute")]
    fn before(&self, _task: &TaskInfo) {}

    /// A worker has run this task.
    #[doc(alias = "afterExecute")]
    fn after(&self, _task: &TaskInfo, _ended: Ended) {}

    /// The last task has ended and the last worker is gone. The pool is terminating; it is
    /// terminated when this returns.
    fn terminated(&self) {}
}

impl<H: Hooks + ?Sized> Hooks for Arc<H> {
    fn before(&self, task: &TaskInfo) {
        (**self).before(task);
    }

    fn after(&self, task: &TaskInfo, ended: Ended) {
        (**self).after(task, ended);
    }

    fn terminated(&self) {
        (**self).terminated();
    }
}

/// How a task ended that a worker has run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// Its body returned.
    Completed,
    /// Its body panicked. The payload is with its handle, or with the pool's panic hook.
    Panicked,
    /// There was nothing left to run: it was cancelled, or a waiter ran it, between the look at it
    /// and its start; or its deadline had passed, or it was shed.
    Gone,
}

/// What can be told of a task.
#[derive(Clone)]
pub struct TaskInfo {
    name: Option<Name>,
    made_at: &'static Location<'static>,
    deadline: Deadline,
    priority: Priority,
    is_gone: bool,
}

impl TaskInfo {
    pub(super) fn of(task: &Task) -> Self {
        TaskInfo {
            name: task.shared_name(),
            made_at: task.made_at(),
            deadline: task.deadline(),
            priority: task.priority(),
            is_gone: task.is_gone(),
        }
    }

    /// Of a task that runs.
    pub(super) fn about(task: About<'_>) -> Self {
        TaskInfo {
            name: task.shared_name(),
            made_at: task.made_at(),
            deadline: task.deadline(),
            priority: task.priority(),
            is_gone: false,
        }
    }

    /// What it is called.
    pub fn name(&self) -> Option<&str> {
        self.name.as_ref().map(Name::as_str)
    }

    /// Where it was made.
    pub fn made_at(&self) -> &'static Location<'static> {
        self.made_at
    }

    /// Until when it must have started.
    pub fn deadline(&self) -> Deadline {
        self.deadline
    }

    /// How urgent it is.
    pub fn priority(&self) -> Priority {
        self.priority
    }

    /// Whether there is nothing left to run, because it was cancelled.
    pub fn is_gone(&self) -> bool {
        self.is_gone
    }
}

impl fmt::Debug for TaskInfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TaskInfo")
            .field("name", &self.name())
            .field("made_at", &format_args!("{}", self.made_at))
            .field("is_gone", &self.is_gone)
            .finish_non_exhaustive()
    }
}
