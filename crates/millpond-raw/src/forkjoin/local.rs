//! The private list of a worker, `join`, and how a thread finds its own.

use super::job::{Awaited, Header, JobRef, Links};
use super::spawned::SpawnScope;
use super::stack_job::{StackJob, call};
use crate::cache_padded::CachePadded;
use crate::catch_panic;
use crate::sync::atomic::{AtomicU32, Ordering};
use crate::sync::local;
use crate::task::current::Carried;
use core::any::Any;
use core::cell::Cell;
use core::mem::{self, MaybeUninit};
use core::ptr::{self, NonNull};
use core::{fmt, marker};
use std::panic::resume_unwind;

local! {
    static CURRENT: Cell<*const Local<'static>> = Cell::new(ptr::null());
}

/// Whether others want work of a worker: a set of bits, whose meaning is the host's.
///
/// The worker reads it in every join, so it has a cache line of its own that hardly any thread writes.
#[derive(Debug)]
pub struct Demand {
    word: CachePadded<AtomicU32>,
}

impl Demand {
    /// Without any bit.
    pub fn new() -> Self {
        Demand {
            word: CachePadded::new(AtomicU32::new(0)),
        }
    }

    /// The bits.
    #[inline]
    pub fn get(&self) -> u32 {
        // Relaxed: what the bits say is read elsewhere.
        self.word.load(Ordering::Relaxed)
    }

    /// The word, for what its host does beside reading it.
    #[inline]
    pub fn word(&self) -> &AtomicU32 {
        &self.word
    }
}

impl Default for Demand {
    fn default() -> Self {
        Demand::new()
    }
}

/// The engine behind a worker: what happens when a join is not private any more.
pub trait Host: Any {
    /// Itself, for the engine that made it.
    fn as_any(&self) -> &dyn Any;

    /// Others want work: [`Local::publish_oldest`] makes some. Returns how many joins may pass before it is asked again.
    fn on_demand(&self, local: &Local<'_>) -> u32;

    /// The thread is about to run something in another context: publishes all private jobs. What it leaves is taken back
    /// unrun by its owner.
    fn on_context_change(&self, local: &Local<'_>) {
        let _ = local;
    }

    /// Gives a published job back that no other thread has taken.
    fn reclaim(&self, id: usize) -> Option<JobRef>;

    /// Whether the worker may hold the [share](Local::give_share_back) of a scope (JOB-10).
    fn holds_shares(&self) -> bool {
        false
    }

    /// Waits for a job that another thread has taken. It may return early, and is called again then.
    fn wait(&self, local: &Local<'_>, job: &Awaited<'_>);
}

/// The private side of a worker: the jobs that it has forked and that no other thread can see.
pub struct Local<'a> {
    /// The youngest job; the sentinel if there is none.
    tail: Cell<*const Links>,
    demand: &'a Demand,
    /// How many joins may pass before the host is asked again, while there is demand.
    skip: Cell<u32>,
    host: &'a dyn Host,
    /// Whether jobs that end here leave their part of the count of their scope here.
    holds_shares: bool,
    share: Share,
    /// Its `next` is the oldest job.
    sentinel: Links,
    /// Neither `Send` nor `Sync` (JOB-5).
    _own_thread: marker::PhantomData<*const ()>,
}

/// Runs `f` on a worker with this host: joins inside of it fork jobs that others can steal.
///
/// ```
/// use millpond_raw::forkjoin::{self, Awaited, Demand, Host, JobRef, Local};
///
/// /// Never publishes anything.
/// struct Alone;
///
/// impl Host for Alone {
///     fn as_any(&self) -> &dyn std::any::Any { self }
///     fn on_demand(&self, _: &Local<'_>) -> u32 { 0 }
///     fn reclaim(&self, _: usize) -> Option<JobRef> { None }
///     fn wait(&self, _: &Local<'_>, _: &Awaited<'_>) {}
/// }
///
/// fn sum(of: &[u32]) -> u32 {
///     if let [one] = of { return *one; }
///     let (left, right) = of.split_at(of.len() / 2);
///     let (left, right) = forkjoin::with_current(|here| here.unwrap().join(|| sum(left), || sum(right)));
///     left + right
/// }
/// assert_eq!(forkjoin::enter(&Demand::new(), &Alone, || sum(&[3, 4, 5])), 12);
/// assert!(forkjoin::with_current(|here| here.is_none()));
/// ```
pub fn enter<R>(demand: &Demand, host: &impl Host, f: impl FnOnce() -> R) -> R {
    struct Restore(*const Local<'static>);

    impl Drop for Restore {
        fn drop(&mut self) {
            let _ = CURRENT.try_with(|current| current.set(self.0));
        }
    }

    let local = Local {
        tail: Cell::new(ptr::null()),
        demand,
        skip: Cell::new(0),
        host,
        holds_shares: host.holds_shares(),
        share: Share::default(),
        sentinel: Links::new(ptr::null()),
        _own_thread: marker::PhantomData,
    };
    local.tail.set(&raw const local.sentinel);
    // JOB-6: the lifetime is that of this call, and `Restore` ends it.
    let erased = ptr::from_ref(&local).cast::<Local<'static>>();
    let _restore = Restore(CURRENT.with(|current| current.replace(erased)));
    f()
}

/// Calls `f` with the private list of the current thread, if it is a worker.
#[inline]
pub fn with_current<R>(f: impl FnOnce(Option<&Local<'_>>) -> R) -> R {
    let current = CURRENT.try_with(Cell::get).unwrap_or(ptr::null());
    // SAFETY: JOB-6 - null, or borrowed by an `enter` further down this stack, which outlives this call.
    f(unsafe { current.as_ref() })
}

/// Publishes all private jobs of the current thread, which is about to run something in another context (JOB-9).
///
/// ```
/// use millpond_raw::forkjoin;
///
/// forkjoin::publish_private(); // This thread is no worker: it has none.
/// ```
#[inline]
pub fn publish_private() {
    with_current(|here| {
        if let Some(here) = here.filter(|here| !here.is_empty()) {
            here.publish_all();
        }
    });
}

impl Local<'_> {
    /// Runs both closures, `b` perhaps on another thread, and returns both results.
    ///
    /// # Panics
    ///
    /// If one of the closures does, when the other has ended or will never begin. If both do, with the panic of `a`.
    #[inline]
    pub fn join<A, B, RA, RB>(&self, a: A, b: B) -> (RA, RB)
    where
        A: FnOnce() -> RA,
        B: FnOnce() -> RB + Send,
        RB: Send,
    {
        let older = self.tail.get();
        let job = StackJob::new(b, older);
        let links = job.as_links();
        // SAFETY: JOB-5 - the youngest job, or the sentinel, is alive.
        unsafe { (*older).next.set(MaybeUninit::new(links)) };
        self.tail.set(links);
        let unwinding = Unwinding {
            local: self,
            job: &job,
        };
        if self.demand.get() != 0 {
            self.demanded();
        }
        let left = call(a);
        mem::forget(unwinding);
        let right = if self.tail.get() == links {
            self.tail.set(job.header.links.prev.get());
            // SAFETY: JOB-2 - it was in the private list, and is taken out of it here.
            call(unsafe { job.take_closure() })
        } else {
            self.join_slow(&job)
        };
        (left, right)
    }

    /// Gives back what the worker holds of a scope's count (JOB-10). Then the scope may be over.
    ///
    /// ```
    /// millpond_raw::forkjoin::with_current(|here| here.map(|here| here.give_share_back()));
    /// ```
    #[inline]
    pub fn give_share_back(&self) {
        if self.share.units.get() > 0 {
            self.give_share_back_slow();
        }
    }

    #[cold]
    fn give_share_back_slow(&self) {
        let (scope, units) = (self.share.scope.get(), self.share.units.take());
        // SAFETY: JOB-10 - it is not over before this, which is the last use.
        unsafe { (*scope).end(units) };
    }

    /// A job of that scope begins: gives the share of any other scope back.
    #[inline]
    pub(super) fn enter_job_of(&self, scope: *const SpawnScope<'static>) {
        if !ptr::eq(self.share.scope.get(), scope) {
            self.give_share_back();
        }
    }

    /// Keeps what a job that is over was counted for. False if this worker holds no shares.
    #[inline]
    pub(super) fn keep_share(&self, scope: *const SpawnScope<'static>) -> bool {
        if self.holds_shares {
            self.enter_job_of(scope);
            self.share.scope.set(scope);
            self.share.units.set(self.share.units.get() + 1);
        }
        self.holds_shares
    }

    /// Takes the count of one job out of the share. False if there is nothing of this scope.
    #[inline]
    pub(super) fn take_share(&self, scope: *const SpawnScope<'static>) -> bool {
        let units = self.share.units.get();
        let is_there = units > 0 && ptr::eq(self.share.scope.get(), scope);
        if is_there {
            self.share.units.set(units - 1);
        }
        is_there
    }

    /// The engine behind the worker.
    pub fn host(&self) -> &dyn Any {
        self.host.as_any()
    }

    /// Whether no private job is left.
    pub fn is_empty(&self) -> bool {
        ptr::eq(self.tail.get(), &raw const self.sentinel)
    }

    /// Makes the oldest private job one that other threads may run.
    pub fn publish_oldest(&self) -> Option<JobRef> {
        if self.is_empty() {
            return None;
        }
        // SAFETY: JOB-5 - the list is not empty, so the sentinel has a next one.
        let oldest = unsafe { self.sentinel.next.get().assume_init() };
        self.unlink(oldest);
        // All links but the sentinel's are at the address of a job, which begins with a header.
        let header = NonNull::new(oldest.cast_mut().cast::<Header>()).expect("it is alive");
        // SAFETY: JOB-2 - it was in the private list, so no reference to it exists; JOB-9 - it was forked in this frame.
        Some(unsafe { JobRef::new(header, Carried::here()) })
    }

    #[cold]
    #[inline(never)]
    fn publish_all(&self) {
        catch_panic::or_abort("jobs are published", || {
            self.host.on_context_change(self);
            while let Some(job) = self.publish_oldest() {
                drop(job);
            }
        });
    }

    /// Takes a job out of the private list, from anywhere.
    fn unlink(&self, links: *const Links) {
        // SAFETY: JOB-5 - it is in the list, so it is alive.
        let own = unsafe { &*links };
        let prev = own.prev.replace(ptr::null());
        if self.tail.get() == links {
            self.tail.set(prev);
            return;
        }
        // SAFETY: JOB-5 - it is not the youngest, so it has a next one.
        let next = unsafe { own.next.get().assume_init() };
        // SAFETY: JOB-5 - the neighbours of a job in the list are alive.
        unsafe { (*prev).next.set(MaybeUninit::new(next)) };
        // SAFETY: JOB-5 - as above.
        unsafe { (*next).prev.set(prev) };
    }

    #[cold]
    #[inline(never)]
    fn demanded(&self) {
        let skip = self.skip.get();
        if skip > 0 {
            self.skip.set(skip - 1);
            return;
        }
        let skip = catch_panic::or_abort("a job is published", || self.host.on_demand(self));
        self.skip.set(skip);
    }

    /// Lets the host be asked at the next join with demand.
    pub fn reset_skip(&self) {
        self.skip.set(0);
    }

    #[cold]
    #[inline(never)]
    fn join_slow<B, RB>(&self, job: &StackJob<B, RB>) -> RB
    where
        B: FnOnce() -> RB + Send,
        RB: Send,
    {
        if self.wait_or_take_back(&job.header) {
            // SAFETY: JOB-2 - it has come back.
            return call(unsafe { job.take_closure() });
        }
        // SAFETY: JOB-1 - it is over and has not come back, so it is DONE.
        match unsafe { job.take_outcome() } {
            Ok(value) => value,
            Err(payload) => resume_unwind(payload),
        }
    }

    /// Waits for a job, wherever it is. Returns whether it has come back unrun.
    fn wait_or_take_back(&self, header: &Header) -> bool {
        if !header.links.prev.get().is_null() {
            // Still private, and not the youngest: frames of this thread did not end in order, as with coroutines.
            self.unlink(ptr::from_ref(header).cast());
            return true;
        }
        catch_panic::or_abort("a join waits for its job", || {
            let awaited = Awaited(header);
            if let Some(job) = self.host.reclaim(awaited.id()) {
                if job.id() == awaited.id() {
                    let _ = job.into_header();
                    return true;
                }
                drop(job);
            }
            while !awaited.is_over() {
                self.host.wait(self, &awaited);
            }
            awaited.is_returned()
        })
    }
}

impl Drop for Local<'_> {
    fn drop(&mut self) {
        self.give_share_back();
    }
}

/// What a worker holds of the count of a scope, and no job stands for (JOB-10).
struct Share {
    scope: Cell<*const SpawnScope<'static>>,
    /// 0 if it holds nothing.
    units: Cell<u64>,
}

impl Default for Share {
    fn default() -> Self {
        Share {
            scope: Cell::new(ptr::null()),
            units: Cell::new(0),
        }
    }
}

impl fmt::Debug for Local<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Local")
            .field("is_empty", &self.is_empty())
            .finish_non_exhaustive()
    }
}

/// The first closure of a join unwinds: its job is taken back unrun, or waited for (JOB-1).
struct Unwinding<'a, B, RB>
where
    B: FnOnce() -> RB + Send,
    RB: Send,
{
    local: &'a Local<'a>,
    job: &'a StackJob<B, RB>,
}

impl<B, RB> Drop for Unwinding<'_, B, RB>
where
    B: FnOnce() -> RB + Send,
    RB: Send,
{
    #[cold]
    fn drop(&mut self) {
        if self.local.wait_or_take_back(&self.job.header) {
            // SAFETY: JOB-2 - it has come back.
            catch_panic::drop(unsafe { self.job.take_closure() });
        } else {
            // SAFETY: JOB-1 - it is over and has not come back, so it is DONE.
            catch_panic::drop(unsafe { self.job.take_outcome() });
        }
    }
}

#[cfg(all(test, not(any(millpond_loom, millpond_shuttle))))]
mod tests {
    use super::*;

    struct Nobody;

    impl Host for Nobody {
        fn as_any(&self) -> &dyn Any {
            self
        }

        fn on_demand(&self, _: &Local<'_>) -> u32 {
            unreachable!("there is no demand")
        }

        fn reclaim(&self, _: usize) -> Option<JobRef> {
            None
        }

        fn wait(&self, _: &Local<'_>, _: &Awaited<'_>) {
            unreachable!("nothing is published")
        }
    }

    #[test]
    fn frames_that_do_not_end_in_order_leave_the_list_whole() {
        // What coroutines on one thread can do: of three jobs the middle one is taken out first, then the oldest.
        enter(&Demand::new(), &Nobody, || {
            with_current(|here| {
                let here = here.expect("it has entered");
                let mut jobs = Vec::new();
                for _ in 0..3 {
                    let older = here.tail.get();
                    let job = Box::new(StackJob::new(|| (), older));
                    let links = job.as_links();
                    // SAFETY: JOB-5 - the youngest job, or the sentinel, is alive.
                    unsafe { (*older).next.set(MaybeUninit::new(links)) };
                    here.tail.set(links);
                    jobs.push(job);
                }
                for (index, left) in [(1, 2), (0, 1), (2, 0)] {
                    assert!(here.wait_or_take_back(&jobs[index].header));
                    let mut seen = 0;
                    let mut each = here.tail.get();
                    while !ptr::eq(each, &raw const here.sentinel) {
                        seen += 1;
                        // SAFETY: JOB-5 - it is in the list.
                        each = unsafe { (*each).prev.get() };
                    }
                    assert_eq!(seen, left);
                }
                assert!(here.is_empty() && here.publish_oldest().is_none());
            });
        });
    }
}
