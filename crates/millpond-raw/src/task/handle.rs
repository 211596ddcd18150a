//! The side of a cell that waits for the outcome. Invariants are in the [module](super).

use super::cell::CellRef;
use super::state::Reading;
use super::{Body, BodyEnd, CancelReason, Outcome, Panic, Place, Shared, Token, Witness};
use crate::waits::Ticket;
use core::fmt;
use core::marker::PhantomData;
use core::mem::ManuallyDrop;
use core::panic::{RefUnwindSafe, UnwindSafe};
use core::task::{Context, Poll};
use std::task::Waker;

/// The one handle of a task: it may take the outcome.
///
/// Dropping it lets the task go on alone.
pub struct Handle<T, M = ()> {
    cell: CellRef,
    /// The outcome is out of the stage, through us.
    taken: bool,
    /// Our place in the list of waiters.
    ticket: Option<Ticket>,
    _types: PhantomData<(T, M)>,
}

// SAFETY: T4 - the handle moves the value, which may be sent, to its thread; the rest is atomic.
unsafe impl<T: Send, M: Send + Sync> Send for Handle<T, M> {}
// SAFETY: T4 - a shared handle reads state and meta, cancels and interrupts, and never reaches the
// value.
unsafe impl<T: Send, M: Send + Sync> Sync for Handle<T, M> {}

// A pointer: what it points to stays where it is, and no panic leaves it half changed (T7).
impl<T, M> Unpin for Handle<T, M> {}
impl<T, M> UnwindSafe for Handle<T, M> {}
impl<T, M> RefUnwindSafe for Handle<T, M> {}

impl<T, M> Handle<T, M> {
    /// Takes over one of the cell's references; `T` is what its closure returns.
    #[inline]
    pub(super) fn own(cell: CellRef) -> Self {
        Handle {
            cell,
            taken: false,
            ticket: None,
            _types: PhantomData,
        }
    }

    /// The value that travels with the task.
    #[inline]
    pub fn meta(&self) -> &M {
        // SAFETY: T1 - borrowed from our reference; T6 - made with an `M`.
        unsafe { self.cell.meta() }
    }

    /// What has happened to the task.
    #[inline]
    pub fn state(&self) -> Reading {
        // SAFETY: T1 - our reference.
        unsafe { self.cell.read() }
    }

    /// Where the cell is; see [`Task::address`](super::Task::address).
    pub fn address(&self) -> usize {
        self.cell.address()
    }

    /// The interrupt token of the task.
    pub fn token(&self) -> &Token {
        // SAFETY: T1 - borrowed from our reference.
        unsafe { &self.cell.header().token }
    }

    /// Cancels the task: one that has not started never will, and its closure is dropped before
    /// this returns; of one that runs the outcome is dropped. Returns what there was of its body;
    /// `None` if it was finished.
    pub fn cancel(&self, reason: CancelReason) -> Option<Body> {
        // SAFETY: T1 - our reference.
        unsafe { self.cell.cancel(reason) }
    }

    /// Cancels the task and, if its body runs, sets its interrupt token; also if it was cancelled
    /// before and its body has not ended. Returns what [`cancel`](Handle::cancel) does.
    pub fn interrupt(&self, reason: CancelReason) -> Option<Body> {
        // SAFETY: T1 - our reference.
        unsafe { self.cell.interrupt(reason) }
    }

    /// Runs the task on this thread if it has not started. Returns how its body ended; `None` if it
    /// had been started. `claimed` is called when nobody else can run it any more and the body has not
    /// begun, `panicked` if the body has panicked, before its payload can be taken; they must not panic.
    pub fn run_here(
        &self,
        place: Place,
        claimed: impl FnOnce(),
        panicked: impl FnOnce(&Panic),
    ) -> Option<BodyEnd> {
        // SAFETY: T1 - our reference, kept.
        unsafe { self.cell.run_in_place(place, claimed, panicked) }
    }

    /// A reference that outlives this one, for those who want no outcome.
    pub fn witness(&self) -> Witness<M> {
        // SAFETY: T1 - our reference vouches for the new one; T6 - made with an `M`.
        unsafe { Witness::new(self.cell) }
    }

    /// Cancels the task if it has not started; see [`Task::give_up`](super::Task::give_up).
    pub fn give_up(&self, reason: CancelReason) -> bool {
        // SAFETY: T1 - our reference.
        unsafe { self.cell.give_up(reason) }
    }

    /// Takes the outcome, once the task is finished. It can be taken once.
    #[inline]
    pub fn take(&mut self) -> Option<Outcome<T>> {
        let seen = self.state();
        if !seen.is_finished() || self.taken {
            return None;
        }
        if let Some(reason) = seen.cancelled() {
            return Some(Outcome::Cancelled(reason));
        }
        self.taken = true;
        Some(match seen.is_panicked() {
            // SAFETY: T4 - done, not cancelled, not taken, and we are the one handle.
            true => Outcome::Panicked(unsafe { self.cell.take_payload() }),
            // SAFETY: T4 - likewise; T5 - a handle's `T` is what its closure returns.
            false => Outcome::Completed(unsafe { self.cell.take_value() }),
        })
    }

    /// Looks at the value, once the task is finished and as long as nobody has taken it. It takes the handle
    /// for itself: what is behind a shared one need not be fit to be looked at by several threads.
    pub fn peek(&mut self) -> Option<&T> {
        let seen = self.state();
        let is_there = seen.is_finished() && !self.taken;
        if !is_there || seen.cancelled().is_some() || seen.is_panicked() {
            return None;
        }
        // SAFETY: T4 - done, not cancelled, no panic, not taken, and we are the one handle, borrowed for as
        // long as the reference lives; T5 - a handle's `T` is what its closure returns.
        Some(unsafe { self.cell.value() })
    }

    /// Asks for `waker` to be woken when the task finishes; replaces what was asked before.
    /// Returns false if it is finished.
    pub fn register(&mut self, waker: &Waker) -> bool {
        // SAFETY: T1 - our reference.
        let header = unsafe { self.cell.header() };
        if let Some(ticket) = self.ticket {
            if header.renew(ticket, waker) {
                return true;
            }
        }
        self.ticket = header.enlist(waker);
        self.ticket.is_some()
    }

    /// Takes back what [`register`](Handle::register) asked for.
    pub fn unregister(&mut self) {
        if let Some(ticket) = self.ticket.take() {
            // SAFETY: T1 - our reference.
            unsafe { self.cell.header() }.leave(ticket);
        }
    }

    /// Polls for the outcome, as a future does.
    ///
    /// # Panics
    ///
    /// If the outcome has been taken: a future is not polled again after it was ready.
    pub fn poll(&mut self, context: &mut Context<'_>) -> Poll<Outcome<T>> {
        assert!(
            !self.taken,
            "a task's handle was polled again after it had given its outcome"
        );
        if let Some(outcome) = self.take() {
            return Poll::Ready(outcome);
        }
        if self.register(context.waker()) {
            return Poll::Pending;
        }
        match self.take() {
            Some(outcome) => Poll::Ready(outcome),
            // T8: who is not put on the list finds the task finished, or it is of another process.
            None => Poll::Pending,
        }
    }

    /// Turns the handle into one that can be cloned, and that shows the outcome instead of giving
    /// it away. Returns the handle unchanged if it has given the outcome away already.
    ///
    /// # Errors
    ///
    /// The handle itself, if the outcome is gone.
    pub fn share(mut self) -> Result<Shared<T, M>, Self> {
        if self.taken {
            return Err(self);
        }
        self.unregister();
        Ok(Shared::own(ManuallyDrop::new(self).cell))
    }
}

impl<T, M> Drop for Handle<T, M> {
    fn drop(&mut self) {
        self.unregister();
        // SAFETY: T1 - our reference, not used again; T4 - `taken` is true only if we took it.
        unsafe { self.cell.release(self.taken) };
    }
}

impl<T, M: fmt::Debug> fmt::Debug for Handle<T, M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Handle")
            .field("state", &self.state())
            .field("meta", self.meta())
            .finish()
    }
}
