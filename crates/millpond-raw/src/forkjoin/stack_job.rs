//! A job on the stack of the thread that waits for it.

use super::job::{Awaited, Header, JobRef, Links, Vtable};
use super::local::{Local, with_current};
use crate::catch_panic::{self, Payload};
use crate::sync::{IN_MODEL, UnsafeCell};
use crate::task::current::Carried;
use crate::user_code::{self, Kind};
use core::mem::ManuallyDrop;
use core::ptr::{self, NonNull};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

/// The closure, and after the run its outcome. Both at the address of the union.
#[repr(C)]
union Stage<F, R> {
    closure: ManuallyDrop<F>,
    _outcome: ManuallyDrop<Result<R, Payload>>,
}

/// A job and its closure. It does not drop the closure: the owner takes that out, in every case.
#[repr(C)]
pub(super) struct StackJob<F, R> {
    pub(super) header: Header,
    stage: UnsafeCell<Stage<F, R>>,
}

impl<F, R> StackJob<F, R>
where
    F: FnOnce() -> R + Send,
    R: Send,
{
    const VTABLE: Vtable = Vtable {
        run: Self::run,
        give_back: Self::give_back,
    };

    #[inline]
    pub(super) fn new(closure: F, prev: *const Links) -> Self {
        StackJob {
            header: Header::new(&Self::VTABLE, prev),
            stage: UnsafeCell::new(Stage {
                closure: ManuallyDrop::new(closure),
            }),
        }
    }

    /// The job as a member of the private list: its links are at its own address, and the pointer is good for all of it.
    #[inline]
    pub(super) fn as_links(&self) -> *const Links {
        ptr::from_ref(self).cast()
    }

    /// Takes the closure out.
    ///
    /// # Safety
    ///
    /// JOB-2: it belongs to the caller, who calls this once.
    #[inline]
    pub(super) unsafe fn take_closure(&self) -> F {
        // SAFETY: JOB-2 - as the caller promises.
        self.stage.with(|stage| unsafe { stage.cast::<F>().read() })
    }

    /// Takes the outcome out.
    ///
    /// # Safety
    ///
    /// JOB-1: the caller is the owner, has read DONE, and calls this once.
    pub(super) unsafe fn take_outcome(&self) -> Result<R, Payload> {
        // SAFETY: JOB-1, JOB-3 - as the caller promises: the runner has left, and has written the outcome.
        self.stage
            .with(|stage| unsafe { stage.cast::<Result<R, Payload>>().read() })
    }

    /// # Safety
    ///
    /// JOB-2: the caller consumes the one reference to a job of this type.
    unsafe fn run(header: NonNull<Header>) {
        // SAFETY: JOB-2 - the header is the first field of a job of this type, which the caller may run.
        let job = unsafe { header.cast::<Self>().as_ref() };
        // SAFETY: JOB-2 - the caller consumes the one reference.
        let closure = unsafe { job.take_closure() };
        // JOB-10
        with_current(|here| here.map(Local::give_share_back));
        user_code::check(Kind::Closure);
        let outcome = if IN_MODEL {
            Ok(closure())
        } else {
            catch_unwind(AssertUnwindSafe(closure))
        };
        // SAFETY: JOB-2 - the closure is out, and nobody else uses the stage before DONE.
        job.stage
            .with_mut(|stage| unsafe { stage.cast::<Result<R, Payload>>().write(outcome) });
        Header::finish_done(header);
    }

    /// # Safety
    ///
    /// JOB-2: the caller consumes the one reference to a job of this type.
    unsafe fn give_back(header: NonNull<Header>) {
        Header::finish_returned(header);
    }
}

/// What became of a closure that was [handed over](hand_over).
#[derive(Debug)]
pub enum HandedOver<F, R> {
    /// It has run on another thread.
    Ran(R),
    /// It has come back unrun.
    Returned(F),
}

/// Lets another thread run `f`, which may borrow from the caller: `give` passes the job on, `wait` is called until it is
/// over.
///
/// # Panics
///
/// If `f` does. A panic of `give` or `wait` aborts the process (JOB-8).
///
/// ```
/// use millpond_raw::forkjoin::{HandedOver, hand_over};
///
/// let (grain, (tell, told)) = (vec![3, 4, 5], std::sync::mpsc::channel());
/// let miller = std::thread::spawn(move || told.iter().for_each(|job: millpond_raw::forkjoin::JobRef| job.run()));
/// let give = move |job| tell.send(job).unwrap();
/// let sum = hand_over(|| grain.iter().sum::<u32>(), give, |job| while !job.is_over() { std::thread::yield_now() });
/// assert!(matches!(sum, HandedOver::Ran(12)));
/// miller.join().unwrap();
/// // A job that nobody wants comes back.
/// let back = hand_over(|| grain.len(), drop, |_| ());
/// assert!(matches!(back, HandedOver::Returned(_)));
/// ```
pub fn hand_over<F, R>(
    f: F,
    give: impl FnOnce(JobRef),
    mut wait: impl FnMut(&Awaited<'_>),
) -> HandedOver<F, R>
where
    F: FnOnce() -> R + Send,
    R: Send,
{
    let job = StackJob::new(f, ptr::null());
    let awaited = Awaited(&job.header);
    catch_panic::or_abort("a job waits to be run", || {
        let header = NonNull::from(&job).cast::<Header>();
        // SAFETY: JOB-2 - it was in no list, and this is the one reference; JOB-9 - it is of this frame.
        give(unsafe { JobRef::new(header, Carried::here()) });
        while !awaited.is_over() {
            wait(&awaited);
        }
    });
    if awaited.is_returned() {
        // SAFETY: JOB-2 - RETURNED gives the closure back, once.
        return HandedOver::Returned(unsafe { job.take_closure() });
    }
    // SAFETY: JOB-1 - it is over and was not returned, so it is DONE.
    match unsafe { job.take_outcome() } {
        Ok(value) => HandedOver::Ran(value),
        Err(payload) => resume_unwind(payload),
    }
}

/// Calls a closure that was taken out of its job.
#[inline]
pub(super) fn call<R>(closure: impl FnOnce() -> R) -> R {
    user_code::check(Kind::Closure);
    closure()
}
