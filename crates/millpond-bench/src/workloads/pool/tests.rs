use super::entries::{Entry, RunHere, Runner};
use super::*;
use crate::harness::Standing;
use crate::peers::pool::hand_rolled::{Crossbeam, HandRolled};
use anyhow::Result;
use std::sync::atomic::{AtomicU64, Ordering};

/// Those that run in this process.
fn here() -> impl Iterator<Item = (Work, &'static Entry, RunHere)> {
    works().into_iter().flat_map(|work| {
        let fitting = ENTRIES.iter().filter(move |entry| (entry.fits)(work));
        fitting.filter_map(move |entry| match entry.run {
            Runner::Here(run) => Some((work, entry, run)),
            Runner::Abroad(_) | Runner::Nowhere(_) => None,
        })
    })
}

#[test]
fn every_candidate_of_every_workload_runs_the_tasks_it_was_brought() {
    for (work, entry, run) in here() {
        let name = format!("{}: {}", work.name(), entry.name);
        let sample = run(work, 3).unwrap_or_else(|error| panic!("{name}: {error:#}"));
        let expected = match work {
            Work::JoinAll => handles::BATCH,
            Work::Fire { producers: 4, .. } => 4,
            _ => 3,
        };
        assert_eq!(sample.operations, expected, "{name}");
        assert!(!sample.elapsed.is_zero(), "{name}");
        for figure in work.figures() {
            let value = (figure.of)(&sample);
            let known = value.is_some_and(|value| value >= 0.0);
            assert!(known || work == Work::Idle, "{name}: {sample:?}");
        }
    }
}

#[test]
fn the_rows_are_those_that_were_asked_for() {
    let names: Vec<_> = workloads().into_iter().map(|one| one.name).collect();
    let expected = [
        "fire and forget, unbounded, 1 producer",
        "fire and forget, unbounded, 4 producers",
        "bound 1024, blocking, 1 producer",
        "bound 1024, blocking, 4 producers",
        "bound 1024, caller runs, 1 producer",
        "bound 1024, caller runs, 4 producers",
        "bound 1024, the caller runs all",
        "submit 1000, join all",
        "round trip, warm",
        "round trip, warm, waiter may run it",
        "round trip, 10µs pauses",
        "round trip, 50µs pauses",
        "round trip, 200µs pauses",
        "round trip, 1ms pauses",
        "round trip, 10ms pauses",
        "burst of 10000",
        "what figures cost, 1 producer",
        "what figures cost, 4 producers",
        "what figures cost, submit 1000, join all",
    ];
    assert_eq!(names, expected);
}

#[test]
fn every_row_has_ours_a_peer_in_this_process_and_one_abroad() {
    for work in works() {
        let fitting = ENTRIES.iter().filter(|entry| (entry.fits)(work));
        let (abroad, here): (Vec<_>, Vec<_>) =
            fitting.partition(|entry| matches!(entry.run, Runner::Abroad(_)));
        let ours = here.iter().any(|entry| entry.standing == Standing::Ours);
        assert!(ours, "{work:?}");
        let peers = here.iter().filter(|entry| entry.standing == Standing::Peer);
        assert!(peers.count() >= 1, "{work:?}");
        assert!(!abroad.is_empty(), "{work:?}");
    }
}

/// Loses a task of those that are brought after the warm-up, and returns a wrong result.
struct Unsound {
    pool: HandRolled<Crossbeam>,
    brought: AtomicU64,
}

impl Pool for Unsound {
    const NAME: &'static str = "unsound";
    type Handle = oneshot::Receiver<u64>;

    fn open(queue: Queue) -> Result<Self> {
        Ok(Unsound {
            pool: HandRolled::open(queue)?,
            brought: AtomicU64::new(0),
        })
    }

    fn run<F: FnOnce() + Send + 'static>(&self, f: F) {
        if self.brought.fetch_add(1, Ordering::Relaxed) == 1_010 {
            drop(f);
        } else {
            self.pool.run(f);
        }
    }

    fn submit<F: FnOnce() -> u64 + Send + 'static>(&self, f: F) -> Self::Handle {
        self.pool.submit(f)
    }

    fn join(&self, handle: Self::Handle) -> u64 {
        self.pool.join(handle).max(2)
    }

    fn close(self) {
        self.pool.close();
    }
}

#[test]
fn a_pool_that_loses_a_task_is_found_out() {
    let fire = Work::Fire {
        queue: Queue::Unbounded,
        producers: 1,
    };
    let error = run::<Unsound>(fire, 50).unwrap_err();
    assert_eq!(error.to_string(), "50 tasks were submitted and 49 ran");
    let error = run::<Unsound>(Work::Burst, 1).unwrap_err();
    assert_eq!(error.to_string(), "10000 tasks were submitted and 9999 ran");
}

#[test]
fn a_pool_that_returns_something_else_is_found_out() {
    let error = run::<Unsound>(Work::JoinAll, 1).unwrap_err();
    assert_eq!(
        error.to_string(),
        "the tasks did not return what they were given"
    );
    for here in [false, true] {
        let trip = Work::Trip { pause: None, here };
        let error = run::<Unsound>(trip, 5).unwrap_err();
        assert_eq!(error.to_string(), "1 of 5 results are wrong");
    }
}
