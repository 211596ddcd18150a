//! The table of what is measured: one entry carries key, label, probe and meaning.

use std::time::{Duration, Instant};

use millpond_bench::workloads::floor::{self, alone, together, wake};

use super::measure::{Meter, Progress};
use super::stats::Summary;

/// One line of the table.
#[derive(Debug)]
pub(super) struct Row {
    /// The stable name programs use.
    pub(super) key: &'static str,
    pub(super) label: &'static str,
    /// One sentence from the measured values. `None` if a value it needs is missing.
    meaning: fn(&Costs) -> Option<String>,
}

/// Something that is measured, and the row that it fills. The probes are those of the suite `floor` of
/// the bench.
struct Probe {
    /// Its part of the budget. Long rounds need more time for a p99 that means something.
    weight: u32,
    run: floor::Probe,
    row: Row,
}

const PROBES: &[Probe] = &[
    Probe {
        weight: 1,
        run: alone::clock,
        row: Row {
            key: "clock",
            label: "clock read",
            meaning: clock,
        },
    },
    Probe {
        weight: 1,
        run: alone::atomic_add,
        row: Row {
            key: "atomic_add",
            label: "atomic add, alone",
            meaning: atomic_add,
        },
    },
    Probe {
        weight: 1,
        run: alone::own_lock,
        row: Row {
            key: "lock",
            label: "lock + unlock, millpond",
            meaning: own_lock,
        },
    },
    Probe {
        weight: 1,
        run: alone::std_lock,
        row: Row {
            key: "lock_std",
            label: "lock + unlock, std",
            meaning: std_lock,
        },
    },
    Probe {
        weight: 2,
        run: together::cache_line,
        row: Row {
            key: "line",
            label: "cache line there and back",
            meaning: cache_line,
        },
    },
    Probe {
        weight: 1,
        run: alone::allocation,
        row: Row {
            key: "alloc",
            label: "allocate + free 64 bytes",
            meaning: allocation,
        },
    },
    Probe {
        weight: 2,
        run: alone::task,
        row: Row {
            key: "task",
            label: "task: make, run, join",
            meaning: task,
        },
    },
    Probe {
        weight: 2,
        run: wake::the_call,
        row: Row {
            key: "wake_call",
            label: "wake-up: the call",
            meaning: wake_call,
        },
    },
    Probe {
        weight: 2,
        run: wake::until_it_runs,
        row: Row {
            key: "wake_delay",
            label: "wake-up: until it runs",
            meaning: wake_delay,
        },
    },
    Probe {
        weight: 3,
        run: alone::thread_start,
        row: Row {
            key: "thread",
            label: "thread: start, join",
            meaning: thread_start,
        },
    },
];

/// All rows with what was found, or why nothing was, in the order of the table.
#[derive(Debug, Default)]
pub(super) struct Costs {
    pub(super) lines: Vec<Line>,
}

/// A row, and what was found or why nothing was.
pub(super) type Line = (&'static Row, Result<Summary, String>);

/// Runs every probe within its share of the budget.
pub(super) fn measure(budget: Duration, progress: &dyn Progress) -> Costs {
    let start = Instant::now();
    let weights: u32 = PROBES.iter().map(|probe| probe.weight).sum();
    let line = |probe: &'static Probe| {
        progress.measuring(probe.row.label);
        let share = budget / weights * probe.weight;
        let mut meter = Meter::new(share, start.elapsed(), progress);
        let found = match (probe.run)(&mut meter) {
            Ok(()) => meter
                .samples
                .summary()
                .ok_or("no round of it counted: give more --budget".into()),
            Err(absent) => Err(absent.to_string()),
        };
        (&probe.row, found)
    };
    Costs {
        lines: PROBES.iter().map(line).collect(),
    }
}

impl Row {
    pub(super) fn meaning(&self, costs: &Costs) -> String {
        (self.meaning)(costs).unwrap_or_default()
    }
}

impl Costs {
    /// The median of a row in nanoseconds.
    fn p50(&self, key: &str) -> Option<f64> {
        let (_, found) = self.lines.iter().find(|(row, _)| row.key == key)?;
        let summary = found.as_ref().ok();
        summary
            .map(|summary| summary.p50)
            .filter(|&nanos| nanos > 0.0)
    }

    /// How many of `small` one `large` is worth.
    fn ratio(&self, large: &str, small: &str) -> Option<f64> {
        Some(self.p50(large)? / self.p50(small)?)
    }
}

/// `0.53`, `5.3`, `53`, `5300`: two digits that mean something, and no false precision.
fn about(value: f64) -> String {
    match value {
        v if v < 1.0 => format!("{v:.2}"),
        v if v < 9.95 => format!("{v:.1}"),
        v if v < 99.5 => format!("{v:.0}"),
        v => {
            let scale = 10_f64.powf(v.log10().floor() - 1.0);
            format!("{:.0}", (v / scale).round() * scale)
        }
    }
}

fn clock(costs: &Costs) -> Option<String> {
    let percent = 200.0 * costs.ratio("clock", "task")?;
    Some(format!(
        "timing a task (two reads) adds {} % to it",
        about(percent)
    ))
}

fn atomic_add(costs: &Costs) -> Option<String> {
    Some(format!(
        "a counter of your own: a task costs {} of them",
        about(costs.ratio("task", "atomic_add")?)
    ))
}

fn own_lock(costs: &Costs) -> Option<String> {
    let ratio = costs.ratio("lock", "lock_std")?;
    Some(match ratio {
        r if r > 1.1 => format!("{} times what std's takes", about(r)),
        r if r < 0.9 => format!("std's takes {} times as long", about(1.0 / r)),
        _ => "as fast as std's, and checkers see into it".into(),
    })
}

fn std_lock(costs: &Costs) -> Option<String> {
    Some(format!(
        "nobody waits: {} atomic adds",
        about(costs.ratio("lock_std", "atomic_add")?)
    ))
}

fn cache_line(costs: &Costs) -> Option<String> {
    let times = about(costs.ratio("line", "atomic_add")?);
    Some(format!("what two threads share costs {times} atomic adds"))
}

fn allocation(costs: &Costs) -> Option<String> {
    let percent = 100.0 * costs.ratio("alloc", "task")?;
    Some(format!(
        "a task makes none once warm: one would add {} %",
        about(percent)
    ))
}

fn task(costs: &Costs) -> Option<String> {
    let millions = 1e3 / costs.p50("task")?;
    Some(format!(
        "at best {} million tasks a second per core",
        about(millions)
    ))
}

fn wake_call(costs: &Costs) -> Option<String> {
    let tasks = about(costs.ratio("wake_call", "task")?);
    Some(format!(
        "one wake-up costs as much as {tasks} tasks: wake only sleepers"
    ))
}

fn wake_delay(costs: &Costs) -> Option<String> {
    let tasks = about(costs.ratio("wake_delay", "task")?);
    Some(format!("while a sleeper gets up, {tasks} tasks could run"))
}

fn thread_start(costs: &Costs) -> Option<String> {
    let tasks = about(costs.ratio("thread", "task")?);
    Some(format!(
        "one thread costs as much as {tasks} tasks: pool threads"
    ))
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// Costs with the given medians, and every other row skipped.
    pub(in crate::about) fn planted(medians: &[(&str, f64)]) -> Costs {
        let rows = PROBES.iter().map(|probe| &probe.row);
        let lines = rows.map(|row| {
            let known = medians.iter().find(|(key, _)| *key == row.key);
            let summary = known.map(|&(_, p50)| Summary {
                p50,
                p99: p50 * 2.0,
                rounds: 10,
            });
            (row, summary.ok_or("it was left out".into()))
        });
        Costs {
            lines: lines.collect(),
        }
    }

    fn meaning(costs: &Costs, key: &str) -> String {
        costs
            .lines
            .iter()
            .find(|(row, _)| row.key == key)
            .unwrap()
            .0
            .meaning(costs)
    }

    #[test]
    fn meanings_are_computed_from_the_measured_values() {
        let costs = planted(&[("task", 50.0), ("wake_call", 2500.0), ("thread", 40_000.0)]);
        assert!(meaning(&costs, "wake_call").contains("as much as 50 tasks"));
        assert!(meaning(&costs, "thread").contains("as much as 800 tasks"));
        assert!(meaning(&costs, "task").contains("20 million"));
    }

    #[test]
    fn a_meaning_whose_value_is_missing_stays_silent() {
        let costs = planted(&[("wake_call", 2500.0)]);
        assert_eq!(meaning(&costs, "wake_call"), "");
    }

    #[test]
    fn the_locks_are_compared_in_words_that_fit() {
        let of = |ours| meaning(&planted(&[("lock", ours), ("lock_std", 10.0)]), "lock");
        assert_eq!(of(20.0), "2.0 times what std's takes");
        assert_eq!(of(5.0), "std's takes 2.0 times as long");
        assert!(of(10.5).starts_with("as fast as std's"));
    }

    #[test]
    fn numbers_keep_two_digits() {
        let shown = [0.123, 1.26, 12.6, 126.0, 1_260.0, 99.6, 9.96].map(about);
        assert_eq!(shown, ["0.12", "1.3", "13", "130", "1300", "100", "10"]);
    }

    #[test]
    fn keys_are_unique() {
        let mut keys: Vec<_> = PROBES.iter().map(|probe| probe.row.key).collect();
        let count = keys.len();
        keys.sort_unstable();
        keys.dedup();
        assert_eq!(keys.len(), count);
    }
}
