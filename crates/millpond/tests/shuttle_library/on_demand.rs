//! PCT schedules of a thread on demand (`src/thread/on_demand.rs`): producers that push while it is started,
//! refused, lost, parks and exits.
//!
//! The module is private to the library, so it is compiled into this program once more. A job that is forgotten
//! shows as a deadlock: the model waits for all of them.
#![allow(
    clippy::disallowed_types,
    reason = "what the test counts is std's, so that the checker does not branch on it"
)]

#[path = "../../src/thread/on_demand.rs"]
mod source;

use crate::alarm::Moody;
use crate::shuttle_kit::{Gate, join_all, pct};
use millpond::thread::ThreadFactory;
use millpond_raw::park::{self, Site};
use millpond_raw::sync::Mutex;
use millpond_raw::sync::thread::spawn;
use source::{Demand, Drain, Drainer, Next, OnDemand};
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// A client of it that counts up, and knows how many jobs it is to run.
struct Client {
    state: Mutex<State>,
    factory: Moody,
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
}

const PRODUCERS: usize = 2;
const EACH: usize = 2;

#[derive(Clone)]
struct Shared(Arc<Client>);

impl Shared {
    fn new(factory: Moody, stays: bool) -> Self {
        Shared(Arc::new(Client {
            state: Mutex::new(State::default()),
            factory,
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

    /// Drains on the spot what no thread can be had for, one job only: the rest is abandoned.
    fn obey(&self, demand: Demand) {
        match demand {
            Demand::Served => {}
            Demand::Wake(waker) => waker.wake(),
            Demand::Start => {
                let started = Drainer::new(self.clone()).start(&self.0.factory);
                if started.is_err() && matches!(self.demand_if_left(), Some(Demand::Start)) {
                    Drainer::new(self.clone()).run_at_most(1);
                }
            }
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
