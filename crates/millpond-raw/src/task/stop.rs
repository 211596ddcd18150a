//! How an engine stops the bodies that it runs.
//!
//! An engine gives a task away when it runs it, and no longer knows its token. So it has a token of its own
//! behind those of all tasks that it runs, and the blocking calls of a task obey both ([`current`]). A task
//! pays nothing for that before it blocks.
//!
//! A stop is final: it stays set, and every task that runs afterwards starts interrupted. An engine needs
//! that when its shutdown comes while a worker has taken a task and not started it: whichever is first, the
//! body is interrupted. And since a stop is never cleared, no body can consume it in place of the next one.
//! It neither finishes nor cancels a task: the handle still gets what the body makes of its interrupt.
//!
//! Two rejected designs: a list of the running cells, which the stop walks, costs two locks per task. A token
//! that bodies clear when they report it, as they do with their own, is gone after the first one: the engine
//! would have to set it again for a task that it had in hand, and a task that is itself an engine could not
//! see that it has been stopped.

use super::{Token, current};
use core::fmt;

/// Stops whatever an engine runs on one of its threads.
///
/// The thread's loop runs inside [`enter`](Stop::enter); any thread may [`set`](Stop::set) it. One stop may
/// be entered by many threads, but then they share a lock whenever they block.
///
/// ```
/// use millpond_raw::task::{self, Stop, current};
///
/// let stop = Stop::new();
/// stop.enter(|| {
///     let first = task::detached(|| assert!(!current::is_set()), ());
///     let _ = first.run();
///     stop.set(); // From wherever: the engine is shut down.
///     for _ in 0..2 {
///         let body = || {
///             assert!(current::take());
///             assert!(!current::take(), "each task is interrupted once");
///         };
///         assert!(matches!(task::detached(body, ()).run(), task::Ran::Completed));
///     }
///     assert!(!current::is_set(), "the engine's own code is in no task");
/// });
/// ```
pub struct Stop {
    token: Token,
}

impl Stop {
    /// A stop that is not set.
    pub fn new() -> Self {
        Stop {
            token: Token::new(),
        }
    }

    /// Interrupts all bodies that run within it, now and from now on, each of them once.
    pub fn set(&self) {
        self.token.set();
    }

    /// Whether it is set. It is never cleared.
    pub fn is_set(&self) -> bool {
        self.token.is_set()
    }

    /// Runs `f` as an engine's loop: `f` itself is in no task, and all tasks that it runs on this thread obey
    /// this stop, besides those of the enclosing engines.
    pub fn enter<R>(&self, f: impl FnOnce() -> R) -> R {
        current::enter_engine(self, f)
    }

    /// Where blocking bodies register. Never cleared (CURRENT-3 of [`current`]).
    pub(super) fn token(&self) -> &Token {
        &self.token
    }
}

impl Default for Stop {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Stop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stop").field("set", &self.is_set()).finish()
    }
}
