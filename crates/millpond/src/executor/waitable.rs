//! A value behind a lock, with threads that wait for it to change.
//!
//! The small monitor of this room: the number of threads of [`super::ThreadPerTask`], the completions of
//! [`super::CompletionService`]. A change wakes all waiters, and they look again: changes are rare (a thread ends, a task
//! completes) and waiters few.
//!
//! No wake-up is lost: a waiter is registered before its last look, and a change happens before its wake-up. So the look sees
//! the change, or the wake-up finds the waiter.

use crate::interrupt::{self, Look, WaitError};
use crate::time::{Clock, Deadline};
use millpond_raw::park::Site;
use millpond_raw::sync::Mutex;
use millpond_raw::wait_queue::{Ticket, WaitQueue};
use std::task::Waker;

/// A value under a lock, and the threads that wait for it to change. No user code runs under the lock.
pub(crate) struct Waitable<S> {
    state: Mutex<S>,
    waiters: WaitQueue,
}

impl<S> Waitable<S> {
    pub(crate) fn new(state: S) -> Self {
        Waitable {
            state: Mutex::new(state),
            waiters: WaitQueue::new(),
        }
    }

    /// Reads the value, or changes a part that no thread waits for.
    pub(crate) fn with<R>(&self, f: impl FnOnce(&mut S) -> R) -> R {
        f(&mut self.state.lock())
    }

    /// Changes the value, and wakes all waiters.
    pub(crate) fn change<R>(&self, f: impl FnOnce(&mut S) -> R) -> R {
        let result = self.with(f);
        self.waiters.wake_all();
        result
    }

    /// A registration of a waiter, which begins with its first use.
    pub(crate) fn registration(&self) -> WaiterRegistration<'_> {
        WaiterRegistration::new(&self.waiters)
    }

    /// Waits until `f` returns something.
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
        let mut registration = WaiterRegistration::new(&self.waiters);
        interrupt::wait(site.on(self), clock, deadline, |waker| {
            registration.register(waker);
            found = self.with(&mut f);
            Look::done_if(found.is_some())
        })?;
        Ok(found.expect("the wait succeeds only if something is found"))
    }
}

/// The registration of a waiter in a wait queue, removed when it drops.
pub(crate) struct WaiterRegistration<'a> {
    waiters: &'a WaitQueue,
    ticket: Option<Ticket>,
}

impl<'a> WaiterRegistration<'a> {
    pub(crate) fn new(waiters: &'a WaitQueue) -> Self {
        WaiterRegistration {
            waiters,
            ticket: None,
        }
    }

    /// Registers the waker, or updates it.
    pub(crate) fn register(&mut self, waker: &Waker) {
        if let Some(ticket) = self.ticket {
            if self.waiters.update_waker(ticket, waker) {
                return;
            }
        }
        self.ticket = self.waiters.register(waker, || true);
    }
}

impl Drop for WaiterRegistration<'_> {
    fn drop(&mut self) {
        if let Some(ticket) = self.ticket {
            self.waiters.unregister(ticket);
        }
    }
}
