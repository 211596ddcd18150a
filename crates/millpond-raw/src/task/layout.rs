//! The layout of a cell, and the functions that know the closure's type. Invariants TASK-1 to TASK-8 are in
//! the [module](super).
//!
//! ```text
//!   bytes      0        8        16        24                         48            64
//!              | state  | vtable | token   | meta, 24 bytes at most   | closure ...
//!              +--- Header ----------------+- of a millpond task -----+-- stage ----
//! ```
//!
//! With 24 bytes of metadata, a task whose closure and value take up to 16 bytes each is one cache line.
//! Tests here and in `millpond` assert that.

use super::state::AtomicState;
use super::{Panic, Token};
use crate::catch_panic;
use crate::recycle::Recycled;
use crate::sync::UnsafeCell;
use crate::user_code::{self, Kind};
use crate::wait_queue::Ticket;
use core::any::TypeId;
use core::mem::{ManuallyDrop, needs_drop};
use core::ptr::NonNull;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::task::Waker;

/// The beginning of every cell.
#[repr(C)]
pub(super) struct Header {
    pub(super) state: AtomicState,
    pub(super) vtable: &'static Vtable,
    /// The interrupt flag, and the way to the queues of waiters.
    pub(super) token: Token,
}

impl Header {
    /// Registers `waker` to be woken when the task is finished; `None` if it is.
    pub(super) fn register(&self, waker: &Waker) -> Option<Ticket> {
        if self.is_of_another_process() {
            return None;
        }
        // TASK-8: registered first, announced second, both under the queue's lock.
        let joiners = self.token.joiners_or_init();
        joiners.register(waker, || self.state.announce_waiter())
    }

    /// Replaces the registered waker; false if it has been woken already.
    pub(super) fn update_waker(&self, ticket: Ticket, waker: &Waker) -> bool {
        let joiners = self.token.joiners();
        !self.is_of_another_process()
            && joiners.is_some_and(|joiners| joiners.update_waker(ticket, waker))
    }

    /// Undoes [`register`](Header::register).
    pub(super) fn unregister(&self, ticket: Ticket) {
        if self.is_of_another_process() {
            return;
        }
        if let Some(joiners) = self.token.joiners() {
            joiners.unregister(ticket);
        }
    }

    /// Whether the process has forked since: then the locks of the queues may be held by a thread of the
    /// parent, and the waiters are in the parent too.
    #[cold]
    fn is_of_another_process(&self) -> bool {
        self.state.is_of_another_process()
    }

    /// Sets the token, and wakes the body if it blocks.
    pub(super) fn interrupt(&self) {
        if !self.is_of_another_process() {
            self.token.set();
        }
    }

    /// Wakes the joiners, after the step that finished the task has seen one (TASK-8).
    pub(super) fn wake_joiners(&self) {
        if self.state.read_after_waiter().is_of_another_process() {
            return;
        }
        if let Some(joiners) = self.token.joiners() {
            joiners.wake_all();
        }
    }
}

/// Header and metadata: the part of a cell that does not depend on the closure's type.
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

/// The closure, or its outcome. The state word says which (TASK-2 to TASK-4). All variants begin at the first
/// byte (`repr(C)`), so a pointer to the stage is a pointer to its content.
#[repr(C)]
union Stage<F, T> {
    closure: ManuallyDrop<F>,
    value: ManuallyDrop<T>,
    payload: ManuallyDrop<Panic>,
}

/// The functions that know the closure's type. Each relies on TASK-5.
pub(super) struct Vtable {
    /// Moves the closure out, runs it, and moves the outcome in. Returns whether it panicked.
    pub(super) run: unsafe fn(NonNull<Header>) -> bool,
    /// The fast path for a cell with one reference: runs the closure as the current task, drops what it
    /// returns, and frees the cell. Returns the payload of its panic.
    pub(super) run_alone: unsafe fn(NonNull<Header>) -> Option<Panic>,
    pub(super) drop_closure: unsafe fn(NonNull<Header>),
    /// The type of the closure.
    pub(super) closure_type: fn() -> TypeId,
    /// Moves the closure to a destination of its type.
    pub(super) move_closure: unsafe fn(NonNull<Header>, *mut ()),
    /// `None` if the value needs no drop.
    pub(super) drop_value: Option<unsafe fn(NonNull<Header>)>,
    /// A pointer to the value.
    pub(super) value: unsafe fn(NonNull<Header>) -> *mut (),
    /// A pointer to the payload.
    pub(super) payload: unsafe fn(NonNull<Header>) -> *mut Panic,
    /// Drops header and metadata, and frees the memory. The stage must be empty.
    pub(super) free: unsafe fn(NonNull<Header>),
}

impl<F: FnOnce() -> T + 'static, T, M> TaskCell<F, T, M> {
    const VTABLE: Vtable = Vtable {
        run: Self::run,
        run_alone: Self::run_alone,
        drop_closure: Self::drop_closure,
        closure_type: TypeId::of::<F>,
        move_closure: Self::move_closure,
        drop_value: if needs_drop::<T>() {
            Some(Self::drop_value)
        } else {
            None
        },
        value: Self::value,
        payload: Self::payload,
        free: Self::free,
    };

    /// An unclaimed cell.
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
    /// TASK-5: `header` is the header of a cell of this very type. TASK-1: it lives while the reference is
    /// used.
    unsafe fn stage<'a>(header: NonNull<Header>) -> &'a UnsafeCell<Stage<F, T>> {
        // SAFETY: TASK-5, TASK-1 - by contract.
        unsafe { &(*header.cast::<Self>().as_ptr()).stage }
    }

    /// # Safety
    ///
    /// As [`Self::stage`], and TASK-2: the caller owns the closure.
    unsafe fn take_closure(header: NonNull<Header>) -> F {
        // SAFETY: TASK-5 - by contract.
        let stage = unsafe { Self::stage(header) };
        // SAFETY: TASK-2 - the closure is there, the caller owns it, and takes it once.
        stage.with_mut(|stage| unsafe { stage.cast::<F>().read() })
    }

    /// # Safety
    ///
    /// As [`Self::take_closure`].
    unsafe fn run(header: NonNull<Header>) -> bool {
        // SAFETY: TASK-2 - by contract.
        let closure = unsafe { Self::take_closure(header) };
        user_code::check(Kind::Closure);
        // TASK-7: what the closure owns is dropped inside the catch, also when it returns.
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
        // SAFETY: TASK-5 - by contract.
        let stage = unsafe { Self::stage(header) };
        // SAFETY: TASK-3 - the stage is the caller's, and empty now.
        stage.with_mut(|stage| unsafe { stage.write(filled) });
        panicked
    }

    /// # Safety
    ///
    /// As [`Self::take_closure`], and TASK-1: the caller owns the only reference, and gives it up.
    unsafe fn run_alone(header: NonNull<Header>) -> Option<Panic> {
        // SAFETY: TASK-2 - by contract.
        let closure = unsafe { Self::take_closure(header) };
        // SAFETY: TASK-1 - the caller's reference is held until the body has ended.
        let token = unsafe { &(*header.as_ptr()).token };
        user_code::check(Kind::Closure);
        // TASK-7: as in `run`.
        let outcome = token.enter(|| catch_unwind(AssertUnwindSafe(closure)));
        // SAFETY: TASK-1 - the only reference; the stage is empty.
        unsafe { Self::free(header) };
        match outcome {
            Ok(value) => {
                catch_panic::drop(value);
                None
            }
            Err(payload) => Some(Panic::new(payload)),
        }
    }

    /// # Safety
    ///
    /// As [`Self::take_closure`].
    unsafe fn drop_closure(header: NonNull<Header>) {
        // SAFETY: TASK-5 - by contract.
        let stage = unsafe { Self::stage(header) };
        user_code::check(Kind::Destructor);
        // In place, so that parts without a destructor are not even moved.
        let drop = |closure: *mut F| {
            // SAFETY: TASK-2 - the closure is there, the caller owns it, and takes it once.
            let _ = catch_panic::call(|| unsafe { closure.drop_in_place() });
        };
        stage.with_mut(|stage| drop(stage.cast()));
    }

    /// # Safety
    ///
    /// As [`Self::take_closure`], and TASK-5: `place` may be written with an `F`.
    unsafe fn move_closure(header: NonNull<Header>, place: *mut ()) {
        // SAFETY: TASK-2 - by contract.
        let closure = unsafe { Self::take_closure(header) };
        // SAFETY: TASK-5 - by contract.
        unsafe { place.cast::<F>().write(closure) };
    }

    /// # Safety
    ///
    /// As [`Self::stage`], and TASK-4: the stage holds a value that is the caller's.
    unsafe fn drop_value(header: NonNull<Header>) {
        // SAFETY: TASK-5 - by contract.
        let stage = unsafe { Self::stage(header) };
        // SAFETY: TASK-4 - the value is there, the caller owns it, and takes it once.
        let value = stage.with_mut(|stage| unsafe { stage.cast::<T>().read() });
        catch_panic::drop(value);
    }

    /// # Safety
    ///
    /// As [`Self::stage`], and TASK-4: the stage holds a value.
    unsafe fn value(header: NonNull<Header>) -> *mut () {
        // SAFETY: TASK-5 - by contract.
        let stage = unsafe { Self::stage(header) };
        // A read to the checker: TASK-4 orders the taker after all readers.
        stage.with(|stage| stage.cast_mut().cast())
    }

    /// # Safety
    ///
    /// As [`Self::stage`], and TASK-4: the stage holds a payload.
    unsafe fn payload(header: NonNull<Header>) -> *mut Panic {
        // SAFETY: TASK-5 - by contract.
        let stage = unsafe { Self::stage(header) };
        stage.with(|stage| stage.cast_mut().cast())
    }

    /// # Safety
    ///
    /// As [`Self::stage`], TASK-1: the caller gave the last reference back, and the stage is empty.
    unsafe fn free(header: NonNull<Header>) {
        // SAFETY: TASK-5, TASK-1 - it came from a box of this type, and no reference is left.
        let cell = unsafe { Recycled::from_raw(header.cast::<Self>()) };
        // A no-op that lets a checker see that freeing is an exclusive access.
        cell.stage.with_mut(drop);
        // TASK-7: the metadata is the user's.
        catch_panic::drop(cell);
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
