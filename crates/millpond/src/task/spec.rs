//! The description of a task: everything but its closure.

use super::context;
use super::meta::{Extras, Meta};
use super::name::Name;
use super::task_local::TaskLocals;
use super::{Priority, Task, TaskHandle};
use crate::time::{Clock, Deadline};
use millpond_raw::recycle::Recycled;
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
    /// `None` if all is default.
    pub(super) extras: Option<Recycled<Extras>>,
    pub(super) location: &'static Location<'static>,
}

impl TaskSpec {
    /// A task that is created here. Inside another task it inherits the name, the deadline and the priority of that task
    /// until it is given its own; otherwise it has no name, no deadline and the normal priority. It has the current values
    /// of [task-locals](super::TaskLocal).
    ///
    /// A task without a handle ([`execute`](crate::executor::ExecutorExt::execute),
    /// [`execute_with`](crate::executor::ExecutorExt::execute_with), [`build_detached`](TaskSpec::build_detached)) does
    /// not inherit the deadline, unless it is [asked to](TaskSpec::inherit_deadline).
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
    #[inline]
    pub fn new() -> Self {
        let extras = if context::inherits_nothing() {
            None
        } else {
            inherited_extras()
        };
        TaskSpec {
            extras,
            location: Location::caller(),
        }
    }

    pub(super) fn extras(&mut self) -> &mut Extras {
        self.extras
            .get_or_insert_with(|| Recycled::new_with(Extras::defaults))
    }

    /// The name of the task in metrics, logs and dumps.
    ///
    /// ```
    /// use millpond::task::TaskSpec;
    ///
    /// let names = ["rye", "oats"].map(|grain| {
    ///     let (task, _handle) = TaskSpec::new().name(format!("grind {grain}")).build(|| ());
    ///     task.name().map(str::to_owned)
    /// });
    /// assert_eq!(names.map(Option::unwrap), ["grind rye", "grind oats"]);
    /// ```
    pub fn name(mut self, name: impl Into<Cow<'static, str>>) -> Self {
        self.extras().inherited.name = Some(name.into().into());
        self
    }

    /// The time by which it must have *started*; for its end there is [`finish_by`](TaskSpec::finish_by). An executor cancels a task whose deadline has passed when its turn comes; a
    /// caller that joins or awaits it hears of it at the deadline itself.
    ///
    /// ```
    /// use millpond::task::{CancelReason, TaskError, TaskSpec};
    /// use millpond::time::ManualClock;
    /// use std::time::Duration;
    ///
    /// let (hand, hour) = (ManualClock::new(), Duration::from_secs(3600));
    /// let noon = hand.clock().deadline(hour);
    /// let (_task, bread) = TaskSpec::new().clock(hand.clock()).deadline(noon).build(|| "bread");
    /// hand.advance(hour);
    /// // Baking has not started by noon: a caller that waits for bread need not wait any longer.
    /// assert!(matches!(bread.join(), Err(TaskError::Cancelled(CancelReason::Expired))));
    /// ```
    pub fn deadline(mut self, deadline: Deadline) -> Self {
        if self.extras.is_some() || deadline != Deadline::NEVER {
            let extras = self.extras();
            extras.inherited.deadline = deadline;
            extras.deadline_is_inherited = false;
        }
        self
    }

    /// The time by which it must have *ended*. A task whose end comes later is of no use to its caller, and costs others
    /// theirs; so
    ///
    /// - an executor cancels it when its turn comes if the time has come, as [`TooLate`](super::CancelReason::TooLate). A
    ///   thread pool that keeps metrics does so already if less is left than tasks of its name take, as a rule (see
    ///   [`finish_percentile`](crate::pool::PoolBuilder::finish_percentile));
    /// - it is interrupted when the time comes while it runs. It ends when it heeds that; see [`crate::interrupt`]. Its
    ///   handle gets what it returns then;
    /// - a caller that joins or awaits it hears at that time that it has not started.
    ///
    /// It is inherited as the [deadline](TaskSpec::deadline) is, by what the task submits. The task can ask for it
    /// ([`current_finish_by`](super::current_finish_by)). A future is dropped when it is woken after that time; the runs
    /// of a series have no such time. If the timer's thread cannot be started, nothing is interrupted.
    ///
    /// ```
    /// use millpond::executor::{Executor, ExecutorExt, Lifecycle};
    /// use millpond::interrupt;
    /// use millpond::preset;
    /// use millpond::task::TaskSpec;
    /// use std::time::Duration;
    ///
    /// let pool = preset::single("mill").build()?;
    /// let soon = pool.clock().deadline(Duration::from_millis(50));
    /// let hour = Duration::from_secs(3600);
    /// let answer = pool.submit_with(TaskSpec::new().finish_by(soon), move || interrupt::sleep(hour))?;
    /// assert!(answer.join()?.is_err(), "long before the hour is over");
    /// pool.close()?;
    /// assert_eq!(pool.snapshot().finished_late, 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn finish_by(mut self, deadline: Deadline) -> Self {
        if self.extras.is_some() || deadline != Deadline::NEVER {
            let extras = self.extras();
            extras.inherited.finish_by = deadline;
            extras.finish_is_inherited = false;
        }
        self
    }

    /// Inherits the deadlines of the enclosing task also where that is not the default: for a task without a handle, and
    /// for a scheduled one.
    ///
    /// A task with a handle inherits the deadline of the task in which its description is created. A task without a handle
    /// does not: it has been accepted, and nobody would hear that it was dropped after all.
    ///
    /// ```
    /// use millpond::executor::{Executor, ExecutorExt, Lifecycle};
    /// use millpond::pool::ThreadPool;
    /// use millpond::task::TaskSpec;
    /// use millpond::time::Deadline;
    /// use std::time::Duration;
    ///
    /// let pool = ThreadPool::builder("mill").max(1).build()?;
    /// let (own, soon) = (pool.clone(), pool.clock().deadline(Duration::from_secs(60)));
    /// let request = pool.submit_with(TaskSpec::new().deadline(soon), move || {
    ///     own.execute(|| println!("an audit record: it is written in any case"))?;
    ///     let hint = TaskSpec::new().inherit_deadline();
    ///     own.execute_with(hint, || println!("a hint that is of no use after the request"))?;
    ///     let queued = own.queued_tasks();
    ///     Ok::<_, Box<dyn std::error::Error + Send + Sync>>(
    ///         queued.iter().map(|task| task.deadline()).collect::<Vec<_>>(),
    ///     )
    /// })?;
    /// assert_eq!(request.join()?.unwrap(), [Deadline::NEVER, soon]);
    /// pool.close()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn inherit_deadline(mut self) -> Self {
        if let Some(extras) = &mut self.extras {
            extras.deadline_is_inherited = false;
            extras.finish_is_inherited = false;
        }
        self
    }

    /// The priority of the task, for queues that order by it.
    ///
    /// ```
    /// use millpond::executor::{ExecutorExt, Lifecycle};
    /// use millpond::pool::{Queue, ThreadPool};
    /// use millpond::task::{Priority, TaskSpec};
    /// use std::{sync::mpsc, time::Duration};
    ///
    /// let queue = Queue::by_priority(10, Duration::from_secs(3600));
    /// let pool = ThreadPool::builder("mill").max(1).queue(queue).build()?;
    /// let ((go, may_go), (tell, told)) = (mpsc::channel(), mpsc::channel());
    /// pool.submit(move || may_go.recv())?; // keeps the only worker busy
    /// for (priority, work) in [(Priority::Low, "sweep"), (Priority::High, "grind")] {
    ///     let tell = tell.clone();
    ///     pool.submit_with(TaskSpec::new().priority(priority), move || tell.send(work))?;
    /// }
    /// go.send(())?;
    /// assert_eq!([told.recv()?, told.recv()?], ["grind", "sweep"]);
    /// pool.close()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn priority(mut self, priority: Priority) -> Self {
        if self.extras.is_some() || priority != Priority::Normal {
            self.extras().inherited.priority = priority;
        }
        self
    }

    /// The clock of its deadline and of its handle's timeouts. Default: the clock of the executor that it is submitted to,
    /// or, for a task that is [built](TaskSpec::build) by hand, the system clock.
    ///
    /// ```
    /// use millpond::task::TaskSpec;
    /// use millpond::time::ManualClock;
    /// use std::time::Duration;
    ///
    /// let (hand, day) = (ManualClock::new(), Duration::from_secs(86_400));
    /// let tomorrow = hand.clock().deadline(day);
    /// let (_task, mut flour) = TaskSpec::new().clock(hand.clock()).build(|| "flour");
    /// hand.advance(day); // at once
    /// assert!(flour.join_until(tomorrow).unwrap_err().is_timed_out());
    /// ```
    pub fn clock(mut self, clock: Clock) -> Self {
        let extras = self.extras();
        extras.clock = clock;
        extras.clock_is_given = true;
        self
    }

    /// Sets the clock of the executor that it is submitted to, unless it was given its own.
    #[inline]
    pub(crate) fn clock_by_default(mut self, clock: Clock) -> Self {
        match &mut self.extras {
            // The usual case.
            None if clock.is_system() => {}
            None => self.extras().clock = clock,
            Some(extras) if extras.clock_is_given => {}
            Some(extras) => extras.clock = clock,
        }
        self
    }

    /// Removes inherited deadlines, which were not meant for this task.
    #[inline]
    pub(crate) fn without_inherited_deadline(mut self) -> Self {
        if let Some(extras) = &mut self.extras {
            if extras.deadline_is_inherited {
                extras.inherited.deadline = Deadline::NEVER;
                extras.deadline_is_inherited = false;
            }
            if extras.finish_is_inherited {
                extras.inherited.finish_by = Deadline::NEVER;
                extras.finish_is_inherited = false;
            }
        }
        self
    }

    /// The name, its own or inherited.
    pub(crate) fn shared_name(&self) -> Option<Name> {
        self.extras.as_ref()?.inherited.name.clone()
    }

    /// As if it was created there.
    pub(crate) fn located(mut self, location: &'static Location<'static>) -> Self {
        self.location = location;
        self
    }

    /// The source location where it was created.
    pub(crate) fn location(&self) -> &'static Location<'static> {
        self.location
    }

    /// Creates the task.
    ///
    /// ```
    /// use millpond::executor::{DirectExecutor, Executor};
    /// use millpond::task::TaskSpec;
    ///
    /// let (task, flour) = TaskSpec::new().name("grind").build(|| "flour");
    /// DirectExecutor::new().execute_task(task)?;
    /// assert_eq!(flour.join()?, "flour");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn build<T: Send + 'static>(
        self,
        f: impl FnOnce() -> T + Send + 'static,
    ) -> (Task, TaskHandle<T>) {
        let (task, handle) = raw::new(f, Meta::new(self));
        (Task::from_raw(task), TaskHandle::from_raw(handle))
    }

    /// Without task-local values: a task that works for many callers has those of none.
    pub(crate) fn without_task_locals(mut self) -> Self {
        let extras = self.extras.as_mut();
        let locals = extras
            .map(|extras| std::mem::replace(&mut extras.inherited.locals, TaskLocals::empty()));
        drop(locals);
        self
    }

    /// Creates a task without a handle that is exempt from shedding, because it works for other tasks, which are not. Its
    /// deadline, if it has one, applies.
    pub(crate) fn build_kept(self, f: impl FnOnce() + Send + 'static) -> Task {
        Task::from_raw(raw::detached(f, Meta::kept(self)))
    }

    /// Creates the task without a handle: nobody waits for it. It does not inherit a deadline, unless it is
    /// [asked to](TaskSpec::inherit_deadline).
    ///
    /// ```
    /// use millpond::task::{Ran, TaskSpec};
    ///
    /// let task = TaskSpec::new().build_detached(|| panic!("the dam broke"));
    /// // There is no handle to report it to, so `run` returns it.
    /// let Ran::Panicked(Some(panic)) = task.run() else {
    ///     panic!("it did not break");
    /// };
    /// assert_eq!(panic.message(), Some("the dam broke"));
    /// ```
    pub fn build_detached(self, f: impl FnOnce() + Send + 'static) -> Task {
        let spec = self.without_inherited_deadline();
        Task::from_raw(raw::detached(f, Meta::new(spec)))
    }
}

/// What a task inherits that is created here.
#[cold]
fn inherited_extras() -> Option<Recycled<Extras>> {
    context::current().map(|inherited| {
        Recycled::new_with(|| Extras {
            deadline_is_inherited: inherited.deadline != Deadline::NEVER,
            finish_is_inherited: inherited.finish_by != Deadline::NEVER,
            inherited,
            clock: Clock::system(),
            clock_is_given: false,
        })
    })
}

impl Drop for TaskSpec {
    #[inline]
    fn drop(&mut self) {
        // Out of line, because most tasks have none.
        if let Some(extras) = self.extras.take() {
            drop_extras(extras);
        }
    }
}

#[cold]
fn drop_extras(extras: Recycled<Extras>) {
    drop(extras);
}

impl Default for TaskSpec {
    #[track_caller]
    fn default() -> Self {
        Self::new()
    }
}
