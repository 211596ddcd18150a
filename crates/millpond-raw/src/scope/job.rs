//! The views of a job: its maker has a [`NewJob`], its executor a [`Stub`], its handle is a [`Job`], and
//! everything else has a [`JobRef`].

use super::Core;
use super::slot::{Claimed, Slot, SlotRef, TakeOutcome};
use super::state::{CancelResult, JobState};
use crate::task::{CancelReason, Outcome};
use crate::wait_queue::Ticket;
use core::fmt;
use std::sync::Arc;
use std::task::Waker;

/// A reference to a job without its types and borrows. It may outlive the scope.
pub struct JobRef<M>(pub(super) SlotRef<M>);

impl<M> JobRef<M> {
    /// Its number among the jobs of its scope, from 0.
    pub fn number(&self) -> u64 {
        self.0.number()
    }

    /// Its state.
    pub fn state(&self) -> JobState {
        self.0.state().read()
    }

    /// The scope that it belongs to.
    pub fn scope_ref(&self) -> ScopeRef<M> {
        ScopeRef(Arc::clone(self.0.core()))
    }

    /// Claims the closure; `None` if it has been claimed.
    pub fn claim(&self) -> Option<Claimed<M>> {
        self.0.claim()
    }

    /// Cancels the job. If it has not started it never will, and its closure is dropped before this returns.
    /// If it runs, its outcome will be dropped.
    pub fn cancel(&self, reason: CancelReason) -> CancelResult {
        self.0.cancel(reason)
    }

    /// Registers `waker` to be woken when the job changes; `None` if `over` is already true of it. It is
    /// woken at least when the job is finished, when it has ended, and when its stub is dropped. A waiter
    /// that gives up must [`unregister`](JobRef::unregister).
    pub fn register(&self, waker: &Waker, over: fn(JobState) -> bool) -> Option<Ticket> {
        self.0.register(waker, over)
    }

    /// Replaces the registered waker; false if it has been woken already.
    pub fn update_waker(&self, ticket: Ticket, waker: &Waker) -> bool {
        self.0.waiters().update_waker(ticket, waker)
    }

    /// Undoes [`register`](JobRef::register).
    pub fn unregister(&self, ticket: Ticket) {
        self.0.waiters().unregister(ticket);
    }
}

impl<M: Clone> JobRef<M> {
    /// The metadata of the job, once it has been published.
    pub fn meta(&self) -> Option<M> {
        self.0.meta().lock().clone()
    }
}

impl<M> Clone for JobRef<M> {
    fn clone(&self) -> Self {
        JobRef(self.0.clone())
    }
}

impl<M> PartialEq for JobRef<M> {
    fn eq(&self, other: &Self) -> bool {
        self.0.is(&other.0)
    }
}

impl<M> Eq for JobRef<M> {}

impl<M> fmt::Debug for JobRef<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("JobRef")
            .field("number", &self.number())
            .field("state", &self.state())
            .finish()
    }
}

/// A reference to a scope without its lifetime. It may outlive the scope.
pub struct ScopeRef<M>(pub(super) Arc<Core<M>>);

impl<M> ScopeRef<M> {
    /// The first unfinished job with this number or a higher one of which `wanted` is true. An ended job is
    /// listed as long as its outcome is there.
    pub fn find(&self, from: u64, wanted: fn(JobState) -> bool) -> Option<JobRef<M>> {
        self.0.find(from, wanted).map(JobRef)
    }

    /// Rejects all further jobs.
    pub fn stop(&self) {
        self.0.stop();
    }

    /// Whether it has been stopped.
    pub fn is_stopped(&self) -> bool {
        self.0.is_stopped()
    }

    /// How many jobs have been [published](NewJob::publish).
    pub fn published(&self) -> u64 {
        self.0.published()
    }

    /// How many jobs are listed.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether no job is listed.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether both refer to the same scope.
    pub fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// A number that no other scope has while this value lives.
    pub fn id(&self) -> usize {
        Arc::as_ptr(&self.0).addr()
    }
}

impl<M> Clone for ScopeRef<M> {
    fn clone(&self) -> Self {
        ScopeRef(Arc::clone(&self.0))
    }
}

impl<M> fmt::Debug for ScopeRef<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ScopeRef")
            .field("jobs", &self.len())
            .field("stopped", &self.is_stopped())
            .finish()
    }
}

/// What an executor gets in place of a job. It may be kept, lost or used at any time: it runs the job if its
/// closure is still there.
///
/// Dropping it unused leaves the job to the threads that wait for it.
#[must_use = "dropping a stub leaves its job to the threads that wait for it"]
pub struct Stub<M>(Option<JobRef<M>>);

impl<M> Stub<M> {
    /// The job.
    pub fn job(&self) -> &JobRef<M> {
        self.0
            .as_ref()
            .expect("only methods that take `self` empty it")
    }

    /// Claims the closure; `None` if it has been claimed.
    pub fn claim(mut self) -> Option<Claimed<M>> {
        self.0.take().and_then(|job| job.claim())
    }
}

impl<M> Drop for Stub<M> {
    fn drop(&mut self) {
        if let Some(job) = &self.0 {
            job.0.mark_stub_dropped();
        }
    }
}

impl<M> fmt::Debug for Stub<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Stub").field(&self.0).finish()
    }
}

/// A new job. Dropping it cancels the job; its maker takes a [handle](NewJob::handle) or
/// [detaches](NewJob::detach) it.
#[must_use = "dropping it cancels the job"]
pub struct NewJob<F, T, M> {
    /// `None` only while `self` is being consumed.
    slot: Option<Arc<Slot<F, T, M>>>,
    job: JobRef<M>,
}

impl<F, T, M> NewJob<F, T, M> {
    pub(super) fn new(slot: Arc<Slot<F, T, M>>, job: SlotRef<M>) -> Self {
        NewJob {
            slot: Some(slot),
            job: JobRef(job),
        }
    }

    /// A reference to the job.
    pub fn job(&self) -> &JobRef<M> {
        &self.job
    }

    /// A stub for the executor. One is enough.
    pub fn stub(&self) -> Stub<M> {
        Stub(Some(self.job.clone()))
    }

    /// Publishes the job with its metadata: from now on a waiting thread may run it.
    pub fn publish(&self, meta: M) {
        let before = self.job.0.meta().lock().replace(meta);
        drop(before);
        self.job.0.core().publish(&self.job.0);
    }

    /// Takes the closure back out of a job that has not started, which ends the job.
    ///
    /// # Errors
    ///
    /// The job, if it was started or cancelled.
    pub fn reclaim(mut self) -> Result<F, Self> {
        match self.slot.as_ref().and_then(|slot| slot.reclaim()) {
            Some(closure) => {
                self.slot = None;
                Ok(closure)
            }
            None => Err(self),
        }
    }
}

impl<F: Send, T: Send, M: Send> NewJob<F, T, M> {
    /// Gives up the outcome: a value is dropped, and a panic goes to the scope.
    pub fn detach(mut self) {
        let job = &self.job.0;
        if let (Some(slot), true) = (self.slot.take(), job.state().detach()) {
            dispose(&*slot, job.core());
        }
    }

    /// The handle of the job.
    pub fn handle<'scope>(mut self) -> Job<'scope, T, M>
    where
        F: 'scope,
        T: 'scope,
        M: 'scope,
    {
        let slot = self
            .slot
            .take()
            .expect("only methods that take `self` empty it");
        Job {
            job: self.job.clone(),
            outcome: slot,
        }
    }
}

impl<F, T, M> Drop for NewJob<F, T, M> {
    fn drop(&mut self) {
        if self.slot.is_some() {
            let _ = self.job.cancel(CancelReason::Rejected);
        }
    }
}

impl<F, T, M> fmt::Debug for NewJob<F, T, M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("NewJob").field(&self.job).finish()
    }
}

/// Disposes of the outcome of a job without a handle, if it is there.
fn dispose<T, M>(outcome: &dyn TakeOutcome<T>, core: &Core<M>) {
    if let Some(outcome) = outcome.take() {
        core.dispose(outcome);
    }
}

/// The handle of a job: it may take the outcome. Its type carries what the job borrows.
///
/// Dropping it detaches the job.
pub struct Job<'scope, T, M> {
    job: JobRef<M>,
    outcome: Arc<dyn TakeOutcome<T> + 'scope>,
}

impl<T, M> Job<'_, T, M> {
    /// A reference to the job.
    pub fn job(&self) -> &JobRef<M> {
        &self.job
    }

    /// Takes the outcome of a finished job. A value or a panic can be taken once.
    pub fn take(&self) -> Option<Outcome<T>> {
        self.outcome.take()
    }
}

impl<T, M> Drop for Job<'_, T, M> {
    fn drop(&mut self) {
        if self.job.0.state().detach() {
            dispose(&*self.outcome, self.job.0.core());
        }
    }
}

impl<T, M> fmt::Debug for Job<'_, T, M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Job").field(&self.job).finish()
    }
}
