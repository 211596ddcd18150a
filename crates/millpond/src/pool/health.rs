//! The health of a pool, and what its watchdog sees of it.

use super::ThreadPool;
use super::engine::PoolEngine;
use super::events::{LongRun, PoolEvent};
use super::stacks::Seen;
use super::task_queue::TaskQueue;
use super::worker::Worker;
use crate::engine::events::EventSource;
use crate::engine::metrics::{Label, LabelId, RunningTask};
use crate::engine::watchdog::{
    InterruptTarget, Limits, Overrun, RunWarning, Supervised, SupervisedWorker, Watchdog,
};
use crate::time::TimestampClock;
use millpond_raw::recycle;
use millpond_raw::sync::Mutex;
use millpond_raw::sync::atomic::AtomicBool;
use std::sync::Arc;
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
    /// Now: the number of tasks that are running and have exceeded the limit of their [`RunWarning`].
    pub long_running: usize,
    /// Now: the time since the last lost wake-up was found, if there was one.
    pub since_lost_wakeup: Option<Duration>,
    /// Now, and no fault: the number of workers above the maximum, which was lowered; they leave when they are idle.
    pub surplus_workers: usize,
    /// Since the start: the number of times that tasks waited although workers were idle, and the watchdog woke the
    /// workers, which is a bug of the queue, if that is your own, or of this library.
    pub lost_wakeups: u64,
    /// Since the start: the number of tasks that the watchdog has found to exceed the limit of their [`RunWarning`], those
    /// that have ended included.
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

    pub(super) fn has_lost_wakeup_lately(&self) -> bool {
        self.since_lost_wakeup.is_some_and(|since| since < LATELY)
    }
}

impl ThreadPool {
    /// Sets the limit on the run time of tasks; `None` for no limit. It holds for tasks that run already, too, but only
    /// those that start from now on can be interrupted for it.
    ///
    /// ```
    /// use millpond::executor::ExecutorExt;
    /// use millpond::pool::{RunWarning, ThreadPool};
    /// use millpond::time::ManualClock;
    /// use std::sync::mpsc::sync_channel;
    /// use std::time::Duration;
    ///
    /// let (hand, minute) = (ManualClock::new(), Duration::from_secs(60));
    /// let mill = ThreadPool::builder("mill").clock(hand.clock()).on_event(|_| ());
    /// let pool = mill.build()?;
    /// pool.set_run_warning(Some(RunWarning::after(minute)));
    /// let (meet, wait) = sync_channel(0);
    /// pool.execute(move || for () in wait {})?;
    /// meet.send(())?; // now it runs
    /// hand.advance(minute);
    /// assert_eq!(pool.health().long_runs, 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn set_run_warning(&self, warning: Option<RunWarning>) {
        self.engine.set_run_limits(|limits| limits.of_all = warning);
    }

    /// Sets the limit for tasks of one name; `None` for the limit of all tasks.
    ///
    /// ```
    /// use millpond::executor::ExecutorExt;
    /// use millpond::pool::{RunWarning, ThreadPool};
    /// use millpond::task::TaskSpec;
    /// use millpond::time::ManualClock;
    /// use std::sync::mpsc::sync_channel;
    /// use std::time::Duration;
    ///
    /// let (hand, minute) = (ManualClock::new(), Duration::from_secs(60));
    /// let mill = ThreadPool::builder("mill").clock(hand.clock()).on_event(|_| ());
    /// let pool = mill.build()?;
    /// pool.set_run_warning_for("nap", Some(RunWarning::after(minute)));
    /// let (meet, wait) = sync_channel(0);
    /// let nap = pool.submit_with(TaskSpec::new().name("nap"), move || for () in wait {})?;
    /// meet.send(())?; // now it runs
    /// hand.advance(minute);
    /// assert_eq!(pool.health().long_runs, 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn set_run_warning_for(&self, name: &str, warning: Option<RunWarning>) {
        self.engine.set_run_limits(|limits| match warning {
            Some(warning) => {
                limits.by_name.insert(name.into(), warning);
            }
            None => {
                limits.by_name.remove(name);
            }
        });
    }

    /// The health of the pool: what is wrong with it now, and counts since it was built.
    ///
    /// ```
    /// use millpond::executor::ExecutorExt;
    /// use millpond::pool::ThreadPool;
    ///
    /// let pool = ThreadPool::builder("mill").build()?;
    /// pool.submit(|| 7)?.join()?;
    /// assert!(pool.health().is_healthy());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn health(&self) -> Health {
        let engine = &*self.engine;
        let (word, limits) = (engine.ctl().read(), engine.config().limits());
        // A forked process has no workers, and a lock may have been copied while it was held.
        let (long_running, since_lost_wakeup) = if engine.is_forked() {
            (0, None)
        } else {
            (engine.long_running(), engine.since_lost_wakeup())
        };
        Health {
            long_running,
            since_lost_wakeup,
            lost_wakeups: engine.watchdog.lost_wakeups.get(),
            long_runs: engine.watchdog.long_runs.get(),
            deadlocks: engine.watchdog.deadlocks.get(),
            thread_failures: engine.starts.failures.get(),
            failed_starts_in_a_row: engine.starts.failed_in_a_row.get(),
            surplus_workers: word.workers().saturating_sub(limits.max()),
            futile_spins: engine.rare.futile_spins.get(),
            preempted_yields: engine.rare.preempted_yields.get(),
        }
    }
}

impl PoolEngine {
    fn set_run_limits(self: &Arc<Self>, change: impl FnOnce(&mut Limits)) {
        if !self.is_forked() {
            self.change_limits(change);
        }
    }
}

impl SupervisedWorker for Worker {
    fn number(&self) -> u64 {
        self.number()
    }

    fn running(&self) -> Option<RunningTask> {
        self.metrics.running()
    }

    fn is_flagged_idle(&self) -> bool {
        crate::engine::Worker::is_idle(self)
    }

    fn has_no_task(&self) -> bool {
        self.thread().is_some() && !self.stats.is_busy()
    }

    fn interrupt_target(&self) -> &Mutex<InterruptTarget> {
        &self.interrupt_target
    }
}

impl Supervised for PoolEngine {
    type Worker = Worker;

    fn watchdog(&self) -> &Watchdog {
        &self.watchdog
    }

    fn is_watched(&self) -> &AtomicBool {
        self.is_watched()
    }

    fn timestamps(&self) -> &TimestampClock {
        &self.timestamps
    }

    fn workers(&self) -> Vec<Arc<Worker>> {
        self.with_workers(|workers| workers.list())
    }

    fn has_foreign_queue(&self) -> bool {
        self.queue.is_foreign()
    }

    fn has_ready_task(&self) -> bool {
        self.queue.hint().is_some_and(|hint| hint.is_ready)
    }

    fn queued(&self) -> usize {
        self.queue.len()
    }

    fn is_queue_empty(&self) -> bool {
        self.queue.is_empty()
    }

    fn has_surplus(&self) -> bool {
        let by_queue = matches!(&self.queue, TaskQueue::Plain(queue) if queue.has_surplus());
        by_queue || recycle::has_surplus()
    }

    fn trim(&self) {
        if let TaskQueue::Plain(queue) = &self.queue {
            queue.trim();
        }
        recycle::trim();
    }

    fn taken(&self) -> u64 {
        self.with_workers(|workers| workers.counts().done())
    }

    fn wake_idle_workers(&self) {
        self.wake_idle_workers();
    }

    fn label(&self, id: LabelId) -> Label {
        self.label(id)
    }

    fn renew_labels(&self) {
        self.renew_labels();
    }

    fn timer_unavailable(&self) {
        self.starts.failures.add(1);
    }

    fn report_long_run(self: &Arc<Self>, worker: &Arc<Worker>, overrun: Overrun) {
        let Overrun {
            running,
            label,
            running_for,
            limit,
            is_interrupted,
            now,
        } = overrun;
        let run = LongRun {
            pool: self.name.to_string(),
            label,
            location: running.location,
            running_for,
            limit,
            is_interrupted,
            worker: self.view(worker, now),
            stack: String::new(),
        };
        self.emit_long_run(Seen::at(worker, Some(running.turn)), run);
    }

    fn report_lost_wakeup(self: &Arc<Self>, queued: usize) {
        let pool = self.name.to_string();
        self.emit(move |_| PoolEvent::LostWakeup { pool, queued });
    }
}
