//! Tasks at their time: after a delay, at a rate, by the calendar.
//!
//! ```text
//!   schedule(5 s, task) ----> [ wheel: what waits for its time ]
//!                                    |  due: the timer of the process rings
//!                                    v
//!                             try_execute ------------------> executor: any of ours
//!                                    |  it would have to wait        ^
//!                                    +---> bag ---> courier ---------+
//! ```
//!
//! [`ScheduledPool`] is everything that Java's `ScheduledThreadPoolExecutor` is, without its traps. It has no
//! workers of its own: what is due goes to an executor, so the bounds, policies, hooks and figures of a
//! pool hold for scheduled work, too. What is cancelled leaves at once and frees its closure. A series that
//! fails does not end in silence. How long ago a task was due when it began is measured.
//!
//! | I want | take |
//! |---|---|
//! | a few workers for timers, and no thinking | [`preset::scheduled`](crate::preset::scheduled) |
//! | timers on a pool of mine | [`ScheduledPool::on`], or [`ScheduledPool::owning`] if it ends with them |
//! | something later | [`schedule`](ScheduledPool::schedule) |
//! | something again and again | [`schedule_at_fixed_rate`](ScheduledPool::schedule_at_fixed_rate), [`schedule_with_fixed_delay`](ScheduledPool::schedule_with_fixed_delay), `schedule_cron` |
//! | to say what happens when runs overlap, fall behind or fail | [`series`](ScheduledPool::series) |
//! | to test it without waiting | a [`ManualClock`](crate::time::ManualClock) |
//!
//! The guide, with drawings of what "every 5 seconds" means, is `docs/guide/scheduling.md`.
//!
//! # Who does what
//!
//! | file | what |
//! |---|---|
//! | `plan` | when the next run is due: pure functions |
//! | `cron` | the times of a calendar (feature `cron`) |
//! | `core` | the books, and how what is due comes to the executor |
//! | `desk` | where the books are, also when the pool is gone |
//! | `ward` | who keeps the pool from being over |
//! | `busy` | who has a task in its hands: what a pool waits for that was stopped |
//! | `end` | how it ends |
//! | `held_timer` | keeping the timer's thread |
//! | `sentry` | a worker that waits for what is due, instead of the timer |
//! | `courier` | who brings tasks to an executor that lets its bringers wait |
//! | `once` | the body of a task that runs once |
//! | `series`, `run`, `body` | one closure, many runs, and what comes after each; one of them; what is called |
//! | `as_executor` | what a scheduled pool is to others: an executor that ends and is managed |
//! | `failure`, `notice` | what runs return, what becomes of failures, and who hears of it |
//! | `handle` | what waits for it all |
//! | `builder`, `series_builder`, `parameters`, `snapshot` | describing a pool and a series; what can change; what a pool shows |
//!
//! # The protocol
//!
//! - **K1** What waits, and whether the pool still takes something, are under one lock. So a task that is
//!   scheduled is in the wheel before the shutdown, and subject to it, or it is refused: there is no
//!   moment between the two. (In Java there was one, for twenty years.)
//! - **K2** A pool is over when its last ward is gone. The pool has one until it is shut down; every
//!   scheduled task has one inside its closure, so until its body is gone, run or dropped; every series
//!   until it has ended, and every run of one. A ward is only made from a ward that is there, or under the
//!   lock while the pool has its own. (That of a task that has begun is its being busy, until its outcome is
//!   delivered: its handle has it, who waits is woken, and a value that nobody wants is gone. A series tells its
//!   handle inside its last run.) A pool that was stopped does not wait for the tasks that it has
//!   handed back: it is over when no body runs and nobody has a task in its hands, so who rings and the
//!   courier count as busy from when they take one. (Of an executor of others, a body that was claimed
//!   and has not made its first step is not seen.)
//! - **K3** One at a time rings: it hands over what is due and sets the alarm for what comes next. Who
//!   would like to ring meanwhile says so under the lock, and the one that rings looks again before
//!   it stops. Who puts something into the wheel that is due before the alarm rings; so does the
//!   alarm. All the looks of a turn hand over a bounded number of tasks, and leave the rest to the alarm
//!   (but by a manual clock, which stands still meanwhile).
//! - **K4** What is due is handed over in the order of the due times, and what is due at the same time in the
//!   order in which it was scheduled, also if the courier has to bring it.
//! - **K5** A task is in the wheel, or with who rings, or in the bag, or with the executor: it is moved, never
//!   copied, so it is run once or cancelled with a reason. Between cancelling and running its cell
//!   decides.
//! - **K6** No code of a user's runs under a lock of the pool; and none on the thread of the timer, but for
//!   `Executor::try_execute`, which is made for that and promises neither to wait nor to run anything. What
//!   is not taken, or is to be dropped, is left to the courier or to another thread.
//! - **K7** `armed` is when somebody looks what is due, and that is never later than something is due (but by
//!   a moment, when a sentry has just left). Who that is, a sentry or the alarm, is in the books, too. While
//!   there is a sentry no alarm is set; one of before may ring, for nothing. A sentry that rests says until
//!   when in the same step, and who rings and finds something that is due before that calls it. A sentry that
//!   leaves sees to it that the alarm is set. Sentries rest by the clock of the executor, so there are none
//!   if the pool goes by another.
//! - **K8** A shutdown cancels what is due later, as the policies say. What is due runs: it waits in the wheel
//!   for nothing but whoever rings. A stop hands both back, as far as an executor of others gives it back, and
//!   what the courier has, as far as the executor gives it back soon (`courier`).
//! - **K9** What is accepted never waits for a thread that cannot be had. So a pool holds the timer's thread
//!   (R7 in `time/timer.rs`) from the first task on that is not due at once, and from the first series,
//!   also if a sentry is there: it may have to leave. If the thread cannot be had, that first one is refused.
//!   The pool lets go of the thread when it is stopped, or over.
//!
//! with V1 to V4 in `series`, N1 to N3 in `ward` and D1 to D4 in `desk`.

mod as_executor;
mod body;
mod builder;
mod busy;
mod core;
mod courier;
#[cfg(feature = "cron")]
mod cron;
mod desk;
mod end;
mod failure;
mod handle;
mod held_timer;
mod notice;
mod once;
mod parameters;
mod plan;
mod run;
mod sentry;
mod series;
mod series_builder;
mod snapshot;
mod ward;

pub use builder::ScheduledBuilder;
#[cfg(feature = "cron")]
pub use cron::{Cron, CronError};
pub use failure::{Backoff, OnFailure, RunError, RunOutcome, RunReturn, Verdict};
pub use handle::{AbortScheduled, Scheduled};
pub use notice::{ScheduleNotice, Then};
pub use plan::{Catchup, Every, Overlap};
pub use series_builder::SeriesBuilder;
pub use snapshot::{ScheduleSnapshot, Upcoming};

use self::core::{Core, Entry};
use self::once::run_once;
use self::ward::OwnWard;
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
/// In a child that `fork()` makes of this process it refuses tasks, with [`RejectReason::Forked`]; build a
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
    core: Arc<Core>,
    executor: Arc<E>,
    _owner: Arc<Owner>,
}

/// What the handles share and the tasks do not: when it drops, no handle is left.
struct Owner(Arc<Core>);

impl Drop for Owner {
    fn drop(&mut self) {
        self.0.shut_down();
    }
}

/// What a [decorator](ScheduledBuilder::decorator) is told of a run; there is an example.
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
    /// What the task or the series is called.
    pub name: Option<String>,
    /// When the run was due.
    pub due: Instant,
    /// How late it begins.
    pub lateness: Duration,
    /// Which run of its series it is, counted from 1; 1 for a task that is no series.
    pub number: u64,
}

impl<E: Executor + 'static> ScheduledPool<E> {
    /// Describes a pool that brings what is due to `executor`, and leaves it alone otherwise: others may use
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
    /// use millpond::pool::{Queue, Rejection, ThreadPool};
    /// use millpond::schedule::ScheduledPool;
    /// use std::time::Duration;
    ///
    /// let pool = ThreadPool::builder("orders")
    ///     .core(2)
    ///     .queue(Queue::bounded(100))
    ///     .rejection(Rejection::CallerRuns)
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

    /// What it is called.
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
        &self.core.name
    }

    /// The executor that runs what is due.
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
    /// The closure, if the pool is shut down or full; or if it is not due at once and nobody could wait for
    /// its time, because the timer's thread could not be started ([`RejectReason::SpawnFailed`]).
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
    /// let refused = timers.schedule(Duration::from_secs(1), || "bread").unwrap_err();
    /// assert_eq!((refused.task)(), "bread"); // it is still ours
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[track_caller]
    pub fn schedule<F, T>(&self, delay: Duration, f: F) -> Result<Scheduled<T>, Rejected<F>>
    where
        F: FnOnce() -> T + Send + 'static,
        T: Send + 'static,
    {
        let due = self.core.clock.deadline(delay);
        self.schedule_spec(TaskSpec::new(), due, f)
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
        self.schedule_spec(TaskSpec::new(), Deadline::at(due), f)
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
    /// let never = timers.schedule_spec(TaskSpec::new().name("judgement"), Deadline::NEVER, || ())?;
    /// assert_eq!(timers.upcoming(1)[0].label, "judgement");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn schedule_spec<F, T>(
        &self,
        spec: TaskSpec,
        due: Deadline,
        f: F,
    ) -> Result<Scheduled<T>, Rejected<F>>
    where
        F: FnOnce() -> T + Send + 'static,
        T: Send + 'static,
    {
        let core = &self.core;
        if core.is_forked() {
            return Err(Rejected::new(f, RejectReason::Forked));
        }
        let spec = spec
            .without_inherited_deadline()
            .clock_by_default(core.clock.clone());
        let nanos = core.nanos(due);
        let carried = core.bag.len();
        let mut books = core.books();
        // K9: not for what is due at once.
        if books.hold.is_none() && core.waits_for(due) {
            drop(books);
            books = match core.books_with_timer(carried) {
                Ok(books) => books,
                Err(reason) => return Err(Rejected::new(f, reason)),
            };
        }
        if let Some(reason) = books.objection(carried) {
            drop(books);
            return Err(Rejected::new(f, reason));
        }
        // K1: made under the lock, so that a closure that is refused can be given back. That runs no code
        // of the user's.
        let place = books.reserve();
        let key = place.key();
        let ward = OwnWard::new(books.count_ward(core), key);
        // K2: what a closure has captured is dropped in this order, so the ward outlives the user's part.
        let (task, handle) = spec.build(move || run_once(f, nanos, ward));
        // Nothing fails from here on. A handle that might have to be dropped on the way would be kept in memory
        // for that, and copied.
        let handle = ManuallyDrop::new(handle);
        let rings = books.fill(place, due, nanos, Entry::Once(task));
        drop(books);
        if rings {
            core.ring();
        }
        let handle = ManuallyDrop::into_inner(handle);
        Ok(Scheduled::once(core.desk, handle, key, due))
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
        SeriesBuilder::new(&self.core, every)
    }

    /// Whether it takes no more tasks and has not ended.
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
