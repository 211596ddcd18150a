//! What does it cost to divide a computation, and how soon and how evenly do two threads share it?
//!
//! | row | what is measured |
//! |---|---|
//! | `fib` | next to nothing but joins: what a join costs, on one thread and on two |
//! | a tree of 1,023 nodes, again and again | computations that are too short to be shared |
//! | a tree of 16.8 million nodes | memory that is read in order; two threads should be twice as fast |
//! | a tree whose halves are uneven | how well work is balanced that nobody can divide in advance |
//! | quicksort | uneven halves, each of which reads and writes memory |
//! | sorting, and sums over a slice | what each library has for it; a sum goes at the speed of memory |
//! | tasks from outside | fire and forget, with 1 and 4 producers |
//! | tasks and jobs that spawn two | a tree of tasks, without joins, and in a scope |
//! | until a second thread works | from the start of a computation in an idle pool |
//!
//! | file | what it holds |
//! |---|---|
//! | [`joins`] | `fib`, trees, the uneven tree |
//! | [`slices`] | quicksort, sorting, sums |
//! | [`ramp`] | how soon a second thread works |
//! | [`spawning`] | jobs in a scope that spawn jobs |
//! | [`team`] | a pool that is open, warm and idle, and what a round of it took |
//! | [`input`] | trees and arrays, made once for all candidates |
//! | [`abroad`] | the same, asked of Java |
//!
//! How many threads a candidate has, and in which order it runs its two closures, is in
//! [`peers::forkjoin`](crate::peers::forkjoin). `sequential` is the same code without a pool: a reference, to which no ratio
//! is taken. CPU time is that of all threads of a pool and of its caller, which includes what idle threads use to look for
//! work: a second thread that finds nothing in computations of a few microseconds shows there.
//!
//! With two CPUs the caller's own thread, and `chili`'s heartbeat, share these with the workers.

pub mod abroad;
pub mod input;
pub mod joins;
pub mod ramp;
pub mod slices;
pub mod spawning;
pub mod team;
#[cfg(test)]
mod tests;

use crate::figure::{Figure, Goal};
use crate::harness::{Candidate, Planned, Sample, Settings, Standing, Suite, Workload};
use crate::peers::forkjoin::ForkJoin;
use crate::peers::forkjoin::chili::Chili;
use crate::peers::forkjoin::millpond::Millpond;
use crate::peers::forkjoin::rayon::Rayon;
use crate::peers::forkjoin::sequential::Sequential;
use crate::peers::pool;
use crate::peers::pool::{Pool, Queue, WORKERS};
use crate::workloads::pool::abroad::Executor;
use crate::workloads::pool::{Opened, fire};
use crate::workloads::{inside, pool as pool_suite};
use abroad::Java;
use anyhow::Result;
use std::time::Duration;

/// The suite.
pub const SUITE: Suite = Suite {
    name: "forkjoin",
    about: "what joins and tasks of a fork-join pool cost, and how well it shares work",
    workloads: || works().into_iter().map(workload).collect(),
    notes: |_| {
        let mut notes = abroad::notes();
        notes.extend(pool_suite::abroad::notes());
        notes.dedup();
        notes
    },
};

/// As in the suite `pool`: the queue may grow by a whole round.
const MOST_TASKS: u64 = 1_000_000;

/// What is computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    /// Fibonacci numbers, with a join for each addition, by so many threads.
    Fib(usize),
    /// The sum of a small tree, again and again.
    SmallTree(usize),
    /// The sum of a large tree.
    LargeTree(usize),
    /// A tree whose halves are uneven.
    Uneven,
    /// A quicksort that joins.
    Quicksort,
    /// The stable sort of each library.
    Sort,
    /// Its other sort.
    SortUnstable,
    /// A sum over a slice that is divided by joins.
    SumByJoins,
    /// The sum of each library.
    Sum,
    /// Tasks from so many producers.
    Fire(usize),
    /// Every task submits two.
    Spawn,
    /// Every job of a scope spawns two.
    SpawnInScope,
    /// The time until a second thread works.
    RampUp,
}

/// THE table of workloads.
fn works() -> Vec<Work> {
    let mut works = Vec::new();
    for of in [Work::Fib, Work::SmallTree, Work::LargeTree] {
        works.extend([1, WORKERS].map(of));
    }
    works.extend([
        Work::Uneven,
        Work::Quicksort,
        Work::Sort,
        Work::SortUnstable,
    ]);
    works.extend([Work::SumByJoins, Work::Sum]);
    works.extend([1, 4].map(Work::Fire));
    works.extend([Work::Spawn, Work::SpawnInScope, Work::RampUp]);
    works
}

impl Work {
    fn name(self) -> String {
        let by = |threads: usize| match threads {
            1 => "1 thread".to_owned(),
            more => format!("{more} threads"),
        };
        match self {
            Work::Fib(threads) => format!("fib, {}", by(threads)),
            Work::SmallTree(threads) => format!("trees of 1,023 nodes, {}", by(threads)),
            Work::LargeTree(threads) => {
                let threads = by(threads);
                format!("a tree of 16.8 million nodes (quick: 1 million), {threads}")
            }
            Work::Uneven => "an uneven tree of 10 million nodes (quick: 1 million)".into(),
            Work::Quicksort => "quicksort of 10 million (quick: 1 million)".into(),
            Work::Sort => "stable sort of 10 million (quick: 1 million)".into(),
            Work::SortUnstable => "unstable sort of 10 million (quick: 1 million)".into(),
            Work::SumByJoins => {
                "sum of 100 million by joins, leaves of 1,024 (quick: 10 million)".into()
            }
            Work::Sum => "sum of 100 million (quick: 10 million)".into(),
            Work::Fire(1) => "fire and forget, 1 producer".into(),
            Work::Fire(producers) => format!("fire and forget, {producers} producers"),
            Work::Spawn => "every task submits two".into(),
            Work::SpawnInScope => "every job of a scope spawns two".into(),
            Work::RampUp => "until a second thread works".into(),
        }
    }

    fn figures(self) -> Vec<Figure> {
        match self {
            Work::Fib(_) => vec![Figure::nanos("join")],
            Work::SmallTree(_) | Work::LargeTree(_) | Work::Uneven => vec![Figure::nanos("node")],
            Work::Quicksort | Work::Sort | Work::SortUnstable | Work::SumByJoins | Work::Sum => {
                vec![Figure::nanos("item")]
            }
            Work::Fire(_) | Work::Spawn => vec![Figure::nanos("task")],
            Work::SpawnInScope => vec![Figure::nanos("job")],
            Work::RampUp => {
                let mut figures = Figure::tail(Goal::BestPeer);
                figures.truncate(2);
                figures
            }
        }
    }

    fn most_operations(self) -> u64 {
        match self {
            Work::Fire(_) | Work::Spawn | Work::SpawnInScope => MOST_TASKS,
            _ => u64::MAX,
        }
    }

    /// Whether something is made for it first, whose allocations would be counted, too.
    fn has_input(self) -> bool {
        let is_tree = matches!(self, Work::SmallTree(_) | Work::LargeTree(_));
        is_tree || is_of_slices(self) || matches!(self, Work::Quicksort | Work::SumByJoins)
    }

    /// How many nodes, items or times there are in full, in a quick run, and to warm up. Where nothing is planned a round
    /// is as long as it should be.
    fn planned(self) -> Option<Planned> {
        let sizes = match self {
            Work::LargeTree(_) => [(1 << 24) - 1, (1 << 20) - 1, (1 << 12) - 1],
            Work::Uneven | Work::Quicksort | Work::Sort | Work::SortUnstable => {
                [10_000_000, 1_000_000, 10_000]
            }
            Work::SumByJoins | Work::Sum => [100_000_000, 10_000_000, 100_000],
            Work::RampUp => [200, 50, 3],
            _ => return None,
        };
        Some(Planned::by(move |time: Duration| {
            let [full, quick, warm_up] = sizes;
            Ok(match time {
                time if time >= Settings::FULL.round_time => full,
                time if time >= Settings::QUICK.round_time => quick,
                _ => warm_up,
            })
        }))
    }
}

type RunHere = fn(Work, u64) -> Result<Sample>;

/// A candidate, and the kinds of work that it is asked for.
struct Entry {
    name: &'static str,
    standing: Standing,
    fits: fn(Work) -> bool,
    run: Runner,
}

#[derive(Clone, Copy)]
enum Runner {
    Here(RunHere),
    Java(Java),
    Abroad(Executor),
}

/// THE table of candidates.
const ENTRIES: &[Entry] = &[
    joining::<Millpond>(Standing::Ours, |work| !is_of_tasks(work)),
    joining::<Rayon>(Standing::Peer, |work| !is_of_tasks(work)),
    joining::<Chili>(Standing::Peer, |work| {
        is_of_joins(work) || work == Work::RampUp
    }),
    joining::<Sequential>(
        Standing::Reference {
            because: "it has no pool",
        },
        |work| is_of_joins(work) || is_of_slices(work),
    ),
    Entry {
        name: Java::FORK_JOIN.name,
        standing: Standing::Peer,
        fits: |work| is_of_joins(work) || work == Work::SortUnstable,
        run: Runner::Java(Java::FORK_JOIN),
    },
    tasks::<pool::fork_join::ForkJoin>(Standing::Ours),
    tasks::<pool::rayon::Rayon>(Standing::Peer),
    tasks::<pool::tokio::Spawn>(Standing::Peer),
    tasks::<pool::millpond::Millpond>(Standing::Reference {
        because: "it is our elastic pool",
    }),
    abroad(Executor::JAVA_FORK_JOIN),
    abroad(Executor::JAVA_25_FORK_JOIN),
    scopes::<Millpond>(Standing::Ours),
    scopes::<Rayon>(Standing::Peer),
];

fn is_of_tasks(work: Work) -> bool {
    matches!(work, Work::Fire(_) | Work::Spawn | Work::SpawnInScope)
}

fn is_of_slices(work: Work) -> bool {
    matches!(work, Work::Sort | Work::SortUnstable | Work::Sum)
}

/// The same code for all candidates, which needs nothing but joins.
fn is_of_joins(work: Work) -> bool {
    !is_of_tasks(work) && !is_of_slices(work) && work != Work::RampUp
}

const fn joining<F: ForkJoin>(standing: Standing, fits: fn(Work) -> bool) -> Entry {
    Entry {
        name: F::NAME,
        standing,
        fits,
        run: Runner::Here(run::<F>),
    }
}

const fn tasks<P: Pool + Send + 'static>(standing: Standing) -> Entry {
    Entry {
        name: P::NAME,
        standing,
        fits: |work| matches!(work, Work::Fire(_) | Work::Spawn),
        run: Runner::Here(run_tasks::<P>),
    }
}

const fn scopes<S: spawning::Scopes>(standing: Standing) -> Entry {
    Entry {
        name: S::NAME,
        standing,
        fits: |work| work == Work::SpawnInScope,
        run: Runner::Here(|_, jobs| spawning::round::<S>(jobs)),
    }
}

const fn abroad(executor: Executor) -> Entry {
    Entry {
        name: executor.name,
        standing: Standing::Peer,
        fits: |work| matches!(work, Work::Fire(_) | Work::Spawn),
        run: Runner::Abroad(executor),
    }
}

fn run<F: ForkJoin>(work: Work, operations: u64) -> Result<Sample> {
    match work {
        Work::Fib(threads) => joins::fib::<F>(threads, operations),
        Work::SmallTree(threads) => joins::small_tree::<F>(threads, operations),
        Work::LargeTree(threads) => joins::large_tree::<F>(threads, operations),
        Work::Uneven => joins::uneven::<F>(operations),
        Work::RampUp => ramp::round::<F>(operations),
        _ => slices::round::<F>(work, operations),
    }
}

fn run_tasks<P: Pool + Send + 'static>(work: Work, tasks: u64) -> Result<Sample> {
    match work {
        Work::Fire(producers) => {
            fire::bring(Opened::<P>::new(Queue::Unbounded)?, producers, tasks, || ())
        }
        _ => inside::tree::<P>(tasks),
    }
}

fn run_abroad(executor: Executor, work: Work, tasks: u64) -> Result<Sample> {
    match work {
        Work::Fire(producers) => executor.order("fire", producers, tasks),
        _ => executor.order("tree", 1, tasks),
    }
}

fn workload(work: Work) -> Workload {
    let entries = ENTRIES.iter().filter(|entry| (entry.fits)(work));
    Workload {
        suite: SUITE.name,
        name: work.name(),
        figures: work.figures(),
        most_operations: work.most_operations(),
        stretch: 1,
        planned: work.planned(),
        point: None,
        difference: None,
        candidates: entries.map(|entry| candidate(entry, work)).collect(),
    }
}

fn candidate(entry: &Entry, work: Work) -> Candidate {
    let runner = entry.run;
    Candidate {
        name: entry.name,
        standing: entry.standing,
        counts_allocations: matches!(runner, Runner::Here(_)) && !work.has_input(),
        run: Box::new(move |operations| match runner {
            Runner::Here(run) => run(work, operations),
            Runner::Java(java) => java.run(work, operations),
            Runner::Abroad(executor) => run_abroad(executor, work, operations),
        }),
    }
}
