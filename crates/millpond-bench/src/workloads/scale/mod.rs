//! What do more workers gain, and more producers?
//!
//! Producers submit tasks, of [`TASK`] of real work each ([`crate::spin`]), to a pool without a bound, and
//! wait for none of them; the time runs until the last has run. Every number of producers meets every
//! number of workers. The figure is throughput.
//!
//! The notes have, for every pool, the universal scalability law ([`usl`]) that fits its curve over the
//! workers best: how much of it stands in its own way, and with how many workers it is at its peak.
//!
//! # What it does not say
//!
//! - The law knows nothing of CPUs. Beyond as many workers as there are CPUs, less those that
//!   producers keep busy, more workers gain nothing, and the fit takes that for contention or
//!   coherence. On a machine of few CPUs it describes the machine as much as the pool; what it is good
//!   for there is the comparison of pools on the same machine, in the same run.
//! - Three unknowns are fitted to a handful of points. The error beside them says how well; it cannot
//!   say how well the law would hold on the next larger machine.

pub mod usl;

use crate::figure::Figure;
use crate::harness::{Candidate, Standing, Suite, Workload};
use crate::peers::pool::{Pool, Queue};
use crate::report::{Point, Row};
use crate::spin::Spin;
use crate::workloads::field::{self, Visitor};
use crate::workloads::pool::{Opened, fire};
use std::time::Duration;
use usl::Law;

/// The suite.
pub const SUITE: Suite = Suite {
    name: "scale",
    about: "what more workers bring, and more producers",
    workloads,
    notes,
};

/// How long a task is: long enough for a second worker to help, and short enough for a queue to be
/// felt.
pub const TASK: Duration = Duration::from_micros(2);

/// As in the suite `pool`: the queue may grow by a whole round.
const MOST_TASKS: u64 = 1_000_000;

fn cpus() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// Up to twice as many as there are CPUs, four at least: a fit needs points on both sides of the peak.
fn worker_numbers(cpus: usize) -> Vec<usize> {
    let all = [1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128];
    let most = (2 * cpus).max(4);
    all.into_iter().filter(|&workers| workers <= most).collect()
}

/// Up to as many as there are CPUs, four at least.
fn producer_numbers(cpus: usize) -> Vec<usize> {
    let all = [1, 2, 4, 8, 16];
    let most = cpus.max(4);
    all.into_iter()
        .filter(|&producers| producers <= most)
        .collect()
}

fn workloads() -> Vec<Workload> {
    let (producers, workers) = (producer_numbers(cpus()), worker_numbers(cpus()));
    let row = |&producers: &usize| {
        let point = move |&workers: &usize| workload(Grid { producers, workers });
        workers.iter().map(point).collect::<Vec<_>>()
    };
    producers.iter().flat_map(row).collect()
}

/// So many of each.
#[derive(Clone, Copy, Debug)]
struct Grid {
    producers: usize,
    workers: usize,
}

fn workload(grid: Grid) -> Workload {
    let Grid { producers, workers } = grid;
    let many = |number: usize, what: &str| {
        let plural = if number == 1 { "" } else { "s" };
        format!("{number} {what}{plural}")
    };
    Workload {
        suite: SUITE.name,
        name: format!(
            "{}, {}",
            many(producers, "producer"),
            many(workers, "worker")
        ),
        figures: vec![Figure::thousands("tasks")],
        most_operations: MOST_TASKS,
        stretch: 1,
        planned: None,
        point: Some(Point {
            curve: format!(
                "throughput against workers, {}",
                many(producers, "producer")
            ),
            axis: "workers",
            x: workers as f64,
        }),
        difference: None,
        candidates: field::visit(&grid),
    }
}

impl Visitor for Grid {
    type Found = Candidate;

    fn visit<P: Pool + 'static>(&self, standing: Standing) -> Candidate {
        let Grid { producers, workers } = *self;
        let run = move |tasks| {
            let spin = Spin::of(TASK);
            let opened = Opened::<P>::with_workers(workers, Queue::Unbounded)?;
            fire::bring(opened, producers, tasks, move || spin.work())
        };
        Candidate {
            name: P::NAME,
            standing,
            counts_allocations: true,
            run: Box::new(run),
        }
    }
}

/// The law of every pool on every curve, after a warning.
fn notes(rows: &[Row]) -> Vec<String> {
    let mut lines: Vec<(&str, &str)> = Vec::new();
    for row in rows {
        if let Some(point) = &row.point {
            let line = (point.curve.as_str(), row.candidate);
            if !lines.contains(&line) {
                lines.push(line);
            }
        }
    }
    let laws = lines.into_iter().filter_map(|(curve, candidate)| {
        let on_it = |row: &&Row| row.candidate == candidate;
        let points = rows.iter().filter(on_it).filter_map(|row| {
            let point = row.point.as_ref().filter(|point| point.curve == curve)?;
            Some((point.x, row.spread.median))
        });
        let law = Law::fit(&points.collect::<Vec<_>>())?;
        Some(law_text(curve, candidate, &law))
    });
    let laws: Vec<String> = laws.collect();
    if laws.is_empty() {
        return laws;
    }
    let caveat = format!(
        "scale: fitted with {} CPUs for workers and producers together: what workers beyond them \
         cannot bring counts as contention or coherence, so compare pools, not machines",
        cpus()
    );
    std::iter::once(caveat).chain(laws).collect()
}

/// A curve that is further off than this, in percent, is none of the law's.
const TOO_FAR_OFF: f64 = 20.0;

fn law_text(curve: &str, candidate: &str, law: &Law) -> String {
    let (_, producers) = curve.rsplit_once(", ").unwrap_or(("", curve));
    if law.error_percent > TOO_FAR_OFF {
        return format!(
            "scale: {candidate}, {producers}: the law does not fit, points are {:.0} % off",
            law.error_percent
        );
    }
    let peak = match law.peak() {
        Some(peak) => format!("peak at {peak:.1} workers"),
        None => "no peak".into(),
    };
    format!(
        "scale: {candidate}, {producers}: lambda {:.0}, sigma {:.3}, kappa {:.4}, {peak} \
         (points are {:.0} % off)",
        law.lambda, law.sigma, law.kappa, law.error_percent
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::tests::row;

    #[test]
    fn every_candidate_runs_all_submitted_tasks_with_few_and_many_workers() {
        let corners = [(1, 1), (4, 1), (3, 4)];
        for (producers, workers) in corners {
            let workload = workload(Grid { producers, workers });
            for candidate in &workload.candidates {
                let sample = (candidate.run)(12).unwrap();
                assert_eq!(sample.operations, 12, "{}", candidate.name);
                assert!((workload.figures[0].of)(&sample).unwrap() > 0.0);
            }
        }
    }

    #[test]
    fn the_grid_grows_with_the_machine() {
        assert_eq!(worker_numbers(1), [1, 2, 3, 4]);
        assert_eq!(worker_numbers(2), [1, 2, 3, 4]);
        assert_eq!(worker_numbers(8), [1, 2, 3, 4, 6, 8, 12, 16]);
        assert_eq!(producer_numbers(2), [1, 2, 4]);
        assert_eq!(producer_numbers(12), [1, 2, 4, 8]);
        let all = workloads();
        assert_eq!(
            all.len(),
            worker_numbers(cpus()).len() * producer_numbers(cpus()).len()
        );
        assert_eq!(all[0].name, "1 producer, 1 worker");
    }

    #[test]
    fn the_notes_say_the_law_of_every_pool_on_every_curve() {
        let planted = Law {
            lambda: 400.0,
            sigma: 0.1,
            kappa: 0.02,
            error_percent: 0.0,
        };
        let at = |candidate, producers, workers| {
            let Workload { point, .. } = workload(Grid { producers, workers });
            let median = planted.throughput(workers as f64);
            Row {
                point,
                ..row(candidate, Standing::Peer, median)
            }
        };
        let mut rows = Vec::new();
        for workers in [1, 2, 4] {
            rows.push(at("a", 1, workers));
            rows.push(at("b", 2, workers));
        }
        let notes = notes(&rows);
        assert_eq!(notes.len(), 3, "{notes:?}");
        assert!(notes[0].contains("compare pools, not machines"));
        let law = "lambda 400, sigma 0.100, kappa 0.0200, peak at 6.7 workers (points are 0 % off)";
        assert_eq!(notes[1], format!("scale: a, 1 producer: {law}"));
        assert_eq!(notes[2], format!("scale: b, 2 producers: {law}"));
        // Two points make no law, and no law no warning.
        assert!(super::notes(&rows[..4]).is_empty());
        for row in &mut rows {
            row.spread.median = if row.point.as_ref().unwrap().x < 2.0 {
                1.0
            } else {
                row.spread.median
            };
        }
        let far = &super::notes(&rows)[1];
        assert!(
            far.starts_with("scale: a, 1 producer: the law does not fit"),
            "{far}"
        );
    }
}
