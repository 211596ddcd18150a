//! Executors: submit a closure, get a handle.
//!
//! Take this module for code that works with any executor, and for the executors without a queue of their own in the table
//! below; a [`ThreadPool`](crate::pool::ThreadPool) is an executor, too.
//!
//! ```
//! use millpond::executor::{ExecutorExt, ThreadPerTask};
//! use millpond::task::TaskHandle;
//!
//! fn grind(mill: &impl ExecutorExt) -> Result<TaskHandle<u32>, Box<dyn std::error::Error>> {
//!     Ok(mill.submit(|| 6 * 7)?)
//! }
//!
//! let threads = ThreadPerTask::builder("mill", 8).build()?;
//! assert_eq!(grind(&threads)?.join()?, 42);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! [`Executor`] is what an engine implements: one method that accepts a task or returns it. [`ExecutorExt`] is what users
//! call: closures in, handles out, batches, timeouts; every executor has it, `Arc<dyn Executor>` included. [`Lifecycle`]
//! is for executors that can be shut down.
//!
//! | | executor | where tasks run |
//! |---|---|---|
//! | 1 | [`DirectExecutor`] | in the caller, at once |
//! | 2 | [`ThreadPerTask`] | each on a new thread, up to a bound |
//! | 3 | [`SerialExecutor`] | on another executor, one at a time per key |
//! | 4 | `TokioExecutor` (feature `tokio`) | on the blocking threads of a tokio runtime |
//! | 5 | `RayonExecutor` (feature `rayon`) | on the workers of a rayon pool |
//!
//! On top of any of them: [`CompletionService`] returns results in the order of completion, [`SpawnFuture`] drives
//! futures, and `Spawner` (feature `futures`) is a spawner for the `futures` crates.
//!
//! # Guarantees
//!
//! 1. **A rejection gives everything back**: the very closure, with all that it owns, and the reason; no handle is left
//!    behind.
//! 2. **Every accepted task ends.** It runs, or its handle is cancelled with the reason. A task without a handle that is
//!    dropped after all, because its deadline has passed or because it has waited for too long, is reported: by an event
//!    of the pool, or a line in the log. A task that a policy discards is counted.
//! 3. **A panic costs its task and nothing else.** It goes to the handle; without a handle, to the hook of the executor
//!    ([`UncaughtPanic`]).
//! 4. **A caller that stops waiting cancels.** A batch whose caller is interrupted, times out or panics leaves nothing
//!    running that it could stop.
//! 5. **Counts follow bodies.** A cancelled task that still runs keeps its thread counted and its executor from
//!    terminating.
//! 6. **Memory.** Writes before the submission of a task are visible in it; its own writes are visible after the join, and
//!    after the wait for termination.
//! 7. **Tasks may borrow.** [`ExecutorExt::scope`] submits closures that borrow from the caller to any executor, and does
//!    not return before all of them have ended.

// | file | what |
// |---|---|
// | `traits` | `Executor`, `ExecutorExt`, `Lifecycle` |
// | `error` | rejections, and failures of batches and scopes |
// | `internals` | what the engines of this library know of each other |
// | `runner` | runs tasks, and reports the panics of those without a handle |
// | `caller_run` | a closure that its caller runs itself, without a task |
// | `dropped` | reports of tasks without a handle that were dropped unrun |
// | `termination` | waiting for the termination of an executor |
// | `terminated` | the same in async code |
// | `timer_source` | an idle worker waits for a due time |
// | `timer_thread` | the rejection when the timer's thread cannot be started |
// | `waitable` | a value under a lock, with waiters |
// | `direct` | the executor that runs tasks in the caller |
// | `thread_per_task` | the executor with a thread per task |
// | `serial` | the executor that runs one task at a time per key |
// | `tokio` | a tokio runtime as an executor |
// | `rayon` | a rayon pool as an executor |
// | `invoke` | batches: all of them, or the first success |
// | `completion` | results in the order of completion |
// | `scope` | tasks that borrow |
// | `future` | futures on an executor |
// | `futures_spawn` | an executor as a spawner of the `futures` crates |

mod caller_run;
mod completion;
mod direct;
mod dropped;
mod error;
mod future;
mod internals;
mod invoke;
mod runner;
mod scope;
mod serial;
mod terminated;
mod termination;
mod thread_per_task;
mod timer_source;
mod timer_thread;
mod traits;
mod waitable;

#[cfg(feature = "futures")]
mod futures_spawn;
#[cfg(feature = "rayon")]
mod rayon;
#[cfg(feature = "tokio")]
mod tokio;

#[doc(hidden)]
pub use caller_run::CallerRun;
pub use completion::{Completion, CompletionService, TaskId};
pub use direct::DirectExecutor;
pub(crate) use dropped::{
    DropReports, DroppedTask, ReportDrops, cancel_dropped, discount_witness, why, why_dropped,
};
pub use error::{
    BuildError, Failure, InvokeAllError, InvokeAnyError, RejectReason, Rejected, ScopeError,
    TryExecuteError,
};
pub use future::SpawnFuture;
pub(crate) use internals::{EngineInternals, Internals};
pub use invoke::Results;
pub use runner::UncaughtPanic;
pub(crate) use runner::{Runner, TaskOutcome};
pub use scope::{Scope, ScopeOptions, ScopedHandle};
pub use serial::{SerialBuilder, SerialExecutor, SerialKey};
#[doc(hidden)]
pub use terminated::EndWaiters;
pub use terminated::Terminated;
pub use termination::TerminationError;
pub(crate) use termination::{Inside, ended};
pub use thread_per_task::{SaturationPolicy, ThreadPerTask, ThreadPerTaskBuilder};
pub(crate) use timer_source::{TimerSource, TimerSourceOffer, TimerStatus};
pub(crate) use timer_thread::TimerThread;
pub use traits::{Executor, ExecutorExt, Lifecycle};
pub(crate) use waitable::{Waitable, WaiterRegistration};

#[cfg(feature = "futures")]
pub use futures_spawn::Spawner;
#[cfg(feature = "rayon")]
pub use rayon::RayonExecutor;
#[cfg(feature = "tokio")]
pub use tokio::TokioExecutor;
