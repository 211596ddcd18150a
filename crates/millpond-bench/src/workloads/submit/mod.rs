//! How long does `submit` itself take, and what if the closure is large?
//!
//! A caller that must not be held up, such as an event loop, asks for the slowest of a thousand submits, not for the
//! mean. What makes one slow: a lock that somebody holds, memory that has to grow, a thread that has to be woken.
//!
//! - **to a busy pool**: one after the other, while the workers work off what came before.
//! - **to a sleeping pool**: each after a pause in which the workers have fallen asleep, so that each wakes one.
//! - **closures of 256 bytes**: the whole cost of a task, as in the suite [`pool`](super::pool), which has closures of two
//!   words. A large one has to be copied, and a pool that keeps small ones in place may have to allocate.
//!
//! A time includes one reading of the clock, about 25 ns, for all alike.

use crate::figure::{Better, Figure, Goal};
use crate::harness::{Candidate, Planned, Sample, Standing, Suite, Workload};
use crate::peers::pool::hand_rolled::{HandRolled, Kanal, StdMpsc};
use crate::peers::pool::rusty_pool::RustyPool;
use crate::peers::pool::{Pool, Queue};
use crate::stats::Quantiles;
use crate::tally::Tally;
use crate::usage::Usage;
use crate::workloads::field::{self, Visitor};
use crate::workloads::pool::handles::{nanos, work_for};
use crate::workloads::pool::{Opened, fire};
use anyhow::Result;
use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The suite.
pub const SUITE: Suite = Suite {
    name: "submit",
    about: "how long a submit takes, and what a task costs whose closure is large",
    workloads: || WORKS.map(workload).into(),
    notes: |_| Vec::new(),
};

/// Long enough for a pool to fall asleep.
const PAUSE: Duration = Duration::from_micros(100);

/// Words that a large closure carries. With its number and its tally it has 256 bytes.
const WORDS: usize = 30;

/// No round has more tasks.
const MOST_TASKS: u64 = 500_000;

/// What is submitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Work {
    /// Tasks without a pause.
    Busy,
    /// Tasks, each after a pause.
    Asleep,
    /// Large closures.
    Large,
}

const WORKS: [Work; 3] = [Work::Busy, Work::Asleep, Work::Large];

impl Work {
    fn name(self) -> &'static str {
        match self {
            Work::Busy => "submit alone, to a busy pool",
            Work::Asleep => "submit alone, to a sleeping pool",
            Work::Large => "fire and forget, closures of 256 bytes, 1 producer",
        }
    }

    fn figures(self) -> Vec<Figure> {
        if self == Work::Large {
            return vec![Figure::nanos("task")];
        }
        type Of = fn(&Quantiles) -> Option<u64>;
        let quantile = |name, goal, of: Of| Figure {
            name,
            unit: "ns".into(),
            of: Arc::new(move |sample| Some(of(sample.quantiles.as_ref()?)? as f64)),
            better: Better::Less,
            goal,
        };
        vec![
            quantile("p50", Goal::BestPeer, |all| Some(all.p50())),
            quantile("p99", Goal::BestPeer, |all| Some(all.p99())),
            // Here the tail is the question.
            quantile("p99.9", Goal::BestPeer, Quantiles::p999),
            quantile("slowest", Goal::Shown, Quantiles::max),
        ]
    }
}

fn workload(work: Work) -> Workload {
    let mut candidates = field::visit(&work);
    candidates.push(work.visit::<HandRolled<Kanal>>(Standing::Peer));
    candidates.push(work.visit::<HandRolled<StdMpsc>>(Standing::Peer));
    candidates.push(work.visit::<RustyPool>(Standing::Peer));
    let arrivals = |time: Duration| {
        let submits = (time * 3).as_nanos() / PAUSE.as_nanos();
        Ok((submits as u64).max(10))
    };
    Workload {
        suite: SUITE.name,
        name: work.name().into(),
        figures: work.figures(),
        most_operations: MOST_TASKS,
        stretch: 1,
        planned: (work == Work::Asleep).then(|| Planned::by(arrivals)),
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
            counts_allocations: work == Work::Large,
            run: Box::new(move |tasks| match work {
                Work::Busy => submits::<P>(None, tasks),
                Work::Asleep => submits::<P>(Some(PAUSE), tasks),
                Work::Large => large::<P>(tasks),
            }),
        }
    }
}

/// Times every submit.
fn submits<P: Pool>(pause: Option<Duration>, tasks: u64) -> Result<Sample> {
    let opened = Opened::<P>::new(Queue::Unbounded)?;
    let (pool, tally) = (&opened.pool, Tally::take());
    let mut times = Vec::with_capacity(tasks as usize);
    let mut paused = Duration::ZERO;
    let (elapsed, mut by_the_caller) = Usage::during(|| {
        let begun = Instant::now();
        for number in 1..=tasks {
            paused += pause.map(work_for).unwrap_or_default();
            let start = Instant::now();
            pool.run(move || tally.count(number));
            times.push(nanos(start.elapsed()));
        }
        tally.wait_for(tasks);
        begun.elapsed()
    });
    by_the_caller.cpu = by_the_caller.cpu.map(|cpu| cpu.saturating_sub(paused));
    let by_the_pool = opened.close();
    tally.check(tasks)?;
    Ok(Sample {
        operations: tasks,
        elapsed,
        usage: [by_the_caller, by_the_pool].into_iter().sum(),
        quantiles: Quantiles::of(&times),
        rush: None,
        memory: None,
        by_workers: None,
    })
}

/// Brings closures that carry much, and look at the last of it.
fn large<P: Pool>(tasks: u64) -> Result<Sample> {
    let load: [u64; WORDS] = std::array::from_fn(|word| word as u64);
    let work = move || {
        let last = black_box(&load)[WORDS - 1];
        assert_eq!(last, WORDS as u64 - 1, "what the closure carries is gone");
    };
    fire::bring(Opened::<P>::new(Queue::Unbounded)?, 1, tasks, work)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_candidate_runs_what_was_submitted_and_every_submit_has_a_time() {
        for work in WORKS {
            for candidate in workload(work).candidates {
                let name = format!("{}: {}", work.name(), candidate.name);
                let sample =
                    (candidate.run)(20).unwrap_or_else(|error| panic!("{name}: {error:#}"));
                assert_eq!(sample.operations, 20, "{name}");
                assert_eq!(sample.quantiles.is_some(), work != Work::Large, "{name}");
            }
        }
    }

    #[test]
    fn times_are_told_in_nanoseconds_and_the_tail_is_judged() {
        let figures = Work::Busy.figures();
        let sample = Sample {
            quantiles: Quantiles::of(&[70]),
            ..submits::<HandRolled<Kanal>>(None, 1).unwrap()
        };
        for figure in &figures {
            assert_eq!(figure.unit, "ns");
            assert_eq!((figure.of)(&sample), Some(70.0));
        }
        let judged = figures
            .iter()
            .filter(|figure| figure.goal == Goal::BestPeer);
        let names: Vec<_> = judged.map(|figure| figure.name).collect();
        assert_eq!(names, ["p50", "p99", "p99.9"]);
    }

    #[test]
    fn a_large_closure_has_256_bytes() {
        let (load, tally, number) = ([0_u64; WORDS], Tally::take(), 1_u64);
        let closure = move || {
            black_box(load);
            tally.count(number);
        };
        assert_eq!(size_of_val(&closure), 256);
        closure();
        tally.check(1).unwrap();
    }
}
