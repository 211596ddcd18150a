//! PCT schedules of a thread on demand (`src/thread/on_demand.rs`): producers that push while it is started,
//! refused, lost, parks and exits.
//!
//! Clients of two kinds deal with a refused thread: one drains on the spot, one sets an alarm that tries again, as
//! deferred work does. The second has a time, which its alarms advance, and so pauses between attempts (ONDEMAND-6).
//!
//! Clients of two kinds deal with a refused thread: one drains on the spot, one sets an alarm that tries again, as
//! deferred work does. The second has a time, which its alarms advance, and so pauses between attempts (ONDEMAND-6).
//!
//! The module is private to the library, so it is compiled into this program once more. A job that is forgotten
//! shows as a deadlock: the model waits for all of them.
#![allow(
    clippy::disallowed_types,
    reason = "what the test counts is std's, so that the checker does not branch on it"
)]

#[allow(
    dead_code,
    reason = "the model does not abandon: it drains so many at most"
)]
#[path = "../../src/thread/on_demand.rs"]
mod source;

use crate::alarm::Moody;
use crate::shuttle_kit::{Gate, join_all, pct};
use millpond::thread::{Body, JoinHandle, ThreadFactory};
use millpond::time::Clock;
use millpond_raw::park::{self, Site};
use millpond_raw::sync::Mutex;
use millpond_raw::sync::thread::{self, spawn};
use source::{Demand, Drain, Drainer, Next, NotStarted, OnDemand, PAUSE};
use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// After this an alarm rings.
const RETRY: Duration = Duration::from_millis(100);

/// A client of it that counts up, and knows how many jobs it is to run.
struct Client {
    state: Mutex<State>,
    /// With a time, an alarm tries again if no thread can be had; without one the jobs are drained on the spot.
    factory: Paced,
    /// Its thread parks when it finds nothing, until all jobs are done.
    stays: bool,
    jobs: usize,
    done: AtomicUsize,
    all_done: Gate,
    is_running: AtomicBool,
}

#[derive(Default)]
struct State {
    jobs: VecDeque<usize>,
    thread: OnDemand,
    last: [usize; PRODUCERS],
    /// The number of the alarm that is to ring, and of alarms that were set.
    alarm: Option<u64>,
    alarms: u64,
}

/// A factory that checks the pauses between requests.
#[derive(Clone, Debug)]
struct Paced {
    factory: Moody,
    /// None if it stands still.
    time: Option<Arc<Time>>,
}

/// A time that passes when an alarm rings.
#[derive(Debug)]
struct Time {
    start: Instant,
    millis: AtomicU64,
    /// When a thread was last refused, plus 1.
    refused: AtomicU64,
}

impl Time {
    fn new() -> Arc<Self> {
        Arc::new(Time {
            start: Clock::system().now(),
            millis: AtomicU64::new(0),
            refused: AtomicU64::new(0),
        })
    }

    fn millis(&self) -> u64 {
        self.millis.load(Ordering::SeqCst)
    }

    fn now(&self) -> Instant {
        self.start + Duration::from_millis(self.millis())
    }

    fn check_pause(&self) {
        if let Some(refused) = self.refused.load(Ordering::SeqCst).checked_sub(1) {
            let pause = Duration::from_millis(self.millis() - refused);
            assert!(pause >= PAUSE, "ONDEMAND-6: requested after {pause:?}");
        }
    }

    fn record_refused(&self) {
        self.refused.store(self.millis() + 1, Ordering::SeqCst);
    }
}

impl ThreadFactory for Paced {
    fn start(&self, body: Body) -> io::Result<JoinHandle<()>> {
        let time = self.time.as_deref();
        time.inspect(|time| time.check_pause());
        let started = self.factory.start(body);
        if started.is_err() {
            time.inspect(|time| time.record_refused());
        }
        started
    }
}

const PRODUCERS: usize = 2;
const EACH: usize = 2;

#[derive(Clone)]
struct Shared(Arc<Client>);

impl Shared {
    fn new(factory: Moody, stays: bool) -> Self {
        Self::with(factory, stays, None)
    }

    /// One whose jobs wait for an alarm if no thread can be had.
    fn retrying(factory: Moody) -> Self {
        Self::with(factory, false, Some(Time::new()))
    }

    fn with(factory: Moody, stays: bool, time: Option<Arc<Time>>) -> Self {
        Shared(Arc::new(Client {
            state: Mutex::new(State::default()),
            factory: Paced { factory, time },
            stays,
            jobs: PRODUCERS * EACH,
            done: AtomicUsize::new(0),
            all_done: Gate::new(),
            is_running: AtomicBool::new(false),
        }))
    }

    fn push(&self, job: usize) {
        let mut state = self.0.state.lock();
        state.jobs.push_back(job);
        let demand = state.thread.demand();
        drop(state);
        self.obey(demand);
    }

    fn obey(&self, demand: Demand) {
        match demand {
            Demand::Served => {}
            Demand::Wake(waker) => waker.wake(),
            Demand::Start => {
                if let Err(not_started) = Drainer::new(self.clone()).start(&self.0.factory) {
                    self.do_without(not_started);
                }
            }
        }
    }

    fn do_without(&self, not_started: NotStarted) {
        if let Some(time) = &self.0.factory.time {
            if not_started == NotStarted::Failed || self.0.state.lock().alarm.is_none() {
                self.set_alarm(time);
            }
        } else if matches!(self.demand_if_left(), Some(Demand::Start)) {
            // One job only: the rest is abandoned.
            Drainer::new(self.clone()).run_at_most(1);
        }
    }

    /// Sets an alarm in place of the one before.
    fn set_alarm(&self, time: &Arc<Time>) {
        let mut state = self.0.state.lock();
        state.alarms += 1;
        let number = state.alarms;
        state.alarm = Some(number);
        drop(state);
        let due = time.millis() + RETRY.as_millis() as u64;
        let (shared, time) = (self.clone(), Arc::clone(time));
        spawn(move || {
            time.millis.fetch_max(due, Ordering::SeqCst);
            shared.ring(number);
        });
    }

    /// The alarm is taken out before a drainer is demanded (ONDEMAND-6).
    fn ring(&self, number: u64) {
        let mut state = self.0.state.lock();
        if state.alarm != Some(number) {
            return;
        }
        state.alarm = None;
        drop(state);
        if let Some(demand) = self.demand_if_left() {
            self.obey(demand);
        }
    }

    fn demand_if_left(&self) -> Option<Demand> {
        let mut state = self.0.state.lock();
        (!state.jobs.is_empty()).then(|| state.thread.demand())
    }
}

impl Drain for Shared {
    type Job = usize;

    fn with<R>(&self, f: impl FnOnce(&mut OnDemand) -> R) -> R {
        f(&mut self.0.state.lock().thread)
    }

    fn now(&self) -> Option<Instant> {
        let now = self.0.factory.time.as_ref().map(|time| time.now());
        // Time may pass before it is used.
        thread::yield_now();
        now
    }

    fn next(&mut self) -> Next<usize> {
        let mut state = self.0.state.lock();
        if let Some(job) = state.jobs.pop_front() {
            return Next::Run(job);
        }
        if self.0.stays && self.0.done.load(Ordering::SeqCst) < self.0.jobs {
            state.thread.park(park::current().waker());
            return Next::Park(Site::new("model.on_demand"));
        }
        state.thread.leave();
        Next::Leave
    }

    fn run(&mut self, job: usize) {
        let client = &*self.0;
        assert!(
            !client.is_running.swap(true, Ordering::SeqCst),
            "ONDEMAND-1"
        );
        let (producer, number) = (job % PRODUCERS, job / PRODUCERS + 1);
        let before = std::mem::replace(&mut client.state.lock().last[producer], number);
        assert_eq!(before + 1, number, "in order");
        client.is_running.store(false, Ordering::SeqCst);
        if client.done.fetch_add(1, Ordering::SeqCst) + 1 == client.jobs {
            client.all_done.open();
        }
        // ONDEMAND-4
        std::panic::resume_unwind(Box::new("ignored"));
    }

    fn abandoned(&self) {
        if let Some(time) = &self.0.factory.time {
            return self.set_alarm(time);
        }
        if let Some(demand) = self.demand_if_left() {
            self.obey(demand);
        }
    }
}

fn every_job_is_run_once(shared: &Shared) {
    let push = |producer| {
        let shared = shared.clone();
        spawn(move || (0..EACH).for_each(|number| shared.push(number * PRODUCERS + producer)))
    };
    join_all((0..PRODUCERS).map(push).collect());
    shared.0.all_done.wait();
    assert_eq!(shared.0.done.load(Ordering::SeqCst), PRODUCERS * EACH);
}

#[test]
fn a_thread_on_demand_runs_every_job_and_leaves() {
    pct(|| every_job_is_run_once(&Shared::new(Moody::default(), false)));
}

#[test]
fn a_thread_on_demand_that_parks_is_woken() {
    pct(|| every_job_is_run_once(&Shared::new(Moody::default(), true)));
}

#[test]
fn threads_on_demand_that_are_refused_lose_no_job() {
    pct(|| every_job_is_run_once(&Shared::new(Moody::refusing(1), false)));
    pct(|| every_job_is_run_once(&Shared::new(Moody::refusing(usize::MAX), false)));
}

#[test]
fn threads_on_demand_that_die_before_they_run_lose_no_job() {
    pct(|| every_job_is_run_once(&Shared::new(Moody::losing(2), false)));
}

#[test]
fn refused_threads_on_demand_are_requested_again_after_a_pause_and_no_job_is_lost() {
    pct(|| every_job_is_run_once(&Shared::retrying(Moody::refusing(1))));
    pct(|| every_job_is_run_once(&Shared::retrying(Moody::refusing(3))));
}

#[test]
fn threads_on_demand_that_die_before_they_run_are_requested_again_after_a_pause() {
    pct(|| every_job_is_run_once(&Shared::retrying(Moody::losing(2))));
}
