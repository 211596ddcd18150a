//! Errors: rejections, which give everything back, and failures of batches and scopes.

use super::timer_thread::TimerThread;
use crate::interrupt::Interrupted;
use crate::task::{CancelReason, Task, TaskError};
use std::borrow::Cow;
use std::error::Error;
use std::fmt;
use std::io;
use std::time::Duration;

/// Why an executor rejected a task.
///
/// ```
/// use millpond::executor::RejectReason;
///
/// let full = RejectReason::saturated(8, 8, 2);
/// assert!(full.to_string().contains("the queue is full (8 of 8) and all 2 workers are busy"));
/// ```
#[derive(Debug)]
#[non_exhaustive]
pub enum RejectReason {
    /// Every worker is busy and the queue is full. An executor of your own creates it with
    /// [`RejectReason::saturated`].
    #[non_exhaustive]
    Saturated {
        /// How many tasks are queued.
        queued: usize,
        /// How many may be queued.
        capacity: usize,
        /// How many workers there are, which is the maximum.
        workers: usize,
        /// How long the queue needs to drain, estimated from recent tasks, if no more are submitted: a good moment to try
        /// again. `None` if that is not known, such as before the first task has ended.
        drains_in: Option<Duration>,
    },
    /// The executor has been shut down.
    ShutDown,
    /// The executor needed a thread and could not start one.
    SpawnFailed(io::Error),
    /// The caller, itself a task, was interrupted while it waited for room.
    Interrupted,
    /// The scope of the task has been cancelled.
    Cancelled,
    /// The executor was built before this process was forked: its threads are in the parent.
    Forked,
    /// The maximum of tasks and series wait for their time in a scheduled pool.
    ScheduleFull {
        /// How many wait.
        pending: usize,
        /// How many may wait.
        most: usize,
    },
    /// The arguments make no sense; the text says why.
    Invalid(Cow<'static, str>),
}

impl RejectReason {
    /// The queue is full, with `queued` of `capacity` tasks, and all workers are busy. When it drains is not known.
    ///
    /// ```
    /// use millpond::executor::RejectReason;
    ///
    /// let full = RejectReason::saturated(8, 8, 2);
    /// assert_eq!(full.drains_in(), None);
    /// ```
    pub const fn saturated(queued: usize, capacity: usize, workers: usize) -> Self {
        RejectReason::Saturated {
            queued,
            capacity,
            workers,
            drains_in: None,
        }
    }

    /// How long the queue needs to drain, if known: a good moment to try again.
    ///
    /// ```
    /// use millpond::executor::ExecutorExt;
    /// use millpond::pool::{Queue, ThreadPool};
    /// use millpond::time::ManualClock;
    /// use std::sync::mpsc::channel;
    /// use std::time::Duration;
    ///
    /// let hand = ManualClock::new();
    /// let pool = ThreadPool::builder("mill")
    ///     .max(1)
    ///     .queue(Queue::bounded(3))
    ///     .clock(hand.clock())
    ///     .build()?;
    /// // A task that takes 40 ms, and one that holds the only worker.
    /// pool.submit(move || hand.advance(Duration::from_millis(40)))?.join()?;
    /// let ((go, wait), (started, begun)) = (channel::<()>(), channel());
    /// let running = pool.submit(move || started.send(()).is_ok() && wait.recv().is_ok())?;
    /// begun.recv()?;
    /// for _ in 0..3 {
    ///     pool.execute(|| ())?;
    /// }
    /// let rejected = pool.submit(|| ()).unwrap_err();
    /// assert_eq!(rejected.reason.drains_in(), Some(Duration::from_millis(120)));
    /// assert!(rejected.to_string().contains("drains in about 120 ms"));
    /// # drop(go);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn drains_in(&self) -> Option<Duration> {
        match self {
            RejectReason::Saturated { drains_in, .. } => *drains_in,
            _ => None,
        }
    }

    /// Whether there was no room. Trying again later may succeed.
    ///
    /// ```
    /// use millpond::executor::RejectReason;
    ///
    /// assert!(RejectReason::saturated(8, 8, 2).is_saturated());
    /// assert!(!RejectReason::ShutDown.is_saturated());
    /// ```
    pub fn is_saturated(&self) -> bool {
        matches!(
            self,
            RejectReason::Saturated { .. } | RejectReason::ScheduleFull { .. }
        )
    }

    /// Whether the executor's threads are in another process. Trying again is useless.
    ///
    /// ```
    /// use millpond::executor::RejectReason;
    ///
    /// assert!(RejectReason::Forked.is_forked());
    /// ```
    pub fn is_forked(&self) -> bool {
        matches!(self, RejectReason::Forked)
    }

    /// Whether the executor has been shut down. Trying again is useless.
    ///
    /// ```
    /// use millpond::executor::{ExecutorExt, Lifecycle};
    /// use millpond::preset;
    ///
    /// let pool = preset::single("mill").build()?;
    /// pool.close()?;
    /// assert!(pool.execute(|| ()).unwrap_err().reason.is_shut_down());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn is_shut_down(&self) -> bool {
        matches!(self, RejectReason::ShutDown)
    }
}

impl fmt::Display for RejectReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RejectReason::Saturated {
                queued,
                capacity,
                workers,
                drains_in,
            } => {
                if *capacity == 0 {
                    f.write_str("the executor has no queue and ")?;
                } else {
                    write!(f, "the queue is full ({queued} of {capacity}) and ")?;
                }
                match workers {
                    0 => f.write_str("has no worker")?,
                    1 => f.write_str("the only worker is busy")?,
                    _ => write!(f, "all {workers} workers are busy")?,
                }
                if let Some(time) = drains_in {
                    write!(f, "; it drains in about {}", Approximate(*time))?;
                }
                f.write_str(": try again later, or give it more room")
            }
            RejectReason::ShutDown => {
                f.write_str("the executor has been shut down: it takes no more tasks")
            }
            RejectReason::SpawnFailed(error) => match TimerThread::in_error(error) {
                Some(timer) => timer.fmt(f),
                None => write!(
                    f,
                    "the executor could not start a thread ({error}): use fewer threads, or raise the \
                 limit of the process"
                ),
            },
            RejectReason::Interrupted => f.write_str(
                "the caller was interrupted while it waited for room in the executor: its task was asked \
                 to stop",
            ),
            RejectReason::Cancelled => {
                f.write_str("the scope has been cancelled: it takes no more tasks")
            }
            RejectReason::Forked => f.write_str(
                "this process was forked, and the executor's threads stayed in the parent: build a \
                 new one after fork()",
            ),
            RejectReason::ScheduleFull { pending, most } => write!(
                f,
                "the schedule is full ({pending} wait for their time, {most} may): cancel what is no \
                 longer needed, or allow more with max_pending"
            ),
            RejectReason::Invalid(problem) => f.write_str(problem),
        }
    }
}

/// An estimated time, rounded.
struct Approximate(Duration);

impl fmt::Display for Approximate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let nanos = self.0.as_nanos();
        let rounded = |unit: u128| nanos.saturating_add(unit / 2) / unit;
        match nanos {
            0..1_000_000 => write!(f, "{} µs", rounded(1000)),
            1_000_000..10_000_000_000 => write!(f, "{} ms", rounded(1_000_000)),
            10_000_000_000..600_000_000_000 => write!(f, "{} s", rounded(1_000_000_000)),
            _ => write!(f, "{} minutes", rounded(60_000_000_000)),
        }
    }
}

impl Error for RejectReason {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            RejectReason::SpawnFailed(error) => Some(error),
            _ => None,
        }
    }
}

/// A rejected task, given back whole, with the reason.
///
/// ```
/// use millpond::executor::{ExecutorExt, Lifecycle, ThreadPerTask};
///
/// let threads = ThreadPerTask::builder("mill", 1).build()?;
/// threads.shutdown();
/// let water = String::from("water");
/// let rejected = threads.submit(move || water).unwrap_err();
/// assert!(rejected.reason.is_shut_down());
/// // The very closure, with what it owns.
/// assert_eq!((rejected.task)(), "water");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[doc(alias = "RejectedExecutionException")]
#[non_exhaustive]
pub struct Rejected<F> {
    /// The rejected task or closure.
    pub task: F,
    /// Why it was rejected.
    pub reason: RejectReason,
}

impl<F> Rejected<F> {
    /// A rejection of `task`.
    ///
    /// ```
    /// use millpond::executor::{RejectReason, Rejected};
    ///
    /// let rejected = Rejected::new("flour", RejectReason::ShutDown);
    /// assert_eq!(rejected.task, "flour");
    /// ```
    pub fn new(task: F, reason: RejectReason) -> Self {
        Rejected { task, reason }
    }

    /// The same rejection with another payload, such as the closure of a task.
    ///
    /// ```
    /// use millpond::executor::{RejectReason, Rejected};
    ///
    /// let rejected = Rejected::new("flour", RejectReason::ShutDown).map(str::len);
    /// assert_eq!(rejected.task, 5);
    /// assert!(rejected.reason.is_shut_down());
    /// ```
    pub fn map<G>(self, f: impl FnOnce(F) -> G) -> Rejected<G> {
        Rejected::new(f(self.task), self.reason)
    }
}

impl Rejected<Task> {
    /// The rejection of the closure of the task.
    pub(crate) fn reclaim<F: 'static>(self) -> Rejected<F> {
        self.map(|task| match task.reclaim(CancelReason::Rejected) {
            Ok(closure) => closure,
            Err(task) => panic!(
                "an executor that rejects a task must give that very task back unrun; this one \
                 gave back {task:?}"
            ),
        })
    }
}

impl<F> fmt::Debug for Rejected<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Rejected")
            .field("reason", &self.reason)
            .finish_non_exhaustive()
    }
}

impl<F> fmt::Display for Rejected<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the task was rejected: {}", self.reason)
    }
}

impl<F> Error for Rejected<F> {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.reason.source()
    }
}

/// A task that an executor has not taken [without waiting](super::Executor::try_execute_task).
///
/// ```
/// use millpond::executor::{Executor, ExecutorExt, Lifecycle, TryExecuteError};
/// use millpond::pool::{Queue, RejectionPolicy, ThreadPool};
/// use millpond::task;
/// use std::sync::mpsc;
///
/// let pool = ThreadPool::builder("mill").core(1).max(1).queue(Queue::hand_off());
/// let pool = pool.rejection(RejectionPolicy::CallerRuns).build()?;
/// let (say, hear) = mpsc::channel::<()>();
/// pool.execute(move || drop(hear.recv()))?;
/// let (grind, flour) = task::new(|| "flour");
/// match pool.try_execute_task(grind) {
///     Err(TryExecuteError::WouldBlock(grind)) => grind.run(),
///     other => panic!("its caller would have to run it: {other:?}"),
/// };
/// assert_eq!(flour.join()?, "flour");
/// drop(say);
/// pool.close()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub enum TryExecuteError {
    /// It was rejected, as [`execute_task`](super::Executor::execute_task) would have rejected it.
    Rejected(Rejected<Task>),
    /// The submitter would have to wait or to run it, or the executor cannot tell.
    WouldBlock(Task),
}

/// Why [`invoke_all`](super::ExecutorExt::invoke_all) has no results.
///
/// ```
/// use millpond::executor::{ExecutorExt, InvokeAllError, Lifecycle};
/// use millpond::preset;
///
/// let pool = preset::single("mill").build()?;
/// pool.close()?;
/// let rejected = pool.invoke_all([|| 1, || 2]);
/// assert!(matches!(rejected, Err(InvokeAllError::Rejected(reason)) if reason.is_shut_down()));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
#[non_exhaustive]
pub enum InvokeAllError {
    /// One of the tasks was rejected; the others have been cancelled.
    Rejected(RejectReason),
    /// The caller, itself a task, was interrupted; all unfinished tasks have been cancelled.
    Interrupted,
}

impl fmt::Display for InvokeAllError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            InvokeAllError::Rejected(reason) => {
                write!(f, "a task of the batch was rejected: {reason}")
            }
            InvokeAllError::Interrupted => Interrupted.fmt(f),
        }
    }
}

impl Error for InvokeAllError {}

impl From<Interrupted> for InvokeAllError {
    fn from(_: Interrupted) -> Self {
        InvokeAllError::Interrupted
    }
}

/// Why one of several candidates has not succeeded.
///
/// ```
/// use millpond::executor::{ExecutorExt, Failure, InvokeAnyError};
/// use millpond::preset;
///
/// let pool = preset::single("mill").build()?;
/// let none = pool.invoke_any([|| Err::<(), _>("no wind"), || panic!("no water")]);
/// let Err(InvokeAnyError::AllFailed(failures)) = none else { panic!("somebody made it") };
/// assert!(failures.iter().any(|one| matches!(one, Failure::Returned("no wind"))));
/// assert!(failures.iter().any(|one| matches!(one, Failure::Task(error) if error.is_panicked())));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
#[non_exhaustive]
pub enum Failure<E> {
    /// It returned this.
    Returned(E),
    /// It panicked, or was cancelled.
    Task(TaskError),
    /// The executor rejected it.
    Rejected(RejectReason),
}

impl<E: fmt::Display> fmt::Display for Failure<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::Returned(error) => error.fmt(f),
            Failure::Task(error) => error.fmt(f),
            Failure::Rejected(reason) => reason.fmt(f),
        }
    }
}

/// Why [`invoke_any`](super::ExecutorExt::invoke_any) has no value.
///
/// ```
/// use millpond::executor::{DirectExecutor, ExecutorExt, InvokeAnyError};
///
/// let nobody: [fn() -> Result<(), String>; 0] = [];
/// assert!(matches!(DirectExecutor::new().invoke_any(nobody), Err(InvokeAnyError::Empty)));
/// ```
#[derive(Debug)]
#[non_exhaustive]
pub enum InvokeAnyError<E> {
    /// There was no candidate.
    Empty,
    /// Every candidate failed; the failures are in the order in which they happened.
    AllFailed(Vec<Failure<E>>),
    /// Every candidate was rejected; this is the last reason.
    Rejected(RejectReason),
    /// The caller, itself a task, was interrupted; all candidates have been cancelled.
    Interrupted,
    /// No candidate succeeded in time; those that were unfinished have been cancelled.
    TimedOut,
}

impl<E: fmt::Display> fmt::Display for InvokeAnyError<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            InvokeAnyError::Empty => {
                f.write_str("there is no task to choose from: give at least one")
            }
            InvokeAnyError::AllFailed(failures) => {
                write!(f, "all {} tasks failed", failures.len())?;
                match failures.last() {
                    Some(last) => write!(f, ", the last one: {last}"),
                    None => Ok(()),
                }
            }
            InvokeAnyError::Rejected(reason) => write!(f, "every task was rejected: {reason}"),
            InvokeAnyError::Interrupted => Interrupted.fmt(f),
            InvokeAnyError::TimedOut => f.write_str("no task succeeded in time"),
        }
    }
}

impl<E: fmt::Debug + fmt::Display> Error for InvokeAnyError<E> {}

impl<E> From<Interrupted> for InvokeAnyError<E> {
    fn from(_: Interrupted) -> Self {
        InvokeAnyError::Interrupted
    }
}

/// Why the closure of a [`Scope`](super::Scope) returned early: `?` turns both a rejection and a failed join into it. A
/// rejected closure, which may borrow, is dropped; the reason is kept.
#[derive(Debug)]
#[non_exhaustive]
pub enum ScopeError {
    /// A task was rejected.
    Rejected(RejectReason),
    /// A task has no value.
    Task(TaskError),
}

impl fmt::Display for ScopeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ScopeError::Rejected(reason) => write!(f, "a task of the scope was rejected: {reason}"),
            ScopeError::Task(error) => error.fmt(f),
        }
    }
}

impl Error for ScopeError {}

impl<F> From<Rejected<F>> for ScopeError {
    fn from(rejected: Rejected<F>) -> Self {
        ScopeError::Rejected(rejected.reason)
    }
}

impl From<TaskError> for ScopeError {
    fn from(error: TaskError) -> Self {
        ScopeError::Task(error)
    }
}

/// An executor that cannot be built as described.
///
/// ```
/// use millpond::pool::ThreadPool;
///
/// let error = ThreadPool::builder("mill").core(5).max(2).build().unwrap_err();
/// assert!(error.to_string().contains("core"), "{error}");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BuildError(pub(super) String);

impl fmt::Display for BuildError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Error for BuildError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rejection_says_how_long_the_queue_needs_if_that_is_known() {
        let texts = [
            (0, "0 µs"),
            (1_499, "1 µs"),
            (999_999, "1000 µs"),
            (120_400_000, "120 ms"),
            (9_999_600_000, "10000 ms"),
            (59_500_000_000, "60 s"),
            (u64::MAX, "307445735 minutes"),
        ];
        for (nanos, text) in texts {
            assert_eq!(Approximate(Duration::from_nanos(nanos)).to_string(), text);
        }
        let unknown = RejectReason::saturated(7, 8, 2).to_string();
        assert_eq!(
            unknown,
            "the queue is full (7 of 8) and all 2 workers are busy: try again later, or give it more room"
        );
        for (workers, said) in [(0, "has no worker"), (1, "the only worker is busy")] {
            let text = RejectReason::saturated(7, 8, workers).to_string();
            assert!(
                text.contains(&format!("(7 of 8) and {said}: try")),
                "{text}"
            );
        }
        let text = RejectReason::saturated(0, 0, 4).to_string();
        assert!(text.starts_with("the executor has no queue and all 4 workers are busy: try"));
        let known = RejectReason::Saturated {
            queued: 7,
            capacity: 8,
            workers: 2,
            drains_in: Some(Duration::from_millis(120)),
        };
        assert!(
            known
                .to_string()
                .contains("2 workers are busy; it drains in about 120 ms: try")
        );
    }
}
