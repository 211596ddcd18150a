//! The health of an engine.

use crate::manage::Measurement;
use std::time::Duration;

/// A lost wake-up that was found longer ago is history.
const LATELY: Duration = Duration::from_secs(60);

/// The health of a pool: what is wrong with it now, and what has happened since it was built.
///
/// [`is_healthy`](Health::is_healthy) asks about now, and is true again when the fault is over. The counts only grow: an
/// alarm watches whether they do.
///
/// ```
/// use millpond::executor::ExecutorExt;
/// use millpond::pool::ThreadPool;
/// use millpond::thread::{Body, JoinHandle, ThreadFactory};
///
/// #[derive(Debug)]
/// struct Exhausted;
///
/// impl ThreadFactory for Exhausted {
///     fn start(&self, _body: Body) -> std::io::Result<JoinHandle<()>> {
///         Err(std::io::ErrorKind::WouldBlock.into())
///     }
/// }
///
/// let pool = ThreadPool::builder("mill").threads(Exhausted).build()?;
/// assert!(pool.execute(|| ()).is_err());
/// let health = pool.health();
/// assert_eq!((health.thread_failures, health.failed_starts_in_a_row), (1, 1));
/// assert!(!health.is_healthy());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Health {
    /// Now: the number of failed attempts to start a worker since the last one that succeeded.
    pub failed_starts_in_a_row: u64,
    /// Now: the number of tasks that are running and have exceeded the limit of their
    /// [`RunWarning`](crate::pool::RunWarning).
    pub long_running: usize,
    /// Now: the time since the last lost wake-up was found, if there was one.
    pub since_lost_wakeup: Option<Duration>,
    /// Now, and no fault: the number of workers above the maximum, which was lowered; they leave when they are idle.
    pub surplus_workers: usize,
    /// Since the start: the number of times that tasks waited although workers were idle, and the watchdog woke the
    /// workers, which is a bug of the queue, if that is your own, or of this library.
    pub lost_wakeups: u64,
    /// Since the start: the number of tasks that the watchdog has found to exceed the limit of their
    /// [`RunWarning`](crate::pool::RunWarning), those that have ended included.
    pub long_runs: u64,
    /// Since the start: the number of joins in tasks of this pool that would have closed a cycle of tasks waiting for each
    /// other, and failed instead.
    pub deadlocks: u64,
    /// Since the start: the number of threads that could not be started, the timer's for the watchdog included.
    pub thread_failures: u64,
    /// Since the start, and no fault: the number of times that an idle worker spun or yielded for a moment and parked all
    /// the same, which costs CPU time, some microseconds each.
    pub futile_spins: u64,
    /// Since the start, and no fault: the number of yields of workers after which the CPU was gone for more than 200 µs
    /// and that count as contention.
    ///
    /// Not all such yields count: not if the threads of this process used most of its CPUs themselves (unless the worker
    /// found fewer than eight tasks after it, which had waited for it), not if there is no
    /// other such yield in the 20 ms to 1 s before to tell that by (so the first one never counts, except on systems
    /// without CPU times), not if the worker has kept its CPU in 500 yields since its last one, and not while no worker is to
    /// yield at all: after three that count, for 250 ms and more.
    pub preempted_yields: u64,
}

impl Health {
    /// True if nothing is wrong now: the last attempt to start a worker, if any, succeeded, no running task has exceeded
    /// its limit, and no lost wake-up was found within the last minute.
    ///
    /// ```
    /// use millpond::pool::Health;
    ///
    /// let mut health = Health::default();
    /// health.long_runs = 7; // they have ended
    /// assert!(health.is_healthy());
    /// health.long_running = 1;
    /// assert!(!health.is_healthy());
    /// ```
    pub fn is_healthy(&self) -> bool {
        self.failed_starts_in_a_row == 0 && self.long_running == 0 && !self.has_lost_wakeup_lately()
    }

    pub(crate) fn has_lost_wakeup_lately(&self) -> bool {
        self.since_lost_wakeup.is_some_and(|since| since < LATELY)
    }

    /// A sentence for each thing that is wrong now, as [`is_healthy`](Health::is_healthy) sees it.
    pub(crate) fn warnings(&self) -> Vec<String> {
        let lately = self.has_lost_wakeup_lately();
        let faults = [
            (
                "failed attempts in a row to start a worker",
                self.failed_starts_in_a_row,
            ),
            (
                "running tasks that have exceeded the limit of their run warning",
                self.long_running as u64,
            ),
            (
                "lost wake-ups, the last one within a minute (a bug of the queue, if that is your own, or of millpond)",
                if lately { self.lost_wakeups } else { 0 },
            ),
        ];
        let found = faults.into_iter().filter(|(_, count)| *count > 0);
        found
            .map(|(what, count)| format!("{what}: {count}"))
            .collect()
    }

    /// What a console shows of it, beside what every snapshot has.
    pub(crate) fn measurements(&self) -> Vec<Measurement> {
        vec![
            Measurement::counter("lost_wakeups", self.lost_wakeups).with_unit("times"),
            Measurement::counter("long_runs", self.long_runs).with_unit("tasks"),
            Measurement::counter("deadlocks", self.deadlocks).with_unit("times"),
            Measurement::gauge("failed_starts_in_a_row", self.failed_starts_in_a_row)
                .with_unit("attempts"),
            Measurement::gauge("surplus_workers", self.surplus_workers).with_unit("workers"),
            Measurement::counter("futile_spins", self.futile_spins).with_unit("times"),
            Measurement::counter("preempted_yields", self.preempted_yields).with_unit("times"),
        ]
    }
}
