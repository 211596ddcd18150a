//! What becomes of a task that a pool has no room for.

use super::ThreadPool;
use crate::executor::{RejectReason, Rejected};
use crate::task::Task;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// What a pool does with a task that it cannot take: the queue is full and all workers are there, a
/// thread could not be started, or it was shut down.
///
/// ```
/// use millpond::executor::{ExecutorExt, Lifecycle};
/// use millpond::pool::{Queue, Rejection, ThreadPool};
/// use std::sync::mpsc;
///
/// let pool = ThreadPool::builder("mill").core(1).max(1).queue(Queue::bounded(1));
/// let pool = pool.rejection(Rejection::DiscardOldest).build()?;
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
pub enum Rejection {
    /// Give it back.
    #[default]
    #[doc(alias = "AbortPolicy")]
    Abort,
    /// Let its caller run it: the best brake there is. After a shutdown it is given back.
    #[doc(alias = "CallerRunsPolicy")]
    CallerRuns,
    /// Drop it. Its handle is cancelled with the reason.
    #[doc(alias = "DiscardPolicy")]
    Discard,
    /// Drop the one that would come next, and take this one instead. After a shutdown this one is
    /// dropped; if nothing waits that could be dropped, it is given back.
    #[doc(alias = "DiscardOldestPolicy")]
    DiscardOldest,
    /// Let its caller wait for room, but not longer than this; then give it back.
    Block(Duration),
    /// Run it in a thread of its own outside the pool, as long as there are fewer than this; then
    /// give it back.
    NewThread {
        /// How many such threads there may be at a time.
        at_most: usize,
    },
    /// Tell what the pool and its workers do ([`Notice::Refused`](super::Notice::Refused)), but not more
    /// often than this; and give it back.
    #[doc(alias = "AbortPolicyWithReport")]
    Report {
        /// How much time is between two reports.
        at_most_every: Duration,
    },
    /// Ask the user.
    Custom(Arc<dyn RejectionHandler>),
}

impl Rejection {
    /// A rejection policy of the user's own.
    ///
    /// ```
    /// use millpond::executor::{ExecutorExt, Rejected};
    /// use millpond::pool::{Queue, Refusal, Rejection, ThreadPool};
    /// use millpond::task::Task;
    ///
    /// let pool = ThreadPool::builder("mill")
    ///     .rejection(Rejection::custom(|task: Task, refusal: Refusal<'_>| {
    ///         eprintln!("{}: {}", refusal.pool.snapshot(), refusal.reason);
    ///         refusal.give_back(task)
    ///     }))
    ///     .build()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn custom(
        handler: impl Fn(Task, Refusal<'_>) -> Result<(), Rejected<Task>> + Send + Sync + 'static,
    ) -> Self {
        Rejection::Custom(Arc::new(Closure(handler)))
    }
}

/// A rejection policy of the user's own.
///
/// It has the task, with its name, and the pool, with all its figures. What the task is about its closure
/// does not tell; let it carry that, and [`Carried::of`](crate::task::Carried::of) tells.
///
/// It may bring the task to the same pool once more: there may be room by now. If not, the pool does not ask
/// the handler again, but gives the task back to it, with the reason; that goes for everything that the
/// handler itself brings there. What a task brings that the handler runs is another matter: about that it is
/// asked as usual.
///
/// ```
/// use millpond::executor::{Executor, ExecutorExt, Lifecycle, Rejected};
/// use millpond::pool::{Queue, Refusal, Rejection, RejectionHandler, ThreadPool};
/// use millpond::task::Task;
/// use std::sync::{Arc, mpsc};
///
/// /// Another pool takes what this one has no room for.
/// #[derive(Debug)]
/// struct Overflow(ThreadPool);
///
/// impl RejectionHandler for Overflow {
///     fn reject(&self, task: Task, refusal: Refusal<'_>) -> Result<(), Rejected<Task>> {
///         if refusal.reason.is_shut_down() {
///             return refusal.give_back(task);
///         }
///         self.0.execute(task)
///     }
/// }
///
/// let spare = ThreadPool::builder("spare").core(1).build()?;
/// let pool = ThreadPool::builder("mill").core(1).max(1).queue(Queue::hand_off());
/// let pool = pool.rejection(Rejection::Custom(Arc::new(Overflow(spare.clone())))).build()?;
/// let (say, hear) = mpsc::channel::<()>();
/// pool.run(move || drop(hear.recv()))?;
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
    fn reject(&self, task: Task, refusal: Refusal<'_>) -> Result<(), Rejected<Task>>;
}

/// Why a task was refused, and by whom.
///
/// ```
/// use millpond::executor::{ExecutorExt, Lifecycle};
/// use millpond::pool::{Refusal, Rejection, ThreadPool};
/// use millpond::task::Task;
///
/// let pool = ThreadPool::builder("mill").rejection(Rejection::custom(|task: Task, refusal: Refusal<'_>| {
///     assert_eq!(refusal.pool.name(), "mill");
///     refusal.give_back(task)
/// }));
/// let pool = pool.build()?;
/// pool.shutdown();
/// assert!(pool.run(|| ()).unwrap_err().reason.is_shut_down());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
#[non_exhaustive]
pub struct Refusal<'a> {
    /// Why.
    pub reason: RejectReason,
    /// Who refused it.
    pub pool: &'a ThreadPool,
}

impl Refusal<'_> {
    /// Gives the task back to its caller.
    ///
    /// # Errors
    ///
    /// Always: that is what it is for.
    ///
    /// ```
    /// use millpond::executor::{ExecutorExt, Lifecycle};
    /// use millpond::pool::{Refusal, Rejection, ThreadPool};
    /// use millpond::task::Task;
    ///
    /// let gives_back = |task: Task, refusal: Refusal<'_>| refusal.give_back(task);
    /// let pool = ThreadPool::builder("mill").rejection(Rejection::custom(gives_back)).build()?;
    /// pool.shutdown();
    /// let refused = pool.submit(|| "flour").unwrap_err();
    /// assert_eq!((refused.task)(), "flour");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn give_back(self, task: Task) -> Result<(), Rejected<Task>> {
        Err(Rejected::new(task, self.reason))
    }
}

struct Closure<F>(F);

impl<F> RejectionHandler for Closure<F>
where
    F: Fn(Task, Refusal<'_>) -> Result<(), Rejected<Task>> + Send + Sync,
{
    fn reject(&self, task: Task, refusal: Refusal<'_>) -> Result<(), Rejected<Task>> {
        (self.0)(task, refusal)
    }
}

impl<F> fmt::Debug for Closure<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a closure")
    }
}
