//! What happens to a task that a pool cannot take.

use crate::executor::{RejectReason, Rejected};
use crate::manage::{ValueError, ValueType};
use crate::pool::ThreadPool;
use crate::pool::config::{SETTABLE_REJECTIONS, policy_of, value_of};
use crate::task::Task;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

/// What a pool does with a task that it cannot take: the queue is full and all workers are there, a
/// thread could not be started, or it was shut down.
///
/// ```
/// use millpond::executor::{ExecutorExt, Lifecycle};
/// use millpond::pool::{Queue, RejectionPolicy, ThreadPool};
/// use std::sync::mpsc;
///
/// let pool = ThreadPool::builder("mill").core(1).max(1).queue(Queue::bounded(1));
/// let pool = pool.rejection(RejectionPolicy::DiscardOldest).build()?;
/// let (say, hear) = mpsc::channel::<()>();
/// let busy = pool.submit(move || hear.recv().is_err())?;
/// let (stale, fresh) = (pool.submit(|| "stale")?, pool.submit(|| "fresh")?);
/// drop(say);
/// assert!(stale.join().unwrap_err().is_cancelled());
/// assert_eq!(fresh.join()?, "fresh");
/// # busy.join()?;
/// pool.close()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Default)]
#[doc(alias = "RejectedExecutionHandler")]
#[non_exhaustive]
pub enum RejectionPolicy {
    /// Give it back.
    #[default]
    #[doc(alias = "AbortPolicy")]
    Abort,
    /// Let its caller run it, which slows the caller down. After a shutdown it is given back.
    #[doc(alias = "CallerRunsPolicy")]
    CallerRuns,
    /// Drop it. Its handle is cancelled with the reason.
    #[doc(alias = "DiscardPolicy")]
    Discard,
    /// Drop the task that would come next, and take this one instead. After a shutdown this one is
    /// dropped; if no task waits that could be dropped, it is given back.
    #[doc(alias = "DiscardOldestPolicy")]
    DiscardOldest,
    /// Let its caller wait for room, but not longer than this; then give it back. It also waits while the system
    /// refuses another thread, as long as there is a worker that will take a task; without one it is given back at
    /// once, with [`SpawnFailed`](crate::executor::RejectReason::SpawnFailed).
    Block(Duration),
    /// Run it in a thread of its own outside the pool, as long as there are fewer than this; then
    /// give it back.
    NewThread {
        /// The maximum number of such threads.
        at_most: usize,
    },
    /// Report what the pool and its workers do ([`PoolEvent::Rejected`](crate::pool::PoolEvent::Rejected)), but not more
    /// often than this; and give it back.
    #[doc(alias = "AbortPolicyWithReport")]
    Report {
        /// The time between two reports.
        at_most_every: Duration,
    },
    /// Ask the user.
    Custom(Arc<dyn RejectionHandler>),
}

impl RejectionPolicy {
    /// A rejection policy of the user's own.
    ///
    /// ```
    /// use millpond::executor::{ExecutorExt, Rejected};
    /// use millpond::pool::{Queue, RejectionContext, RejectionPolicy, ThreadPool};
    /// use millpond::task::Task;
    ///
    /// let pool = ThreadPool::builder("mill")
    ///     .rejection(RejectionPolicy::custom(|task: Task, context: RejectionContext<'_>| {
    ///         eprintln!("{}: {}", context.pool.snapshot(), context.reason);
    ///         context.give_back(task)
    ///     }))
    ///     .build()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn custom(
        handler: impl Fn(Task, RejectionContext<'_>) -> Result<(), Rejected<Task>>
        + Send
        + Sync
        + 'static,
    ) -> Self {
        RejectionPolicy::Custom(Arc::new(Closure(handler)))
    }
}

/// As in patches and in the list of parameters.
///
/// ```
/// use millpond::pool::RejectionPolicy;
/// use std::time::Duration;
///
/// let patient = RejectionPolicy::Block(Duration::from_millis(100));
/// assert_eq!(patient.to_string(), "block(100ms)");
/// ```
impl fmt::Display for RejectionPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        value_of(self).fmt(f)
    }
}

/// Reads a policy that needs no handler.
///
/// ```
/// use millpond::pool::RejectionPolicy;
///
/// let policy: RejectionPolicy = "caller-runs".parse()?;
/// assert!(matches!(policy, RejectionPolicy::CallerRuns));
/// let error = "block".parse::<RejectionPolicy>().unwrap_err();
/// assert_eq!(error.to_string(), "`block`: it needs an argument: block(duration)");
/// # Ok::<(), millpond::manage::ValueError>(())
/// ```
impl FromStr for RejectionPolicy {
    type Err = ValueError;

    fn from_str(text: &str) -> Result<Self, ValueError> {
        const POLICIES: ValueType = ValueType::Choice(SETTABLE_REJECTIONS);
        let value = POLICIES.parse(text)?;
        policy_of(&value).map_err(|_| POLICIES.error(text.to_owned(), false))
    }
}

/// A rejection policy of the user's own.
///
/// It gets the task, with its name, and the pool, with all its metrics. A closure does not tell what it is about;
/// a value that the task carries does: [`TaskLocal::of`](crate::task::TaskLocal::of).
///
/// It may submit the task to the same pool once more: there may be room by now. If not, the pool does not call
/// the handler again, but gives the task back to it, with the reason; so it does with every task that the handler
/// itself submits there. Tasks that are submitted by a task which the handler runs are handled as usual.
///
/// ```
/// use millpond::executor::{Executor, ExecutorExt, Lifecycle, Rejected};
/// use millpond::pool::{Queue, RejectionContext, RejectionPolicy, RejectionHandler, ThreadPool};
/// use millpond::task::Task;
/// use std::sync::{Arc, mpsc};
///
/// /// Another pool takes what this one has no room for.
/// #[derive(Debug)]
/// struct Overflow(ThreadPool);
///
/// impl RejectionHandler for Overflow {
///     fn reject(&self, task: Task, context: RejectionContext<'_>) -> Result<(), Rejected<Task>> {
///         if context.reason.is_shut_down() {
///             return context.give_back(task);
///         }
///         self.0.execute_task(task)
///     }
/// }
///
/// let spare = ThreadPool::builder("spare").core(1).build()?;
/// let pool = ThreadPool::builder("mill").core(1).max(1).queue(Queue::hand_off());
/// let pool = pool.rejection(RejectionPolicy::Custom(Arc::new(Overflow(spare.clone())))).build()?;
/// let (say, hear) = mpsc::channel::<()>();
/// pool.execute(move || drop(hear.recv()))?;
/// let name = pool.submit(|| std::thread::current().name().map(String::from))?.join()?;
/// assert_eq!(name.as_deref(), Some("spare-1"));
/// drop(say);
/// pool.close()?;
/// spare.close()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub trait RejectionHandler: fmt::Debug + Send + Sync {
    /// Takes care of the task (`Ok`), or gives it back. Dropping it cancels its handle.
    ///
    /// # Errors
    ///
    /// The very task, if the caller shall have it back.
    fn reject(&self, task: Task, context: RejectionContext<'_>) -> Result<(), Rejected<Task>>;
}

/// Why a task was rejected, and by which pool.
///
/// ```
/// use millpond::executor::{ExecutorExt, Lifecycle};
/// use millpond::pool::{RejectionContext, RejectionPolicy, ThreadPool};
/// use millpond::task::Task;
///
/// let pool = ThreadPool::builder("mill").rejection(RejectionPolicy::custom(|task: Task, context: RejectionContext<'_>| {
///     assert_eq!(context.pool.name(), "mill");
///     context.give_back(task)
/// }));
/// let pool = pool.build()?;
/// pool.shutdown();
/// assert!(pool.execute(|| ()).unwrap_err().reason.is_shut_down());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
#[non_exhaustive]
pub struct RejectionContext<'a> {
    /// Why.
    pub reason: RejectReason,
    /// The pool that rejected it.
    pub pool: &'a ThreadPool,
}

impl RejectionContext<'_> {
    /// Gives the task back to its caller.
    ///
    /// # Errors
    ///
    /// Always: that is what it is for.
    ///
    /// ```
    /// use millpond::executor::{ExecutorExt, Lifecycle};
    /// use millpond::pool::{RejectionContext, RejectionPolicy, ThreadPool};
    /// use millpond::task::Task;
    ///
    /// let gives_back = |task: Task, context: RejectionContext<'_>| context.give_back(task);
    /// let pool = ThreadPool::builder("mill").rejection(RejectionPolicy::custom(gives_back)).build()?;
    /// pool.shutdown();
    /// let rejected = pool.submit(|| "flour").unwrap_err();
    /// assert_eq!((rejected.task)(), "flour");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn give_back(self, task: Task) -> Result<(), Rejected<Task>> {
        Err(Rejected::new(task, self.reason))
    }
}

struct Closure<F>(F);

impl<F> RejectionHandler for Closure<F>
where
    F: Fn(Task, RejectionContext<'_>) -> Result<(), Rejected<Task>> + Send + Sync,
{
    fn reject(&self, task: Task, context: RejectionContext<'_>) -> Result<(), Rejected<Task>> {
        (self.0)(task, context)
    }
}

impl<F> fmt::Debug for Closure<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a closure")
    }
}
