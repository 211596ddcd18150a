//! What the scope knows of a job besides its closure, and all that is done to a job: run, in the
//! executor's thread or in place, cancel, stop.

use crate::executor::dropped;
use crate::task::{Awaited, CancelReason, SharedHandle};
use millpond_raw::scope::{Cancelled, Claimed, JobRef, Reading, Remote, Stub};
use millpond_raw::sync::local;
use std::cell::Cell;
use std::sync::Arc;
use std::task::Wake;

/// The task that went to the executor in a job's place.
#[derive(Clone)]
pub(super) struct Errand {
    pub(super) task: SharedHandle<()>,
    pub(super) cancel_on_failure: bool,
}

/// Why a job has no outcome that its scope did not want any more.
const STOPPED: CancelReason = CancelReason::Abandoned;

local! {
    /// The job that the present thread runs: its scope, its number.
    static HERE: Cell<Option<(usize, u64)>> = Cell::new(None);
}

/// Being the job that the present thread runs; puts back what was there when it drops.
struct Here(Option<(usize, u64)>);

impl Here {
    fn enter(scope: usize, number: u64) -> Self {
        // In a thread that is being torn down there is nowhere to note it.
        let outside = HERE.try_with(|here| here.replace(Some((scope, number))));
        Here(outside.ok().flatten())
    }
}

impl Drop for Here {
    fn drop(&mut self) {
        let _ = HERE.try_with(|here| here.set(self.0));
    }
}

/// The number of the job of this scope that the present thread runs, if it runs one.
fn running_here(scope: &Remote<Errand>) -> Option<u64> {
    let (id, number) = HERE.try_with(Cell::get).ok()??;
    (id == scope.id()).then_some(number)
}

/// Runs a claimed job, unless its scope is being stopped and has not come to it yet.
fn run(job: &JobRef<Errand>, claimed: Claimed<Errand>, cancel_on_failure: bool) {
    let scope = job.remote();
    if scope.is_stopped() {
        job.cancel(STOPPED);
        return drop(claimed);
    }
    let _here = Here::enter(scope.id(), job.number());
    claimed.run(&|| {
        if cancel_on_failure {
            stop(&scope, Some(job.number()));
        }
    });
}

/// What is in the task that goes to the executor.
pub(super) struct Messenger {
    stub: Option<Stub<Errand>>,
    cancel_on_failure: bool,
}

impl Messenger {
    pub(super) fn new(stub: Stub<Errand>, cancel_on_failure: bool) -> Self {
        Messenger {
            stub: Some(stub),
            cancel_on_failure,
        }
    }

    /// Runs the job, if nobody has started it.
    pub(super) fn run(mut self) {
        let Some(stub) = self.stub.take() else { return };
        let job = stub.job().clone();
        if let Some(claimed) = stub.claim() {
            run(&job, claimed, self.cancel_on_failure);
        }
    }
}

impl Drop for Messenger {
    fn drop(&mut self) {
        // Dropped unrun, because it was too late: then nobody needs to look after the job. For any other
        // reason, the scope does.
        let Some(stub) = &self.stub else { return };
        let job = stub.job();
        let is_expired = |errand: Errand| errand.task.is_expired();
        let is_lost = !job.state().is_claimed() && job.meta().is_some_and(is_expired);
        dropped::has_listener(!is_lost || !job.state().is_orphan());
        if is_lost {
            job.cancel(CancelReason::Expired);
        }
    }
}

/// Runs the job on this thread, in the name of its task, if nobody has started it. If its deadline
/// has passed it is cancelled, as any executor would do.
pub(super) fn run_in_place(job: &JobRef<Errand>) {
    let Some(errand) = job.meta() else { return };
    if errand.task.is_expired() {
        cancel(job, CancelReason::Expired);
        return;
    }
    if let Some(claimed) = job.claim() {
        errand.task.retire(CancelReason::RunInPlace);
        errand
            .task
            .stand_in(|| run(job, claimed, errand.cancel_on_failure));
    }
}

/// The job, for those who wait until it is `over` or up to them.
pub(super) fn awaited(job: &JobRef<Errand>, over: fn(Reading) -> bool) -> Option<Awaited> {
    let (errand, own) = (job.meta()?, job.clone());
    let is_over = move || over(own.state()) || own.state().is_stray();
    Some(errand.task.awaited(is_over))
}

/// Cancels; false if it was finished before.
pub(super) fn cancel(job: &JobRef<Errand>, reason: CancelReason) -> bool {
    let found = job.cancel(reason);
    if found == Cancelled::Unrun {
        if let Some(errand) = job.meta() {
            errand.task.retire(reason);
        }
    }
    found != Cancelled::TooLate
}

/// Cancels, and asks the body to stop if it runs, whoever has cancelled it. Returns whether it was
/// this call that cancelled.
pub(super) fn interrupt(job: &JobRef<Errand>, reason: CancelReason) -> bool {
    let cancelled = cancel(job, reason);
    if !job.state().is_ended() {
        if let Some(errand) = job.meta() {
            errand.task.ask_to_stop();
        }
    }
    cancelled
}

/// Lets no more jobs into the scope, and interrupts all that are there, but for one.
fn stop(scope: &Remote<Errand>, except: Option<u64>) {
    scope.stop();
    let mut from = 0;
    let unended = |state: Reading| !state.is_ended();
    while let Some(job) = scope.find(from, unended) {
        from = job.number() + 1;
        if except != Some(job.number()) {
            interrupt(&job, STOPPED);
        }
    }
}

/// Stops the scope, but not the job in which this is called.
pub(super) fn stop_the_rest(scope: &Remote<Errand>) {
    stop(scope, running_here(scope));
}

/// Stops the scope when its caller is interrupted.
pub(super) struct Bell(pub(super) Remote<Errand>);

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        stop(&self.0, None);
    }
}
