//! The shared state of a scope, which outlives it: the job list, and the first panic that no handle took.

use super::job_list::{JobList, Phase};
use super::slot::SlotRef;
use super::state::JobState;
use crate::catch_panic;
use crate::sync::Mutex;
use crate::sync::atomic::{AtomicBool, Ordering};
use crate::task::{Outcome, Panic};
use crate::wait_queue::WaitQueue;

pub(super) struct Core<M> {
    job_list: Mutex<JobList<M>>,
    /// Whether new jobs are rejected. Written and obeyed under the lock of the job list; a load without the
    /// lock is a hint.
    stopped: AtomicBool,
    /// Where the owner waits for jobs to be published.
    new_jobs: WaitQueue,
    panic: Mutex<Option<Panic>>,
}

impl<M> Core<M> {
    pub(super) fn new() -> Self {
        Core {
            job_list: Mutex::new(JobList::new()),
            stopped: AtomicBool::new(false),
            new_jobs: WaitQueue::new(),
            panic: Mutex::new(None),
        }
    }

    /// Opens the scope for jobs. Returns false if it was opened before.
    pub(super) fn open(&self) -> bool {
        let mut job_list = self.job_list.lock();
        let is_new = job_list.phase == Phase::New;
        if is_new {
            job_list.phase = Phase::Open;
        }
        is_new
    }

    /// Closes the scope if no job is left. Returns whether it did.
    pub(super) fn close(&self) -> bool {
        let mut job_list = self.job_list.lock();
        let is_done = job_list.is_empty();
        if is_done {
            job_list.phase = Phase::Closed;
        }
        is_done
    }

    /// SCOPE-1: adds the job to the list. Returns false, and does nothing, if the scope is not open or
    /// stopped.
    pub(super) fn add(&self, job: &SlotRef<M>) -> bool {
        let mut job_list = self.job_list.lock();
        if job_list.phase != Phase::Open || self.is_stopped() {
            return false;
        }
        let number = job_list.push(job.clone());
        job.set_number(number);
        true
    }

    /// Publishes the job, so that a waiting thread may run it, and wakes the owner if it sleeps.
    pub(super) fn publish(&self, job: &SlotRef<M>) {
        let wake_owner = {
            let mut job_list = self.job_list.lock();
            job.state().mark_published();
            job_list.published += 1;
            core::mem::take(&mut job_list.owner_asleep)
        };
        if wake_owner {
            self.new_jobs.wake_all();
        }
    }

    pub(super) fn remove(&self, number: u64) {
        // It may be the last reference, so it is dropped outside the lock.
        let job = self.job_list.lock().remove(number);
        drop(job);
    }

    pub(super) fn find(&self, from: u64, wanted: fn(JobState) -> bool) -> Option<SlotRef<M>> {
        self.job_list.lock().find(from, wanted).cloned()
    }

    pub(super) fn stop(&self) {
        let _roster = self.job_list.lock();
        self.stopped.store(true, Ordering::Relaxed);
    }

    pub(super) fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::Relaxed)
    }

    pub(super) fn published(&self) -> u64 {
        self.job_list.lock().published
    }

    pub(super) fn len(&self) -> usize {
        self.job_list.lock().len()
    }

    /// Where the owner waits for jobs to be published.
    pub(super) fn new_jobs(&self) -> &WaitQueue {
        &self.new_jobs
    }

    /// Announces that the owner is about to sleep: returns true, and has the next published job wake it,
    /// unless more than `seen` jobs have been published.
    pub(super) fn announce_sleep(&self, seen: u64) -> bool {
        let mut job_list = self.job_list.lock();
        job_list.owner_asleep = job_list.published <= seen;
        job_list.owner_asleep
    }

    /// Disposes of an outcome that no handle takes: the first panic is kept, everything else is dropped.
    pub(super) fn dispose<T>(&self, outcome: Outcome<T>) {
        let Outcome::Panicked(panic) = outcome else {
            return catch_panic::drop(outcome);
        };
        let mut first = self.panic.lock();
        if first.is_none() {
            *first = Some(panic);
        } else {
            drop(first);
            catch_panic::drop(panic);
        }
    }

    pub(super) fn take_panic(&self) -> Option<Panic> {
        self.panic.lock().take()
    }
}

impl<M> Drop for Core<M> {
    fn drop(&mut self) {
        catch_panic::drop(self.take_panic());
    }
}
