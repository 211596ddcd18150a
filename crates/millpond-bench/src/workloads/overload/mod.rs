//! What comes of a pool that gets half as much again as it can do?
//!
//! It cannot serve all callers. It can serve as many as it has workers for, in time; or it can keep
//! all of them waiting until no answer is wanted any more. Which of the two is the question.
//!
//! # The rush
//!
//! - **A task** keeps its worker waiting for [`WORK`], as one that asks a database does: it sleeps, and
//!   needs next to no CPU.
//! - **The peak** is how many of them the two workers do in a second when they always have one. It is
//!   measured once, before the first round, with our pool without protection; all candidates get the
//!   same load.
//! - **Arrivals** are planned ahead ([`crate::plan`]) and come at 150 % of that, whatever the pool does: the
//!   loop is open. The same seed makes the same plan in every round and for every candidate.
//! - **Times** are counted from when a task was *to come*, even if it came late because the thread that
//!   offers them was held up. So nothing that a pool does can hide a wait.
//! - **Clients** wait for [`PATIENCE`]. An answer after that is worth nothing: it is late.
//!
//! A round is seconds long, and there are three of them (with `--quick` of 1 s, otherwise of 5 s). The
//! fates must add up ([`ledger`]): every task was rejected, answered, shed or expired, and its pool and
//! the task itself agree on which. One that is lost ends the run.
//!
//! # Candidates
//!
//! Ours with one protection at a time, with the one that does nothing for reference. CoDel has its default target and
//! interval, which know nothing of how long clients wait.
//!
//! The peers are protected, too, by what their users write:
//!
//! | peer | its protection |
//! |---|---|
//! | a channel of 1024 | none: to be answered from its end takes ten times longer than a client waits |
//! | a channel of 64 | it is short: its end is answered in time, as long as a task takes as long as here |
//! | a channel of 1024, deadlines | a worker looks at the time before it runs a task |
//! | a semaphore | who gets no permit is rejected: as many as workers (nothing waits), or 64 |
//! | Java TPE | a bounded queue and `AbortPolicy`: of 1024 tasks, or of 64 |
//!
//! A bound that is right for one length of tasks is wrong for another; here a task takes as long as always.

mod abroad;
pub mod ledger;

use crate::figure::Figure;
use crate::harness::{Candidate, Planned, Sample, Standing, Suite, Workload};
use crate::peers::overload::hand_rolled::HandRolled;
use crate::peers::overload::millpond::{Millpond, Protection};
use crate::peers::overload::semaphore::Limited;
use crate::peers::overload::{BOUND, Rushed, SHORT};
use crate::peers::pool::WORKERS;
use crate::plan::Plan;
use crate::pool_threads::PoolThreads;
use crate::rush::Rush;
use crate::usage::Usage;
use anyhow::{Result, ensure};
use ledger::{Ledger, Settled};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

/// The suite.
pub const SUITE: Suite = Suite {
    name: "overload",
    about: "what comes of a pool of two workers that gets half as much again as it can do",
    workloads: || vec![workload()],
    notes: |_| notes(),
};

/// How long a task takes.
pub const WORK: Duration = Duration::from_millis(1);

/// How long a client waits for an answer.
pub const PATIENCE: Duration = Duration::from_millis(50);

/// The deadline of a task leaves this much of its client's timeout: it says until when a task may
/// *begin*, and an answer takes its time.
pub const ANSWER_TAKES: Duration = Duration::from_millis(5);

/// How much comes, by what can be done.
pub const LOAD: f64 = 1.5;

/// The seed of all plans.
pub const SEED: u64 = 0x6d69_6c6c_706f_6e64;

/// Rounds are so many times longer than others: it takes a second until a queue of 1024 is full.
const STRETCH: u32 = 50;

/// The kernel wakes a sleeper late by the slack of its timers and the wake-up itself.
const SLACK: Duration = Duration::from_micros(80);

/// How long to wait for threads to end. In tests some of them may be other tests', and stay.
const ENDS_IN: Duration = Duration::from_millis(if cfg!(test) { 20 } else { 1_000 });

type Open = fn() -> Result<Box<dyn Rushed>>;

/// THE table of candidates.
const ENTRIES: &[(&str, Standing, Open)] = &[
    (
        "millpond, unprotected",
        Standing::Reference {
            because: "it is ours without protection, to show what that does",
        },
        || ours(Protection::Nothing),
    ),
    ("millpond, deadlines", Standing::Ours, || {
        ours(Protection::Deadlines(PATIENCE.saturating_sub(ANSWER_TAKES)))
    }),
    ("millpond, max queue wait", Standing::Ours, || {
        ours(Protection::MaxQueueWait(PATIENCE / 2))
    }),
    ("millpond, CoDel", Standing::Ours, || {
        ours(Protection::CoDel)
    }),
    ("millpond, CoDel, newest first", Standing::Ours, || {
        ours(Protection::CoDelNewestFirst)
    }),
    ("crossbeam-channel of 1024", Standing::Peer, || {
        Ok(Box::new(HandRolled::open(BOUND)))
    }),
    ("crossbeam-channel of 64", Standing::Peer, || {
        Ok(Box::new(HandRolled::open(SHORT)))
    }),
    (
        "crossbeam-channel of 1024, deadlines",
        Standing::Peer,
        || {
            let max_age = PATIENCE.saturating_sub(ANSWER_TAKES);
            Ok(Box::new(HandRolled::with_deadlines(BOUND, max_age)))
        },
    ),
    (
        "tokio spawn_blocking, semaphore of 2",
        Standing::Peer,
        || Ok(Box::new(Limited::open(WORKERS)?)),
    ),
    (
        "tokio spawn_blocking, semaphore of 64",
        Standing::Peer,
        || Ok(Box::new(Limited::open(SHORT)?)),
    ),
];

fn ours(protection: Protection) -> Result<Box<dyn Rushed>> {
    Ok(Box::new(Millpond::open(protection)?))
}

fn workload() -> Workload {
    let candidate = |&(name, standing, open): &(&'static str, Standing, Open)| Candidate {
        name,
        standing,
        // Rejected or not, shed or not: there is no such thing as the allocations of a task.
        counts_allocations: false,
        run: Box::new(move |arrivals| rush(open, peak()?, arrivals)),
    };
    Workload {
        suite: SUITE.name,
        name: format!("{:.0} % of the peak", LOAD * 100.0),
        figures: Figure::rush(),
        most_operations: u64::MAX,
        stretch: STRETCH,
        planned: Some(Planned::by(|time| {
            Ok((peak()? * LOAD * time.as_secs_f64()) as u64)
        })),
        point: None,
        difference: None,
        candidates: ENTRIES
            .iter()
            .map(candidate)
            .chain(abroad::candidates())
            .collect(),
    }
}

/// Notes on the figures, once there are some.
fn notes() -> Vec<String> {
    let note = |peak: &f64| {
        format!(
            "overload: the peak is {peak:.0} tasks/s, {:.0} tasks/s came (Poisson, seed {SEED:#x}), \
             and their clients waited for {PATIENCE:?}",
            peak * LOAD
        )
    };
    let note = PEAK.get().map(note);
    note.into_iter().chain(abroad::notes()).collect()
}

/// Measured once in a run.
static PEAK: OnceLock<f64> = OnceLock::new();

/// So many tasks are all offered at once, and fit.
const BATCH: u64 = 400;

/// How many tasks two workers do in a second, if they always have one.
fn peak() -> Result<f64> {
    if let Some(&peak) = PEAK.get() {
        return Ok(peak);
    }
    let mut best: f64 = 0.0;
    for _ in 0..3 {
        let mut pool = Millpond::open(Protection::Nothing)?;
        let start = Instant::now();
        for number in 0..BATCH as usize {
            let is_in = pool.offer(number, start, Box::new(work));
            ensure!(is_in, "an empty pool refused its task {number} of {BATCH}");
        }
        let ended = pool.ends().len() as u64;
        let elapsed = start.elapsed();
        ensure!(
            ended == BATCH,
            "{BATCH} tasks were submitted and {ended} ran"
        );
        Box::new(pool).close();
        // A slower run than possible is not the peak.
        best = best.max(BATCH as f64 / elapsed.as_secs_f64());
    }
    Ok(*PEAK.get_or_init(|| best))
}

/// One round: `arrivals` tasks at [`LOAD`] times `peak`.
fn rush(open: Open, peak: f64, arrivals: u64) -> Result<Sample> {
    let plan = Plan::poisson(SEED, peak * LOAD, arrivals);
    let ledger = Arc::new(Ledger::new(plan.arrivals().len()));
    let (pool, pool_threads) = PoolThreads::of(open);
    let mut pool = pool?;
    let before = pool_threads.usage();
    let (refused, by_the_caller) = Usage::during(|| offer_all(&mut *pool, &plan, &ledger));
    let ends = pool.ends();
    let by_the_pool = pool_threads.usage() - before;
    pool.close();
    pool_threads.wait_until_gone(ENDS_IN);
    let Settled {
        fates,
        quantiles,
        elapsed,
    } = ledger.settle(&plan, &refused, &ends, PATIENCE)?;
    Ok(Sample {
        operations: fates.offered,
        elapsed,
        usage: [by_the_caller, by_the_pool].into_iter().sum(),
        quantiles,
        rush: Some(Rush { fates, peak }),
        memory: None,
        by_workers: None,
    })
}

/// Offers each task at its planned time, or at once if that has passed. Returns the numbers of those
/// that were rejected.
fn offer_all(pool: &mut dyn Rushed, plan: &Plan, ledger: &Arc<Ledger>) -> Vec<usize> {
    let mut refused = Vec::new();
    let start = Instant::now();
    for (number, &at) in plan.arrivals().iter().enumerate() {
        let came = start + at;
        std::thread::sleep(came.saturating_duration_since(Instant::now()));
        let ledger = Arc::clone(ledger);
        let task = move || {
            work();
            ledger.answered(number, came.elapsed());
        };
        if !pool.offer(number, came, Box::new(task)) {
            refused.push(number);
        }
    }
    refused
}

/// Waits for [`WORK`], to a few microseconds: asleep, but for the last moment.
fn work() {
    let until = Instant::now() + WORK;
    std::thread::sleep(WORK.saturating_sub(SLACK));
    while Instant::now() < until {
        std::thread::yield_now();
    }
}

#[cfg(test)]
mod tests;
