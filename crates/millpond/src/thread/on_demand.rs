//! A thread that is started when there is something to do and leaves when nothing is left.
//!
//! Work that must not be done where it arises, such as user code on the timer's thread, goes into a queue, and
//! one thread at a time drains the queue. The queue and its lock belong to the client: one has a queue with a
//! bound, one has two queues, one has a map of them. This module has what they share: [`OnDemand`], the state of
//! the thread, which the client keeps beside its queue under the same lock, and [`Drainer`], the thread or the
//! caller that is about to start it.
//!
//! # Protocol
//!
//! ```text
//!   producer   lock; push a job; demand(); unlock     Served: done    Wake: wake    Start: start a Drainer,
//!                                                                                   or drain on the spot
//!   drainer    lock; pop a job, or else leave() or park(); unlock; run the job; again
//!
//!            demand: Start                         park
//!     Idle ----------------> Claimed ------------------------> Parked
//!       ^                    |  ^  ^                              |
//!       +------- leave ------+  |  +-------- demand: Wake --------+
//!                            |  |
//!      a drainer is dropped  v  |  demand: Start
//!                          Failed
//! ```
//!
//! A thread that is being started and one that runs are one state, because they are treated alike.
//!
//! # Invariants
//!
//! - **ONDEMAND-1** At most one drainer exists: [`OnDemand::demand`] answers `Start` only without one, and then
//!   the caller owns it. So jobs are run one at a time, in the order of the queue.
//! - **ONDEMAND-2** No job is forgotten: a drainer leaves or parks in the critical section in which it finds
//!   nothing to do, and a producer demands it in the one in which it pushes.
//! - **ONDEMAND-3** A drainer that ends with work left becomes `Failed`: its thread was refused, the factory
//!   panicked or dropped the body, it drained as much as it was allowed to, or it gave up. If that happens inside
//!   [`Drainer::start`], the caller hears of it ([`NotStarted`]); later, [`Drain::abandoned`] is called. Either
//!   has to make sure that a drainer is demanded again.
//! - **ONDEMAND-4** A job that panics ends alone; the drainer takes the next one.
//! - **ONDEMAND-5** A child process made by `fork()` has the state without the thread. The client resets the
//!   state there or stops using it; this module does not look.
//!
//! Modelled in `tests/shuttle_library/on_demand.rs`.

use super::ThreadFactory;
use millpond_raw::catch_panic;
use millpond_raw::park::{self, Site};
use std::task::Waker;

/// The state of the thread. The client keeps it under the lock of its queue.
#[derive(Debug, Default)]
pub(crate) struct OnDemand {
    phase: Phase,
    /// Calls of [`Drainer::start`] that have not returned (ONDEMAND-3).
    starters: u32,
}

#[derive(Debug, Default)]
enum Phase {
    /// No drainer, and nothing to do.
    #[default]
    Idle,
    /// No drainer, although there may be something to do (ONDEMAND-3).
    Failed,
    /// A drainer exists.
    Claimed,
    /// Its thread waits for the next job.
    Parked(Waker),
}

/// What a producer must do after it has pushed a job.
#[derive(Debug)]
#[must_use = "a job may wait for the caller to act"]
pub(crate) enum Demand {
    /// Nothing: a drainer will find the job.
    Served,
    /// Make a [`Drainer`] and start it, or drain on the spot.
    Start,
    /// Wake the drainer, after the lock has been released.
    Wake(#[allow(dead_code, reason = "for drainers that stay")] Waker),
}

impl OnDemand {
    /// There is something to do.
    pub(crate) fn demand(&mut self) -> Demand {
        match std::mem::replace(&mut self.phase, Phase::Claimed) {
            Phase::Idle | Phase::Failed => Demand::Start,
            Phase::Claimed => Demand::Served,
            Phase::Parked(waker) => Demand::Wake(waker),
        }
    }

    /// The drainer has found nothing to do and ends (ONDEMAND-2).
    pub(crate) fn leave(&mut self) {
        self.phase = Phase::Idle;
    }

    /// The drainer has found nothing to do and parks until it is woken (ONDEMAND-2).
    #[allow(dead_code, reason = "for drainers that stay")]
    pub(crate) fn park(&mut self, waker: Waker) {
        self.phase = Phase::Parked(waker);
    }

    /// The drainer is dropped with work left. Returns true if a caller inside `start` will see that.
    fn fail(&mut self) -> bool {
        self.phase = Phase::Failed;
        self.starters > 0
    }
}

/// A client: where jobs come from, and how one is run.
pub(crate) trait Drain: Clone + Send + 'static {
    /// What is done in one step.
    type Job;

    /// Accesses the state, under the lock of the queue.
    fn with<R>(&self, f: impl FnOnce(&mut OnDemand) -> R) -> R;

    /// Takes the next job. If there is none, [leaves](OnDemand::leave) or [parks](OnDemand::park), under the same
    /// lock.
    fn next(&mut self) -> Next<Self::Job>;

    /// Runs a job, under no lock.
    fn run(&mut self, job: Self::Job);

    /// The drainer has ended with work left, and no other thread will notice (ONDEMAND-3).
    fn abandoned(&self);
}

/// What a drainer does next.
#[derive(Debug)]
pub(crate) enum Next<J> {
    /// Runs this.
    Run(J),
    /// Parks at this site: the client has called [`OnDemand::park`].
    #[allow(dead_code, reason = "for drainers that stay")]
    Park(Site),
    /// Ends: the client has called [`OnDemand::leave`].
    Leave,
    /// Ends with work left, which somebody else has to see to (ONDEMAND-3).
    #[allow(dead_code, reason = "for drainers that may not wait")]
    Abandon,
}

/// No thread could be started, and no drainer exists.
#[derive(Debug)]
#[must_use = "jobs may wait for a drainer"]
pub(crate) struct NotStarted;

/// The one thread that drains, or the claim to start it. Made by the caller that got [`Demand::Start`].
#[derive(Debug)]
pub(crate) struct Drainer<D: Drain> {
    drain: D,
    has_left: bool,
}

impl<D: Drain> Drainer<D> {
    pub(crate) fn new(drain: D) -> Self {
        Drainer {
            drain,
            has_left: false,
        }
    }

    /// Starts a thread that drains.
    pub(crate) fn start(self, factory: &dyn ThreadFactory) -> Result<(), NotStarted> {
        let drain = self.drain.clone();
        drain.with(|state| state.starters += 1);
        // A failure drops the body, and with it the drainer. So does a panic of the factory.
        let _ = catch_panic::call(|| factory.start(Box::new(move || self.run())));
        let is_failed = drain.with(|state| {
            // A client with many queues may have begun with a new state meanwhile.
            state.starters = state.starters.saturating_sub(1);
            matches!(state.phase, Phase::Failed)
        });
        if is_failed { Err(NotStarted) } else { Ok(()) }
    }

    /// Drains until nothing is left, on this thread.
    pub(crate) fn run(mut self) {
        while self.step() {}
    }

    /// Runs at most so many jobs on this thread, which has something else to do. What is left then is
    /// [abandoned](Drain::abandoned).
    pub(crate) fn run_at_most(mut self, jobs: usize) {
        for _ in 0..jobs {
            if !self.step() {
                return;
            }
        }
    }

    /// Returns false if the drainer ends.
    fn step(&mut self) -> bool {
        match self.drain.next() {
            Next::Run(job) => {
                // ONDEMAND-4
                let _ = catch_panic::call(|| self.drain.run(job));
            }
            Next::Park(site) => park::current().park(site),
            Next::Leave => self.has_left = true,
            Next::Abandon => return false,
        }
        !self.has_left
    }
}

impl<D: Drain> Drop for Drainer<D> {
    fn drop(&mut self) {
        if self.has_left {
            return;
        }
        // ONDEMAND-3
        if !self.drain.with(OnDemand::fail) {
            self.drain.abandoned();
        }
    }
}
