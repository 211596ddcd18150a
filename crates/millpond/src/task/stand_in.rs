//! Doing a task's work in its place.
//!
//! A scope's closure is not in the task that its executor has, only a way to it is. Whoever waits
//! for the closure may run it without that task, but in its name: under its token, so that an
//! interrupt finds it, and passing on what it would have passed on.

use super::{CancelReason, Name, SharedHandle, context};
use crate::time::Clock;

impl SharedHandle<()> {
    /// Runs `f` as if it were the body of the task.
    pub(crate) fn stand_in<R>(&self, f: impl FnOnce() -> R) -> R {
        let inherited = self.raw.meta().inherited();
        let body = || self.raw.token().enter(f);
        match context::is_plain(inherited) {
            true => body(),
            false => context::enter(inherited.cloned(), body),
        }
    }

    /// Makes the task find nothing to do, so that its executor can do without it, and knows why.
    pub(crate) fn retire(&self, reason: CancelReason) {
        let found = self.raw.cancel(reason);
        self.raw.meta().note_cancelled(found);
    }

    /// Sets the token of the task, whoever runs what under it.
    pub(crate) fn ask_to_stop(&self) {
        self.raw.token().set();
    }

    /// Whether its deadline has passed, by its own clock. What has no deadline asks no clock.
    pub(crate) fn is_expired(&self) -> bool {
        self.raw.meta().is_expired()
    }

    pub(crate) fn shared_name(&self) -> Option<Name> {
        self.raw.meta().name().cloned()
    }

    pub(crate) fn clock(&self) -> Clock {
        self.raw.meta().clock()
    }
}
