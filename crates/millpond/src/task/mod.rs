//! A piece of work and its handle.
//!
//! [`new`] turns a closure into two things: a [`Task`], which somebody runs, once, on any thread,
//! and a [`TaskHandle`], which waits for what it returns. Executors make tasks for their users;
//! whoever builds one makes them by hand, as here:
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
//! - **A task runs at most once**, and what it panics with is delivered and not lost.
//! - **Done means done.** Once [`TaskHandle::is_finished`] is true, joining neither blocks nor times
//!   out nor reports an interrupt.
//! - **Memory.** What was written before the task was made is visible in it; what it wrote is
//!   visible after the join.
//! - **Interrupts hit one task.** They set the token of the task, never of a thread; see
//!   [`crate::interrupt`].
//!
//! # What it costs
//!
//! One allocation for closure, result, waiters and token together; see `millpond-raw` for the
//! protocol and its models.

mod context;
mod error;
mod handle;
mod name;
mod runnable;
mod span;
mod spec;
mod stand_in;

pub use error::TaskError;
pub use handle::{AbortOnDrop, SharedHandle, TaskHandle};
pub use millpond_raw::task::{CancelReason, Panic};
pub(crate) use name::Name;
pub use runnable::{Ran, Task};
pub use spec::TaskSpec;

/// Turns a closure into a task and its handle.
#[track_caller]
pub fn new<T: Send + 'static>(f: impl FnOnce() -> T + Send + 'static) -> (Task, TaskHandle<T>) {
    TaskSpec::new().build(f)
}
