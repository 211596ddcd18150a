//! A reading of a department at one moment, and the flow between two readings.

use std::time::Duration;

use millpond::meter::Distribution;
use millpond::pool::PoolSnapshot;

use super::policy::Policy;
use super::shop::{Counts, Department};

#[derive(Clone, Debug)]
pub(super) struct Reading {
    /// When, since the shop was opened.
    pub(super) at: Duration,
    pub(super) snapshot: PoolSnapshot,
    pub(super) policy: Policy,
    pub(super) counts: Counts,
    pub(super) wait: Distribution,
    pub(super) run: Distribution,
    pub(super) workers: Vec<Working>,
    /// How long people wait at the door.
    pub(super) late: Duration,
}

/// A worker and what it runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Working {
    pub(super) thread: String,
    /// The name of its task, and for how long it has been running.
    pub(super) task: Option<(String, Duration)>,
}

impl Reading {
    pub(super) fn take(at: Duration, department: &Department) -> Self {
        let metrics = department.pool.metrics();
        Reading {
            at,
            snapshot: department.pool.snapshot(),
            policy: Policy::of(&department.pool.rejection()),
            counts: department.counts(),
            wait: metrics.wait,
            run: metrics.run,
            workers: workers(department),
            late: department.lateness(),
        }
    }

    /// The flow since an earlier reading.
    pub(super) fn since(&self, earlier: &Reading) -> Flow {
        let seconds = self.at.saturating_sub(earlier.at).as_secs_f64().max(1e-3);
        let rate = |of: fn(&Counts) -> u64| {
            let more = of(&self.counts).saturating_sub(of(&earlier.counts));
            more as f64 / seconds
        };
        Flow {
            came: rate(|counts| counts.came),
            done: rate(|counts| counts.done),
            rejected: rate(Counts::turned_away),
            wait: Times::of(&self.wait.since(&earlier.wait)),
            run: Times::of(&self.run.since(&earlier.run)),
        }
    }
}

fn workers(department: &Department) -> Vec<Working> {
    let views = department.pool.workers().into_iter();
    views
        .map(|view| Working {
            thread: view.thread.unwrap_or_else(|| format!("#{}", view.number)),
            task: view
                .task
                .map(|task| (task.label.to_string(), task.running_for)),
        })
        .collect()
}

/// The flow between two readings; rates are per second.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Flow {
    pub(super) came: f64,
    pub(super) done: f64,
    /// Given back, or dropped.
    pub(super) rejected: f64,
    pub(super) wait: Option<Times>,
    pub(super) run: Option<Times>,
}

/// The percentiles of what ended; nothing if nothing did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Times {
    pub(super) p50: Duration,
    pub(super) p99: Duration,
}

impl Times {
    fn of(all: &Distribution) -> Option<Self> {
        (all.count() > 0).then(|| Times {
            p50: all.quantile(0.5),
            p99: all.quantile(0.99),
        })
    }
}

#[cfg(test)]
pub(super) mod tests {
    use millpond::pool::ThreadPool;

    use super::*;

    /// A reading as planted: of a pool that does not exist any more.
    pub(in super::super) fn planted(name: &'static str, at: Duration) -> Reading {
        let pool = ThreadPool::builder(name).core(2).max(6).build().unwrap();
        Reading {
            at,
            snapshot: pool.snapshot(),
            policy: Policy::Abort,
            counts: Counts::default(),
            wait: Distribution::new(),
            run: Distribution::new(),
            workers: Vec::new(),
            late: Duration::ZERO,
        }
    }

    #[test]
    fn rates_are_of_the_time_between_two_readings() {
        let early = planted("orders", Duration::from_secs(1));
        let mut late = planted("orders", Duration::from_secs(3));
        late.counts = Counts {
            came: 100,
            gave_up: 0,
            done: 60,
            rejected: 10,
            dropped: 6,
        };
        let flow = late.since(&early);
        assert_eq!((flow.came, flow.done, flow.rejected), (50.0, 30.0, 8.0));
        assert_eq!((flow.wait, flow.run), (None, None));
    }

    #[test]
    fn times_are_of_what_ended_between_two_readings() {
        let mut early = planted("orders", Duration::from_secs(1));
        early.run.add(Duration::from_secs(9));
        let mut late = planted("orders", Duration::from_secs(2));
        late.run = early.run.clone();
        late.run.add(Duration::from_millis(10));
        let run = late.since(&early).run.unwrap();
        assert!(run.p50.abs_diff(Duration::from_millis(10)) < Duration::from_millis(1));
        assert_eq!(run.p50, run.p99);
    }

    #[test]
    fn two_readings_at_the_same_moment_have_finite_rates() {
        let reading = planted("orders", Duration::ZERO);
        assert_eq!(reading.since(&reading), Flow::default());
    }
}
