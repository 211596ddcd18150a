//! How long does a task wait that blocks, if it comes every now and then to a pool that grows?
//!
//! This is what an elastic pool is for: tasks that sleep, as those do that wait for a disk or a database, and a
//! number of threads that follows from them. A task comes every so often, blocks for [`BLOCKS`], and is done. Most of
//! the time several are blocked at once and the other threads sleep, so each task needs a thread to wake up.
//!
//! - **Latency** is the time from before the submit until the task starts.
//! - **Warm**: each round opens a pool, and before the time runs [`WARM_UP`] tasks come at once, so that the threads that
//!   this load needs are there and have run something. One of the pools is there for the whole process and is warm anyway;
//!   what it takes to open a pool and to grow is asked below, and in the suite `lifetime`.
//! - **CPU time** is that of the whole process, the submitting thread included, which sleeps between two tasks.
//! - **Every pool may have [`MAX_THREADS`] threads**, and has as many as it likes. One of ours grows as `tokio`'s does,
//!   the other has all from the start.
//!
//! - **Growth**: [`AT_ONCE`] such tasks come at once to a pool that was just opened. The time runs until the last is done;
//!   a pool that starts a thread for each needs little more than one task does. Where it grows slowly they wait for each
//!   other.
//!
//! What a pool gains by spinning until the next task comes it pays with CPU time; and if the machine is busy it may gain
//! nothing and pay more: run this with `--condition busy`, too.

mod pools;

use crate::figure::{Figure, Goal};
use crate::harness::{Candidate, Planned, Sample, Standing, Suite, Workload};
use crate::pool_threads::PoolThreads;
use crate::report::Point;
use crate::stats::Quantiles;
use crate::tally::Tally;
use crate::usage::Usage;
use anyhow::Result;
use millpond_raw::cpu_time;
use pools::{Blocking, ElasticPool, FromTheStart, Grows, RustyPool, SpawnBlocking, ThreadPerTask};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// The suite.
pub const SUITE: Suite = Suite {
    name: "elastic",
    about: "how long tasks wait that block for a millisecond, in pools that grow",
    workloads,
    notes: |_| Vec::new(),
};

/// How long a task blocks.
pub const BLOCKS: Duration = Duration::from_millis(1);

/// How many threads a pool may have.
pub const MAX_THREADS: usize = 64;

/// The times between two tasks, in microseconds.
const INTERVALS: [u64; 5] = [200, 500, 1_000, 2_000, 10_000];

/// A round is so many times longer than that of other suites: at the longest interval it has a hundred tasks.
const LONGER: u32 = 10;

/// The number of tasks that come at once before a round: somewhat more than are blocked at once at the shortest interval.
const WARM_UP: u64 = 8;

/// So many tasks come at once, where growth is the question.
pub const AT_ONCE: [u64; 2] = [16, 64];

fn workloads() -> Vec<Workload> {
    let apart = INTERVALS.map(|micros| workload(Duration::from_micros(micros)));
    apart.into_iter().chain(AT_ONCE.map(growth)).collect()
}

/// Many at once, to a pool that was just opened.
fn growth(tasks: u64) -> Workload {
    fn candidate<P: ElasticPool + 'static>(tasks: u64, standing: Standing) -> Candidate {
        Candidate {
            name: P::NAME,
            standing,
            counts_allocations: false,
            run: Box::new(move |bursts| grow::<P>(tasks, bursts)),
        }
    }
    Workload {
        suite: SUITE.name,
        name: format!("growth: {tasks} tasks of {BLOCKS:?} at once, to a new pool"),
        figures: vec![Figure::micros("burst")],
        most_operations: 20,
        stretch: 1,
        planned: None,
        point: None,
        difference: None,
        candidates: vec![
            candidate::<Grows>(tasks, Standing::Ours),
            candidate::<SpawnBlocking>(tasks, Standing::Peer),
            candidate::<Blocking>(tasks, KEEPS_ITS_THREADS),
            candidate::<RustyPool>(tasks, Standing::Peer),
            candidate::<ThreadPerTask>(tasks, Standing::Peer),
        ],
    }
}

const KEEPS_ITS_THREADS: Standing = Standing::Reference {
    because: "there is one in a process: its threads may be there from an earlier burst",
};

/// Opens a pool, submits `tasks` tasks at once and waits for the last, `bursts` times.
fn grow<P: ElasticPool>(tasks: u64, bursts: u64) -> Result<Sample> {
    let cpu_before = cpu_time::process_cpu_now();
    let mut elapsed = Duration::ZERO;
    for _ in 0..bursts {
        let (pool, threads) = PoolThreads::of(P::open);
        let (pool, tally) = (pool?, Tally::take());
        let start = Instant::now();
        for number in 1..=tasks {
            pool.run(move || {
                std::thread::sleep(BLOCKS);
                tally.count(number);
            });
        }
        wait_for_all(tally, tasks);
        elapsed += start.elapsed();
        pool.close();
        threads.wait_until_gone(ENDS_IN);
        tally.check(tasks)?;
    }
    let cpu = cpu_before.zip(cpu_time::process_cpu_now());
    Ok(Sample {
        operations: bursts,
        elapsed,
        usage: Usage {
            cpu: cpu.map(|(before, after)| after.saturating_sub(before)),
            sleeps: None,
            preemptions: None,
        },
        quantiles: None,
        rush: None,
        memory: None,
        by_workers: None,
    })
}

/// All tasks end at nearly the same time, so the first ones say nothing about how long the others will take, which is
/// what [`Tally::wait_for`] goes by until it sees the end. This looks every now and then.
fn wait_for_all(tally: &Tally, tasks: u64) {
    let start = Instant::now();
    while tally.tasks() < tasks && start.elapsed() < PATIENCE {
        std::thread::sleep(LOOKS_EVERY);
    }
}

/// The kernel makes a sleep longer by 50 microseconds: that is how exact a burst is timed.
const LOOKS_EVERY: Duration = Duration::from_micros(20);

/// What has not run after this long is lost.
const PATIENCE: Duration = Duration::from_secs(10);

/// How long to wait for threads to end. In tests some of them may be other tests', and stay.
const ENDS_IN: Duration = Duration::from_millis(if cfg!(test) { 20 } else { 1_000 });

fn workload(interval: Duration) -> Workload {
    let arrivals =
        move |time: Duration| Ok(((time * LONGER).as_micros() / interval.as_micros()) as u64);
    Workload {
        suite: SUITE.name,
        name: format!("a task of {BLOCKS:?} every {interval:?}"),
        figures: Figure::tail(Goal::BestPeer),
        most_operations: u64::MAX,
        stretch: 1,
        planned: Some(Planned::by(arrivals)),
        point: Some(Point {
            curve: "latency of blocking tasks against the time between them".into(),
            axis: "µs between two tasks",
            x: interval.as_micros() as f64,
        }),
        difference: None,
        candidates: vec![
            candidate::<Grows>(interval, Standing::Ours),
            candidate::<FromTheStart>(interval, Standing::Ours),
            candidate::<SpawnBlocking>(interval, Standing::Peer),
            candidate::<Blocking>(interval, Standing::Peer),
            candidate::<RustyPool>(interval, Standing::Peer),
            candidate::<ThreadPerTask>(interval, Standing::Peer),
        ],
    }
}

fn candidate<P: ElasticPool + 'static>(interval: Duration, standing: Standing) -> Candidate {
    Candidate {
        name: P::NAME,
        standing,
        counts_allocations: false,
        run: Box::new(move |tasks| round::<P>(interval, tasks)),
    }
}

/// Submits a task at every interval, and waits for the last.
fn round<P: ElasticPool>(interval: Duration, tasks: u64) -> Result<Sample> {
    let pool = P::open()?;
    warm_up(&pool)?;
    let waits: Arc<[AtomicU64]> = (0..tasks).map(|_| AtomicU64::new(0)).collect();
    let tally = Tally::take();
    let cpu_before = cpu_time::process_cpu_now();
    let start = Instant::now();
    for number in 0..tasks {
        let next = start + interval * (number + 1) as u32;
        std::thread::sleep(next.saturating_duration_since(Instant::now()));
        let (waits, submitted) = (Arc::clone(&waits), Instant::now());
        pool.run(move || {
            let waited = submitted.elapsed();
            waits[number as usize].store(waited.as_nanos() as u64, Ordering::Relaxed);
            std::thread::sleep(BLOCKS);
            // Last, and it releases: a thread that has seen this count sees the wait.
            tally.count(number + 1);
        });
    }
    tally.wait_for(tasks);
    let elapsed = start.elapsed();
    let cpu = cpu_before.zip(cpu_time::process_cpu_now());
    pool.close();
    tally.check(tasks)?;
    let waits: Vec<u64> = waits
        .iter()
        .map(|wait| wait.load(Ordering::Relaxed))
        .collect();
    Ok(Sample {
        operations: tasks,
        elapsed,
        usage: Usage {
            cpu: cpu.map(|(before, after)| after.saturating_sub(before)),
            sleeps: None,
            preemptions: None,
        },
        quantiles: Quantiles::of(&waits),
        rush: None,
        memory: None,
        by_workers: None,
    })
}

fn warm_up<P: ElasticPool>(pool: &P) -> Result<()> {
    let tally = Tally::take();
    for number in 1..=WARM_UP {
        pool.run(move || {
            std::thread::sleep(BLOCKS);
            tally.count(number);
        });
    }
    wait_for_all(tally, WARM_UP);
    tally.check(WARM_UP)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_candidate_runs_each_task_once_and_says_how_long_it_waited() {
        for candidate in workload(Duration::from_micros(200)).candidates {
            let sample = (candidate.run)(5).unwrap();
            assert_eq!(sample.operations, 5, "{}", candidate.name);
            assert!(sample.quantiles.is_some(), "{}", candidate.name);
            assert!(sample.elapsed >= BLOCKS, "{}", candidate.name);
        }
    }

    #[test]
    fn every_candidate_grows_and_runs_each_task_once() {
        for tasks in AT_ONCE {
            for candidate in growth(tasks).candidates {
                let sample = (candidate.run)(2).unwrap();
                assert_eq!(sample.operations, 2, "{}", candidate.name);
                assert!(sample.elapsed >= 2 * BLOCKS, "{}", candidate.name);
            }
        }
    }

    #[test]
    fn a_round_has_as_many_tasks_as_its_time_has_intervals() {
        let planned = workload(Duration::from_millis(2)).planned.unwrap();
        let tasks = planned.arrivals(Duration::from_millis(100)).unwrap();
        assert_eq!(tasks, 500);
    }
}
