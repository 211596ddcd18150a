//! A pool in a child of the process that it was built in.
//!
//! `fork()` copies memory and one thread. The pool's workers are in the parent, and so may be whoever
//! holds one of its locks. So in the child every call looks first at the generation of the process
//! ([`millpond_raw::fork`]) and takes no lock, unless it is free:
//!
//! | call | in the child |
//! |---|---|
//! | `execute`, `submit` and so on | refused: [`RejectReason::Forked`](crate::executor::RejectReason::Forked), whatever the policy |
//! | `shutdown`, `shutdown_now`, dropping it | notes it, tells nobody; no task is handed back, for they are the parent's |
//! | `await_termination` and so on, `close`, `is_terminated` | returns at once, and says that it is over: nothing of it runs here |
//! | `snapshot` | no worker, nothing queued; what has been counted, if that can be had |
//! | `apply`, `set_*` of parameters, `prestart_*` | an error |
//! | `figures`, `figures_by_name`, `workers`, `stacks` | nothing |
//! | `set_run_warning*`, `set_rejection`, `set_thread_factory`, `remove`, `purge`, `queued_tasks` | nothing |
//!
//! What it has in its queue is never dropped in the child, nor its workers' copies of themselves: a
//! little memory stays taken. Handles of its tasks say [`TaskError::Forked`](crate::task::TaskError).

use super::engine::Engine;
use super::reject::Rejection;
use crate::manage::Overload;
use crate::thread::{ThreadFactory, Threads};
use millpond_raw::fork;
use std::io;
use std::sync::Arc;

/// The generation of this process; from now on it is told from its children.
pub(super) fn generation() -> u32 {
    fork::watch();
    crate::task::keep_at_forks();
    fork::generation()
}

pub(super) fn error() -> io::Error {
    io::Error::other(
        "this process was forked, and the pool's threads stayed in the parent: build a new one after \
         fork()",
    )
}

impl Engine {
    pub(super) fn overload(&self) -> Overload {
        match self.is_forked() {
            false => self.shedder.settings(),
            true => Overload::default(),
        }
    }

    pub(super) fn rejection(&self) -> Rejection {
        match self.is_forked() {
            false => self.knobs().rejection(),
            true => Rejection::Abort,
        }
    }

    pub(super) fn factory(&self) -> Arc<dyn ThreadFactory> {
        match self.is_forked() {
            false => Arc::clone(&self.knobs().lock().factory),
            true => Arc::new(Threads::named(self.name.clone())),
        }
    }
}
