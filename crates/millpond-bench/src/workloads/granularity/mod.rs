//! How long must a task be for a pool to pay?
//!
//! One caller submits tasks to a pool of two workers, and each task is real work of a known length
//! ([`crate::spin`]), from a hundred nanoseconds to a millisecond. The figure is *efficiency*: the work
//! that was asked for, by the time that two CPUs had for it. A pool of perfect workers on a perfect
//! machine has 100 %. The rest went into handing over, into waiting, and into what the machine
//! itself cannot do.
//!
//! Two candidates have no pool, and say what the machine can do:
//! - **in the caller** runs each task in the submitting thread. It has half of two CPUs at best. A pool that
//!   has less does not pay: the notes say from which length on it does.
//! - **two threads, no pool** get half of the tasks each, before they start. What they miss of 100 % is
//!   the machine's: two CPUs may be two halves of one core, and others may have their part of it.
//!
//! With short tasks the caller is as busy as the workers, and on two CPUs it takes its time from them:
//! the curve says what a caller and a pool of two do with such a machine, not what two workers could do
//! on a larger one.

use crate::crew::{self, Member};
use crate::figure::{Figure, Goal};
use crate::harness::{Candidate, Sample, Standing, Suite, Workload};
use crate::peers::pool::{Pool, Queue, WORKERS};
use crate::report::{Point, Row};
use crate::spin::Spin;
use crate::tally::Tally;
use crate::workloads::field::{self, Visitor};
use crate::workloads::pool::{Opened, fire};
use anyhow::Result;
use std::time::Duration;

/// The suite.
pub const SUITE: Suite = Suite {
    name: "granularity",
    about: "how long a task must be for a pool to pay",
    workloads,
    notes,
};

/// How long tasks are, in nanoseconds.
const LENGTHS: [u64; 9] = [
    100, 300, 1_000, 3_000, 10_000, 30_000, 100_000, 300_000, 1_000_000,
];

/// As in the suite `pool`: the queue may grow by a whole round.
const MOST_TASKS: u64 = 1_000_000;

const CALLER: &str = "in the caller";
const NO_POOL: &str = "two threads, no pool";

fn workloads() -> Vec<Workload> {
    LENGTHS.map(Duration::from_nanos).map(workload).into()
}

fn workload(length: Duration) -> Workload {
    let mut candidates = field::visit(&Bring { length });
    candidates.push(reference(
        CALLER,
        "it is one thread and no pool, which is what a pool is to beat",
        move |tasks| alone(length, 1, tasks),
    ));
    candidates.push(reference(
        NO_POOL,
        "its tasks are shared out beforehand, which is what the machine can do",
        move |tasks| alone(length, WORKERS, tasks),
    ));
    Workload {
        suite: SUITE.name,
        name: format!("tasks of {length:?}"),
        figures: vec![Figure::efficiency(WORKERS, length, Goal::BestPeer)],
        most_operations: MOST_TASKS,
        stretch: 1,
        planned: None,
        point: Some(Point {
            curve: "efficiency against task length".into(),
            axis: "task length, µs",
            x: length.as_nanos() as f64 / 1e3,
        }),
        difference: None,
        candidates,
    }
}

fn reference(
    name: &'static str,
    because: &'static str,
    run: impl Fn(u64) -> Result<Sample> + 'static,
) -> Candidate {
    Candidate {
        name,
        standing: Standing::Reference { because },
        counts_allocations: true,
        run: Box::new(run),
    }
}

/// Tasks of this length, submitted by one caller.
struct Bring {
    length: Duration,
}

impl Visitor for Bring {
    type Found = Candidate;

    fn visit<P: Pool + 'static>(&self, standing: Standing) -> Candidate {
        let length = self.length;
        let run = move |tasks| {
            let spin = Spin::of(length);
            let opened = Opened::<P>::new(Queue::Unbounded)?;
            fire::bring(opened, 1, tasks, move || spin.work())
        };
        Candidate {
            name: P::NAME,
            standing,
            counts_allocations: true,
            run: Box::new(run),
        }
    }
}

/// The same tasks, shared out among so many threads before they start.
fn alone(length: Duration, threads: usize, tasks: u64) -> Result<Sample> {
    let spin = Spin::of(length);
    let share = tasks.div_ceil(threads as u64).max(1);
    let all = share * threads as u64;
    let tally = Tally::take();
    let member = |index: u64| -> Member<'_, ()> {
        Box::new(move || {
            for number in index * share + 1..=(index + 1) * share {
                spin.work();
                tally.count(number);
            }
        })
    };
    let done = crew::run((0..threads as u64).map(member).collect());
    tally.check(all)?;
    Ok(Sample {
        operations: all,
        elapsed: done.elapsed,
        usage: done.usage,
        quantiles: None,
        rush: None,
        memory: None,
        by_workers: None,
    })
}

/// From which length on each pool is better than the caller alone.
fn notes(rows: &[Row]) -> Vec<String> {
    let mut notes = Vec::new();
    let mut pools: Vec<&str> = Vec::new();
    for row in rows.iter().filter(|row| row.standing.because.is_none()) {
        if !pools.contains(&row.candidate) {
            pools.push(row.candidate);
        }
    }
    let curve = |candidate: &str| -> Vec<(f64, f64)> {
        let own = rows.iter().filter(|row| row.candidate == candidate);
        own.filter_map(|row| Some((row.point.as_ref()?.x, row.spread.median)))
            .collect()
    };
    let caller = curve(CALLER);
    for pool in pools {
        notes.push(match crossover(&curve(pool), &caller) {
            Crossover::Always => format!("granularity: {pool} pays at every length"),
            Crossover::From(micros) => format!(
                "granularity: {pool} pays from about {} on",
                length_text(micros)
            ),
            Crossover::Never => {
                format!("granularity: {pool} pays at no length that was measured")
            }
        });
    }
    notes
}

fn length_text(micros: f64) -> String {
    if micros < 1.0 {
        format!("{:.0} ns", micros * 1e3)
    } else {
        format!("{micros:.1} µs")
    }
}

/// From where on a curve stays above another.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Crossover {
    Always,
    From(f64),
    Never,
}

/// From where on `pool` stays above `caller`, both by length. Between two points both are straight
/// lines over the logarithm of the length.
fn crossover(pool: &[(f64, f64)], caller: &[(f64, f64)]) -> Crossover {
    // How far ahead the pool is, where both are known.
    let ahead: Vec<(f64, f64)> = pool
        .iter()
        .filter_map(|&(x, value)| {
            let (_, other) = caller.iter().find(|(at, _)| *at == x)?;
            Some((x, value - other))
        })
        .collect();
    let Some(last_behind) = ahead.iter().rposition(|&(_, lead)| lead <= 0.0) else {
        return if ahead.is_empty() {
            Crossover::Never
        } else {
            Crossover::Always
        };
    };
    let Some(&(x1, lead)) = ahead.get(last_behind + 1) else {
        return Crossover::Never;
    };
    let (x0, behind) = ahead[last_behind];
    let share = -behind / (lead - behind);
    Crossover::From((x0.ln() + share * (x1.ln() - x0.ln())).exp())
}

#[cfg(test)]
mod tests;
