//! One after another, per key.
//!
//! Tasks of one key run one at a time, in the order in which they were brought. Tasks of different
//! keys run beside each other, as far as the executor below lets them. There is no fixed number of
//! stripes that unrelated keys would share, and a key that has nothing to do does not exist.
//!
//! The protocol is in `yard.rs`.

mod turn;
mod yard;

use super::error::{BuildError, RejectReason, Rejected};
use super::traits::Executor;
use super::uncaught::{Runner, UncaughtPanic};
use crate::task::Task;
use crate::time::Clock;
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
    pub fn new(below: E) -> Self {
        SerialExecutor {
            yard: Arc::new(Yard::new(below, usize::MAX, Runner::default())),
        }
    }

    /// Describes one that runs tasks on `below`.
    pub fn builder(below: E) -> SerialBuilder<K, E> {
        SerialBuilder {
            keys: PhantomData,
            below,
            capacity: usize::MAX,
            runner: Runner::default(),
        }
    }

    /// The executor of this key's tasks.
    pub fn key(&self, key: K) -> SerialKey<K, E> {
        SerialKey {
            yard: Arc::clone(&self.yard),
            key: Arc::new(key),
        }
    }

    /// The executor below.
    pub fn below(&self) -> &E {
        self.yard.below()
    }

    /// How many keys have something to do.
    pub fn busy_keys(&self) -> usize {
        self.yard.busy()
    }
}

/// The executor of one key of a [`SerialExecutor`].
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
        if self.yard.is_forked() {
            return Err(Rejected::new(task, RejectReason::Forked));
        }
        self.yard.bring(&self.key, task)
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
    pub fn capacity_per_key(mut self, capacity: usize) -> Self {
        self.capacity = capacity;
        self
    }

    /// What to do with the panic of a task that has no handle. Default: it goes no further than the
    /// program's panic hook.
    pub fn on_panic(mut self, hook: impl Fn(UncaughtPanic) + Send + Sync + 'static) -> Self {
        self.runner = Runner::with_hook(hook);
        self
    }

    /// Builds it.
    ///
    /// # Errors
    ///
    /// A capacity of 0.
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
