//! A handle for many: it shows the outcome and takes nothing. Invariants are in the
//! [module](super).

use super::cell::CellRef;
use super::layout::Header;
use super::state::Reading;
use super::{Body, BodyEnd, CancelReason, Outcome, Panic, Place, Token, Witness};
use crate::waits::Ticket;
use core::fmt;
use core::marker::PhantomData;
use core::panic::{RefUnwindSafe, UnwindSafe};
use std::task::Waker;

/// One of any number of handles to a task. The outcome stays in the cell until the last is gone.
///
/// ```
/// use millpond_raw::task::{self, Outcome};
///
/// let (task, handle) = task::new(|| String::from("water"), ());
/// let one = handle.share().unwrap();
/// let two = one.clone();
/// let _ = task.run();
/// assert!(matches!(one.outcome(), Some(Outcome::Completed(text)) if text == "water"));
/// assert!(matches!(two.outcome(), Some(Outcome::Completed(text)) if text == "water"));
/// ```
pub struct Shared<T, M = ()> {
    cell: CellRef,
    _types: PhantomData<(T, M)>,
}

// SAFETY: T4 - the value is read from many threads and dropped on any of them.
unsafe impl<T: Send + Sync, M: Send + Sync> Send for Shared<T, M> {}
// SAFETY: T4 - as above, and a `Panic` may be shared.
unsafe impl<T: Send + Sync, M: Send + Sync> Sync for Shared<T, M> {}

// A pointer: what it points to stays where it is, and no panic leaves it half changed (T7).
impl<T, M> Unpin for Shared<T, M> {}
impl<T, M> UnwindSafe for Shared<T, M> {}
impl<T, M> RefUnwindSafe for Shared<T, M> {}

impl<T, M> Shared<T, M> {
    /// Takes over one of the cell's references, the one handle's.
    pub(super) fn own(cell: CellRef) -> Self {
        Shared {
            cell,
            _types: PhantomData,
        }
    }

    /// The value that travels with the task.
    pub fn meta(&self) -> &M {
        // SAFETY: T1 - borrowed from our reference; T6 - made with an `M`.
        unsafe { self.cell.meta() }
    }

    /// What has happened to the task.
    pub fn state(&self) -> Reading {
        // SAFETY: T1 - our reference.
        unsafe { self.cell.read() }
    }

    /// The interrupt token of the task.
    pub fn token(&self) -> &Token {
        &self.header().token
    }

    /// As [`Handle::cancel`](super::Handle::cancel).
    pub fn cancel(&self, reason: CancelReason) -> Option<Body> {
        // SAFETY: T1 - our reference.
        unsafe { self.cell.cancel(reason) }
    }

    /// As [`Handle::interrupt`](super::Handle::interrupt).
    pub fn interrupt(&self, reason: CancelReason) -> Option<Body> {
        // SAFETY: T1 - our reference.
        unsafe { self.cell.interrupt(reason) }
    }

    /// As [`Handle::run_here`](super::Handle::run_here).
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

    /// As [`Handle::give_up`](super::Handle::give_up).
    pub fn give_up(&self, reason: CancelReason) -> bool {
        // SAFETY: T1 - our reference.
        unsafe { self.cell.give_up(reason) }
    }

    /// The outcome, once the task is finished.
    pub fn outcome(&self) -> Option<Outcome<&T, &Panic>> {
        let seen = self.state();
        if let Some(reason) = seen.cancelled() {
            return Some(Outcome::Cancelled(reason));
        }
        if !seen.is_done() {
            return None;
        }
        Some(match seen.is_panicked() {
            // SAFETY: T4 - done, not cancelled, and nobody takes from a shared cell.
            true => Outcome::Panicked(unsafe { self.cell.payload() }),
            // SAFETY: T4 - likewise; T5 - `T` is what the closure returns.
            false => Outcome::Completed(unsafe { self.cell.value() }),
        })
    }

    /// Asks for `waker` to be woken when the task finishes; `None` if it is finished. Whoever
    /// gives up must [`leave`](Shared::leave).
    pub fn enlist(&self, waker: &Waker) -> Option<Ticket> {
        self.header().enlist(waker)
    }

    /// Replaces the waker that was enlisted; false if it has been woken already.
    pub fn renew(&self, ticket: Ticket, waker: &Waker) -> bool {
        self.header().renew(ticket, waker)
    }

    /// Takes back what [`enlist`](Shared::enlist) asked for.
    pub fn leave(&self, ticket: Ticket) {
        self.header().leave(ticket);
    }

    fn header(&self) -> &Header {
        // SAFETY: T1 - borrowed from our reference.
        unsafe { self.cell.header() }
    }
}

impl<T, M> Clone for Shared<T, M> {
    fn clone(&self) -> Self {
        // SAFETY: T1 - our reference vouches for the new one.
        unsafe { self.cell.retain() };
        Shared::own(self.cell)
    }
}

impl<T, M> Drop for Shared<T, M> {
    fn drop(&mut self) {
        // SAFETY: T1 - our reference, not used again.
        unsafe { self.cell.release(false) };
    }
}

impl<T, M: fmt::Debug> fmt::Debug for Shared<T, M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shared")
            .field("state", &self.state())
            .field("meta", self.meta())
            .finish()
    }
}
