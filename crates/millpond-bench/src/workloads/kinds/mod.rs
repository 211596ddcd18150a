//! What do the other kinds of pools cost: by priority, by hand-off, and in scopes?
//!
//! | row | ours | peers |
//! |---|---|---|
//! | by priority | `Queue::by_priority`, which also ages | threads and a heap behind a lock; Java with a `PriorityBlockingQueue` |
//! | hand-off | `Queue::hand_off`; who finds no idle worker waits | channels of capacity 0; Java with a `SynchronousQueue` |
//! | scopes | `pool.scope`: tasks that borrow | `rayon` scopes, `std::thread::scope` |
//!
//! Tasks are as tiny as in the suite [`pool`](super::pool). Those of a scope add to what the caller owns.

mod priority;
mod scopes;

use crate::figure::Figure;
use crate::harness::{Candidate, Sample, Standing, Suite, Workload};
use crate::peers::pool::hand_rolled::{Crossbeam, Flume, HandRolled, Kanal, StdMpsc};
use crate::peers::pool::{Pool, Queue, WhenFull};
use crate::workloads::pool::abroad::{self, Executor};
use crate::workloads::pool::{Opened, fire};
use anyhow::Result;
use millpond::executor::{ExecutorExt, Lifecycle};
use millpond::pool::{self, RejectionPolicy, ThreadPool};
use millpond::task::TaskHandle;
use std::time::Duration;

/// The suite.
pub const SUITE: Suite = Suite {
    name: "kinds",
    about: "what tasks cost that go by priority, by hand-off, or in a scope",
    workloads: || vec![by_priority(), hand_off(), scopes::workload()],
    notes: |_| abroad::notes(),
};

/// As in the suite `pool`: the queue may grow by a whole round.
const MOST_TASKS: u64 = 1_000_000;

fn row(name: &str, most_operations: u64, candidates: Vec<Candidate>) -> Workload {
    Workload {
        suite: SUITE.name,
        name: name.into(),
        figures: vec![Figure::nanos("task")],
        most_operations,
        stretch: 1,
        planned: None,
        point: None,
        difference: None,
        candidates,
    }
}

fn by_priority() -> Workload {
    let queue = Queue::Unbounded;
    row(
        "fire and forget by priority, 1 producer",
        // A heap gets slower with every task that waits in it.
        MOST_TASKS / 5,
        vec![
            candidate::<priority::Millpond>(queue, Standing::Ours),
            candidate::<priority::Heap>(queue, Standing::Peer),
            guest(Executor::JAVA_PRIORITY, "fire"),
        ],
    )
}

fn hand_off() -> Workload {
    let queue = Queue::Bounded(0, WhenFull::Wait);
    row(
        "hand-off, blocking, 1 producer",
        MOST_TASKS,
        vec![
            candidate::<HandOff>(queue, Standing::Ours),
            candidate::<HandRolled<Crossbeam>>(queue, Standing::Peer),
            candidate::<HandRolled<Kanal>>(queue, Standing::Peer),
            candidate::<HandRolled<Flume>>(queue, Standing::Peer),
            candidate::<HandRolled<StdMpsc>>(queue, Standing::Peer),
            guest(Executor::JAVA_HAND_OFF, "blocking"),
        ],
    )
}

fn candidate<P: Pool + 'static>(queue: Queue, standing: Standing) -> Candidate {
    Candidate {
        name: P::NAME,
        standing,
        counts_allocations: true,
        run: Box::new(move |tasks| round::<P>(queue, tasks)),
    }
}

fn guest(executor: Executor, work: &'static str) -> Candidate {
    Candidate {
        name: executor.name,
        standing: Standing::Peer,
        counts_allocations: false,
        run: Box::new(move |tasks| executor.order(work, 1, tasks)),
    }
}

fn round<P: Pool>(queue: Queue, tasks: u64) -> Result<Sample> {
    fire::bring(Opened::<P>::new(queue)?, 1, tasks, || ())
}

/// Longer than any round: who waits for a worker gets one.
const PATIENCE: Duration = Duration::from_secs(3_600);

const REFUSED: &str = "an open pool of the bench refuses nothing";

/// Ours, whose queue holds nothing.
#[derive(Debug)]
struct HandOff(ThreadPool);

impl Pool for HandOff {
    const NAME: &'static str = "millpond";
    type Handle = TaskHandle<u64>;

    fn with_workers(workers: usize, _holds_nothing: Queue) -> Result<Self> {
        let builder = ThreadPool::builder("bench").core(workers).max(workers);
        let builder = builder.queue(pool::Queue::hand_off());
        let pool = builder
            .rejection(RejectionPolicy::Block(PATIENCE))
            .build()?;
        pool.prestart_all_core()?;
        Ok(HandOff(pool))
    }

    fn run<F: FnOnce() + Send + 'static>(&self, f: F) {
        self.0.execute(f).expect(REFUSED);
    }

    fn submit<F: FnOnce() -> u64 + Send + 'static>(&self, f: F) -> Self::Handle {
        self.0.submit(f).expect(REFUSED)
    }

    fn join(&self, handle: Self::Handle) -> u64 {
        handle.join().expect("a task of the bench does not panic")
    }

    fn close(self) {
        self.0
            .close()
            .expect("no task of the bench closes its pool");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::harness::Absent;

    #[test]
    fn every_candidate_of_every_kind_runs_its_tasks() {
        for workload in (SUITE.workloads)() {
            for candidate in &workload.candidates {
                let name = format!("{}: {}", workload.name, candidate.name);
                match (candidate.run)(30) {
                    Ok(sample) => assert!(sample.operations >= 30, "{name}"),
                    Err(error) if error.is::<Absent>() => eprintln!("skipped: {name}: {error}"),
                    Err(error) => panic!("{name}: {error:#}"),
                }
            }
        }
    }
}
