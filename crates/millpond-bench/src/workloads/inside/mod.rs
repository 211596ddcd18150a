//! What does a task cost that another task brings?
//!
//! A pool of work-stealing workers has a queue for each of them, and a task that is brought from inside goes to the
//! worker's own: without a lock, without a wake-up, and last in, first out. From outside it takes another way. So the
//! same pools are asked from inside that the suite [`pool`](super::pool) asks from outside.
//!
//! - **one task brings all**: it submits tasks in a loop, on a worker, while the other worker helps.
//! - **a tree**: every task brings two, until there are enough. All workers bring tasks, and all run some.
//!
//! Tasks count themselves, as in the suite `pool`, and carry a reference to their pool: a counter that all share, which
//! costs all the same.

use crate::figure::Figure;
use crate::harness::{Candidate, Sample, Standing, Suite, Workload};
use crate::peers::pool::async_executor::AsyncExecutor;
use crate::peers::pool::hand_rolled::{Crossbeam, HandRolled, Kanal};
use crate::peers::pool::millpond::Millpond;
use crate::peers::pool::rayon::Rayon;
use crate::peers::pool::rusty_pool::RustyPool;
use crate::peers::pool::shared::Shared;
use crate::peers::pool::threadpool::Threadpool;
use crate::peers::pool::{Pool, Queue, tokio};
use crate::tally::Tally;
use crate::usage::Usage;
use crate::workloads::pool::Opened;
use crate::workloads::pool::abroad::{self, Executor};
use anyhow::Result;
use std::time::Instant;

/// The suite.
pub const SUITE: Suite = Suite {
    name: "inside",
    about: "what a task costs that another task brings",
    workloads: || WORKS.map(workload).into(),
    notes: |_| abroad::notes(),
};

/// As in the suite `pool`: the queue may grow by a whole round.
const MOST_TASKS: u64 = 1_000_000;

/// How tasks are brought by tasks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Work {
    /// One brings all.
    Loop,
    /// Each brings two.
    Tree,
}

const WORKS: [Work; 2] = [Work::Loop, Work::Tree];

impl Work {
    fn name(self) -> &'static str {
        match self {
            Work::Loop => "one task brings all",
            Work::Tree => "a tree: every task brings two",
        }
    }

    /// The word that guests have for it.
    fn word(self) -> &'static str {
        match self {
            Work::Loop => "inside",
            Work::Tree => "tree",
        }
    }
}

fn workload(work: Work) -> Workload {
    let guest = |executor: Executor| Candidate {
        name: executor.name,
        standing: Standing::Peer,
        counts_allocations: false,
        run: Box::new(move |tasks| executor.order(work.word(), 1, tasks)),
    };
    Workload {
        suite: SUITE.name,
        name: work.name().into(),
        figures: vec![Figure::nanos("task")],
        most_operations: MOST_TASKS,
        stretch: 1,
        planned: None,
        point: None,
        difference: None,
        candidates: vec![
            candidate::<Millpond>(work, Standing::Ours),
            candidate::<HandRolled<Crossbeam>>(work, Standing::Peer),
            candidate::<HandRolled<Kanal>>(work, Standing::Peer),
            candidate::<Rayon>(work, Standing::Peer),
            candidate::<tokio::Spawn>(work, Standing::Peer),
            candidate::<tokio::SpawnBlocking>(work, Standing::Peer),
            candidate::<AsyncExecutor>(work, Standing::Peer),
            candidate::<Threadpool>(work, Standing::Peer),
            candidate::<RustyPool>(work, Standing::Peer),
            guest(Executor::JAVA_LINKED),
            guest(Executor::JAVA_FORK_JOIN),
            guest(Executor::JAVA_25_FORK_JOIN),
            guest(Executor::JAVA_25_VIRTUAL),
            guest(Executor::GO_GOROUTINES),
            guest(Executor::MONO_THREADS),
        ],
    }
}

fn candidate<P: Pool + Send + 'static>(work: Work, standing: Standing) -> Candidate {
    Candidate {
        name: P::NAME,
        standing,
        counts_allocations: true,
        run: Box::new(move |tasks| round::<P>(work, tasks)),
    }
}

/// Has `tasks` tasks brought by tasks, each of which brings two.
///
/// # Errors
///
/// If not all of them ran, or one ran twice.
pub fn tree<P: Pool + Send + 'static>(tasks: u64) -> Result<Sample> {
    round::<P>(Work::Tree, tasks)
}

/// Has `tasks` tasks brought by tasks.
fn round<P: Pool + Send + 'static>(work: Work, tasks: u64) -> Result<Sample> {
    let opened = Opened::<Shared<P>>::with_workers(crate::peers::pool::WORKERS, Queue::Unbounded)?;
    let tally = Tally::take();
    let (elapsed, by_the_caller) = Usage::during(|| {
        let pool = opened.pool.clone();
        let start = Instant::now();
        opened.pool.run(move || match work {
            Work::Loop => {
                for number in 2..=tasks {
                    pool.run(move || tally.count(number));
                }
                tally.count(1);
            }
            Work::Tree => node(pool, tally, 1, tasks),
        });
        tally.wait_for(tasks);
        start.elapsed()
    });
    let by_the_pool = opened.close();
    tally.check(tasks)?;
    Ok(Sample {
        operations: tasks,
        elapsed,
        usage: [by_the_caller, by_the_pool].into_iter().sum(),
        quantiles: None,
        rush: None,
        memory: None,
        by_workers: None,
    })
}

/// A task of the tree. They are numbered as in a heap, so that each number comes once.
fn node<P: Pool + Send + 'static>(pool: Shared<P>, tally: &'static Tally, number: u64, last: u64) {
    for child in [2 * number, 2 * number + 1] {
        if child <= last {
            let inner = pool.clone();
            pool.run(move || node(inner, tally, child, last));
        }
    }
    tally.count(number);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::harness::Absent;

    #[test]
    fn every_candidate_runs_each_task_once_that_another_brings() {
        for work in WORKS {
            for candidate in workload(work).candidates {
                let name = format!("{}: {}", work.name(), candidate.name);
                // A tree that is not full has a task that brings one.
                match (candidate.run)(100) {
                    Ok(sample) => assert_eq!(sample.operations, 100, "{name}"),
                    Err(error) if error.is::<Absent>() => eprintln!("skipped: {name}: {error}"),
                    Err(error) => panic!("{name}: {error:#}"),
                }
            }
        }
    }
}
