//! Tasks and their handles.
//!
//! [`new`] turns a closure into two things: a [`Task`], which is run once, on any thread, and a [`TaskHandle`], which
//! waits for the result. Executors create tasks for their users; the author of an executor creates them by hand, as here:
//!
//! ```
//! use millpond::task;
//!
//! let (task, handle) = task::new(|| "flour");
//! std::thread::spawn(move || task.run());
//! assert_eq!(handle.join()?, "flour");
//! # Ok::<(), millpond::task::TaskError>(())
//! ```
//!
//! # Guarantees
//!
//! - **A handle always completes.** A task that is dropped unrun completes it as cancelled, with
//!   the reason.
//! - **A task runs at most once**, and the payload of its panic is delivered and not lost.
//! - **Done means done.** Once [`TaskHandle::is_finished`] is true, joining neither blocks nor times
//!   out nor reports an interrupt.
//! - **Memory.** Writes before the creation of the task are visible in it; its own writes are visible after the join.
//! - **Deadlocks are detected.** The join that would close a cycle of joins fails with [`TaskError::Deadlock`] instead of
//!   waiting for ever.
//! - **Interrupts hit one task.** They set the token of the task, never of a thread; see
//!   [`crate::interrupt`].
//!
//! # What it costs
//!
//! At most one allocation for closure, result, waiters and token together, and in the steady state none: memory is
//! recycled, whichever threads create and run the tasks. A task with a name, a deadline, a span, task-local values or a
//! clock of its own takes a second allocation for those, and the first waiter of a task a third. A task whose closure and
//! value take up to 16 bytes each is one cache line. The crate `millpond-raw` has the protocol, its models, and how much
//! memory is kept.

// | file | what |
// |---|---|
// | `spec` | the description of a task; creates tasks |
// | `meta` | the metadata in a task's cell |
// | `runnable` | the executor's side: `Task` |
// | `handle` | the caller's side: `TaskHandle` |
// | `shared` | a handle that can be cloned |
// | `error` | why a join has no value |
// | `name` | names |
// | `priority` | priorities |
// | `context` | what tasks inherit from the task that creates them |
// | `task_local` | values of the user's that are inherited |
// | `scope_future` | the same in async code |
// | `span` | the inherited tracing span |
// | `queue_tag` | which queue a task is in, and the count of tombstones there |
// | `inline` | running a task on the thread that joins it |
// | `on_behalf` | running a scope's job on behalf of its task |
// | `finish` | interrupting a task when it should have ended |
// | `expiry` | waiters enforce the deadlines of tasks |
// | `blocked_joins` | the table of blocked joins, in which cycles are detected |
// | `cycle` | wait cycles, as they are reported |
// | `delivered` | callbacks after the outcome is delivered |

mod blocked_joins;
mod context;
mod cycle;
mod delivered;
mod error;
mod expiry;
mod finish;
mod handle;
mod inline;
mod meta;
mod name;
mod on_behalf;
mod priority;
mod queue_tag;
mod runnable;
mod scope_future;
mod shared;
mod span;
mod spec;
mod task_local;

pub(crate) use blocked_joins::{JoinGuard, JoinTarget};
pub use blocked_joins::{blocked_joins, wait_cycles};
pub use context::current_finish_by;
pub(crate) use context::{carried, current_name, inherits_nothing, outside};
pub use cycle::{BlockedJoin, Cycle, DetectedCycle, TaskLabel};
pub(crate) use delivered::{Delivered, when_delivered};
pub use error::TaskError;
pub(crate) use expiry::Expiry;
pub use handle::{AbortOnDrop, TaskHandle};
pub(crate) use handle::{deadlock, wait_registered};
pub(crate) use inline::{InlineCallbacks, InlineCandidate, enter_worker, on_engine_worker};
pub(crate) use meta::TaskView;
pub use millpond_raw::task::{CancelReason, InlineRunner, Panic, Tombstone};
pub(crate) use name::Name;
pub use priority::Priority;
pub(crate) use queue_tag::{QueueOwner, QueueTag};
pub(crate) use runnable::Witness;
pub use runnable::{Ran, Task};
pub use shared::SharedHandle;
pub use spec::TaskSpec;
pub use task_local::TaskLocal;

/// Keeps the statics that all tasks of the process share consistent across forks.
pub(crate) fn keep_at_forks() {
    blocked_joins::keep_at_forks();
    queue_tag::keep_at_forks();
}

/// Turns a closure into a task and its handle.
#[track_caller]
pub fn new<T: Send + 'static>(f: impl FnOnce() -> T + Send + 'static) -> (Task, TaskHandle<T>) {
    TaskSpec::new().build(f)
}
