//! What a scheduled pool shows of itself.

use super::ScheduledPool;
use super::core::{Books, Core, Entry, label_of};
use crate::executor::Executor;
use crate::manage::RunState;
use crate::meter::Distribution;
use crate::time::Deadline;
use millpond_raw::sync::atomic::Ordering;
use std::fmt;

/// How many of the runs to come are in a snapshot.
const UPCOMING: usize = 16;

/// The figures of a scheduled pool at one moment.
///
/// ```
/// use millpond::preset;
/// use std::time::Duration;
///
/// let timers = preset::scheduled("mill", 1)?;
/// timers.schedule(Duration::from_millis(1), || ())?.join()?;
/// let later = timers.schedule(Duration::from_secs(3600), || ())?;
///
/// let now = timers.snapshot();
/// assert_eq!((now.runs, now.pending, now.series), (1, 1, 0));
/// assert_eq!(now.upcoming[0].repeats, "once");
/// println!("half of the runs were no later than {:?}", now.lateness.quantile(0.5));
/// # later.cancel();
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ScheduleSnapshot {
    /// What it is called.
    pub name: String,
    /// Where it is in its life.
    pub state: RunState,
    /// How many tasks and series wait for their time, or for the executor to take them.
    pub pending: usize,
    /// How many may; `None` is any number.
    pub most_pending: Option<usize>,
    /// How many series there are that have not ended.
    pub series: usize,
    /// How many runs have begun, of tasks and of series.
    pub runs: u64,
    /// How many runs of series failed.
    pub failed: u64,
    /// How many runs of series were skipped, because the one before was still going.
    pub skipped: u64,
    /// How many tasks and runs the executor would not have when they were due.
    pub refused: u64,
    /// How many tasks and series were cancelled while they waited for their time.
    pub cancelled: u64,
    /// How late runs began.
    pub lateness: Distribution,
    /// What is due next, in this order: the first sixteen.
    pub upcoming: Vec<Upcoming>,
}

/// A run to come: see [`ScheduledPool::upcoming`](super::ScheduledPool::upcoming).
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Upcoming {
    /// What the task or the series is called, or where it was made.
    pub label: String,
    /// When it is due.
    pub due: Deadline,
    /// How it repeats: `once`, or as the series says.
    pub repeats: String,
}

impl<E: Executor + 'static> ScheduledPool<E> {
    /// Its parameters and figures at one moment, with the runs that come next.
    ///
    /// ```
    /// use millpond::executor::Lifecycle;
    /// use millpond::preset;
    /// use std::time::Duration;
    ///
    /// let timers = preset::scheduled("mill", 1)?;
    /// let later = timers.schedule(Duration::from_secs(3600), || ())?;
    /// assert_eq!(timers.snapshot().pending, 1);
    /// later.cancel();
    /// assert_eq!(timers.snapshot().pending, 0);
    /// timers.close()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn snapshot(&self) -> ScheduleSnapshot {
        of(&self.core)
    }

    /// What is due next, in this order, at most so many. A task that has been handed over is not among them.
    ///
    /// Cheap, however many wait.
    ///
    /// ```
    /// use millpond::preset;
    /// use millpond::schedule::Every;
    /// use std::time::Duration;
    ///
    /// let timers = preset::scheduled("mill", 1)?;
    /// let hour = Duration::from_secs(3600);
    /// let backup = timers.series(Every::rate(24 * hour)).name("backup").start(|| ())?;
    /// let oven = timers.schedule(hour, || ())?;
    /// let next = timers.upcoming(10);
    /// assert_eq!(next[0].due, oven.next_run());
    /// assert_eq!((&*next[1].label, &*next[1].repeats), ("backup", "every 86400s"));
    /// # backup.cancel();
    /// # oven.cancel();
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[doc(alias = "getQueue")]
    pub fn upcoming(&self, most: usize) -> Vec<Upcoming> {
        match self.core.is_forked() {
            true => Vec::new(),
            false => upcoming(&self.core.books(), most),
        }
    }
}

fn of(core: &Core) -> ScheduleSnapshot {
    let counts = &core.counts;
    let (pending, most_pending, state, upcoming, cancelled) = match core.is_forked() {
        true => (0, None, RunState::Terminated, Vec::new(), 0),
        false => {
            let carried = core.bag.len();
            let is_terminated = core.is_terminated();
            let books = core.books();
            let state = match is_terminated {
                true => RunState::Terminated,
                false => books.state,
            };
            let pending = books.wheel.len() + carried;
            let upcoming = upcoming(&books, UPCOMING);
            (pending, books.most, state, upcoming, books.cancelled)
        }
    };
    let lateness = match core.is_forked() {
        true => Distribution::new(),
        false => core.bodies.lateness(),
    };
    ScheduleSnapshot {
        name: core.name.to_string(),
        state,
        pending,
        most_pending,
        series: counts.series.load(Ordering::Relaxed),
        runs: lateness.count(),
        failed: counts.failed.load(Ordering::Relaxed),
        skipped: counts.skipped.load(Ordering::Relaxed),
        refused: counts.refused.load(Ordering::Relaxed),
        cancelled: cancelled + counts.cancelled.load(Ordering::Relaxed),
        lateness,
        upcoming,
    }
}

fn upcoming(books: &Books, most: usize) -> Vec<Upcoming> {
    let first = books.wheel.first(most);
    first
        .into_iter()
        .map(|(due, entry)| match entry {
            Entry::Once(task) => Upcoming {
                label: label_of(task.name(), task.made_at()),
                due,
                repeats: "once".to_owned(),
            },
            Entry::Series(series) => Upcoming {
                label: series.label(),
                due: series.planned(due),
                repeats: series.every.to_string(),
            },
        })
        .collect()
}

impl fmt::Display for ScheduleSnapshot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ScheduleSnapshot {
            name,
            state,
            pending,
            series,
            runs,
            ..
        } = self;
        write!(
            f,
            "{name}: {state}, {pending} pending, {series} series, {runs} runs"
        )?;
        if self.lateness.count() > 0 {
            let [p50, p99] = [0.5, 0.99].map(|share| self.lateness.quantile(share));
            write!(f, ", lateness {p50:.1?} (p99 {p99:.1?})")?;
        }
        Ok(())
    }
}
