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
    pub fn name(mut self, name: impl Into<Cow<'static, str>>) -> Self {
        self.rare().inherited.name = Some(name.into().into());
        self
    }

    /// Until when it must have started. Engines shed a task whose deadline has passed when its turn comes; who
    /// joins or awaits it hears at the deadline itself.
    pub fn deadline(mut self, deadline: Deadline) -> Self {
        if self.rare.is_some() || deadline != Deadline::NEVER {
            self.rare().inherited.deadline = deadline;
        }
        self
    }

    /// How urgent it is, for queues that ask.
    pub fn priority(mut self, priority: Priority) -> Self {
        if self.rare.is_some() || priority != Priority::Normal {
            self.rare().inherited.priority = priority;
        }
        self
    }

    /// The clock by which its handle's time-outs run.
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
