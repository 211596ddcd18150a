//! The slot of one job: it holds the closure, and later its outcome. Invariants SCOPE-1 to SCOPE-6 are in the
//! [module](super).

use super::Core;
use super::state::{AtomicState, Cancel, CancelResult, Completed, JobState};
use crate::catch_panic;
use crate::sync::atomic::{AtomicU64, Ordering};
use crate::sync::{Mutex, UnsafeCell, chaos};
use crate::task::{CancelReason, Outcome, Panic};
use crate::user_code::{self, Kind};
use crate::wait_queue::{Ticket, WaitQueue};
use core::mem::{self, ManuallyDrop};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::task::Waker;

/// The number of a slot that was never listed. No job gets that far.
const NO_NUMBER: u64 = u64::MAX;

/// The part of a slot that does not depend on its closure; nothing in it borrows.
struct SlotHeader<M> {
    core: Arc<Core<M>>,
    state: AtomicState,
    /// [`NO_NUMBER`] until it is set under the lock of the job list, before the slot is shared.
    number: AtomicU64,
    waiters: WaitQueue,
    meta: Mutex<Option<M>>,
}

/// SCOPE-7: the metadata is the user's, and may be dropped while the scope ends.
impl<M> Drop for SlotHeader<M> {
    fn drop(&mut self) {
        let meta = self.meta.lock().take();
        catch_panic::drop(meta);
    }
}

/// A slot with its types.
pub(super) struct Slot<F, T, M> {
    head: SlotHeader<M>,
    stage: UnsafeCell<Stage<F, T>>,
}

/// The closure, or its outcome. The state word says which (SCOPE-2 to SCOPE-4). All variants begin at the
/// first byte (`repr(C)`), so a pointer to the stage is a pointer to its content. Nothing in it is dropped
/// with the slot.
#[repr(C)]
union Stage<F, T> {
    closure: ManuallyDrop<F>,
    value: ManuallyDrop<T>,
    payload: ManuallyDrop<Panic>,
}

// SAFETY: SCOPE-2, SCOPE-4 - closure, value and payload are `Send`, move from thread to thread and are never
// shared; the rest of the slot is `Sync`.
unsafe impl<F: Send, T: Send, M: Send> Send for Slot<F, T, M> {}
// SAFETY: SCOPE-2, SCOPE-4 - as above.
unsafe impl<F: Send, T: Send, M: Send> Sync for Slot<F, T, M> {}

impl<F, T, M> Slot<F, T, M> {
    pub(super) fn new(core: Arc<Core<M>>, closure: F) -> Self {
        Slot {
            head: SlotHeader {
                core,
                state: AtomicState::new(),
                number: AtomicU64::new(NO_NUMBER),
                waiters: WaitQueue::new(),
                meta: Mutex::new(None),
            },
            stage: UnsafeCell::new(Stage {
                closure: ManuallyDrop::new(closure),
            }),
        }
    }

    /// Takes the closure if it is unclaimed, which ends the job.
    pub(super) fn reclaim(&self) -> Option<F> {
        if !self.head.state.claim() {
            return None;
        }
        // SAFETY: SCOPE-2 - claimed just now.
        let closure = unsafe { self.take_closure() };
        // From here on the caller's type carries the borrows (SCOPE-5).
        self.head.end_empty();
        Some(closure)
    }

    /// # Safety
    ///
    /// SCOPE-2: the caller has claimed the closure, and takes it once.
    unsafe fn take_closure(&self) -> F {
        // SAFETY: SCOPE-2 - by contract.
        self.stage
            .with_mut(|stage| unsafe { stage.cast::<F>().read() })
    }

    /// # Safety
    ///
    /// SCOPE-4: the stage holds an outcome, a payload if `panicked`, which is the caller's to take.
    unsafe fn take_outcome(&self, panicked: bool) -> Outcome<T> {
        if panicked {
            // SAFETY: SCOPE-4 - by contract.
            let payload = |stage: *mut Stage<F, T>| unsafe { stage.cast::<Panic>().read() };
            Outcome::Panicked(self.stage.with_mut(payload))
        } else {
            // SAFETY: SCOPE-4 - by contract.
            let value = |stage: *mut Stage<F, T>| unsafe { stage.cast::<T>().read() };
            Outcome::Completed(self.stage.with_mut(value))
        }
    }

    /// SCOPE-5: takes the outcome of an ended job, unless it is gone.
    fn take_ended(&self) -> Option<Outcome<T>> {
        let seen = self.head.state.read();
        if !seen.is_ended() || !self.head.state.take() {
            return None;
        }
        // SAFETY: SCOPE-4 - it has ended, and TAKEN is ours.
        Some(unsafe { self.take_outcome(seen.is_panicked()) })
    }
}

/// The operations on a slot that do not need its types.
trait AnySlot<M>: Send + Sync {
    fn head(&self) -> &SlotHeader<M>;

    /// Runs the body and ends the job. `panicked` is called before the end if the body panics.
    ///
    /// # Safety
    ///
    /// SCOPE-2: the caller has claimed the closure, and calls this or `discard` once.
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
    /// SCOPE-5: what the outcome borrows lives during this call.
    unsafe fn clear(&self);
}

impl<F, T, M> AnySlot<M> for Slot<F, T, M>
where
    F: FnOnce() -> T + Send,
    T: Send,
    M: Send,
{
    fn head(&self) -> &SlotHeader<M> {
        &self.head
    }

    /// # Safety
    ///
    /// By contract of the trait.
    unsafe fn run(&self, panicked: &dyn Fn()) {
        // SAFETY: SCOPE-2 - by contract.
        let closure = unsafe { self.take_closure() };
        user_code::check(Kind::Closure);
        // What the closure owns is dropped inside the catch, also when it returns.
        let outcome = catch_unwind(AssertUnwindSafe(closure));
        let is_panicked = outcome.is_err();
        if is_panicked {
            let _ = catch_panic::call(panicked);
        }
        let filled = match outcome {
            Ok(value) => Stage {
                value: ManuallyDrop::new(value),
            },
            Err(payload) => Stage {
                payload: ManuallyDrop::new(Panic::new(payload)),
            },
        };
        // SAFETY: SCOPE-3 - the stage is the claimer's, and empty now.
        self.stage.with_mut(|stage| unsafe { stage.write(filled) });
        chaos::point("scope.complete");
        match self.head.state.complete(is_panicked) {
            Completed::Delivered { waiter } => self.head.wake_if(waiter),
            Completed::Unwanted(seen) => {
                // SAFETY: SCOPE-4 - not published, so it is still the claimer's.
                let outcome = unsafe { self.take_outcome(is_panicked) };
                match seen.cancelled() {
                    Some(_) => catch_panic::drop(outcome),
                    None => self.head.core.dispose(outcome),
                }
                self.head.end_empty();
            }
        }
    }

    /// # Safety
    ///
    /// By contract of the trait.
    unsafe fn discard(&self) {
        // SAFETY: SCOPE-2 - by contract.
        catch_panic::drop(unsafe { self.take_closure() });
        self.head.end_empty();
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

impl<M> SlotHeader<M> {
    /// Ends the job with an empty stage, wakes the waiters, and takes it off the list.
    fn end_empty(&self) {
        chaos::point("scope.end_empty");
        let waiter = self.state.end_empty();
        self.wake_if(waiter);
        self.leave_list();
    }

    fn wake_if(&self, waiter: bool) {
        if waiter {
            self.waiters.wake_all();
        }
    }

    fn leave_list(&self) {
        self.core.remove(self.number.load(Ordering::Relaxed));
    }
}

/// The operation on a slot that needs the type of the outcome.
pub(super) trait TakeOutcome<T>: Send + Sync {
    /// Takes the outcome of a finished job, unless it was taken before.
    fn take(&self) -> Option<Outcome<T>>;
}

impl<F: Send, T: Send, M: Send> TakeOutcome<T> for Slot<F, T, M> {
    fn take(&self) -> Option<Outcome<T>> {
        if let Some(reason) = self.head.state.read().cancelled() {
            return Some(Outcome::Cancelled(reason));
        }
        let outcome = self.take_ended()?;
        self.head.leave_list();
        Some(outcome)
    }
}

/// A reference to a slot, without its types and without the lifetime of what its closure borrows.
pub(super) struct SlotRef<M>(Arc<dyn AnySlot<M>>);

impl<M> Clone for SlotRef<M> {
    fn clone(&self) -> Self {
        SlotRef(Arc::clone(&self.0))
    }
}

impl<M: 'static> SlotRef<M> {
    /// Erases the types and the lifetime.
    ///
    /// # Safety
    ///
    /// SCOPE-1: the caller ensures that what `F` and `T` borrow lives until the slot is over.
    pub(super) unsafe fn new<'scope, F, T>(slot: Arc<Slot<F, T, M>>) -> Self
    where
        F: FnOnce() -> T + Send + 'scope,
        T: Send + 'scope,
        M: Send,
    {
        let slot: Arc<dyn AnySlot<M> + 'scope> = slot;
        // SAFETY: SCOPE-1 - by contract; the two types differ in a lifetime only.
        SlotRef(unsafe {
            mem::transmute::<Arc<dyn AnySlot<M> + 'scope>, Arc<dyn AnySlot<M> + 'static>>(slot)
        })
    }
}

impl<M> SlotRef<M> {
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

    /// Claims the closure; `None` if it has been claimed.
    pub(super) fn claim(&self) -> Option<Claimed<M>> {
        self.state().claim().then(|| {
            chaos::point("scope.claimed");
            Claimed(Some(self.clone()))
        })
    }

    pub(super) fn cancel(&self, reason: CancelReason) -> CancelResult {
        match self.state().cancel(reason) {
            Cancel::TooLate => CancelResult::TooLate,
            Cancel::Running { waiter } => {
                self.0.head().wake_if(waiter);
                CancelResult::Running
            }
            Cancel::Unrun => {
                chaos::point("scope.cancelled");
                // SAFETY: SCOPE-2 - claimed by the cancellation.
                unsafe { self.0.discard() };
                CancelResult::Unrun
            }
        }
    }

    pub(super) fn mark_stub_dropped(&self) {
        let waiter = self.state().mark_stub_dropped();
        self.0.head().wake_if(waiter);
    }

    /// Disposes of the outcome of an ended job, unless it is gone.
    ///
    /// # Safety
    ///
    /// SCOPE-5: what the outcome borrows lives during this call.
    pub(super) unsafe fn clear(&self) {
        // SAFETY: SCOPE-5 - by contract.
        unsafe { self.0.clear() };
    }

    /// SCOPE-6: registered first, announced second, both under the queue's lock.
    pub(super) fn register(&self, waker: &Waker, over: fn(JobState) -> bool) -> Option<Ticket> {
        let head = self.0.head();
        head.waiters
            .register(waker, || !over(head.state.announce_waiter()))
    }

    pub(super) fn waiters(&self) -> &WaitQueue {
        &self.0.head().waiters
    }

    pub(super) fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

/// A claimed closure: run it, or drop this to drop it.
#[must_use = "dropping it drops the job's closure unrun"]
pub struct Claimed<M>(Option<SlotRef<M>>);

impl<M> Claimed<M> {
    /// Runs the body and delivers the outcome. If the body panics, `panicked` is called before the job is
    /// seen to have ended.
    pub fn run(mut self, panicked: &dyn Fn()) {
        if let Some(job) = self.0.take() {
            // SAFETY: SCOPE-2 - this is the claim, and it is used up.
            unsafe { job.0.run(panicked) };
        }
    }
}

impl<M> Drop for Claimed<M> {
    fn drop(&mut self) {
        if let Some(job) = self.0.take() {
            // The claim is ours, so `cancel` finds a running body and does not discard the closure.
            let _ = job.cancel(CancelReason::Dropped);
            // SAFETY: SCOPE-2 - this is the claim, and it is used up.
            unsafe { job.0.discard() };
        }
    }
}

impl<M> core::fmt::Debug for Claimed<M> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Claimed").finish_non_exhaustive()
    }
}
