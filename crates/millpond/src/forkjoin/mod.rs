//! The fork-join pool: divides a computation into parts that borrow from each other's stacks, and lets idle workers steal
//! them.
//!
//! Use it for computations that divide themselves: sums and searches over slices and trees, sorting, walks. [`join`] runs
//! two closures, perhaps at the same time. A job that is not stolen costs a few nanoseconds, so no grain size needs to be
//! tuned. Use [`pool`](crate::pool) for tasks that mostly block, or that need a bound.
//!
//! ```
//! use millpond::forkjoin;
//!
//! fn sum(of: &[u64]) -> u64 {
//!     if of.len() <= 1_000 {
//!         return of.iter().sum();
//!     }
//!     let (left, right) = of.split_at(of.len() / 2);
//!     let (left, right) = forkjoin::join(|| sum(left), || sum(right));
//!     left + right
//! }
//! let all: Vec<u64> = (1..=100_000).collect();
//! assert_eq!(sum(&all), 5_000_050_000);
//! ```
//!
//! # Which worker runs what
//!
//! ```text
//!   worker 1                                            worker 2
//!   join(a, b)   b -> private list, a is called         idle: asks for work
//!     join(c, d) d -> private list                        |
//!                b, the oldest, is published ---------->  steals b, runs it
//!                d is taken back, called here             |
//!   waits for b: runs parts of b, or sleeps  <----------  b is done
//! ```
//!
//! | question | answer |
//! |---|---|
//! | Two parts? Many? | [`join`]; [`scope`] |
//! | A loop over a slice, a range, a vector? Sorting? | [`parallel`] |
//! | As in Java? | [`RecursiveTask`], [`CountedCompleter`] |
//! | Tasks that nobody waits for? With handles? | [`execute`](crate::executor::ExecutorExt::execute); [`submit`](crate::executor::ExecutorExt::submit) |
//! | Which pool? | that of the worker that asks, or else [`ForkJoinPool::common`]; [`ForkJoinPool::install`] runs a closure in another one |
//! | What does a worker do while it waits? | [`HelpPolicy`] |
//! | May a task block? | yes: a spare worker takes its place, see [`blocking()`] |
//! | What does it do, and what is wrong? | [`ForkJoinPool::explain`], [`workers`](ForkJoinPool::workers), [`stacks`](ForkJoinPool::stacks), [`health`](ForkJoinPool::health) |
//! | How does it end? | [`Lifecycle`](crate::executor::Lifecycle); the common pool does not |

// The protocol between submitters and workers is in the header of `engine`, that of sleeping and waking in
// `sleep/README.md`, that of jobs in `millpond_raw::forkjoin`.
//
// | file | what it holds |
// |---|---|
// | `engine` | the parts of a pool, and the protocol |
// | `install` | `join`, `scope` and `install`, from anywhere; the common pool |
// | `scope` | scopes |
// | `context` | a worker on its own thread: what it publishes, and when |
// | `wait` | what a worker does while it waits for a job |
// | `worker` | the life of a worker: run, search, sleep, leave |
// | `deque`, `slot` | what other workers see of one |
// | `outside` | the queue of what comes from outside |
// | `cache_groups` | which workers are near, and so the order of looking at their deques |
// | `sleep` | how workers fall asleep and are woken |
// | `blocking`, `spares` | workers that block, and those that take their place |
// | `recursive` | recursive tasks, as in Java |
// | `completer` | counted completers, as in Java |
// | `parallel` | loops over slices, ranges, chunks and vectors; sorting |
// | `submit` | how tasks and jobs come in; inline joins |
// | `shutdown`, `quiescence` | the end, and waiting for nothing to do |
// | `as_executor` | the traits `Executor`, `Lifecycle` and `Managed` |
// | `builder`, `config`, `parameters` | building a pool; its parameters, and changing them |
// | `models` | models for loom |
// | `snapshot`, `view`, `explain`, `events` | what is counted and shown, the same in sentences, and what its operator is told |
// | `health`, `run_stop` | what the watchdog sees; how it interrupts a task with its parts |

mod as_executor;
mod blocking;
mod builder;
mod cache_groups;
mod completer;
mod config;
mod context;
mod deque;
mod engine;
mod events;
mod explain;
mod health;
mod install;
#[cfg(millpond_loom)]
#[doc(hidden)]
pub mod models;
mod outside;
pub mod parallel;
mod parameters;
mod quiescence;
mod recursive;
mod run_stop;
mod scope;
mod shutdown;
mod sleep;
mod slot;
mod snapshot;
mod spares;
mod submit;
mod view;
mod wait;
mod worker;

pub use blocking::blocking;
pub use builder::ForkJoinBuilder;
pub use completer::{Completer, CountedCompleter};
pub use config::HelpPolicy;
pub use events::ForkJoinEvent;
pub use install::{join, scope};
pub use recursive::RecursiveTask;
pub use scope::ForkScope;
pub use snapshot::ForkJoinSnapshot;

pub use crate::engine::dropped::DroppedDetached;
pub use crate::engine::health::Health;
pub use crate::engine::long_run::LongRun;
pub use crate::engine::metrics::{Label, Metrics, TaskMetrics, Usage};
pub use crate::engine::view::{CurrentTask, WorkerState, WorkerView};
pub use crate::engine::watchdog::RunWarning;

use crate::engine::LastHandle;
use crate::executor::TerminationError;
use engine::ForkJoinEngine;
use std::borrow::Cow;
use std::fmt;
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::sync::Arc;
use std::time::Duration;

/// A pool of workers that steal from each other.
///
/// Clones are handles to one pool; dropping the last of them is an orderly shutdown that does not block: what has been
/// accepted still runs. Workers are started when there is something for them to do, up to the parallelism.
///
/// The queue of tasks from outside has no bound. In a child process after `fork()` the pool has no threads: it rejects
/// tasks, and joins run in the caller.
///
/// ```
/// use millpond::executor::{ExecutorExt, Lifecycle};
/// use millpond::forkjoin::{self, ForkJoinPool};
///
/// let pool = ForkJoinPool::builder("mill").parallelism(2).build()?;
/// let flour = pool.submit(|| forkjoin::join(|| "wheat", || "rye"))?;
/// assert_eq!(flour.join()?, ("wheat", "rye"));
/// pool.close()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct ForkJoinPool {
    engine: Arc<ForkJoinEngine>,
    _last_handle: Arc<LastHandle<ForkJoinEngine>>,
}

impl ForkJoinPool {
    /// Describes a pool whose threads are called `name-1`, `name-2` and so on.
    ///
    /// ```
    /// use millpond::forkjoin::ForkJoinPool;
    ///
    /// let pool = ForkJoinPool::builder("mill").parallelism(4).build()?;
    /// assert_eq!((pool.name(), pool.parallelism()), ("mill", 4));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn builder(name: impl Into<Cow<'static, str>>) -> ForkJoinBuilder {
        ForkJoinBuilder::new(name.into())
    }

    /// The pool's name.
    pub fn name(&self) -> &str {
        &self.engine.name
    }

    /// Waits until nothing is queued and no worker runs anything. False if that took longer than `timeout`.
    ///
    /// On a worker of the pool it runs queued work, and waits until no *other* worker runs anything. Workers that are blocked,
    /// wait in a join or wait for quiescence as well are not counted, because they may wait for the caller. If little stack is
    /// left, it runs nothing and only waits.
    ///
    /// # Errors
    ///
    /// The calling task was interrupted.
    ///
    /// ```
    /// use millpond::executor::ExecutorExt;
    /// use millpond::forkjoin::ForkJoinPool;
    /// use std::time::Duration;
    ///
    /// let pool = ForkJoinPool::builder("mill").build()?;
    /// let done = pool.submit(|| 7)?;
    /// assert!(pool.await_quiescence(Duration::from_secs(60))?);
    /// assert!(done.is_finished());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[doc(alias = "awaitQuiescence")]
    pub fn await_quiescence(&self, timeout: Duration) -> Result<bool, TerminationError> {
        let deadline = self.engine.clock.deadline(timeout);
        self.engine.await_quiescence(deadline)
    }

    /// Runs everything that is queued, and waits until no other worker runs anything, as
    /// [`await_quiescence`](ForkJoinPool::await_quiescence) does. It has no timeout, and an interrupt does not end it. On a
    /// thread that is no worker of this pool it does nothing. If little stack is left it does nothing either, so tasks that
    /// help each other do not overflow the stack.
    #[doc(alias = "helpQuiesce")]
    pub fn help_quiesce(&self) {
        self.engine.help_quiesce();
    }

    /// Whether nothing is queued and no worker runs anything.
    #[doc(alias = "isQuiescent")]
    pub fn is_quiescent(&self) -> bool {
        self.engine.is_quiescent(0)
    }
}

// The pool catches a panic of a task, and its own state is unchanged. Only the task's own data may be half done.
impl UnwindSafe for ForkJoinPool {}
impl RefUnwindSafe for ForkJoinPool {}

impl fmt::Debug for ForkJoinPool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ForkJoinPool")
            .field(&format_args!("{}", self.snapshot()))
            .finish()
    }
}
