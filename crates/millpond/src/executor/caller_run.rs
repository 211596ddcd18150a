//! A closure that its caller runs itself, without a task.
//!
//! An engine may leave what it has no room for to the submitter (caller-runs). Under overload such rejections are
//! frequent, and most of the cost of each is the task: its memory, its state, the way through the engine and back. So
//! [`ExecutorExt::execute`](super::ExecutorExt::execute) asks first, and the closure of a *caller run* runs where it is, on
//! the caller's stack.
//!
//! # Rules
//!
//! 1. No difference can be observed. The closure is the body of a task with a token of its own, it is dropped before its
//!    caller goes on, and its panic goes to the engine's hook, with the source location of the submission.
//! 2. Only a closure that [inherits nothing](crate::task::inherits_nothing) is run so: no name to be counted under, no
//!    deadline that may have passed, no span, no task-local values. All others become tasks.
//! 3. The engine has counted the run when it decides so. The caller must run the closure.

use super::runner::Runner;
use millpond_raw::sync::atomic::{AtomicU64, Ordering};
use std::fmt;
use std::panic::Location;

/// Runs a closure that the engine leaves to its caller.
#[doc(hidden)]
#[must_use = "the engine has counted the run, so the caller must run the closure"]
pub struct CallerRun<'a> {
    runner: &'a Runner,
    location: &'static Location<'static>,
    panicked: &'a AtomicU64,
}

impl<'a> CallerRun<'a> {
    /// By the engine with this runner, as a task that was created at this location. The engine counts those that panic.
    #[inline]
    pub(crate) fn new(
        runner: &'a Runner,
        location: &'static Location<'static>,
        panicked: &'a AtomicU64,
    ) -> Self {
        CallerRun {
            runner,
            location,
            panicked,
        }
    }

    /// Catches the panic of the closure.
    #[inline]
    pub(super) fn run(self, f: impl FnOnce()) {
        if self.runner.run_closure(self.location, f).is_err() {
            self.panicked.fetch_add(1, Ordering::Relaxed);
        }
    }
}

impl fmt::Debug for CallerRun<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CallerRun({})", self.location)
    }
}
