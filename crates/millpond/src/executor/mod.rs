//! Executors: bring a closure, get a handle.
//!
//! [`Executor`] is what an engine implements: one method that takes a task or gives it back.
//! [`ExecutorExt`] is what everybody uses: closures in, handles out, batches, time-outs; it is
//! there for every executor, also for `Arc<dyn Executor>`. [`Lifecycle`] is for those that can be
//! shut down.
//!
//! | | executor | where tasks run |
//! |---|---|---|
//! | 1 | [`DirectExecutor`] | in the caller, at once |
//! | 2 | [`ThreadPerTask`] | each in a new thread, up to a bound |
//! | 3 | [`SerialExecutor`] | on another executor, one at a time per key |
//! | 4 | `TokioExecutor` (feature `tokio`) | on the blocking threads of a tokio runtime |
//! | 5 | `RayonExecutor` (feature `rayon`) | on the workers of a rayon pool |
//!
//! On top of any of them: [`CompletionService`] gives results in the order in which they come,
//! [`SpawnFuture`] drives futures, and `Spawner` (feature `futures`) is a spawner of the `futures`
//! crates.
//!
//! # Guarantees
//!
//! 1. **A refusal gives everything back.** The very closure, with all that it owns, and the reason;
//!    no handle is left behind.
//! 2. **Everything accepted ends.** It runs, or its handle is cancelled with the reason.
//!    A task without a handle that is dropped after all, because its deadline has passed or because it has
//!    waited for too long, is an event: of the pool, or a line in the log. What a policy discards is
//!    counted.
//! 3. **A panic costs its task and nothing else.** It goes to the handle; without a handle, to the
//!    hook of the executor ([`UncaughtPanic`]).
//! 4. **Whoever stops waiting cancels.** A batch whose caller is interrupted, runs out of time or
//!    panics leaves nothing running that it could stop.
//! 5. **Counts hang on bodies.** A cancelled task that still runs keeps its thread counted and its
//!    executor from terminating.
//! 6. **Memory.** What was written before a task was brought is visible in it; what it wrote is
//!    visible after the join, and after the wait for termination.
//! 7. **Tasks may borrow.** [`ExecutorExt::scope`] brings closures that borrow from the caller to any
//!    executor, and does not return before all of them have ended.

mod completion;
mod direct;
mod dropped;
mod error;
mod future;
mod invoke;
mod post;
mod scope;
mod serial;
mod termination;
mod thread_per_task;
mod timer_thread;
mod traits;
mod turned_back;
mod uncaught;
mod watched;

#[cfg(feature = "futures")]
mod futures_spawn;
#[cfg(feature = "rayon")]
mod rayon;
#[cfg(feature = "tokio")]
mod tokio;

pub use completion::{Arrived, CompletionService, TaskId};
pub use direct::DirectExecutor;
#[doc(hidden)]
pub use dropped::DroppedTask;
pub(crate) use dropped::{DropTally, Step, discount_witness, give_up, why};
pub use error::{
    BuildError, Failure, InvokeAllError, InvokeAnyError, NotTaken, RejectReason, Rejected,
    ScopeError,
};
pub use future::SpawnFuture;
pub use invoke::Results;
#[doc(hidden)]
pub use post::PostOffer;
pub(crate) use post::{Outlook, Post};
pub use scope::{Scope, ScopeOptions, ScopedHandle};
pub use serial::{SerialBuilder, SerialExecutor, SerialKey};
pub use termination::TerminationError;
pub(crate) use termination::{Inside, ended};
pub use thread_per_task::{AtBound, ThreadPerTask, ThreadPerTaskBuilder};
pub(crate) use timer_thread::TimerThread;
pub use traits::{Executor, ExecutorExt, Lifecycle};
#[doc(hidden)]
pub use turned_back::TurnedBack;
pub use uncaught::UncaughtPanic;
pub(crate) use uncaught::{Fate, Runner};
pub(crate) use watched::{Listed, Watched};

#[cfg(feature = "futures")]
pub use futures_spawn::Spawner;
#[cfg(feature = "rayon")]
pub use rayon::RayonExecutor;
#[cfg(feature = "tokio")]
pub use tokio::TokioExecutor;
