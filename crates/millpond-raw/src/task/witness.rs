//! A reference to a cell that knows neither closure nor value: it observes the task, and may run it.
//! Invariants are in the [module](super).

use super::cell::CellRef;
use super::state::TaskState;
use super::{BodyEnd, CancelReason, InlineRunner, Panic, Token};
use core::fmt;
use core::marker::PhantomData;
use core::panic::{RefUnwindSafe, UnwindSafe};

/// An observer of a task of any type. It asks for the state or runs the task inline, and leaves the outcome
/// to the handles.
///
/// ```
/// use millpond_raw::task;
///
/// let (task, handle) = task::new(|| String::from("water"), ());
/// let witness = handle.witness();
/// assert!(!witness.state().is_finished());
/// let _ = task.run();
/// assert!(witness.state().is_finished());
/// ```
pub struct Witness<M = ()> {
    cell: CellRef,
    _meta: PhantomData<M>,
}

// SAFETY: TASK-1, TASK-4 - it reads state and metadata, runs or cancels, which any thread may do, and never
// reaches the outcome; as the last reference it drops the outcome, as a `Task` may, and `task::new` takes
// only `Send` values.
unsafe impl<M: Send + Sync> Send for Witness<M> {}
// SAFETY: TASK-1, TASK-4 - as above.
unsafe impl<M: Send + Sync> Sync for Witness<M> {}

// A pointer: the cell does not move with it, and no panic leaves the cell half changed (TASK-7).
impl<M> Unpin for Witness<M> {}
impl<M> UnwindSafe for Witness<M> {}
impl<M> RefUnwindSafe for Witness<M> {}

impl<M> Witness<M> {
    /// Adds a reference to a cell with an `M`.
    ///
    /// # Safety
    ///
    /// TASK-1: the caller owns a reference. TASK-6: the cell was made with an `M`.
    pub(super) unsafe fn new(cell: CellRef) -> Self {
        // SAFETY: TASK-1 - by contract.
        unsafe { cell.retain() };
        Witness {
            cell,
            _meta: PhantomData,
        }
    }

    /// Another one.
    #[must_use]
    pub fn witness(&self) -> Witness<M> {
        // SAFETY: TASK-1 - our reference vouches for the new one; TASK-6 - made with an `M`.
        unsafe { Witness::new(self.cell) }
    }

    /// The metadata of the task.
    pub fn meta(&self) -> &M {
        // SAFETY: TASK-1 - borrowed from our reference; TASK-6 - made with an `M`.
        unsafe { self.cell.meta() }
    }

    /// The state of the task.
    pub fn state(&self) -> TaskState {
        // SAFETY: TASK-1 - our reference.
        unsafe { self.cell.read() }
    }

    /// Whether this is the only reference: there is no handle, and nothing else that could run the task.
    pub fn is_alone(&self) -> bool {
        self.state().references() == 1
    }

    /// The address of the cell; see [`Task::address`](super::Task::address).
    pub fn address(&self) -> usize {
        self.cell.address()
    }

    /// The interrupt token of the task.
    pub fn token(&self) -> &Token {
        // SAFETY: TASK-1 - borrowed from our reference.
        unsafe { &self.cell.header().token }
    }

    /// As [`Handle::run_inline`](super::Handle::run_inline).
    pub fn run_inline(
        &self,
        runner: InlineRunner,
        claimed: impl FnOnce(),
        panicked: impl FnOnce(&Panic),
    ) -> Option<BodyEnd> {
        // SAFETY: TASK-1 - our reference, kept.
        unsafe { self.cell.run_inline(runner, claimed, panicked) }
    }

    /// As [`Handle::give_up`](super::Handle::give_up).
    pub fn give_up(&self, reason: CancelReason) -> bool {
        // SAFETY: TASK-1 - our reference.
        unsafe { self.cell.give_up(reason) }
    }
}

impl<M> Drop for Witness<M> {
    fn drop(&mut self) {
        // SAFETY: TASK-1 - our reference, not used again.
        unsafe { self.cell.release(false) };
    }
}

impl<M: fmt::Debug> fmt::Debug for Witness<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Witness")
            .field("state", &self.state())
            .field("meta", self.meta())
            .finish()
    }
}
