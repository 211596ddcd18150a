//! What is read off a round, and how it is judged.
//!
//! Most workloads have one figure: nanoseconds per operation. A round trip has two, because a mean
//! would hide the trips that had to wake a thread. A pool that does nothing has none that could be
//! compared: the best peer uses nothing at all, and no ratio can be taken to that. A pool that gets
//! more than it can do is asked how much of it came to something, and there more is better.

use crate::harness::Sample;
use crate::stats::Quantiles;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// One number per round.
#[derive(Clone)]
pub struct Figure {
    /// Its name, if the workload has several: it is added to the workload's name.
    pub name: &'static str,
    /// Its unit.
    pub unit: String,
    /// Reads it off a round; `None` where it cannot be known.
    pub of: Reading,
    /// Which of two is the better one.
    pub better: Better,
    /// Its goal.
    pub goal: Goal,
}

/// Reads a number off a round.
pub type Reading = Arc<dyn Fn(&Sample) -> Option<f64> + Send + Sync>;

/// Which of two figures is the better one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Better {
    /// The smaller, as with times.
    Less,
    /// The greater.
    More,
}

impl Better {
    /// In a heading.
    pub const fn words(self) -> &'static str {
        match self {
            Better::Less => "less is better",
            Better::More => "more is better",
        }
    }

    /// In a column.
    pub const fn word(self) -> &'static str {
        match self {
            Better::Less => "less",
            Better::More => "more",
        }
    }
}

/// The goal of a figure.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Goal {
    /// To be no worse than that of the best peer.
    BestPeer,
    /// To be below this, whatever the peers do.
    Below(f64),
    /// Nothing: it is shown and not judged.
    Shown,
}

impl Figure {
    /// Nanoseconds per operation.
    pub fn nanos(operation: &str) -> Self {
        Figure {
            name: "",
            unit: format!("ns/{operation}"),
            of: Arc::new(|sample| Some(sample.nanos())),
            better: Better::Less,
            goal: Goal::BestPeer,
        }
    }

    /// Microseconds per operation, for long ones.
    pub fn micros(operation: &str) -> Self {
        Figure {
            unit: format!("µs/{operation}"),
            of: Arc::new(|sample| Some(sample.nanos() / 1e3)),
            ..Self::nanos(operation)
        }
    }

    /// The operation in the middle, and how slow the slowest of a hundred and of a thousand are, in microseconds.
    pub fn quantiles() -> Vec<Self> {
        let mut figures = Self::tail(Goal::BestPeer);
        figures.truncate(3);
        figures
    }

    /// The operation in the middle, and how slow the slowest are: of a hundred, of a thousand, of all.
    /// The last one is up to a single mishap, and is shown.
    pub fn tail(goal: Goal) -> Vec<Self> {
        type Of = fn(&Quantiles) -> Option<u64>;
        let quantile = |name, goal, of: Of| Figure {
            name,
            unit: "µs".into(),
            of: Arc::new(move |sample| Some(of(sample.quantiles.as_ref()?)? as f64 / 1e3)),
            better: Better::Less,
            goal,
        };
        vec![
            quantile("p50", goal, |all| Some(all.p50())),
            quantile("p99", goal, |all| Some(all.p99())),
            quantile("p99.9", goal, Quantiles::p999),
            quantile("slowest", Goal::Shown, Quantiles::max),
        ]
    }

    /// How much of `workers` CPUs was useful, in percent, if each operation is work of `length`.
    pub fn efficiency(workers: usize, length: Duration, goal: Goal) -> Self {
        Figure {
            name: "",
            unit: format!("% of {workers} CPUs"),
            of: Arc::new(move |sample| {
                let useful = length.as_secs_f64() * sample.operations as f64;
                let spent = sample.elapsed.as_secs_f64() * workers as f64;
                Some(100.0 * useful / spent.max(1e-9))
            }),
            better: Better::More,
            goal,
        }
    }

    /// Operations per second, in thousands.
    pub fn thousands(operations: &str) -> Self {
        Figure {
            name: "",
            unit: format!("1000 {operations}/s"),
            of: Arc::new(|sample| {
                Some(sample.operations as f64 / sample.elapsed.as_secs_f64().max(1e-9) / 1e3)
            }),
            better: Better::More,
            goal: Goal::BestPeer,
        }
    }

    /// How often threads that slept were woken, per second.
    pub fn wake_ups() -> Self {
        Figure {
            name: "wake-ups",
            unit: "wake-ups/s".into(),
            of: Arc::new(|sample| {
                Some(sample.usage.sleeps? as f64 / sample.elapsed.as_secs_f64().max(1e-9))
            }),
            better: Better::Less,
            goal: Goal::Shown,
        }
    }

    /// The share of a CPU that was in use, in percent. It must be below `limit`.
    pub fn cpu_percent(limit: f64) -> Self {
        Figure {
            name: "",
            unit: "% of a CPU".into(),
            of: Arc::new(|sample| {
                let share = sample.usage.cpu?.as_secs_f64() / sample.elapsed.as_secs_f64();
                Some(share * 100.0)
            }),
            better: Better::Less,
            goal: Goal::Below(limit),
        }
    }

    /// How much of the work the workers did, in percent, where a caller may do some.
    pub fn workers_share() -> Self {
        Figure {
            name: "workers' share",
            unit: "% of the tasks".into(),
            of: Arc::new(|sample| {
                Some(100.0 * sample.by_workers? as f64 / sample.operations.max(1) as f64)
            }),
            better: Better::More,
            goal: Goal::Shown,
        }
    }

    /// The memory that an operation holds while it waits.
    pub fn bytes(operation: &str) -> Self {
        Figure {
            name: "while it waits",
            unit: format!("bytes/{operation}"),
            of: Arc::new(|sample| {
                Some(sample.memory?.resident as f64 / sample.operations.max(1) as f64)
            }),
            better: Better::Less,
            goal: Goal::BestPeer,
        }
    }

    /// The memory that a cancelled one still holds. It must be below `limit`.
    pub fn kept_bytes(operation: &str, limit: f64) -> Self {
        Figure {
            name: "kept when it is cancelled",
            of: Arc::new(|sample| {
                Some(sample.memory?.kept as f64 / sample.operations.max(1) as f64)
            }),
            goal: Goal::Below(limit),
            ..Self::bytes(operation)
        }
    }

    /// How a rush went: how many answers came in time, and how long the answers took.
    pub fn rush() -> Vec<Self> {
        type Of = fn(&Sample) -> Option<f64>;
        let figure = |name, unit: &str, better, goal, of: Of| Figure {
            name,
            unit: unit.into(),
            of: Arc::new(of),
            better,
            goal,
        };
        vec![
            figure(
                "goodput",
                "answers in time/s",
                Better::More,
                Goal::BestPeer,
                |sample| Some(sample.rush?.goodput(sample.elapsed)),
            ),
            figure(
                "goodput as a share",
                "% of the peak",
                Better::More,
                Goal::Shown,
                |sample| {
                    let rush = sample.rush?;
                    Some(rush.goodput(sample.elapsed) * 100.0 / rush.peak)
                },
            ),
            figure("p50", "ms", Better::Less, Goal::BestPeer, |sample| {
                Some(sample.quantiles.as_ref()?.p50() as f64 / 1e6)
            }),
            figure("p99", "ms", Better::Less, Goal::BestPeer, |sample| {
                Some(sample.quantiles.as_ref()?.p99() as f64 / 1e6)
            }),
        ]
    }

    /// The name of a row: that of the workload, and of the figure if it needs one.
    pub(crate) fn title(&self, workload: &str) -> String {
        if self.name.is_empty() {
            workload.to_owned()
        } else {
            format!("{workload}: {}", self.name)
        }
    }
}

impl fmt::Debug for Figure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Figure")
            .field("name", &self.name)
            .field("unit", &self.unit)
            .field("goal", &self.goal)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::Memory;
    use crate::rush::{Fates, Rush};
    use crate::usage::Usage;

    fn sample() -> Sample {
        Sample {
            operations: 4,
            elapsed: Duration::from_millis(2),
            usage: Usage {
                cpu: Some(Duration::from_micros(5)),
                ..Usage::default()
            },
            quantiles: Some(Quantiles::told(1_500, 70_000)),
            rush: None,
            memory: None,
            by_workers: None,
        }
    }

    #[test]
    fn figures_are_in_the_unit_they_say() {
        let sample = sample();
        let read = |figure: &Figure| ((figure.of)(&sample), figure.unit.clone());
        assert_eq!(
            read(&Figure::nanos("task")),
            (Some(500_000.0), "ns/task".into())
        );
        assert_eq!(
            read(&Figure::micros("burst")),
            (Some(500.0), "µs/burst".into())
        );
        assert_eq!(
            read(&Figure::cpu_percent(0.1)),
            (Some(0.25), "% of a CPU".into())
        );
        let quantiles: Vec<_> = Figure::quantiles().iter().map(read).collect();
        assert_eq!(
            quantiles,
            [
                (Some(1.5), "µs".into()),
                (Some(70.0), "µs".into()),
                (None, "µs".into())
            ]
        );
    }

    #[test]
    fn the_tail_is_known_where_every_operation_was_timed() {
        let times: Vec<u64> = (1..=2_000).collect();
        let timed = Sample {
            quantiles: Quantiles::of(&times),
            ..sample()
        };
        let tail = |sample: &Sample| {
            let figures = Figure::tail(Goal::BestPeer);
            let values = figures.iter().map(|figure| (figure.of)(sample));
            values.collect::<Vec<_>>()
        };
        assert_eq!(tail(&timed), [1.0, 1.98, 1.998, 2.0].map(Some));
        assert_eq!(tail(&sample()), [Some(1.5), Some(70.0), None, None]);
    }

    #[test]
    fn efficiency_is_useful_work_by_what_the_workers_could_have_done() {
        // Four operations of 250 µs are a millisecond of the four that two workers had.
        let figure = Figure::efficiency(2, Duration::from_micros(250), Goal::BestPeer);
        assert_eq!((figure.of)(&sample()), Some(25.0));
        assert_eq!(figure.unit, "% of 2 CPUs");
    }

    #[test]
    fn throughput_and_wake_ups_are_told_per_second() {
        assert_eq!((Figure::thousands("tasks").of)(&sample()), Some(2.0));
        assert_eq!((Figure::wake_ups().of)(&sample()), None);
        let woken = Sample {
            usage: Usage {
                sleeps: Some(3),
                ..Usage::default()
            },
            ..sample()
        };
        assert_eq!((Figure::wake_ups().of)(&woken), Some(1_500.0));
    }

    #[test]
    fn the_share_of_the_workers_is_told_where_a_caller_may_run_tasks() {
        let shared = Sample {
            by_workers: Some(1),
            ..sample()
        };
        assert_eq!((Figure::workers_share().of)(&shared), Some(25.0));
        assert_eq!((Figure::workers_share().of)(&sample()), None);
    }

    #[test]
    fn a_rush_is_told_in_answers_in_time_their_share_and_milliseconds() {
        let sample = Sample {
            rush: Some(Rush {
                fates: Fates {
                    offered: 4,
                    in_time: 3,
                    late: 1,
                    ..Fates::default()
                },
                peak: 2_000.0,
            }),
            ..sample()
        };
        let figures = Figure::rush();
        let values: Vec<_> = figures.iter().map(|figure| (figure.of)(&sample)).collect();
        assert_eq!(values, [1_500.0, 75.0, 0.0015, 0.07].map(Some));
        let better: Vec<_> = figures.iter().map(|figure| figure.better).collect();
        use Better::{Less, More};
        assert_eq!(better, [More, More, Less, Less]);
    }

    #[test]
    fn memory_is_told_in_bytes_of_one() {
        let figures = [Figure::bytes("timer"), Figure::kept_bytes("timer", 8.0)];
        let holding = Sample {
            memory: Some(Memory {
                resident: 600,
                kept: 10,
            }),
            ..sample()
        };
        let values = figures.each_ref().map(|figure| (figure.of)(&holding));
        assert_eq!(values, [150.0, 2.5].map(Some));
        let values = figures.each_ref().map(|figure| (figure.of)(&sample()));
        assert_eq!(values, [None; 2]);
        assert_eq!(figures[1].unit, "bytes/timer");
    }

    #[test]
    fn what_was_not_measured_has_no_figure() {
        let blind = Sample {
            usage: Usage::default(),
            quantiles: None,
            ..sample()
        };
        assert_eq!((Figure::cpu_percent(0.1).of)(&blind), None);
        for figure in Figure::quantiles().iter().chain(&Figure::rush()) {
            assert_eq!((figure.of)(&blind), None, "{figure:?}");
        }
    }

    #[test]
    fn only_a_figure_among_several_is_named() {
        assert_eq!(Figure::nanos("task").title("burst"), "burst");
        assert_eq!(Figure::quantiles()[1].title("trip"), "trip: p99");
    }
}
