//! How long do short tasks take among long ones?
//!
//! A pool is used by everybody: most tasks take microseconds, and one in [`ONE_IN`] takes a millisecond. A pool that
//! gives each worker a queue of its own may leave a short task behind a long one although another worker is idle; one
//! with a queue for all does not, and pays for it with a lock.
//!
//! Arrivals follow a plan and come whatever the pool does, as in the suite [`latency`](super::latency); the thread that
//! brings them has a CPU for itself. Only the short tasks are timed: from when one was *to come* until it is done.
//!
//! - **blocking**: the long ones sleep, so that there is always a CPU for the short ones.
//! - **computing**: they keep a CPU busy. On two CPUs, one of which brings the tasks, every short task that comes then
//!   waits for the kernel, whoever's pool it is: there the differences are small.

use crate::apart::apart;
use crate::figure::{Figure, Goal};
use crate::harness::{Candidate, Planned, Sample, Standing, Suite, Workload};
use crate::peers::pool::hand_rolled::{HandRolled, Kanal};
use crate::peers::pool::{Pool, Queue};
use crate::plan::Plan;
use crate::spin::Spin;
use crate::stats::Quantiles;
use crate::tally::Tally;
use crate::workloads::field::{self, Visitor};
use crate::workloads::pool::Opened;
use crate::workloads::pool::handles::nanos;
use anyhow::{Result, ensure};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// The suite.
pub const SUITE: Suite = Suite {
    name: "mixed",
    about: "how long short tasks take among long ones",
    workloads: || [Long::Blocks, Long::Computes].map(workload).into(),
    notes: |_| {
        vec![format!(
            "mixed: {RATE} tasks/s of {SHORT:?}, one in {ONE_IN} of {LONG:?}, to {WORKERS} workers (Poisson, seed {SEED:#x})"
        )]
    },
};

/// How many workers a pool has: more than long tasks are there at once, most of the time.
pub const WORKERS: usize = 4;

/// One in so many is long.
pub const ONE_IN: usize = 50;

/// How long a short task works.
pub const SHORT: Duration = Duration::from_micros(5);

/// How long a long one takes.
pub const LONG: Duration = Duration::from_millis(1);

/// How many come in a second. A tenth of a worker's time each second is long tasks.
const RATE: f64 = 5_000.0;

/// The seed of all plans.
const SEED: u64 = 0x006d_6978_6564;

/// A round is so many times longer than others: there are few tasks in a second, and p99 needs some.
const LONGER: u32 = 5;

/// What a long task does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Long {
    Blocks,
    Computes,
}

fn workload(long: Long) -> Workload {
    let does = match long {
        Long::Blocks => "blocks",
        Long::Computes => "computes",
    };
    let mut candidates = field::visit(&long);
    candidates.push(long.visit::<HandRolled<Kanal>>(Standing::Peer));
    Workload {
        suite: SUITE.name,
        name: format!("short tasks, one in {ONE_IN} {does} for {LONG:?}"),
        figures: Figure::tail(Goal::BestPeer),
        most_operations: u64::MAX,
        stretch: 1,
        planned: Some(Planned::by(|time| {
            Ok((RATE * (time * LONGER).as_secs_f64()) as u64)
        })),
        point: None,
        difference: None,
        candidates,
    }
}

impl Visitor for Long {
    type Found = Candidate;

    fn visit<P: Pool + 'static>(&self, standing: Standing) -> Candidate {
        let long = *self;
        Candidate {
            name: P::NAME,
            standing,
            // Those of a task are in the suite `pool`.
            counts_allocations: false,
            run: Box::new(move |tasks| round::<P>(long, tasks)),
        }
    }
}

fn round<P: Pool>(long: Long, tasks: u64) -> Result<Sample> {
    let plan = Plan::poisson(SEED, RATE, tasks);
    let times: Arc<[AtomicU64]> = (0..tasks).map(|_| AtomicU64::new(0)).collect();
    let (short, computes) = (Spin::of(SHORT), Spin::of(LONG));
    let (opened, _apart) = apart(|| Opened::<P>::with_workers(WORKERS, Queue::Unbounded));
    let opened = opened?;
    let (pool, tally) = (&opened.pool, Tally::take());
    let start = Instant::now();
    for (number, &at) in plan.arrivals().iter().enumerate() {
        let came = start + at;
        while Instant::now() < came {
            std::hint::spin_loop();
        }
        let times = Arc::clone(&times);
        pool.run(move || {
            match long {
                _ if !is_long(number) => {
                    short.work();
                    times[number].store(nanos(came.elapsed()).max(1), Ordering::Relaxed);
                }
                Long::Blocks => std::thread::sleep(LONG),
                Long::Computes => computes.work(),
            }
            // Last, and it releases: a thread that has seen this count sees the time.
            tally.count(number as u64 + 1);
        });
    }
    tally.wait_for(tasks);
    let elapsed = start.elapsed();
    let usage = opened.close();
    tally.check(tasks)?;
    let shorts = (0..tasks as usize).filter(|&number| !is_long(number));
    let times: Vec<u64> = shorts
        .map(|number| times[number].load(Ordering::Relaxed))
        .collect();
    ensure!(
        times.iter().all(|&time| time > 0),
        "a short task has run and has no time"
    );
    Ok(Sample {
        operations: tasks,
        elapsed,
        // The thread that brings tasks burns a CPU, whoever it brings them to.
        usage,
        quantiles: Quantiles::of(&times),
        rush: None,
        memory: None,
        by_workers: None,
    })
}

fn is_long(number: usize) -> bool {
    number % ONE_IN == ONE_IN / 2
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_candidate_times_its_short_tasks_and_runs_all() {
        for long in [Long::Blocks, Long::Computes] {
            for candidate in workload(long).candidates {
                let name = candidate.name;
                let sample =
                    (candidate.run)(60).unwrap_or_else(|error| panic!("{name}: {error:#}"));
                assert_eq!(sample.operations, 60, "{name}");
                let p50 = sample.quantiles.unwrap().p50();
                // Half of the length: where work was measured, it may have been slower than here.
                assert!(p50 > SHORT.as_nanos() as u64 / 2, "{name}: {p50} ns");
            }
        }
    }

    #[test]
    fn one_in_fifty_is_long_and_the_first_is_not() {
        let long = (0..500).filter(|&number| is_long(number)).count();
        assert_eq!((long, is_long(0)), (10, false));
    }
}
