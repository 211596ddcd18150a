//! What does it cost to compose results that are not there yet?
//!
//! | row | what is measured |
//! |---|---|
//! | chains of 1,000 maps | what a stage costs, when its source is complete, and when it is not |
//! | all of 10,000 tasks | tasks of a pool, and one result that is made of theirs |
//! | fan-out and fan-in | graphs of tasks, each of which needs the results of others |
//! | any of 10, and a race | the first of several results; nothing may pile up at one that never comes |
//! | time-outs | set and taken back, one by one and many at the same time |
//!
//! | file | what it holds |
//! |---|---|
//! | [`chain`] | chains of maps |
//! | [`fan`] | results of tasks of a pool, put together |
//! | [`first`] | the first of several results, and timeouts |
//! | [`alone`] | work that one thread does alone |
//! | [`abroad`] | the same, asked of Java |
//!
//! Peers are written as their users write them. Java's `CompletableFuture` does the same as ours. A future of Rust's is a
//! value that does nothing until it is polled: a chain of them is one thing that is polled from its end, by one task, and has
//! one reader; so it can do less, and its rows are the price of what a completable can do beside. A loop of stages of one
//! type each needs a box for each stage there; a chain whose length is known when it is compiled does not, and then costs
//! next to nothing.
//!
//! Where there is no pool all is done by one thread, and what is complete is not waited for. CPU time of Java is that of all
//! threads of its process, with its compiler and its collector; ours is without the thread of the timer, which all clocks of
//! a process share.

pub mod abroad;
pub mod alone;
pub mod chain;
pub mod fan;
pub mod first;
#[cfg(test)]
mod tests;

use crate::figure::Figure;
use crate::harness::{Candidate, Sample, Standing, Suite, Workload};
use crate::peers::pool::hand_rolled::{HandRolled, Kanal};
use crate::peers::pool::rayon::Rayon;
use abroad::Java;
use anyhow::{Result, bail};
use chain::Chain;
use fan::{Fans, Requests};

/// The suite.
pub const SUITE: Suite = Suite {
    name: "future",
    about: "what it costs to compose results that are not there yet",
    workloads: || WORKS.map(workload).into(),
    notes: |_| {
        let mut notes = abroad::notes();
        notes.dedup();
        notes
    },
};

/// What is composed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    /// A chain whose source is complete.
    ChainDone,
    /// A chain whose source is completed when the chain is there.
    ChainPending,
    /// One result of many tasks.
    All,
    /// Tasks that need the results of others.
    Fan,
    /// The first of some results.
    Any,
    /// A result beside one that never comes.
    Race,
    /// A limit, and a result in time.
    TimeOut,
    /// Many limits at the same time.
    TimeOuts,
}

/// THE table of workloads.
const WORKS: [Work; 8] = [
    Work::ChainDone,
    Work::ChainPending,
    Work::All,
    Work::Fan,
    Work::Any,
    Work::Race,
    Work::TimeOut,
    Work::TimeOuts,
];

impl Work {
    const fn name(self) -> &'static str {
        match self {
            Work::ChainDone => "chain of 1,000 maps, source done",
            Work::ChainPending => "chain of 1,000 maps, source pending",
            Work::All => "all of 10,000 tasks",
            Work::Fan => "fan-out to 8 tasks and fan-in",
            Work::Any => "any of 10",
            Work::Race => "race with what never comes",
            Work::TimeOut => "time-out set and taken back",
            Work::TimeOuts => "1,000 time-outs set and taken back",
        }
    }

    /// The word for it in an order.
    const fn word(self) -> &'static str {
        match self {
            Work::ChainDone => "chain-done",
            Work::ChainPending => "chain-pending",
            Work::All => "all",
            Work::Fan => "fan",
            Work::Any => "any",
            Work::Race => "race",
            Work::TimeOut => "timeout",
            Work::TimeOuts => "timeouts",
        }
    }

    const fn operation(self) -> &'static str {
        match self {
            Work::ChainDone | Work::ChainPending => "stage",
            Work::All => "task",
            Work::Fan => "request",
            Work::Any => "any",
            Work::Race => "race",
            Work::TimeOut | Work::TimeOuts => "time-out",
        }
    }

    const fn is_chain(self) -> bool {
        matches!(self, Work::ChainDone | Work::ChainPending)
    }
}

/// A candidate, and the kinds of work that it is asked for.
struct Entry {
    name: &'static str,
    standing: Standing,
    fits: fn(Work) -> bool,
    run: Runner,
}

#[derive(Clone, Copy)]
enum Runner {
    Here(fn(Work, u64) -> Result<Sample>),
    Java(Java),
}

/// THE table of candidates.
const ENTRIES: &[Entry] = &[
    chain::<chain::Millpond>(Standing::Ours),
    requests::<fan::OnForkJoin>(Standing::Ours),
    requests::<fan::OnThreadPool>(Standing::Reference {
        because: "it is our other pool",
    }),
    first("millpond", Standing::Ours, is_first, first::millpond),
    java(Java::OF_THE_MACHINE),
    java(Java::OF_25),
    chain::<chain::Boxed>(Standing::Peer),
    chain::<chain::SharedMaps>(Standing::Peer),
    chain::<chain::Hops>(Standing::Peer),
    requests::<fan::Tokio>(Standing::Peer),
    requests::<fan::Futures>(Standing::Peer),
    fans::<fan::TokioJoinSet>(),
    fans::<fan::WithOneshot<HandRolled<Kanal>>>(),
    fans::<fan::WithOneshot<Rayon>>(),
    first(
        "futures select",
        Standing::Peer,
        |work| matches!(work, Work::Any | Work::Race),
        first::select_futures,
    ),
    first(
        "futures FuturesUnordered",
        Standing::Peer,
        |work| work == Work::Any,
        first::unordered,
    ),
    first("tokio", Standing::Peer, is_first, first::tokio),
    first(
        "async-io Timer",
        Standing::Peer,
        |work| work == Work::TimeOut,
        first::smol,
    ),
];

fn is_first(work: Work) -> bool {
    !work.is_chain() && !matches!(work, Work::All | Work::Fan)
}

const fn chain<C: Chain>(standing: Standing) -> Entry {
    Entry {
        name: C::NAME,
        standing,
        fits: Work::is_chain,
        run: Runner::Here(|work, stages| chain::round::<C>(work == Work::ChainDone, stages)),
    }
}

const fn requests<F: Requests>(standing: Standing) -> Entry {
    Entry {
        name: F::NAME,
        standing,
        fits: |work| matches!(work, Work::All | Work::Fan),
        run: Runner::Here(|work, operations| match work {
            Work::All => fan::all::<F>(operations),
            Work::Fan => fan::fan::<F>(operations),
            _ => bail!("it is not asked for {work:?}"),
        }),
    }
}

const fn fans<F: Fans>() -> Entry {
    Entry {
        name: F::NAME,
        standing: Standing::Peer,
        fits: |work| work == Work::All,
        run: Runner::Here(|_, tasks| fan::all::<F>(tasks)),
    }
}

const fn first(
    name: &'static str,
    standing: Standing,
    fits: fn(Work) -> bool,
    run: fn(Work, u64) -> Result<Sample>,
) -> Entry {
    Entry {
        name,
        standing,
        fits,
        run: Runner::Here(run),
    }
}

const fn java(java: Java) -> Entry {
    Entry {
        name: java.name,
        standing: Standing::Peer,
        fits: |_| true,
        run: Runner::Java(java),
    }
}

fn workload(work: Work) -> Workload {
    let entries = ENTRIES.iter().filter(|entry| (entry.fits)(work));
    Workload {
        suite: SUITE.name,
        name: work.name().into(),
        figures: vec![Figure::nanos(work.operation())],
        most_operations: u64::MAX,
        stretch: 1,
        planned: None,
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
        counts_allocations: matches!(runner, Runner::Here(_)),
        run: Box::new(move |operations| match runner {
            Runner::Here(run) => run(work, operations),
            Runner::Java(java) => java.run(work, operations),
        }),
    }
}
