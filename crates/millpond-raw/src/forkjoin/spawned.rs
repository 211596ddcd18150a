//! Jobs on the heap, which their owner does not wait for one by one, and the scope that waits for all of them.
//!
//! The state of a scope is one word: twice the number of what is not over (its jobs, and its body), plus [`WAITING`].
//! It is [`NEW`] before the scope is entered, [`ENTERING`] until the token of its frame is there (JOB-9), 0 after its end, and
//! [`WAITING`] alone while the last one wakes the owner; then no job is made.

use super::job::{Header, JobRef, Vtable};
use super::local::{Local, with_current};
use crate::catch_panic::{self, Payload};
use crate::recycle::Recycled;
use crate::sync::atomic::{AtomicPtr, AtomicU64, Ordering};
use crate::sync::{IN_MODEL, Mutex, UnsafeCell};
use crate::task::Token;
use crate::task::current::Carried;
use crate::user_code::{self, Kind};
use core::fmt;
use core::marker::PhantomData;
use core::mem::{ManuallyDrop, MaybeUninit};
use core::ptr::{self, NonNull};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::task::Waker;

/// The owner sleeps, and has left a waker.
const WAITING: u64 = 1;
/// One job, or the body.
const ONE: u64 = 2;

/// The scope has not been entered.
const NEW: u64 = u64::MAX;
/// It has, and is not open yet.
const ENTERING: u64 = NEW - 1;

/// Jobs that may borrow whatever lives for `'scope`, and are all over before it ends.
///
/// ```
/// use millpond_raw::forkjoin::{PendingJobs, SpawnScope};
///
/// let grain = vec![3, 4, 5];
/// let sum = std::sync::Mutex::new(0);
/// let scope = SpawnScope::new();
/// let wait = |pending: &PendingJobs<'_, '_>| while !pending.is_over() { std::thread::yield_now() };
/// scope.enter(
///     || {
///         let job = scope.job(|| *sum.lock().unwrap() += grain.iter().sum::<u32>()).ok().unwrap();
///         std::thread::spawn(|| job.run());
///     },
///     wait,
/// );
/// assert_eq!(*sum.lock().unwrap(), 12);
/// ```
///
/// What lives shorter than the scope cannot be borrowed:
///
/// ```compile_fail,E0373
/// use millpond_raw::forkjoin::SpawnScope;
///
/// let scope = SpawnScope::new();
/// scope.enter(
///     || {
///         let grain = vec![3, 4, 5];
///         drop(scope.job(|| assert_eq!(grain.len(), 3)));
///     },
///     |_| (),
/// );
/// ```
pub struct SpawnScope<'scope> {
    state: AtomicU64,
    waker: UnsafeCell<MaybeUninit<Waker>>,
    /// That of the frame in which it was entered (JOB-9); null outside tasks.
    token: AtomicPtr<Token>,
    /// The first panic of a job.
    panic: Mutex<Option<Payload>>,
    /// Invariant (JOB-7): a scope of `'scope` is no scope of anything shorter.
    _lifetime: PhantomData<&'scope mut &'scope ()>,
}

// SAFETY: JOB-4 - the waker is `Send`, written by the owner and read by the thread that ends the last job; the rest is
// `Sync` by itself.
unsafe impl Sync for SpawnScope<'_> {}

impl<'scope> SpawnScope<'scope> {
    /// A scope that has not been entered.
    pub fn new() -> Self {
        SpawnScope {
            state: AtomicU64::new(NEW),
            waker: UnsafeCell::new(MaybeUninit::uninit()),
            token: AtomicPtr::new(ptr::null_mut()),
            panic: Mutex::new(None),
            _lifetime: PhantomData,
        }
    }

    /// Runs `f`, in which jobs can be made, and then calls `wait` until all of them are over.
    ///
    /// # Panics
    ///
    /// If `f` does, or else if a job did, when all are over; or if it was entered before. A panic of `wait` aborts the
    /// process (JOB-8).
    pub fn enter<R>(
        &'scope self,
        f: impl FnOnce() -> R,
        mut wait: impl FnMut(&PendingJobs<'_, 'scope>),
    ) -> R {
        let claimed = (Ordering::Relaxed, Ordering::Relaxed);
        let is_new = self
            .state
            .compare_exchange(NEW, ENTERING, claimed.0, claimed.1);
        assert!(is_new.is_ok(), "a scope can be entered once");
        let token = Carried::here().token().cast_mut();
        self.token.store(token, Ordering::Relaxed);
        // [Q-frame]
        self.state.store(ONE, Ordering::Release);
        user_code::check(Kind::Closure);
        let returned = if IN_MODEL {
            Ok(f())
        } else {
            catch_unwind(AssertUnwindSafe(f))
        };
        catch_panic::or_abort("a scope waits for its jobs", || {
            self.end(1);
            let pending = PendingJobs {
                scope: self,
                _this_thread: PhantomData,
            };
            loop {
                // JOB-10: a wait may have run jobs of this scope, on whichever worker's thread this is.
                with_current(|here| here.map(Local::give_share_back));
                if pending.is_over() {
                    break;
                }
                wait(&pending);
            }
        });
        let panic = self.panic.lock().take();
        match (returned, panic) {
            (Ok(value), None) => value,
            (Ok(value), Some(payload)) => {
                catch_panic::drop(value);
                resume_unwind(payload)
            }
            (Err(payload), other) => {
                catch_panic::drop(other);
                resume_unwind(payload)
            }
        }
    }

    /// Makes a job of a closure. If the reference is dropped, the closure is dropped unrun.
    ///
    /// # Errors
    ///
    /// The closure, if the scope has not been entered or is over.
    pub fn job<F>(&'scope self, f: F) -> Result<JobRef, F>
    where
        F: FnOnce() + Send + 'scope,
    {
        if !self.begin_one() {
            return Err(f);
        }
        let job = Recycled::new_with(|| SpawnedJob {
            header: Header::new(&SpawnedJob::<F>::VTABLE, ptr::null()),
            scope: self.erased(),
            closure: ManuallyDrop::new(f),
        });
        let job = job.into_raw();
        // SAFETY: JOB-2, JOB-7 - it is new, and it is counted; JOB-9 - it carries the token of the scope's frame.
        Ok(unsafe { JobRef::new(job.cast::<Header>(), self.carried()) })
    }

    /// What a job carries that is made now, while the scope is open. An inline task that spawns may end before the job, so
    /// the job has the token of the scope's frame, not that of the frame that spawns it.
    fn carried(&self) -> Carried {
        // Relaxed: `begin_one` has acquired it.
        let (here, token) = (Carried::here(), self.token.load(Ordering::Relaxed));
        if ptr::eq(here.token(), token) {
            return here;
        }
        // SAFETY: JOB-9 - the scope's owner waits in the frame of this token, for the job that is counted.
        unsafe { Carried::of(token) }
    }

    /// Its address, for what erases its lifetime.
    fn erased(&self) -> *const SpawnScope<'static> {
        ptr::from_ref(self).cast()
    }

    /// Counts one job more, if the scope is open.
    fn begin_one(&self) -> bool {
        // JOB-10: whoever holds a share of it has acquired the token, or has run a job of a thread that had.
        if with_current(|here| here.is_some_and(|here| here.take_share(self.erased()))) {
            return true;
        }
        let mut seen = self.state.load(Ordering::Relaxed);
        while (ONE..ENTERING).contains(&seen) {
            // [Q-frame]
            let (success, failure) = (Ordering::Acquire, Ordering::Relaxed);
            match self
                .state
                .compare_exchange(seen, seen + ONE, success, failure)
            {
                Ok(_) => return true,
                Err(now) => seen = now,
            }
        }
        false
    }

    /// So many jobs, or the body, are over. The scope may be gone afterwards.
    pub(super) fn end(&self, units: u64) {
        let all = units * ONE;
        // [Q-wait] [Q-scope]
        let mut seen = self.state.load(Ordering::Acquire);
        loop {
            // The last one with a waiter closes the scope before it reads the waker: from then on no job begins.
            let is_last = seen == all | WAITING;
            let next = if is_last { WAITING } else { seen - all };
            // [Q-scope] [Q-wait]
            let (success, failure) = (Ordering::Release, Ordering::Acquire);
            match self.state.compare_exchange(seen, next, success, failure) {
                Ok(_) if is_last => break,
                Ok(_) => return,
                Err(now) => seen = now,
            }
        }
        // SAFETY: JOB-4 - WAITING is set, and we are the last, so the waker is there and ours.
        let waker = self
            .waker
            .with(|waker| unsafe { waker.cast::<Waker>().read() });
        // [Q-scope] unmodelled: the wake that follows orders the same in every model
        self.state.store(0, Ordering::Release);
        waker.wake();
    }

    fn keep_panic(&self, payload: Payload) {
        let mut first = self.panic.lock();
        if first.is_none() {
            *first = Some(payload);
        } else {
            drop(first);
            catch_panic::drop(payload);
        }
    }
}

/// The jobs of a scope whose body is over, for the thread that waits for them (JOB-4). No other thread can have it:
///
/// ```compile_fail,E0277
/// use millpond_raw::forkjoin::PendingJobs;
///
/// fn is_send<T: Send>() {}
/// is_send::<PendingJobs<'_, '_>>();
/// is_send::<&PendingJobs<'_, '_>>();
/// ```
pub struct PendingJobs<'a, 'scope> {
    scope: &'a SpawnScope<'scope>,
    /// Neither `Send` nor `Sync`.
    _this_thread: PhantomData<*const ()>,
}

impl PendingJobs<'_, '_> {
    /// Whether all jobs are over.
    #[inline]
    pub fn is_over(&self) -> bool {
        // [Q-scope]
        self.scope.state.load(Ordering::Acquire) == 0
    }

    /// Lets the end of the last job wake `waker`. False if it is over: then there is nothing to wait for. The first waker
    /// stays.
    pub fn register(&self, waker: &Waker) -> bool {
        // Relaxed, here and at a failure below: what was read is judged by `is_over`, which acquires.
        let mut seen = self.scope.state.load(Ordering::Relaxed);
        if seen == 0 || seen & WAITING != 0 {
            return seen != 0;
        }
        let clone = MaybeUninit::new(waker.clone());
        // SAFETY: JOB-4 - WAITING is not set, so the waker is still the owner's, and this is its thread.
        self.scope.waker.with_mut(|own| unsafe { *own = clone });
        while seen != 0 {
            let next = seen | WAITING;
            // [Q-wait]
            let (success, failure) = (Ordering::Release, Ordering::Relaxed);
            match self
                .scope
                .state
                .compare_exchange(seen, next, success, failure)
            {
                Ok(_) => return true,
                Err(now) => seen = now,
            }
        }
        // SAFETY: JOB-4 - all ended without WAITING, so nobody else reads the waker.
        let unused = self
            .scope
            .waker
            .with(|own| unsafe { own.cast::<Waker>().read() });
        catch_panic::drop_waker(unused);
        false
    }
}

impl fmt::Debug for PendingJobs<'_, '_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("PendingJobs").field(self.scope).finish()
    }
}

impl Default for SpawnScope<'_> {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for SpawnScope<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.state.load(Ordering::Relaxed);
        let pending = if state >= ENTERING { 0 } else { state / ONE };
        f.debug_struct("SpawnScope")
            .field("pending", &pending)
            .finish()
    }
}

#[repr(C)]
struct SpawnedJob<F> {
    header: Header,
    scope: *const SpawnScope<'static>,
    closure: ManuallyDrop<F>,
}

impl<F: FnOnce() + Send> SpawnedJob<F> {
    const VTABLE: Vtable = Vtable {
        run: Self::run,
        give_back: Self::give_back,
    };

    /// Frees the job.
    ///
    /// # Safety
    ///
    /// JOB-2: the caller consumes the one reference to a job of this type.
    unsafe fn take(header: NonNull<Header>) -> (F, *const SpawnScope<'static>) {
        // SAFETY: JOB-2 - as the caller promises, and `SpawnScope::job` has dissolved its box.
        let mut job = unsafe { Recycled::from_raw(header.cast::<Self>()) };
        // SAFETY: JOB-2 - the closure is taken once, and the box does not drop it.
        let closure = unsafe { ManuallyDrop::take(&mut job.closure) };
        (closure, job.scope)
    }

    /// # Safety
    ///
    /// JOB-2: the caller consumes the one reference to a job of this type.
    unsafe fn run(header: NonNull<Header>) {
        // SAFETY: JOB-2 - the caller consumes the one reference.
        let (closure, scope) = unsafe { Self::take(header) };
        // JOB-10
        with_current(|here| here.map(|here| here.enter_job_of(scope)));
        user_code::check(Kind::Closure);
        if IN_MODEL {
            closure();
        } else if let Err(payload) = catch_unwind(AssertUnwindSafe(closure)) {
            // SAFETY: JOB-7 - the scope waits for this job.
            unsafe { &*scope }.keep_panic(payload);
        }
        if !with_current(|here| here.is_some_and(|here| here.keep_share(scope))) {
            // SAFETY: JOB-7 - the scope waits for this job, and this is the last use of it.
            unsafe { (*scope).end(1) };
        }
    }

    /// # Safety
    ///
    /// JOB-2: the caller consumes the one reference to a job of this type.
    unsafe fn give_back(header: NonNull<Header>) {
        // SAFETY: JOB-2 - the caller consumes the one reference.
        let (closure, scope) = unsafe { Self::take(header) };
        catch_panic::drop(closure);
        // SAFETY: JOB-7 - the scope waits for this job, and this is the last use of it.
        unsafe { (*scope).end(1) };
    }
}
