//! What does a timer cost, and how late is it?
//!
//! | file | question |
//! |---|---|
//! | [`filling`] | to fill an empty scheduler with very many tasks, and to cancel all of them |
//! | [`pending`] | to schedule a task and to cancel one, while very many wait |
//! | [`firing`] | how late tasks run of which tens of thousands are due within a second |
//! | [`memory`] | what very many hold that wait, and what is left of them when they are cancelled |
//! | [`hour`] | wake-ups while the only timer is an hour away |
//! | [`far`] | timers that only wait |
//! | [`alone`] | a process for each turn, where memory or threads are counted |
//! | [`abroad`] | the same, asked of Java and Go |
//!
//! # Candidates
//!
//! Ours is the scheduled pool, with as many workers as the others have. A scheduler built of our delay
//! queue and threads of one's own is shown beside it.
//!
//! A scheduler that *marks* a task as cancelled and leaves it where it is until it is due (our delay queue, the
//! crate `scheduled-thread-pool`, Java by default) is quick at cancelling and pays in memory. One that
//! removes it (`tokio`, Java with an option) pays at once. Go marks, and clears away when a quarter of all
//! is marked. So the rows of cancelling and of memory belong together.
//! Some leave a part of it to other threads, and the caller goes on (`async-io`, `tokio`): the time is the
//! caller's, and what all threads used is in the column beside it.
//!
//! With `--quick` there are a tenth of the timers that wait, and timers fire for a fifth of a second instead of a whole
//! one.

pub mod abroad;
pub mod alone;
pub mod far;
pub mod filling;
pub mod firing;
pub mod hour;
pub mod memory;
pub mod pending;

use crate::figure::{Figure, Goal};
use crate::harness::{Candidate, Planned, Sample, Settings, Standing, Suite, Workload};
use crate::peers::timers::Timers;
use crate::peers::timers::async_io::AsyncIo;
use crate::peers::timers::delay_queue::Delayed;
use crate::peers::timers::millpond::Millpond;
use crate::peers::timers::scheduled_thread_pool::Scheduled;
use crate::peers::timers::tokio::{Queue, Sleep};
use crate::report::Point;
use crate::workloads::idle::LIMIT;
use abroad::Executor;
use anyhow::Result;
use std::time::Duration;

/// The suite.
pub const SUITE: Suite = Suite {
    name: "scheduled",
    about: "what a timer costs while very many wait, in time and memory, and how late it is",
    workloads: || works().into_iter().map(workload).collect(),
    notes: |_| abroad::notes(),
};

/// The kinds of work with timers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    /// Schedule very many, where none is.
    Fill,
    /// Cancel very many, until none is left.
    CancelAll,
    /// Schedule one and cancel one, while very many wait.
    Pending,
    /// Let so many a second fire.
    Firing(u64),
    /// Let very many wait, and cancel them.
    Memory,
    /// Let one wait.
    Hour,
}

/// How many timers are due in a second: from so few that every thread sleeps before each, to so many that none does.
const RATES: [u64; 4] = [10, 1_000, 10_000, 100_000];

/// THE table of workloads.
fn works() -> Vec<Work> {
    let mut works = vec![Work::Fill, Work::CancelAll, Work::Pending];
    works.extend(RATES.map(Work::Firing));
    works.extend([Work::Memory, Work::Hour]);
    works
}

/// Of a timer that is cancelled less than this may be kept, in bytes: what an allocator loses between
/// those that it has given out.
const KEPT: f64 = 8.0;

impl Work {
    fn name(self) -> String {
        match self {
            Work::Fill => "fill with a million timers (quick: 100,000)".into(),
            Work::CancelAll => "cancel all of a million timers (quick: 100,000)".into(),
            Work::Pending => "schedule and cancel, a million pending (quick: 100,000)".into(),
            Work::Firing(rate) => format!("{rate} due in a second, lateness"),
            Work::Memory => "memory of a million timers (quick: 100,000)".into(),
            Work::Hour => "one timer an hour away".into(),
        }
    }

    /// Its name in an order.
    fn word(self) -> String {
        match self {
            Work::Fill => "fill".into(),
            Work::CancelAll => "cancel-all".into(),
            Work::Pending => "pending".into(),
            Work::Firing(rate) => format!("firing-{rate}"),
            Work::Memory => "memory".into(),
            Work::Hour => "hour".into(),
        }
    }

    fn figures(self) -> Vec<Figure> {
        match self {
            Work::Fill | Work::CancelAll | Work::Pending => vec![Figure::nanos("timer")],
            Work::Firing(_) => Figure::tail(Goal::BestPeer),
            Work::Memory => vec![Figure::bytes("timer"), Figure::kept_bytes("timer", KEPT)],
            Work::Hour => vec![
                Figure::cpu_percent(LIMIT),
                Figure {
                    goal: Goal::Below(1.0),
                    ..Figure::wake_ups()
                },
            ],
        }
    }

    /// Where it is on a curve, if it is a point of one.
    fn point(self) -> Option<Point> {
        let Work::Firing(rate) = self else {
            return None;
        };
        Some(Point {
            curve: "lateness against the number of timers".into(),
            axis: "timers due in a second",
            x: rate as f64,
        })
    }

    /// Whether each turn has a process of its own.
    fn is_alone(self) -> bool {
        matches!(self, Work::Memory | Work::Hour)
    }

    /// Resident memory hardly differs from turn to turn, so few will do.
    fn stretch(self) -> u32 {
        if self.is_alone() { 4 } else { 1 }
    }

    /// How many timers there are, or milliseconds of waiting for one: in full, in a quick run, and to
    /// warm up.
    fn operations(self, round_time: Duration) -> u64 {
        let [full, quick, warm_up] = match self {
            Work::Fill | Work::CancelAll | Work::Pending | Work::Memory => {
                [1_000_000, 100_000, 2_000]
            }
            // A second of them, a fifth of one, and a hundredth; and some, however few come.
            Work::Firing(rate) => [rate, (rate / 5).max(2), (rate / 100).max(1)],
            Work::Hour => [1_000, 100, 1],
        };
        match round_time / self.stretch() {
            time if time >= Settings::FULL.round_time => full,
            time if time >= Settings::QUICK.round_time => quick,
            _ => warm_up,
        }
    }
}

type RunHere = fn(Work, u64) -> Result<Sample>;

/// A scheduler, and the kinds of work that it supports.
struct Entry {
    name: &'static str,
    standing: Standing,
    fits: fn(Work) -> bool,
    run: Runner,
}

#[derive(Clone, Copy)]
enum Runner {
    Here(RunHere),
    Abroad(Executor),
}

const fn entry<T: Timers>(standing: Standing, fits: fn(Work) -> bool) -> Entry {
    Entry {
        name: T::NAME,
        standing,
        fits,
        run: Runner::Here(run::<T>),
    }
}

const fn abroad(executor: Executor, fits: fn(Work) -> bool) -> Entry {
    Entry {
        name: executor.name,
        standing: Standing::Peer,
        fits,
        run: Runner::Abroad(executor),
    }
}

fn any(_: Work) -> bool {
    true
}

/// The treatment of cancelled timers makes no difference where none is cancelled.
fn with_cancelling(work: Work) -> bool {
    matches!(
        work,
        Work::Fill | Work::CancelAll | Work::Pending | Work::Memory
    )
}

/// Its timers fire only in the thread that polls it.
fn with_a_caller(work: Work) -> bool {
    work != Work::Hour
}

const FOR_ONE_THREAD: Standing = Standing::Reference {
    because: "one task owns it, so there is no lock, nothing is handed over, and nobody else can use it",
};

const BY_HAND: Standing = Standing::Reference {
    because: "it is built by hand and takes no series; what is cancelled stays in it until it is due",
};

/// THE table of candidates.
const ENTRIES: &[Entry] = &[
    entry::<Millpond>(Standing::Ours, any),
    entry::<Delayed>(BY_HAND, any),
    entry::<Scheduled>(Standing::Peer, any),
    entry::<Sleep>(Standing::Peer, any),
    entry::<AsyncIo>(Standing::Peer, any),
    entry::<Queue>(FOR_ONE_THREAD, with_a_caller),
    abroad(Executor::JAVA_MARKS, any),
    abroad(Executor::JAVA_REMOVES, with_cancelling),
    abroad(Executor::JAVA_25_MARKS, any),
    abroad(Executor::JAVA_25_REMOVES, with_cancelling),
    abroad(Executor::GO, any),
];

/// Does the work in this process.
fn run<T: Timers>(work: Work, operations: u64) -> Result<Sample> {
    match work {
        Work::Fill => filling::run::<T>(filling::Timed::Filling, operations),
        Work::CancelAll => filling::run::<T>(filling::Timed::Cancelling, operations),
        Work::Pending => pending::run::<T>(operations),
        Work::Firing(rate) => firing::run::<T>(rate, operations),
        Work::Memory => memory::run::<T>(operations),
        Work::Hour => hour::begin::<T>(operations),
    }
}

fn workload(work: Work) -> Workload {
    let candidate = |entry: &'static Entry| Candidate {
        name: entry.name,
        standing: entry.standing,
        // It would count those of the timers that only wait, too.
        counts_allocations: false,
        run: match entry.run {
            Runner::Here(_) if work.is_alone() => {
                Box::new(move |operations| alone::run(entry, work, operations))
            }
            Runner::Here(run) => Box::new(move |operations| run(work, operations)),
            Runner::Abroad(executor) => Box::new(move |operations| executor.run(work, operations)),
        },
    };
    let fitting = ENTRIES.iter().filter(|entry| (entry.fits)(work));
    Workload {
        suite: SUITE.name,
        name: work.name(),
        figures: work.figures(),
        most_operations: u64::MAX,
        stretch: work.stretch(),
        planned: Some(Planned::by(move |time| Ok(work.operations(time)))),
        point: work.point(),
        difference: None,
        candidates: fitting.map(candidate).collect(),
    }
}

#[cfg(test)]
mod tests;
