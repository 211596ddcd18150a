//! The handle, which waits for the outcome. Invariants are in the [module](super).

use super::cell::CellRef;
use super::state::TaskState;
use super::{Body, BodyEnd, CancelReason, InlineRunner, Outcome, Panic, Shared, Token, Witness};
use crate::wait_queue::Ticket;
use core::fmt;
use core::marker::PhantomData;
use core::mem::ManuallyDrop;
use core::panic::{RefUnwindSafe, UnwindSafe};
use core::task::{Context, Poll};
use std::task::Waker;

/// The one handle of a task, which may take the outcome.
///
/// Dropping it detaches the task.
pub struct Handle<T, M = ()> {
    cell: CellRef,
    /// Our registered waker; or [`TAKEN`], if we have taken the outcome out of the stage: then the task is finished,
    /// which takes all wakers. One word for both, for handles are kept by the million.
    ticket: Option<Ticket>,
    _types: PhantomData<(T, M)>,
}

const TAKEN: Option<Ticket> = Some(Ticket::UNISSUED);

// SAFETY: TASK-4 - the handle moves the value, which is `Send`, to its thread; the rest is atomic.
unsafe impl<T: Send, M: Send + Sync> Send for Handle<T, M> {}
// SAFETY: TASK-4 - a shared handle reads state and metadata, cancels and interrupts, and never reaches the
// value.
unsafe impl<T: Send, M: Send + Sync> Sync for Handle<T, M> {}

// A pointer: the cell does not move with it, and no panic leaves the cell half changed (TASK-7).
impl<T, M> Unpin for Handle<T, M> {}
impl<T, M> UnwindSafe for Handle<T, M> {}
impl<T, M> RefUnwindSafe for Handle<T, M> {}

impl<T, M> Handle<T, M> {
    /// Takes over one of the cell's references; `T` is what its closure returns.
    #[inline]
    pub(super) fn own(cell: CellRef) -> Self {
        Handle {
            cell,
            ticket: None,
            _types: PhantomData,
        }
    }

    #[inline]
    fn is_taken(&self) -> bool {
        self.ticket == TAKEN
    }

    /// The metadata of the task.
    #[inline]
    pub fn meta(&self) -> &M {
        // SAFETY: TASK-1 - borrowed from our reference; TASK-6 - made with an `M`.
        unsafe { self.cell.meta() }
    }

    /// The state of the task.
    #[inline]
    pub fn state(&self) -> TaskState {
        // SAFETY: TASK-1 - our reference.
        unsafe { self.cell.read() }
    }

    /// The address of the cell; see [`Task::address`](super::Task::address).
    pub fn address(&self) -> usize {
        self.cell.address()
    }

    /// The interrupt token of the task.
    pub fn token(&self) -> &Token {
        // SAFETY: TASK-1 - borrowed from our reference.
        unsafe { &self.cell.header().token }
    }

    /// Cancels the task. If it has not started it never will, and its closure is dropped before this returns.
    /// If it runs, its outcome will be dropped. Returns what became of the body; `None` if the task was
    /// finished.
    pub fn cancel(&self, reason: CancelReason) -> Option<Body> {
        // SAFETY: TASK-1 - our reference.
        unsafe { self.cell.cancel(reason) }
    }

    /// Cancels the task and sets its interrupt token if the body runs, also if the task was cancelled before.
    /// Returns what [`cancel`](Handle::cancel) does.
    pub fn interrupt(&self, reason: CancelReason) -> Option<Body> {
        // SAFETY: TASK-1 - our reference.
        unsafe { self.cell.interrupt(reason) }
    }

    /// Runs the task on this thread if it has not started. Returns how its body ended; `None` if it was
    /// already started. `claimed` is called once no other thread can run the task, before the body;
    /// `panicked` if the body has panicked, before the payload can be taken. Neither may panic.
    pub fn run_inline(
        &self,
        runner: InlineRunner,
        claimed: impl FnOnce(),
        panicked: impl FnOnce(&Panic),
    ) -> Option<BodyEnd> {
        // SAFETY: TASK-1 - our reference, kept.
        unsafe { self.cell.run_inline(runner, claimed, panicked) }
    }

    /// A reference that may outlive this one and never takes the outcome.
    pub fn witness(&self) -> Witness<M> {
        // SAFETY: TASK-1 - our reference vouches for the new one; TASK-6 - made with an `M`.
        unsafe { Witness::new(self.cell) }
    }

    /// Cancels the task if it has not started; see [`Task::give_up`](super::Task::give_up).
    pub fn give_up(&self, reason: CancelReason) -> bool {
        // SAFETY: TASK-1 - our reference.
        unsafe { self.cell.give_up(reason) }
    }

    /// Takes the outcome of a finished task. It can be taken once.
    #[inline]
    pub fn take(&mut self) -> Option<Outcome<T>> {
        let seen = self.state();
        if !seen.is_finished() || self.is_taken() {
            return None;
        }
        if let Some(reason) = seen.cancelled() {
            return Some(Outcome::Cancelled(reason));
        }
        // A registered waker is the finishing thread's to wake: it takes all of them. To unregister it here would drop
        // it, and the caller may hold a lock.
        self.ticket = TAKEN;
        Some(if seen.is_panicked() {
            // SAFETY: TASK-4 - done, not cancelled, not taken, and we are the one handle.
            Outcome::Panicked(unsafe { self.cell.take_payload() })
        } else {
            // SAFETY: TASK-4 - likewise; TASK-5 - a handle's `T` is what its closure returns.
            Outcome::Completed(unsafe { self.cell.take_value() })
        })
    }

    /// The value of a finished task, until it is taken. It takes `&mut self`, because the value may not be
    /// `Sync`.
    pub fn peek(&mut self) -> Option<&T> {
        let seen = self.state();
        let is_there = seen.is_finished() && !self.is_taken();
        if !is_there || seen.cancelled().is_some() || seen.is_panicked() {
            return None;
        }
        // SAFETY: TASK-4 - done, not cancelled, no panic, not taken, and we are the one handle, borrowed for
        // as long as the reference lives; TASK-5 - a handle's `T` is what its closure returns.
        Some(unsafe { self.cell.value() })
    }

    /// Registers `waker` to be woken when the task finishes, in place of the one registered before. Returns
    /// false if the task is finished.
    pub fn register(&mut self, waker: &Waker) -> bool {
        // SAFETY: TASK-1 - our reference.
        let header = unsafe { self.cell.header() };
        if self.is_taken() {
            return false;
        }
        if let Some(ticket) = self.ticket {
            if header.update_waker(ticket, waker) {
                return true;
            }
        }
        self.ticket = header.register(waker);
        self.ticket.is_some()
    }

    /// Undoes [`register`](Handle::register).
    pub fn unregister(&mut self) {
        if self.is_taken() {
            return;
        }
        if let Some(ticket) = self.ticket.take() {
            // SAFETY: TASK-1 - our reference.
            unsafe { self.cell.header() }.unregister(ticket);
        }
    }

    /// Polls for the outcome, as a future does.
    ///
    /// # Panics
    ///
    /// If the outcome has been taken: a future is not polled again after it was ready.
    pub fn poll(&mut self, context: &mut Context<'_>) -> Poll<Outcome<T>> {
        assert!(
            !self.is_taken(),
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
            // TASK-8: registration fails only if the task is finished, or belongs to another process.
            None => Poll::Pending,
        }
    }

    /// Turns the handle into one that can be cloned, and that shows the outcome instead of giving it away.
    ///
    /// # Errors
    ///
    /// The handle itself, if it has given the outcome away.
    pub fn share(mut self) -> Result<Shared<T, M>, Self> {
        if self.is_taken() {
            return Err(self);
        }
        self.unregister();
        Ok(Shared::own(ManuallyDrop::new(self).cell))
    }
}

impl<T, M> Drop for Handle<T, M> {
    fn drop(&mut self) {
        self.unregister();
        // SAFETY: TASK-1 - our reference, not used again; TASK-4 - it is marked only if we took it.
        unsafe { self.cell.release(self.is_taken()) };
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
