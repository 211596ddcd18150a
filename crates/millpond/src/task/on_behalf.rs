//! Running a closure on behalf of a task.
//!
//! The task that a scope gives to its executor does not contain the job's closure, only a reference to it. A thread that
//! waits for the job may run the closure without the task, but on its behalf: under the task's token, so that an
//! interrupt finds it, and in the context that the task has inherited.

use super::blocked_joins::address;
use super::{CancelReason, JoinTarget, Name, SharedHandle, context};
use crate::time::Clock;

impl SharedHandle<()> {
    /// Runs `f` as if it were the body of the task.
    pub(crate) fn run_on_behalf<R>(&self, f: impl FnOnce() -> R) -> R {
        let inherited = self.raw.meta().inherited();
        let body = || self.raw.token().enter(f);
        if context::is_plain(inherited) {
            body()
        } else {
            context::enter(inherited.cloned(), body)
        }
    }

    /// The work that is done on behalf of this task, as the target of joins that wait until `is_over`.
    pub(crate) fn join_target(
        &self,
        is_over: impl Fn() -> bool + Send + Sync + 'static,
    ) -> JoinTarget {
        JoinTarget {
            address: address(self.raw.token()),
            label: self.raw.meta().label(),
            is_over: Box::new(is_over),
        }
    }

    /// Cancels the task, whose work is done or not wanted any more, so that its executor can drop it.
    pub(crate) fn retire(&self, reason: CancelReason) {
        let found = self.raw.cancel(reason);
        self.raw.meta().record_cancelled(found);
    }

    /// Sets the interrupt token of the task, for the thread that runs on its behalf.
    pub(crate) fn ask_to_stop(&self) {
        self.raw.token().set();
    }

    /// Why it is not to be started any more, if one of its deadlines has passed by its own clock.
    pub(crate) fn expiry(&self) -> Option<CancelReason> {
        self.raw.meta().expiry()
    }

    pub(crate) fn shared_name(&self) -> Option<Name> {
        self.raw.meta().name().cloned()
    }

    pub(crate) fn clock(&self) -> Clock {
        self.raw.meta().clock()
    }
}
