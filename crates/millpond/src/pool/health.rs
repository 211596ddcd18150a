//! What the watchdog of a pool sees of it, and its health.

use super::ThreadPool;
use super::engine::PoolEngine;
use super::events::PoolEvent;
use super::task_queue::TaskQueue;
use super::worker::{Worker, WorkerRecord};
use crate::engine::health::Health;
use crate::engine::long_run::LongRun;
use crate::engine::metrics::{LabelId, LabelSums, LabelTable, WorkerMetrics};
use crate::engine::stacks::LongRuns;
use crate::engine::view::WorkerState;
use crate::engine::watchdog::{InterruptTarget, RunWarning, Supervised, SupervisedPart, Watchdog};
use millpond_raw::recycle;
use millpond_raw::sync::Mutex;
use millpond_raw::sync::atomic::AtomicBool;

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
        self.engine.change_limits(|limits| limits.of_all = warning);
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
        self.engine
            .change_limits(|limits| limits.set_for(name, warning));
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
        Health {
            futile_spins: engine.rare.futile_spins.get(),
            preempted_yields: engine.rare.preempted_yields.get(),
            ..engine.common_health(engine.config().limits().max())
        }
    }
}

impl SupervisedPart for WorkerRecord {
    fn metrics(&self) -> &WorkerMetrics {
        &self.metrics
    }

    fn interrupt_target(&self) -> &Mutex<InterruptTarget> {
        &self.interrupt_target
    }

    fn has_no_task(worker: &Worker) -> bool {
        !worker.stats.is_busy()
    }

    fn state(worker: &Worker) -> WorkerState {
        if worker.stats.is_busy() {
            WorkerState::Running
        } else {
            WorkerState::Idle
        }
    }
}

impl Supervised for PoolEngine {
    fn watchdog(&self) -> &Watchdog {
        &self.watchdog
    }

    fn is_watched(&self) -> &AtomicBool {
        self.is_watched()
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

    fn labels(&self) -> Option<&LabelTable> {
        self.labels.as_ref()
    }

    fn measured(&self) -> LabelSums {
        self.with_workers(|workers| workers.metrics())
    }

    fn rejections_of(&self, label: LabelId) -> u64 {
        self.rejections.of(label).all()
    }

    fn long_runs(&self) -> &LongRuns<Worker> {
        &self.long_runs
    }

    fn long_running_event(&self, run: Box<LongRun>) -> PoolEvent {
        PoolEvent::LongRunning(run)
    }

    fn lost_wakeup_event(&self, queued: usize) -> PoolEvent {
        let pool = self.name.to_string();
        PoolEvent::LostWakeup { pool, queued }
    }
}

#[cfg(all(test, not(any(millpond_loom, millpond_shuttle, millpond_plain_memory))))]
mod tests;
