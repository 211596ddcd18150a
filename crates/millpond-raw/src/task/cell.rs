//! The operations that make, run, cancel and free a cell. Invariants TASK-1 to TASK-8 are in the
//! [module](super).

use super::layout::{Header, Prefix, TaskCell, Vtable};
use super::state::{AtomicState, Cancelled, Claim, Completed, Released, TaskState};
use super::{CancelReason, InlineRunner, Panic};
use crate::catch_panic;
use crate::recycle::Recycled;
use crate::sync::chaos;
use crate::user_code::{self, Kind};
use core::any::TypeId;
use core::mem::MaybeUninit;
use core::ptr::NonNull;

/// A pointer to a cell, kept alive by a counted reference.
#[derive(Clone, Copy)]
pub(super) struct CellRef(NonNull<Header>);

impl CellRef {
    /// Makes a cell with `references` references, which the caller hands out.
    pub(super) fn new<F, T, M>(closure: F, meta: M, references: u32) -> Self
    where
        F: FnOnce() -> T + 'static,
    {
        let cell = Recycled::new_with(move || TaskCell::<F, T, M>::new(closure, meta, references));
        CellRef(cell.into_raw().cast())
    }

    /// Its address.
    pub(super) fn address(self) -> usize {
        self.0.addr().get()
    }

    /// The header.
    ///
    /// # Safety
    ///
    /// TASK-1: the caller owns a reference for as long as it uses the result.
    #[inline]
    pub(super) unsafe fn header<'a>(self) -> &'a Header {
        // SAFETY: TASK-1 - by contract.
        unsafe { self.0.as_ref() }
    }

    /// The metadata.
    ///
    /// # Safety
    ///
    /// As [`CellRef::header`], and TASK-6: the cell was made with an `M`.
    #[inline]
    pub(super) unsafe fn meta<'a, M>(self) -> &'a M {
        // SAFETY: TASK-1, TASK-6 - by contract.
        unsafe { &(*self.0.cast::<Prefix<M>>().as_ptr()).meta }
    }

    /// The state word.
    ///
    /// # Safety
    ///
    /// TASK-1: the caller owns a reference when it calls a method of the word. The method may give that
    /// reference back; the word must not be used after that.
    #[inline]
    unsafe fn state<'a>(self) -> &'a AtomicState {
        // SAFETY: TASK-1 - by contract.
        unsafe { &(*self.0.as_ptr()).state }
    }

    /// The functions that know the closure's type.
    ///
    /// # Safety
    ///
    /// As [`CellRef::header`].
    #[inline]
    unsafe fn vtable(self) -> &'static Vtable {
        // SAFETY: TASK-1 - by contract.
        unsafe { (*self.0.as_ptr()).vtable }
    }

    /// # Safety
    ///
    /// As [`CellRef::header`].
    #[inline]
    pub(super) unsafe fn read(self) -> TaskState {
        // SAFETY: TASK-1 - by contract.
        unsafe { self.state() }.read()
    }

    /// Claims and runs the body, and delivers the outcome. Returns how the body ended, or the state if it was
    /// already claimed. The reference is given back.
    ///
    /// Calls `panicked`, which must not panic, before the payload is delivered.
    ///
    /// # Safety
    ///
    /// TASK-1: the caller owns a reference, and gives it up.
    pub(super) unsafe fn run(self, panicked: impl FnOnce(&Panic)) -> Result<BodyEnd, TaskState> {
        // SAFETY: TASK-1 - by contract.
        match unsafe { self.state() }.claim() {
            // SAFETY: TASK-1 - by contract; TASK-2 - claimed just now.
            Claim::Yours => Ok(unsafe { self.run_claimed(true, || (), panicked) }),
            Claim::Gone(seen) => {
                // SAFETY: TASK-1 - the caller's reference.
                unsafe { self.release(false) };
                Err(seen)
            }
        }
    }

    /// Claims and runs the body on the thread of a waiter; `None` if it was already claimed. Calls `claimed`,
    /// which must not panic, in between, and `panicked` as in [`run`](CellRef::run).
    ///
    /// # Safety
    ///
    /// TASK-1: the caller owns a reference, and keeps it.
    pub(super) unsafe fn run_inline(
        self,
        runner: InlineRunner,
        claimed: impl FnOnce(),
        panicked: impl FnOnce(&Panic),
    ) -> Option<BodyEnd> {
        // SAFETY: TASK-1 - by contract.
        match unsafe { self.state() }.claim_inline(runner) {
            // SAFETY: TASK-1 - by contract; TASK-2 - claimed just now.
            Claim::Yours => Some(unsafe { self.run_claimed(false, claimed, panicked) }),
            Claim::Gone(_) => None,
        }
    }

    /// # Safety
    ///
    /// TASK-1: the caller owns a reference, which is given back if `release` is set. TASK-2: it has claimed
    /// the closure.
    #[inline]
    unsafe fn run_claimed(
        self,
        release: bool,
        claimed: impl FnOnce(),
        on_panic: impl FnOnce(&Panic),
    ) -> BodyEnd {
        // SAFETY: TASK-1 - by contract, until the reference is given back.
        let state = unsafe { self.state() };
        // SAFETY: TASK-1 - as above.
        let vtable = unsafe { self.vtable() };
        chaos::point("task.claimed");
        claimed();
        // SAFETY: TASK-1 - the body runs while the caller's reference is held; TASK-2 - by contract.
        let panicked = unsafe { self.run_body() };
        if panicked {
            // SAFETY: TASK-4 - it has not been delivered yet, so it still belongs to the runner.
            on_panic(unsafe { self.payload() });
        }
        let mut end = if panicked {
            BodyEnd::Panicked
        } else {
            BodyEnd::Returned
        };
        chaos::point("task.complete");
        match state.complete(panicked, release) {
            Completed::Delivered => {}
            Completed::WakeWaiters => {
                chaos::point("task.wake");
                // SAFETY: TASK-1 - not given back yet.
                unsafe { self.header() }.wake_joiners();
                if release {
                    // SAFETY: TASK-1 - the caller's reference.
                    unsafe { self.release(false) };
                }
            }
            Completed::Unwanted => {
                // SAFETY: TASK-4 - cancelled, so the outcome still belongs to the runner.
                unsafe { self.drop_outcome(panicked) };
                state.record_discarded();
                if !panicked {
                    end = BodyEnd::Unwanted;
                }
                if release {
                    // SAFETY: TASK-1 - the caller's reference.
                    unsafe { self.release(false) };
                }
            }
            Completed::Alone => {
                // SAFETY: TASK-4 - the only reference is ours.
                unsafe { self.drop_outcome(panicked) };
                // SAFETY: TASK-1 - the last reference, and the stage is empty.
                unsafe { (vtable.free)(self.0) };
            }
        }
        end
    }

    /// Runs the body as the current task.
    ///
    /// # Safety
    ///
    /// TASK-1: the caller owns a reference. TASK-2: it owns the closure.
    #[inline]
    unsafe fn run_body(self) -> bool {
        // SAFETY: TASK-1 - by contract.
        let header = unsafe { self.header() };
        // SAFETY: TASK-5 - this cell's own vtable; TASK-2 - by contract.
        header
            .token
            .enter(|| unsafe { (header.vtable.run)(self.0) })
    }

    /// Runs the body of a cell with one reference, and frees it. Returns the payload of its panic.
    ///
    /// # Safety
    ///
    /// TASK-1: the caller owns the only reference, and gives it up. TASK-2: the closure is there.
    #[inline]
    pub(super) unsafe fn run_alone(self) -> Option<Panic> {
        // SAFETY: TASK-1 - by contract.
        let vtable = unsafe { self.vtable() };
        // SAFETY: TASK-5 - this cell's own vtable; TASK-1, TASK-2 - by contract.
        unsafe { (vtable.run_alone)(self.0) }
    }

    /// Takes the closure back out of a cell that has not started, and cancels it; `None` if it was claimed,
    /// or is no `F`.
    ///
    /// # Safety
    ///
    /// As [`CellRef::header`].
    pub(super) unsafe fn reclaim<F: 'static>(self, reason: CancelReason) -> Option<F> {
        // SAFETY: TASK-1 - by contract.
        let header = unsafe { self.header() };
        if (header.vtable.closure_type)() != TypeId::of::<F>()
            || header.state.claim() != Claim::Yours
        {
            return None;
        }
        chaos::point("task.reclaimed");
        let mut closure = MaybeUninit::<F>::uninit();
        // SAFETY: TASK-5 - this cell's own vtable; TASK-2 - claimed just now; the destination has room for an
        // `F`.
        unsafe { (header.vtable.move_closure)(self.0, closure.as_mut_ptr().cast()) };
        // Claimed, so to other threads the body seems to run, and it may have been cancelled.
        if let Cancelled::Running { waiter: true } = header.state.cancel(reason) {
            header.wake_joiners();
        }
        // SAFETY: TASK-5 - it has this type, and was moved there.
        let closure = unsafe { closure.assume_init() };
        Some(closure)
    }

    /// Cancels; `None` if it was finished, otherwise whether its body may still run.
    ///
    /// # Safety
    ///
    /// As [`CellRef::header`].
    pub(super) unsafe fn cancel(self, reason: CancelReason) -> Option<Body> {
        // SAFETY: TASK-1 - by contract.
        let header = unsafe { self.header() };
        let cancelled = header.state.cancel(reason);
        // SAFETY: TASK-1 - by contract; TASK-2 - cancelled just now.
        unsafe { self.finish_cancel(cancelled) }
    }

    /// Cancels on behalf of the task's holder; `false` if the closure was already claimed.
    ///
    /// # Safety
    ///
    /// As [`CellRef::header`].
    pub(super) unsafe fn give_up(self, reason: CancelReason) -> bool {
        // SAFETY: TASK-1 - by contract.
        let header = unsafe { self.header() };
        let cancelled = header.state.give_up(reason);
        // SAFETY: TASK-1 - by contract; TASK-2 - cancelled just now.
        unsafe { self.finish_cancel(cancelled) }.is_some()
    }

    /// Drops the closure of an unrun cell, and wakes the joiners.
    ///
    /// # Safety
    ///
    /// As [`CellRef::header`], and TASK-2: the caller owns the closure if `cancelled` is `Unrun`.
    unsafe fn finish_cancel(self, cancelled: Cancelled) -> Option<Body> {
        // SAFETY: TASK-1 - by contract.
        let header = unsafe { self.header() };
        let (waiter, body) = match cancelled {
            Cancelled::TooLate => return None,
            Cancelled::Running { waiter } => (waiter, Body::Running),
            Cancelled::Unrun { waiter } => {
                chaos::point("task.cancelled");
                // SAFETY: TASK-5 - this cell's own vtable; TASK-2 - by contract.
                unsafe { (header.vtable.drop_closure)(self.0) };
                (waiter, Body::Gone)
            }
        };
        if waiter {
            header.wake_joiners();
        }
        Some(body)
    }

    /// Cancels, and sets the token if the body runs, also if it was cancelled before. Returns what
    /// [`cancel`](CellRef::cancel) does.
    ///
    /// # Safety
    ///
    /// As [`CellRef::header`].
    pub(super) unsafe fn interrupt(self, reason: CancelReason) -> Option<Body> {
        // SAFETY: TASK-1 - by contract.
        let cancelled = unsafe { self.cancel(reason) };
        // SAFETY: TASK-1 - by contract.
        let header = unsafe { self.header() };
        let runs = match cancelled {
            Some(body) => body == Body::Running,
            None => !header.state.read().is_done(),
        };
        if runs {
            header.interrupt();
        }
        cancelled
    }

    /// Moves the value out of the stage.
    ///
    /// # Safety
    ///
    /// As [`CellRef::header`], TASK-4: the stage holds a value that is the caller's, and TASK-5: of type
    /// `T`.
    #[inline]
    pub(super) unsafe fn take_value<T>(self) -> T {
        // SAFETY: TASK-4 - by contract.
        let value = unsafe { self.value_place() };
        // SAFETY: TASK-4, TASK-5 - by contract.
        unsafe { value.cast::<T>().read() }
    }

    /// The value in the stage.
    ///
    /// # Safety
    ///
    /// As [`CellRef::take_value`], but the value is only shared, and stays for `'a`.
    pub(super) unsafe fn value<'a, T>(self) -> &'a T {
        // SAFETY: TASK-4 - by contract.
        let value = unsafe { self.value_place() };
        // SAFETY: TASK-4, TASK-5 - by contract.
        unsafe { &*value.cast::<T>() }
    }

    /// Moves the payload out of the stage.
    ///
    /// # Safety
    ///
    /// As [`CellRef::header`], TASK-4: the stage holds a payload that is the caller's.
    pub(super) unsafe fn take_payload(self) -> Panic {
        // SAFETY: TASK-4 - by contract.
        let payload = unsafe { self.payload_place() };
        // SAFETY: TASK-4 - by contract.
        unsafe { payload.read() }
    }

    /// The payload in the stage.
    ///
    /// # Safety
    ///
    /// As [`CellRef::take_payload`], but the payload is only shared, and stays for `'a`.
    pub(super) unsafe fn payload<'a>(self) -> &'a Panic {
        // SAFETY: TASK-4 - by contract.
        let payload = unsafe { self.payload_place() };
        // SAFETY: TASK-4 - by contract.
        unsafe { &*payload }
    }

    /// # Safety
    ///
    /// As [`CellRef::header`], TASK-4: the stage holds a value.
    #[inline]
    unsafe fn value_place(self) -> *mut () {
        // SAFETY: TASK-1 - by contract.
        let vtable = unsafe { self.vtable() };
        // SAFETY: TASK-5 - this cell's own vtable; TASK-4 - by contract.
        unsafe { (vtable.value)(self.0) }
    }

    /// # Safety
    ///
    /// As [`CellRef::header`], TASK-4: the stage holds a payload.
    unsafe fn payload_place(self) -> *mut Panic {
        // SAFETY: TASK-1 - by contract.
        let vtable = unsafe { self.vtable() };
        // SAFETY: TASK-5 - this cell's own vtable; TASK-4 - by contract.
        unsafe { (vtable.payload)(self.0) }
    }

    /// Drops what is in the stage after the body.
    ///
    /// # Safety
    ///
    /// As [`CellRef::header`], TASK-4: the outcome is the caller's.
    unsafe fn drop_outcome(self, panicked: bool) {
        // Checked whatever the type: the same path drops values with destructors.
        user_code::check(Kind::Destructor);
        if panicked {
            // SAFETY: TASK-4 - by contract.
            catch_panic::drop(unsafe { self.take_payload() });
        } else {
            // SAFETY: TASK-1 - by contract.
            let vtable = unsafe { self.vtable() };
            if let Some(drop_value) = vtable.drop_value {
                // SAFETY: TASK-5 - this cell's own vtable; TASK-4 - by contract.
                unsafe { drop_value(self.0) };
            }
        }
    }

    /// Adds a reference.
    ///
    /// # Safety
    ///
    /// As [`CellRef::header`].
    pub(super) unsafe fn retain(self) {
        // SAFETY: TASK-1 - by contract.
        unsafe { self.state() }.retain();
    }

    /// Gives a reference back, and frees the cell if it was the last.
    ///
    /// # Safety
    ///
    /// TASK-1: the caller owns a reference, and no longer uses it. `taken` is true only if it took the
    /// outcome.
    #[inline]
    pub(super) unsafe fn release(self, taken: bool) {
        // SAFETY: TASK-1 - by contract.
        let Released::Last(seen) = (unsafe { self.state() }).release(taken) else {
            return;
        };
        debug_assert!(
            seen.is_claimed(),
            "TASK-2: a task that is dropped unrun claims its closure"
        );
        if seen.holds_outcome() {
            // SAFETY: TASK-4 - no reference is left.
            unsafe { self.drop_outcome(seen.ended_in_panic()) };
        }
        // SAFETY: TASK-1 - the last reference.
        let vtable = unsafe { self.vtable() };
        // SAFETY: TASK-1 - the last reference; TASK-5 - this cell's own vtable.
        unsafe { (vtable.free)(self.0) };
    }
}

/// How the body of a task ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BodyEnd {
    /// It returned.
    Returned,
    /// It panicked, whether or not the task had been cancelled.
    Panicked,
    /// It returned, but the task had been cancelled while it ran: the value was dropped.
    Unwanted,
}

/// The body of a cancelled task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Body {
    /// It runs.
    Running,
    /// It never will run.
    Gone,
}
