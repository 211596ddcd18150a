//! The header of a job, its state word, and what others hold of it.
//!
//! ```text
//!   OPEN ---- run ----> DONE          with WAITING if the owner sleeps, and the number of the runner
//!     +----- drop ----> RETURNED
//! ```

use crate::catch_panic;
use crate::sync::UnsafeCell;
use crate::sync::atomic::{AtomicU64, Ordering};
use crate::user_code::{self, Kind};
use core::cell::Cell;
use core::fmt;
use core::mem::{ManuallyDrop, MaybeUninit};
use core::ptr::{self, NonNull};
use std::task::Waker;

const OPEN: u64 = 0;
const DONE: u64 = 1;
const RETURNED: u64 = 2;
/// The bits of the above.
const END: u64 = DONE | RETURNED;
/// The owner sleeps, and has left a waker.
const WAITING: u64 = 4;
/// Above it is the number of the runner, plus one.
const RUNNER_SHIFT: u32 = 8;

/// The links of the private list (JOB-5).
pub(super) struct Links {
    /// The next older one; null if this is in no list.
    pub(super) prev: Cell<*const Links>,
    /// The next younger one; meaningless in the youngest.
    pub(super) next: Cell<MaybeUninit<*const Links>>,
}

impl Links {
    #[inline]
    pub(super) fn new(prev: *const Links) -> Self {
        Links {
            prev: Cell::new(prev),
            next: Cell::new(MaybeUninit::uninit()),
        }
    }
}

/// How to run and how to drop a job of some type.
pub(super) struct Vtable {
    /// Runs the job and ends it. Does not unwind.
    pub(super) run: unsafe fn(NonNull<Header>),
    /// Ends the job without running it. Does not unwind.
    pub(super) give_back: unsafe fn(NonNull<Header>),
}

/// What all jobs begin with.
#[repr(C)]
pub(super) struct Header {
    /// The first field, so that links of the private list are headers.
    pub(super) links: Links,
    pub(super) vtable: &'static Vtable,
    state: AtomicU64,
    waker: UnsafeCell<MaybeUninit<Waker>>,
}

impl Header {
    #[inline]
    pub(super) fn new(vtable: &'static Vtable, prev: *const Links) -> Self {
        Header {
            links: Links::new(prev),
            vtable,
            state: AtomicU64::new(OPEN),
            waker: UnsafeCell::new(MaybeUninit::uninit()),
        }
    }

    fn finish(this: NonNull<Header>, end: u64) {
        // SAFETY: JOB-1 - nobody has written DONE or RETURNED yet, and this reference is not used afterwards.
        let header = unsafe { this.as_ref() };
        // [Q-wait]
        let mut seen = header.state.load(Ordering::Acquire);
        while seen & WAITING == 0 {
            // [Q-done] [Q-wait]
            let (success, failure) = (Ordering::Release, Ordering::Acquire);
            match header.state.compare_exchange(seen, end, success, failure) {
                Ok(_) => return,
                Err(now) => seen = now,
            }
        }
        // SAFETY: JOB-4 - WAITING is set, so the waker is there, and it is ours.
        let waker = header
            .waker
            .with(|waker| unsafe { waker.cast::<Waker>().read() });
        // [Q-done] unmodelled: the wake that follows orders the same in every model
        header.state.store(end, Ordering::Release);
        waker.wake();
    }

    pub(super) fn finish_done(this: NonNull<Header>) {
        Header::finish(this, DONE);
    }

    pub(super) fn finish_returned(this: NonNull<Header>) {
        Header::finish(this, RETURNED);
    }
}

/// The right to run a job that was published, once. Dropping it gives the job back to its owner, which runs it itself.
///
/// Forgetting it makes the owner wait for ever.
#[must_use = "a job that is dropped goes back to its owner"]
pub struct JobRef(NonNull<Header>);

// SAFETY: JOB-2 - the closure of every job is `Send`, and so is its outcome; of the header another thread uses the
// state, the vtable and, by JOB-4, the waker, which is `Send`.
unsafe impl Send for JobRef {}

impl JobRef {
    /// # Safety
    ///
    /// JOB-2: this is the only reference to this job, which has left the private list, if it was in one.
    pub(super) unsafe fn new(header: NonNull<Header>) -> Self {
        JobRef(header)
    }

    /// A number that tells jobs apart that exist at the same time.
    #[inline]
    pub fn id(&self) -> usize {
        self.0.addr().get()
    }

    /// Says who runs the job, for its owner ([`Awaited::runner`]).
    pub fn set_runner(&self, runner: u32) {
        // SAFETY: JOB-1 - the job is not finished, for we hold its reference.
        let header = unsafe { self.0.as_ref() };
        let bits = u64::from(runner + 1) << RUNNER_SHIFT;
        // Relaxed: a hint. The owner may add WAITING meanwhile.
        header.state.fetch_or(bits, Ordering::Relaxed);
    }

    /// Runs the job. Its panic goes to its owner.
    pub fn run(self) {
        let header = ManuallyDrop::new(self).0;
        user_code::check(Kind::Closure);
        // SAFETY: JOB-1 - the job is alive.
        let vtable = unsafe { header.as_ref() }.vtable;
        // SAFETY: JOB-2 - it is ours to run.
        unsafe { (vtable.run)(header) };
    }

    /// Forgets this reference, which has come back to the owner of the job.
    pub(super) fn into_header(self) -> NonNull<Header> {
        ManuallyDrop::new(self).0
    }
}

impl Drop for JobRef {
    fn drop(&mut self) {
        // SAFETY: JOB-1 - the job is alive.
        let vtable = unsafe { self.0.as_ref() }.vtable;
        // SAFETY: JOB-2 - it is ours to end.
        unsafe { (vtable.give_back)(self.0) };
    }
}

impl fmt::Debug for JobRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("JobRef").field(&self.id()).finish()
    }
}

/// A published job that its owner waits for.
pub struct Awaited<'a>(pub(super) &'a Header);

impl Awaited<'_> {
    /// The [`JobRef::id`] of the job.
    #[inline]
    pub fn id(&self) -> usize {
        ptr::from_ref(self.0).addr()
    }

    /// Whether the wait is over: the job has run, or has come back.
    #[inline]
    pub fn is_over(&self) -> bool {
        self.state() & END != 0
    }

    /// The thread that runs the job, if that has said so ([`JobRef::set_runner`]).
    pub fn runner(&self) -> Option<u32> {
        let runner = self.0.state.load(Ordering::Relaxed) >> RUNNER_SHIFT;
        (runner > 0).then(|| (runner - 1) as u32)
    }

    /// Lets the end of the job wake `waker`. False if the job is over: then there is nothing to wait for. The first
    /// waker stays.
    pub fn register(&self, waker: &Waker) -> bool {
        let mut seen = self.state();
        if seen & (WAITING | END) != 0 {
            return seen & END == 0;
        }
        let clone = MaybeUninit::new(waker.clone());
        // SAFETY: JOB-4 - WAITING is not set, so the waker is still ours to write.
        self.0.waker.with_mut(|own| unsafe { *own = clone });
        loop {
            // [Q-wait]; relaxed on failure: what was read is judged by `is_over`, which acquires.
            let (success, failure) = (Ordering::Release, Ordering::Relaxed);
            let state = &self.0.state;
            let swapped = state.compare_exchange(seen, seen | WAITING, success, failure);
            match swapped {
                Ok(_) => return true,
                Err(now) if now & END == 0 => seen = now,
                Err(_) => break,
            }
        }
        // SAFETY: JOB-4 - the job was finished without WAITING, so nobody else reads the waker.
        let unused = self
            .0
            .waker
            .with(|own| unsafe { own.cast::<Waker>().read() });
        catch_panic::drop_waker(unused);
        false
    }

    #[inline]
    fn state(&self) -> u64 {
        // [Q-done]
        self.0.state.load(Ordering::Acquire)
    }

    /// Whether the job has come back. To be asked when it is over.
    #[inline]
    pub(super) fn is_returned(&self) -> bool {
        self.state() & END == RETURNED
    }
}

impl fmt::Debug for Awaited<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Awaited")
            .field("is_over", &self.is_over())
            .field("runner", &self.runner())
            .finish()
    }
}
