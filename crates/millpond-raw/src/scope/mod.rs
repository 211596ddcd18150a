//! Scopes: closures that borrow, given to executors that may do anything with them.
//!
//! An executor takes `'static` tasks, and may run them late or never, hand them back, or leak them. So a
//! closure that borrows is not given to it. The closure stays in a *slot* of its scope, and the executor gets
//! a *stub*: a reference to the slot that runs the closure if it is still there.
//!
//! ```text
//!   owner's stack                        heap                             anywhere, forever
//!   +-----------+  job list  +-------------------------------+
//!   |  Scope    |----------->| Slot: state | closure/outcome |<---------- Stub, in a task
//!   +-----------+            +-------------------------------+
//!                                  ^ Job<'scope, T>, the handle
//! ```
//!
//! A thread that *claims* the slot owns the closure: one that runs the stub, one that cancels the job, or one
//! that waits for the job and runs it inline. The scope does not end before every slot is empty: it claims
//! what is unclaimed, waits for what runs, and drops the outcomes that no handle took. A stub that is used
//! later finds an empty slot.
//!
//! | file | what |
//! |---|---|
//! | `core` | the shared state of a scope, which outlives it |
//! | `job_list` | the jobs that are not over |
//! | `slot` | closure and outcome of one job |
//! | `state` | the state word of a slot |
//! | `job` | what maker, executor, handle and everything else hold of a job |
//!
//! # Why not the task cell
//!
//! The outcome in a task cell belongs to its one handle until the last reference is gone. Here the scope must
//! be able to take the outcome away, because the last reference may be a stub that is never dropped.
//!
//! # Costs
//!
//! One allocation per job, and one per scope. The job list grows to the number of jobs that are there at a
//! time.
//!
//! # Invariants
//!
//! The bits of the state word are explained in [`state`].
//!
//! - **SCOPE-1** A slot is on the job list from before its lifetime is erased until it is *over*: nothing is
//!   in its stage and nothing of the job runs. Slots are added only while [`Scope::enter`] runs, and `enter`
//!   does not return before the list is found empty and closed, in one step under its lock. `enter` and
//!   [`Scope::job`] both borrow the scope for `'scope`, and [`Scope`] is invariant in it: so all that a
//!   closure of `'scope` borrows lives while `enter` runs.
//! - **SCOPE-2** The closure is in the stage until CLAIMED is set, and belongs to the thread that set it.
//! - **SCOPE-3** From CLAIMED to ENDED the stage belongs to the claimer alone. The claimer sets ENDED when
//!   the closure is gone and the outcome is in the stage or gone, and touches nothing that the job borrows
//!   after that.
//! - **SCOPE-4** With ENDED and without TAKEN the stage holds the outcome: a payload if PANICKED, else a
//!   value. It belongs to the thread that sets TAKEN. An outcome that is CANCELLED or DETACHED before it is
//!   published belongs to the claimer.
//! - **SCOPE-5** A thread that takes something out of a slot after ENDED, or has taken it out when it sets
//!   ENDED, has the borrows in its own type, or borrows the scope for `'scope`. So the scope need not wait
//!   for it: the compiler does.
//! - **SCOPE-6** A waiter is in `waiters` before WAITER is announced, under the lock of `waiters`; and every
//!   change of the state reads WAITER in the same atomic step. Both steps modify one word, so one is first:
//!   the waiter sees the change, or the change sees the waiter.
//! - **SCOPE-7** No panic lets `enter` return before the job list is closed. A panic of its closure is
//!   caught. Destructors of users' values that go with a slot (metadata, wakers, outcomes) run inside
//!   [`catch_panic`]. A panic of a [`Block`](park::Block) is caught, from then on the thread parks without that
//!   block, and the panic is resumed when `enter` ends. Any other panic during the wait aborts the process.
//!
//! # Orderings
//!
//! - `[J-out]` Ending a job releases its outcome and everything that its body did to borrowed data. A thread that
//!   reads ENDED acquires that.

mod core;
mod job;
mod job_list;
#[cfg(all(test, not(any(millpond_loom, millpond_shuttle))))]
mod panics;
mod slot;
pub mod state;
#[cfg(all(test, not(any(millpond_loom, millpond_shuttle))))]
mod tests;

pub use job::{Job, JobRef, NewJob, ScopeRef, Stub};
pub use slot::Claimed;
pub use state::{CancelResult, JobState};

use self::core::Core;
use crate::catch_panic::{self, Payload};
use crate::park::{self, Site, Strand};
use crate::sync::IN_MODEL;
use crate::task::Panic;
use crate::user_code::{self, Kind};
use crate::wait_queue::{Ticket, WaitQueue};
use slot::{Slot, SlotRef};
use std::fmt;
use std::marker::PhantomData;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;

/// Jobs that may borrow whatever lives for `'scope`, and that all end before it does.
///
/// ```
/// use millpond_raw::scope::Scope;
/// use millpond_raw::task::Outcome;
///
/// let grain = vec![3, 4, 5];
/// let scope = Scope::<()>::new();
/// let stub = scope.enter(|| {
///     let sum = scope.job(|| grain.iter().sum::<u32>()).unwrap();
///     let (first, second) = (sum.stub(), sum.stub());
///     let sum = sum.handle();
///     std::thread::spawn(move || first.claim().map(|claimed| claimed.run(&|| ())))
///         .join()
///         .unwrap();
///     assert!(matches!(sum.take(), Some(Outcome::Completed(12))));
///     second
/// });
/// // The stub is still there. The closure is not.
/// assert!(stub.claim().is_none());
/// ```
///
/// What lives shorter than the scope cannot be borrowed:
///
/// ```compile_fail,E0373
/// use millpond_raw::scope::Scope;
///
/// let scope = Scope::<()>::new();
/// scope.enter(|| {
///     let grain = vec![3, 4, 5];
///     scope.job(|| grain.len()).unwrap().detach();
/// });
/// ```
///
/// And no scope passes for a shorter one:
///
/// ```compile_fail
/// use millpond_raw::scope::Scope;
///
/// fn shorter<'short, 'scope: 'short>(
///     scope: &'short Scope<'scope, ()>,
/// ) -> &'short Scope<'short, ()> {
///     scope
/// }
/// ```
pub struct Scope<'scope, M> {
    scope_ref: ScopeRef<M>,
    /// Invariant (SCOPE-1): a scope of `'scope` is no scope of anything shorter.
    _lifetime: PhantomData<&'scope mut &'scope ()>,
}

impl<M: Send + 'static> Scope<'_, M> {
    /// A scope that has not been entered.
    pub fn new() -> Self {
        Scope {
            scope_ref: ScopeRef(Arc::new(Core::new())),
            _lifetime: PhantomData,
        }
    }
}

impl<'scope, M: Send + 'static> Scope<'scope, M> {
    /// Runs `f`, in which jobs can be made, and waits until all of them are over, also if `f` panics. Jobs
    /// that have not started by then are dropped unrun.
    ///
    /// # Panics
    ///
    /// If `f` does, if the [`Block`](park::Block) of this thread does (resumed when all jobs are over), or if
    /// it was called before.
    pub fn enter<R>(&'scope self, f: impl FnOnce() -> R) -> R {
        assert!(self.core().open(), "a scope can be entered once");
        user_code::check(Kind::Closure);
        let returned = catch_unwind(AssertUnwindSafe(f));
        let waited = catch_panic::or_abort("a scope waits for its jobs", || self.end());
        match (returned, waited) {
            (Ok(value), Ok(())) => value,
            (Ok(value), Err(payload)) => {
                catch_panic::drop(value);
                resume_unwind(payload)
            }
            (Err(payload), waited) => {
                catch_panic::drop(waited);
                resume_unwind(payload)
            }
        }
    }

    /// SCOPE-1: waits until all jobs are over, and closes the list. Returns the panic of the thread's block,
    /// if that panicked (SCOPE-7).
    fn end(&'scope self) -> Result<(), Payload> {
        let site = Site::new("scope.end").on(&**self.core());
        let mut waited = Ok(());
        let mut seen = 0;
        loop {
            while let Some(job) = self.core().find(seen, |state| !state.is_ended()) {
                let job = JobRef(job);
                drop(job.claim());
                while !job.state().is_ended() {
                    if waited.is_err() {
                        self.wait_as(&park::bare_thread(), &job, u64::MAX, site);
                    } else if IN_MODEL {
                        self.wait(&job, u64::MAX, site);
                    } else {
                        let wait = || self.wait(&job, u64::MAX, site);
                        user_code::check(Kind::Wait);
                        waited = catch_unwind(AssertUnwindSafe(wait));
                    }
                }
                seen = job.number() + 1;
            }
            self.sweep();
            if self.core().close() {
                return waited;
            }
        }
    }

    /// Makes a job of a closure.
    ///
    /// # Errors
    ///
    /// The closure, if the scope has not been entered, is over, or has been [stopped](ScopeRef::stop).
    pub fn job<F, T>(&'scope self, f: F) -> Result<NewJob<F, T, M>, ScopeClosed<F>>
    where
        F: FnOnce() -> T + Send + 'scope,
        T: Send + 'scope,
    {
        let slot = Arc::new(Slot::new(Arc::clone(self.core()), f));
        // SAFETY: SCOPE-1 - `add` lists it, or it is emptied here, in both cases before it is shared; and `F`
        // and `T` are of `'scope`.
        let job = unsafe { SlotRef::new(Arc::clone(&slot)) };
        if self.core().add(&job) {
            return Ok(NewJob::new(slot, job));
        }
        let closure = slot.reclaim();
        Err(ScopeClosed(closure.expect("it was never shared")))
    }

    /// A reference to the scope.
    pub fn scope_ref(&self) -> &ScopeRef<M> {
        &self.scope_ref
    }

    /// Drops the outcomes of ended jobs that no handle has taken, and keeps the first panic. Returns whether
    /// there were any; dropping them may have made new jobs.
    pub fn sweep(&'scope self) -> bool {
        let mut swept = false;
        while let Some(job) = self.core().find(0, JobState::is_ended) {
            // SAFETY: SCOPE-5 - we borrow the scope for `'scope`.
            unsafe { job.clear() };
            self.core().remove(job.number());
            swept = true;
        }
        swept
    }

    /// Waits until the job has ended, its stub was dropped, or more than `seen` jobs have been published. May
    /// return spuriously.
    pub fn wait(&self, job: &JobRef<M>, seen: u64, site: Site) {
        self.wait_as(&park::current(), job, seen, site);
    }

    fn wait_as(&self, here: &Strand, job: &JobRef<M>, seen: u64, site: Site) {
        let waker = here.waker();
        let over = |state: JobState| state.is_ended() || state.is_stub_dropped();
        let Some(ticket) = job.register(&waker, over) else {
            return;
        };
        let _in_job = Registered(job.0.waiters(), ticket);
        let new_jobs = self.core().new_jobs();
        if let Some(ticket) = new_jobs.register(&waker, || self.core().announce_sleep(seen)) {
            let _in_scope = Registered(new_jobs, ticket);
            here.park(site);
        }
    }

    /// Takes the first panic that no handle took. It is final after [`sweep`](Scope::sweep).
    pub fn take_panic(&self) -> Option<Panic> {
        self.core().take_panic()
    }

    fn core(&self) -> &Arc<Core<M>> {
        &self.scope_ref.0
    }
}

impl<M: Send + 'static> Default for Scope<'_, M> {
    fn default() -> Self {
        Self::new()
    }
}

impl<M> fmt::Debug for Scope<'_, M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Scope").field(&self.scope_ref).finish()
    }
}

/// A closure rejected by a scope that is not open.
pub struct ScopeClosed<F>(pub F);

impl<F> fmt::Debug for ScopeClosed<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ScopeClosed").finish_non_exhaustive()
    }
}

/// A registered waker, unregistered on drop: also if the park panics.
struct Registered<'a>(&'a WaitQueue, Ticket);

impl Drop for Registered<'_> {
    fn drop(&mut self) {
        self.0.unregister(self.1);
    }
}
