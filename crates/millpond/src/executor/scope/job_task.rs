//! The task that stands for a job in the executor, and the operations on a job: run, by the executor or inline, cancel,
//! stop.

use crate::executor::dropped;
use crate::task::{CancelReason, JoinTarget, SharedHandle};
use millpond_raw::scope::{CancelResult, Claimed, JobRef, JobState, ScopeRef, Stub};
use millpond_raw::sync::local;
use std::cell::Cell;
use std::sync::Arc;
use std::task::Wake;

/// The task that the executor got in place of the job, as the job's metadata.
#[derive(Clone)]
pub(super) struct JobTask {
    pub(super) task: SharedHandle<()>,
    pub(super) cancel_on_failure: bool,
}

/// Why a job of a stopped scope has no outcome.
const STOPPED: CancelReason = CancelReason::Abandoned;

local! {
    /// The job that the current thread runs: its scope, its number.
    static CURRENT: Cell<Option<(usize, u64)>> = Cell::new(None);
}

/// Records the job that the current thread runs; restores the former one when it drops.
struct CurrentJob(Option<(usize, u64)>);

impl CurrentJob {
    fn enter(scope: usize, number: u64) -> Self {
        // A thread that is being torn down has no thread-locals.
        let outside = CURRENT.try_with(|current| current.replace(Some((scope, number))));
        CurrentJob(outside.ok().flatten())
    }
}

impl Drop for CurrentJob {
    fn drop(&mut self) {
        let _ = CURRENT.try_with(|current| current.set(self.0));
    }
}

/// The number of the job of this scope that the current thread runs, if any.
fn current_job(scope: &ScopeRef<JobTask>) -> Option<u64> {
    let (id, number) = CURRENT.try_with(Cell::get).ok()??;
    (id == scope.id()).then_some(number)
}

/// Runs a claimed job, unless its scope is being stopped and has not reached it yet.
fn run(job: &JobRef<JobTask>, claimed: Claimed<JobTask>, cancel_on_failure: bool) {
    let scope = job.scope_ref();
    if scope.is_stopped() {
        job.cancel(STOPPED);
        return drop(claimed);
    }
    let _current = CurrentJob::enter(scope.id(), job.number());
    claimed.run(&|| {
        if cancel_on_failure {
            stop(&scope, Some(job.number()));
        }
    });
}

/// The body of the task that the executor gets.
pub(super) struct JobTaskBody {
    stub: Option<Stub<JobTask>>,
    cancel_on_failure: bool,
}

impl JobTaskBody {
    pub(super) fn new(stub: Stub<JobTask>, cancel_on_failure: bool) -> Self {
        JobTaskBody {
            stub: Some(stub),
            cancel_on_failure,
        }
    }

    /// Runs the job, if it is unstarted.
    pub(super) fn run(mut self) {
        let Some(stub) = self.stub.take() else { return };
        let job = stub.job().clone();
        if let Some(claimed) = stub.claim() {
            run(&job, claimed, self.cancel_on_failure);
        }
    }
}

impl Drop for JobTaskBody {
    fn drop(&mut self) {
        // Dropped unrun. If the deadline has passed, the job is cancelled; otherwise the scope runs it.
        let Some(stub) = &self.stub else { return };
        let job = stub.job();
        let expiry = job.meta().and_then(|job_task| job_task.task.expiry());
        let lost = expiry.filter(|_| !job.state().is_claimed());
        dropped::set_listener(lost.is_none() || !job.state().is_detached());
        if let Some(reason) = lost {
            job.cancel(reason);
        }
    }
}

/// Runs an unstarted job on this thread, on behalf of its task. If its deadline has passed it is cancelled, as any executor
/// would do.
pub(super) fn run_inline(job: &JobRef<JobTask>) {
    let Some(job_task) = job.meta() else { return };
    if let Some(reason) = job_task.task.expiry() {
        cancel(job, reason);
        return;
    }
    if let Some(claimed) = job.claim() {
        job_task.task.retire(CancelReason::RanInline);
        job_task
            .task
            .run_on_behalf(|| run(job, claimed, job_task.cancel_on_failure));
    }
}

/// The job, as the target of joins that wait until it is `over`, or until the executor has dropped it.
pub(super) fn join_target(job: &JobRef<JobTask>, over: fn(JobState) -> bool) -> Option<JoinTarget> {
    let (job_task, own) = (job.meta()?, job.clone());
    let is_over = move || over(own.state()) || own.state().is_stub_dropped();
    Some(job_task.task.join_target(is_over))
}

/// Cancels the job; false if it was finished before.
pub(super) fn cancel(job: &JobRef<JobTask>, reason: CancelReason) -> bool {
    let found = job.cancel(reason);
    if found == CancelResult::Unrun {
        if let Some(job_task) = job.meta() {
            job_task.task.retire(reason);
        }
    }
    found != CancelResult::TooLate
}

/// Cancels the job, and asks the body to stop if it still runs, also if the job was cancelled before. Returns whether this
/// call cancelled it.
pub(super) fn interrupt(job: &JobRef<JobTask>, reason: CancelReason) -> bool {
    let cancelled = cancel(job, reason);
    if !job.state().is_ended() {
        if let Some(job_task) = job.meta() {
            job_task.task.ask_to_stop();
        }
    }
    cancelled
}

/// Closes the scope to new jobs, and interrupts all jobs but one.
fn stop(scope: &ScopeRef<JobTask>, except: Option<u64>) {
    scope.stop();
    let mut from = 0;
    let unended = |state: JobState| !state.is_ended();
    while let Some(job) = scope.find(from, unended) {
        from = job.number() + 1;
        if except != Some(job.number()) {
            interrupt(&job, STOPPED);
        }
    }
}

/// Stops the scope, but not the job that calls this.
pub(super) fn stop_rest(scope: &ScopeRef<JobTask>) {
    stop(scope, current_job(scope));
}

/// Stops the scope when its caller is interrupted.
pub(super) struct StopWaker(pub(super) ScopeRef<JobTask>);

impl Wake for StopWaker {
    fn wake(self: Arc<Self>) {
        stop(&self.0, None);
    }
}
