//! The header of a job, its state word, and what others hold of it.
//!
//! ```text
//!   OPEN ---- run ----> DONE          with WAITING if the owner sleeps, and the number of the runner
//!     +----- drop ----> RETURNED
//! ```

use crate::catch_panic;
use crate::sync::UnsafeCell;
use crate::sync::atomic::{AtomicU64, Ordering};
use crate::task::current::Carried;
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
    /// Written when the job is published (JOB-9).
    context: UnsafeCell<MaybeUninit<JobContext>>,
}

/// What goes with a job that another thread runs (JOB-9).
struct JobContext {
    carried: Carried,
    surround: Option<Box<dyn Surround>>,
}

/// What an engine lets a job run inside of, beside the token of the task that has forked it.
pub trait Surround: Send {
    /// Runs `body`, once.
    fn enclose(self: Box<Self>, body: &mut dyn FnMut());
}

impl Header {
    #[inline]
    pub(super) fn new(vtable: &'static Vtable, prev: *const Links) -> Self {
        Header {
            links: Links::new(prev),
            vtable,
            state: AtomicU64::new(OPEN),
            waker: UnsafeCell::new(MaybeUninit::uninit()),
            context: UnsafeCell::new(MaybeUninit::uninit()),
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
// state, the vtable, by JOB-4 the waker, which is `Send`, and by JOB-9 the context: a token, which is `Sync`, and what
// surrounds it, which is `Send`.
unsafe impl Send for JobRef {}

impl JobRef {
    /// # Safety
    ///
    /// JOB-2: this is the only reference to this job, which has left the private list, if it was in one. JOB-9: the token
    /// that it carries outlives the job.
    pub(super) unsafe fn new(header: NonNull<Header>, carried: Carried) -> Self {
        let context = MaybeUninit::new(JobContext {
            carried,
            surround: None,
        });
        // SAFETY: JOB-1 - it is alive.
        let own = unsafe { &header.as_ref().context };
        // SAFETY: JOB-9 - no reference to the job existed, so nobody else uses the context.
        own.with_mut(|own| unsafe { *own = context });
        JobRef(header)
    }

    /// Lets the job run inside of this, on whichever thread. What was set before is replaced.
    pub fn surround(&mut self, surround: Box<dyn Surround>) {
        // SAFETY: JOB-1 - the job is not finished, for we hold its reference.
        let context = unsafe { &self.0.as_ref().context };
        let former = context.with_mut(|context| {
            // SAFETY: JOB-9 - it was written when the reference was made, and is that reference's.
            let context = unsafe { &mut *context.cast::<JobContext>() };
            context.surround.replace(surround)
        });
        catch_panic::drop(former);
    }

    /// Whether it runs inside of anything that was [set](JobRef::surround).
    pub fn is_surrounded(&self) -> bool {
        // SAFETY: JOB-1 - the job is not finished, for we hold its reference.
        let context = unsafe { &self.0.as_ref().context };
        context.with(|context| {
            // SAFETY: JOB-9 - it was written when the reference was made, and is that reference's.
            unsafe { &*context.cast::<JobContext>() }.surround.is_some()
        })
    }

    /// Takes the context out.
    ///
    /// # Safety
    ///
    /// JOB-9: the caller consumes the one reference, and calls this once.
    unsafe fn take_context(header: NonNull<Header>) -> JobContext {
        // SAFETY: JOB-1 - the job is alive.
        let context = unsafe { &header.as_ref().context };
        // SAFETY: JOB-9 - as the caller promises.
        context.with(|context| unsafe { context.cast::<JobContext>().read() })
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
        // SAFETY: JOB-9 - the reference is consumed here.
        let JobContext { carried, surround } = unsafe { JobRef::take_context(header) };
        // SAFETY: JOB-2 - it is ours to run.
        let run = || unsafe { (vtable.run)(header) };
        // SAFETY: JOB-9 - the token outlives the job, and no code of a user's runs inside after its end.
        let run = || unsafe { carried.enter(run) };
        let Some(surround) = surround else {
            return run();
        };
        let mut run = Some(run);
        catch_panic::call(|| {
            surround.enclose(&mut || run.take().into_iter().for_each(|run| run()))
        });
        if let Some(run) = run {
            run();
        }
    }

    /// Forgets this reference, which has come back to the owner of the job.
    pub(super) fn into_header(self) -> NonNull<Header> {
        let header = ManuallyDrop::new(self).0;
        // SAFETY: JOB-9 - the reference is consumed here.
        catch_panic::drop(unsafe { JobRef::take_context(header) }.surround);
        header
    }
}

impl Drop for JobRef {
    fn drop(&mut self) {
        // SAFETY: JOB-1 - the job is alive.
        let vtable = unsafe { self.0.as_ref() }.vtable;
        // SAFETY: JOB-9 - the reference is consumed here.
        catch_panic::drop(unsafe { JobRef::take_context(self.0) }.surround);
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
