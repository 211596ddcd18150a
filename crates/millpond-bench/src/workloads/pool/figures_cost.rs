//! What do the figures cost that a pool keeps of every task?
//!
//! The same pool with them and without, turn by turn, at work that is nothing but tasks; and the
//! difference between the two, which must be below [`MOST`]. The pool without them does less than the
//! others of this suite, so it is shown for reference. Nothing of this is asked of the peers: none of
//! them keeps such figures.

use super::{MOST_TASKS, SUITE, fire, handles};
use crate::figure::{Figure, Goal};
use crate::harness::{Candidate, Difference, Sample, Standing, Workload};
use crate::peers::pool::millpond::{Millpond, WithoutMetrics};
use crate::peers::pool::{Pool, Queue};
use anyhow::Result;

/// What figures may cost for each task, in nanoseconds.
pub const MOST: f64 = 25.0;

/// What is done with and without them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Work {
    /// So many producers bring tasks, and wait for none of them.
    Fire(usize),
    /// A caller brings a thousand tasks, then waits for each.
    JoinAll,
}

/// The workloads.
pub(super) fn workloads() -> Vec<Workload> {
    let works = [Work::Fire(1), Work::Fire(4), Work::JoinAll];
    works.map(workload).into()
}

fn workload(work: Work) -> Workload {
    let name = match work {
        Work::Fire(1) => "1 producer".into(),
        Work::Fire(producers) => format!("{producers} producers"),
        Work::JoinAll => format!("submit {}, join all", handles::BATCH),
    };
    let without = Standing::Reference {
        because: "it keeps no figures, to show what they cost",
    };
    Workload {
        suite: SUITE.name,
        name: format!("what figures cost, {name}"),
        figures: vec![Figure {
            goal: Goal::Shown,
            ..Figure::nanos("task")
        }],
        most_operations: MOST_TASKS,
        stretch: 1,
        planned: None,
        point: None,
        difference: Some(Difference {
            with: Millpond::<true>::NAME,
            without: WithoutMetrics::NAME,
            below: MOST,
        }),
        candidates: vec![
            candidate::<Millpond>(work, Standing::Ours),
            candidate::<WithoutMetrics>(work, without),
        ],
    }
}

fn candidate<P: Pool>(work: Work, standing: Standing) -> Candidate {
    Candidate {
        name: P::NAME,
        standing,
        counts_allocations: true,
        run: Box::new(move |tasks| run::<P>(work, tasks)),
    }
}

fn run<P: Pool>(work: Work, tasks: u64) -> Result<Sample> {
    match work {
        Work::Fire(producers) => fire::run::<P>(Queue::Unbounded, producers, tasks),
        Work::JoinAll => handles::join_all::<P>(tasks),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::harness::Settings;
    use crate::progress::Silent;
    use std::time::Duration;

    #[test]
    fn every_work_is_done_with_figures_and_without_and_has_a_row_for_the_difference() {
        let settings = Settings {
            rounds: 1,
            round_time: Duration::from_micros(100),
        };
        for workload in workloads() {
            let rows = workload.measure(settings, None, &Silent).unwrap().rows;
            let names: Vec<_> = rows.iter().map(|row| row.candidate).collect();
            let expected = ["millpond", "millpond, without figures", "millpond"];
            assert_eq!(names, expected, "{}", workload.name);
            let [with, without, difference] = &rows[..] else {
                panic!("{rows:?}")
            };
            assert_eq!(with.operations, without.operations);
            assert!(!with.has_goal() && !without.has_goal());
            assert_eq!(difference.limit, Some(25.0));
            assert_eq!(difference.rounds, Difference::MORE_ROUNDS);
            assert_eq!(difference.unit, "ns/task");
            assert!(difference.workload.ends_with(": difference"));
        }
    }
}
