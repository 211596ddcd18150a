//! The steps that make, run, cancel and free a cell. Invariants T1 to T8 are in the [module](super).

use super::layout::{Header, Prefix, TaskCell, Vtable};
use super::state::{AtomicState, Cancelled, Claim, Completed, Reading, Released};
use super::{CancelReason, Panic, Place};
use crate::quiet;
use crate::recycle::Recycled;
use crate::sync::chaos;
use crate::user_code::{self, Kind};
use core::any::TypeId;
use core::mem::MaybeUninit;
use core::ptr::NonNull;

/// A pointer to a cell that somebody holds a reference to.
#[derive(Clone, Copy)]
pub(super) struct CellRef(NonNull<Header>);

impl CellRef {
    /// Makes a cell with `references` references, all of which are the caller's to hand out.
    pub(super) fn new<F, T, M>(closure: F, meta: M, references: u32) -> Self
    where
        F: FnOnce() -> T + 'static,
    {
        let cell = Recycled::new_with(move || TaskCell::<F, T, M>::new(closure, meta, references));
        CellRef(cell.into_raw().cast())
    }

    /// Where it is.
    pub(super) fn address(self) -> usize {
        self.0.addr().get()
    }

    /// The header.
    ///
    /// # Safety
    ///
    /// T1: the caller owns a reference for as long as it uses this one.
    #[inline]
    pub(super) unsafe fn header<'a>(self) -> &'a Header {
        // SAFETY: T1 - by contract.
        unsafe { self.0.as_ref() }
    }

    /// The meta value.
    ///
    /// # Safety
    ///
    /// As [`CellRef::header`], and T6: the cell was made with an `M`.
    #[inline]
    pub(super) unsafe fn meta<'a, M>(self) -> &'a M {
        // SAFETY: T1, T6 - by contract.
        unsafe { &(*self.0.cast::<Prefix<M>>().as_ptr()).meta }
    }

    /// The state word.
    ///
    /// # Safety
    ///
    /// T1: the caller owns a reference when it calls a method of it. The method may give that
    /// reference back: the word is all atomic, so nothing is promised about it afterwards.
    #[inline]
    unsafe fn state<'a>(self) -> &'a AtomicState {
        // SAFETY: T1 - by contract.
        unsafe { &(*self.0.as_ptr()).state }
    }

    /// The functions that know the closure's type.
    ///
    /// # Safety
    ///
    /// As [`CellRef::header`].
    #[inline]
    unsafe fn vtable(self) -> &'static Vtable {
        // SAFETY: T1 - by contract.
        unsafe { (*self.0.as_ptr()).vtable }
    }

    /// # Safety
    ///
    /// As [`CellRef::header`].
    #[inline]
    pub(super) unsafe fn read(self) -> Reading {
        // SAFETY: T1 - by contract.
        unsafe { self.state() }.read()
    }

    /// Runs the body if nobody has claimed it, and delivers the outcome. Returns how the body ended;
    /// what was seen if it was gone. The reference is given back.
    ///
    /// Calls `panicked`, which must not panic, before the payload goes to whoever it belongs to.
    ///
    /// # Safety
    ///
    /// T1: the caller owns a reference, and gives it up.
    pub(super) unsafe fn run(self, panicked: impl FnOnce(&Panic)) -> Result<BodyEnd, Reading> {
        // SAFETY: T1 - by contract.
        match unsafe { self.state() }.claim() {
            // SAFETY: T1 - by contract; T2 - claimed just now.
            Claim::Yours => Ok(unsafe { self.run_claimed(true, || (), panicked) }),
            Claim::Gone(seen) => {
                // SAFETY: T1 - the caller's reference.
                unsafe { self.release(false) };
                Err(seen)
            }
        }
    }

    /// Runs the body in the thread of one who waits, if nobody has claimed it; `None` if it was gone.
    /// Calls `claimed`, which must not panic, in between, and `panicked` as in [`run`](CellRef::run).
    ///
    /// # Safety
    ///
    /// T1: the caller owns a reference, and keeps it.
    pub(super) unsafe fn run_in_place(
        self,
        place: Place,
        claimed: impl FnOnce(),
        panicked: impl FnOnce(&Panic),
    ) -> Option<BodyEnd> {
        // SAFETY: T1 - by contract.
        match unsafe { self.state() }.claim_in_place(place) {
            // SAFETY: T1 - by contract; T2 - claimed just now.
            Claim::Yours => Some(unsafe { self.run_claimed(false, claimed, panicked) }),
            Claim::Gone(_) => None,
        }
    }

    /// # Safety
    ///
    /// T1: the caller owns a reference, which is given back if `release` is set. T2: it has claimed
    /// the closure.
    #[inline]
    unsafe fn run_claimed(
        self,
        release: bool,
        claimed: impl FnOnce(),
        on_panic: impl FnOnce(&Panic),
    ) -> BodyEnd {
        // SAFETY: T1 - by contract; so for the rest of this function until it is released.
        let state = unsafe { self.state() };
        // SAFETY: T1 - as above.
        let vtable = unsafe { self.vtable() };
        chaos::point("task.claimed");
        claimed();
        // SAFETY: T1 - the body runs while the caller's reference is held; T2 - by contract.
        let panicked = unsafe { self.run_body() };
        if panicked {
            // SAFETY: T4 - it has not been delivered yet, so it is still the runner's.
            on_panic(unsafe { self.payload() });
        }
        let mut end = match panicked {
            true => BodyEnd::Panicked,
            false => BodyEnd::Returned,
        };
        chaos::point("task.complete");
        match state.complete(panicked, release) {
            Completed::Delivered => {}
            Completed::WakeWaiters => {
                chaos::point("task.wake");
                // SAFETY: T1 - not given back yet.
                unsafe { self.header() }.wake_joiners();
                if release {
                    // SAFETY: T1 - the caller's reference.
                    unsafe { self.release(false) };
                }
            }
            Completed::Unwanted => {
                // SAFETY: T4 - cancelled, so the outcome is still the runner's.
                unsafe { self.drop_outcome(panicked) };
                state.bury();
                if !panicked {
                    end = BodyEnd::Unwanted;
                }
                if release {
                    // SAFETY: T1 - the caller's reference.
                    unsafe { self.release(false) };
                }
            }
            Completed::Alone => {
                // SAFETY: T4 - nobody else is left to want it.
                unsafe { self.drop_outcome(panicked) };
                // SAFETY: T1 - the last reference, and the stage is empty.
                unsafe { (vtable.free)(self.0) };
            }
        }
        end
    }

    /// Runs the body as the current task.
    ///
    /// # Safety
    ///
    /// T1: the caller owns a reference. T2: it owns the closure.
    #[inline]
    unsafe fn run_body(self) -> bool {
        // SAFETY: T1 - by contract.
        let header = unsafe { self.header() };
        // SAFETY: T5 - this cell's own vtable; T2 - by contract.
        header
            .token
            .enter(|| unsafe { (header.vtable.run)(self.0) })
    }

    /// Runs the body of a cell that is the caller's alone, and frees it. Returns the payload of
    /// its panic.
    ///
    /// # Safety
    ///
    /// T1: the caller owns the only reference, and gives it up. T2: the closure is there.
    #[inline]
    pub(super) unsafe fn run_alone(self) -> Option<Panic> {
        // SAFETY: T1 - by contract.
        let vtable = unsafe { self.vtable() };
        // SAFETY: T5 - this cell's own vtable; T1, T2 - by contract.
        unsafe { (vtable.run_alone)(self.0) }
    }

    /// Takes the closure back out of a cell that has not started, and cancels it; `None` if it is
    /// gone, or is no `F`.
    ///
    /// # Safety
    ///
    /// As [`CellRef::header`].
    pub(super) unsafe fn reclaim<F: 'static>(self, reason: CancelReason) -> Option<F> {
        // SAFETY: T1 - by contract.
        let header = unsafe { self.header() };
        if (header.vtable.closure_type)() != TypeId::of::<F>()
            || header.state.claim() != Claim::Yours
        {
            return None;
        }
        chaos::point("task.reclaimed");
        let mut closure = MaybeUninit::<F>::uninit();
        // SAFETY: T5 - this cell's own vtable; T2 - claimed just now; the place is an `F`'s.
        unsafe { (header.vtable.move_closure)(self.0, closure.as_mut_ptr().cast()) };
        // Claimed, so to others it looks like a body that runs; somebody may have cancelled that.
        if let Cancelled::Running { waiter: true } = header.state.cancel(reason) {
            header.wake_joiners();
        }
        // SAFETY: T5 - of this type, and moved there.
        let closure = unsafe { closure.assume_init() };
        Some(closure)
    }

    /// Cancels; `None` if it was finished before, otherwise whether its body may still run.
    ///
    /// # Safety
    ///
    /// As [`CellRef::header`].
    pub(super) unsafe fn cancel(self, reason: CancelReason) -> Option<Body> {
        // SAFETY: T1 - by contract.
        let header = unsafe { self.header() };
        let cancelled = header.state.cancel(reason);
        // SAFETY: T1 - by contract; T2 - cancelled just now.
        unsafe { self.after_cancelling(cancelled) }
    }

    /// Cancels on behalf of who was to run it; `false` if the closure had been claimed before.
    ///
    /// # Safety
    ///
    /// As [`CellRef::header`].
    pub(super) unsafe fn give_up(self, reason: CancelReason) -> bool {
        // SAFETY: T1 - by contract.
        let header = unsafe { self.header() };
        let cancelled = header.state.give_up(reason);
        // SAFETY: T1 - by contract; T2 - cancelled just now.
        unsafe { self.after_cancelling(cancelled) }.is_some()
    }

    /// What is left to do for one who has cancelled.
    ///
    /// # Safety
    ///
    /// As [`CellRef::header`], and T2: the caller owns the closure if this says that it is unrun.
    unsafe fn after_cancelling(self, cancelled: Cancelled) -> Option<Body> {
        // SAFETY: T1 - by contract.
        let header = unsafe { self.header() };
        let (waiter, body) = match cancelled {
            Cancelled::TooLate => return None,
            Cancelled::Running { waiter } => (waiter, Body::Running),
            Cancelled::Unrun { waiter } => {
                chaos::point("task.cancelled");
                // SAFETY: T5 - this cell's own vtable; T2 - by contract.
                unsafe { (header.vtable.drop_closure)(self.0) };
                (waiter, Body::Gone)
            }
        };
        if waiter {
            header.wake_joiners();
        }
        Some(body)
    }

    /// Cancels, and sets the token if the body runs, whoever has cancelled it. Returns what
    /// [`cancel`](CellRef::cancel) does.
    ///
    /// # Safety
    ///
    /// As [`CellRef::header`].
    pub(super) unsafe fn interrupt(self, reason: CancelReason) -> Option<Body> {
        // SAFETY: T1 - by contract.
        let cancelled = unsafe { self.cancel(reason) };
        // SAFETY: T1 - by contract.
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
    /// As [`CellRef::header`], T4: the stage holds a value that is the caller's, and T5: of type
    /// `T`.
    #[inline]
    pub(super) unsafe fn take_value<T>(self) -> T {
        // SAFETY: T4 - by contract.
        let value = unsafe { self.value_place() };
        // SAFETY: T4, T5 - by contract.
        unsafe { value.cast::<T>().read() }
    }

    /// The value in the stage.
    ///
    /// # Safety
    ///
    /// As [`CellRef::take_value`], but the value is only shared, and stays for `'a`.
    pub(super) unsafe fn value<'a, T>(self) -> &'a T {
        // SAFETY: T4 - by contract.
        let value = unsafe { self.value_place() };
        // SAFETY: T4, T5 - by contract.
        unsafe { &*value.cast::<T>() }
    }

    /// Moves the payload out of the stage.
    ///
    /// # Safety
    ///
    /// As [`CellRef::header`], T4: the stage holds a payload that is the caller's.
    pub(super) unsafe fn take_payload(self) -> Panic {
        // SAFETY: T4 - by contract.
        let payload = unsafe { self.payload_place() };
        // SAFETY: T4 - by contract.
        unsafe { payload.read() }
    }

    /// The payload in the stage.
    ///
    /// # Safety
    ///
    /// As [`CellRef::take_payload`], but the payload is only shared, and stays for `'a`.
    pub(super) unsafe fn payload<'a>(self) -> &'a Panic {
        // SAFETY: T4 - by contract.
        let payload = unsafe { self.payload_place() };
        // SAFETY: T4 - by contract.
        unsafe { &*payload }
    }

    /// # Safety
    ///
    /// As [`CellRef::header`], T4: the stage holds a value.
    #[inline]
    unsafe fn value_place(self) -> *mut () {
        // SAFETY: T1 - by contract.
        let vtable = unsafe { self.vtable() };
        // SAFETY: T5 - this cell's own vtable; T4 - by contract.
        unsafe { (vtable.value)(self.0) }
    }

    /// # Safety
    ///
    /// As [`CellRef::header`], T4: the stage holds a payload.
    unsafe fn payload_place(self) -> *mut Panic {
        // SAFETY: T1 - by contract.
        let vtable = unsafe { self.vtable() };
        // SAFETY: T5 - this cell's own vtable; T4 - by contract.
        unsafe { (vtable.payload)(self.0) }
    }

    /// Drops what is in the stage after the body.
    ///
    /// # Safety
    ///
    /// As [`CellRef::header`], T4: the outcome is the caller's.
    unsafe fn drop_outcome(self, panicked: bool) {
        // Whatever it is: who drops an `i32` here drops a value with a destructor there another time.
        user_code::check(Kind::Destructor);
        if panicked {
            // SAFETY: T4 - by contract.
            quiet::drop(unsafe { self.take_payload() });
        } else {
            // SAFETY: T1 - by contract.
            let vtable = unsafe { self.vtable() };
            if let Some(drop_value) = vtable.drop_value {
                // SAFETY: T5 - this cell's own vtable; T4 - by contract.
                unsafe { drop_value(self.0) };
            }
        }
    }

    /// Counts one reference more.
    ///
    /// # Safety
    ///
    /// As [`CellRef::header`].
    pub(super) unsafe fn retain(self) {
        // SAFETY: T1 - by contract.
        unsafe { self.state() }.retain();
    }

    /// Gives a reference back and frees the cell if it was the last.
    ///
    /// # Safety
    ///
    /// T1: the caller owns a reference, and no longer uses it. `taken` only if it took the outcome.
    #[inline]
    pub(super) unsafe fn release(self, taken: bool) {
        // SAFETY: T1 - by contract.
        let Released::Last(seen) = (unsafe { self.state() }).release(taken) else {
            return;
        };
        debug_assert!(
            seen.is_claimed(),
            "T2: a task that is dropped unrun claims its closure"
        );
        if seen.holds_outcome() {
            // SAFETY: T4 - nobody else is left.
            unsafe { self.drop_outcome(seen.ended_in_panic()) };
        }
        // SAFETY: T1 - the last reference.
        let vtable = unsafe { self.vtable() };
        // SAFETY: T1 - the last reference; T5 - this cell's own vtable.
        unsafe { (vtable.free)(self.0) };
    }
}

/// How the body of a task ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BodyEnd {
    /// It returned.
    Returned,
    /// It panicked, whether anybody wanted its outcome or not.
    Panicked,
    /// It returned, and the task had been cancelled while it ran: its value was dropped.
    Unwanted,
}

/// What a cancellation found of the body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Body {
    /// It runs.
    Running,
    /// It never will.
    Gone,
}
