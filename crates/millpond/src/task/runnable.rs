//! The executor's side of a task.

use super::blocked_joins::address;
use super::delivered::notify_delivered;
use super::finish::FinishAlarm;
use super::meta::Meta;
use super::name::Name;
use super::task_local::TaskLocals;
use super::{CancelReason, Panic, Priority, QueueTag, Tombstone, context};
use crate::time::{Clock, Deadline, ShortTimestamp};
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
/// assert_eq!(error.to_string(), "the task was cancelled: its executor was shut down before it ran");
/// ```
#[must_use = "a task that is dropped unrun is cancelled"]
pub struct Task(raw::Task<Meta>);

impl Task {
    pub(super) fn from_raw(task: raw::Task<Meta>) -> Self {
        Task(task)
    }

    /// Runs it on this thread, unless it was cancelled or a waiter has run it inline.
    ///
    /// A panic of the body goes to the handle; without a handle it is returned.
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
        self.run_with_panic_hook(|_| ())
    }

    /// As [`run`](Task::run), and lets `panicked`, which must not panic, look at what the body panicked with
    /// before that goes to the handle.
    #[inline(always)]
    pub(crate) fn run_with_panic_hook(self, panicked: impl FnOnce(&Panic)) -> Ran {
        let inherited = self.0.meta().inherited();
        let token = address(self.0.token());
        let ran = if context::is_plain(inherited) {
            self.0.run_with_panic_hook(panicked)
        } else {
            self.run_in_context(panicked)
        };
        notify_delivered(token);
        ran
    }

    /// In the context that it has inherited.
    #[inline(never)]
    fn run_in_context(self, panicked: impl FnOnce(&Panic)) -> Ran {
        let inherited = self.0.meta().inherited().cloned();
        let _alarm = FinishAlarm::of(self.0.meta(), || self.0.witness());
        context::enter(inherited, || self.0.run_with_panic_hook(panicked))
    }

    /// How many handles and witnesses refer to it.
    pub(crate) fn others(&self) -> usize {
        self.0.others()
    }

    /// As [`cancel`](Task::cancel); returns the tombstone if it was [gone](Task::is_gone) before.
    pub(crate) fn cancel_or_tombstone(self, reason: CancelReason) -> Option<Tombstone> {
        if self.0.give_up(reason) {
            None
        } else {
            Some(self.tombstone())
        }
    }

    /// As [`cancel`](Task::cancel), and keeps the empty task.
    pub(crate) fn cancel_by_ref(&self, reason: CancelReason) -> bool {
        self.0.give_up(reason)
    }

    /// A reference without a claim to the outcome, which may outlive the task.
    pub(crate) fn witness(&self) -> Witness {
        Witness(self.0.witness())
    }

    /// Sets the tag of the queue that the task is about to enter, and the time. Done by the engine before it enqueues
    /// the task.
    #[inline]
    pub(crate) fn set_tag(&self, tag: Option<&QueueTag>, stamp: ShortTimestamp) {
        self.0.meta().tag.set(tag, stamp);
    }

    /// Tag and time in one word. Together with the address it identifies the task to its engine; the address alone may
    /// be reused when the task is gone.
    pub(crate) fn tag_word(&self) -> u64 {
        self.0.meta().tag.word()
    }

    /// When an engine enqueued it.
    #[inline]
    pub(crate) fn queued_since(&self) -> Option<ShortTimestamp> {
        self.0.meta().tag.stamp()
    }

    /// Whether it is exempt from shedding.
    pub(crate) fn is_kept(&self) -> bool {
        self.0.meta().tag.is_kept()
    }

    /// Takes the closure back out of the task, unrun.
    ///
    /// # Errors
    ///
    /// The task, if its closure is gone or is no `F`.
    pub(crate) fn reclaim<F: 'static>(self, reason: CancelReason) -> Result<F, Self> {
        self.0.reclaim(reason).map_err(Task)
    }

    /// Cancels it, for this reason. Returns false, and does nothing, if it was [gone](Task::is_gone) before: a body that
    /// a waiter runs inline goes on.
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

    /// What became of it, if it is [gone](Task::is_gone).
    pub(crate) fn tombstone(&self) -> Tombstone {
        self.0.state().tombstone()
    }

    /// Removes the tag: the task is no longer in a queue of its engine. Returns whether this call removed it. Whether the
    /// task is gone must be asked afterwards (INLINE-5).
    pub(crate) fn detach(&self) -> bool {
        self.0.meta().tag.detach() != 0
    }

    /// Cancels it as its handle would: also if a waiter runs it inline.
    pub(crate) fn cancel_even_if_run(self, reason: CancelReason) -> bool {
        self.0.cancel(reason)
    }

    /// Whether there is nothing left to run: it is cancelled, or a waiter runs it inline.
    ///
    /// ```
    /// let (task, flour) = millpond::task::new(|| "flour");
    /// assert!(!task.is_gone());
    /// assert_eq!(flour.run_or_join()?, "flour");
    /// assert!(task.is_gone()); // an executor that holds it has nothing to run
    /// # Ok::<(), millpond::task::TaskError>(())
    /// ```
    pub fn is_gone(&self) -> bool {
        self.0.state().is_claimed()
    }

    /// The name of the task.
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

    /// The time by which it must have started.
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

    /// The priority of the task.
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

    /// Whether one of its deadlines has passed, by its own clock. Without a deadline the clock is not read.
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
        self.0.meta().expiry().is_some()
    }

    /// Why it is not to be started any more, if one of its deadlines has passed.
    #[inline]
    pub(crate) fn expiry(&self) -> Option<CancelReason> {
        self.0.meta().expiry()
    }

    /// Whether there is a time by which it must have ended.
    #[inline]
    pub(crate) fn has_finish_by(&self) -> bool {
        self.0.meta().finish_by() != Deadline::NEVER
    }

    /// The clock of its deadlines.
    pub(crate) fn clock(&self) -> Clock {
        self.0.meta().clock()
    }

    /// The time by which it must have ended.
    ///
    /// ```
    /// use millpond::task::{self, TaskSpec};
    /// use millpond::time::{Clock, Deadline};
    /// use std::time::Duration;
    ///
    /// let noon = Clock::system().deadline(Duration::from_secs(3600));
    /// let (task, _handle) = TaskSpec::new().finish_by(noon).build(|| "bread");
    /// assert_eq!(task.finish_by(), noon);
    /// assert_eq!(task::new(|| "bread").0.finish_by(), Deadline::NEVER);
    /// ```
    pub fn finish_by(&self) -> Deadline {
        self.0.meta().finish_by()
    }

    /// Identifies the task among all live ones, also through a [`TaskView`](super::TaskView).
    pub(crate) fn mark(&self) -> usize {
        self.0.meta().mark()
    }

    /// The address of its cell: identifies the task among all live ones.
    pub(crate) fn address(&self) -> usize {
        self.0.address()
    }

    pub(super) fn task_locals(&self) -> Option<&TaskLocals> {
        Some(&self.0.meta().inherited()?.locals)
    }

    pub(crate) fn shared_name(&self) -> Option<Name> {
        self.0.meta().name().cloned()
    }

    /// The source location where it was created.
    ///
    /// ```
    /// let (line, (task, _handle)) = (line!(), millpond::task::new(|| "flour"));
    /// assert_eq!(task.location().line(), line);
    /// ```
    pub fn location(&self) -> &'static Location<'static> {
        self.0.meta().location()
    }
}

/// A reference to a task that can stop it, and has no claim to its outcome.
#[derive(Debug)]
pub(crate) struct Witness(raw::Witness<Meta>);

impl Witness {
    /// Whether its body has ended, or can no longer be run because nothing else refers to the task.
    pub(crate) fn is_over(&self) -> bool {
        self.0.state().is_done() || self.0.is_alone()
    }

    /// Whether it has started, or was cancelled and never will.
    pub(crate) fn is_claimed(&self) -> bool {
        self.0.state().is_claimed()
    }

    pub(crate) fn is_of(&self, task: &Task) -> bool {
        self.address() == task.address()
    }

    /// The address of its cell, which is not reused as long as there is a witness.
    pub(crate) fn address(&self) -> usize {
        self.0.address()
    }

    /// Cancels it if it has not started; otherwise asks its body to stop, also if its handle was cancelled.
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
            .field("location", &format_args!("{}", self.location()))
            .finish()
    }
}
