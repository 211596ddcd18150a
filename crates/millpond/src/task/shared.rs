//! A handle that can be cloned: it shares the value and does not take it.

use super::blocked_joins::{JoinGuard, JoinTarget};
use super::expiry::{self, DeadlineAlarm};
use super::handle::{deadlock, spin_until_finished, wait_registered};
use super::inline;
use super::meta::Meta;
use super::{CancelReason, TaskError};
use crate::time::Deadline;
use millpond_raw::park::Site;
use millpond_raw::task::{self as raw, Outcome};
use millpond_raw::wait_queue::Ticket;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

/// A handle to a task that can be cloned. Each clone sees the value, none takes it.
///
/// ```
/// use millpond::task;
///
/// let (task, handle) = task::new(|| String::from("flour"));
/// let one = handle.shared();
/// let two = one.clone();
/// std::thread::spawn(move || task.run());
/// assert_eq!(one.join()?, "flour");
/// assert_eq!(two.join()?, "flour");
/// # Ok::<(), task::TaskError>(())
/// ```
pub struct SharedHandle<T> {
    pub(super) raw: raw::Shared<T, Meta>,
    /// The ticket of this handle's future in the wait queue.
    ticket: Option<Ticket>,
    alarm: DeadlineAlarm,
}

impl<T> SharedHandle<T> {
    pub(super) fn from_raw(raw: raw::Shared<T, Meta>) -> Self {
        SharedHandle {
            raw,
            ticket: None,
            alarm: DeadlineAlarm::new(),
        }
    }

    /// Waits for the task and returns a reference to its value.
    ///
    /// # Errors
    ///
    /// As [`TaskHandle::join`](super::TaskHandle::join); of a panic only the text, since the payload cannot be shared.
    ///
    /// ```
    /// use millpond::task;
    ///
    /// let (task, handle) = task::new(|| -> String { panic!("the dam broke") });
    /// let one = handle.shared();
    /// let two = one.clone();
    /// task.run();
    /// // Each hears of the panic.
    /// assert_eq!(one.join().unwrap_err().to_string(), "the task panicked: the dam broke");
    /// assert_eq!(two.join().unwrap_err().to_string(), "the task panicked: the dam broke");
    /// ```
    pub fn join(&self) -> Result<&T, TaskError> {
        self.join_until(Deadline::NEVER)
    }

    /// Waits for the task, but not longer than `timeout`.
    ///
    /// # Errors
    ///
    /// As [`join`](SharedHandle::join), or the timeout is over.
    ///
    /// ```
    /// use millpond::task;
    /// use std::time::Duration;
    ///
    /// let (task, handle) = task::new(|| "flour");
    /// let flour = handle.shared();
    /// assert!(flour.join_timeout(Duration::from_millis(1)).unwrap_err().is_timed_out());
    /// task.run();
    /// assert_eq!(flour.join_timeout(Duration::from_millis(1))?, &"flour");
    /// # Ok::<(), task::TaskError>(())
    /// ```
    pub fn join_timeout(&self, timeout: Duration) -> Result<&T, TaskError> {
        self.join_until(self.raw.meta().clock().deadline(timeout))
    }

    fn join_until(&self, deadline: Deadline) -> Result<&T, TaskError> {
        let mut registration = SharedRegistration {
            raw: &self.raw,
            ticket: None,
        };
        let seen = self.raw.state();
        if !seen.is_finished() && seen.is_of_another_process() {
            return Err(TaskError::Forked);
        }
        let is_finished = seen.is_finished()
            || inline::self_join(&self.raw, deadline)
            || spin_until_finished(deadline, || self.raw.state());
        if !is_finished {
            let site = Site::new("task.join").on(self.raw.token());
            let clock = self.raw.meta().clock();
            let blocked = JoinGuard::enter(deadline, || JoinTarget::task(self.raw.witness()));
            let blocked = blocked.map_err(deadlock)?;
            wait_registered(&blocked, site, &clock, deadline, |waker| {
                let again = expiry::check(&self.raw);
                registration.register(waker).then_some(again)
            })?;
        }
        self.try_join()
            .expect("the wait has succeeded, so the task is finished")
    }

    /// The value, if the task is finished.
    ///
    /// ```
    /// use millpond::task;
    ///
    /// let (task, handle) = task::new(|| "flour");
    /// let flour = handle.shared();
    /// assert!(flour.try_join().is_none());
    /// task.run();
    /// // It is shared, not taken.
    /// assert!(matches!(flour.try_join(), Some(Ok(&"flour"))));
    /// assert!(matches!(flour.try_join(), Some(Ok(&"flour"))));
    /// ```
    pub fn try_join(&self) -> Option<Result<&T, TaskError>> {
        self.raw.outcome().map(|outcome| match outcome {
            Outcome::Completed(value) => Ok(value),
            Outcome::Panicked(panic) => Err(TaskError::Panicked(copy_of(panic))),
            Outcome::Cancelled(reason) => Err(TaskError::Cancelled(reason)),
        })
    }

    /// As [`TaskHandle::cancel`](super::TaskHandle::cancel).
    ///
    /// ```
    /// use millpond::task;
    ///
    /// let (task, handle) = task::new(|| "flour");
    /// let one = handle.shared();
    /// let two = one.clone();
    /// assert!(one.cancel());
    /// // For all of them.
    /// assert!(two.join().unwrap_err().is_cancelled());
    /// assert!(task.is_gone());
    /// ```
    pub fn cancel(&self) -> bool {
        let found = self.raw.cancel(CancelReason::Requested);
        self.raw.meta().record_cancelled(found)
    }

    /// As [`TaskHandle::interrupt`](super::TaskHandle::interrupt).
    ///
    /// ```
    /// use millpond::{interrupt, task};
    /// use std::{sync::mpsc, time::Duration};
    ///
    /// let (tell, told) = mpsc::channel();
    /// let (task, handle) = task::new(move || {
    ///     tell.send(false).unwrap();
    ///     tell.send(interrupt::sleep(Duration::from_secs(3600)).is_err()).unwrap();
    /// });
    /// let handle = handle.shared();
    /// let miller = std::thread::spawn(move || task.run());
    /// assert!(!told.recv()?); // it has started
    /// assert!(handle.interrupt());
    /// assert!(told.recv()?);
    /// # miller.join().unwrap();
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn interrupt(&self) -> bool {
        let found = self.raw.interrupt(CancelReason::Requested);
        self.raw.meta().record_cancelled(found)
    }

    /// As [`TaskHandle::is_finished`](super::TaskHandle::is_finished).
    ///
    /// ```
    /// let (task, handle) = millpond::task::new(|| "flour");
    /// let flour = handle.shared();
    /// assert!(!flour.is_finished());
    /// task.run();
    /// assert!(flour.is_finished());
    /// ```
    pub fn is_finished(&self) -> bool {
        self.raw.state().is_finished()
    }

    /// As [`TaskHandle::is_cancelled`](super::TaskHandle::is_cancelled).
    ///
    /// ```
    /// let (_task, handle) = millpond::task::new(|| "flour");
    /// let flour = handle.shared();
    /// assert!(!flour.is_cancelled());
    /// flour.cancel();
    /// assert!(flour.is_cancelled());
    /// ```
    pub fn is_cancelled(&self) -> bool {
        self.raw.state().cancelled().is_some()
    }
}

/// A panic with the same text: the payload itself stays in the cell.
fn copy_of(panic: &raw::Panic) -> raw::Panic {
    match panic.message() {
        Some(text) => raw::Panic::new(Box::new(text.to_owned())),
        None => raw::Panic::new(Box::new(())),
    }
}

/// The registration of a waiter of a shared task, removed when it is dropped.
struct SharedRegistration<'a, T> {
    raw: &'a raw::Shared<T, Meta>,
    ticket: Option<Ticket>,
}

impl<T> SharedRegistration<'_, T> {
    /// Registers the waker, or updates it. Returns false if there is nothing to wait for.
    fn register(&mut self, waker: &Waker) -> bool {
        if let Some(ticket) = self.ticket {
            if self.raw.update_waker(ticket, waker) {
                return true;
            }
        }
        self.ticket = self.raw.register(waker);
        self.ticket.is_some()
    }
}

impl<T> Drop for SharedRegistration<'_, T> {
    fn drop(&mut self) {
        if let Some(ticket) = self.ticket.take() {
            self.raw.unregister(ticket);
        }
    }
}

impl<T: Clone> Future for SharedHandle<T> {
    type Output = Result<T, TaskError>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.get_mut();
        let seen = this.raw.state();
        if !seen.is_finished() && seen.is_of_another_process() {
            return Poll::Ready(Err(TaskError::Forked));
        }
        this.alarm.check(&this.raw, context.waker());
        let mut registration = SharedRegistration {
            raw: &this.raw,
            ticket: this.ticket.take(),
        };
        let waits = !this.raw.state().is_finished() && registration.register(context.waker());
        if waits {
            this.ticket = registration.ticket.take();
            return Poll::Pending;
        }
        drop(registration);
        Poll::Ready(this.try_join().expect("finished").cloned())
    }
}

impl<T> Clone for SharedHandle<T> {
    fn clone(&self) -> Self {
        SharedHandle {
            raw: self.raw.clone(),
            ticket: None,
            alarm: DeadlineAlarm::new(),
        }
    }
}

impl<T> Drop for SharedHandle<T> {
    fn drop(&mut self) {
        if let Some(ticket) = self.ticket.take() {
            self.raw.unregister(ticket);
        }
    }
}

impl<T> fmt::Debug for SharedHandle<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SharedHandle")
            .field("state", &self.raw.state())
            .finish_non_exhaustive()
    }
}
