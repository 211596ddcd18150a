//! A reference to a cell that knows neither closure nor value: it sees what becomes of the task, and
//! may run it. Invariants are in the [module](super).

use super::cell::CellRef;
use super::state::Reading;
use super::{BodyEnd, CancelReason, Panic, Place, Token};
use core::fmt;
use core::marker::PhantomData;
use core::panic::{RefUnwindSafe, UnwindSafe};

/// Who knows of a task, whatever it returns: for those who ask how far it is, or run it in place, and
/// leave the outcome to its handles.
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

// SAFETY: T1, T4 - it reads state and meta, runs or cancels, which any thread may do, and never
// reaches the outcome; if it is the last to go it drops that, as a `Task` may, and `task::new` takes
// only values that may be sent.
unsafe impl<M: Send + Sync> Send for Witness<M> {}
// SAFETY: T1, T4 - as above.
unsafe impl<M: Send + Sync> Sync for Witness<M> {}

// A pointer: what it points to stays where it is, and no panic leaves it half changed (T7).
impl<M> Unpin for Witness<M> {}
impl<M> UnwindSafe for Witness<M> {}
impl<M> RefUnwindSafe for Witness<M> {}

impl<M> Witness<M> {
    /// Counts a reference more to a cell with an `M`.
    ///
    /// # Safety
    ///
    /// T1: the caller owns a reference. T6: the cell was made with an `M`.
    pub(super) unsafe fn new(cell: CellRef) -> Self {
        // SAFETY: T1 - by contract.
        unsafe { cell.retain() };
        Witness {
            cell,
            _meta: PhantomData,
        }
    }

    /// The value that travels with the task.
    pub fn meta(&self) -> &M {
        // SAFETY: T1 - borrowed from our reference; T6 - made with an `M`.
        unsafe { self.cell.meta() }
    }

    /// What has happened to the task.
    pub fn state(&self) -> Reading {
        // SAFETY: T1 - our reference.
        unsafe { self.cell.read() }
    }

    /// Whether nobody else knows of the task any more: no handle, and nobody who could run it.
    pub fn is_alone(&self) -> bool {
        self.state().references() == 1
    }

    /// Where the cell is; see [`Task::address`](super::Task::address).
    pub fn address(&self) -> usize {
        self.cell.address()
    }

    /// The interrupt token of the task.
    pub fn token(&self) -> &Token {
        // SAFETY: T1 - borrowed from our reference.
        unsafe { &self.cell.header().token }
    }

    /// As [`Handle::run_here`](super::Handle::run_here).
    pub fn run_here(
        &self,
        place: Place,
        claimed: impl FnOnce(),
        panicked: impl FnOnce(&Panic),
    ) -> Option<BodyEnd> {
        // SAFETY: T1 - our reference, kept.
        unsafe { self.cell.run_in_place(place, claimed, panicked) }
    }

    /// As [`Handle::give_up`](super::Handle::give_up).
    pub fn give_up(&self, reason: CancelReason) -> bool {
        // SAFETY: T1 - our reference.
        unsafe { self.cell.give_up(reason) }
    }
}

impl<M> Drop for Witness<M> {
    fn drop(&mut self) {
        // SAFETY: T1 - our reference, not used again.
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
