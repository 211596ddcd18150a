//! What does a timer cost, and how late is it?
//!
//! | file | question |
//! |---|---|
//! | [`pending`] | to schedule a task and to cancel one, while very many wait |
//! | [`firing`] | how late tasks run of which tens of thousands are due within a second |
//! | [`abroad`] | the same, asked of Java's `ScheduledThreadPoolExecutor` |
//!
//! # Who is compared
//!
//! Ours is what there is of it today, and named after that: the delay queue, with threads that take
//! tasks out of it. It has no periods and no fixed rates, and nothing here asks for them.
//!
//! Whoever *marks* a task as cancelled and leaves it where it is until it is due (ours, the crate
//! `scheduled-thread-pool`, Java by default) is quick at cancelling and pays in memory. Whoever takes it
//! out (`tokio`, Java if told to) pays at once. The figures do not show the memory.
//!
//! With `--quick` there are a tenth of the pending timers, and a fifth of those that fire.

pub mod abroad;
pub mod firing;
pub mod pending;

use crate::figure::Figure;
use crate::harness::{Candidate, Planned, Sample, Settings, Standing, Suite, Workload};
use crate::peers::timers::Timers;
use crate::peers::timers::millpond::Millpond;
use crate::peers::timers::scheduled_thread_pool::Scheduled;
use crate::peers::timers::tokio::{Queue, Sleep};
use abroad::Executor;
use anyhow::Result;
use std::time::Duration;

/// The suite.
pub const SUITE: Suite = Suite {
    name: "scheduled",
    about: "what a timer costs while very many wait, and how late it is",
    workloads: || WORKS.map(workload).into(),
    notes: |_| abroad::notes(),
};

/// What is done with timers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    /// Schedule one and cancel one, while very many wait.
    Pending,
    /// Let them fire.
    Firing,
}

/// THE table of workloads.
const WORKS: [Work; 2] = [Work::Pending, Work::Firing];

impl Work {
    fn name(self) -> &'static str {
        match self {
            Work::Pending => "schedule and cancel, a million pending (quick: 100,000)",
            Work::Firing => "100,000 due within a second (quick: 20,000), lateness",
        }
    }

    fn figures(self) -> Vec<Figure> {
        match self {
            Work::Pending => vec![Figure::nanos("timer")],
            Work::Firing => Figure::quantiles(),
        }
    }

    /// How many timers there are: in full, in a quick run, and to warm up.
    fn timers(self, time: Duration) -> u64 {
        let [full, quick, warm_up] = match self {
            Work::Pending => [1_000_000, 100_000, 2_000],
            Work::Firing => [100_000, 20_000, 1_000],
        };
        match time {
            time if time >= Settings::FULL.round_time => full,
            time if time >= Settings::QUICK.round_time => quick,
            _ => warm_up,
        }
    }
}

type RunHere = fn(Work, u64) -> Result<Sample>;

/// One who keeps timers.
struct Entry {
    name: &'static str,
    standing: Standing,
    run: Runner,
}

enum Runner {
    Here(RunHere),
    Abroad(Executor),
}

const fn entry<T: Timers>(standing: Standing) -> Entry {
    Entry {
        name: T::NAME,
        standing,
        run: Runner::Here(run::<T>),
    }
}

const fn java(executor: Executor) -> Entry {
    Entry {
        name: executor.name,
        standing: Standing::Peer,
        run: Runner::Abroad(executor),
    }
}

const FOR_ONE_THREAD: Standing = Standing::Reference {
    because: "one task owns it, so there is no lock, nothing is handed over, and nobody else can use it",
};

/// THE table of candidates.
const ENTRIES: &[Entry] = &[
    entry::<Millpond>(Standing::Ours),
    entry::<Scheduled>(Standing::Peer),
    entry::<Sleep>(Standing::Peer),
    entry::<Queue>(FOR_ONE_THREAD),
    java(Executor::MARKS),
    java(Executor::REMOVES),
];

fn run<T: Timers>(work: Work, timers: u64) -> Result<Sample> {
    match work {
        Work::Pending => pending::run::<T>(timers),
        Work::Firing => firing::run::<T>(timers),
    }
}

fn workload(work: Work) -> Workload {
    let candidate = |entry: &'static Entry| Candidate {
        name: entry.name,
        standing: entry.standing,
        // It would count those of the timers that only wait, too.
        counts_allocations: false,
        run: match entry.run {
            Runner::Here(run) => Box::new(move |timers| run(work, timers)),
            Runner::Abroad(executor) => Box::new(move |timers| executor.run(work, timers)),
        },
    };
    Workload {
        suite: SUITE.name,
        name: work.name().into(),
        figures: work.figures(),
        most_operations: u64::MAX,
        stretch: 1,
        planned: Some(Planned::by(move |time| Ok(work.timers(time)))),
        point: None,
        difference: None,
        candidates: ENTRIES.iter().map(candidate).collect(),
    }
}

#[cfg(test)]
mod tests;
