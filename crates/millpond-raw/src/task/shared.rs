//! The shared handle, which shows the outcome and takes nothing. Invariants are in the [module](super).

use super::cell::CellRef;
use super::layout::Header;
use super::state::TaskState;
use super::{Body, BodyEnd, CancelReason, InlineRunner, Outcome, Panic, Token, Witness};
use crate::wait_queue::Ticket;
use core::fmt;
use core::marker::PhantomData;
use core::panic::{RefUnwindSafe, UnwindSafe};
use std::task::Waker;

/// One of any number of handles to a task. The outcome stays in the cell until the last handle is gone.
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

// SAFETY: TASK-4 - the value is read from many threads and dropped on any of them.
unsafe impl<T: Send + Sync, M: Send + Sync> Send for Shared<T, M> {}
// SAFETY: TASK-4 - as above, and a `Panic` may be shared.
unsafe impl<T: Send + Sync, M: Send + Sync> Sync for Shared<T, M> {}

// A pointer: the cell does not move with it, and no panic leaves the cell half changed (TASK-7).
impl<T, M> Unpin for Shared<T, M> {}
impl<T, M> UnwindSafe for Shared<T, M> {}
impl<T, M> RefUnwindSafe for Shared<T, M> {}

impl<T, M> Shared<T, M> {
    /// Takes over the reference of the one handle.
    pub(super) fn own(cell: CellRef) -> Self {
        Shared {
            cell,
            _types: PhantomData,
        }
    }

    /// The metadata of the task.
    pub fn meta(&self) -> &M {
        // SAFETY: TASK-1 - borrowed from our reference; TASK-6 - made with an `M`.
        unsafe { self.cell.meta() }
    }

    /// The state of the task.
    pub fn state(&self) -> TaskState {
        // SAFETY: TASK-1 - our reference.
        unsafe { self.cell.read() }
    }

    /// The interrupt token of the task.
    pub fn token(&self) -> &Token {
        &self.header().token
    }

    /// As [`Handle::cancel`](super::Handle::cancel).
    pub fn cancel(&self, reason: CancelReason) -> Option<Body> {
        // SAFETY: TASK-1 - our reference.
        unsafe { self.cell.cancel(reason) }
    }

    /// As [`Handle::interrupt`](super::Handle::interrupt).
    pub fn interrupt(&self, reason: CancelReason) -> Option<Body> {
        // SAFETY: TASK-1 - our reference.
        unsafe { self.cell.interrupt(reason) }
    }

    /// As [`Handle::run_inline`](super::Handle::run_inline).
    pub fn run_inline(
        &self,
        runner: InlineRunner,
        claimed: impl FnOnce(),
        panicked: impl FnOnce(&Panic),
    ) -> Option<BodyEnd> {
        // SAFETY: TASK-1 - our reference, kept.
        unsafe { self.cell.run_inline(runner, claimed, panicked) }
    }

    /// A reference that may outlive this one and never shows the outcome.
    pub fn witness(&self) -> Witness<M> {
        // SAFETY: TASK-1 - our reference vouches for the new one; TASK-6 - made with an `M`.
        unsafe { Witness::new(self.cell) }
    }

    /// As [`Handle::give_up`](super::Handle::give_up).
    pub fn give_up(&self, reason: CancelReason) -> bool {
        // SAFETY: TASK-1 - our reference.
        unsafe { self.cell.give_up(reason) }
    }

    /// The outcome of a finished task.
    pub fn outcome(&self) -> Option<Outcome<&T, &Panic>> {
        let seen = self.state();
        if let Some(reason) = seen.cancelled() {
            return Some(Outcome::Cancelled(reason));
        }
        if !seen.is_done() {
            return None;
        }
        Some(if seen.is_panicked() {
            // SAFETY: TASK-4 - done, not cancelled, and shared handles take nothing.
            Outcome::Panicked(unsafe { self.cell.payload() })
        } else {
            // SAFETY: TASK-4 - likewise; TASK-5 - `T` is what the closure returns.
            Outcome::Completed(unsafe { self.cell.value() })
        })
    }

    /// Registers `waker` to be woken when the task finishes; `None` if it is finished. A waiter that gives up
    /// must [`unregister`](Shared::unregister).
    pub fn register(&self, waker: &Waker) -> Option<Ticket> {
        self.header().register(waker)
    }

    /// Replaces the registered waker; false if it has been woken already.
    pub fn update_waker(&self, ticket: Ticket, waker: &Waker) -> bool {
        self.header().update_waker(ticket, waker)
    }

    /// Undoes [`register`](Shared::register).
    pub fn unregister(&self, ticket: Ticket) {
        self.header().unregister(ticket);
    }

    fn header(&self) -> &Header {
        // SAFETY: TASK-1 - borrowed from our reference.
        unsafe { self.cell.header() }
    }
}

impl<T, M> Clone for Shared<T, M> {
    fn clone(&self) -> Self {
        // SAFETY: TASK-1 - our reference vouches for the new one.
        unsafe { self.cell.retain() };
        Shared::own(self.cell)
    }
}

impl<T, M> Drop for Shared<T, M> {
    fn drop(&mut self) {
        // SAFETY: TASK-1 - our reference, not used again.
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
