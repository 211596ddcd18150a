//! A closure that its caller has to run anyway, before a task is made of it.
//!
//! An engine may leave what it has no room for to whoever brings it. Such refusals come in crowds, and
//! most of what one costs is the task: its memory, its state, a way through the engine and back. So
//! [`ExecutorExt::run`](super::ExecutorExt::run) asks first, and a closure that is *turned back* runs where
//! it is, on the caller's stack.
//!
//! # Rules
//!
//! 1. Nobody can tell. The closure is the body of a task with a token of its own, what it leaves is dropped
//!    before its caller goes on, and its panic goes to the engine's hook, with the place where it was
//!    brought.
//! 2. Only what [inherits nothing](crate::task::inherits_nothing) is turned back: no name to be counted
//!    under, no deadline that may have passed, no span, nothing that is carried. All else becomes a task,
//!    and takes the usual way.
//! 3. The engine has counted it when it says so. Whoever is told runs the closure.

use super::uncaught::Runner;
use std::fmt;
use std::panic::Location;

/// What a closure that was turned back is run with.
#[doc(hidden)]
#[must_use = "it is counted as run by its caller, so its caller must run it"]
pub struct TurnedBack<'a> {
    runner: &'a Runner,
    made_at: &'static Location<'static>,
}

impl<'a> TurnedBack<'a> {
    /// By the engine that runs its tasks so, as a task that is made there.
    #[inline]
    pub(crate) fn new(runner: &'a Runner, made_at: &'static Location<'static>) -> Self {
        TurnedBack { runner, made_at }
    }

    /// Nothing of it panics out of here.
    #[inline]
    pub(super) fn run(self, f: impl FnOnce()) {
        self.runner.run_closure(self.made_at, f);
    }
}

impl fmt::Debug for TurnedBack<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "TurnedBack({})", self.made_at)
    }
}
