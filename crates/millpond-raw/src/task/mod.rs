//! The task cell: closure, result, waiters and interrupt token in one piece of memory.
//!
//! ```text
//!                    +------------------------ one slab ----------------------------+
//!   Task<M> -------> | state | vtable | token |  meta: M  |  closure, then outcome  |
//!   Handle<T, M> --> +--- Header -------------+-----------+--------- stage ---------+
//!                                         |
//!                                         +--> lists of waiters, once somebody waits
//! ```
//!
//! [`Task`] is the side that queues and workers hold: a thin pointer that runs at most once.
//! [`Handle`] is the side that waits for the outcome and may take it. Both can be on any thread.
//!
//! # Life of a cell
//!
//! ```text
//!             claim                    complete
//!   QUEUED ----------> RUNNING -------------------------> COMPLETED | PANICKED
//!     |                   |
//!     | cancel, or        | cancel: the handle is done at once,
//!     | the task dropped  | the body goes on and its outcome is dropped
//!     v                   v
//!   CANCELLED(why)     CANCELLED(why), body running
//! ```
//!
//! Whoever *claims* the cell owns its closure: a worker to run it, a waiter to run it in place
//! ([`Handle::run_here`]), a canceller to drop it at once, its maker to have it back
//! ([`Task::reclaim`]). A task that is dropped unrun cancels
//! itself with [`CancelReason::Dropped`]: **a handle always completes.**
//!
//! # Interrupts
//!
//! A [`Token`] interrupts one task, a [`Stop`] whatever an engine runs, and [`current`] is where a
//! running body finds out about both.
//!
//! # What it costs
//!
//! At most one allocation, and in the steady state none: memory is [used again](crate::recycle). The
//! first who waits for a task takes a second slab, for the lists. With a handle: one read-modify-write
//! to claim, one to complete (which also gives the runner's reference back), one to take the result
//! (likewise). Without a handle: none. Waiters cost only when there are any: completing looks at one
//! bit.
//!
//! # Invariants
//!
//! The bits of the state word are explained in [`state`].
//!
//! - **T1** The memory lives while a reference is counted. [`Task`], [`Handle`], [`Shared`] and
//!   [`Witness`] each own one and give it back exactly once; whoever gives the last one back frees the cell.
//! - **T2** The closure is in the stage until CLAIMED is set, and belongs to whoever set it.
//! - **T3** From CLAIMED to DONE the stage belongs to the claimer alone. A claimer that runs the
//!   body moves the closure out first and the outcome in last.
//! - **T4** With DONE and neither CANCELLED nor TAKEN the stage holds the outcome: a payload if
//!   PANICKED, else a value. It belongs to the one [`Handle`], or is shared read-only by
//!   [`Shared`]s, or to whoever frees the cell. CANCELLED and DONE are never set without TAKEN: a
//!   runner that finds CANCELLED drops the outcome itself. A reclaimed cell is CLAIMED and
//!   CANCELLED, never DONE, and its stage is empty.
//! - **T5** The [`Vtable`] of a header was made for the very cell it is in, so its functions may
//!   cast the pointer back to the cell's full type.
//! - **T6** The header and the meta value are at the same offsets whatever the closure is
//!   (`repr(C)`, and both stand before the stage).
//! - **T7** No panic of a closure, a value, a payload or a waker leaves the cell's code: all of them
//!   are called and dropped through [`crate::quiet`], or caught as the outcome.
//! - **T8** A waiter is in the list of joiners before WAITER is announced, under the lock of the list;
//!   and completing or cancelling reads WAITER in the very step that finishes. Both touch one word, so
//!   one of them is first: the waiter sees the end, or the end sees the waiter, and with it the list.
//!
//! # Orderings
//!
//! - `[T-out]` Completing releases the outcome, reading a finished state acquires it.
//! - `[T-ref]` Giving a reference back releases all its owner did to the cell, and whoever finds
//!   itself alone acquires that before it frees.
//! - `[T-wait]` Announcing a waiter releases the list that it is in, which may just have been made;
//!   the step that finishes and finds a waiter acquires it before it looks for the list.

mod cell;
pub mod current;
mod handle;
mod layout;
mod lazy;
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
pub use state::{Place, Shell};
pub use stop::Stop;
pub use token::Token;
pub use witness::Witness;

use cell::CellRef;
use layout::TaskCell;
#[cfg(doc)]
use layout::Vtable;

/// How many bytes a cell takes whose closure is an `F` that returns a `T`, with an `M` as its meta.
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

/// Makes a cell with a handle: `f` waits to be run by whoever holds the task, and the handle waits
/// for what it returns.
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

/// Makes a cell without a handle: nobody waits for it and nobody can cancel it.
///
/// ```
/// use millpond_raw::task::{self, Ran};
///
/// let task = task::detached(|| println!("nobody waits for this"), ());
/// assert!(matches!(task.run(), Ran::Completed));
/// ```
pub fn detached<F, M>(f: F, meta: M) -> Task<M>
where
    F: FnOnce() + Send + 'static,
    M: Send + Sync + 'static,
{
    Task::own(CellRef::new(f, meta, 1))
}
