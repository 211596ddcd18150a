//! The task as queues and workers hold it. Invariants are in the [module](super).

use super::cell::{BodyEnd, CellRef};
use super::state::{TaskState, Tombstone};
use super::{CancelReason, Panic, Token, Witness};
use core::fmt;
use core::marker::PhantomData;
use core::mem::ManuallyDrop;
use core::panic::{RefUnwindSafe, UnwindSafe};

/// A task to be run: a thin pointer to its cell.
///
/// It runs at most once. Dropping it unrun completes its handle as cancelled.
pub struct Task<M = ()> {
    cell: CellRef,
    _meta: PhantomData<M>,
}

/// The result of running a task.
#[derive(Debug)]
pub enum Ran {
    /// The body returned.
    Completed,
    /// The body panicked. The payload is here if there is no handle to take it.
    Panicked(Option<Panic>),
    /// The body returned, but the task had been cancelled while it ran: the value was dropped.
    Unwanted,
    /// There was nothing to run: the task was cancelled, or a waiter ran it inline.
    Gone(Tombstone),
}

// SAFETY: TASK-1, TASK-2 - `task::new` takes only closures, values and metadata that are `Send`; the cell
// itself is shared by atomics.
unsafe impl<M: Send + Sync> Send for Task<M> {}
// SAFETY: TASK-2 - a shared task only reads state and metadata, or cancels, which any thread may do.
unsafe impl<M: Send + Sync> Sync for Task<M> {}

// A pointer: the cell does not move with it, and no panic leaves the cell half changed (TASK-7).
impl<M> Unpin for Task<M> {}
impl<M> UnwindSafe for Task<M> {}
impl<M> RefUnwindSafe for Task<M> {}

impl<M> Task<M> {
    /// Takes over one of the cell's references.
    #[inline]
    pub(super) fn own(cell: CellRef) -> Self {
        Task {
            cell,
            _meta: PhantomData,
        }
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

    /// The interrupt token of the task.
    pub fn token(&self) -> &Token {
        // SAFETY: TASK-1 - borrowed from our reference.
        unsafe { &self.cell.header().token }
    }

    /// The address of the cell, which identifies the task as long as there is a reference to it.
    pub fn address(&self) -> usize {
        self.cell.address()
    }

    /// A reference that may outlive this one and never takes the outcome.
    pub fn witness(&self) -> Witness<M> {
        // SAFETY: TASK-1 - our reference vouches for the new one; TASK-6 - made with an `M`.
        unsafe { Witness::new(self.cell) }
    }

    /// The number of other references: handles and witnesses.
    pub fn others(&self) -> usize {
        usize::try_from(self.state().references() - 1).unwrap_or(usize::MAX)
    }

    /// Runs the body on this thread, unless it was claimed, and delivers the outcome.
    #[inline(always)]
    pub fn run(self) -> Ran {
        self.run_with_panic_hook(|_| ())
    }

    /// As [`run`](Task::run), and calls `panicked` with the payload of a panic before the handle gets it.
    /// `panicked` must not panic.
    ///
    /// ```
    /// use millpond_raw::task::{self, Ran};
    ///
    /// let (task, _handle) = task::new(|| panic!("no water"), ());
    /// let mut seen = None;
    /// let ran = task.run_with_panic_hook(|panic| seen = panic.message().map(str::to_owned));
    /// assert!(matches!(ran, Ran::Panicked(None)), "the handle has it");
    /// assert_eq!(seen.as_deref(), Some("no water"));
    /// ```
    #[inline(always)]
    pub fn run_with_panic_hook(self, panicked: impl FnOnce(&Panic)) -> Ran {
        let cell = ManuallyDrop::new(self).cell;
        // SAFETY: TASK-1 - our reference.
        let seen = unsafe { cell.read() };
        if seen.references() == 1 && !seen.is_claimed() {
            // SAFETY: TASK-1 - the only reference; TASK-2 - unclaimed.
            return match unsafe { cell.run_alone() } {
                None => Ran::Completed,
                Some(payload) => {
                    panicked(&payload);
                    Ran::Panicked(Some(payload))
                }
            };
        }
        // SAFETY: TASK-1 - our reference, given up here.
        match unsafe { cell.run(panicked) } {
            Err(seen) => Ran::Gone(seen.tombstone()),
            Ok(BodyEnd::Returned) => Ran::Completed,
            Ok(BodyEnd::Panicked) => Ran::Panicked(None),
            Ok(BodyEnd::Unwanted) => Ran::Unwanted,
        }
    }

    /// Takes the closure back out of a task that has not started, and tells its handle why. This is for the
    /// maker of the task, which knows its `F`.
    ///
    /// # Errors
    ///
    /// The task, if it was made of something else, or was claimed.
    ///
    /// ```
    /// use millpond_raw::task::{self, CancelReason};
    ///
    /// fn refused<F: FnOnce() -> u8 + Send + 'static>(f: F) -> F {
    ///     let (task, _handle) = task::new(f, ());
    ///     task.reclaim(CancelReason::Rejected).expect("it was not run")
    /// }
    /// assert_eq!(refused(|| 7)(), 7);
    /// ```
    pub fn reclaim<F: 'static>(self, reason: CancelReason) -> Result<F, Self> {
        // SAFETY: TASK-1 - our reference, which `self` gives back when it drops.
        match unsafe { self.cell.reclaim(reason) } {
            Some(closure) => Ok(closure),
            None => Err(self),
        }
    }

    /// Cancels the task if it is unclaimed, and tells its handle why. Returns false, and does nothing, if it
    /// was claimed: a task that a waiter runs inline goes on.
    pub fn give_up(&self, reason: CancelReason) -> bool {
        // SAFETY: TASK-1 - our reference.
        unsafe { self.cell.give_up(reason) }
    }

    /// Cancels the task, as its handle does: if a waiter runs it inline the body goes on, and its outcome is
    /// dropped. Returns false if it was finished.
    pub fn cancel(self, reason: CancelReason) -> bool {
        // SAFETY: TASK-1 - our reference, which `self` gives back when it drops.
        unsafe { self.cell.cancel(reason) }.is_some()
    }
}

impl<M> Drop for Task<M> {
    fn drop(&mut self) {
        // SAFETY: TASK-1 - our reference.
        unsafe { self.cell.give_up(CancelReason::Dropped) };
        // SAFETY: TASK-1 - our reference, not used again.
        unsafe { self.cell.release(false) };
    }
}

impl<M: fmt::Debug> fmt::Debug for Task<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Task")
            .field("state", &self.state())
            .field("meta", self.meta())
            .finish()
    }
}
