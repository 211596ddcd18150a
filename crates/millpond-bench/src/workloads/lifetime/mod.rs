//! How long does it take to open a pool, and to close it?
//!
//! Tests, tools of the command line and libraries open a pool for a moment. An operation is one pool:
//!
//! - **cold start**: from nothing to the result of the first task. Some pools start all their threads at once, others one
//!   for a task that needs it; both are what their users get.
//! - **shutdown**: from the call that closes an idle pool until the last of its threads is gone. Some calls return
//!   earlier, so the threads are watched.

use crate::figure::Figure;
use crate::harness::{Candidate, Sample, Standing, Suite, Workload};
use crate::peers::pool::hand_rolled::{HandRolled, Kanal};
use crate::peers::pool::rusty_pool::RustyPool;
use crate::peers::pool::{Pool, Queue};
use crate::pool_threads::PoolThreads;
use crate::usage::Usage;
use crate::workloads::field::{self, Visitor};
use anyhow::{Result, ensure};
use std::time::{Duration, Instant};

/// The suite.
pub const SUITE: Suite = Suite {
    name: "lifetime",
    about: "how long it takes to open a pool and run its first task, and to close it",
    workloads,
    notes: |_| Vec::new(),
};

/// How many threads a pool has.
const SIZES: [usize; 2] = [2, 64];

/// No round opens more.
const MOST_POOLS: u64 = 100;

/// How long to wait for threads to end. In tests some of them may be other tests', and stay.
const ENDS_IN: Duration = Duration::from_millis(if cfg!(test) { 20 } else { 2_000 });

/// Which part of a pool's life is timed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    Start,
    Shutdown,
}

/// A part of the life of a pool of so many threads.
#[derive(Clone, Copy, Debug)]
struct Work {
    part: Part,
    workers: usize,
}

fn workloads() -> Vec<Workload> {
    let works = |part| SIZES.map(|workers| workload(Work { part, workers }));
    [Part::Start, Part::Shutdown]
        .into_iter()
        .flat_map(works)
        .collect()
}

fn workload(work: Work) -> Workload {
    let workers = work.workers;
    let mut candidates = field::visit(&work);
    candidates.push(work.visit::<HandRolled<Kanal>>(Standing::Peer));
    candidates.push(work.visit::<RustyPool>(Standing::Peer));
    Workload {
        suite: SUITE.name,
        name: match work.part {
            Part::Start => format!("cold start, {workers} workers, until the first result"),
            Part::Shutdown => format!("shutdown, {workers} idle workers, until they are gone"),
        },
        figures: vec![Figure::micros("pool")],
        most_operations: MOST_POOLS,
        stretch: 1,
        planned: None,
        point: None,
        difference: None,
        candidates,
    }
}

impl Visitor for Work {
    type Found = Candidate;

    fn visit<P: Pool + 'static>(&self, standing: Standing) -> Candidate {
        let work = *self;
        Candidate {
            name: P::NAME,
            standing,
            counts_allocations: work.part == Part::Start,
            run: Box::new(move |pools| round::<P>(work, pools)),
        }
    }
}

/// Opens and closes pools, one after the other.
fn round<P: Pool>(work: Work, pools: u64) -> Result<Sample> {
    let mut elapsed = Duration::ZERO;
    let (outcome, usage) = Usage::during(|| -> Result<()> {
        for number in 1..=pools {
            let (started, threads) = PoolThreads::of(|| -> Result<_> {
                let start = Instant::now();
                let pool = P::with_workers(work.workers, Queue::Unbounded)?;
                let result = pool.join(pool.submit(move || number));
                Ok((pool, result, start.elapsed()))
            });
            let (pool, result, start_took) = started?;
            ensure!(result == number, "the first task returned {result}");
            let closing = Instant::now();
            pool.close();
            // Without a sleep, which would be longer than most shutdowns.
            while !threads.is_gone() && closing.elapsed() < ENDS_IN {
                std::thread::yield_now();
            }
            elapsed += match work.part {
                Part::Start => start_took,
                Part::Shutdown => closing.elapsed(),
            };
        }
        Ok(())
    });
    outcome?;
    Ok(Sample {
        operations: pools,
        elapsed,
        // The caller's: those of the pool's threads end with them.
        usage,
        quantiles: None,
        rush: None,
        memory: None,
        by_workers: None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_candidate_opens_runs_its_first_task_and_closes() {
        for workload in workloads() {
            for candidate in &workload.candidates {
                let name = format!("{}: {}", workload.name, candidate.name);
                let sample = (candidate.run)(2).unwrap_or_else(|error| panic!("{name}: {error:#}"));
                assert_eq!(sample.operations, 2, "{name}");
                assert!(!sample.elapsed.is_zero(), "{name}");
            }
        }
    }
}
