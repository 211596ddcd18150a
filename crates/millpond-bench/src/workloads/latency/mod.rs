//! How long does a task take from when it was to come, and how does that grow with the load?
//!
//! # The loop is open
//!
//! Arrivals are planned ahead ([`crate::plan`]) and come whatever the pool does. Latency is counted from
//! when a task was *to come* until it is done: a pool that blocks the submitting thread makes
//! them all late, and every one of these delays is measured. (A closed loop would submit fewer
//! tasks then, and never see what they would have suffered: that is *coordinated omission*.)
//!
//! - **A task** is [`TASK`] of real work ([`crate::spin`]).
//! - **Arrivals** are independent of each other (Poisson), or come in bursts of [`AT_ONCE`] that are. The
//!   seed is the same in every round and for all candidates.
//! - **Load** is a share of the *peak*: what the best candidate does in a second when it always has a
//!   task, measured before the first round. All get the same rates, so the axis is the same for all.
//!   From 100 % on no pool can keep up; the backlog grows for as long as a round lasts, and the figures
//!   with it. They say by how much a pool is behind, and are shown, not judged.
//! - **Workers**: the submitting thread does not sleep, because a sleeper comes late. It has a
//!   CPU for itself ([`crate::apart`]), and the pool has one worker for each of the others,
//!   [`MOST_WORKERS`] at most. So on two CPUs there is *one* worker: two would have to share.
//!
//! # What the figures are
//!
//! p50, p99, p99.9 and the slowest task, medians of the rounds; the columns beside them are of all
//! tasks of all rounds. Where the machine takes a CPU away for a moment (a virtual one does), all
//! tasks on it are late: the tail of a machine that is not quiet is the machine's.

use crate::apart::apart;
use crate::figure::{Figure, Goal};
use crate::harness::{Candidate, Planned, Sample, Standing, Suite, Workload};
use crate::peers::overload::End;
use crate::peers::pool::{Pool, Queue};
use crate::plan::Plan;
use crate::report::{Point, Row};
use crate::spin::Spin;
use crate::tally::Tally;
use crate::workloads::field::{self, Visitor};
use crate::workloads::overload::ledger::{Ledger, Settled};
use crate::workloads::pool::{Opened, fire};
use anyhow::Result;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

/// The suite.
pub const SUITE: Suite = Suite {
    name: "latency",
    about: "how long tasks take that come by a plan, from a tenth of the peak to beyond it",
    workloads,
    notes,
};

/// How long a task takes.
pub const TASK: Duration = Duration::from_micros(25);

/// So many come at once, where they come in bursts.
pub const AT_ONCE: u64 = 20;

/// The seed of all plans.
pub const SEED: u64 = 0x6d69_6c6c_706f_6e64;

/// Beyond this one thread cannot bring tasks as fast as a pool does them.
pub const MOST_WORKERS: usize = 8;

/// Loads, in percent of the peak.
const LOADS: [u32; 9] = [10, 25, 50, 70, 80, 90, 100, 110, 120];

/// From this load on nobody can keep up.
const TOO_MUCH: u32 = 100;

/// Rounds are so many times longer than others, because a queue needs its time to become as long as
/// it will; and no longer than that, because there are so many points.
const LONGER: u32 = 5;
const LONGEST: Duration = Duration::from_millis(250);

/// How tasks come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Arrivals {
    Poisson,
    Bursts,
}

impl Arrivals {
    fn plan(self, rate: f64, tasks: u64) -> Plan {
        match self {
            Arrivals::Poisson => Plan::poisson(SEED, rate, tasks),
            Arrivals::Bursts => Plan::bursts(SEED, rate, tasks, AT_ONCE),
        }
    }

    fn name(self) -> String {
        match self {
            Arrivals::Poisson => "Poisson arrivals".into(),
            Arrivals::Bursts => format!("bursts of {AT_ONCE}"),
        }
    }
}

/// How many workers a pool has: one for every CPU but that of the thread that brings tasks.
fn workers() -> usize {
    let cpus = std::thread::available_parallelism().map_or(1, usize::from);
    (cpus - 1).clamp(1, MOST_WORKERS)
}

fn workloads() -> Vec<Workload> {
    let both = [Arrivals::Poisson, Arrivals::Bursts];
    let sweep = |arrivals| LOADS.map(|percent| workload(Load { arrivals, percent }));
    both.into_iter().flat_map(sweep).collect()
}

/// One point of the sweep.
#[derive(Clone, Copy, Debug)]
struct Load {
    arrivals: Arrivals,
    percent: u32,
}

impl Load {
    fn share(self) -> f64 {
        f64::from(self.percent) / 100.0
    }
}

fn workload(load: Load) -> Workload {
    let Load { arrivals, percent } = load;
    let goal = if percent < TOO_MUCH {
        Goal::BestPeer
    } else {
        Goal::Shown
    };
    let arrivals_in = move |time: Duration| {
        let seconds = (time * LONGER).min(LONGEST).as_secs_f64();
        Ok((peak()? * load.share() * seconds) as u64)
    };
    Workload {
        suite: SUITE.name,
        name: format!("{}, {percent} % load", arrivals.name()),
        figures: Figure::tail(goal),
        most_operations: u64::MAX,
        stretch: 1,
        planned: Some(Planned::by(arrivals_in)),
        point: Some(Point {
            curve: format!("latency against load, {}", arrivals.name()),
            axis: "load, % of the measured peak",
            x: f64::from(percent),
        }),
        difference: None,
        candidates: field::visit(&load),
    }
}

impl Visitor for Load {
    type Found = Candidate;

    fn visit<P: Pool + 'static>(&self, standing: Standing) -> Candidate {
        let load = *self;
        let run = move |tasks| {
            let plan = load.arrivals.plan(peak()? * load.share(), tasks);
            round::<P>(&plan)
        };
        Candidate {
            name: P::NAME,
            standing,
            // Those of a task are in the suite `pool`, and to count them here takes a round each.
            counts_allocations: false,
            run: Box::new(run),
        }
    }
}

/// Brings every task when its time has come, or at once if that is over.
fn round<P: Pool>(plan: &Plan) -> Result<Sample> {
    let spin = Spin::of(TASK);
    let tasks = plan.arrivals().len();
    let ledger = Arc::new(Ledger::new(tasks));
    let (opened, _apart) = apart(|| Opened::<P>::with_workers(workers(), Queue::Unbounded));
    let opened = opened?;
    let (pool, tally) = (&opened.pool, Tally::take());
    let start = Instant::now();
    for (number, &at) in plan.arrivals().iter().enumerate() {
        let came = start + at;
        while Instant::now() < came {
            std::hint::spin_loop();
        }
        let ledger = Arc::clone(&ledger);
        pool.run(move || {
            spin.work();
            ledger.answered(number, came.elapsed());
            // The last word: who has seen this count sees the ledger.
            tally.count(number as u64 + 1);
        });
    }
    tally.wait_for(tasks as u64);
    let elapsed = start.elapsed();
    let usage = opened.close();
    tally.check(tasks as u64)?;
    let ends: Vec<_> = (0..tasks).map(|number| (number, End::Answered)).collect();
    let Settled { quantiles, .. } = ledger.settle(plan, &[], &ends, Duration::MAX)?;
    Ok(Sample {
        operations: tasks as u64,
        elapsed,
        // The thread that brings tasks burns a CPU, whoever it brings them to.
        usage,
        quantiles,
        rush: None,
        memory: None,
        by_workers: None,
    })
}

/// What to know about the figures, once there are some.
fn notes(_rows: &[Row]) -> Vec<String> {
    let note = |peak: &f64| {
        format!(
            "latency: the peak is {peak:.0} tasks/s of {TASK:?} each; workers: {}, beside the thread \
             that brings them (seed {SEED:#x}); from {TOO_MUCH} % on the backlog grows as long as a \
             round lasts",
            workers()
        )
    };
    PEAK.get().map(note).into_iter().collect()
}

/// Measured once in a run.
static PEAK: OnceLock<f64> = OnceLock::new();

/// So many tasks are brought at once to find the peak: a few dozen milliseconds.
const BATCH: u64 = 1_500;

/// What the best candidate does in a second, if it always has a task.
fn peak() -> Result<f64> {
    if let Some(&peak) = PEAK.get() {
        return Ok(peak);
    }
    let mut best: f64 = 0.0;
    for _ in 0..3 {
        for rate in field::visit(&Peak) {
            // What is slower than it could be is not the peak.
            best = best.max(rate?);
        }
    }
    Ok(*PEAK.get_or_init(|| best))
}

struct Peak;

impl Visitor for Peak {
    type Found = Result<f64>;

    fn visit<P: Pool + 'static>(&self, _standing: Standing) -> Result<f64> {
        let spin = Spin::of(TASK);
        let (opened, _apart) = apart(|| Opened::<P>::with_workers(workers(), Queue::Unbounded));
        let sample = fire::bring(opened?, 1, BATCH, move || spin.work())?;
        Ok(sample.operations as f64 / sample.elapsed.as_secs_f64())
    }
}

#[cfg(test)]
mod tests;
