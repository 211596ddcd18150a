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
//! A start that fails costs the system tens of microseconds, and there may be one for each job. So a failed start
//! begins a [pause](PAUSE) ([`StartPause`]):
//!
//! ```text
//!   start    lock; is there a pause? unlock     no:  ask the factory; if the body is dropped unrun, a pause begins
//!                                               yes: Failed at once, without the factory, and NotStarted::Paused
//! ```
//!
//! A start in a pause ends as one that the factory has refused, so the client handles both alike: it drains on the
//! spot, or leaves the jobs to a later attempt. It does not prolong the pause. A client that leaves jobs behind has
//! an alarm that demands a drainer again. The alarm that is set after a failed start rings after the pause, and may
//! serve the jobs of starts that found the pause as well (ONDEMAND-6).
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
//! - **ONDEMAND-6** Between a failed start and the next attempt there is a pause, however many jobs come. It ends by
//!   itself: nothing but a failed start begins or prolongs it, and without a time (a manual clock, which may stand
//!   still forever) there is none. A client whose alarm is to serve the jobs of paused starts checks that one is set
//!   *after* the start has returned, and the alarm is taken out before it demands: then either the alarm is still to
//!   ring and finds the state `Failed`, or the client sets another.
//!
//! Modelled in `tests/shuttle_library/on_demand.rs`.

use super::ThreadFactory;
use millpond_raw::catch_panic;
use millpond_raw::park::{self, Site};
use std::task::Waker;
use std::time::{Duration, Instant};

/// The time between a failed start and the next attempt (ONDEMAND-6). Clients retry by an alarm after more than this.
pub(crate) const PAUSE: Duration = Duration::from_millis(20);

/// The state of the thread. The client keeps it under the lock of its queue.
#[derive(Debug, Default)]
pub(crate) struct OnDemand {
    phase: Phase,
    /// Calls of [`Drainer::start`] that have not returned (ONDEMAND-3).
    starters: u32,
    pause: StartPause,
}

/// The pause after a failed start (ONDEMAND-6).
#[derive(Debug)]
pub(crate) struct StartPause {
    failed_at: Option<Instant>,
}

impl StartPause {
    pub(crate) const fn new() -> Self {
        StartPause { failed_at: None }
    }

    fn has_ended(&self, now: Option<Instant>) -> bool {
        let (Some(failed_at), Some(now)) = (self.failed_at, now) else {
            return true;
        };
        now.saturating_duration_since(failed_at) >= PAUSE
    }
}

impl Default for StartPause {
    fn default() -> Self {
        StartPause::new()
    }
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
    Wake(Waker),
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

    /// Whether a drainer exists that has something to do, or is about to look.
    pub(crate) fn is_draining(&self) -> bool {
        matches!(self.phase, Phase::Claimed)
    }

    /// The drainer has found nothing to do and parks until it is woken (ONDEMAND-2).
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

    /// Accesses the pause, under the same lock. A client with a state for each of many queues has one pause for all.
    fn with_pause<R>(&self, f: impl FnOnce(&mut StartPause) -> R) -> R {
        self.with(|state| f(&mut state.pause))
    }

    /// The time by which pauses are measured; none by a manual clock (ONDEMAND-6).
    fn now(&self) -> Option<Instant>;

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
    Park(Site),
    /// Ends: the client has called [`OnDemand::leave`].
    Leave,
    /// Ends with work left, which somebody else has to see to (ONDEMAND-3).
    Abandon,
}

/// No thread could be started, and no drainer exists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "jobs may wait for a drainer"]
pub(crate) enum NotStarted {
    /// The factory failed, or dropped the body.
    Failed,
    /// The factory was not asked, because of the pause after an earlier failure (ONDEMAND-6).
    Paused,
}

/// The one thread that drains, or the claim to start it. Made by the caller that got [`Demand::Start`].
#[derive(Debug)]
pub(crate) struct Drainer<D: Drain> {
    drain: D,
    has_left: bool,
    /// If it is dropped now, a start has failed (ONDEMAND-6).
    is_starting: bool,
}

impl<D: Drain> Drainer<D> {
    pub(crate) fn new(drain: D) -> Self {
        Drainer {
            drain,
            has_left: false,
            is_starting: false,
        }
    }

    /// Starts a thread that drains, unless there is a pause.
    pub(crate) fn start(mut self, factory: &dyn ThreadFactory) -> Result<(), NotStarted> {
        let drain = self.drain.clone();
        let now = drain.now();
        if !drain.with_pause(|pause| pause.has_ended(now)) {
            drain.with(OnDemand::fail);
            self.has_left = true;
            return Err(NotStarted::Paused);
        }
        self.is_starting = true;
        drain.with(|state| state.starters += 1);
        // A failure drops the body, and with it the drainer. So does a panic of the factory.
        let _ = catch_panic::call(|| factory.start(Box::new(move || self.run())));
        let is_failed = drain.with(|state| {
            // A client with many queues may have begun with a new state meanwhile.
            state.starters = state.starters.saturating_sub(1);
            matches!(state.phase, Phase::Failed)
        });
        if is_failed {
            Err(NotStarted::Failed)
        } else {
            Ok(())
        }
    }

    /// Drains until nothing is left, on this thread.
    pub(crate) fn run(mut self) {
        self.is_starting = false;
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
        let failed_at = self.is_starting.then(|| self.drain.now()).flatten();
        if failed_at.is_some() {
            // ONDEMAND-6
            self.drain.with_pause(|pause| pause.failed_at = failed_at);
        }
        // ONDEMAND-3
        if !self.drain.with(OnDemand::fail) {
            self.drain.abandoned();
        }
    }
}

#[cfg(all(test, not(any(millpond_loom, millpond_shuttle))))]
mod tests {
    use super::*;
    use crate::thread::{Body, JoinHandle, Threads};
    use millpond_raw::sync::Mutex;
    use std::io;
    use std::sync::Arc;

    /// A client with jobs that do nothing, by a time that the test sets.
    #[derive(Clone)]
    struct Client(Arc<Mutex<State>>);

    struct State {
        thread: OnDemand,
        jobs: usize,
        now: Option<Instant>,
        abandoned: usize,
    }

    impl Client {
        fn new(now: Option<Instant>) -> Self {
            Client(Arc::new(Mutex::new(State {
                thread: OnDemand::default(),
                jobs: 0,
                now,
                abandoned: 0,
            })))
        }

        /// Pushes a job and starts a drainer.
        fn push(&self, factory: &Factory) -> Result<(), NotStarted> {
            let mut state = self.0.lock();
            state.jobs += 1;
            let Demand::Start = state.thread.demand() else {
                panic!("there is no drainer");
            };
            drop(state);
            Drainer::new(self.clone()).start(factory)
        }

        fn wait(&self, time: Duration) {
            let mut state = self.0.lock();
            state.now = state.now.map(|now| now + time);
        }
    }

    impl Drain for Client {
        type Job = ();

        fn with<R>(&self, f: impl FnOnce(&mut OnDemand) -> R) -> R {
            f(&mut self.0.lock().thread)
        }

        fn now(&self) -> Option<Instant> {
            self.0.lock().now
        }

        fn next(&mut self) -> Next<()> {
            let mut state = self.0.lock();
            if state.jobs == 0 {
                state.thread.leave();
                return Next::Leave;
            }
            state.jobs -= 1;
            Next::Run(())
        }

        fn run(&mut self, (): ()) {}

        fn abandoned(&self) {
            self.0.lock().abandoned += 1;
        }
    }

    /// What the factory does with the next body.
    #[derive(Debug, Clone, Copy)]
    enum Does {
        Refuse,
        /// Keeps it.
        Keep,
        /// Runs it on the spot.
        Run,
    }

    struct Factory {
        does: Mutex<Does>,
        requests: Mutex<usize>,
        kept: Mutex<Option<Body>>,
    }

    impl Factory {
        fn new(does: Does) -> Self {
            Factory {
                does: Mutex::new(does),
                requests: Mutex::new(0),
                kept: Mutex::new(None),
            }
        }
    }

    impl std::fmt::Debug for Factory {
        fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str("Factory")
        }
    }

    impl ThreadFactory for Factory {
        fn start(&self, body: Body) -> io::Result<JoinHandle<()>> {
            *self.requests.lock() += 1;
            let does = *self.does.lock();
            match does {
                Does::Refuse => return Err(io::ErrorKind::WouldBlock.into()),
                Does::Keep => *self.kept.lock() = Some(body),
                Does::Run => body(),
            }
            Threads::named("idle").start(Box::new(|| ()))
        }
    }

    #[allow(clippy::disallowed_methods, reason = "any time will do")]
    fn some_time() -> Option<Instant> {
        Some(Instant::now())
    }

    #[test]
    fn after_a_refused_thread_there_is_a_pause_that_requests_do_not_prolong() {
        let (client, factory) = (Client::new(some_time()), Factory::new(Does::Refuse));
        assert_eq!(client.push(&factory), Err(NotStarted::Failed));
        for _ in 0..19 {
            client.wait(PAUSE / 20);
            assert_eq!(client.push(&factory), Err(NotStarted::Paused));
        }
        assert_eq!(*factory.requests.lock(), 1);
        client.wait(PAUSE / 20);
        *factory.does.lock() = Does::Run;
        assert_eq!(client.push(&factory), Ok(()), "the pause is over");
        let state = client.0.lock();
        assert_eq!((state.jobs, state.abandoned), (0, 0), "none is forgotten");
    }

    #[test]
    fn a_body_that_is_dropped_later_begins_a_pause_as_well() {
        let (client, factory) = (Client::new(some_time()), Factory::new(Does::Keep));
        assert_eq!(client.push(&factory), Ok(()));
        let kept = factory.kept.lock().take();
        drop(kept);
        assert_eq!(client.0.lock().abandoned, 1);
        assert_eq!(client.push(&factory), Err(NotStarted::Paused));
        client.wait(PAUSE);
        assert_eq!(client.push(&factory), Ok(()));
    }

    #[test]
    fn a_drainer_that_ends_with_work_left_begins_no_pause() {
        let (client, factory) = (Client::new(some_time()), Factory::new(Does::Run));
        client.0.lock().jobs = 2;
        assert!(matches!(client.with(OnDemand::demand), Demand::Start));
        Drainer::new(client.clone()).run_at_most(1);
        assert_eq!(client.push(&factory), Ok(()));
        assert_eq!(client.0.lock().jobs, 0);
    }

    #[test]
    fn without_a_time_there_is_no_pause() {
        let (client, factory) = (Client::new(None), Factory::new(Does::Refuse));
        for requests in 1..4 {
            assert_eq!(client.push(&factory), Err(NotStarted::Failed));
            assert_eq!(*factory.requests.lock(), requests);
        }
    }
}
