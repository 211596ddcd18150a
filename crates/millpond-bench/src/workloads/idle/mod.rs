//! What does a pool use that had work and has none?
//!
//! A pool that polls for work takes CPU time from others, and keeps a laptop from
//! sleeping. Two figures: the CPU time of the pool's own threads, which must be below [`LIMIT`], and
//! how often they woke up. With [`CROWD`] workers the cost of each of them shows as many times
//! over.
//!
//! An operation is a millisecond of nothing. Only threads of the pool are counted.

use crate::figure::Figure;
use crate::harness::{Candidate, Standing, Suite, Workload};
use crate::peers::pool::{Pool, Queue, WORKERS};
use crate::workloads::field::{self, Visitor};
use crate::workloads::pool::{self, Opened, Work};

/// The suite.
pub const SUITE: Suite = Suite {
    name: "idle",
    about: "what a pool uses that has nothing to do",
    workloads,
    notes: |_| pool::abroad::notes(),
};

/// Everything that a pool without a task may use of a CPU, in percent.
pub const LIMIT: f64 = 0.1;

/// Many workers, whose costs add up.
pub const CROWD: usize = 64;

fn workloads() -> Vec<Workload> {
    vec![pair(), crowd()]
}

fn figures() -> Vec<Figure> {
    vec![Figure::cpu_percent(LIMIT), Figure::wake_ups()]
}

/// All candidates of the suite `pool`.
fn pair() -> Workload {
    Workload {
        suite: SUITE.name,
        name: format!("{WORKERS} workers"),
        figures: figures(),
        ..pool::workload(Work::Idle)
    }
}

/// Those of the field, with many workers.
fn crowd() -> Workload {
    Workload {
        name: format!("{CROWD} workers"),
        candidates: field::visit(&Crowd),
        ..pair()
    }
}

struct Crowd;

impl Visitor for Crowd {
    type Found = Candidate;

    fn visit<P: Pool + 'static>(&self, standing: Standing) -> Candidate {
        let run = |millis| {
            let opened = Opened::<P>::with_workers(CROWD, Queue::Unbounded)?;
            pool::idle::leave_alone(opened, millis)
        };
        Candidate {
            name: P::NAME,
            standing,
            // A pool that does nothing allocates nothing, and to see that takes seconds.
            counts_allocations: false,
            run: Box::new(run),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::harness::Absent;
    use crate::peers::pool::millpond::Millpond;

    #[test]
    fn every_candidate_is_left_alone_for_as_long_as_it_was_asked() {
        for workload in workloads() {
            for candidate in &workload.candidates {
                let name = candidate.name;
                let sample = match (candidate.run)(3) {
                    Ok(sample) => sample,
                    Err(error) if error.is::<Absent>() => {
                        eprintln!("skipped: {name}: {error}");
                        continue;
                    }
                    Err(error) => panic!("{name}: {error:#}"),
                };
                assert_eq!(sample.operations, 3, "{name}");
                assert!(sample.elapsed.as_millis() >= 3, "{name}");
            }
        }
    }

    #[test]
    fn many_workers_are_really_there() {
        let opened = Opened::<Millpond>::with_workers(CROWD, Queue::Unbounded);
        let threads = opened.unwrap().threads();
        assert!(
            threads.is_none_or(|threads| threads >= CROWD),
            "{threads:?}"
        );
    }

    #[test]
    fn cpu_time_has_a_limit_and_wake_ups_are_shown() {
        let names: Vec<_> = workloads().into_iter().map(|one| one.name).collect();
        assert_eq!(names, ["2 workers", "64 workers"]);
        let titles: Vec<_> = figures().iter().map(|figure| figure.title("x")).collect();
        assert_eq!(titles, ["x", "x: wake-ups"]);
    }
}
