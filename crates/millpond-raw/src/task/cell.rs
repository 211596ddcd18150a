//! The allocation itself: layout, the functions that know the closure's type, and the steps that
//! run, cancel and free it. Invariants T1 to T8 are in the [module](super).

use super::state::{AtomicState, Cancelled, Claim, Completed, Reading, Released};
use super::{CancelReason, Panic, Token};
use crate::quiet;
use crate::sync::{UnsafeCell, chaos};
use crate::waits::Waits;
use core::any::TypeId;
use core::mem::{ManuallyDrop, MaybeUninit};
use core::ptr::NonNull;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// What every cell begins with.
#[repr(C)]
pub(super) struct Header {
    pub(super) state: AtomicState,
    vtable: &'static Vtable,
    pub(super) token: Token,
    pub(super) waits: Waits,
}

/// Header and meta: as much of a cell as is known without the closure's type.
#[repr(C)]
struct Prefix<M> {
    header: Header,
    meta: M,
}

/// The whole cell.
#[repr(C)]
struct TaskCell<F, T, M> {
    prefix: Prefix<M>,
    stage: UnsafeCell<Stage<F, T>>,
}

/// The closure, or what became of it. The state word says which (T2 to T4). All of them begin at
/// its first byte (`repr(C)`), so a pointer to the stage is a pointer to what is in it.
#[repr(C)]
union Stage<F, T> {
    closure: ManuallyDrop<F>,
    value: ManuallyDrop<T>,
    payload: ManuallyDrop<Panic>,
}

/// What only code that knows the closure's type can do. Each function relies on T5.
pub(super) struct Vtable {
    /// Moves the closure out, runs it, and moves the outcome in. Returns whether it panicked.
    run: unsafe fn(NonNull<Header>) -> bool,
    drop_closure: unsafe fn(NonNull<Header>),
    /// What the closure is.
    closure_type: fn() -> TypeId,
    /// Moves the closure to a place that is fit for it.
    move_closure: unsafe fn(NonNull<Header>, *mut ()),
    drop_value: unsafe fn(NonNull<Header>),
    /// Where the value is.
    value: unsafe fn(NonNull<Header>) -> *mut (),
    /// Where the payload is.
    payload: unsafe fn(NonNull<Header>) -> *mut Panic,
    /// Frees the memory, and drops header and meta, but nothing in the stage.
    free: unsafe fn(NonNull<Header>),
}

impl<F: FnOnce() -> T + 'static, T, M> TaskCell<F, T, M> {
    const VTABLE: Vtable = Vtable {
        run: Self::run,
        drop_closure: Self::drop_closure,
        closure_type: TypeId::of::<F>,
        move_closure: Self::move_closure,
        drop_value: Self::drop_value,
        value: Self::value,
        payload: Self::payload,
        free: Self::free,
    };

    /// # Safety
    ///
    /// T5: `header` is the header of a cell of this very type. T1: it lives while the reference is
    /// used.
    unsafe fn stage<'a>(header: NonNull<Header>) -> &'a UnsafeCell<Stage<F, T>> {
        // SAFETY: T5, T1 - by contract.
        unsafe { &(*header.cast::<Self>().as_ptr()).stage }
    }

    /// # Safety
    ///
    /// As [`Self::stage`], and T2: the caller owns the closure.
    unsafe fn take_closure(header: NonNull<Header>) -> F {
        // SAFETY: T5 - by contract.
        let stage = unsafe { Self::stage(header) };
        // SAFETY: T2 - the closure is there, it is the caller's, and nobody takes it again.
        stage.with_mut(|stage| unsafe { stage.cast::<F>().read() })
    }

    /// # Safety
    ///
    /// As [`Self::take_closure`].
    unsafe fn run(header: NonNull<Header>) -> bool {
        // SAFETY: T2 - by contract.
        let closure = unsafe { Self::take_closure(header) };
        // T7: whatever the closure owns is dropped inside the catch, also when it returns.
        let outcome = catch_unwind(AssertUnwindSafe(closure));
        let panicked = outcome.is_err();
        let filled = match outcome {
            Ok(value) => Stage {
                value: ManuallyDrop::new(value),
            },
            Err(payload) => Stage {
                payload: ManuallyDrop::new(Panic::new(payload)),
            },
        };
        // SAFETY: T5 - by contract.
        let stage = unsafe { Self::stage(header) };
        // SAFETY: T3 - the stage is the caller's and holds nothing now.
        stage.with_mut(|stage| unsafe { stage.write(filled) });
        panicked
    }

    /// # Safety
    ///
    /// As [`Self::take_closure`].
    unsafe fn drop_closure(header: NonNull<Header>) {
        // SAFETY: T2 - by contract.
        let closure = unsafe { Self::take_closure(header) };
        quiet::drop(closure);
    }

    /// # Safety
    ///
    /// As [`Self::take_closure`], and T5: `place` may be written with an `F`.
    unsafe fn move_closure(header: NonNull<Header>, place: *mut ()) {
        // SAFETY: T2 - by contract.
        let closure = unsafe { Self::take_closure(header) };
        // SAFETY: T5 - by contract.
        unsafe { place.cast::<F>().write(closure) };
    }

    /// # Safety
    ///
    /// As [`Self::stage`], and T4: the stage holds a value that is the caller's.
    unsafe fn drop_value(header: NonNull<Header>) {
        // SAFETY: T5 - by contract.
        let stage = unsafe { Self::stage(header) };
        // SAFETY: T4 - the value is there, it is the caller's, and nobody takes it again.
        let value = stage.with_mut(|stage| unsafe { stage.cast::<T>().read() });
        quiet::drop(value);
    }

    /// # Safety
    ///
    /// As [`Self::stage`], and T4: the stage holds a value.
    unsafe fn value(header: NonNull<Header>) -> *mut () {
        // SAFETY: T5 - by contract.
        let stage = unsafe { Self::stage(header) };
        // A read as far as the checker is concerned: T4 orders whoever takes after all readers.
        stage.with(|stage| stage.cast_mut().cast())
    }

    /// # Safety
    ///
    /// As [`Self::stage`], and T4: the stage holds a payload.
    unsafe fn payload(header: NonNull<Header>) -> *mut Panic {
        // SAFETY: T5 - by contract.
        let stage = unsafe { Self::stage(header) };
        stage.with(|stage| stage.cast_mut().cast())
    }

    /// # Safety
    ///
    /// As [`Self::stage`], T1: the caller gave the last reference back, and the stage is empty.
    unsafe fn free(header: NonNull<Header>) {
        // SAFETY: T5, T1 - it came from a box of this type, and nobody else has it.
        let cell = unsafe { Box::from_raw(header.cast::<Self>().as_ptr()) };
        // Nothing to do there, but a checker shall see that freeing is an access like any other.
        cell.stage.with_mut(drop);
        // T7: the meta value is the user's.
        quiet::drop(cell);
    }
}

/// A pointer to a cell that somebody holds a reference to.
#[derive(Clone, Copy)]
pub(super) struct CellRef(NonNull<Header>);

impl CellRef {
    /// Allocates a cell with `references` references, all of which are the caller's to hand out.
    pub(super) fn new<F, T, M>(closure: F, meta: M, references: usize) -> Self
    where
        F: FnOnce() -> T + 'static,
    {
        let header = Header {
            state: AtomicState::new(references),
            vtable: &TaskCell::<F, T, M>::VTABLE,
            token: Token::new(),
            waits: Waits::new(),
        };
        let cell = Box::new(TaskCell {
            prefix: Prefix { header, meta },
            stage: UnsafeCell::new(Stage::<F, T> {
                closure: ManuallyDrop::new(closure),
            }),
        });
        CellRef(NonNull::from(Box::leak(cell)).cast())
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

    /// Runs the body if nobody has claimed it, and delivers the outcome; `false` if it was gone.
    ///
    /// # Safety
    ///
    /// T1: the caller owns a reference, which is given back if `release` is set.
    pub(super) unsafe fn run(self, release: bool) -> Option<bool> {
        // SAFETY: T1 - by contract; so for the rest of this function until it is released.
        let state = unsafe { self.state() };
        // SAFETY: T1 - as above.
        let vtable = unsafe { self.vtable() };
        if state.claim() == Claim::Gone {
            if release {
                // SAFETY: T1 - the caller's reference.
                unsafe { self.release(false) };
            }
            return None;
        }
        chaos::point("task.claimed");
        // SAFETY: T1 - the body runs while the caller's reference is held; T2 - claimed just now.
        let panicked = unsafe { self.run_body() };
        chaos::point("task.complete");
        match state.complete(panicked, release) {
            Completed::Delivered => {}
            Completed::WakeWaiters => {
                chaos::point("task.wake");
                // SAFETY: T1 - not given back yet.
                unsafe { self.header() }.waits.wake_all();
                if release {
                    // SAFETY: T1 - the caller's reference.
                    unsafe { self.release(false) };
                }
            }
            Completed::Unwanted => {
                // SAFETY: T4 - cancelled, so the outcome is still the runner's.
                unsafe { self.drop_outcome(panicked) };
                state.bury();
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
        Some(panicked)
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
    pub(super) unsafe fn run_alone(self) -> Option<Panic> {
        // SAFETY: T1 - by contract.
        let vtable = unsafe { self.vtable() };
        // SAFETY: T1, T2 - by contract.
        let panicked = unsafe { self.run_body() };
        let payload = match panicked {
            // SAFETY: T4 - the body has just panicked, and the stage is the caller's.
            true => Some(unsafe { self.take_payload() }),
            false => {
                // SAFETY: T4 - the body has just returned, and the stage is the caller's.
                unsafe { self.drop_outcome(false) };
                None
            }
        };
        // SAFETY: T1 - the only reference, and the stage is empty.
        unsafe { (vtable.free)(self.0) };
        payload
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
            || header.state.claim() == Claim::Gone
        {
            return None;
        }
        chaos::point("task.reclaimed");
        let mut closure = MaybeUninit::<F>::uninit();
        // SAFETY: T5 - this cell's own vtable; T2 - claimed just now; the place is an `F`'s.
        unsafe { (header.vtable.move_closure)(self.0, closure.as_mut_ptr().cast()) };
        // Claimed, so to others it looks like a body that runs; somebody may have cancelled that.
        if let Cancelled::Running { waiter: true } = header.state.cancel(reason) {
            header.waits.wake_all();
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
        let (waiter, body) = match header.state.cancel(reason) {
            Cancelled::TooLate => return None,
            Cancelled::Running { waiter } => (waiter, Body::Running),
            Cancelled::Unrun { waiter } => {
                chaos::point("task.cancelled");
                // SAFETY: T5 - this cell's own vtable; T2 - claimed by the cancellation.
                unsafe { (header.vtable.drop_closure)(self.0) };
                (waiter, Body::Gone)
            }
        };
        if waiter {
            header.waits.wake_all();
        }
        Some(body)
    }

    /// Cancels, and sets the token if the body runs, whoever has cancelled it. Returns whether it
    /// was this call that cancelled.
    ///
    /// # Safety
    ///
    /// As [`CellRef::header`].
    pub(super) unsafe fn interrupt(self, reason: CancelReason) -> bool {
        // SAFETY: T1 - by contract.
        let cancelled = unsafe { self.cancel(reason) };
        // SAFETY: T1 - by contract.
        let header = unsafe { self.header() };
        let runs = match cancelled {
            Some(body) => body == Body::Running,
            None => !header.state.read().is_done(),
        };
        if runs {
            header.token.set();
        }
        cancelled.is_some()
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
        if panicked {
            // SAFETY: T4 - by contract.
            quiet::drop(unsafe { self.take_payload() });
        } else {
            // SAFETY: T1 - by contract.
            let vtable = unsafe { self.vtable() };
            // SAFETY: T5 - this cell's own vtable; T4 - by contract.
            unsafe { (vtable.drop_value)(self.0) };
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

/// What a cancellation found of the body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Body {
    /// It runs.
    Running,
    /// It never will.
    Gone,
}
