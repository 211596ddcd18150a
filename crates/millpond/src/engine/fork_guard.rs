//! Telling a child process from the one in which an engine was built.
//!
//! `fork()` copies memory and one thread. The engine's threads stay in the parent, and one of them may hold a lock of
//! the engine, which no thread will release in the child. So every entry point of an engine asks its guard first. In the
//! child it takes no lock unless that is free, rejects tasks, wakes no thread, and says that the engine has terminated:
//! nothing of it runs there ([`Terminates::shown_state`](super::Terminates::shown_state)). Counts and parameters stay what
//! they were at the fork, as far as they can be read: those behind a lock that a thread of the parent held at that moment
//! are 0, or as by default. The capacity of a queue and what is beside it (a rejection policy, a protection against
//! overload, a run warning) is never read there: the queue may be the user's.

use millpond_raw::fork;
use std::io;

/// The generation of the process that an engine was built in.
pub(crate) struct ForkGuard {
    born: u32,
}

impl ForkGuard {
    /// For an engine that is being built. From now on this process is told from its children.
    pub(crate) fn new() -> Self {
        fork::install_handlers();
        crate::task::keep_at_forks();
        ForkGuard {
            born: fork::generation(),
        }
    }

    /// Whether this is a child of the process that the engine was built in.
    #[inline]
    pub(crate) fn is_forked(&self) -> bool {
        self.born != fork::generation()
    }

    /// Why a child process starts no thread of the engine.
    pub(crate) fn error() -> io::Error {
        io::Error::other(
            "this process was forked, and the pool's threads stayed in the parent: build a new one after \
             fork()",
        )
    }
}
