//! The handle of a scheduled task or of a series.

use super::failure::{RunError, RunOutcome};
use super::series::Series;
use super::state::StateSlot;
use crate::task::{CancelReason, TaskError, TaskHandle};
use crate::time::{Deadline, Key};
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

/// The handle of a scheduled task or of a series: block on it, `.await` it, cancel it, ask it how it goes.
///
/// Dropping it lets the task or the series go on.
///
/// The handle of a series is finished when the series has ended: it was cancelled, it failed, or its
/// closure said so ([`RunReturn`](super::RunReturn)).
///
/// ```
/// use millpond::preset;
/// use std::time::Duration;
///
/// let timers = preset::scheduled("mill", 1)?;
/// let bread = timers.schedule(Duration::from_millis(5), || "bread")?;
/// let cake = timers.schedule(Duration::from_secs(3600), || "cake")?;
/// assert_eq!(bread.join()?, "bread");
///
/// assert!(cake.cancel());
/// assert!(cake.join().unwrap_err().is_cancelled());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[doc(alias = "ScheduledFuture")]
pub struct Scheduled<T> {
    task: TaskHandle<Ending<T>>,
    kind: Kind,
}

/// Handles are kept by the million, so the due time is one word, and the tag is in the reference to the slot. A tag of
/// half a word would make handles move in pieces that overlap, which is slow.
enum Kind {
    Once {
        slot: &'static StateSlot,
        key: Key,
        /// The due time in nanoseconds since the base of the pool.
        due: u64,
    },
    Series(Arc<Series>),
}

/// The value of the task behind a handle.
pub(super) enum Ending<T> {
    Value {
        value: T,
        late: u64,
    },
    Failed(RunError),
    /// A decorator did not call the run.
    NotRun,
}

impl<T> Scheduled<T> {
    pub(super) fn once(
        slot: &'static StateSlot,
        task: TaskHandle<Ending<T>>,
        key: Key,
        due: u64,
    ) -> Self {
        let kind = Kind::Once { slot, key, due };
        Scheduled { task, kind }
    }

    pub(super) fn series(task: TaskHandle<Ending<T>>, series: Arc<Series>) -> Self {
        let kind = Kind::Series(series);
        Scheduled { task, kind }
    }

    /// Waits for the task, or for the end of the series, and takes its value.
    ///
    /// # Errors
    ///
    /// It panicked, failed or was cancelled; or the caller, itself a task, was interrupted.
    ///
    /// # Inside its own executor
    ///
    /// If the caller is a task on a worker of the executor that is to run this one, and this one is due and has not
    /// started, it runs here and now. So a pool cannot starve on tasks that wait for others.
    ///
    /// ```
    /// use millpond::preset;
    /// use std::time::Duration;
    ///
    /// let timers = preset::scheduled("mill", 1)?;
    /// let bread = timers.schedule(Duration::from_millis(5), || "bread")?;
    /// assert_eq!(bread.join()?, "bread");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[doc(alias = "get")]
    pub fn join(mut self) -> Result<T, TaskError> {
        self.join_until(Deadline::NEVER)
    }

    /// As [`join`](Scheduled::join), but not longer than `timeout`. After a time-out or an interrupt the
    /// handle can be used again.
    ///
    /// # Errors
    ///
    /// As [`join`](Scheduled::join), or the time was up.
    ///
    /// ```
    /// use millpond::preset;
    /// use std::time::Duration;
    ///
    /// let timers = preset::scheduled("mill", 1)?;
    /// let mut bread = timers.schedule(Duration::from_secs(3600), || "bread")?;
    /// let error = bread.join_timeout(Duration::from_millis(1)).unwrap_err();
    /// assert!(error.is_timed_out());
    /// assert!(bread.cancel()); // it still waits for its time
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[doc(alias = "get")]
    pub fn join_timeout(&mut self, timeout: Duration) -> Result<T, TaskError> {
        if let Some(result) = self.try_join() {
            return result;
        }
        self.join_until(self.task.clock().deadline(timeout))
    }

    /// As [`join`](Scheduled::join), but not longer than `deadline`.
    ///
    /// # Errors
    ///
    /// As [`join_timeout`](Scheduled::join_timeout).
    ///
    /// ```
    /// use millpond::pool::ThreadPool;
    /// use millpond::schedule::ScheduledPool;
    /// use millpond::time::{Deadline, ManualClock};
    /// use std::time::Duration;
    ///
    /// let (hand, minute) = (ManualClock::new(), Duration::from_secs(60));
    /// let pool = ThreadPool::builder("mill").clock(hand.clock()).build()?;
    /// let timers = ScheduledPool::owning(pool).build();
    /// let mut bread = timers.schedule(minute, || "bread")?;
    /// assert!(bread.join_until(Deadline::at(hand.clock().now())).unwrap_err().is_timed_out());
    /// hand.advance(minute);
    /// assert_eq!(bread.join_until(Deadline::NEVER)?, "bread");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn join_until(&mut self, deadline: Deadline) -> Result<T, TaskError> {
        if let Kind::Once { slot, key, due } = self.kind {
            let is_waiting = !self.task.is_started();
            let due = is_waiting.then(|| slot.due_on_worker_thread(due)).flatten();
            if let Some(due) = due.filter(|due| *due < deadline) {
                match self.task.join_until(due) {
                    Err(TaskError::TimedOut) => {
                        self.task.run_here();
                        // It may not have been dispatched yet.
                        let tombstone = slot.remove(key);
                        drop(tombstone);
                    }
                    result => return result.and_then(Ending::into_result),
                }
            }
        }
        self.task.join_until(deadline).and_then(Ending::into_result)
    }

    /// Takes the value if it is there, and does not wait.
    ///
    /// ```
    /// use millpond::preset;
    /// use std::time::Duration;
    ///
    /// let timers = preset::scheduled("mill", 1)?;
    /// let mut bread = timers.schedule(Duration::from_secs(3600), || "bread")?;
    /// assert!(bread.try_join().is_none());
    /// bread.cancel();
    /// assert!(bread.try_join().is_some_and(|result| result.is_err()));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn try_join(&mut self) -> Option<Result<T, TaskError>> {
        let result = self.task.try_join()?;
        Some(result.and_then(Ending::into_result))
    }

    /// Cancels it. A task or run that has not begun never will, and its closure is dropped before this returns. The
    /// value of a run that has begun is dropped, and no other run follows. Returns false if it was finished
    /// before.
    ///
    /// Nothing of it is left in the pool, however far away its due time was.
    ///
    /// ```
    /// use millpond::preset;
    /// use std::sync::Arc;
    /// use std::time::Duration;
    ///
    /// let timers = preset::scheduled("mill", 1)?;
    /// let grain = Arc::new("rye");
    /// let kept = Arc::clone(&grain);
    /// let bread = timers.schedule(Duration::from_secs(3600), move || kept.len())?;
    /// assert!(bread.cancel());
    /// assert_eq!(Arc::strong_count(&grain), 1); // the closure is gone
    /// assert!(!bread.cancel());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[doc(alias = "setRemoveOnCancelPolicy")]
    pub fn cancel(&self) -> bool {
        let was_first = self.task.cancel();
        self.cancel_series(false);
        was_first
    }

    /// Cancels it and interrupts its run; see [`crate::interrupt`]. Returns whether this call
    /// cancelled it.
    ///
    /// ```
    /// use millpond::interrupt;
    /// use millpond::preset;
    /// use std::sync::mpsc::channel;
    /// use std::time::Duration;
    ///
    /// let timers = preset::scheduled("mill", 1)?;
    /// let (tell, told) = channel();
    /// let nap = timers.schedule(Duration::ZERO, move || {
    ///     tell.send("asleep").unwrap();
    ///     if interrupt::sleep(Duration::from_secs(3600)).is_err() {
    ///         tell.send("woken").unwrap();
    ///     }
    /// })?;
    /// assert_eq!(told.recv()?, "asleep");
    /// assert!(nap.interrupt());
    /// assert_eq!(told.recv()?, "woken");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[doc(alias = "cancel")]
    pub fn interrupt(&self) -> bool {
        let was_first = self.task.interrupt();
        self.cancel_series(true);
        was_first
    }

    /// A task that runs once has left the queue with its closure.
    fn cancel_series(&self, interrupts: bool) {
        match &self.kind {
            Kind::Series(series) if !series.is_forked() => series.cancel(interrupts),
            Kind::Series(_) | Kind::Once { .. } => {}
        }
    }

    /// Whether there is an outcome. Once true it stays true, and joining does not block.
    ///
    /// ```
    /// use millpond::preset;
    /// use std::time::Duration;
    ///
    /// let timers = preset::scheduled("mill", 1)?;
    /// let bread = timers.schedule(Duration::from_secs(3600), || "bread")?;
    /// assert!(!bread.is_finished());
    /// bread.cancel();
    /// assert!(bread.is_finished());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[doc(alias = "isDone")]
    pub fn is_finished(&self) -> bool {
        self.task.is_finished()
    }

    /// Whether it was cancelled.
    ///
    /// ```
    /// use millpond::executor::Lifecycle;
    /// use millpond::preset;
    /// use std::time::Duration;
    ///
    /// let timers = preset::scheduled("mill", 1)?;
    /// let second = Duration::from_secs(1);
    /// let beat = timers.schedule_at_fixed_rate(second, second, || ())?;
    /// assert!(!beat.is_cancelled());
    /// timers.shutdown();
    /// assert!(beat.is_cancelled());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn is_cancelled(&self) -> bool {
        self.task.is_cancelled()
    }

    /// The name of the task or the series.
    ///
    /// ```
    /// use millpond::preset;
    /// use millpond::schedule::Every;
    /// use std::time::Duration;
    ///
    /// let timers = preset::scheduled("mill", 1)?;
    /// let every = Every::rate(Duration::from_secs(3600));
    /// let bread = timers.series(every).name("bread").start(|| ())?;
    /// assert_eq!(bread.name(), Some("bread"));
    /// # bread.cancel();
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn name(&self) -> Option<&str> {
        self.task.name()
    }

    /// When the next run is due; [never](Deadline::NEVER) if there is none, or if that depends on a run
    /// that has not ended.
    ///
    /// ```
    /// use millpond::preset;
    /// use millpond::time::Deadline;
    /// use std::time::{Duration, Instant};
    ///
    /// let timers = preset::scheduled("mill", 1)?;
    /// let noon = Instant::now() + Duration::from_secs(3600);
    /// let bread = timers.schedule_at(noon, || "bread")?;
    /// assert_eq!(bread.next_run(), Deadline::at(noon));
    /// bread.cancel();
    /// assert_eq!(bread.next_run(), Deadline::NEVER);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[doc(alias = "getDelay")]
    pub fn next_run(&self) -> Deadline {
        match &self.kind {
            Kind::Once { slot, due, .. } => {
                // STATESLOT-3: if it is still not started, the pool is its own.
                let due = slot.deadline(*due);
                if self.task.is_started() {
                    Deadline::NEVER
                } else {
                    due
                }
            }
            Kind::Series(series) if series.is_forked() => Deadline::NEVER,
            Kind::Series(series) => series.next_run(),
        }
    }

    /// How many runs have begun. A run that was cancelled meanwhile counts.
    ///
    /// ```
    /// use millpond::preset;
    /// use millpond::time::Deadline;
    /// use std::ops::ControlFlow;
    /// use std::time::Duration;
    ///
    /// let timers = preset::scheduled("mill", 1)?;
    /// let (ms, mut turns) = (Duration::from_millis(1), 0);
    /// let mut wheel = timers.schedule_at_fixed_rate(ms, ms, move || {
    ///     turns += 1;
    ///     if turns == 3 { ControlFlow::Break("flour") } else { ControlFlow::Continue(()) }
    /// })?;
    /// assert_eq!(wheel.join_until(Deadline::NEVER)?, "flour");
    /// assert_eq!(wheel.runs(), 3);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn runs(&self) -> u64 {
        match &self.kind {
            Kind::Once { .. } => u64::from(self.task.has_begun()),
            Kind::Series(series) => series.metrics().runs,
        }
    }

    /// How many runs of a series panicked or returned an error.
    ///
    /// ```
    /// use millpond::preset;
    /// use millpond::time::Deadline;
    /// use std::time::Duration;
    ///
    /// let timers = preset::scheduled("mill", 1)?;
    /// let ms = Duration::from_millis(1);
    /// let mut pump = timers.schedule_at_fixed_rate(ms, ms, || Err::<(), _>("dry"))?;
    /// assert!(pump.join_until(Deadline::NEVER).unwrap_err().is_failed());
    /// assert_eq!(pump.failures(), 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn failures(&self) -> u64 {
        self.of_series(|series| series.metrics().failures)
    }

    /// How many due times of a series were skipped, because a run of it was still going
    /// ([`Overlap::Skip`](super::Overlap::Skip)).
    ///
    /// ```
    /// use millpond::pool::ThreadPool;
    /// use millpond::schedule::{Every, Overlap, ScheduledPool};
    /// use millpond::time::ManualClock;
    /// use std::sync::mpsc::channel;
    /// use std::time::Duration;
    ///
    /// let (hand, second) = (ManualClock::new(), Duration::from_secs(1));
    /// let pool = ThreadPool::builder("mill").max(1).clock(hand.clock()).build()?;
    /// let timers = ScheduledPool::owning(pool).build();
    /// let ((tell, told), (go, wait)) = (channel(), channel::<()>());
    /// let slow = timers.series(Every::rate(second)).overlap(Overlap::Skip).start(move || {
    ///     tell.send("it runs").unwrap();
    ///     for () in &wait {}
    /// })?;
    /// hand.advance(second);
    /// told.recv()?;
    /// hand.advance(second);
    /// assert_eq!((slow.runs(), slow.skipped()), (1, 1));
    /// drop((slow.abort_on_drop(), go));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn skipped(&self) -> u64 {
        self.of_series(|series| series.metrics().skipped)
    }

    /// How many runs of a series the executor rejected or dropped.
    ///
    /// ```
    /// use millpond::executor::Lifecycle;
    /// use millpond::pool::ThreadPool;
    /// use millpond::schedule::{RunOutcome, ScheduledPool};
    /// use millpond::time::ManualClock;
    /// use std::time::Duration;
    ///
    /// let (hand, second) = (ManualClock::new(), Duration::from_secs(1));
    /// let pool = ThreadPool::builder("mill").clock(hand.clock()).build()?;
    /// let timers = ScheduledPool::on(pool.clone()).build();
    /// let beat = timers.schedule_at_fixed_rate(second, second, || ())?;
    /// pool.close()?;
    /// hand.advance(second);
    /// assert_eq!((beat.rejected(), beat.last_outcome()), (1, Some(RunOutcome::Rejected)));
    /// beat.cancel();
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn rejected(&self) -> u64 {
        self.of_series(|series| series.metrics().rejected)
    }

    fn of_series(&self, count: impl FnOnce(&Series) -> u64) -> u64 {
        match &self.kind {
            Kind::Once { .. } => 0,
            Kind::Series(series) => count(series),
        }
    }

    /// How the last run of a series went; `None` before the first has ended, and for a task that is no
    /// series: its outcome is what [`join`](Scheduled::join) returns.
    ///
    /// ```
    /// use millpond::interrupt;
    /// use millpond::preset;
    /// use millpond::schedule::RunOutcome;
    /// use std::time::Duration;
    ///
    /// let timers = preset::scheduled("mill", 1)?;
    /// let ms = Duration::from_millis(1);
    /// let wheel = timers.schedule_at_fixed_rate(ms, ms, || ())?;
    /// while wheel.last_outcome().is_none() {
    ///     interrupt::sleep(ms)?;
    /// }
    /// assert_eq!(wheel.last_outcome(), Some(RunOutcome::Completed));
    /// wheel.cancel();
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn last_outcome(&self) -> Option<RunOutcome> {
        match &self.kind {
            Kind::Once { .. } => None,
            Kind::Series(series) => series.metrics().outcome,
        }
    }

    /// How late the last run began; `None` before the first, and when the value of a task has been taken.
    ///
    /// ```
    /// use millpond::pool::ThreadPool;
    /// use millpond::schedule::ScheduledPool;
    /// use millpond::time::{Deadline, ManualClock};
    /// use std::ops::ControlFlow;
    /// use std::time::Duration;
    ///
    /// let (hand, minute) = (ManualClock::new(), Duration::from_secs(60));
    /// let pool = ThreadPool::builder("mill").clock(hand.clock()).build()?;
    /// let timers = ScheduledPool::owning(pool).build();
    /// let mut wheel = timers.schedule_at_fixed_rate(minute, minute, || ControlFlow::Break("flour"))?;
    /// hand.advance(10 * minute); // at once, so nine of them too late
    /// wheel.join_until(Deadline::NEVER)?;
    /// assert_eq!(wheel.lateness(), Some(9 * minute));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn lateness(&mut self) -> Option<Duration> {
        match &self.kind {
            Kind::Series(series) => series.metrics().late,
            Kind::Once { .. } => match self.task.peek()? {
                Ending::Value { late, .. } => Some(Duration::from_nanos(*late)),
                Ending::Failed(_) | Ending::NotRun => None,
            },
        }
    }

    /// A handle that cancels it when it is dropped, and interrupts its run.
    ///
    /// ```
    /// use millpond::preset;
    /// use std::time::Duration;
    ///
    /// let timers = preset::scheduled("mill", 1)?;
    /// let bread = timers.schedule(Duration::from_secs(3600), || "bread")?.abort_on_drop();
    /// assert_eq!(timers.snapshot().pending, 1);
    /// drop(bread);
    /// assert_eq!(timers.snapshot().pending, 0);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn abort_on_drop(self) -> AbortScheduled<T> {
        AbortScheduled(Some(self))
    }
}

impl<T> Ending<T> {
    fn into_result(self) -> Result<T, TaskError> {
        match self {
            Ending::Value { value, .. } => Ok(value),
            Ending::Failed(error) => Err(TaskError::Failed(error)),
            Ending::NotRun => Err(TaskError::Cancelled(CancelReason::Dropped)),
        }
    }
}

/// Awaiting is cancel-safe, as that of a [`TaskHandle`].
impl<T> Future for Scheduled<T> {
    type Output = Result<T, TaskError>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let polled = Pin::new(&mut self.task).poll(context);
        polled.map(|result| result.and_then(Ending::into_result))
    }
}

impl<T> fmt::Debug for Scheduled<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Scheduled")
            .field("name", &self.name())
            .field("next_run", &self.next_run())
            .field("runs", &self.runs())
            .field("is_finished", &self.is_finished())
            .finish_non_exhaustive()
    }
}

/// A [`Scheduled`] that is cancelled when it is dropped.
///
/// ```
/// use millpond::preset;
/// use std::time::Duration;
///
/// let timers = preset::scheduled("mill", 1)?;
/// let hour = Duration::from_secs(3600);
/// drop(timers.schedule(hour, || ())?.abort_on_drop());
/// assert_eq!(timers.snapshot().pending, 0);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
#[must_use = "dropping it cancels the task"]
pub struct AbortScheduled<T>(Option<Scheduled<T>>);

impl<T> AbortScheduled<T> {
    /// The plain handle again. Dropping that lets the task go on.
    ///
    /// ```
    /// use millpond::preset;
    /// use std::time::Duration;
    ///
    /// let timers = preset::scheduled("mill", 1)?;
    /// let bread = timers.schedule(Duration::from_millis(5), || "bread")?.abort_on_drop();
    /// assert_eq!(bread.disarm().join()?, "bread");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn disarm(mut self) -> Scheduled<T> {
        self.0
            .take()
            .expect("it is only taken here and in the drop")
    }
}

impl<T> Drop for AbortScheduled<T> {
    fn drop(&mut self) {
        if let Some(handle) = &self.0 {
            handle.interrupt();
        }
    }
}
