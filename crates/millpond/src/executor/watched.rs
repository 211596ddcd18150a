//! A value behind a lock that one can wait on.
//!
//! The small monitor of this room: the number of threads of [`super::ThreadPerTask`], the arrivals of
//! [`super::CompletionService`]. Whoever changes the value wakes all who wait, and they look again;
//! changes are rare (a thread ends, a task completes) and waiters few.
//!
//! The lost wake-up: a waiter is in the list before its last look, a change happens before its
//! wake. So the look sees the change, or the wake finds the waiter.

use crate::interrupt::{self, Look, WaitError};
use crate::time::{Clock, Deadline};
use millpond_raw::park::Site;
use millpond_raw::sync::Mutex;
use millpond_raw::waits::{Ticket, Waits};
use std::task::Waker;

/// A value that one can wait on. No code of a user's runs under its lock.
pub(crate) struct Watched<S> {
    state: Mutex<S>,
    waits: Waits,
}

impl<S> Watched<S> {
    pub(crate) fn new(state: S) -> Self {
        Watched {
            state: Mutex::new(state),
            waits: Waits::new(),
        }
    }

    /// Looks at the value, or changes something that nobody waits for.
    pub(crate) fn with<R>(&self, f: impl FnOnce(&mut S) -> R) -> R {
        f(&mut self.state.lock())
    }

    /// Changes the value, and wakes all who wait.
    pub(crate) fn change<R>(&self, f: impl FnOnce(&mut S) -> R) -> R {
        let result = self.with(f);
        self.waits.wake_all();
        result
    }

    /// A place among those who are woken by a change; taken when it is first used.
    pub(crate) fn listed(&self) -> Listed<'_> {
        Listed::new(&self.waits)
    }

    /// Waits until `f` has something.
    pub(crate) fn wait<R>(
        &self,
        site: Site,
        clock: &Clock,
        deadline: Deadline,
        mut f: impl FnMut(&mut S) -> Option<R>,
    ) -> Result<R, WaitError> {
        let mut found = self.with(&mut f);
        if let Some(found) = found {
            return Ok(found);
        }
        let mut place = Listed::new(&self.waits);
        interrupt::wait(site.on(self), clock, deadline, |waker| {
            place.take(waker);
            found = self.with(&mut f);
            Look::done_if(found.is_some())
        })?;
        Ok(found.expect("the wait ends well when something is found"))
    }
}

/// A place in a list, given up when it drops.
pub(crate) struct Listed<'a> {
    waits: &'a Waits,
    ticket: Option<Ticket>,
}

impl<'a> Listed<'a> {
    pub(crate) fn new(waits: &'a Waits) -> Self {
        Listed {
            waits,
            ticket: None,
        }
    }

    /// Takes the place, or makes sure that it is there with this waker.
    pub(crate) fn take(&mut self, waker: &Waker) {
        if let Some(ticket) = self.ticket {
            if self.waits.renew(ticket, waker) {
                return;
            }
        }
        self.ticket = self.waits.enlist(waker, || true);
    }
}

impl Drop for Listed<'_> {
    fn drop(&mut self) {
        if let Some(ticket) = self.ticket {
            self.waits.leave(ticket);
        }
    }
}
