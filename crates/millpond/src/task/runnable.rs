//! The side of a task that executors hold.

use super::carried::Load;
use super::delivered::is_delivered;
use super::meta::Meta;
use super::name::Name;
use super::waiting::address;
use super::{CancelReason, Home, Panic, Priority, Shell, context};
use crate::time::{Deadline, Stamp};
use millpond_raw::task as raw;
use std::fmt;
use std::panic::Location;

pub use raw::Ran;

/// A task that waits to be run. Dropping it unrun cancels it.
///
/// ```
/// use millpond::task::{self, CancelReason};
///
/// let (task, handle) = task::new(|| ());
/// task.cancel(CancelReason::ShutDown);
/// let error = handle.join().unwrap_err();
/// assert_eq!(error.to_string(), "task cancelled: its executor was shut down before it ran");
/// ```
#[must_use = "a task that is dropped unrun is cancelled"]
pub struct Task(raw::Task<Meta>);

impl Task {
    pub(super) fn from_raw(task: raw::Task<Meta>) -> Self {
        Task(task)
    }

    /// Runs it on this thread, unless it was cancelled or has been run in place by a waiter.
    ///
    /// A panic of the body goes to the handle; without a handle it is in what this returns.
    ///
    /// ```
    /// use millpond::task::{self, Ran};
    ///
    /// let (task, flour) = task::new(|| "flour");
    /// assert!(matches!(task.run(), Ran::Completed));
    /// assert_eq!(flour.join()?, "flour");
    ///
    /// let (task, flour) = task::new(|| panic!("the dam broke"));
    /// // No payload here: it is the handle's.
    /// assert!(matches!(task.run(), Ran::Panicked(None)));
    /// assert!(flour.join().unwrap_err().is_panicked());
    ///
    /// let (tell, told) = std::sync::mpsc::channel::<task::TaskHandle<()>>();
    /// let (task, own) = task::new(move || drop(told.recv().unwrap().cancel()));
    /// tell.send(own).unwrap();
    /// // It returned, but it had been cancelled while it ran.
    /// assert!(matches!(task.run(), Ran::Unwanted));
    /// # Ok::<(), task::TaskError>(())
    /// ```
    #[inline(always)]
    pub fn run(self) -> Ran {
        self.run_seeing(|_| ())
    }

    /// As [`run`](Task::run), and lets `panicked`, which must not panic, look at what the body panicked with
    /// before that goes to the handle.
    #[inline(always)]
    pub(crate) fn run_seeing(self, panicked: impl FnOnce(&Panic)) -> Ran {
        let inherited = self.0.meta().inherited();
        let token = address(self.0.token());
        let ran = match context::is_plain(inherited) {
            true => self.0.run_seeing(panicked),
            false => self.run_in_context(panicked),
        };
        is_delivered(token);
        ran
    }

    /// With what it has inherited around it.
    #[inline(never)]
    fn run_in_context(self, panicked: impl FnOnce(&Panic)) -> Ran {
        let inherited = self.0.meta().inherited().cloned();
        context::enter(inherited, || self.0.run_seeing(panicked))
    }

    /// How many others refer to it: its handles, and witnesses.
    pub(crate) fn others(&self) -> usize {
        self.0.others()
    }

    /// As [`cancel`](Task::cancel); and if it was gone before, what it is the shell of.
    pub(crate) fn end(self, reason: CancelReason) -> Option<Shell> {
        match self.0.give_up(reason) {
            true => None,
            false => Some(self.shell()),
        }
    }

    /// As [`cancel`](Task::cancel), and keeps what is left of it.
    pub(crate) fn give_up(&self, reason: CancelReason) -> bool {
        self.0.give_up(reason)
    }

    /// A reference that outlives this one, for those who want no outcome.
    pub(crate) fn witness(&self) -> Witness {
        Witness(self.0.witness())
    }

    /// Says where handles count the task if they empty it before it starts, and since when it waits.
    /// For the engine that takes it in, before it puts it into its queue.
    #[inline]
    pub(crate) fn settle(&self, home: Option<&Home>, stamp: Stamp) {
        self.0.meta().home.set(home, stamp);
    }

    /// What it was settled with, all in one: with the address it is how an engine knows it again. An
    /// address alone may be had by another task when this one is gone.
    pub(crate) fn settled(&self) -> u64 {
        self.0.meta().home.word()
    }

    /// Since when it waits in an engine.
    #[inline]
    pub(crate) fn waits_since(&self) -> Option<Stamp> {
        self.0.meta().home.stamp()
    }

    /// Whether it is not shed under overload.
    pub(crate) fn is_kept(&self) -> bool {
        self.0.meta().home.is_kept()
    }

    /// Takes the closure that the task was made of back out, unrun.
    ///
    /// # Errors
    ///
    /// The task, if its closure is gone or is no `F`.
    pub(crate) fn reclaim<F: 'static>(self, reason: CancelReason) -> Result<F, Self> {
        self.0.reclaim(reason).map_err(Task)
    }

    /// Gives it up, and tells its handle why. Returns false, and does nothing, if it was gone before:
    /// what a waiter runs in place goes on.
    ///
    /// ```
    /// use millpond::task::{self, CancelReason, TaskError};
    ///
    /// let (task, flour) = task::new(|| "flour");
    /// assert!(task.cancel(CancelReason::Discarded));
    /// assert!(matches!(flour.join(), Err(TaskError::Cancelled(CancelReason::Discarded))));
    ///
    /// let (task, flour) = task::new(|| "flour");
    /// flour.cancel();
    /// assert!(!task.cancel(CancelReason::Discarded)); // too late
    /// ```
    pub fn cancel(self, reason: CancelReason) -> bool {
        self.0.give_up(reason)
    }

    /// What it is the shell of, if it is [gone](Task::is_gone).
    pub(crate) fn shell(&self) -> Shell {
        self.0.state().shell()
    }

    /// It is no longer in a queue of the engine that it was settled in. Returns whether it has left by
    /// this, and not before. Whether it is gone is to be asked afterwards.
    pub(crate) fn leave_home(&self) -> bool {
        self.0.meta().home.is_given_away() != 0
    }

    /// As its handle does: what a waiter runs in place is cancelled, too.
    pub(crate) fn cancel_even_if_run(self, reason: CancelReason) -> bool {
        self.0.cancel(reason)
    }

    /// Whether there is nothing left to run: it is cancelled, or a waiter runs it in place.
    ///
    /// ```
    /// let (task, flour) = millpond::task::new(|| "flour");
    /// assert!(!task.is_gone());
    /// assert_eq!(flour.join_here()?, "flour");
    /// assert!(task.is_gone()); // whoever holds it has nothing to run
    /// # Ok::<(), millpond::task::TaskError>(())
    /// ```
    pub fn is_gone(&self) -> bool {
        self.0.state().is_claimed()
    }

    /// What it is called.
    ///
    /// ```
    /// use millpond::task::{self, TaskSpec};
    ///
    /// let (task, _handle) = TaskSpec::new().name("grind rye").build(|| ());
    /// assert_eq!(task.name(), Some("grind rye"));
    /// assert_eq!(task::new(|| ()).0.name(), None);
    /// ```
    #[inline]
    pub fn name(&self) -> Option<&str> {
        self.0.meta().name().map(Name::as_str)
    }

    /// Until when it must have started.
    ///
    /// ```
    /// use millpond::task::{self, TaskSpec};
    /// use millpond::time::{Clock, Deadline};
    /// use std::time::Duration;
    ///
    /// let noon = Clock::system().deadline(Duration::from_secs(3600));
    /// let (task, _handle) = TaskSpec::new().deadline(noon).build(|| "bread");
    /// assert_eq!(task.deadline(), noon);
    /// assert_eq!(task::new(|| "bread").0.deadline(), Deadline::NEVER);
    /// ```
    pub fn deadline(&self) -> Deadline {
        self.0.meta().deadline()
    }

    /// How urgent it is.
    ///
    /// ```
    /// use millpond::task::{self, Priority, TaskSpec};
    ///
    /// let (task, _handle) = TaskSpec::new().priority(Priority::Low).build(|| "sweep");
    /// assert_eq!(task.priority(), Priority::Low);
    /// assert_eq!(task::new(|| "grind").0.priority(), Priority::Normal);
    /// ```
    pub fn priority(&self) -> Priority {
        self.0.meta().priority()
    }

    /// Whether its deadline has passed, by its own clock. What has no deadline asks no clock.
    ///
    /// ```
    /// use millpond::task::TaskSpec;
    /// use millpond::time::ManualClock;
    /// use std::time::Duration;
    ///
    /// let (hand, hour) = (ManualClock::new(), Duration::from_secs(3600));
    /// let noon = hand.clock().deadline(hour);
    /// let (task, _bread) = TaskSpec::new().clock(hand.clock()).deadline(noon).build(|| "bread");
    /// assert!(!task.is_expired());
    /// hand.advance(hour);
    /// assert!(task.is_expired());
    /// ```
    #[inline]
    pub fn is_expired(&self) -> bool {
        self.0.meta().is_expired()
    }

    /// What tells it from all others that are there, to those who have no more of it than what can be told
    /// of it.
    pub(crate) fn mark(&self) -> usize {
        self.0.meta().mark()
    }

    /// What tells it from all others that are there.
    pub(crate) fn address(&self) -> usize {
        self.0.address()
    }

    /// What it carries.
    pub(super) fn load(&self) -> Option<&Load> {
        Some(&self.0.meta().inherited()?.load)
    }

    pub(crate) fn shared_name(&self) -> Option<Name> {
        self.0.meta().name().cloned()
    }

    /// Where it was made.
    ///
    /// ```
    /// let (line, (task, _handle)) = (line!(), millpond::task::new(|| "flour"));
    /// assert_eq!(task.made_at().line(), line);
    /// ```
    pub fn made_at(&self) -> &'static Location<'static> {
        self.0.meta().made_at()
    }
}

/// Who knows of a task, and may have to stop it.
#[derive(Debug)]
pub(crate) struct Witness(raw::Witness<Meta>);

impl Witness {
    /// Whether its body has ended, or nobody is left who could run it.
    pub(crate) fn is_over(&self) -> bool {
        self.0.state().is_done() || self.0.is_alone()
    }

    /// Whether it has begun, or is cancelled: nobody will begin it any more.
    pub(crate) fn is_claimed(&self) -> bool {
        self.0.state().is_claimed()
    }

    pub(crate) fn is_of(&self, task: &Task) -> bool {
        self.address() == task.address()
    }

    /// Where the task is: as long as there is a witness no other task is there.
    pub(crate) fn address(&self) -> usize {
        self.0.address()
    }

    /// Cancels it if it has not begun; otherwise asks its body to stop, also if its handle was cancelled.
    pub(crate) fn stop(&self, reason: CancelReason) {
        if !self.0.give_up(reason) {
            self.0.token().set();
        }
    }
}

impl fmt::Debug for Task {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Task")
            .field("name", &self.name())
            .field("state", &self.0.state())
            .field("made_at", &format_args!("{}", self.made_at()))
            .finish()
    }
}
