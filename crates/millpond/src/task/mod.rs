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
//! - **Tasks that wait for each other are told.** The last one to join in a ring of joins gets
//!   [`TaskError::Deadlock`] instead of waiting for ever.
//! - **Interrupts hit one task.** They set the token of the task, never of a thread; see
//!   [`crate::interrupt`].
//!
//! # What it costs
//!
//! At most one allocation for closure, result, waiters and token together, and in the steady state
//! none: memory is used again, whichever threads make and run the tasks. A task with a name, a
//! deadline, a span, something carried or a clock of its own takes a second piece for those, and the first who has to
//! wait for a task a third. A task whose closure and value take up to 16 bytes each is one cache line.
//! See `millpond-raw` for the protocol, its models, and how much memory is kept.

mod carried;
mod context;
mod cycle;
mod delivered;
mod error;
mod expiry;
mod handle;
mod home;
mod in_place;
mod meta;
mod name;
mod priority;
mod runnable;
mod shared;
mod span;
mod spec;
mod stand_in;
mod waiting;

pub use carried::Carried;
pub(crate) use context::{current_name, inherits_nothing};
pub use cycle::{Cycle, FoundCycle, TaskLabel, Waiting};
pub(crate) use delivered::{Delivered, when_delivered};
pub use error::TaskError;
pub(crate) use expiry::Expiry;
pub use handle::{AbortOnDrop, TaskHandle};
pub(crate) use handle::{deadlock, wait_listed};
pub(crate) use home::{Home, Kind};
pub(crate) use in_place::{Host, Queued, at_home, is_at_home};
pub(crate) use meta::About;
pub use millpond_raw::task::{CancelReason, Panic, Place, Shell};
pub(crate) use name::Name;
pub use priority::Priority;
pub(crate) use runnable::Witness;
pub use runnable::{Ran, Task};
pub use shared::SharedHandle;
pub use spec::TaskSpec;
pub(crate) use waiting::{Awaited, Listed};
pub use waiting::{wait_cycles, waits};

/// What all tasks of the process share is in order at forks.
pub(crate) fn keep_at_forks() {
    waiting::keep_at_forks();
    home::keep_at_forks();
}

/// Turns a closure into a task and its handle.
#[track_caller]
pub fn new<T: Send + 'static>(f: impl FnOnce() -> T + Send + 'static) -> (Task, TaskHandle<T>) {
    TaskSpec::new().build(f)
}
