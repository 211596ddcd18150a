//! The slot of one job: where its closure waits, and later its outcome. Invariants J1 to J6 are in
//! the [module](super).

use super::Core;
use super::state::{AtomicState, Cancel, Cancelled, Completed, Reading};
use crate::quiet;
use crate::sync::atomic::{AtomicU64, Ordering};
use crate::sync::{Mutex, UnsafeCell, chaos};
use crate::task::{CancelReason, Outcome, Panic};
use crate::user_code::{self, Kind};
use crate::waits::{Ticket, Waits};
use core::mem::{self, ManuallyDrop};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::task::Waker;

/// The number of a slot that has never been on the roster. No job gets that far.
const NO_NUMBER: u64 = u64::MAX;

/// What a slot has whatever its closure is; nothing of it borrows.
struct Head<M> {
    core: Arc<Core<M>>,
    state: AtomicState,
    /// [`NO_NUMBER`] until it is written under the roster's lock, before anybody else sees the slot.
    number: AtomicU64,
    waits: Waits,
    meta: Mutex<Option<M>>,
}

/// J7: the meta value is the user's, and the slot may go while its scope ends.
impl<M> Drop for Head<M> {
    fn drop(&mut self) {
        let meta = self.meta.lock().take();
        quiet::drop(meta);
    }
}

/// The slot itself.
pub(super) struct Slot<F, T, M> {
    head: Head<M>,
    stage: UnsafeCell<Stage<F, T>>,
}

/// The closure, or what became of it. The state word says which (J2 to J4). All of them begin at
/// its first byte (`repr(C)`), so a pointer to the stage is a pointer to what is in it. Nothing in
/// it is dropped with the slot.
#[repr(C)]
union Stage<F, T> {
    closure: ManuallyDrop<F>,
    value: ManuallyDrop<T>,
    payload: ManuallyDrop<Panic>,
}

// SAFETY: J2, J4 - closure, value and payload, all of which may be sent, move from thread to thread
// and are never shared; the rest of the slot may be.
unsafe impl<F: Send, T: Send, M: Send> Send for Slot<F, T, M> {}
// SAFETY: J2, J4 - as above.
unsafe impl<F: Send, T: Send, M: Send> Sync for Slot<F, T, M> {}

impl<F, T, M> Slot<F, T, M> {
    pub(super) fn new(core: Arc<Core<M>>, closure: F) -> Self {
        Slot {
            head: Head {
                core,
                state: AtomicState::new(),
                number: AtomicU64::new(NO_NUMBER),
                waits: Waits::new(),
                meta: Mutex::new(None),
            },
            stage: UnsafeCell::new(Stage {
                closure: ManuallyDrop::new(closure),
            }),
        }
    }

    /// The closure, if nobody has claimed it; then the job is over.
    pub(super) fn reclaim(&self) -> Option<F> {
        if !self.head.state.claim() {
            return None;
        }
        // SAFETY: J2 - claimed just now.
        let closure = unsafe { self.take_closure() };
        // What it borrows is in the caller's type from here on (J5).
        self.head.bury();
        Some(closure)
    }

    /// # Safety
    ///
    /// J2: the caller has claimed the closure, and takes it once.
    unsafe fn take_closure(&self) -> F {
        // SAFETY: J2 - by contract.
        self.stage
            .with_mut(|stage| unsafe { stage.cast::<F>().read() })
    }

    /// # Safety
    ///
    /// J4: the stage holds an outcome, a payload if `panicked`, which is the caller's to take.
    unsafe fn take_outcome(&self, panicked: bool) -> Outcome<T> {
        match panicked {
            // SAFETY: J4 - by contract.
            true => Outcome::Panicked(
                self.stage
                    .with_mut(|stage| unsafe { stage.cast::<Panic>().read() }),
            ),
            // SAFETY: J4 - by contract.
            false => Outcome::Completed(
                self.stage
                    .with_mut(|stage| unsafe { stage.cast::<T>().read() }),
            ),
        }
    }

    /// J5: the outcome of an ended job, unless it is gone.
    fn take_ended(&self) -> Option<Outcome<T>> {
        let seen = self.head.state.read();
        if !seen.is_ended() || !self.head.state.take() {
            return None;
        }
        // SAFETY: J4 - it has ended, and TAKEN is ours.
        Some(unsafe { self.take_outcome(seen.is_panicked()) })
    }
}

/// What those can do with a slot who do not know its types.
trait Slotted<M>: Send + Sync {
    fn head(&self) -> &Head<M>;

    /// Runs the body and ends the job. `panicked` is called before the end if the body panics.
    ///
    /// # Safety
    ///
    /// J2: the caller has claimed the closure, and calls this or `discard` once.
    unsafe fn run(&self, panicked: &dyn Fn());

    /// Drops the closure and ends the job.
    ///
    /// # Safety
    ///
    /// As for `run`.
    unsafe fn discard(&self);

    /// Disposes of the outcome of an ended job, unless it is gone.
    ///
    /// # Safety
    ///
    /// J5: what the outcome borrows lives during this call.
    unsafe fn clear(&self);
}

impl<F, T, M> Slotted<M> for Slot<F, T, M>
where
    F: FnOnce() -> T + Send,
    T: Send,
    M: Send,
{
    fn head(&self) -> &Head<M> {
        &self.head
    }

    /// # Safety
    ///
    /// By contract of the trait.
    unsafe fn run(&self, panicked: &dyn Fn()) {
        // SAFETY: J2 - by contract.
        let closure = unsafe { self.take_closure() };
        user_code::check(Kind::Closure);
        // Whatever the closure owns is dropped inside the catch, also when it returns.
        let outcome = catch_unwind(AssertUnwindSafe(closure));
        let is_panicked = outcome.is_err();
        if is_panicked {
            let _ = quiet::call(panicked);
        }
        let filled = match outcome {
            Ok(value) => Stage {
                value: ManuallyDrop::new(value),
            },
            Err(payload) => Stage {
                payload: ManuallyDrop::new(Panic::new(payload)),
            },
        };
        // SAFETY: J3 - the stage is the claimer's and holds nothing now.
        self.stage.with_mut(|stage| unsafe { stage.write(filled) });
        chaos::point("scope.complete");
        match self.head.state.complete(is_panicked) {
            Completed::Delivered { waiter } => self.head.wake_if(waiter),
            Completed::Unwanted(seen) => {
                // SAFETY: J4 - not published, so it is still the claimer's.
                let outcome = unsafe { self.take_outcome(is_panicked) };
                match seen.cancelled() {
                    Some(_) => quiet::drop(outcome),
                    None => self.head.core.dispose(outcome),
                }
                self.head.bury();
            }
        }
    }

    /// # Safety
    ///
    /// By contract of the trait.
    unsafe fn discard(&self) {
        // SAFETY: J2 - by contract.
        quiet::drop(unsafe { self.take_closure() });
        self.head.bury();
    }

    /// # Safety
    ///
    /// By contract of the trait.
    unsafe fn clear(&self) {
        if let Some(outcome) = self.take_ended() {
            self.head.core.dispose(outcome);
        }
    }
}

impl<M> Head<M> {
    /// Ends the job with nothing in the stage, wakes who waits for it, and takes it off the roster.
    fn bury(&self) {
        chaos::point("scope.bury");
        let waiter = self.state.bury();
        self.wake_if(waiter);
        self.leave_roster();
    }

    fn wake_if(&self, waiter: bool) {
        if waiter {
            self.waits.wake_all();
        }
    }

    fn leave_roster(&self) {
        self.core.remove(self.number.load(Ordering::Relaxed));
    }
}

/// The side of a slot that knows what its closure returns.
pub(super) trait Returns<T>: Send + Sync {
    /// The outcome, once the job is finished and unless it was taken before.
    fn take(&self) -> Option<Outcome<T>>;
}

impl<F: Send, T: Send, M: Send> Returns<T> for Slot<F, T, M> {
    fn take(&self) -> Option<Outcome<T>> {
        if let Some(reason) = self.head.state.read().cancelled() {
            return Some(Outcome::Cancelled(reason));
        }
        let outcome = self.take_ended()?;
        self.head.leave_roster();
        Some(outcome)
    }
}

/// A slot without its types, and above all without the lifetime of what its closure borrows.
pub(super) struct Erased<M>(Arc<dyn Slotted<M>>);

impl<M> Clone for Erased<M> {
    fn clone(&self) -> Self {
        Erased(Arc::clone(&self.0))
    }
}

impl<M: 'static> Erased<M> {
    /// Forgets the types and the lifetime.
    ///
    /// # Safety
    ///
    /// J1: what `F` and `T` borrow lives until the slot is over, for which the caller answers.
    pub(super) unsafe fn new<'scope, F, T>(slot: Arc<Slot<F, T, M>>) -> Self
    where
        F: FnOnce() -> T + Send + 'scope,
        T: Send + 'scope,
        M: Send,
    {
        let slot: Arc<dyn Slotted<M> + 'scope> = slot;
        // SAFETY: J1 - by contract; the two types differ in a lifetime and in nothing else.
        Erased(unsafe {
            mem::transmute::<Arc<dyn Slotted<M> + 'scope>, Arc<dyn Slotted<M> + 'static>>(slot)
        })
    }
}

impl<M> Erased<M> {
    pub(super) fn state(&self) -> &AtomicState {
        &self.0.head().state
    }

    pub(super) fn core(&self) -> &Arc<Core<M>> {
        &self.0.head().core
    }

    pub(super) fn meta(&self) -> &Mutex<Option<M>> {
        &self.0.head().meta
    }

    pub(super) fn number(&self) -> u64 {
        self.0.head().number.load(Ordering::Relaxed)
    }

    pub(super) fn set_number(&self, number: u64) {
        self.0.head().number.store(number, Ordering::Relaxed);
    }

    /// Claims the closure; `None` if it is gone.
    pub(super) fn claim(&self) -> Option<Claimed<M>> {
        self.state().claim().then(|| {
            chaos::point("scope.claimed");
            Claimed(Some(self.clone()))
        })
    }

    pub(super) fn cancel(&self, reason: CancelReason) -> Cancelled {
        match self.state().cancel(reason) {
            Cancel::TooLate => Cancelled::TooLate,
            Cancel::Running { waiter } => {
                self.0.head().wake_if(waiter);
                Cancelled::Running
            }
            Cancel::Unrun => {
                chaos::point("scope.cancelled");
                // SAFETY: J2 - claimed by the cancellation.
                unsafe { self.0.discard() };
                Cancelled::Unrun
            }
        }
    }

    pub(super) fn stray(&self) {
        let waiter = self.state().stray();
        self.0.head().wake_if(waiter);
    }

    /// Disposes of the outcome of an ended job, unless it is gone.
    ///
    /// # Safety
    ///
    /// J5: what the outcome borrows lives during this call.
    pub(super) unsafe fn clear(&self) {
        // SAFETY: J5 - by contract.
        unsafe { self.0.clear() };
    }

    /// J6: in the list first, announced second, both under the list's lock.
    pub(super) fn enlist(&self, waker: &Waker, over: fn(Reading) -> bool) -> Option<Ticket> {
        let head = self.0.head();
        head.waits
            .enlist(waker, || !over(head.state.announce_waiter()))
    }

    pub(super) fn waits(&self) -> &Waits {
        &self.0.head().waits
    }

    pub(super) fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

/// A claimed closure: run it, or drop this to drop it.
#[must_use = "dropping it drops the job's closure unrun"]
pub struct Claimed<M>(Option<Erased<M>>);

impl<M> Claimed<M> {
    /// Runs the body, and delivers the outcome. If it panics, `panicked` is called before anybody
    /// can see the end of the job.
    pub fn run(mut self, panicked: &dyn Fn()) {
        if let Some(job) = self.0.take() {
            // SAFETY: J2 - this is the claim, and it is used up.
            unsafe { job.0.run(panicked) };
        }
    }
}

impl<M> Drop for Claimed<M> {
    fn drop(&mut self) {
        if let Some(job) = self.0.take() {
            // To others it looks like a body that runs, so nothing is discarded here.
            let _ = job.cancel(CancelReason::Dropped);
            // SAFETY: J2 - this is the claim, and it is used up.
            unsafe { job.0.discard() };
        }
    }
}

impl<M> core::fmt::Debug for Claimed<M> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Claimed").finish_non_exhaustive()
    }
}
