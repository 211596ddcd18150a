//! What a cell looks like, and the functions that know the closure's type. Invariants T1 to T8 are in
//! the [module](super).
//!
//! ```text
//!   bytes      0        8        16        24                         48            64
//!              | state  | vtable | token   | meta, 24 bytes at most   | closure ...
//!              +--- Header ----------------+- of a millpond task -----+-- stage ----
//! ```
//!
//! With a meta of 24 bytes a task whose closure and value take up to 16 bytes each is one cache line.
//! Tests here and in `millpond` hold that.

use super::state::AtomicState;
use super::{Panic, Token};
use crate::quiet;
use crate::recycle::Recycled;
use crate::sync::UnsafeCell;
use crate::user_code::{self, Kind};
use crate::waits::Ticket;
use core::any::TypeId;
use core::mem::{ManuallyDrop, needs_drop};
use core::ptr::NonNull;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::task::Waker;

/// What every cell begins with.
#[repr(C)]
pub(super) struct Header {
    pub(super) state: AtomicState,
    pub(super) vtable: &'static Vtable,
    /// Where interrupts go, and the way to the lists of all who wait.
    pub(super) token: Token,
}

impl Header {
    /// Asks for `waker` to be woken when the task is finished; `None` if it is.
    pub(super) fn enlist(&self, waker: &Waker) -> Option<Ticket> {
        if self.is_of_another_process() {
            return None;
        }
        // T8: in the list first, announced second, both under the list's lock.
        let joiners = self.token.joiners_or_new();
        joiners.enlist(waker, || self.state.announce_waiter())
    }

    /// Replaces the waker that was enlisted; false if it has been woken already.
    pub(super) fn renew(&self, ticket: Ticket, waker: &Waker) -> bool {
        let joiners = self.token.joiners();
        !self.is_of_another_process() && joiners.is_some_and(|joiners| joiners.renew(ticket, waker))
    }

    /// Takes back what [`enlist`](Header::enlist) asked for.
    pub(super) fn leave(&self, ticket: Ticket) {
        if self.is_of_another_process() {
            return;
        }
        if let Some(joiners) = self.token.joiners() {
            joiners.leave(ticket);
        }
    }

    /// Whether the process has forked since: then a thread that is not here may have the locks of the
    /// lists, and those who wait are not here either.
    #[cold]
    fn is_of_another_process(&self) -> bool {
        self.state.is_of_another_process()
    }

    /// Sets the token, and wakes the body if it blocks here.
    pub(super) fn interrupt(&self) {
        if !self.is_of_another_process() {
            self.token.set();
        }
    }

    /// Wakes the joiners that the step which finished the task has seen (T8).
    pub(super) fn wake_joiners(&self) {
        if self.state.read_after_waiter().is_of_another_process() {
            return;
        }
        if let Some(joiners) = self.token.joiners() {
            joiners.wake_all();
        }
    }
}

/// Header and meta: as much of a cell as is known without the closure's type.
#[repr(C)]
pub(super) struct Prefix<M> {
    header: Header,
    pub(super) meta: M,
}

/// The whole cell.
#[repr(C)]
pub(super) struct TaskCell<F, T, M> {
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
    pub(super) run: unsafe fn(NonNull<Header>) -> bool,
    /// All of the life of a cell that is the caller's alone, in one go: runs the closure as the current
    /// task, drops what it returns, and frees the cell. Returns the payload of its panic.
    pub(super) run_alone: unsafe fn(NonNull<Header>) -> Option<Panic>,
    pub(super) drop_closure: unsafe fn(NonNull<Header>),
    /// What the closure is.
    pub(super) closure_type: fn() -> TypeId,
    /// Moves the closure to a place that is fit for it.
    pub(super) move_closure: unsafe fn(NonNull<Header>, *mut ()),
    /// `None` if there is nothing to do.
    pub(super) drop_value: Option<unsafe fn(NonNull<Header>)>,
    /// Where the value is.
    pub(super) value: unsafe fn(NonNull<Header>) -> *mut (),
    /// Where the payload is.
    pub(super) payload: unsafe fn(NonNull<Header>) -> *mut Panic,
    /// Frees the memory, and drops header and meta, but nothing in the stage.
    pub(super) free: unsafe fn(NonNull<Header>),
}

impl<F: FnOnce() -> T + 'static, T, M> TaskCell<F, T, M> {
    const VTABLE: Vtable = Vtable {
        run: Self::run,
        run_alone: Self::run_alone,
        drop_closure: Self::drop_closure,
        closure_type: TypeId::of::<F>,
        move_closure: Self::move_closure,
        drop_value: match needs_drop::<T>() {
            true => Some(Self::drop_value),
            false => None,
        },
        value: Self::value,
        payload: Self::payload,
        free: Self::free,
    };

    /// A cell that nobody has claimed.
    #[inline]
    pub(super) fn new(closure: F, meta: M, references: u32) -> Self {
        let header = Header {
            state: AtomicState::new(references),
            vtable: &Self::VTABLE,
            token: Token::new(),
        };
        TaskCell {
            prefix: Prefix { header, meta },
            stage: UnsafeCell::new(Stage {
                closure: ManuallyDrop::new(closure),
            }),
        }
    }

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
        user_code::check(Kind::Closure);
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
    /// As [`Self::take_closure`], and T1: the caller owns the only reference, and gives it up.
    unsafe fn run_alone(header: NonNull<Header>) -> Option<Panic> {
        // SAFETY: T2 - by contract.
        let closure = unsafe { Self::take_closure(header) };
        // SAFETY: T1 - the caller's reference is held until the body is over.
        let token = unsafe { &(*header.as_ptr()).token };
        user_code::check(Kind::Closure);
        // T7: as in `run`.
        let outcome = token.enter(|| catch_unwind(AssertUnwindSafe(closure)));
        // SAFETY: T1 - the only reference; nothing was put into the stage.
        unsafe { Self::free(header) };
        match outcome {
            Ok(value) => {
                quiet::drop(value);
                None
            }
            Err(payload) => Some(Panic::new(payload)),
        }
    }

    /// # Safety
    ///
    /// As [`Self::take_closure`].
    unsafe fn drop_closure(header: NonNull<Header>) {
        // SAFETY: T5 - by contract.
        let stage = unsafe { Self::stage(header) };
        user_code::check(Kind::Destructor);
        // Where it is: what of it needs no destructor is not even looked at.
        let drop = |closure: *mut F| {
            // SAFETY: T2 - the closure is there, it is the caller's, and nobody takes it again.
            let _ = quiet::call(|| unsafe { closure.drop_in_place() });
        };
        stage.with_mut(|stage| drop(stage.cast()));
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
        let cell = unsafe { Recycled::from_raw(header.cast::<Self>()) };
        // Nothing to do there, but a checker shall see that freeing is an access like any other.
        cell.stage.with_mut(drop);
        // T7: the meta value is the user's.
        quiet::drop(cell);
    }
}

#[cfg(all(test, not(any(millpond_loom, millpond_shuttle))))]
mod tests {
    use super::*;

    fn size<F: FnOnce() -> T, T>(_: F) -> usize {
        size_of::<TaskCell<F, T, [usize; 3]>>()
    }

    #[test]
    fn a_header_is_the_state_and_two_words() {
        assert_eq!(size_of::<AtomicState>(), 8);
        assert_eq!(size_of::<Header>(), 8 + 2 * size_of::<usize>());
    }

    #[test]
    #[cfg(target_pointer_width = "64")]
    fn a_small_task_is_one_cache_line() {
        let word = size_of::<usize>();
        let (one, two) = (1_usize, [1_usize; 2]);
        assert_eq!(size(|| ()), 8 * word);
        assert_eq!(size(move || two), 8 * word);
        assert_eq!(size(move || [one, two[0], two[1]]), 9 * word);
    }
}
