//! How an engine reaches the bodies that it runs, to stop them.
//!
//! An engine gives a task away when it runs it, and knows its token no longer. A [`Reach`] remembers
//! the cells whose bodies run within it ([`Task::run_within`](super::Task::run_within)), so that
//! shutting down can set their tokens. It neither finishes nor cancels anything: a handle still gets
//! what the body makes of its interrupt.
//!
//! # Invariants
//!
//! - **A1** A cell is in the list while its runner holds a reference to it; the runner takes it out,
//!   under the lock, before it gives that reference back.
//! - **A2** Whoever finds a cell in the list counts a reference of its own before it unlocks, and
//!   touches the cell through that one. Tokens are set outside the lock: setting wakes.
//! - **A3** Stopping and entering go through the same lock. So a body that enters is in the list
//!   that the stop walks, or it finds `stopped` and sets its own token.

use super::cell::CellRef;
use crate::sync::Mutex;
use core::fmt;

/// Where bodies run that are to be stopped together.
///
/// ```
/// use millpond_raw::task::{self, Reach, with_current_token};
///
/// let reach = Reach::new();
/// reach.stop();
/// let task = task::detached(|| assert!(with_current_token(|token| token.unwrap().is_set())), ());
/// assert!(matches!(task.run_within(&reach), task::Ran::Completed));
/// ```
pub struct Reach {
    inside: Mutex<Inside>,
}

#[derive(Default)]
struct Inside {
    cells: Vec<CellRef>,
    stopped: bool,
}

// SAFETY: A1, A2 - the cells are shared by atomics, and used while a reference is held.
unsafe impl Send for Reach {}
// SAFETY: A1, A2 - as above; the list is behind a lock.
unsafe impl Sync for Reach {}

impl Reach {
    /// Nothing runs within it.
    pub fn new() -> Self {
        Reach {
            inside: Mutex::new(Inside::default()),
        }
    }

    /// Sets the tokens of all bodies that run within it, now and from now on.
    pub fn stop(&self) {
        let cells = {
            let mut inside = self.inside.lock();
            inside.stopped = true;
            for cell in &inside.cells {
                // SAFETY: A1 - in the list, so its runner holds a reference; A2 - this is ours.
                unsafe { cell.retain() };
            }
            inside.cells.clone()
        };
        for cell in cells {
            // SAFETY: A2 - our reference.
            unsafe { cell.header() }.token.set();
            // SAFETY: A2 - our reference, not used again.
            unsafe { cell.release(false) };
        }
    }

    /// Whether it has been stopped.
    pub fn is_stopped(&self) -> bool {
        self.inside.lock().stopped
    }

    /// Remembers the cell until the guard drops.
    ///
    /// # Safety
    ///
    /// T1: the caller holds a reference to the cell until the guard is dropped, and drops it (A1).
    pub(super) unsafe fn enter(&self, cell: CellRef) -> Entered<'_> {
        let stopped = {
            let mut inside = self.inside.lock();
            inside.cells.push(cell);
            inside.stopped
        };
        if stopped {
            // SAFETY: T1 - by contract.
            unsafe { cell.header() }.token.set();
        }
        Entered { reach: self, cell }
    }
}

/// A cell's stay in a reach.
pub(super) struct Entered<'a> {
    reach: &'a Reach,
    cell: CellRef,
}

impl Drop for Entered<'_> {
    fn drop(&mut self) {
        let mut inside = self.reach.inside.lock();
        if let Some(place) = inside.cells.iter().position(|cell| *cell == self.cell) {
            inside.cells.swap_remove(place);
        }
    }
}

impl Default for Reach {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Reach {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let inside = self.inside.lock();
        f.debug_struct("Reach")
            .field("running", &inside.cells.len())
            .field("stopped", &inside.stopped)
            .finish()
    }
}
