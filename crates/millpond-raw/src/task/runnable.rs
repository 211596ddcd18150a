//! The side of a cell that queues and workers hold. Invariants are in the [module](super).

use super::cell::{BodyEnd, CellRef};
use super::state::{Reading, Shell};
use super::{CancelReason, Panic, Token, Witness};
use core::fmt;
use core::marker::PhantomData;
use core::mem::ManuallyDrop;
use core::panic::{RefUnwindSafe, UnwindSafe};

/// A task that waits to be run: a thin pointer to its cell.
///
/// It runs at most once. Dropping it unrun completes its handle as cancelled.
pub struct Task<M = ()> {
    cell: CellRef,
    _meta: PhantomData<M>,
}

/// What came of running a task.
#[derive(Debug)]
pub enum Ran {
    /// The body returned.
    Completed,
    /// The body panicked. What it left is here if no handle was there to take it.
    Panicked(Option<Panic>),
    /// The body returned, and the task had been cancelled while it ran: its value was dropped.
    Unwanted,
    /// There was nothing to run: it was cancelled, or a waiter ran it in place.
    Gone(Shell),
}

// SAFETY: T1, T2 - `task::new` takes only closures, values and meta values that may be sent; the
// cell itself is shared by atomics.
unsafe impl<M: Send + Sync> Send for Task<M> {}
// SAFETY: T2 - a shared task only reads state and meta, or cancels, which any thread may do.
unsafe impl<M: Send + Sync> Sync for Task<M> {}

// A pointer: what it points to stays where it is, and no panic leaves it half changed (T7).
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

    /// The value that travels with the task.
    #[inline]
    pub fn meta(&self) -> &M {
        // SAFETY: T1 - borrowed from our reference; T6 - made with an `M`.
        unsafe { self.cell.meta() }
    }

    /// What has happened to it.
    #[inline]
    pub fn state(&self) -> Reading {
        // SAFETY: T1 - our reference.
        unsafe { self.cell.read() }
    }

    /// The interrupt token of the task.
    pub fn token(&self) -> &Token {
        // SAFETY: T1 - borrowed from our reference.
        unsafe { &self.cell.header().token }
    }

    /// Where the cell is: what tells it from all others, as long as somebody refers to it.
    pub fn address(&self) -> usize {
        self.cell.address()
    }

    /// A reference that outlives this one, for those who want no outcome.
    pub fn witness(&self) -> Witness<M> {
        // SAFETY: T1 - our reference vouches for the new one; T6 - made with an `M`.
        unsafe { Witness::new(self.cell) }
    }

    /// How many others refer to it: handles and witnesses.
    pub fn others(&self) -> usize {
        usize::try_from(self.state().references() - 1).unwrap_or(usize::MAX)
    }

    /// Runs the body on this thread, unless it is gone, and delivers the outcome.
    #[inline(always)]
    pub fn run(self) -> Ran {
        self.run_seeing(|_| ())
    }

    /// As [`run`](Task::run), and lets `panicked` look at what the body panicked with, before that goes to
    /// the handle. `panicked` must not panic.
    ///
    /// ```
    /// use millpond_raw::task::{self, Ran};
    ///
    /// let (task, _handle) = task::new(|| panic!("no water"), ());
    /// let mut seen = None;
    /// let ran = task.run_seeing(|panic| seen = panic.message().map(str::to_owned));
    /// assert!(matches!(ran, Ran::Panicked(None)), "the handle has it");
    /// assert_eq!(seen.as_deref(), Some("no water"));
    /// ```
    #[inline(always)]
    pub fn run_seeing(self, panicked: impl FnOnce(&Panic)) -> Ran {
        let cell = ManuallyDrop::new(self).cell;
        // SAFETY: T1 - our reference.
        let seen = unsafe { cell.read() };
        if seen.references() == 1 && !seen.is_claimed() {
            // SAFETY: T1 - nobody else refers to it; T2 - unclaimed.
            return match unsafe { cell.run_alone() } {
                None => Ran::Completed,
                Some(payload) => {
                    panicked(&payload);
                    Ran::Panicked(Some(payload))
                }
            };
        }
        // SAFETY: T1 - our reference, given up here.
        match unsafe { cell.run(panicked) } {
            Err(seen) => Ran::Gone(seen.shell()),
            Ok(BodyEnd::Returned) => Ran::Completed,
            Ok(BodyEnd::Panicked) => Ran::Panicked(None),
            Ok(BodyEnd::Unwanted) => Ran::Unwanted,
        }
    }

    /// Takes the closure back out of a task that has not started, and tells its handle why. This is
    /// for whoever made the task and knows what `F` it was made of.
    ///
    /// # Errors
    ///
    /// The task, if it was made of something else, or its closure is gone.
    ///
    /// ```
    /// use millpond_raw::task::{self, CancelReason};
    ///
    /// fn refused<F: FnOnce() -> u8 + Send + 'static>(f: F) -> F {
    ///     let (task, _handle) = task::new(f, ());
    ///     task.reclaim(CancelReason::Refused).expect("nobody has run it")
    /// }
    /// assert_eq!(refused(|| 7)(), 7);
    /// ```
    pub fn reclaim<F: 'static>(self, reason: CancelReason) -> Result<F, Self> {
        // SAFETY: T1 - our reference, which `self` gives back when it drops.
        match unsafe { self.cell.reclaim(reason) } {
            Some(closure) => Ok(closure),
            None => Err(self),
        }
    }

    /// Gives the task up, and tells its handle why. Returns false, and does nothing, if it was gone
    /// before: what a waiter runs in place goes on.
    pub fn give_up(&self, reason: CancelReason) -> bool {
        // SAFETY: T1 - our reference.
        unsafe { self.cell.give_up(reason) }
    }

    /// Cancels the task, as its handle does: if a waiter runs it in place, that goes on and its
    /// outcome is dropped. Returns false if it was finished before.
    pub fn cancel(self, reason: CancelReason) -> bool {
        // SAFETY: T1 - our reference, which `self` gives back when it drops.
        unsafe { self.cell.cancel(reason) }.is_some()
    }
}

impl<M> Drop for Task<M> {
    fn drop(&mut self) {
        // SAFETY: T1 - our reference.
        unsafe { self.cell.give_up(CancelReason::Dropped) };
        // SAFETY: T1 - our reference, not used again.
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
