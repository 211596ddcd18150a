//! The caller's side of a scope's task: waits for its value.

use super::job_task::{self, JobTask};
use crate::executor::traits::Executor;
use crate::task::{self, CancelReason, JoinGuard, Name, TaskError};
use crate::time::{Clock, Deadline};
use millpond_raw::park::Site;
use millpond_raw::scope::{Job, JobRef, JobState};
use millpond_raw::task::Outcome;
use millpond_raw::wait_queue::Ticket;
use std::fmt;
use std::task::Waker;
use std::time::Duration;

/// The handle of a task of a [`Scope`](super::Scope): wait for it, take its value, cancel it.
///
/// Dropping it lets the task go on. The scope waits for it, and resumes its panic.
///
/// ```
/// use millpond::executor::{ExecutorExt, ScopeError, ThreadPerTask};
///
/// let threads = ThreadPerTask::builder("mill", 4).build()?;
/// let text = String::from("rye, oats, barley");
/// let longest = threads.scope(|s| {
///     let longest = s.submit(|| text.split(", ").max_by_key(|name| name.len()))?;
///     Ok::<_, ScopeError>(longest.join()?) // a piece of `text`
/// })?;
/// assert_eq!(longest, Some("barley"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct ScopedHandle<'scope, T> {
    job: Job<'scope, T, JobTask>,
    executor: &'scope (dyn Executor + 'scope),
}

impl<'scope, T> ScopedHandle<'scope, T> {
    pub(super) fn new(
        job: Job<'scope, T, JobTask>,
        executor: &'scope (dyn Executor + 'scope),
    ) -> Self {
        ScopedHandle { job, executor }
    }

    /// Takes the value of the task. An unstarted task runs inline; otherwise this waits for it.
    ///
    /// # Errors
    ///
    /// The task panicked or was cancelled; or the caller, itself a task, was interrupted while it
    /// waited, or the task waits for it in turn ([`TaskError::Deadlock`]). A panic that is reported here
    /// does not resume in the scope.
    ///
    /// ```
    /// use millpond::executor::{ExecutorExt, ScopeError};
    /// use millpond::pool::ThreadPool;
    /// use std::{sync::mpsc, thread};
    ///
    /// let pool = ThreadPool::builder("mill").max(1).build()?;
    /// let (go, may_go) = mpsc::channel::<()>();
    /// pool.submit(move || may_go.recv())?; // keeps the only worker busy
    /// let miller = pool.scope(|s| {
    ///     let miller = s.submit(|| thread::current().id())?;
    ///     Ok::<_, ScopeError>(miller.join()?)
    /// })?;
    /// assert_eq!(miller, thread::current().id());
    /// # drop(go);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn join(self) -> Result<T, TaskError> {
        if self.executor.allows_inline() {
            job_task::run_inline(self.job.job());
        }
        self.join_until(Deadline::NEVER)
    }

    /// Waits for the task, but not longer than `timeout`, and takes its value. It does not run the task inline, unless the
    /// executor has dropped it. After a timeout or an interrupt the handle can be used again.
    ///
    /// # Errors
    ///
    /// As [`join`](ScopedHandle::join), or the timeout is over.
    ///
    /// # Panics
    ///
    /// If the value has been taken already.
    ///
    /// ```
    /// use millpond::executor::{ExecutorExt, ScopeError, ThreadPerTask};
    /// use std::{sync::mpsc, time::Duration};
    ///
    /// let threads = ThreadPerTask::builder("mill", 1).build()?;
    /// let (go, may_go) = mpsc::channel();
    /// threads.scope(move |s| {
    ///     let mut grain = s.submit(move || may_go.recv())?;
    ///     assert!(grain.join_timeout(Duration::from_millis(1)).unwrap_err().is_timed_out());
    ///     go.send("rye").unwrap();
    ///     assert_eq!(grain.join_timeout(Duration::MAX)?, Ok("rye"));
    ///     Ok::<_, ScopeError>(())
    /// })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn join_timeout(&mut self, timeout: Duration) -> Result<T, TaskError> {
        if let Some(outcome) = self.job.take() {
            return into_result(outcome);
        }
        self.join_until(self.clock().deadline(timeout))
    }

    fn join_until(&self, deadline: Deadline) -> Result<T, TaskError> {
        let job = self.job.job();
        while !job.state().is_finished() {
            if job.state().is_stub_dropped() {
                job_task::run_inline(job);
                continue;
            }
            self.wait(deadline)?;
        }
        let outcome = self.job.take();
        into_result(outcome.expect("the value of this task has been taken already"))
    }

    /// Waits until the task is finished, or the executor has dropped it.
    fn wait(&self, deadline: Deadline) -> Result<(), TaskError> {
        let mut registration = JobRegistration {
            job: self.job.job(),
            ticket: None,
        };
        let blocked = match job_task::join_target(self.job.job(), JobState::is_finished) {
            Some(target) => JoinGuard::enter(deadline, || target),
            None => Ok(JoinGuard::none()),
        };
        let blocked = blocked.map_err(task::deadlock)?;
        let site = Site::new("scope.join").on(self.executor);
        task::wait_registered(&blocked, site, &self.clock(), deadline, |waker| {
            registration.register(waker).then_some(Deadline::NEVER)
        })
    }

    fn clock(&self) -> Clock {
        match self.job.job().meta() {
            Some(job_task) => job_task.task.clock(),
            None => self.executor.clock(),
        }
    }

    /// Cancels the task. One that has not started never will, and its closure is dropped before this
    /// returns. One that runs goes on, and its value is dropped; the scope still waits for it.
    /// Returns false if it was finished before.
    ///
    /// ```
    /// use millpond::executor::{ExecutorExt, ScopeError, ThreadPerTask};
    /// use std::sync::mpsc;
    ///
    /// let threads = ThreadPerTask::builder("mill", 1).build()?;
    /// let (go, may_go) = mpsc::channel::<()>();
    /// threads.scope(move |s| {
    ///     let grain = s.submit(move || may_go.recv())?;
    ///     assert!(grain.cancel());
    ///     assert!(!grain.cancel());
    ///     assert!(grain.join().unwrap_err().is_cancelled());
    ///     drop(go); // lets it end, which the scope waits for
    ///     Ok::<_, ScopeError>(())
    /// })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn cancel(&self) -> bool {
        job_task::cancel(self.job.job(), CancelReason::Requested)
    }

    /// Cancels the task and, if it runs, asks it to stop: see [`crate::interrupt`]. Returns whether
    /// this call cancelled it; a task that was cancelled before and still runs is asked all the same.
    ///
    /// ```
    /// use millpond::executor::{ExecutorExt, ScopeError, ThreadPerTask};
    /// use millpond::interrupt;
    /// use std::time::Duration;
    ///
    /// let threads = ThreadPerTask::builder("mill", 1).build()?;
    /// threads.scope(|s| {
    ///     // An hour, and the scope waits for it, unless it is asked to stop.
    ///     let nap = s.submit(|| interrupt::sleep(Duration::from_secs(3600)))?;
    ///     assert!(nap.interrupt());
    ///     assert!(nap.join().unwrap_err().is_cancelled());
    ///     Ok::<_, ScopeError>(())
    /// })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[doc(alias = "cancel")]
    pub fn interrupt(&self) -> bool {
        job_task::interrupt(self.job.job(), CancelReason::Requested)
    }

    /// Whether there is an outcome. Once true it stays true, and joining does not block. A task that its executor has
    /// dropped gets one when it is joined, or at the end of the scope.
    ///
    /// ```
    /// use millpond::executor::{ExecutorExt, ScopeError, ThreadPerTask};
    /// use std::{sync::mpsc, time::Duration};
    ///
    /// let threads = ThreadPerTask::builder("mill", 1).build()?;
    /// let (go, may_go) = mpsc::channel();
    /// threads.scope(move |s| {
    ///     let mut grain = s.submit(move || may_go.recv())?;
    ///     assert!(!grain.is_finished());
    ///     go.send("rye").unwrap();
    ///     assert_eq!(grain.join_timeout(Duration::MAX)?, Ok("rye"));
    ///     assert!(grain.is_finished());
    ///     Ok::<_, ScopeError>(())
    /// })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn is_finished(&self) -> bool {
        self.job.job().state().is_finished()
    }

    /// Whether it has started, or never will because it was cancelled.
    ///
    /// ```
    /// use millpond::executor::{ExecutorExt, ScopeError, ThreadPerTask};
    /// use std::sync::mpsc;
    ///
    /// let threads = ThreadPerTask::builder("mill", 1).build()?;
    /// let ((begin, begun), (go, may_go)) = (mpsc::channel(), mpsc::channel::<()>());
    /// threads.scope(move |s| {
    ///     let grain = s.submit(move || (begin.send(()), may_go.recv()))?;
    ///     begun.recv().unwrap();
    ///     assert!(grain.is_started() && !grain.is_finished());
    ///     drop(go);
    ///     Ok::<_, ScopeError>(())
    /// })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn is_started(&self) -> bool {
        self.job.job().state().is_claimed()
    }

    /// Whether it was cancelled.
    ///
    /// ```
    /// use millpond::executor::{ExecutorExt, ScopeError, ThreadPerTask};
    /// use std::sync::mpsc;
    ///
    /// let threads = ThreadPerTask::builder("mill", 1).build()?;
    /// let (go, may_go) = mpsc::channel::<()>();
    /// threads.scope(move |s| {
    ///     let grain = s.submit(move || may_go.recv())?;
    ///     assert!(!grain.is_cancelled());
    ///     grain.cancel();
    ///     assert!(grain.is_cancelled());
    ///     drop(go);
    ///     Ok::<_, ScopeError>(())
    /// })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn is_cancelled(&self) -> bool {
        self.job.job().state().cancelled().is_some()
    }
}

fn into_result<T>(outcome: Outcome<T>) -> Result<T, TaskError> {
    match outcome {
        Outcome::Completed(value) => Ok(value),
        Outcome::Panicked(panic) => Err(TaskError::Panicked(panic)),
        Outcome::Cancelled(reason) => Err(TaskError::Cancelled(reason)),
    }
}

/// The registration of a waiter of a job, removed when it is dropped.
struct JobRegistration<'a> {
    job: &'a JobRef<JobTask>,
    ticket: Option<Ticket>,
}

impl JobRegistration<'_> {
    /// Registers the waker, or updates it. Returns false if there is nothing to wait for.
    fn register(&mut self, waker: &Waker) -> bool {
        if let Some(ticket) = self.ticket {
            if self.job.update_waker(ticket, waker) {
                return true;
            }
        }
        let over = |state: JobState| state.is_finished() || state.is_stub_dropped();
        self.ticket = self.job.register(waker, over);
        self.ticket.is_some()
    }
}

impl Drop for JobRegistration<'_> {
    fn drop(&mut self) {
        if let Some(ticket) = self.ticket.take() {
            self.job.unregister(ticket);
        }
    }
}

impl<T> fmt::Debug for ScopedHandle<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let job = self.job.job();
        let name = job.meta().and_then(|job_task| job_task.task.shared_name());
        f.debug_struct("ScopedHandle")
            .field("name", &name.as_ref().map(Name::as_str))
            .field("state", &job.state())
            .finish()
    }
}
