//! What a task is, apart from its closure: name, deadline, place of submission.

use super::carried::Load;
use super::context;
use super::meta::{Meta, Rare};
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
    /// `None` if there is nothing rare about it.
    pub(super) rare: Option<Recycled<Rare>>,
    pub(super) made_at: &'static Location<'static>,
}

impl TaskSpec {
    /// A task that is made here. Inside another task it inherits the name, the deadline and the priority of
    /// that one until it is given its own; otherwise it has no name and no deadline, and the usual
    /// priority. It carries what is [carried](super::Carried) here.
    ///
    /// A task without a handle ([`run`](crate::executor::ExecutorExt::run),
    /// [`run_spec`](crate::executor::ExecutorExt::run_spec), [`build_detached`](TaskSpec::build_detached)) does
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
        let rare = match context::inherits_nothing() {
            true => None,
            false => rare_here(),
        };
        TaskSpec {
            rare,
            made_at: Location::caller(),
        }
    }

    fn rare(&mut self) -> &mut Rare {
        self.rare
            .get_or_insert_with(|| Recycled::new_with(Rare::nothing))
    }

    /// What it is called in statistics, logs and dumps.
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
        self.rare().inherited.name = Some(name.into().into());
        self
    }

    /// Until when it must have started. Engines shed a task whose deadline has passed when its turn comes; who
    /// joins or awaits it hears at the deadline itself.
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
    /// // Nobody has begun to bake by noon: whoever waits for bread need not wait any longer.
    /// assert!(matches!(bread.join(), Err(TaskError::Cancelled(CancelReason::Expired))));
    /// ```
    pub fn deadline(mut self, deadline: Deadline) -> Self {
        if self.rare.is_some() || deadline != Deadline::NEVER {
            let rare = self.rare();
            rare.inherited.deadline = deadline;
            rare.deadline_is_inherited = false;
        }
        self
    }

    /// With the deadline of the task around it, if that has one, also where it would not be inherited: by
    /// a task without a handle, and by one that is scheduled.
    ///
    /// A task with a handle inherits the deadline of the task in which its description is made. One without a
    /// handle does not: it has been accepted, and nobody would hear that it was dropped after all.
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
    /// let request = pool.submit_spec(TaskSpec::new().deadline(soon), move || {
    ///     own.run(|| println!("an audit record: it is written in any case"))?;
    ///     let hint = TaskSpec::new().inherit_deadline();
    ///     own.run_spec(hint, || println!("a hint that is of no use after the request"))?;
    ///     let waiting = own.queued_tasks();
    ///     Ok::<_, Box<dyn std::error::Error + Send + Sync>>(
    ///         waiting.iter().map(|task| task.deadline()).collect::<Vec<_>>(),
    ///     )
    /// })?;
    /// assert_eq!(request.join()?.unwrap(), [Deadline::NEVER, soon]);
    /// pool.close()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn inherit_deadline(mut self) -> Self {
        if let Some(rare) = &mut self.rare {
            rare.deadline_is_inherited = false;
        }
        self
    }

    /// How urgent it is, for queues that ask.
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
    ///     pool.submit_spec(TaskSpec::new().priority(priority), move || tell.send(work))?;
    /// }
    /// go.send(())?;
    /// assert_eq!([told.recv()?, told.recv()?], ["grind", "sweep"]);
    /// pool.close()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn priority(mut self, priority: Priority) -> Self {
        if self.rare.is_some() || priority != Priority::Normal {
            self.rare().inherited.priority = priority;
        }
        self
    }

    /// The clock by which its deadline and its handle's time-outs run. Default: the clock of the executor
    /// that it is brought to, or, for a task that is [built](TaskSpec::build) by hand, the system's.
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
        let rare = self.rare();
        rare.clock = clock;
        rare.clock_is_given = true;
        self
    }

    /// With the clock of the executor that it is brought to, unless it was given one of its own.
    #[inline]
    pub(crate) fn clock_by_default(mut self, clock: Clock) -> Self {
        match &mut self.rare {
            // It is nearly always this one.
            None if clock.is_system() => {}
            None => self.rare().clock = clock,
            Some(rare) if rare.clock_is_given => {}
            Some(rare) => rare.clock = clock,
        }
        self
    }

    /// With no deadline but its own: one that it has from the task around it was not for this one.
    #[inline]
    pub(crate) fn without_inherited_deadline(mut self) -> Self {
        if let Some(rare) = &mut self.rare {
            if rare.deadline_is_inherited {
                rare.inherited.deadline = Deadline::NEVER;
                rare.deadline_is_inherited = false;
            }
        }
        self
    }

    /// Where it is made.
    pub(crate) fn made_at(&self) -> &'static Location<'static> {
        self.made_at
    }

    /// Makes the task.
    ///
    /// ```
    /// use millpond::executor::{DirectExecutor, Executor};
    /// use millpond::task::TaskSpec;
    ///
    /// let (task, flour) = TaskSpec::new().name("grind").build(|| "flour");
    /// DirectExecutor::new().execute(task)?;
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

    /// Lets it carry nothing: one that works for many is nobody's in particular.
    pub(crate) fn empty_handed(mut self) -> Self {
        let load = self.rare.as_mut();
        let load = load.map(|rare| std::mem::replace(&mut rare.inherited.load, Load::nothing()));
        drop(load);
        self
    }

    /// Makes a task without a handle that is not shed under overload: one that works for others, who
    /// have been judged or will be. Its deadline, if it has one, counts as ever.
    pub(crate) fn build_kept(self, f: impl FnOnce() + Send + 'static) -> Task {
        Task::from_raw(raw::detached(f, Meta::kept(self)))
    }

    /// Makes the task without a handle: nobody waits for it. It does not inherit a deadline, unless it is
    /// [asked to](TaskSpec::inherit_deadline).
    ///
    /// ```
    /// use millpond::task::{Ran, TaskSpec};
    ///
    /// let task = TaskSpec::new().build_detached(|| panic!("the dam broke"));
    /// // There is no handle to report it to, so whoever runs the task is told.
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

/// What a task inherits that is made here.
#[cold]
fn rare_here() -> Option<Recycled<Rare>> {
    context::here().map(|inherited| {
        Recycled::new_with(|| Rare {
            deadline_is_inherited: inherited.deadline != Deadline::NEVER,
            inherited,
            clock: Clock::system(),
            clock_is_given: false,
        })
    })
}

impl Drop for TaskSpec {
    #[inline]
    fn drop(&mut self) {
        // Most tasks have nothing rare about them, and their end is shorter without this in it.
        if let Some(rare) = self.rare.take() {
            drop_rare(rare);
        }
    }
}

#[cold]
fn drop_rare(rare: Recycled<Rare>) {
    drop(rare);
}

impl Default for TaskSpec {
    #[track_caller]
    fn default() -> Self {
        Self::new()
    }
}
