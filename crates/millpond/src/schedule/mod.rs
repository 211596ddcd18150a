//! Tasks at their time: after a delay, at a rate, by the calendar.
//!
//! [`ScheduledPool`] is Java's `ScheduledThreadPoolExecutor` without its traps. It has no workers of its own:
//! tasks that are due go to an executor, so the bounds, policies, hooks and metrics of a pool hold for scheduled
//! work, too. A cancelled task leaves the queue at once and its closure is dropped. A series that fails does not end
//! in silence. How late each run begins is measured.
//!
//! ```
//! use millpond::executor::Lifecycle;
//! use millpond::preset;
//! use std::time::Duration;
//!
//! let timers = preset::scheduled("mill", 2)?;
//! let flour = timers.schedule(Duration::from_millis(1), || "flour")?;
//! assert_eq!(flour.join()?, "flour");
//! timers.close()?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! | I want | take |
//! |---|---|
//! | a few workers for timers, with nothing to decide | [`preset::scheduled`](crate::preset::scheduled) |
//! | timers on a pool of mine | [`ScheduledPool::on`], or [`ScheduledPool::owning`] if it ends with them |
//! | something later | [`schedule`](ScheduledPool::schedule) |
//! | something again and again | [`schedule_at_fixed_rate`](ScheduledPool::schedule_at_fixed_rate), [`schedule_with_fixed_delay`](ScheduledPool::schedule_with_fixed_delay), `schedule_cron` |
//! | to say what happens when runs overlap, fall behind or fail | [`series`](ScheduledPool::series) |
//! | to test it without waiting | a [`ManualClock`](crate::time::ManualClock) |
//!
//! The guide, with drawings of what "every 5 seconds" means, is `docs/guide/scheduling.md`.

// | file | what |
// |---|---|
// | `as_executor` | a scheduled pool as an executor, with a life cycle, managed |
// | `builder`, `series_builder`, `config`, `parameters`, `snapshot`, `explain` | describing a pool and a series; changing and reading parameters; snapshots, and the same in sentences |
// | `engine` | the overview and its invariants; what the handles, tasks and series of a pool share |
// | `state` | the state under the pool's lock, and the slot that it lives in |
// | `pending` | the queue of pending entries |
// | `dispatch` | handing over what is due |
// | `alarm`, `leader` | waking up when something is due: by the timer, or by an idle worker |
// | `dispatcher` | a thread for executors that make their caller wait |
// | `handed_over` | tasks that an executor has which is not the pool's own |
// | `liveness` | the guards that keep a pool from terminating |
// | `shutdown` | shutdown, stop, termination |
// | `once`, `series`, `run`, `body` | the body of a task; a series, its runs and its closure |
// | `plan`, `cron` | when the next run is due: pure functions |
// | `failure`, `events` | what runs return, what a failure does to a series, and how it is reported |
// | `handle` | what a caller waits on |

mod alarm;
mod as_executor;
mod body;
mod builder;
mod config;
#[cfg(feature = "cron")]
mod cron;
mod dispatch;
mod dispatcher;
mod engine;
mod events;
mod explain;
mod failure;
mod handed_over;
mod handle;
mod leader;
mod liveness;
mod once;
mod parameters;
mod pending;
mod plan;
mod run;
mod series;
mod series_builder;
mod shutdown;
mod snapshot;
mod state;

pub use builder::ScheduledBuilder;
#[cfg(feature = "cron")]
pub use cron::{Cron, CronError};
pub use events::{NextRun, RunReport, ScheduleEvent};
pub use failure::{Backoff, OnFailure, RunError, RunOutcome, RunReturn, RunStatus};
pub use handle::{AbortScheduled, Scheduled};
pub use plan::{Catchup, Every, Overlap};
pub use series_builder::SeriesBuilder;
pub use snapshot::{ScheduleSnapshot, Upcoming};

use self::engine::ScheduleEngine;
use self::once::run_once;
use self::pending::Entry;
use crate::engine::LastHandle;
use crate::executor::{Executor, Lifecycle, RejectReason, Rejected};
use crate::task::TaskSpec;
use crate::time::Deadline;
use std::mem::ManuallyDrop;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Runs tasks at their time, on an executor.
///
/// Clones are handles to one pool; dropping the last of them is an orderly
/// [shutdown](ScheduledPool#impl-Lifecycle-for-ScheduledPool<E>) that does not block.
///
/// In a child that `fork()` makes of this process it rejects tasks, with [`RejectReason::Forked`]; build a
/// new one there. (Linux.)
///
/// ```
/// use millpond::executor::Lifecycle;
/// use millpond::preset;
/// use std::ops::ControlFlow;
/// use std::time::Duration;
///
/// let timers = preset::scheduled("mill", 2)?;
/// // Once, after a delay.
/// let flour = timers.schedule(Duration::from_millis(20), || "flour")?;
/// // Every 2 ms, until the closure says that it is enough.
/// let mut turns = 0;
/// let wheel = timers.schedule_at_fixed_rate(Duration::ZERO, Duration::from_millis(2), move || {
///     turns += 1;
///     match turns {
///         5 => ControlFlow::Break(turns),
///         _ => ControlFlow::Continue(()),
///     }
/// })?;
/// assert_eq!(flour.join()?, "flour");
/// assert_eq!(wheel.join()?, 5);
/// timers.close()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[doc(alias = "ScheduledThreadPoolExecutor")]
#[doc(alias = "ScheduledExecutorService")]
pub struct ScheduledPool<E> {
    engine: Arc<ScheduleEngine>,
    executor: Arc<E>,
    _last: Arc<LastHandle<ScheduleEngine>>,
}

/// A run, as a [decorator](ScheduledBuilder::decorator) sees it.
///
/// ```
/// use millpond::executor::Lifecycle;
/// use millpond::preset;
/// use millpond::schedule::ScheduledPool;
/// use std::sync::mpsc;
/// use std::time::Duration;
///
/// let (tell, told) = mpsc::channel();
/// let timers = ScheduledPool::owning(preset::single("mill").build()?)
///     .decorator(move |info, run| {
///         drop(tell.send(info.number));
///         run();
///     })
///     .build();
/// timers.schedule(Duration::ZERO, || ())?.join()?;
/// assert_eq!(told.recv()?, 1);
/// timers.close()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RunInfo {
    /// The name of the task or the series.
    pub name: Option<String>,
    /// When the run was due.
    pub due: Instant,
    /// How late it begins.
    pub lateness: Duration,
    /// The number of the run in its series, from 1; 1 for a task that is no series.
    pub number: u64,
}

impl<E: Executor + 'static> ScheduledPool<E> {
    /// Describes a pool that hands due tasks to `executor`, and leaves it alone otherwise: others may use
    /// it, too, and it goes on when this pool ends.
    ///
    /// ```
    /// use millpond::executor::{ExecutorExt, Lifecycle};
    /// use millpond::pool::ThreadPool;
    /// use millpond::schedule::ScheduledPool;
    /// use std::time::Duration;
    ///
    /// let pool = ThreadPool::builder("orders").core(2).build()?;
    /// let timers = ScheduledPool::on(pool.clone()).build();
    /// assert_eq!(timers.schedule(Duration::from_millis(1), || 7)?.join()?, 7);
    /// timers.close()?;
    /// assert_eq!(pool.submit(|| 8)?.join()?, 8);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn on(executor: E) -> ScheduledBuilder<E> {
        ScheduledBuilder::new(Arc::new(executor), None)
    }

    /// As [`on`](ScheduledPool::on), but the executor is the pool's own: it is shut down with it, and
    /// waited for with it.
    ///
    /// ```
    /// use millpond::executor::Lifecycle;
    /// use millpond::pool::{Queue, RejectionPolicy, ThreadPool};
    /// use millpond::schedule::ScheduledPool;
    /// use std::time::Duration;
    ///
    /// let pool = ThreadPool::builder("orders")
    ///     .core(2)
    ///     .queue(Queue::bounded(100))
    ///     .rejection(RejectionPolicy::CallerRuns)
    ///     .build()?;
    /// let timers = ScheduledPool::owning(pool).name("orders").build();
    /// assert_eq!(timers.schedule(Duration::from_millis(1), || 7)?.join()?, 7);
    /// timers.close()?;
    /// assert!(timers.executor().is_terminated());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn owning(executor: E) -> ScheduledBuilder<E>
    where
        E: Lifecycle,
    {
        let executor = Arc::new(executor);
        let below = Arc::clone(&executor);
        ScheduledBuilder::new(executor, Some(below))
    }

    /// The pool's name.
    ///
    /// ```
    /// use millpond::executor::Lifecycle;
    /// use millpond::preset;
    ///
    /// let timers = preset::scheduled("mill", 1)?;
    /// assert_eq!(timers.name(), "mill");
    /// timers.close()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn name(&self) -> &str {
        &self.engine.name
    }

    /// The executor that runs due tasks.
    ///
    /// ```
    /// use millpond::executor::{ExecutorExt, Lifecycle};
    /// use millpond::preset;
    ///
    /// let timers = preset::scheduled("mill", 1)?;
    /// // For what is due now.
    /// assert_eq!(timers.executor().submit(|| 7)?.join()?, 7);
    /// timers.close()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn executor(&self) -> &E {
        &self.executor
    }

    /// Runs the closure once, after `delay`. A delay that is further away than time can be told never ends.
    ///
    /// # Errors
    ///
    /// The closure, if the pool is shut down or full; or if it is not due at once and the timer's thread, or the one in
    /// reserve, could not be started ([`RejectReason::SpawnFailed`]).
    ///
    /// ```
    /// use millpond::executor::Lifecycle;
    /// use millpond::preset;
    /// use std::time::Duration;
    ///
    /// let timers = preset::scheduled("mill", 1)?;
    /// let flour = timers.schedule(Duration::from_millis(1), || "flour")?;
    /// assert_eq!(flour.join()?, "flour");
    ///
    /// timers.shutdown();
    /// let rejected = timers.schedule(Duration::from_secs(1), || "bread").unwrap_err();
    /// assert_eq!((rejected.task)(), "bread"); // it is still ours
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[track_caller]
    pub fn schedule<F, T>(&self, delay: Duration, f: F) -> Result<Scheduled<T>, Rejected<F>>
    where
        F: FnOnce() -> T + Send + 'static,
        T: Send + 'static,
    {
        let due = self.engine.clock.deadline(delay);
        self.schedule_with(TaskSpec::new(), due, f)
    }

    /// Runs the closure once, at this time; at once if it has passed.
    ///
    /// # Errors
    ///
    /// As [`schedule`](ScheduledPool::schedule).
    ///
    /// ```
    /// use millpond::preset;
    /// use std::time::{Duration, Instant};
    ///
    /// let timers = preset::scheduled("mill", 1)?;
    /// let due = Instant::now() + Duration::from_millis(3);
    /// let began = timers.schedule_at(due, Instant::now)?.join()?;
    /// assert!(began >= due);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[track_caller]
    pub fn schedule_at<F, T>(&self, due: Instant, f: F) -> Result<Scheduled<T>, Rejected<F>>
    where
        F: FnOnce() -> T + Send + 'static,
        T: Send + 'static,
    {
        self.schedule_with(TaskSpec::new(), Deadline::at(due), f)
    }

    /// Runs the closure once, at this time, as the task that is described: with a name, a priority, a
    /// deadline. The deadline of the task around it is not inherited: it is long past by then. (Unless the
    /// description [asks for it](TaskSpec::inherit_deadline).) Without a clock of its own it goes by that of
    /// the pool.
    ///
    /// # Errors
    ///
    /// As [`schedule`](ScheduledPool::schedule).
    ///
    /// ```
    /// use millpond::preset;
    /// use millpond::task::TaskSpec;
    /// use millpond::time::Deadline;
    ///
    /// let timers = preset::scheduled("mill", 1)?;
    /// let never = timers.schedule_with(TaskSpec::new().name("judgement"), Deadline::NEVER, || ())?;
    /// assert_eq!(timers.upcoming(1)[0].label, "judgement");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn schedule_with<F, T>(
        &self,
        spec: TaskSpec,
        due: Deadline,
        f: F,
    ) -> Result<Scheduled<T>, Rejected<F>>
    where
        F: FnOnce() -> T + Send + 'static,
        T: Send + 'static,
    {
        let engine = &self.engine;
        if engine.is_forked() {
            return Err(engine.not_accepted(f, RejectReason::Forked));
        }
        let spec = spec
            .without_inherited_deadline()
            .clock_by_default(engine.clock.clone());
        let nanos = engine.nanos(due);
        let queued = engine.dispatch_queue.len();
        let mut state = engine.state();
        // ALARM-2: not for what is due at once.
        if !state.alarm.has_hold() && engine.must_wait_for(due) {
            drop(state);
            state = match engine.hold_threads(queued) {
                Ok(state) => state,
                Err(reason) => return Err(engine.not_accepted(f, reason)),
            };
        }
        if let Some(reason) = state.reject_reason(queued) {
            drop(state);
            return Err(engine.not_accepted(f, reason));
        }
        // SCHEDULE-1: built under the lock, so that a rejected closure can be given back as it came. That runs
        // no user code.
        let place = state.pending.reserve();
        let key = place.key();
        let guard = state.guards.issue_for(engine, key);
        state.submitted += 1;
        // Captures are dropped in this order, so the guard outlives what is the user's.
        let (task, handle) = spec.build(move || run_once(f, nanos, guard));
        // Nothing fails from here on. A handle that might have to be dropped on the way would be kept in memory
        // for that, and copied.
        let handle = ManuallyDrop::new(handle);
        let must_dispatch = state.fill(place, due, nanos, Entry::Once(task));
        drop(state);
        if must_dispatch {
            engine.dispatch_due();
        }
        let handle = ManuallyDrop::into_inner(handle);
        Ok(Scheduled::once(engine.slot, handle, key, nanos))
    }

    /// Runs the closure again and again, at a fixed rate: first after `initial`, then whenever a `period` has
    /// passed since the run before was *due*. If a run takes longer, the next one is late, and follows at
    /// once.
    ///
    /// If a run fails, the series ends; [`series`](ScheduledPool::series) has more to choose from.
    ///
    /// # Errors
    ///
    /// The closure, if the pool is shut down or full, or the period is 0.
    ///
    /// ```
    /// use millpond::preset;
    /// use std::time::Duration;
    ///
    /// let timers = preset::scheduled("mill", 1)?;
    /// let second = Duration::from_secs(1);
    /// let beat = timers.schedule_at_fixed_rate(second, 5 * second, || println!("beat"))?;
    /// assert_eq!(timers.upcoming(1)[0].repeats, "every 5s");
    /// beat.cancel();
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[doc(alias = "scheduleAtFixedRate")]
    #[track_caller]
    pub fn schedule_at_fixed_rate<F, R>(
        &self,
        initial: Duration,
        period: Duration,
        f: F,
    ) -> Result<Scheduled<R::End>, Rejected<F>>
    where
        F: FnMut() -> R + Send + 'static,
        R: RunReturn,
    {
        self.series(Every::rate(period))
            .first_after(initial)
            .start(f)
    }

    /// Runs the closure again and again, with a fixed delay: first after `initial`, then whenever `delay` has
    /// passed since the run before *ended*.
    ///
    /// If a run fails, the series ends; [`series`](ScheduledPool::series) has more to choose from.
    ///
    /// # Errors
    ///
    /// The closure, if the pool is shut down or full, or the delay is 0.
    ///
    /// ```
    /// use millpond::preset;
    /// use std::ops::ControlFlow;
    /// use std::time::Duration;
    ///
    /// let timers = preset::scheduled("mill", 1)?;
    /// let mut asked = 0;
    /// let answer = timers.schedule_with_fixed_delay(Duration::ZERO, Duration::from_millis(1), move || {
    ///     asked += 1;
    ///     match asked {
    ///         3 => ControlFlow::Break("it is there"),
    ///         _ => ControlFlow::Continue(()),
    ///     }
    /// })?;
    /// assert_eq!(answer.join()?, "it is there");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[doc(alias = "scheduleWithFixedDelay")]
    #[track_caller]
    pub fn schedule_with_fixed_delay<F, R>(
        &self,
        initial: Duration,
        delay: Duration,
        f: F,
    ) -> Result<Scheduled<R::End>, Rejected<F>>
    where
        F: FnMut() -> R + Send + 'static,
        R: RunReturn,
    {
        self.series(Every::delay(delay))
            .first_after(initial)
            .start(f)
    }

    /// Runs the closure at the times of a calendar.
    ///
    /// If a run fails, the series ends; [`series`](ScheduledPool::series) has more to choose from.
    ///
    /// # Errors
    ///
    /// The closure, if the pool is shut down or full.
    ///
    /// ```
    /// use millpond::preset;
    /// use millpond::schedule::Cron;
    ///
    /// let timers = preset::scheduled("mill", 1)?;
    /// let weekdays_at_nine = Cron::parse("0 9 * * Mon-Fri")?.in_zone("Europe/Berlin")?;
    /// let series = timers.schedule_cron(weekdays_at_nine, || println!("good morning"))?;
    /// # series.cancel();
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[cfg(feature = "cron")]
    #[track_caller]
    pub fn schedule_cron<F, R>(&self, cron: Cron, f: F) -> Result<Scheduled<R::End>, Rejected<F>>
    where
        F: FnMut() -> R + Send + 'static,
        R: RunReturn,
    {
        self.series(Every::cron(cron)).start(f)
    }

    /// Describes a series: how it repeats, what happens when runs overlap, fall behind, or fail.
    ///
    /// ```
    /// use millpond::preset;
    /// use millpond::schedule::{Backoff, Catchup, Every, OnFailure, Overlap};
    /// use std::time::Duration;
    ///
    /// let timers = preset::scheduled("mill", 1)?;
    /// let second = Duration::from_secs(1);
    /// let flush = timers
    ///     .series(Every::rate(5 * second))
    ///     .name("flush")
    ///     .first_after(second)
    ///     .overlap(Overlap::Skip)
    ///     .catchup(Catchup::Skip)
    ///     .on_failure(OnFailure::Retry(Backoff::starting_at(second).tries(5)))
    ///     .start(|| std::fs::write("/dev/null", "figures"))?;
    /// flush.cancel();
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[track_caller]
    pub fn series(&self, every: Every) -> SeriesBuilder<'_> {
        SeriesBuilder::new(&self.engine, every)
    }

    /// Whether it is shut down and has not terminated.
    ///
    /// ```
    /// use millpond::executor::Lifecycle;
    /// use millpond::preset;
    /// use std::time::Duration;
    ///
    /// let timers = preset::scheduled("mill", 1)?;
    /// let later = timers.schedule(Duration::from_secs(3600), || ())?;
    /// timers.shutdown();
    /// assert!(timers.is_terminating(), "one task still waits for its time");
    /// later.cancel();
    /// timers.close()?;
    /// assert!(!timers.is_terminating());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[doc(alias = "isTerminating")]
    pub fn is_terminating(&self) -> bool {
        self.is_shutdown() && !self.is_terminated()
    }
}
