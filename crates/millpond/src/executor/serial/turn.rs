//! The lanes that the current thread is running.
//!
//! A scope that is opened inside a task of its own key would wait for a turn that it has itself. It may run its tasks
//! inline, because no other thread runs a task of that key meanwhile.

use millpond_raw::sync::local;
use std::cell::RefCell;

local! {
    /// The addresses of lanes, the innermost last. They are only compared.
    static TURNS: RefCell<Vec<usize>> = RefCell::new(Vec::new());
}

/// Records that the current thread runs a lane, until it drops.
pub(super) struct Turn(());

impl Turn {
    pub(super) fn begin(lane: usize) -> Option<Self> {
        // A thread that is being torn down has no thread-locals.
        let recorded = TURNS.try_with(|turns| turns.borrow_mut().push(lane));
        recorded.ok().map(Turn)
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        let _ = TURNS.try_with(|turns| turns.borrow_mut().pop());
    }
}

/// Whether the current thread runs the lane.
pub(super) fn is_current(lane: usize) -> bool {
    TURNS
        .try_with(|turns| turns.borrow().contains(&lane))
        .unwrap_or(false)
}
