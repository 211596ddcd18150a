//! The caller's side of a task: waits for its value.

use super::blocked_joins::{JoinGuard, JoinTarget};
use super::expiry::{self, DeadlineAlarm, Expiry};
use super::inline::{self, InlineCandidate};
use super::meta::Meta;
use super::name::Name;
use super::{CancelReason, Cycle, SharedHandle, TaskError};
use crate::interrupt::{self, Look, WaitError};
use crate::time::{Clock, Deadline};
use millpond_raw::park::Site;
use millpond_raw::task::{self as raw, Outcome};
use std::fmt;
use std::future::Future;
use std::ops::Deref;
use std::panic::Location;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

/// The handle of a task: block on it, `.await` it, cancel it.
///
/// Dropping it lets the task go on; [`abort_on_drop`](TaskHandle::abort_on_drop) interrupts it instead.
///
/// ```
/// use millpond::task;
/// use std::time::Duration;
///
/// let (task, mut handle) = task::new(|| 6 * 7);
/// assert!(handle.join_timeout(Duration::ZERO).unwrap_err().is_timed_out());
/// task.run();
/// assert!(handle.is_finished());
/// assert_eq!(handle.join()?, 42);
/// # Ok::<(), millpond::task::TaskError>(())
/// ```
#[doc(alias = "Future")]
#[doc(alias = "FutureTask")]
pub struct TaskHandle<T> {
    raw: raw::Handle<T, Meta>,
    alarm: DeadlineAlarm,
}

impl<T> TaskHandle<T> {
    pub(super) fn from_raw(raw: raw::Handle<T, Meta>) -> Self {
        TaskHandle {
            raw,
            alarm: DeadlineAlarm::new(),
        }
    }

    /// Waits for the task and takes its value.
    ///
    /// # Errors
    ///
    /// The task panicked or was cancelled; or the caller, itself a task, was interrupted, or the task
    /// waits for it in turn ([`TaskError::Deadlock`]). To go on waiting after an interrupt, use
    /// [`wait`](TaskHandle::wait) first.
    ///
    /// # Inside a pool
    ///
    /// If the caller is a task of a pool, and this task is in the queue of the same pool, it is run inline, on the
    /// caller's thread, instead of being waited for: so a pool cannot starve on tasks that join tasks behind them. Only
    /// this task is run so, never another. A timeout does not cut it short.
    ///
    /// ```
    /// use millpond::executor::{ExecutorExt, Lifecycle};
    /// use millpond::pool::ThreadPool;
    ///
    /// let pool = ThreadPool::builder("mill").max(1).build()?;
    /// let mill = pool.clone();
    /// let bread = pool.submit(move || {
    ///     // It waits behind this task for the only worker, which therefore runs it here.
    ///     let flour = mill.submit(|| "flour").unwrap();
    ///     format!("bread of {}", flour.join().unwrap())
    /// })?;
    /// assert_eq!(bread.join()?, "bread of flour");
    /// pool.close()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[doc(alias = "get")]
    #[track_caller]
    pub fn join(mut self) -> Result<T, TaskError> {
        self.join_until(Deadline::NEVER)
    }

    /// Waits for the task, but not longer than `timeout`, and takes its value. After a timeout or an interrupt the handle
    /// can be used again.
    ///
    /// The timeout limits waiting alone. An unstarted task of the caller's own pool runs [inline](TaskHandle::join), as
    /// long as that takes.
    ///
    /// # Errors
    ///
    /// As [`join`](TaskHandle::join), or the timeout is over.
    ///
    /// ```
    /// use millpond::task;
    /// use std::time::Duration;
    ///
    /// let (task, mut flour) = task::new(|| "flour");
    /// let error = flour.join_timeout(Duration::from_millis(1)).unwrap_err();
    /// assert!(error.is_timed_out());
    /// // Nothing is lost by that: the task is still to be run, and to be joined.
    /// task.run();
    /// assert_eq!(flour.join_timeout(Duration::from_millis(1))?, "flour");
    /// # Ok::<(), task::TaskError>(())
    /// ```
    #[doc(alias = "get")]
    #[track_caller]
    pub fn join_timeout(&mut self, timeout: Duration) -> Result<T, TaskError> {
        // Reading the clock costs more than looking at a finished task.
        if let Some(result) = self.try_join() {
            return result;
        }
        self.join_until(self.clock().deadline(timeout))
    }

    /// Waits for the task until `deadline`, and takes its value.
    ///
    /// # Errors
    ///
    /// As [`join_timeout`](TaskHandle::join_timeout).
    ///
    /// ```
    /// use millpond::task;
    /// use millpond::time::Clock;
    /// use std::time::Duration;
    ///
    /// let ((ground, mut rye), (_unground, mut oats)) = (task::new(|| "rye"), task::new(|| "oats"));
    /// ground.run();
    /// // One deadline for both, however long the first one takes.
    /// let deadline = Clock::system().deadline(Duration::from_millis(1));
    /// assert_eq!(rye.join_until(deadline)?, "rye");
    /// assert!(oats.join_until(deadline).unwrap_err().is_timed_out());
    /// # Ok::<(), task::TaskError>(())
    /// ```
    #[track_caller]
    pub fn join_until(&mut self, deadline: Deadline) -> Result<T, TaskError> {
        self.wait_until(deadline)?;
        self.try_join().unwrap_or_else(|| panic!("{TAKEN}"))
    }

    /// Takes the value if the task is finished, and does not wait.
    ///
    /// A value can be taken once; after that this is `None` again.
    ///
    /// ```
    /// use millpond::task;
    ///
    /// let (task, mut flour) = task::new(|| "flour");
    /// assert!(flour.try_join().is_none());
    /// task.run();
    /// assert!(matches!(flour.try_join(), Some(Ok("flour"))));
    /// assert!(flour.try_join().is_none());
    /// ```
    #[doc(alias = "resultNow")]
    pub fn try_join(&mut self) -> Option<Result<T, TaskError>> {
        self.raw.take().map(into_result)
    }

    /// Waits until the task is finished, and leaves its value where it is.
    ///
    /// # Errors
    ///
    /// The caller, itself a task, was interrupted, or the task waits for it in turn.
    ///
    /// ```
    /// use millpond::task;
    ///
    /// let (task, mut flour) = task::new(|| "flour");
    /// let miller = std::thread::spawn(move || task.run());
    /// flour.wait()?;
    /// assert!(flour.is_finished());
    /// assert_eq!(flour.join()?, "flour");
    /// # miller.join().unwrap();
    /// # Ok::<(), task::TaskError>(())
    /// ```
    #[track_caller]
    pub fn wait(&mut self) -> Result<(), TaskError> {
        self.wait_until(Deadline::NEVER)
    }

    #[track_caller]
    fn wait_until(&mut self, deadline: Deadline) -> Result<(), TaskError> {
        let seen = self.raw.state();
        if seen.is_finished() {
            return Ok(());
        }
        if seen.is_of_another_process() {
            return Err(TaskError::Forked);
        }
        if inline::self_join(&self.raw, deadline)
            || spin_until_finished(deadline, || self.raw.state())
        {
            return Ok(());
        }
        interrupt::check_runtime("TaskHandle::join", Location::caller(), AWAIT);
        let clock = self.clock();
        let raw = &mut self.raw;
        let blocked = JoinGuard::enter(deadline, || JoinTarget::task(raw.witness()));
        let blocked = blocked.map_err(deadlock)?;
        let site = Site::new("task.join").on(raw.token());
        let waited = wait_registered(&blocked, site, &clock, deadline, |waker| {
            let again = expiry::check(&*raw);
            raw.register(waker).then_some(again)
        });
        self.raw.unregister();
        waited
    }

    /// Runs the task on this thread if it is unstarted, otherwise waits for it: no wake-up, no second thread. This is for
    /// a caller that has nothing else to do.
    ///
    /// # Errors
    ///
    /// As [`join`](TaskHandle::join).
    ///
    /// ```
    /// let (_queued_somewhere, handle) = millpond::task::new(|| 42);
    /// assert_eq!(handle.run_or_join()?, 42);
    /// # Ok::<(), millpond::task::TaskError>(())
    /// ```
    pub fn run_or_join(self) -> Result<T, TaskError> {
        self.run_here();
        self.join()
    }

    /// Runs the task on this thread, if it is unstarted.
    pub(crate) fn run_here(&self) {
        if !self.raw.state().is_of_another_process() {
            inline::run(&self.raw);
        }
    }

    /// The value, if there is one that has not been taken.
    pub(crate) fn peek(&mut self) -> Option<&T> {
        self.raw.peek()
    }

    /// Cancels the task. One that has not started never will, and its closure is dropped before
    /// this returns. One that runs goes on, and its value is dropped. Either way the handle is
    /// finished at once. Returns false if it was finished before.
    ///
    /// ```
    /// use millpond::task::{self, Ran};
    /// use std::sync::Arc;
    ///
    /// let grain = Arc::new("rye");
    /// let own = Arc::clone(&grain);
    /// let (task, handle) = task::new(move || own.len());
    /// assert!(handle.cancel());
    /// // The closure is gone, and what it owned with it, although the task is still there.
    /// assert_eq!(Arc::strong_count(&grain), 1);
    /// assert!(matches!(task.run(), Ran::Gone(_)));
    /// assert!(!handle.cancel());
    /// ```
    pub fn cancel(&self) -> bool {
        let found = self.raw.cancel(CancelReason::Requested);
        self.raw.meta().record_cancelled(found)
    }

    /// Cancels the task and, if it runs, asks it to stop: see [`crate::interrupt`]. Returns whether this
    /// call cancelled it; a task that was cancelled before and still runs is asked all the same.
    ///
    /// ```
    /// use millpond::executor::{ExecutorExt, ThreadPerTask};
    /// use millpond::interrupt::{self, Interrupted};
    /// use std::{sync::mpsc, time::Duration};
    ///
    /// let threads = ThreadPerTask::builder("mill", 1).build()?;
    /// let (tell, told) = mpsc::channel();
    /// let handle = threads.submit(move || {
    ///     tell.send(Ok(())).unwrap();
    ///     tell.send(interrupt::sleep(Duration::from_secs(3600))).unwrap();
    /// })?;
    /// assert_eq!(told.recv()?, Ok(())); // it has started
    /// assert!(handle.interrupt());
    /// assert_eq!(told.recv()?, Err(Interrupted));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[doc(alias = "cancel")]
    pub fn interrupt(&self) -> bool {
        let found = self.raw.interrupt(CancelReason::Requested);
        self.raw.meta().record_cancelled(found)
    }

    /// Interrupts the task on behalf of a caller that has stopped waiting for it.
    pub(crate) fn abandon(&self) {
        let found = self.raw.interrupt(CancelReason::Abandoned);
        self.raw.meta().record_cancelled(found);
    }

    /// For running it inline, if it is in the queue of the pool whose worker this is.
    pub(crate) fn inline_candidate(&self) -> Option<InlineCandidate> {
        InlineCandidate::of(&self.raw)
    }

    /// The address of its cell: identifies the task among all live ones.
    pub(crate) fn address(&self) -> usize {
        self.raw.address()
    }

    /// Whether there is an outcome. Once true it stays true, and joining does not block.
    ///
    /// ```
    /// let (task, flour) = millpond::task::new(|| "flour");
    /// assert!(!flour.is_finished());
    /// task.run();
    /// assert!(flour.is_finished());
    /// ```
    #[doc(alias = "isDone")]
    pub fn is_finished(&self) -> bool {
        self.raw.state().is_finished()
    }

    /// Whether it has started, or never will because it was cancelled.
    ///
    /// ```
    /// use millpond::task;
    /// use std::sync::mpsc;
    ///
    /// let ((begin, begun), (go, may_go)) = (mpsc::channel(), mpsc::channel());
    /// let (task, handle) = task::new(move || (begin.send(()), may_go.recv()));
    /// assert!(!handle.is_started());
    /// let miller = std::thread::spawn(move || task.run());
    /// begun.recv()?;
    /// assert!(handle.is_started() && !handle.is_finished());
    /// go.send(())?;
    /// # miller.join().unwrap();
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn is_started(&self) -> bool {
        self.raw.state().is_claimed()
    }

    /// Whether it has started, also if it was cancelled afterwards.
    pub(crate) fn has_begun(&self) -> bool {
        self.raw.state().has_begun()
    }

    /// Whether it was cancelled.
    ///
    /// ```
    /// let (task, handle) = millpond::task::new(|| "flour");
    /// assert!(!handle.is_cancelled());
    /// drop(task); // it can no longer run
    /// assert!(handle.is_cancelled());
    /// ```
    pub fn is_cancelled(&self) -> bool {
        self.raw.state().cancelled().is_some()
    }

    /// The name of the task.
    ///
    /// ```
    /// use millpond::task::TaskSpec;
    ///
    /// let (_task, handle) = TaskSpec::new().name("grind rye").build(|| ());
    /// assert_eq!(handle.name(), Some("grind rye"));
    /// ```
    pub fn name(&self) -> Option<&str> {
        self.raw.meta().name().map(Name::as_str)
    }

    /// The time by which it must have started.
    ///
    /// ```
    /// use millpond::task::TaskSpec;
    /// use millpond::time::Clock;
    /// use std::time::Duration;
    ///
    /// let noon = Clock::system().deadline(Duration::from_secs(3600));
    /// let (_task, handle) = TaskSpec::new().deadline(noon).build(|| "bread");
    /// assert_eq!(handle.deadline(), noon);
    /// ```
    pub fn deadline(&self) -> Deadline {
        self.raw.meta().deadline()
    }

    /// The source location where it was created.
    ///
    /// ```
    /// let (line, (_task, handle)) = (line!(), millpond::task::new(|| "flour"));
    /// assert_eq!(handle.location().line(), line);
    /// ```
    pub fn location(&self) -> &'static Location<'static> {
        self.raw.meta().location()
    }

    /// A handle that cancels the task when it is dropped, and asks it to stop if it runs.
    ///
    /// ```
    /// use millpond::task::{self, Ran};
    ///
    /// let (task, handle) = task::new(|| "flour");
    /// let wanted = handle.abort_on_drop();
    /// assert!(!wanted.is_cancelled());
    /// drop(wanted); // as an early return does
    /// assert!(matches!(task.run(), Ran::Gone(_)));
    /// ```
    pub fn abort_on_drop(self) -> AbortOnDrop<T> {
        AbortOnDrop { handle: Some(self) }
    }

    /// A handle that can be cloned: any number of threads may wait, and each gets a reference to the value.
    ///
    /// # Panics
    ///
    /// If the value has been taken out of this handle.
    ///
    /// ```
    /// use millpond::task;
    /// use std::thread;
    ///
    /// let (task, handle) = task::new(|| String::from("flour"));
    /// let flour = handle.shared();
    /// thread::scope(|s| {
    ///     let bakers = [(); 2].map(|()| s.spawn(|| flour.clone().join().map(String::len)));
    ///     task.run();
    ///     bakers.map(|baker| assert_eq!(baker.join().unwrap().unwrap(), 5));
    /// });
    /// ```
    pub fn shared(self) -> SharedHandle<T> {
        match self.raw.share() {
            Ok(raw) => SharedHandle::from_raw(raw),
            Err(_) => panic!("{TAKEN}"),
        }
    }

    pub(crate) fn clock(&self) -> Clock {
        self.raw.meta().clock()
    }

    /// Its deadline, for a waiter that does not have the handle.
    pub(crate) fn expiry(&self) -> Expiry {
        Expiry::of(&self.raw)
    }

    /// As its future, but without a check of the deadline: only the end of the task wakes the waker.
    pub(crate) fn poll_end(&mut self, context: &mut Context<'_>) -> Poll<Result<T, TaskError>> {
        self.raw.poll(context).map(into_result)
    }
}

/// Spins for a moment on a task that may finish, before its waiter parks; not if the waiter has a deadline or has been
/// interrupted.
pub(super) fn spin_until_finished(
    deadline: Deadline,
    look: impl Fn() -> raw::state::TaskState,
) -> bool {
    deadline == Deadline::NEVER
        && !interrupt::is_interrupted()
        && interrupt::poll_tight(|| look().is_finished(), || Some(())).is_some()
}

/// Waits until `register` returns `None`, because there is nothing to wait for. Otherwise it has registered the waker, and
/// returns when to look again even without a wake-up. `blocked` is the entry of this wait in the table of blocked joins.
pub(crate) fn wait_registered(
    blocked: &JoinGuard,
    site: Site,
    clock: &Clock,
    deadline: Deadline,
    mut register: impl FnMut(&Waker) -> Option<Deadline>,
) -> Result<(), TaskError> {
    let mut cycle = None;
    let look = |waker: &Waker| {
        // A finished task counts more than a cycle.
        let Some(again) = register(waker) else {
            cycle = None;
            return Look::Done;
        };
        cycle = blocked.poll_cycle(waker);
        match cycle {
            Some(_) => Look::Done,
            None => Look::RecheckAt(again),
        }
    };
    let waited = interrupt::wait(site, clock, deadline, look);
    match (waited, cycle) {
        (Ok(()), None) => Ok(()),
        (Ok(()), Some(cycle)) => Err(deadlock(cycle)),
        (Err(WaitError::Interrupted), _) => Err(TaskError::Interrupted),
        (Err(WaitError::TimedOut), _) => Err(TaskError::TimedOut),
    }
}

/// Reports the cycle to the engine that runs the caller, and makes it an error.
#[cold]
pub(crate) fn deadlock(cycle: Cycle) -> TaskError {
    inline::report_deadlock(&cycle);
    TaskError::Deadlock(cycle)
}

/// What to do where a thread polls futures.
const AWAIT: &str = "await the handle";

const TAKEN: &str = "the value of this task has been taken already";

fn into_result<T>(outcome: Outcome<T>) -> Result<T, TaskError> {
    match outcome {
        Outcome::Completed(value) => Ok(value),
        Outcome::Panicked(panic) => Err(TaskError::Panicked(panic)),
        Outcome::Cancelled(reason) => Err(TaskError::Cancelled(reason)),
    }
}

/// Awaiting is cancel-safe: a handle that is dropped or polled elsewhere meanwhile loses nothing, and `&mut handle` can be
/// awaited, too.
///
/// ```
/// # use std::{future::Future, pin::pin, task::{Context, Waker}};
/// let (task, handle) = millpond::task::new(|| 42);
/// task.run();
/// let answer = async { handle.await };
/// # let ready = pin!(answer).poll(&mut Context::from_waker(Waker::noop()));
/// # assert!(matches!(ready, std::task::Poll::Ready(Ok(42))));
/// ```
impl<T> Future for TaskHandle<T> {
    type Output = Result<T, TaskError>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let TaskHandle { raw, alarm } = self.get_mut();
        alarm.check(raw, context.waker());
        match raw.poll(context) {
            Poll::Pending if raw.state().is_of_another_process() => {
                Poll::Ready(Err(TaskError::Forked))
            }
            polled => polled.map(into_result),
        }
    }
}

impl<T> fmt::Debug for TaskHandle<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TaskHandle")
            .field("name", &self.name())
            .field("state", &self.raw.state())
            .field("location", &format_args!("{}", self.location()))
            .finish()
    }
}

/// A [`TaskHandle`] that cancels its task when it is dropped.
///
/// ```
/// let (task, handle) = millpond::task::new(|| ());
/// drop(handle.abort_on_drop());
/// assert!(task.is_gone());
/// ```
#[derive(Debug)]
#[must_use = "dropping it cancels the task"]
pub struct AbortOnDrop<T> {
    handle: Option<TaskHandle<T>>,
}

impl<T> AbortOnDrop<T> {
    /// The plain handle again; the task goes on without it.
    ///
    /// ```
    /// use millpond::task::{self, Ran};
    ///
    /// let (task, handle) = task::new(|| "flour");
    /// let wanted = handle.abort_on_drop();
    /// let flour = wanted.disarm();
    /// assert!(matches!(task.run(), Ran::Completed));
    /// assert_eq!(flour.join()?, "flour");
    /// # Ok::<(), task::TaskError>(())
    /// ```
    pub fn disarm(mut self) -> TaskHandle<T> {
        self.handle
            .take()
            .expect("it is only taken here and in the drop")
    }
}

impl<T> Deref for AbortOnDrop<T> {
    type Target = TaskHandle<T>;

    fn deref(&self) -> &TaskHandle<T> {
        self.handle.as_ref().expect("it is only taken by value")
    }
}

impl<T> Future for AbortOnDrop<T> {
    type Output = Result<T, TaskError>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let handle = self.handle.as_mut().expect("it is only taken by value");
        Pin::new(handle).poll(context)
    }
}

impl<T> Drop for AbortOnDrop<T> {
    fn drop(&mut self) {
        if let Some(handle) = &self.handle {
            handle.interrupt();
        }
    }
}
