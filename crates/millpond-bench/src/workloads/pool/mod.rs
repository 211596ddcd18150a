//! What does a task cost that is brought to a pool of two workers?
//!
//! Tasks are tiny: they count themselves (see [`crate::tally`]) and are done. So the figures are what
//! the pool adds to them. The questions, one file each:
//!
//! | file | question |
//! |---|---|
//! | [`fire`] | one to four producers submit tasks and wait for none of them |
//! | [`handles`] | a caller waits: for a thousand tasks, or for each one |
//! | [`burst`] | ten thousand tasks at once for a pool that sleeps |
//! | [`idle`] | nothing to do, for the suite of that name |
//! | [`figures_cost`] | what the pool's own figures add to each task |
//! | [`abroad`] | the same, asked of Java, Go and Python |
//! | `entries` | which candidate does which of these |
//! | `opened` | a pool that is open, warm and idle, as each of these begins |
//!
//! # How each is measured
//!
//! A round opens a pool, lets all its workers run at the same time once, submits some more tasks,
//! and lets it fall asleep: see [`Opened`]. After the round the pool is closed, its threads are gone,
//! and all tasks must have run, once each.
//!
//! - **Round trips** are a closed loop: the next task is brought when the last one is back. This is
//!   how a caller fares that has nothing else to do; it says nothing about tasks that arrive while
//!   others wait.
//! - **Pauses** are spent at work, on the caller's CPU, so that they are exact. What the caller burns
//!   in them is taken off its CPU time.
//! - **CPU time, sleeps and preemptions** are those of the pool's threads and of its callers, the
//!   short time included that a pool goes on looking for work after the last task.
//! - **Allocations** are those of whole tasks: boxes, channels, blocks of queues.
//!
//! # Candidates
//!
//! Where a queue has a bound, only pools that can have one. Where the waiter may run the task, only
//! those where it may. Pools in other languages are guests (see [`crate::peers::guest`]): each language
//! has a process of its own that takes turns like the others. It is there during the turns of the
//! others, asleep.

pub mod abroad;
pub mod burst;
mod entries;
pub mod figures_cost;
pub mod fire;
pub mod handles;
pub mod idle;
mod opened;

pub use opened::Opened;

use crate::figure::Figure;
use crate::harness::{Sample, Suite, Workload};
use crate::peers::pool::{Pool, Queue, WhenFull};
use crate::workloads::idle::LIMIT;
use anyhow::Result;
use entries::ENTRIES;

/// The suite.
pub const SUITE: Suite = Suite {
    name: "pool",
    about: "what a task costs that is brought to a pool of two workers",
    workloads,
    notes: |_| abroad::notes(),
};

/// What is done with a pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    /// Producers bring tasks, and wait for none of them.
    Fire {
        /// What they bring them to.
        queue: Queue,
        /// How many they are.
        producers: usize,
    },
    /// A caller brings a thousand tasks, then waits for each.
    JoinAll,
    /// A caller brings a task and waits for it.
    Trip {
        /// Whether it first works for a moment, and the pool falls asleep.
        pause: bool,
        /// Whether it runs the task itself if nobody has begun it.
        here: bool,
    },
    /// Ten thousand tasks at once.
    Burst,
    /// None. It is asked by the suite [`idle`](crate::workloads::idle).
    Idle,
}

const BOUND: usize = 1024;

/// Without a bound the queue may grow by a whole round: this many boxes are some tens of megabytes.
const MOST_TASKS: u64 = 1_000_000;

/// THE table of workloads.
fn works() -> Vec<Work> {
    let blocking = Queue::Bounded(BOUND, WhenFull::Wait);
    let caller_runs = Queue::Bounded(BOUND, WhenFull::CallerRuns);
    let trip = |pause, here| Work::Trip { pause, here };
    let mut works = Vec::new();
    for queue in [Queue::Unbounded, blocking, caller_runs] {
        works.extend([1, 4].map(|producers| Work::Fire { queue, producers }));
    }
    works.extend([Work::JoinAll, trip(false, false), trip(false, true)]);
    works.extend([trip(true, false), Work::Burst]);
    works
}

impl Work {
    fn name(self) -> String {
        match self {
            Work::Fire { queue, producers } => {
                let queue = match queue {
                    Queue::Unbounded => "fire and forget, unbounded".into(),
                    Queue::Bounded(bound, WhenFull::Wait) => format!("bound {bound}, blocking"),
                    Queue::Bounded(bound, WhenFull::CallerRuns) => {
                        format!("bound {bound}, caller runs")
                    }
                };
                let plural = if producers == 1 { "" } else { "s" };
                format!("{queue}, {producers} producer{plural}")
            }
            Work::JoinAll => format!("submit {}, join all", handles::BATCH),
            Work::Trip { pause, here } => {
                let here = if here { ", waiter may run it" } else { "" };
                match pause {
                    false => format!("round trip, warm{here}"),
                    true => format!("round trip, {:?} pauses{here}", handles::PAUSE),
                }
            }
            Work::Burst => format!("burst of {}", burst::TASKS),
            Work::Idle => "idle".into(),
        }
    }

    fn figures(self) -> Vec<Figure> {
        match self {
            Work::Fire { .. } | Work::JoinAll => vec![Figure::nanos("task")],
            Work::Trip { .. } => Figure::quantiles(),
            Work::Burst => vec![Figure::micros("burst")],
            Work::Idle => vec![Figure::cpu_percent(LIMIT)],
        }
    }

    fn most_operations(self) -> u64 {
        match self {
            Work::Fire { .. } | Work::JoinAll => MOST_TASKS,
            Work::Trip { pause: false, .. } => 100_000,
            // With its pauses a trip takes ten times as long as it says.
            Work::Trip { pause: true, .. } => 300,
            Work::Burst => 5,
            // An operation is a millisecond.
            Work::Idle => 1_000,
        }
    }

    /// An idle pool that wakes up now and then must get the time to do so.
    fn stretch(self) -> u32 {
        if self == Work::Idle { 10 } else { 1 }
    }

    fn is_bounded(self) -> bool {
        matches!(self, Work::Fire { queue, .. } if queue != Queue::Unbounded)
    }

    fn waiter_helps(self) -> bool {
        matches!(self, Work::Trip { here: true, .. })
    }
}

fn workloads() -> Vec<Workload> {
    let mut all: Vec<Workload> = works().into_iter().map(workload).collect();
    all.extend(figures_cost::workloads());
    all
}

/// One question, asked of everybody whom it fits.
pub(super) fn workload(work: Work) -> Workload {
    let candidates = ENTRIES.iter().filter(|entry| (entry.fits)(work));
    Workload {
        suite: SUITE.name,
        name: work.name(),
        figures: work.figures(),
        most_operations: work.most_operations(),
        stretch: work.stretch(),
        planned: None,
        point: None,
        difference: None,
        candidates: candidates
            .map(|entry| entries::candidate(entry, work))
            .collect(),
    }
}

/// Does `operations` of the work with a pool of one kind.
fn run<P: Pool>(work: Work, operations: u64) -> Result<Sample> {
    match work {
        Work::Fire { queue, producers } => fire::run::<P>(queue, producers, operations),
        Work::JoinAll => handles::join_all::<P>(operations),
        Work::Trip { pause, here } => handles::trips::<P>(pause, here, operations),
        Work::Burst => burst::run::<P>(operations),
        Work::Idle => idle::run::<P>(operations),
    }
}

#[cfg(test)]
mod tests;
