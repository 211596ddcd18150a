//! Refusals, which give everything back, and what a batch can come to.

use super::timer_thread::TimerThread;
use crate::interrupt::Interrupted;
use crate::task::{CancelReason, Task, TaskError};
use std::borrow::Cow;
use std::error::Error;
use std::fmt;
use std::io;
use std::time::Duration;

/// Why an executor would not have a task.
///
/// ```
/// use millpond::executor::RejectReason;
///
/// let full = RejectReason::saturated(8, 8, 2);
/// assert!(full.to_string().contains("8 of 8 places in its queue taken, all 2 workers busy"));
/// ```
#[derive(Debug)]
#[non_exhaustive]
pub enum RejectReason {
    /// There is no room: every worker is busy and the queue is full. An executor of your own makes one
    /// with [`RejectReason::saturated`].
    #[non_exhaustive]
    Saturated {
        /// How many tasks wait.
        queued: usize,
        /// How many may wait.
        capacity: usize,
        /// How many workers there are; there may be no more.
        workers: usize,
        /// How long the queue needs to drain, by what tasks have taken of late, if nothing else
        /// comes: a good moment to try again. `None` if that is not known, as when no task is over
        /// yet.
        drains_in: Option<Duration>,
    },
    /// It has been shut down.
    ShutDown,
    /// It needed a thread and could not start one.
    SpawnFailed(io::Error),
    /// The caller, itself a task, was interrupted while it waited for room.
    Interrupted,
    /// The scope that it was for has been cancelled.
    Cancelled,
    /// The executor was made before this process was forked: its threads are in the parent.
    Forked,
    /// So many tasks and series wait for their time in a scheduled pool, and no more may.
    ScheduleFull {
        /// How many wait.
        pending: usize,
        /// How many may.
        most: usize,
    },
    /// What was asked for makes no sense; this says why.
    Invalid(Cow<'static, str>),
}

impl RejectReason {
    /// There is no room: `queued` of `capacity` places are taken, and all workers are busy. Nothing is
    /// known about when that will change.
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

    /// How long the queue needs to drain, if that is known: a good moment to try again.
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
    ///     pool.run(|| ())?;
    /// }
    /// let refused = pool.submit(|| ()).unwrap_err();
    /// assert_eq!(refused.reason.drains_in(), Some(Duration::from_millis(120)));
    /// assert!(refused.to_string().contains("drains in about 120 ms"));
    /// # drop(go);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn drains_in(&self) -> Option<Duration> {
        match self {
            RejectReason::Saturated { drains_in, .. } => *drains_in,
            _ => None,
        }
    }

    /// Whether there was no room: it is worth trying again later.
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

    /// Whether the executor's threads are in another process: it is not worth trying again.
    ///
    /// ```
    /// use millpond::executor::RejectReason;
    ///
    /// assert!(RejectReason::Forked.is_forked());
    /// ```
    pub fn is_forked(&self) -> bool {
        matches!(self, RejectReason::Forked)
    }

    /// Whether the executor has been shut down: it is not worth trying again.
    ///
    /// ```
    /// use millpond::executor::{ExecutorExt, Lifecycle};
    /// use millpond::preset;
    ///
    /// let pool = preset::single("mill").build()?;
    /// pool.close()?;
    /// assert!(pool.run(|| ()).unwrap_err().reason.is_shut_down());
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
                write!(
                    f,
                    "the executor is saturated ({queued} of {capacity} places in its queue taken, "
                )?;
                match workers {
                    0 => f.write_str("no worker there")?,
                    1 => f.write_str("its only worker busy")?,
                    _ => write!(f, "all {workers} workers busy")?,
                }
                if let Some(time) = drains_in {
                    write!(f, "; it drains in about {}", About(*time))?;
                }
                f.write_str("): try again later, or give it more room")
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
                "interrupted while waiting for room in the executor: the running task was asked \
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
                 longer needed, or allow more with most_pending"
            ),
            RejectReason::Invalid(problem) => f.write_str(problem),
        }
    }
}

/// A time that is no better than a guess, in two or three digits.
struct About(Duration);

impl fmt::Display for About {
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

/// A refused task, given back whole, with the reason.
///
/// ```
/// use millpond::executor::{ExecutorExt, Lifecycle, ThreadPerTask};
///
/// let threads = ThreadPerTask::builder("mill", 1).build()?;
/// threads.shutdown();
/// let water = String::from("water");
/// let refused = threads.submit(move || water).unwrap_err();
/// assert!(refused.reason.is_shut_down());
/// // The very closure, with what it owns.
/// assert_eq!((refused.task)(), "water");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[doc(alias = "RejectedExecutionException")]
#[non_exhaustive]
pub struct Rejected<F> {
    /// What was refused.
    pub task: F,
    /// Why.
    pub reason: RejectReason,
}

impl<F> Rejected<F> {
    /// A refusal of `task`.
    ///
    /// ```
    /// use millpond::executor::{RejectReason, Rejected};
    ///
    /// let refused = Rejected::new("flour", RejectReason::ShutDown);
    /// assert_eq!(refused.task, "flour");
    /// ```
    pub fn new(task: F, reason: RejectReason) -> Self {
        Rejected { task, reason }
    }

    /// The same refusal of something that was made out of what was refused, or the other way round.
    ///
    /// ```
    /// use millpond::executor::{RejectReason, Rejected};
    ///
    /// let refused = Rejected::new("flour", RejectReason::ShutDown).map(str::len);
    /// assert_eq!(refused.task, 5);
    /// assert!(refused.reason.is_shut_down());
    /// ```
    pub fn map<G>(self, f: impl FnOnce(F) -> G) -> Rejected<G> {
        Rejected::new(f(self.task), self.reason)
    }
}

impl Rejected<Task> {
    /// The refusal of the closure that the task was made of.
    pub(super) fn reclaim<F: 'static>(self) -> Rejected<F> {
        self.map(|task| match task.reclaim(CancelReason::Refused) {
            Ok(closure) => closure,
            Err(task) => panic!(
                "an executor that refuses a task must give that very task back unrun; this one \
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
        write!(f, "task refused: {}", self.reason)
    }
}

impl<F> Error for Rejected<F> {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.reason.source()
    }
}

/// A task that an executor has not taken [without waiting](super::Executor::try_execute).
///
/// ```
/// use millpond::executor::{Executor, ExecutorExt, Lifecycle, NotTaken};
/// use millpond::pool::{Queue, Rejection, ThreadPool};
/// use millpond::task;
/// use std::sync::mpsc;
///
/// let pool = ThreadPool::builder("mill").core(1).max(1).queue(Queue::hand_off());
/// let pool = pool.rejection(Rejection::CallerRuns).build()?;
/// let (say, hear) = mpsc::channel::<()>();
/// pool.run(move || drop(hear.recv()))?;
/// let (grind, flour) = task::new(|| "flour");
/// match pool.try_execute(grind) {
///     Err(NotTaken::NotAtOnce(grind)) => grind.run(),
///     other => panic!("its caller would have to run it: {other:?}"),
/// };
/// assert_eq!(flour.join()?, "flour");
/// drop(say);
/// pool.close()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub enum NotTaken {
    /// It was refused, as [`execute`](super::Executor::execute) would have refused it.
    Refused(Rejected<Task>),
    /// It could be taken only by letting its bringer wait or run it, or nobody knows.
    NotAtOnce(Task),
}

/// Why [`invoke_all`](super::ExecutorExt::invoke_all) has no results.
///
/// ```
/// use millpond::executor::{ExecutorExt, InvokeAllError, Lifecycle};
/// use millpond::preset;
///
/// let pool = preset::single("mill").build()?;
/// pool.close()?;
/// let refused = pool.invoke_all([|| 1, || 2]);
/// assert!(matches!(refused, Err(InvokeAllError::Rejected(reason)) if reason.is_shut_down()));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
#[non_exhaustive]
pub enum InvokeAllError {
    /// One of the tasks was refused; the others have been cancelled.
    Rejected(RejectReason),
    /// The caller, itself a task, was interrupted; all that was unfinished has been cancelled.
    Interrupted,
}

impl fmt::Display for InvokeAllError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            InvokeAllError::Rejected(reason) => write!(f, "a task of the batch refused: {reason}"),
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
    /// The executor would not have it.
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
    /// Every candidate failed: why, in the order in which they did.
    AllFailed(Vec<Failure<E>>),
    /// Every candidate was refused; this is the last reason.
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
            InvokeAnyError::Rejected(reason) => write!(f, "every task refused: {reason}"),
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

/// Why a [`Scope`](super::Scope)'s closure has not come to its end: what `?` makes of a refusal and of
/// a failed join in one function. A refused closure, which may borrow, is dropped; its reason is
/// kept.
#[derive(Debug)]
#[non_exhaustive]
pub enum ScopeError {
    /// A task was refused.
    Rejected(RejectReason),
    /// A task has no value.
    Task(TaskError),
}

impl fmt::Display for ScopeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ScopeError::Rejected(reason) => write!(f, "a task of the scope refused: {reason}"),
            ScopeError::Task(error) => error.fmt(f),
        }
    }
}

impl Error for ScopeError {}

impl<F> From<Rejected<F>> for ScopeError {
    fn from(refused: Rejected<F>) -> Self {
        ScopeError::Rejected(refused.reason)
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
    fn a_refusal_says_how_long_the_queue_needs_if_that_is_known() {
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
            assert_eq!(About(Duration::from_nanos(nanos)).to_string(), text);
        }
        let unknown = RejectReason::saturated(7, 8, 2).to_string();
        assert_eq!(
            unknown,
            "the executor is saturated (7 of 8 places in its queue taken, all 2 workers busy): try \
             again later, or give it more room"
        );
        for (workers, said) in [(0, "no worker there"), (1, "its only worker busy")] {
            let text = RejectReason::saturated(7, 8, workers).to_string();
            assert!(text.contains(&format!("taken, {said}): try")), "{text}");
        }
        let known = RejectReason::Saturated {
            queued: 7,
            capacity: 8,
            workers: 2,
            drains_in: Some(Duration::from_millis(120)),
        };
        assert!(
            known
                .to_string()
                .contains("2 workers busy; it drains in about 120 ms): try")
        );
    }
}
