//! How an engine stops the bodies that it runs.
//!
//! An engine gives a task away when it runs it, and knows its token no longer. So it has a word of
//! its own behind the tokens of all tasks that it runs, and the blocking calls of a task obey both
//! ([`current`]). A task pays nothing for that before it blocks.
//!
//! A stop is final: it stays set, and every task that runs afterwards begins interrupted. That is
//! what an engine needs whose shutdown comes while a thread of it has taken a task and not begun it:
//! whichever is first, the body is told. And since a stop is never cleared, no body takes it away
//! from the next one. It neither finishes nor cancels anything: a handle still gets what the body
//! makes of its interrupt.
//!
//! Two designs that were given up: a list of the cells that run, which the stop walks, costs two
//! locks per task. And a token that the bodies take, as they take their own, is gone when the first
//! one has taken it: the engine must set it again for a task that it had in hand, and a task that is
//! itself an engine cannot see that it has been stopped.

use super::{Token, current};
use core::fmt;

/// What an engine holds, for each of its threads, to stop whatever it runs there.
///
/// The thread's loop runs inside [`enter`](Stop::enter); any thread may [`set`](Stop::set) it. One
/// stop may be entered by many threads, but then they share a lock whenever they block.
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
///         let told = || {
///             assert!(current::take());
///             assert!(!current::take(), "each task is told once");
///         };
///         assert!(matches!(task::detached(told, ()).run(), task::Ran::Completed));
///     }
///     assert!(!current::is_set(), "the engine's own code is in no task");
/// });
/// ```
pub struct Stop {
    token: Token,
}

impl Stop {
    /// Nothing is stopped.
    pub fn new() -> Self {
        Stop {
            token: Token::new(),
        }
    }

    /// Interrupts all bodies that run within it, now and from now on, each of them once.
    pub fn set(&self) {
        self.token.set();
    }

    /// Whether it is set; then it stays so.
    pub fn is_set(&self) -> bool {
        self.token.is_set()
    }

    /// Runs `f` as an engine's loop: `f` itself is in no task, and all tasks that it runs on this
    /// thread obey this stop, beside those of the engines around.
    pub fn enter<R>(&self, f: impl FnOnce() -> R) -> R {
        current::enter_engine(self, f)
    }

    /// Where those enlist who block within it. Never taken (N3 of [`current`]).
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
