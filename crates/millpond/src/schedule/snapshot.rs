//! The state of a scheduled pool at one moment, and its books.
//!
//! # The books
//!
//! A task is one that runs once, or one planned run of a series. A series has one planned run at a time: from when it
//! starts, and again from when the run before has ended or, if its runs may overlap or are skipped, from when the run
//! before was due. A run whose due time is skipped, moved by a retry or by a wall clock that was set stays planned.
//!
//! ```text
//!   submitted = completed + cancelled + queued      at rest
//!   submitted >= completed + cancelled              always
//!   completed >= failed                             always
//! ```
//!
//! A pool is at rest when no task is on its way to the executor, waits there or runs, and when the tasks that a
//! `shutdown_now` handed back have been run or dropped.
//!
//! - **BOOKS-1** A task is submitted in the critical section in which it enters the queue of pending entries, a run in
//!   the one in which it is planned. Nothing is ever subtracted.
//! - **BOOKS-2** A task that has begun is completed when its body ends, whichever way and on whichever thread, before
//!   a handle is told. A body that panics has failed, and so has a run of a series that returns an error.
//! - **BOOKS-3** A task that will never begin is cancelled when its closure is dropped, a run when its task is dropped
//!   or, while it is only planned, when its series ends. So each task is counted once by BOOKS-2 or here.
//!
//! Completed tasks are counted under the lock of the runs, all else under that of the state. A snapshot reads the
//! runs first, so it never shows more than was submitted.

use super::ScheduledPool;
use super::config::Config;
use super::engine::ScheduleEngine;
use super::events::label_of;
use super::pending::Entry;
use super::state::PoolState;
use crate::executor::Executor;
use crate::manage::{Details, EngineSnapshot, Measurement, RunState};
use crate::meter::Distribution;
use crate::time::Deadline;
use millpond_raw::sync::atomic::Ordering;
use std::fmt;

/// How many of the runs to come are in a snapshot.
const UPCOMING: usize = 16;

/// The parameters and numbers of a scheduled pool at one moment. Those of the executor below are in its own
/// snapshot ([`ScheduledPool::executor`]).
///
/// # The books
///
/// A task is one that runs once, or one planned run of a series: a series has one planned run at a time. At rest,
/// when no task waits for the executor or runs and what `shutdown_now` has handed back was run or dropped, the books
/// balance:
///
/// ```text
///   submitted = completed + cancelled + pending
/// ```
///
/// `failed` is a part of `completed`, `rejected_when_due` of `cancelled`. Tasks in `rejected` and `executed` are not
/// in `submitted`. The [common snapshot](crate::manage::EngineSnapshot) has the same numbers under the same names. Its
/// `queued` are `pending` and the tasks that wait in the executor.
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
    /// The pool's name.
    pub name: String,
    /// Where it is in its life.
    pub state: RunState,
    /// Tasks and series that wait for their time, or for the executor to take them.
    pub pending: usize,
    /// How many may wait; `None` is any number.
    pub max_pending: Option<usize>,
    /// Whether delayed tasks still run after a shutdown.
    pub run_delayed_after_shutdown: bool,
    /// Whether series go on after a shutdown.
    pub run_series_after_shutdown: bool,
    /// Series that have not ended.
    pub series: usize,
    /// Tasks that were accepted, and runs of series that were planned, since the pool was built; it never falls.
    pub submitted: u64,
    /// Tasks and runs that have begun.
    pub runs: u64,
    /// Tasks and runs whose body has ended, failed ones included.
    pub completed: u64,
    /// Completed tasks that panicked, and completed runs that panicked or returned an error.
    pub failed: u64,
    /// Due times of series that were skipped, because the run before was still going.
    pub skipped: u64,
    /// Tasks and series that were not accepted: the pool was shut down or full, a thread could not be started, or the
    /// description made no sense; and tasks to be executed at once that the executor rejected.
    pub rejected: u64,
    /// Accepted tasks and planned runs that never began: cancelled, ended with their series or by a shutdown, rejected
    /// by the executor when they were due, or handed back and dropped.
    pub cancelled: u64,
    /// Accepted tasks and planned runs that the executor rejected or dropped when they were due.
    pub rejected_when_due: u64,
    /// Tasks that were to run at once ([`execute`](crate::executor::ExecutorExt::execute),
    /// [`submit`](crate::executor::ExecutorExt::submit)) and that the executor has accepted; what became of them is in
    /// its own snapshot.
    pub executed: u64,
    /// How late runs began.
    pub lateness: Distribution,
    /// The next sixteen runs, in the order in which they are due.
    pub upcoming: Vec<Upcoming>,
}

/// A run to come: see [`ScheduledPool::upcoming`](super::ScheduledPool::upcoming).
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Upcoming {
    /// The name of the task or the series, or where it was made.
    pub label: String,
    /// When it is due.
    pub due: Deadline,
    /// How it repeats: `once`, or as the series says.
    pub repeats: String,
}

impl<E: Executor + 'static> ScheduledPool<E> {
    /// Its parameters and numbers at one moment, with the next runs.
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
        of(&self.engine)
    }

    /// The next runs, at most so many, in the order in which they are due. A task that has been handed over is
    /// not among them.
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
        if self.engine.is_forked() {
            return Vec::new();
        }
        upcoming(&self.engine.state(), most)
    }
}

fn of(engine: &ScheduleEngine) -> ScheduleSnapshot {
    let counts = &engine.counters;
    let mut snapshot = ScheduleSnapshot {
        name: engine.name.to_string(),
        state: RunState::Terminated,
        pending: 0,
        max_pending: None,
        run_delayed_after_shutdown: false,
        run_series_after_shutdown: false,
        series: counts.series.load(Ordering::Relaxed),
        submitted: 0,
        runs: 0,
        completed: 0,
        failed: 0,
        skipped: counts.skipped.load(Ordering::Relaxed),
        rejected: counts.rejected.load(Ordering::Relaxed),
        cancelled: 0,
        rejected_when_due: counts.rejected_when_due.load(Ordering::Relaxed),
        executed: counts.executed.load(Ordering::Relaxed),
        lateness: Distribution::new(),
        upcoming: Vec::new(),
    };
    let is_forked = engine.is_forked();
    // Before the state: see the header.
    let totals = if is_forked {
        engine.runs.totals_if_free()
    } else {
        Some(engine.runs.totals())
    };
    if let Some(totals) = totals {
        snapshot.runs = totals.lateness.count();
        snapshot.completed = totals.completed;
        snapshot.failed = totals.failed;
        snapshot.lateness = totals.lateness;
    }
    let live = (!is_forked).then(|| (engine.dispatch_queue.len(), engine.is_terminated()));
    let Some(state) = engine.readable_state() else {
        return snapshot;
    };
    let config = Config::of(&state);
    snapshot.max_pending = config.max_pending;
    snapshot.run_delayed_after_shutdown = config.run_delayed_after_shutdown;
    snapshot.run_series_after_shutdown = config.run_series_after_shutdown;
    snapshot.submitted = state.submitted;
    snapshot.cancelled = state.cancelled;
    // In a child, nothing waits for its time.
    let Some((queued, is_terminated)) = live else {
        return snapshot;
    };
    if !is_terminated {
        snapshot.state = state.run_state;
    }
    snapshot.pending = state.pending.len() + queued;
    snapshot.upcoming = upcoming(&state, UPCOMING);
    snapshot
}

impl Details for ScheduleSnapshot {
    fn measurements(&self) -> Vec<Measurement> {
        vec![
            Measurement::gauge("series", self.series),
            Measurement::counter("runs", self.runs),
            Measurement::counter("skipped", self.skipped),
            Measurement::counter("rejected_when_due", self.rejected_when_due).with_unit("tasks"),
            Measurement::counter("executed", self.executed).with_unit("tasks"),
            Measurement::estimate("lateness_p50", self.lateness.quantile(0.5)),
            Measurement::estimate("lateness_p99", self.lateness.quantile(0.99)),
        ]
    }
}

impl<E: Executor + 'static> ScheduledPool<E> {
    /// Whether nothing that becomes due can run.
    pub(super) fn is_executor_down(&self, state: RunState) -> bool {
        state == RunState::Running && self.engine.is_executor_down.load(Ordering::Relaxed)
    }

    /// Its workers are those of the executor, so it has none.
    pub(super) fn as_engine_snapshot(&self) -> EngineSnapshot {
        let own = self.snapshot();
        let mut engine = EngineSnapshot::new(own.name.clone(), "scheduled pool", own.state);
        // Begun and completed runs are counted under one lock. What else is not over waits here, or in the executor.
        let running = own.runs.saturating_sub(own.completed);
        let over = own.completed + own.cancelled;
        let waiting = own.submitted.saturating_sub(over + running);
        engine.running = running as usize;
        engine.queued = waiting as usize;
        engine.submitted = own.submitted;
        engine.completed = own.completed;
        engine.failed = own.failed;
        engine.rejected = own.rejected;
        engine.cancelled = own.cancelled;
        engine.lateness = own.lateness.clone();
        if self.is_executor_down(own.state) {
            let what = "the executor below is shut down: tasks that become due are cancelled";
            engine.warnings.push(what.to_owned());
        }
        engine.with_details(own)
    }
}

fn upcoming(pool_state: &PoolState, most: usize) -> Vec<Upcoming> {
    let first = pool_state.pending.first(most);
    first
        .into_iter()
        .map(|(due, entry)| match entry {
            Entry::Once(task) => Upcoming {
                label: label_of(task.name(), task.location()),
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
            submitted,
            runs,
            completed,
            failed,
            rejected,
            cancelled,
            ..
        } = self;
        let begun = if *runs == 1 { "run" } else { "runs" };
        write!(
            f,
            "{name}: {state}, {pending} pending, {series} series, {submitted} submitted, {runs} {begun}, \
             {completed} completed, {failed} failed, {rejected} rejected, {cancelled} cancelled"
        )?;
        if self.lateness.count() > 0 {
            let [p50, p99] = [0.5, 0.99].map(|share| self.lateness.quantile(share));
            write!(f, ", lateness {p50:.1?} (p99 {p99:.1?})")?;
        }
        Ok(())
    }
}
