//! How long a queue takes to drain, estimated from the recent run times of tasks.
//!
//! Two totals are sampled now and then: tasks completed, and the time that workers have spent on them. The
//! difference between two samples is the time per task. An idle hour changes neither total, and so not the
//! estimate.
//!
//! ```text
//!    sample       sample                now
//!      |------------|--------------------|       the window goes from the older sample to now
//!      older      newer
//! ```
//!
//! When the newer sample is half a second old it becomes the older one. So a pool that is sampled all the
//! time estimates by its last half to whole second, and a pool whose tasks take minutes by its last tasks:
//! a sample is kept until a task has completed after it.

use std::time::Duration;

/// The age, in nanoseconds, at which the newer sample becomes the older one.
const WINDOW: u64 = 500_000_000;

/// The totals at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Sample {
    at: u64,
    done: u64,
    spent: u64,
}

/// How long tasks take, by the recent past.
///
/// ```
/// use millpond::adapt::Pace;
/// use std::time::Duration;
///
/// const MS: u64 = 1_000_000;
/// let mut pace = Pace::new();
/// assert_eq!(pace.drains_in(100, 4), None, "no task has completed");
/// // After a second 20 tasks have completed, on which workers have spent 2 seconds in total.
/// pace.update(1000 * MS, 20, 2000 * MS);
/// assert_eq!(pace.drains_in(100, 4), Some(Duration::from_millis(2500)));
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pace {
    older: Sample,
    newer: Sample,
    /// Tasks in the window, and the time spent on them.
    done: u64,
    spent: u64,
}

impl Pace {
    /// Without a sample.
    ///
    /// ```
    /// use millpond::adapt::Pace;
    ///
    /// assert_eq!(Pace::new().nanos_per_task(), None);
    /// ```
    pub const fn new() -> Self {
        const START: Sample = Sample {
            at: 0,
            done: 0,
            spent: 0,
        };
        Pace {
            older: START,
            newer: START,
            done: 0,
            spent: 0,
        }
    }

    /// Samples the totals: at `now`, `done` tasks have completed, on which workers have `spent` nanoseconds.
    ///
    /// ```
    /// use millpond::adapt::Pace;
    ///
    /// let mut pace = Pace::new();
    /// pace.update(1_000, 4, 800);
    /// assert_eq!(pace.nanos_per_task(), Some(200));
    /// ```
    pub fn update(&mut self, now: u64, done: u64, spent: u64) {
        self.done = done.saturating_sub(self.older.done);
        self.spent = spent.saturating_sub(self.older.spent);
        let newer = self.newer;
        if now.saturating_sub(newer.at) >= WINDOW && done > newer.done {
            self.older = newer;
            self.newer = Sample {
                at: now,
                done,
                spent,
            };
            self.done = done - newer.done;
            self.spent = spent.saturating_sub(newer.spent);
        }
    }

    /// How many nanoseconds a task takes; `None` if no task has completed.
    ///
    /// ```
    /// use millpond::adapt::Pace;
    ///
    /// let mut pace = Pace::new();
    /// pace.update(1_000_000, 10, 5_000);
    /// assert_eq!(pace.nanos_per_task(), Some(500));
    /// ```
    pub fn nanos_per_task(&self) -> Option<u64> {
        self.spent.checked_div(self.done)
    }

    /// How long `workers` need for `queued` tasks; `None` if no task has completed.
    ///
    /// ```
    /// use millpond::adapt::Pace;
    /// use std::time::Duration;
    ///
    /// let mut pace = Pace::new();
    /// pace.update(1_000_000, 10, 5_000);
    /// assert_eq!(pace.drains_in(8, 2), Some(Duration::from_nanos(2_000)));
    /// ```
    pub fn drains_in(&self, queued: usize, workers: usize) -> Option<Duration> {
        Some(time_for(self.nanos_per_task()?, queued, workers))
    }
}

/// How long `workers` need for `queued` tasks that take `per_task` nanoseconds each.
pub(crate) fn time_for(per_task: u64, queued: usize, workers: usize) -> Duration {
    let nanos = u128::from(per_task) * queued as u128 / workers.max(1) as u128;
    Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn per_task(pace: &Pace) -> Option<u64> {
        pace.nanos_per_task().map(|nanos| nanos / MS)
    }

    #[test]
    fn an_hour_of_rest_changes_nothing() {
        let mut pace = Pace::new();
        pace.update(1000 * MS, 10, 200 * MS);
        assert_eq!(per_task(&pace), Some(20));
        pace.update(3_600_000 * MS, 10, 200 * MS);
        assert_eq!(per_task(&pace), Some(20));
        pace.update(3_600_100 * MS, 20, 400 * MS);
        assert_eq!(per_task(&pace), Some(20));
    }

    #[test]
    fn tasks_that_become_slower_are_noticed_within_two_windows() {
        let (mut pace, mut now, mut done, mut spent) = (Pace::new(), 0, 0, 0);
        let mut half_a_second = |takes: u64, pace: &mut Pace| {
            for _ in 0..50 {
                (now, done, spent) = (now + 10 * MS, done + 1, spent + takes * MS);
                pace.update(now, done, spent);
            }
        };
        half_a_second(4, &mut pace);
        assert_eq!(per_task(&pace), Some(4));
        half_a_second(4, &mut pace);
        half_a_second(8, &mut pace);
        assert_eq!(per_task(&pace), Some(8), "the window has just moved");
        half_a_second(4, &mut pace);
        half_a_second(4, &mut pace);
        assert_eq!(per_task(&pace), Some(4));
    }

    #[test]
    fn a_sample_is_kept_until_a_task_has_completed_after_it() {
        let mut pace = Pace::new();
        pace.update(60_000 * MS, 1, 60_000 * MS);
        for minute in 2..10 {
            pace.update(minute * 60_000 * MS, 1, 60_000 * MS);
            assert_eq!(per_task(&pace), Some(60_000));
        }
        pace.update(600_000 * MS, 2, 540_000 * MS);
        assert_eq!(per_task(&pace), Some(480_000));
    }

    #[test]
    fn more_workers_need_less_time_and_nothing_is_too_much() {
        let mut pace = Pace::new();
        pace.update(MS, 2, 6 * MS);
        let time = |queued, workers| pace.drains_in(queued, workers).unwrap();
        assert_eq!(time(10, 1), Duration::from_millis(30));
        assert_eq!(time(10, 3), Duration::from_millis(10));
        assert_eq!(time(0, 3), Duration::ZERO);
        assert_eq!(time(10, 0), time(10, 1));
        assert_eq!(time(usize::MAX, 1), Duration::from_nanos(u64::MAX));
    }
}
