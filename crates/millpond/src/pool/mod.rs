//! The elastic thread pool: runs closures on a bounded number of threads that it starts, keeps and lets go.
//!
//! Take it for tasks that block or compute, when threads, waiting tasks and waiting time need limits. [`ThreadPool`] is
//! Java's `ThreadPoolExecutor`: a core of workers, a queue, a maximum, a keep-alive, a rejection policy, hooks and
//! statistics. Every parameter can change while it runs. It is bounded unless you say otherwise, a rejection gives the
//! closure back, and its handles can be joined and awaited.
//!
//! ```
//! use millpond::executor::{ExecutorExt, Lifecycle};
//! use millpond::manage::Patch;
//! use millpond::pool::{Queue, RejectionPolicy, ThreadPool};
//! use std::time::Duration;
//!
//! let pool = ThreadPool::builder("mill")
//!     .core(2)
//!     .max(4)
//!     .queue(Queue::bounded(100))
//!     .rejection(RejectionPolicy::Block(Duration::from_secs(1)))
//!     .build()?;
//! assert_eq!(pool.submit(|| "flour")?.join()?, "flour");
//! pool.apply(&Patch::new().max(8).capacity(1000))?; // both, or neither
//! pool.close()?; // accepts nothing new, waits for the rest
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Where a task goes
//!
//! ```text
//!                    below core?           room in the queue?      below max?
//!   submit(task) -----> yes: new worker --> yes: it waits    -----> yes: new worker --> rejection
//!                                      no ^                no ^                    no ^   policy
//! ```
//!
//! With [`Growth::ThreadsFirst`](crate::manage::Growth) new workers, up to the maximum, come before the queue.
//!
//! | question | answer |
//! |---|---|
//! | Which pool do I want? | [`preset`](crate::preset) has the usual ones |
//! | What happens when it is full? | [`RejectionPolicy`]: give the task back, let its caller run it or wait, drop one, report |
//! | How do I look at it? | [`ThreadPool::snapshot`], [`ThreadPool::metrics_by_name`], [`ThreadPool::explain`], [`PoolEvent`] |
//! | How do I change it? | setters such as [`ThreadPool::set_max`], or [`ThreadPool::apply`] for several at once |
//! | How do I protect it from overload? | [`PoolBuilder::max_queue_wait`], [`PoolBuilder::shedding`], deadlines of tasks |
//! | How does it end? | [`Lifecycle`](crate::executor::Lifecycle): `shutdown`, `shutdown_now`, `close` |

// The protocol between submitters and workers is in the header of `engine`.
//
// | file | what it holds |
// |---|---|
// | `engine` | the parts of a pool, and the protocol |
// | `admission` | what becomes of a task that is submitted: a pure function |
// | `submit` | how a task comes in: admit, enqueue, check again |
// | `free_workers` | how a submitter relies on a free worker, if threads come first |
// | `task_queue` | the queue |
// | `worker` | the life of a worker: run, get a task, wait, leave; inline joins |
// | `timer_leader` | how an idle worker waits for a time as well |
// | `spawn` | how workers start, and how idle ones are woken |
// | `shutdown` | shutdown, stop, and tasks that are taken out of the queue |
// | `as_executor` | the traits `Executor`, `Lifecycle` and `Managed` |
// | `builder`, `config`, `parameters` | building a pool; its parameters, and changing them |
// | `rejection` | the rejection policies, applying them, and counting rejections |
// | `finish` | which tasks are dropped because they would end too late |
// | `shed`, `pacer` | which tasks are shed under overload; how long the queue needs to drain |
// | `hooks`, `events`, `explain` | what users are told |
// | `stats`, `snapshot`, `view` | what is counted and shown |
// | `health` | what the watchdog sees |

mod admission;
mod as_executor;
mod builder;
mod config;
mod engine;
mod events;
mod explain;
mod finish;
mod free_workers;
mod health;
mod hooks;
mod pacer;
mod parameters;
mod rejection;
mod shed;
mod shutdown;
mod snapshot;
mod spawn;
mod stats;
mod submit;
mod task_queue;
mod timer_leader;
mod view;
mod worker;

pub use admission::{Situation, Step, decide};
pub use builder::PoolBuilder;
pub use events::{PoolEvent, RejectionReport};
pub use explain::{Explanation, Facts, explain};
pub use hooks::{Ended, Hooks, TaskInfo};
pub use rejection::{RejectionContext, RejectionHandler, RejectionPolicy, SubmitWhenRoom};
pub use snapshot::PoolSnapshot;
pub use task_queue::Queue;

pub use crate::engine::dropped::DroppedDetached;
pub use crate::engine::health::Health;
pub use crate::engine::long_run::LongRun;
pub use crate::engine::metrics::{Label, Metrics, TaskMetrics, Usage};
pub use crate::engine::view::{CurrentTask, WorkerState, WorkerView};
pub use crate::engine::watchdog::RunWarning;

use crate::engine::{LastHandle, RemovesTasks};
use crate::manage::RunState;
use crate::task::{CancelReason, Task, TaskHandle};
use engine::PoolEngine;
use std::borrow::Cow;
use std::fmt;
use std::io;
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::sync::Arc;

/// An elastic, bounded pool of threads.
///
/// Tasks come in through [`ExecutorExt`](crate::executor::ExecutorExt), the end through
/// [`Lifecycle`](crate::executor::Lifecycle). Clones are handles to one pool; dropping the last of them is an orderly shutdown
/// that does not block: what has been accepted still runs.
///
/// In a child that `fork()` makes of this process it has no threads. There it rejects tasks, with
/// [`RejectReason::Forked`](crate::executor::RejectReason::Forked), and never hangs; build a new one there. (Linux.)
///
/// ```
/// use millpond::executor::{ExecutorExt, Lifecycle};
/// use millpond::pool::{Queue, ThreadPool};
///
/// let pool = ThreadPool::builder("mill").core(2).max(4).queue(Queue::bounded(100)).build()?;
/// let flour = pool.submit(|| "flour")?;
/// assert_eq!(flour.join()?, "flour");
///
/// // Every parameter can change while it runs.
/// pool.set_max(8)?;
/// pool.set_capacity(1000)?;
/// println!("{}", pool.snapshot());
/// pool.close()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[doc(alias = "ThreadPoolExecutor")]
#[derive(Clone)]
pub struct ThreadPool {
    engine: Arc<PoolEngine>,
    _last_handle: Arc<LastHandle<PoolEngine>>,
}

impl ThreadPool {
    /// Describes a pool whose threads are called `name-1`, `name-2` and so on.
    ///
    /// ```
    /// use millpond::executor::{ExecutorExt, Lifecycle};
    /// use millpond::pool::ThreadPool;
    ///
    /// let pool = ThreadPool::builder("mill").core(1).max(1).build()?;
    /// let name = pool.submit(|| std::thread::current().name().map(String::from))?.join()?;
    /// assert_eq!(name.as_deref(), Some("mill-1"));
    /// pool.close()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn builder(name: impl Into<Cow<'static, str>>) -> PoolBuilder {
        PoolBuilder::new(name.into())
    }

    /// The pool's name.
    ///
    /// ```
    /// use millpond::pool::ThreadPool;
    ///
    /// let pool = ThreadPool::builder("mill").build()?;
    /// assert_eq!(pool.name(), "mill");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn name(&self) -> &str {
        &self.engine.name
    }

    /// Its parameters and counters at one moment.
    ///
    /// ```
    /// use millpond::executor::{ExecutorExt, Lifecycle};
    /// use millpond::preset;
    ///
    /// let pool = preset::fixed("mill", 2).build()?;
    /// for _ in 0..10 {
    ///     pool.execute(|| ())?;
    /// }
    /// pool.close()?;
    /// let snapshot = pool.snapshot();
    /// assert_eq!((snapshot.completed, snapshot.queued, snapshot.workers), (10, 0, 0));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn snapshot(&self) -> PoolSnapshot {
        if self.engine.is_forked() {
            self.engine.snapshot_of_a_fork()
        } else {
            self.engine.snapshot()
        }
    }

    /// Starts one core worker that waits for tasks; false if none is missing.
    ///
    /// # Errors
    ///
    /// A thread could not be started.
    ///
    /// ```
    /// use millpond::preset;
    ///
    /// let pool = preset::fixed("mill", 1).build()?;
    /// assert!(pool.prestart_core()?);
    /// assert!(!pool.prestart_core()?, "there is none missing");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[doc(alias = "prestartCoreThread")]
    pub fn prestart_core(&self) -> io::Result<bool> {
        self.engine.prestart()
    }

    /// Starts all core workers that are missing, and returns how many they were.
    ///
    /// # Errors
    ///
    /// A thread could not be started. Those that were stay.
    ///
    /// ```
    /// use millpond::preset;
    ///
    /// let pool = preset::fixed("mill", 3).build()?;
    /// assert_eq!(pool.snapshot().workers, 0);
    /// assert_eq!(pool.prestart_all_core()?, 3);
    /// assert_eq!(pool.snapshot().workers, 3);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[doc(alias = "prestartAllCoreThreads")]
    pub fn prestart_all_core(&self) -> io::Result<usize> {
        let mut started = 0;
        while self.engine.prestart()? {
            started += 1;
        }
        Ok(started)
    }

    /// Takes a task out of the queue that has not started, and cancels it. False if it is not there:
    /// it runs, has run, was cancelled, or is another pool's.
    ///
    /// ```
    /// use millpond::executor::{ExecutorExt, Lifecycle};
    /// use millpond::preset;
    /// use std::sync::mpsc;
    ///
    /// let pool = preset::single("mill").build()?;
    /// let (say, hear) = mpsc::channel::<()>();
    /// let busy = pool.submit(move || hear.recv().is_err())?;
    /// let waits = pool.submit(|| "flour")?;
    /// assert!(pool.remove(&waits));
    /// assert!(waits.join().unwrap_err().is_cancelled());
    /// drop(say);
    /// assert!(busy.join()?);
    /// pool.close()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn remove<T>(&self, handle: &TaskHandle<T>) -> bool {
        let (engine, address) = (&self.engine, handle.address());
        if engine.is_forked() {
            return false;
        }
        let removed = engine.take_and_cancel(CancelReason::Removed, |_| {
            let mut is_it = |task: &Task| task.address() == address;
            engine.queue.remove_where(1, &mut is_it)
        });
        // One that is not cancelled by this was cancelled before, or a joining thread runs it inline.
        removed > 0
    }

    /// Takes tasks that have been cancelled out of the queue, and returns how many they were. They
    /// take no room from others in any case; this frees the little that is left of them.
    ///
    /// ```
    /// use millpond::executor::{ExecutorExt, Lifecycle};
    /// use millpond::preset;
    /// use std::sync::mpsc;
    ///
    /// let pool = preset::single("mill").build()?;
    /// let (say, hear) = mpsc::channel::<()>();
    /// let busy = pool.submit(move || hear.recv().is_err())?;
    /// let waits = pool.submit(|| "flour")?;
    /// assert!(waits.cancel());
    /// assert_eq!(pool.purge(), 1);
    /// drop(say);
    /// assert!(busy.join()?);
    /// pool.close()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn purge(&self) -> usize {
        if self.engine.is_forked() {
            0
        } else {
            self.engine.purge()
        }
    }

    /// The queued tasks at one moment, in the order in which they will be taken.
    ///
    /// ```
    /// use millpond::executor::{ExecutorExt, Lifecycle};
    /// use millpond::preset;
    /// use millpond::task::TaskSpec;
    /// use std::sync::mpsc;
    ///
    /// let pool = preset::single("mill").build()?;
    /// let (say, hear) = mpsc::channel::<()>();
    /// let busy = pool.submit(move || hear.recv().is_err())?;
    /// while !busy.is_started() {
    ///     std::thread::yield_now();
    /// }
    /// pool.submit_with(TaskSpec::new().name("grind"), || ())?;
    /// pool.submit_with(TaskSpec::new().name("sift"), || ())?;
    /// let names: Vec<_> = pool.queued_tasks().iter().filter_map(|task| task.name().map(String::from)).collect();
    /// assert_eq!(names, ["grind", "sift"]);
    /// drop(say);
    /// pool.close()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[doc(alias = "getQueue")]
    pub fn queued_tasks(&self) -> Vec<TaskInfo> {
        let mut all = Vec::new();
        if self.engine.is_forked() {
            return all;
        }
        self.engine
            .queue
            .visit(&mut |task| all.push(TaskInfo::of(task)));
        all
    }

    /// Whether it takes no more tasks and has not ended.
    ///
    /// ```
    /// use millpond::executor::{ExecutorExt, Lifecycle};
    /// use millpond::preset;
    /// use std::sync::mpsc;
    ///
    /// let pool = preset::single("mill").build()?;
    /// let (say, hear) = mpsc::channel::<()>();
    /// pool.execute(move || drop(hear.recv()))?;
    /// pool.shutdown();
    /// assert!(pool.is_terminating(), "one task still runs");
    /// drop(say);
    /// pool.close()?;
    /// assert!(!pool.is_terminating());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[doc(alias = "isTerminating")]
    pub fn is_terminating(&self) -> bool {
        let state = self.engine.shown();
        state != RunState::Running && state != RunState::Terminated
    }
}

// What a panic of a task leaves half done is the task's own: the pool catches it, and is as before.
impl UnwindSafe for ThreadPool {}
impl RefUnwindSafe for ThreadPool {}

impl fmt::Debug for ThreadPool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ThreadPool")
            .field(&format_args!("{}", self.snapshot()))
            .finish()
    }
}
