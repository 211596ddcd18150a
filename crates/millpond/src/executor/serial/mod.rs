//! One after another, per key.
//!
//! Tasks of one key run one at a time, in the order in which they were brought. Tasks of different
//! keys run beside each other, as far as the executor below lets them. There is no fixed number of
//! stripes that unrelated keys would share, and a key that has nothing to do does not exist.
//!
//! The protocol is in `yard.rs`.

mod turn;
mod yard;

use super::dropped::DroppedTask;
use super::error::{BuildError, RejectReason, Rejected};
use super::traits::Executor;
use super::uncaught::{Runner, UncaughtPanic};
use crate::task::Task;
use crate::time::{Clock, Deadline};
use std::fmt;
use std::hash::Hash;
use std::marker::PhantomData;
use std::sync::Arc;
use yard::Yard;

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
/// Keys are hashed and compared while the list of them is locked: that must not use the executor. If it panics,
/// the task is cancelled, and nothing else is harmed.
///
/// # Behaviour today
///
/// A key that always has another task keeps the worker that runs it; with as many such keys as the
/// executor below has workers, others wait. A task that joins a later task of its own key waits for
/// itself; `join_here` does not.
///
/// A scope on a key keeps the key's order: its tasks wait for their turn. So it needs a worker of the
/// executor below, and one that is opened by a task which keeps the last of them waits for ever. Inside
/// a task of the same key, whose turn it is, it runs its tasks in place.
///
/// Interrupts from the executor below (its `shutdown_now`) reach the running task, and those
/// behind it are cancelled as shut down.
#[doc(alias = "SequentialExecutor")]
pub struct SerialExecutor<K, E> {
    yard: Arc<Yard<K, E>>,
}

impl<K, E> SerialExecutor<K, E>
where
    K: Hash + Eq + Send + Sync + 'static,
    E: Executor + 'static,
{
    /// Runs tasks on `below`, one at a time per key. As many of a key may wait as are brought;
    /// [`builder`](SerialExecutor::builder) sets a bound.
    ///
    /// ```
    /// use millpond::executor::{DirectExecutor, ExecutorExt, SerialExecutor};
    ///
    /// let accounts = SerialExecutor::new(DirectExecutor::new());
    /// assert_eq!(accounts.key("alice").submit(|| 7)?.join()?, 7);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn new(below: E) -> Self {
        SerialExecutor {
            yard: Arc::new(Yard::new(below, usize::MAX, Runner::default())),
        }
    }

    /// Describes one that runs tasks on `below`.
    ///
    /// ```
    /// use millpond::executor::{DirectExecutor, ExecutorExt, SerialExecutor};
    ///
    /// let accounts = SerialExecutor::builder(DirectExecutor::new()).capacity_per_key(100).build()?;
    /// assert_eq!(accounts.key("alice").submit(|| 7)?.join()?, 7);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn builder(below: E) -> SerialBuilder<K, E> {
        SerialBuilder {
            keys: PhantomData,
            below,
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
    ///     alice.run(move || ledger.lock().unwrap().push(amount))?;
    /// }
    /// alice.submit(|| ())?.join()?;
    /// // Four workers, and still one after the other.
    /// assert!(ledger.lock().unwrap().iter().copied().eq(0..100));
    /// pool.close()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn key(&self, key: K) -> SerialKey<K, E> {
        SerialKey {
            yard: Arc::clone(&self.yard),
            key: Arc::new(key),
        }
    }

    /// The executor below.
    ///
    /// ```
    /// use millpond::executor::{DirectExecutor, ExecutorExt, SerialExecutor};
    ///
    /// let accounts: SerialExecutor<u32, _> = SerialExecutor::new(DirectExecutor::new());
    /// assert_eq!(accounts.below().submit(|| "without a key")?.join()?, "without a key");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn below(&self) -> &E {
        self.yard.below()
    }

    /// How many keys have something to do.
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
        self.yard.busy()
    }
}

/// The executor of one key of a [`SerialExecutor`].
///
/// ```
/// use millpond::executor::{DirectExecutor, ExecutorExt, SerialExecutor};
///
/// let alice = SerialExecutor::new(DirectExecutor::new()).key("alice");
/// // It is an executor as any other.
/// assert_eq!(alice.submit(|| 7)?.join()?, 7);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct SerialKey<K, E> {
    yard: Arc<Yard<K, E>>,
    key: Arc<K>,
}

impl<K, E> Executor for SerialKey<K, E>
where
    K: Hash + Eq + Send + Sync + 'static,
    E: Executor + 'static,
{
    fn execute(&self, task: Task) -> Result<(), Rejected<Task>> {
        self.execute_until(task, Deadline::NEVER)
    }

    fn execute_until(&self, task: Task, deadline: Deadline) -> Result<(), Rejected<Task>> {
        if self.yard.is_forked() {
            return Err(Rejected::new(task, RejectReason::Forked));
        }
        self.yard.bring(&self.key, task, deadline)
    }

    fn address(&self) -> usize {
        Arc::as_ptr(&self.yard) as usize
    }

    fn report_dropped(&self, dropped: DroppedTask) {
        self.yard.below().report_dropped(dropped);
    }

    fn clock(&self) -> Clock {
        self.yard.below().clock()
    }

    /// Only inside a task of the same key, whose turn it is.
    fn may_run_in_place(&self) -> bool {
        self.yard.is_our_turn(&self.key)
    }
}

impl<K, E> Clone for SerialKey<K, E> {
    fn clone(&self) -> Self {
        SerialKey {
            yard: Arc::clone(&self.yard),
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
            yard: Arc::clone(&self.yard),
        }
    }
}

impl<K, E: fmt::Debug> fmt::Debug for SerialExecutor<K, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let busy = self.yard.busy();
        f.debug_struct("SerialExecutor")
            .field("below", self.yard.below())
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
    below: E,
    capacity: usize,
    runner: Runner,
}

impl<K, E> SerialBuilder<K, E>
where
    K: Hash + Eq + Send + Sync + 'static,
    E: Executor + 'static,
{
    /// How many tasks of one key may wait; more are refused. Default: no bound.
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

    /// What to do with the panic of a task that has no handle. Default: it goes no further than the
    /// program's panic hook.
    ///
    /// ```
    /// use millpond::executor::{DirectExecutor, ExecutorExt, SerialExecutor};
    /// use std::sync::mpsc;
    ///
    /// let (tell, told) = mpsc::channel();
    /// let builder = SerialExecutor::builder(DirectExecutor::new());
    /// let accounts = builder.on_panic(move |panic| drop(tell.send(panic.into_panic()))).build()?;
    /// accounts.key("alice").run(|| panic!("overdrawn"))?;
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
    /// accounts.key(1).run(|| ())?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn build(self) -> Result<SerialExecutor<K, E>, BuildError> {
        if self.capacity == 0 {
            return Err(BuildError(
                "capacity_per_key is 0, so no task could ever run: allow at least one".into(),
            ));
        }
        Ok(SerialExecutor {
            yard: Arc::new(Yard::new(self.below, self.capacity, self.runner)),
        })
    }
}
