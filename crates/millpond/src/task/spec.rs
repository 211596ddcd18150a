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
    /// A task that is made here. Inside another task it has the name, the deadline and the priority of
    /// that one until it is given its own; otherwise it has no name and no deadline, and the usual
    /// priority. It carries what is [carried](super::Carried) here.
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
            self.rare().inherited.deadline = deadline;
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

    /// The clock by which its handle's time-outs run.
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
    #[inline]
    pub fn clock(mut self, clock: Clock) -> Self {
        // Executors give their clock to every task, and it is nearly always this one.
        if self.rare.is_some() || !clock.is_system() {
            self.rare().clock = clock;
        }
        self
    }

    /// With no deadline but its own: one that it has from the task around it was not for this one.
    #[inline]
    pub(crate) fn without_inherited_deadline(self) -> Self {
        match self.rare {
            None => self,
            Some(_) => self.without_deadline_of_here(),
        }
    }

    fn without_deadline_of_here(self) -> Self {
        let own = self.rare.as_ref().map(|rare| rare.inherited.deadline);
        let Some(own) = own.filter(|own| *own != Deadline::NEVER) else {
            return self;
        };
        match context::here().is_some_and(|inherited| inherited.deadline == own) {
            true => self.deadline(Deadline::NEVER),
            false => self,
        }
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

    /// Makes the task without a handle: nobody waits for it.
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
        Task::from_raw(raw::detached(f, Meta::new(self)))
    }
}

/// What a task inherits that is made here.
#[cold]
fn rare_here() -> Option<Recycled<Rare>> {
    context::here().map(|inherited| {
        Recycled::new_with(|| Rare {
            inherited,
            clock: Clock::system(),
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
