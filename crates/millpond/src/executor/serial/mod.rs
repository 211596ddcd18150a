//! One task at a time per key, on another executor.
//!
//! Tasks of one key run one at a time, in the order of their submission. Tasks of different keys run in parallel, as far
//! as the inner executor allows. There is no fixed number of stripes that unrelated keys would share, and an idle key
//! takes no memory.
//!
//! | file | what |
//! |---|---|
//! | `lanes` | the queue of each key, and the tasks of the inner executor that drain it: the protocol |
//! | `turn` | the lanes that the current thread runs |

mod lanes;
mod turn;

use super::dropped::DroppedTask;
use super::error::{BuildError, RejectReason, Rejected};
use super::internals::{EngineInternals, Internals};
use super::runner::{Runner, UncaughtPanic};
use super::traits::Executor;
use crate::manage::Managed;
use crate::task::Task;
use crate::time::{Clock, Deadline};
use lanes::Lanes;
use std::fmt;
use std::hash::Hash;
use std::marker::PhantomData;
use std::sync::Arc;

/// Runs tasks one at a time per key, on another executor.
///
/// [`key`](SerialExecutor::key) gives the executor of one key:
///
/// ```
/// use millpond::executor::{ExecutorExt, SerialExecutor, ThreadPerTask};
///
/// let accounts = SerialExecutor::new(ThreadPerTask::builder("accounts", 4).build()?);
/// let first = accounts.key("alice").submit(|| 1)?;
/// let second = accounts.key("alice").submit(|| 2)?; // after the first
/// let other = accounts.key("bob").submit(|| 3)?; // beside them
/// assert_eq!((first.join()?, second.join()?, other.join()?), (1, 2, 3));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// Keys are hashed and compared while the map of them is locked: that must not use the executor. If it panics, the task is
/// cancelled, and nothing else is harmed.
///
/// # Behaviour today
///
/// A key that always has another task keeps the worker that runs it; with as many such keys as the inner executor has
/// workers, other keys wait. A task that joins a later task of its own key waits for itself; `run_or_join` does not.
///
/// A scope on a key keeps the key's order: its tasks wait for their turn. So it needs a worker of the inner executor, and a
/// scope that is opened by a task on the last free worker waits for ever. Inside a task of the same key, whose turn it is,
/// a scope runs its tasks inline.
///
/// Interrupts from the inner executor (its `shutdown_now`) reach the running task, and those behind it are cancelled as
/// shut down.
#[doc(alias = "SequentialExecutor")]
pub struct SerialExecutor<K, E> {
    lanes: Arc<Lanes<K, E>>,
}

impl<K, E> SerialExecutor<K, E>
where
    K: Hash + Eq + Send + Sync + 'static,
    E: Executor + 'static,
{
    /// Runs tasks on `inner`, one at a time per key. The queue of a key is unbounded; [`builder`](SerialExecutor::builder)
    /// sets a bound.
    ///
    /// ```
    /// use millpond::executor::{DirectExecutor, ExecutorExt, SerialExecutor};
    ///
    /// let accounts = SerialExecutor::new(DirectExecutor::new());
    /// assert_eq!(accounts.key("alice").submit(|| 7)?.join()?, 7);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn new(inner: E) -> Self {
        SerialExecutor {
            lanes: Arc::new(Lanes::new(inner, usize::MAX, Runner::default())),
        }
    }

    /// Describes an executor that runs tasks on `inner`.
    ///
    /// ```
    /// use millpond::executor::{DirectExecutor, ExecutorExt, SerialExecutor};
    ///
    /// let accounts = SerialExecutor::builder(DirectExecutor::new()).capacity_per_key(100).build()?;
    /// assert_eq!(accounts.key("alice").submit(|| 7)?.join()?, 7);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn builder(inner: E) -> SerialBuilder<K, E> {
        SerialBuilder {
            keys: PhantomData,
            inner,
            capacity: usize::MAX,
            runner: Runner::default(),
        }
    }

    /// The executor of this key's tasks.
    ///
    /// ```
    /// use millpond::executor::{ExecutorExt, Lifecycle, SerialExecutor};
    /// use millpond::preset;
    /// use std::sync::{Arc, Mutex};
    ///
    /// let pool = preset::fixed("mill", 4).build()?;
    /// let accounts = SerialExecutor::new(pool.clone());
    /// let (alice, ledger) = (accounts.key("alice"), Arc::new(Mutex::new(Vec::new())));
    /// for amount in 0..100 {
    ///     let ledger = Arc::clone(&ledger);
    ///     alice.execute(move || ledger.lock().unwrap().push(amount))?;
    /// }
    /// alice.submit(|| ())?.join()?;
    /// // Four workers, and still one after the other.
    /// assert!(ledger.lock().unwrap().iter().copied().eq(0..100));
    /// pool.close()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn key(&self, key: K) -> SerialKey<K, E> {
        SerialKey {
            lanes: Arc::clone(&self.lanes),
            key: Arc::new(key),
        }
    }

    /// The inner executor.
    ///
    /// ```
    /// use millpond::executor::{DirectExecutor, ExecutorExt, SerialExecutor};
    ///
    /// let accounts: SerialExecutor<u32, _> = SerialExecutor::new(DirectExecutor::new());
    /// assert_eq!(accounts.inner().submit(|| "without a key")?.join()?, "without a key");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn inner(&self) -> &E {
        self.lanes.inner()
    }

    /// How many keys have queued or running tasks.
    ///
    /// ```
    /// use millpond::executor::{DirectExecutor, ExecutorExt, SerialExecutor};
    ///
    /// let accounts = SerialExecutor::new(DirectExecutor::new());
    /// let inside = accounts.clone();
    /// assert_eq!(accounts.key("alice").submit(move || inside.busy_keys())?.join()?, 1);
    /// assert_eq!(accounts.busy_keys(), 0);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn busy_keys(&self) -> usize {
        self.lanes.busy()
    }
}

/// The executor of one key of a [`SerialExecutor`].
///
/// ```
/// use millpond::executor::{DirectExecutor, ExecutorExt, SerialExecutor};
///
/// let alice = SerialExecutor::new(DirectExecutor::new()).key("alice");
/// // It is an executor like any other.
/// assert_eq!(alice.submit(|| 7)?.join()?, 7);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct SerialKey<K, E> {
    lanes: Arc<Lanes<K, E>>,
    key: Arc<K>,
}

impl<K, E> Executor for SerialKey<K, E>
where
    K: Hash + Eq + Send + Sync + 'static,
    E: Executor + 'static,
{
    fn execute_task(&self, task: Task) -> Result<(), Rejected<Task>> {
        self.execute_task_until(task, Deadline::NEVER)
    }

    fn execute_task_until(&self, task: Task, deadline: Deadline) -> Result<(), Rejected<Task>> {
        if self.lanes.is_forked() {
            return Err(Rejected::new(task, RejectReason::Forked));
        }
        self.lanes.submit(&self.key, task, deadline)
    }

    fn as_managed(&self) -> Option<&dyn Managed> {
        self.lanes.inner().as_managed()
    }

    fn internals(&self) -> Internals<'_> {
        Internals::of(Arc::as_ptr(&self.lanes).addr(), self)
    }

    fn clock(&self) -> Clock {
        self.lanes.inner().clock()
    }

    /// Only inside a task of the same key, whose turn it is.
    fn allows_inline(&self) -> bool {
        self.lanes.is_current(&self.key)
    }
}

impl<K, E> EngineInternals for SerialKey<K, E>
where
    K: Hash + Eq + Send + Sync + 'static,
    E: Executor + 'static,
{
    fn report_dropped(&self, dropped: DroppedTask) {
        self.lanes.inner().internals().report_dropped(dropped);
    }

    fn parameter_owner(&self, parameter: &str) -> Option<&str> {
        self.lanes.inner().internals().parameter_owner(parameter)
    }
}

impl<K, E> Clone for SerialKey<K, E> {
    fn clone(&self) -> Self {
        SerialKey {
            lanes: Arc::clone(&self.lanes),
            key: Arc::clone(&self.key),
        }
    }
}

impl<K, E> fmt::Debug for SerialKey<K, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SerialKey").finish_non_exhaustive()
    }
}

impl<K, E> Clone for SerialExecutor<K, E> {
    fn clone(&self) -> Self {
        SerialExecutor {
            lanes: Arc::clone(&self.lanes),
        }
    }
}

impl<K, E: fmt::Debug> fmt::Debug for SerialExecutor<K, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let busy = self.lanes.busy();
        f.debug_struct("SerialExecutor")
            .field("inner", self.lanes.inner())
            .field("busy_keys", &busy)
            .finish_non_exhaustive()
    }
}

/// Describes a [`SerialExecutor`].
///
/// ```
/// use millpond::executor::{DirectExecutor, ExecutorExt, SerialExecutor};
///
/// let builder = SerialExecutor::<u32, _>::builder(DirectExecutor::new());
/// assert!(builder.capacity_per_key(0).build().is_err(), "no task could ever run");
/// ```
#[derive(Debug)]
#[must_use = "a description does nothing until it is built"]
pub struct SerialBuilder<K, E> {
    keys: PhantomData<fn(K)>,
    inner: E,
    capacity: usize,
    runner: Runner,
}

impl<K, E> SerialBuilder<K, E>
where
    K: Hash + Eq + Send + Sync + 'static,
    E: Executor + 'static,
{
    /// How many tasks of one key may be queued; more are rejected. Default: no bound.
    ///
    /// ```
    /// use millpond::executor::{ExecutorExt, Lifecycle, SerialExecutor};
    /// use millpond::preset;
    /// use std::sync::mpsc;
    ///
    /// let pool = preset::single("mill").build()?;
    /// let accounts = SerialExecutor::builder(pool.clone()).capacity_per_key(1).build()?;
    /// let (say, hear) = mpsc::channel::<()>();
    /// let alice = accounts.key("alice");
    /// let busy = alice.submit(move || hear.recv().is_err())?;
    /// while !busy.is_started() {
    ///     std::thread::yield_now();
    /// }
    /// let waits = alice.submit(|| 1)?;
    /// assert!(alice.submit(|| 2).unwrap_err().reason.is_saturated());
    /// drop(say);
    /// assert_eq!(waits.join()?, 1);
    /// pool.close()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn capacity_per_key(mut self, capacity: usize) -> Self {
        self.capacity = capacity;
        self
    }

    /// The hook for panics of tasks without a handle. Default: only the program's panic hook sees them.
    ///
    /// ```
    /// use millpond::executor::{DirectExecutor, ExecutorExt, SerialExecutor};
    /// use std::sync::mpsc;
    ///
    /// let (tell, told) = mpsc::channel();
    /// let builder = SerialExecutor::builder(DirectExecutor::new());
    /// let accounts = builder.on_panic(move |panic| drop(tell.send(panic.into_panic()))).build()?;
    /// accounts.key("alice").execute(|| panic!("overdrawn"))?;
    /// assert_eq!(told.recv()?.message(), Some("overdrawn"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn on_panic(mut self, hook: impl Fn(UncaughtPanic) + Send + Sync + 'static) -> Self {
        self.runner = Runner::with_hook(hook);
        self
    }

    /// Builds it.
    ///
    /// # Errors
    ///
    /// A capacity of 0.
    ///
    /// ```
    /// use millpond::executor::{DirectExecutor, ExecutorExt, SerialExecutor};
    ///
    /// let accounts = SerialExecutor::builder(DirectExecutor::new()).build()?;
    /// accounts.key(1).execute(|| ())?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn build(self) -> Result<SerialExecutor<K, E>, BuildError> {
        if self.capacity == 0 {
            return Err(BuildError(
                "capacity_per_key is 0, so no task could ever run: allow at least one".into(),
            ));
        }
        Ok(SerialExecutor {
            lanes: Arc::new(Lanes::new(self.inner, self.capacity, self.runner)),
        })
    }
}
