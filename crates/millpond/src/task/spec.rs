//! What a task is, apart from its closure: name, deadline, place of submission.

use super::context::{self, Inherited};
use super::{Task, TaskHandle};
use crate::time::{Clock, Deadline};
use millpond_raw::task as raw;
use std::borrow::Cow;
use std::panic::Location;

/// Describes a task before it is made.
///
/// ```
/// use millpond::task::TaskSpec;
///
/// let (task, handle) = TaskSpec::new().name("thumbnail").build(|| 7);
/// assert_eq!(handle.name(), Some("thumbnail"));
/// task.run();
/// assert_eq!(handle.join()?, 7);
/// # Ok::<(), millpond::task::TaskError>(())
/// ```
#[derive(Clone, Debug)]
#[must_use = "a description does nothing until a task is built from it"]
pub struct TaskSpec {
    /// Name, deadline and span: what the task's own tasks have, too.
    pub(super) inherited: Inherited,
    pub(super) clock: Clock,
    pub(super) made_at: &'static Location<'static>,
}

impl TaskSpec {
    /// A task that is made here. Inside another task it has the name and the deadline of that one
    /// until it is given its own; otherwise it has none.
    ///
    /// ```
    /// use millpond::task::{self, TaskSpec};
    ///
    /// let (outer, handle) = TaskSpec::new().name("order").build(|| task::new(|| ()).1);
    /// outer.run();
    /// assert_eq!(handle.join()?.name(), Some("order"));
    /// # Ok::<(), task::TaskError>(())
    /// ```
    #[track_caller]
    pub fn new() -> Self {
        TaskSpec {
            inherited: context::here(),
            clock: Clock::system(),
            made_at: Location::caller(),
        }
    }

    /// What it is called in statistics, logs and dumps.
    pub fn name(mut self, name: impl Into<Cow<'static, str>>) -> Self {
        self.inherited.name = Some(name.into().into());
        self
    }

    /// Until when it must have started. Engines shed a task whose deadline has passed.
    pub fn deadline(mut self, deadline: Deadline) -> Self {
        self.inherited.deadline = deadline;
        self
    }

    /// The clock by which its handle's time-outs run.
    pub fn clock(mut self, clock: Clock) -> Self {
        self.clock = clock;
        self
    }

    /// Makes the task.
    pub fn build<T: Send + 'static>(
        self,
        f: impl FnOnce() -> T + Send + 'static,
    ) -> (Task, TaskHandle<T>) {
        let (task, handle) = raw::new(f, self);
        (Task::from_raw(task), TaskHandle::from_raw(handle))
    }

    /// Makes the task without a handle: nobody waits for it.
    pub fn build_detached(self, f: impl FnOnce() + Send + 'static) -> Task {
        Task::from_raw(raw::detached(f, self))
    }
}

impl Default for TaskSpec {
    #[track_caller]
    fn default() -> Self {
        Self::new()
    }
}
