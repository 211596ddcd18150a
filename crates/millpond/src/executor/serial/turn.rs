//! Whose turn it is: the lanes that the present thread runs.
//!
//! A scope that is opened inside a task of its own key would wait for a turn that it has itself. It
//! may run its tasks in place, because nobody else runs any of that key meanwhile.

use millpond_raw::sync::local;
use std::cell::RefCell;

local! {
    /// The addresses of lanes, the innermost last. They are compared and nothing else.
    static TURNS: RefCell<Vec<usize>> = RefCell::new(Vec::new());
}

/// Running a lane on the present thread, until it drops.
pub(super) struct Turn(());

impl Turn {
    pub(super) fn begin(lane: usize) -> Option<Self> {
        // In a thread that is being torn down there is nowhere to note it.
        let noted = TURNS.try_with(|turns| turns.borrow_mut().push(lane));
        noted.ok().map(Turn)
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        let _ = TURNS.try_with(|turns| turns.borrow_mut().pop());
    }
}

/// Whether the present thread runs the lane.
pub(super) fn is_here(lane: usize) -> bool {
    TURNS
        .try_with(|turns| turns.borrow().contains(&lane))
        .unwrap_or(false)
}
