//! What does a task cost that is brought to a pool of two workers?
//!
//! Tasks are tiny: they count themselves (see [`crate::tally`]) and are done. So the figures are what
//! the pool adds to them. The questions, one file each:
//!
//! | file | question |
//! |---|---|
//! | [`fire`] | one to four producers submit tasks and wait for none of them |
//! | [`handles`] | a caller waits: for a thousand tasks, or for each one |
//! | [`caller_runs`] | a pool without room, so that the caller runs every task |
//! | [`burst`] | ten thousand tasks at once for a pool that sleeps |
//! | [`idle`] | nothing to do, for the suite of that name |
//! | [`figures_cost`] | what the pool's own figures add to each task |
//! | [`abroad`] | the same, asked of Java, Go, Python and C# |
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
//! has a process of its own, and each executor of Java's a JVM, that takes turns like the others. It is there during
//! the turns of the others, asleep.
//!
//! A handle that waits awake for a while returns sooner than one that sleeps at once. Ours does the first, and so
//! the peers whose handle is a channel are there twice where a caller waits: with a handle that sleeps at once, and
//! with one that spins, yields and parks.

pub mod abroad;
pub mod burst;
pub mod caller_runs;
mod entries;
pub mod figures_cost;
pub mod fire;
pub mod handles;
pub mod idle;
mod opened;

pub use opened::Opened;

use crate::figure::{Figure, Goal};
use crate::harness::{Planned, Sample, Suite, Workload};
use crate::peers::pool::{Pool, Queue, WhenFull};
use crate::report::Point;
use crate::workloads::idle::LIMIT;
use anyhow::Result;
use entries::ENTRIES;
use std::time::Duration;

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
    /// A caller brings tasks to a pool that has no room, and runs every one of them.
    CallerRunsAll,
    /// A caller brings a thousand tasks, then waits for each.
    JoinAll,
    /// A caller brings a task and waits for it.
    Trip {
        /// For how long it works first, while the pool falls asleep.
        pause: Option<Duration>,
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
    let paused = |pause| trip(Some(pause), false);
    let mut works = Vec::new();
    for queue in [Queue::Unbounded, blocking, caller_runs] {
        works.extend([1, 4].map(|producers| Work::Fire { queue, producers }));
    }
    works.extend([Work::CallerRunsAll, Work::JoinAll]);
    works.extend([trip(None, false), trip(None, true)]);
    works.extend(handles::PAUSES.map(paused));
    works.push(Work::Burst);
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
            Work::CallerRunsAll => format!("bound {BOUND}, the caller runs all"),
            Work::JoinAll => format!("submit {}, join all", handles::BATCH),
            Work::Trip { pause, here } => {
                let here = if here { ", waiter may run it" } else { "" };
                match pause {
                    None => format!("round trip, warm{here}"),
                    Some(pause) => format!("round trip, {pause:?} pauses{here}"),
                }
            }
            Work::Burst => format!("burst of {}", burst::TASKS),
            Work::Idle => "idle".into(),
        }
    }

    fn figures(self) -> Vec<Figure> {
        match self {
            Work::Fire { queue, .. } if queue.caller_runs() => {
                vec![Figure::nanos("task"), Figure::workers_share()]
            }
            Work::Fire { .. } | Work::CallerRunsAll | Work::JoinAll => vec![Figure::nanos("task")],
            Work::Trip { pause: None, .. } => Figure::quantiles(),
            Work::Trip { pause: Some(_), .. } => Figure::tail(Goal::BestPeer),
            Work::Burst => vec![Figure::micros("burst")],
            Work::Idle => vec![Figure::cpu_percent(LIMIT)],
        }
    }

    fn most_operations(self) -> u64 {
        match self {
            Work::Fire { .. } | Work::CallerRunsAll | Work::JoinAll => MOST_TASKS,
            Work::Trip { pause: None, .. } => 100_000,
            // It is planned, by the length of its pauses.
            Work::Trip { pause: Some(_), .. } => u64::MAX,
            Work::Burst => 5,
            // An operation is a millisecond.
            Work::Idle => 1_000,
        }
    }

    /// An idle pool that wakes up now and then must get the time to do so.
    fn stretch(self) -> u32 {
        if self == Work::Idle { 10 } else { 1 }
    }

    /// With its pauses a trip takes many times longer than it says, so a round is planned: it is a few times longer
    /// than others, and has some trips however long the pauses are.
    fn planned(self) -> Option<Planned> {
        let Work::Trip { pause, .. } = self else {
            return None;
        };
        let pause = pause?;
        Some(Planned::by(move |time: Duration| {
            let trips = (time * 3).as_nanos() / pause.as_nanos().max(1);
            Ok((trips as u64).clamp(8, 2_000))
        }))
    }

    /// Where it is on a curve, if it is a point of one.
    fn point(self) -> Option<Point> {
        let Work::Trip { pause, here } = self else {
            return None;
        };
        let pause = pause.filter(|_| !here)?;
        Some(Point {
            curve: "round trip against the pause before it".into(),
            axis: "µs of pause",
            x: pause.as_secs_f64() * 1e6,
        })
    }

    fn is_bounded(self) -> bool {
        self == Work::CallerRunsAll
            || matches!(self, Work::Fire { queue, .. } if queue != Queue::Unbounded)
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
        planned: work.planned(),
        point: work.point(),
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
        Work::CallerRunsAll => caller_runs::run::<P>(operations),
        Work::JoinAll => handles::join_all::<P>(operations),
        Work::Trip { pause, here } => handles::trips::<P>(pause, here, operations),
        Work::Burst => burst::run::<P>(operations),
        Work::Idle => idle::run::<P>(operations),
    }
}

#[cfg(test)]
mod tests;
