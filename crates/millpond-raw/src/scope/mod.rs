//! Scopes: closures that borrow, given to executors that may do anything with them.
//!
//! An executor takes `'static` tasks, and what it makes of them is its own affair: it runs them late
//! or never, hands them back, leaks them. So a closure that borrows is not given to it. It stays in
//! a *slot* of its scope, and what the executor gets is a *stub*: a reference to the slot that runs
//! the closure if it is still there.
//!
//! ```text
//!   owner's stack                        heap                             anywhere, for ever
//!   +-----------+   roster   +-------------------------------+
//!   |  Scope    |----------->| Slot: state | closure/outcome |<---------- Stub, in a task
//!   +-----------+            +-------------------------------+
//!                                  ^ Job<'scope, T>, the handle
//! ```
//!
//! Whoever *claims* the slot owns the closure: a runner of the stub, a canceller, or who waits for
//! the job and runs it in place. The scope does not end before every slot is empty: what nobody
//! has claimed is claimed, what runs is waited for, and outcomes that nobody took are dropped. A stub
//! that comes later finds an empty slot.
//!
//! # Why not the task cell
//!
//! The outcome in a task cell belongs to its one handle, until the last reference is gone. Here the
//! scope must be able to take it away, because the last reference may be a stub that is never
//! dropped.
//!
//! # What it costs
//!
//! One allocation for each job, and one for the scope. The roster grows to the number of jobs that
//! are there at a time.
//!
//! # Invariants
//!
//! The bits of the state word are explained in [`state`].
//!
//! - **J1** A slot is on the roster from before its lifetime is forgotten until it is *over*: until
//!   nothing is in its stage and nothing of the job runs. Slots get on the roster only while
//!   [`Scope::enter`] runs, and that does not return before the roster is empty and closed, in one
//!   step under its lock. `enter` and [`Scope::job`] both borrow the scope for `'scope`, and
//!   [`Scope`] is invariant in it: so all that a closure of `'scope` borrows lives while `enter` runs.
//! - **J2** The closure is in the stage until CLAIMED is set, and belongs to whoever set it.
//! - **J3** From CLAIMED to ENDED the stage belongs to the claimer alone. Whoever claims sets ENDED,
//!   when the closure is gone and the outcome is in the stage or gone, and touches nothing that the
//!   job borrows after that.
//! - **J4** With ENDED and without TAKEN the stage holds the outcome: a payload if PANICKED, else a
//!   value. It belongs to whoever sets TAKEN. An outcome that is CANCELLED or ORPHAN before it is
//!   published is the claimer's.
//! - **J5** Whoever takes something out of a slot after ENDED, or has taken it out when it sets ENDED,
//!   has what that borrows in its own type, or borrows the scope for `'scope`. So nobody needs to
//!   wait for it: the compiler does.
//! - **J6** A waiter is in `waits` before WAITER is announced, under the lock of `waits`; and whatever
//!   changes the state reads WAITER in that very step. Both touch one word, so one of them is
//!   first: the waiter sees the change, or the change sees the waiter.
//! - **J7** No panic lets `enter` return before the roster is closed. That of its closure is caught.
//!   Destructors of users' values that go with a slot (meta, wakers, outcomes) are called quietly.
//!   A [`Block`](park::Block) that panics is caught, and from then on the thread is parked without it;
//!   its panic comes out of `enter` at the end. Whatever else unwinds from the wait ends the process.
//!
//! # Orderings
//!
//! - `[J-out]` Ending a job releases its outcome and all that its body did to what it borrows;
//!   whoever reads that it has ended acquires that.

mod core;
mod job;
#[cfg(all(test, not(any(millpond_loom, millpond_shuttle))))]
mod panics;
mod roster;
mod slot;
pub mod state;
#[cfg(all(test, not(any(millpond_loom, millpond_shuttle))))]
mod tests;

pub use job::{Fresh, Job, JobRef, Remote, Stub};
pub use slot::Claimed;
pub use state::{Cancelled, Reading};

use self::core::Core;
use crate::park::{self, Site, Strand};
use crate::quiet::{self, Payload};
use crate::sync::IN_MODEL;
use crate::task::Panic;
use crate::user_code::{self, Kind};
use crate::waits::{Ticket, Waits};
use slot::{Erased, Slot};
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
    remote: Remote<M>,
    /// Invariant (J1): a scope of `'scope` is no scope of anything shorter.
    _lifetime: PhantomData<&'scope mut &'scope ()>,
}

impl<M: Send + 'static> Scope<'_, M> {
    /// A scope that nobody has entered.
    pub fn new() -> Self {
        Scope {
            remote: Remote(Arc::new(Core::new())),
            _lifetime: PhantomData,
        }
    }
}

impl<'scope, M: Send + 'static> Scope<'scope, M> {
    /// Runs `f`, in which jobs can be made, and waits until all of them are over, also if it
    /// panics. What has not started by then is dropped; whoever wants it to run sees to that in `f`.
    ///
    /// # Panics
    ///
    /// If `f` does, if the [`Block`](park::Block) of this thread does (at the end, when all jobs are
    /// over), or if it was called before.
    pub fn enter<R>(&'scope self, f: impl FnOnce() -> R) -> R {
        assert!(self.core().open(), "a scope can be entered once");
        user_code::check(Kind::Closure);
        let returned = catch_unwind(AssertUnwindSafe(f));
        let waited = quiet::or_abort("a scope waits for its jobs", || self.end());
        match (returned, waited) {
            (Ok(value), Ok(())) => value,
            (Ok(value), Err(payload)) => {
                quiet::drop(value);
                resume_unwind(payload)
            }
            (Err(payload), waited) => {
                quiet::drop(waited);
                resume_unwind(payload)
            }
        }
    }

    /// J1: waits until all jobs are over, and lets no other come. Returns the panic of the thread's
    /// block if that could not wait (J7).
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
                        self.wait_as(&park::of_thread(), &job, u64::MAX, site);
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
    /// The closure, if the scope has not been entered, is over, or has been
    /// [stopped](Remote::stop).
    pub fn job<F, T>(&'scope self, f: F) -> Result<Fresh<F, T, M>, Refused<F>>
    where
        F: FnOnce() -> T + Send + 'scope,
        T: Send + 'scope,
    {
        let slot = Arc::new(Slot::new(Arc::clone(self.core()), f));
        // SAFETY: J1 - `link` puts it on the roster, or it is taken apart here, in both cases
        // before anybody else gets hold of it; and `F` and `T` are of `'scope`.
        let job = unsafe { Erased::new(Arc::clone(&slot)) };
        if self.core().link(&job) {
            return Ok(Fresh::new(slot, job));
        }
        let closure = slot.reclaim();
        Err(Refused(closure.expect("nobody else has seen it")))
    }

    /// The scope as anybody may see it.
    pub fn remote(&self) -> &Remote<M> {
        &self.remote
    }

    /// Drops the outcomes of ended jobs that nobody has taken, and keeps the first panic. Returns
    /// whether there were any; dropping them may have made new jobs.
    pub fn sweep(&'scope self) -> bool {
        let mut swept = false;
        while let Some(job) = self.core().find(0, Reading::is_ended) {
            // SAFETY: J5 - we borrow the scope for `'scope`.
            unsafe { job.clear() };
            self.core().remove(job.number());
            swept = true;
        }
        swept
    }

    /// Waits until the job has ended or is a stray, or until more than `seen` jobs have been brought,
    /// or for no reason.
    pub fn wait(&self, job: &JobRef<M>, seen: u64, site: Site) {
        self.wait_as(&park::current(), job, seen, site);
    }

    fn wait_as(&self, here: &Strand, job: &JobRef<M>, seen: u64, site: Site) {
        let waker = here.waker();
        let over = |state: Reading| state.is_ended() || state.is_stray();
        let Some(place) = job.enlist(&waker, over) else {
            return;
        };
        let _place = Listed(job.0.waits(), place);
        let news = self.core().news();
        if let Some(ticket) = news.enlist(&waker, || self.core().no_more_than(seen)) {
            let _ticket = Listed(news, ticket);
            here.park(site);
        }
    }

    /// The first panic that nobody took, once. It is final after [`sweep`](Scope::sweep).
    pub fn take_panic(&self) -> Option<Panic> {
        self.core().take_panic()
    }

    fn core(&self) -> &Arc<Core<M>> {
        &self.remote.0
    }
}

impl<M: Send + 'static> Default for Scope<'_, M> {
    fn default() -> Self {
        Self::new()
    }
}

impl<M> fmt::Debug for Scope<'_, M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Scope").field(&self.remote).finish()
    }
}

/// A closure that a scope would not have.
pub struct Refused<F>(pub F);

impl<F> fmt::Debug for Refused<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Refused").finish_non_exhaustive()
    }
}

/// One who waits, and leaves the list when this drops: also if its park panics.
struct Listed<'a>(&'a Waits, Ticket);

impl Drop for Listed<'_> {
    fn drop(&mut self) {
        self.0.leave(self.1);
    }
}
