//! The task cell: closure, outcome, waiters and interrupt token in one piece of memory.
//!
//! ```text
//!                    +------------------------ one object --------------------------+
//!   Task<M> -------> | state | vtable | token |  meta: M  |  closure, then outcome  |
//!   Handle<T, M> --> +--- Header -------------+-----------+--------- stage ---------+
//!                                         |
//!                                         +--> queues of waiters, allocated on demand
//! ```
//!
//! [`Task`] is what queues and workers hold: a thin pointer that runs at most once. [`Handle`] waits for the
//! outcome and may take it. Both can be on any thread.
//!
//! | file | what |
//! |---|---|
//! | `state` | the state word |
//! | `layout` | the layout of a cell, and the functions that know the closure's type |
//! | `cell` | the operations: make, run, cancel, free |
//! | `runnable` | the task, for queues and workers |
//! | `handle` | the one handle, which takes the outcome |
//! | `shared` | handles for many, which show the outcome |
//! | `witness` | a reference that may run the task and leaves the outcome alone |
//! | `outcome` | value, panic or reason of a cancellation |
//! | `token` | the interrupt flag of a task |
//! | `stop` | the interrupt of all tasks of an engine |
//! | `current` | the task that the current thread runs |
//! | `lazy_waiters` | the queues of joiners and blocked bodies, allocated on demand |
//!
//! # Life of a cell
//!
//! ```text
//!             claim                    complete
//!   QUEUED ----------> RUNNING -------------------------> COMPLETED | PANICKED
//!     |                   |
//!     | cancel, or        | cancel: the handle is finished at once,
//!     | the task dropped  | the body goes on and its outcome is dropped
//!     v                   v
//!   CANCELLED(why)     CANCELLED(why), body running
//! ```
//!
//! A thread that *claims* the cell owns its closure: a worker to run it, a waiter to run it inline
//! ([`Handle::run_inline`]), a canceller to drop it at once, its maker to have it back ([`Task::reclaim`]). A
//! task that is dropped unrun cancels itself with [`CancelReason::Dropped`]: **a handle always completes.**
//!
//! # Interrupts
//!
//! A [`Token`] interrupts one task, a [`Stop`] everything that an engine runs, and [`current`] is where a
//! running body finds out about both.
//!
//! # Costs
//!
//! At most one allocation, and in the steady state none: memory is [recycled](crate::recycle). The first
//! waiter of a task takes a second object, for the queues. With a handle: one read-modify-write to claim, one
//! to complete (which also gives the runner's reference back), one to take the outcome (likewise). Without a
//! handle: none. Without waiters completing costs a test of one bit.
//!
//! # Invariants
//!
//! The bits of the state word are explained in [`state`].
//!
//! - **TASK-1** The memory lives while a reference is counted. [`Task`], [`Handle`], [`Shared`] and
//!   [`Witness`] each own one and give it back exactly once; the owner of the last one frees the cell.
//! - **TASK-2** The closure is in the stage until CLAIMED is set, and belongs to the thread that set it.
//! - **TASK-3** From CLAIMED to DONE the stage belongs to the claimer alone. A claimer that runs the body
//!   moves the closure out first and the outcome in last.
//! - **TASK-4** With DONE and neither CANCELLED nor TAKEN the stage holds the outcome: a payload if PANICKED,
//!   else a value. It belongs to the one [`Handle`], or is shared read-only by [`Shared`]s, or belongs to the
//!   thread that frees the cell. CANCELLED and DONE are never set without TAKEN: a runner that finds
//!   CANCELLED drops the outcome itself. A reclaimed cell is CLAIMED and CANCELLED, never DONE, and its stage
//!   is empty.
//! - **TASK-5** The [`Vtable`] of a header was made for the very cell it is in, so its functions may cast the
//!   pointer back to the cell's full type.
//! - **TASK-6** The header and the metadata are at the same offsets whatever the closure is (`repr(C)`, and
//!   both come before the stage).
//! - **TASK-7** No panic of a closure, a value, a payload or a waker leaves the cell's code: all of them are
//!   called and dropped through [`crate::catch_panic`], or caught as the outcome.
//! - **TASK-8** A waiter is in the queue of joiners before WAITER is announced, under the lock of the queue;
//!   and completing or cancelling reads WAITER in the same atomic step. Both steps modify one word, so one is
//!   first: the waiter sees the end, or the end sees the waiter, and with it the queue.
//!
//! # Orderings
//!
//! - `[T-out]` Completing releases the outcome, reading a finished state acquires it.
//! - `[T-ref]` Giving a reference back releases everything that its owner did to the cell. The owner of the last
//!   reference acquires that before it frees the cell.
//! - `[T-wait]` Announcing a waiter releases its queue, which may just have been allocated. The step that finishes the
//!   task and finds a waiter acquires the queue before it looks for it.

mod cell;
pub mod current;
mod handle;
mod layout;
mod lazy_waiters;
mod outcome;
mod runnable;
mod shared;
pub mod state;
mod stop;
mod token;
mod witness;

pub use cell::{Body, BodyEnd};
pub use handle::Handle;
pub use outcome::{CancelReason, Outcome, Panic};
pub use runnable::{Ran, Task};
pub use shared::Shared;
pub use state::{InlineRunner, Tombstone};
pub use stop::Stop;
pub use token::Token;
pub use witness::Witness;

use cell::CellRef;
use layout::TaskCell;
#[cfg(doc)]
use layout::Vtable;

/// The size of a cell in bytes whose closure is an `F` that returns a `T`, with metadata `M`.
///
/// ```
/// use millpond_raw::task;
///
/// assert!(task::cell_size::<fn() -> u64, u64, ()>() < 64);
/// ```
pub const fn cell_size<F, T, M>() -> usize
where
    F: FnOnce() -> T,
{
    size_of::<TaskCell<F, T, M>>()
}

/// Makes a task with a handle: the task runs `f`, and the handle waits for what it returns.
///
/// `meta` travels with the task: a name, a deadline, a place of submission.
///
/// ```
/// use millpond_raw::task::{self, Outcome};
///
/// let (task, mut handle) = task::new(|| 6 * 7, "answer");
/// assert_eq!(*task.meta(), "answer");
/// let _ = task.run();
/// assert!(matches!(handle.take(), Some(Outcome::Completed(42))));
/// ```
pub fn new<F, T, M>(f: F, meta: M) -> (Task<M>, Handle<T, M>)
where
    F: FnOnce() -> T + Send + 'static,
    T: Send + 'static,
    M: Send + Sync + 'static,
{
    let cell = CellRef::new(f, meta, 2);
    (Task::own(cell), Handle::own(cell))
}

/// Makes a task without a handle: it cannot be joined or cancelled.
///
/// ```
/// use millpond_raw::task::{self, Ran};
///
/// let task = task::detached(|| println!("detached"), ());
/// assert!(matches!(task.run(), Ran::Completed));
/// ```
pub fn detached<F, M>(f: F, meta: M) -> Task<M>
where
    F: FnOnce() + Send + 'static,
    M: Send + Sync + 'static,
{
    Task::own(CellRef::new(f, meta, 1))
}
