//! What does a task cost a pool that has many more workers than there are CPUs?
//!
//! Pools for tasks that block have dozens of threads, and most of the time most of them sleep. Here they have
//! [`WORKERS`](CROWD), the tasks are as tiny as in the suite [`pool`](super::pool), and the question is whether the ones
//! that have nothing to do get into the way: by being woken in vain, by looking out for work, or by a lock that all want.

use crate::figure::Figure;
use crate::harness::{Candidate, Sample, Standing, Suite, Workload};
use crate::peers::pool::hand_rolled::{HandRolled, Kanal};
use crate::peers::pool::rusty_pool::RustyPool;
use crate::peers::pool::{Pool, Queue};
use crate::workloads::field::{self, Visitor};
use crate::workloads::pool::{Opened, fire, handles};
use anyhow::Result;

/// The suite.
pub const SUITE: Suite = Suite {
    name: "crowd",
    about: "what a task costs a pool of 64 workers, whatever the number of CPUs",
    workloads: || WORKS.map(workload).into(),
    notes: |_| Vec::new(),
};

/// So many workers.
pub const CROWD: usize = 64;

/// As in the suite `pool`: the queue may grow by a whole round.
const MOST_TASKS: u64 = 1_000_000;

/// What they do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Work {
    /// So many producers bring tasks, and wait for none of them.
    Fire(usize),
    /// A caller brings a task and waits for it.
    Trip,
}

const WORKS: [Work; 3] = [Work::Fire(1), Work::Fire(4), Work::Trip];

impl Work {
    fn name(self) -> String {
        match self {
            Work::Fire(1) => "fire and forget, 1 producer".into(),
            Work::Fire(producers) => format!("fire and forget, {producers} producers"),
            Work::Trip => "round trip, warm".into(),
        }
    }
}

fn workload(work: Work) -> Workload {
    let mut candidates = field::visit(&work);
    candidates.push(work.visit::<HandRolled<Kanal>>(Standing::Peer));
    candidates.push(work.visit::<RustyPool>(Standing::Peer));
    Workload {
        suite: SUITE.name,
        name: work.name(),
        figures: match work {
            Work::Fire(_) => vec![Figure::nanos("task")],
            Work::Trip => Figure::quantiles(),
        },
        most_operations: if work == Work::Trip {
            20_000
        } else {
            MOST_TASKS
        },
        stretch: 1,
        planned: None,
        point: None,
        difference: None,
        candidates,
    }
}

impl Visitor for Work {
    type Found = Candidate;

    fn visit<P: Pool + 'static>(&self, standing: Standing) -> Candidate {
        let work = *self;
        Candidate {
            name: P::NAME,
            standing,
            // Those of a task are in the suite `pool`.
            counts_allocations: false,
            run: Box::new(move |operations| round::<P>(work, operations)),
        }
    }
}

fn round<P: Pool>(work: Work, operations: u64) -> Result<Sample> {
    let opened = Opened::<P>::with_workers(CROWD, Queue::Unbounded)?;
    match work {
        Work::Fire(producers) => fire::bring(opened, producers, operations, || ()),
        Work::Trip => handles::trips_of(opened, None, false, operations),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_candidate_runs_its_tasks_with_so_many_workers() {
        for work in WORKS {
            for candidate in workload(work).candidates {
                let name = format!("{}: {}", work.name(), candidate.name);
                let sample = (candidate.run)(8).unwrap_or_else(|error| panic!("{name}: {error:#}"));
                assert_eq!(sample.operations, 8, "{name}");
            }
        }
    }
}
