//! How much memory does a queued task take, and how much is kept when all have run?
//!
//! All workers are kept busy and a million tasks are queued (with `--quick` a hundred thousand), each a closure of two
//! words. What the process has of the machine's memory (see [`crate::memory`]) is read before, with all of them queued,
//! and when all have run; the pool is still open then. Each turn has a process of its own, in which nothing else has
//! happened.
//!
//! What is kept is shown and not judged: most of it is the allocator's, which gives back memory when it likes, and keeps
//! it for the next who asks.

use crate::figure::{Figure, Goal};
use crate::harness::{Candidate, Planned, Sample, Settings, Standing, Suite, Workload};
use crate::memory::{self, Memory};
use crate::peers::guest::{Order, own};
use crate::peers::pool::hand_rolled::{HandRolled, Kanal, StdMpsc};
use crate::peers::pool::rusty_pool::RustyPool;
use crate::peers::pool::{Pool, Queue, WORKERS};
use crate::tally::Tally;
use crate::usage::Usage;
use crate::workloads::field::{self, Visitor};
use anyhow::{Context, Result, ensure};
use std::sync::mpsc;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The suite.
pub const SUITE: Suite = Suite {
    name: "footprint",
    about: "the memory of a queued task, and what is kept when all have run",
    workloads: || vec![workload()],
    notes: |_| Vec::new(),
};

/// The word for it in an order.
pub const WORD: &str = "queued";

/// Resident memory hardly differs from turn to turn, so few will do.
const STRETCH: u32 = 4;

fn workload() -> Workload {
    Workload {
        suite: SUITE.name,
        name: "a million queued tasks (quick: 100,000)".into(),
        figures: vec![
            Figure::bytes("task"),
            Figure {
                name: "kept when all have run",
                goal: Goal::Shown,
                ..Figure::kept_bytes("task", 0.0)
            },
        ],
        most_operations: u64::MAX,
        stretch: STRETCH,
        planned: Some(Planned::by(|time| Ok(tasks(time)))),
        point: None,
        difference: None,
        candidates: all(&InItsOwnProcess),
    }
}

fn tasks(round_time: Duration) -> u64 {
    match round_time / STRETCH {
        time if time >= Settings::FULL.round_time => 1_000_000,
        time if time >= Settings::QUICK.round_time => 100_000,
        _ => 2_000,
    }
}

fn all<V: Visitor>(visitor: &V) -> Vec<V::Found> {
    let mut found = field::visit(visitor);
    found.push(visitor.visit::<HandRolled<Kanal>>(Standing::Peer));
    found.push(visitor.visit::<HandRolled<StdMpsc>>(Standing::Peer));
    found.push(visitor.visit::<RustyPool>(Standing::Peer));
    found
}

struct InItsOwnProcess;

impl Visitor for InItsOwnProcess {
    type Found = Candidate;

    fn visit<P: Pool + 'static>(&self, standing: Standing) -> Candidate {
        Candidate {
            name: P::NAME,
            standing,
            counts_allocations: false,
            run: Box::new(|tasks| {
                own::start()?.run(&Order {
                    work: WORD,
                    executor: &word::<P>(),
                    producers: 1,
                    operations: tasks,
                    warm_up_millis: 0,
                })
            }),
        }
    }
}

/// An order is words with spaces between them.
fn word<P: Pool>() -> String {
    P::NAME.replace(' ', "-")
}

/// Does what is ordered, in this process.
///
/// # Errors
///
/// If there is no such candidate here, or it does not do it.
pub fn obey(order: &Order<'_>) -> Result<Sample> {
    struct Named<'a>(&'a str);
    impl Visitor for Named<'_> {
        type Found = Option<fn(u64) -> Result<Sample>>;

        fn visit<P: Pool + 'static>(&self, _standing: Standing) -> Self::Found {
            (word::<P>() == self.0).then_some(queued::<P> as fn(u64) -> Result<Sample>)
        }
    }
    let run = all(&Named(order.executor)).into_iter().flatten().next();
    let run = run.with_context(|| format!("there is no executor {}", order.executor))?;
    run(order.operations)
}

/// Queues tasks behind workers that are busy, and then lets them run.
fn queued<P: Pool>(tasks: u64) -> Result<Sample> {
    let pool = P::open(Queue::Unbounded)?;
    let (tally, start) = (Tally::take(), Instant::now());
    let busy = keep_busy(&pool)?;
    let empty = resident()?;
    for number in 1..=tasks {
        pool.run(move || tally.count(number));
    }
    let full = resident()?;
    ensure!(
        tally.tasks() == 0,
        "a task ran although every worker was busy"
    );
    drop(busy);
    tally.wait_for(tasks);
    let after = resident()?;
    let elapsed = start.elapsed();
    pool.close();
    tally.check(tasks)?;
    Ok(Sample {
        operations: tasks,
        elapsed,
        usage: Usage::default(),
        quantiles: None,
        rush: None,
        memory: Some(Memory {
            resident: full.saturating_sub(empty),
            kept: after.saturating_sub(empty),
        }),
        by_workers: None,
    })
}

fn resident() -> Result<u64> {
    memory::resident().context("there is no /proc/self/smaps_rollup")
}

/// How long a worker may take to begin.
const PATIENCE: Duration = Duration::from_secs(10);

/// Keeps all workers busy until what is returned is dropped.
fn keep_busy<P: Pool>(pool: &P) -> Result<mpsc::Sender<()>> {
    let (open, gate) = mpsc::channel::<()>();
    let gate = Arc::new(Mutex::new(gate));
    let (begun, has_begun) = mpsc::channel();
    for _ in 0..WORKERS {
        let (gate, begun) = (Arc::clone(&gate), begun.clone());
        pool.run(move || {
            let _ = begun.send(());
            // Nothing is ever sent: this ends when the sender is gone.
            let _ = gate.lock().unwrap_or_else(PoisonError::into_inner).recv();
        });
        // One by one, so that no worker has two of them in a queue of its own.
        let begun = has_begun.recv_timeout(PATIENCE);
        begun.context("a worker does not begin a task although it has nothing else to do")?;
    }
    Ok(open)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_candidate_queues_its_tasks_and_runs_them() {
        struct Names;
        impl Visitor for Names {
            type Found = String;

            fn visit<P: Pool + 'static>(&self, _standing: Standing) -> String {
                word::<P>()
            }
        }
        for executor in all(&Names) {
            let order = format!("run {WORD} {executor} 1 500 0");
            let sample = obey(&Order::parse(&order).unwrap());
            let sample = sample.unwrap_or_else(|error| panic!("{executor}: {error:#}"));
            assert_eq!(sample.operations, 500, "{executor}");
            assert!(sample.memory.is_some(), "{executor}");
        }
    }

    #[test]
    fn an_order_for_an_unknown_candidate_is_an_error() {
        let error = obey(&Order::parse("run queued pond 1 5 0").unwrap()).unwrap_err();
        assert_eq!(error.to_string(), "there is no executor pond");
    }

    #[test]
    fn a_quick_run_has_fewer_tasks_and_a_warm_up_next_to_none() {
        let rounds = [
            Settings::FULL.round_time,
            Settings::QUICK.round_time,
            Duration::from_millis(1),
        ];
        let numbers = rounds.map(|time| tasks(time * STRETCH));
        assert_eq!(numbers, [1_000_000, 100_000, 2_000]);
    }
}
