//! The sides of a job: its maker's, its executor's, its handle's, and everybody's.

use super::Core;
use super::slot::{Claimed, Erased, Returns, Slot};
use super::state::{Cancelled, Reading};
use crate::task::{CancelReason, Outcome};
use crate::waits::Ticket;
use core::fmt;
use std::sync::Arc;
use std::task::Waker;

/// A job as anybody may see it, also when its scope is over: what it borrows does not show.
pub struct JobRef<M>(pub(super) Erased<M>);

impl<M> JobRef<M> {
    /// Its place among the jobs of its scope, from 0.
    pub fn number(&self) -> u64 {
        self.0.number()
    }

    /// What has happened to it.
    pub fn state(&self) -> Reading {
        self.0.state().read()
    }

    /// The scope that it belongs to.
    pub fn remote(&self) -> Remote<M> {
        Remote(Arc::clone(self.0.core()))
    }

    /// Becomes the owner of the closure; `None` if it has one.
    pub fn claim(&self) -> Option<Claimed<M>> {
        self.0.claim()
    }

    /// Cancels the job. One that has not started never will, and its closure is dropped before this
    /// returns. Of one that runs the outcome is dropped.
    pub fn cancel(&self, reason: CancelReason) -> Cancelled {
        self.0.cancel(reason)
    }

    /// Asks for `waker` to be woken when the job changes; `None` if `over` is true of it. It is
    /// woken at least when the job is finished, when it has ended, and when it becomes a stray.
    /// Whoever gives up must [`leave`](JobRef::leave).
    pub fn enlist(&self, waker: &Waker, over: fn(Reading) -> bool) -> Option<Ticket> {
        self.0.enlist(waker, over)
    }

    /// Replaces the waker that was enlisted; false if it has been woken already.
    pub fn renew(&self, ticket: Ticket, waker: &Waker) -> bool {
        self.0.waits().renew(ticket, waker)
    }

    /// Takes back what [`enlist`](JobRef::enlist) asked for.
    pub fn leave(&self, ticket: Ticket) {
        self.0.waits().leave(ticket);
    }
}

impl<M: Clone> JobRef<M> {
    /// The value that travels with the job, once it has been brought.
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

/// A scope as anybody may see it, also when it is over.
pub struct Remote<M>(pub(super) Arc<Core<M>>);

impl<M> Remote<M> {
    /// The first job with this number or a higher one of which `wanted` is true and that is not
    /// over: an ended one is here as long as its outcome is.
    pub fn find(&self, from: u64, wanted: fn(Reading) -> bool) -> Option<JobRef<M>> {
        self.0.find(from, wanted).map(JobRef)
    }

    /// Lets no more jobs in.
    pub fn stop(&self) {
        self.0.stop();
    }

    /// Whether no more jobs are let in.
    pub fn is_stopped(&self) -> bool {
        self.0.is_stopped()
    }

    /// How many jobs have been [brought](Fresh::bring).
    pub fn brought(&self) -> u64 {
        self.0.brought()
    }

    /// How many jobs are not over.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there is no job that is not over.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether it is the same scope.
    pub fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// A number that no other scope has while this value lives.
    pub fn id(&self) -> usize {
        Arc::as_ptr(&self.0).addr()
    }
}

impl<M> Clone for Remote<M> {
    fn clone(&self) -> Self {
        Remote(Arc::clone(&self.0))
    }
}

impl<M> fmt::Debug for Remote<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Remote")
            .field("jobs", &self.len())
            .field("stopped", &self.is_stopped())
            .finish()
    }
}

/// What goes to an executor in the place of a job. It may be kept, lost or used at any time: it runs
/// the job if that is still there to be run.
///
/// Dropping it makes the job a stray: it is then up to whoever waits for it.
#[must_use = "a stub that is dropped leaves its job to whoever waits for it"]
pub struct Stub<M>(Option<JobRef<M>>);

impl<M> Stub<M> {
    /// The job.
    pub fn job(&self) -> &JobRef<M> {
        self.0.as_ref().expect("it is only taken by value")
    }

    /// Becomes the owner of the closure; `None` if it has one.
    pub fn claim(mut self) -> Option<Claimed<M>> {
        self.0.take().and_then(|job| job.claim())
    }
}

impl<M> Drop for Stub<M> {
    fn drop(&mut self) {
        if let Some(job) = &self.0 {
            job.0.stray();
        }
    }
}

impl<M> fmt::Debug for Stub<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Stub").field(&self.0).finish()
    }
}

/// A job that has just been made. Dropping it cancels the job; its maker gives it a
/// [handle](Fresh::handle), or [leaves it alone](Fresh::detach).
#[must_use = "dropping it cancels the job"]
pub struct Fresh<F, T, M> {
    /// Empty only while `self` is taken apart.
    slot: Option<Arc<Slot<F, T, M>>>,
    job: JobRef<M>,
}

impl<F, T, M> Fresh<F, T, M> {
    pub(super) fn new(slot: Arc<Slot<F, T, M>>, job: Erased<M>) -> Self {
        Fresh {
            slot: Some(slot),
            job: JobRef(job),
        }
    }

    /// The job as anybody may see it.
    pub fn job(&self) -> &JobRef<M> {
        &self.job
    }

    /// What goes to the executor. One is enough.
    pub fn stub(&self) -> Stub<M> {
        Stub(Some(self.job.clone()))
    }

    /// Gives the job a value to travel with. From now on whoever waits may run it.
    pub fn bring(&self, meta: M) {
        let before = self.job.0.meta().lock().replace(meta);
        drop(before);
        self.job.0.core().bring(&self.job.0);
    }

    /// Takes the closure back out of a job that has not started. Then there is no job.
    ///
    /// # Errors
    ///
    /// The job, if somebody has started or cancelled it.
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

impl<F: Send, T: Send, M: Send> Fresh<F, T, M> {
    /// Leaves the job alone: nobody takes its outcome, and a panic goes to the scope.
    pub fn detach(mut self) {
        let job = &self.job.0;
        if let (Some(slot), true) = (self.slot.take(), job.state().orphan()) {
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
        let slot = self.slot.take().expect("it is only taken by value");
        Job {
            job: self.job.clone(),
            outcome: slot,
        }
    }
}

impl<F, T, M> Drop for Fresh<F, T, M> {
    fn drop(&mut self) {
        if self.slot.is_some() {
            let _ = self.job.cancel(CancelReason::Refused);
        }
    }
}

impl<F, T, M> fmt::Debug for Fresh<F, T, M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Fresh").field(&self.job).finish()
    }
}

/// Takes the outcome of a job without a handle, if it is there.
fn dispose<T, M>(outcome: &dyn Returns<T>, core: &Core<M>) {
    if let Some(outcome) = outcome.take() {
        core.dispose(outcome);
    }
}

/// The handle of a job: it may take the outcome. What the job borrows is in its type.
///
/// Dropping it lets the job go on alone.
pub struct Job<'scope, T, M> {
    job: JobRef<M>,
    outcome: Arc<dyn Returns<T> + 'scope>,
}

impl<T, M> Job<'_, T, M> {
    /// The job as anybody may see it.
    pub fn job(&self) -> &JobRef<M> {
        &self.job
    }

    /// Takes the outcome, once the job is finished. A value or a panic can be taken once.
    pub fn take(&self) -> Option<Outcome<T>> {
        self.outcome.take()
    }
}

impl<T, M> Drop for Job<'_, T, M> {
    fn drop(&mut self) {
        if self.job.0.state().orphan() {
            dispose(&*self.outcome, self.job.0.core());
        }
    }
}

impl<T, M> fmt::Debug for Job<'_, T, M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Job").field(&self.job).finish()
    }
}
