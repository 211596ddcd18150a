//! What the watchdog of a pool sees of it, and its health.
//!
//! The limits of the watchdog are about tasks, with all their parts. A lost wake-up is looked for among what somebody was
//! woken for: tasks. A job that was published may wait for its owner while others sleep ([`super::context`]).

use super::ForkJoinPool;
use super::engine::ForkJoinEngine;
use super::events::ForkJoinEvent;
use super::sleep::Wait;
use super::worker::{Worker, WorkerRecord};
use crate::engine::WorkerEngine;
use crate::engine::health::Health;
use crate::engine::long_run::LongRun;
use crate::engine::metrics::{LabelSums, LabelTable, WorkerMetrics};
use crate::engine::stacks::LongRuns;
use crate::engine::view::WorkerState;
use crate::engine::watchdog::{InterruptTarget, RunWarning, Supervised, SupervisedPart, Watchdog};
use millpond_raw::sync::Mutex;
use millpond_raw::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// How a worker waits, as others see it. Only the worker writes, when its thread is about to sleep.
#[derive(Debug, Default)]
pub(super) struct WaitFlags {
    wait: AtomicUsize,
    is_helping: AtomicBool,
}

const BLOCKED: usize = 1;
const JOINING: usize = 2;

impl WaitFlags {
    pub(super) fn set(&self, wait: Option<Wait>) {
        let wait = match wait {
            None => 0,
            Some(Wait::Blocked) => BLOCKED,
            Some(Wait::Joining) => JOINING,
        };
        self.wait.store(wait, Ordering::Relaxed);
    }

    pub(super) fn set_helping(&self, is_helping: bool) {
        self.is_helping.store(is_helping, Ordering::Relaxed);
    }

    fn state(&self) -> WorkerState {
        match self.wait.load(Ordering::Relaxed) {
            BLOCKED => WorkerState::Blocked,
            JOINING => WorkerState::Joining,
            _ if self.is_helping.load(Ordering::Relaxed) => WorkerState::Helping,
            _ => WorkerState::Running,
        }
    }
}

impl ForkJoinPool {
    /// The health of the pool: what is wrong with it now, and counts since it was built.
    ///
    /// ```
    /// use millpond::executor::ExecutorExt;
    /// use millpond::forkjoin::ForkJoinPool;
    ///
    /// let pool = ForkJoinPool::builder("mill").build()?;
    /// pool.submit(|| 7)?.join()?;
    /// assert!(pool.health().is_healthy());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn health(&self) -> Health {
        let engine = &*self.engine;
        Health {
            futile_spins: engine.rare.futile_spins.get(),
            preempted_yields: engine.rare.preempted_yields.get(),
            ..engine.common_health(engine.parallelism() + engine.config.max_spares())
        }
    }

    /// Sets the limit on the run time of tasks; `None` for no limit. It holds for tasks that run already, too, but only
    /// those that start from now on can be interrupted for it.
    ///
    /// ```
    /// use millpond::forkjoin::{ForkJoinPool, RunWarning};
    /// use std::time::Duration;
    ///
    /// let pool = ForkJoinPool::builder("mill").build()?;
    /// let limit = Some(RunWarning::after(Duration::from_secs(60)));
    /// pool.set_run_warning(limit);
    /// assert_eq!(pool.run_warning(), limit);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn set_run_warning(&self, warning: Option<RunWarning>) {
        self.engine.change_limits(|limits| limits.of_all = warning);
    }

    /// Sets the limit for tasks of one name; `None` for the limit of all tasks.
    pub fn set_run_warning_for(&self, name: &str, warning: Option<RunWarning>) {
        self.engine
            .change_limits(|limits| limits.set_for(name, warning));
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
        worker.is_idle()
    }

    fn state(worker: &Worker) -> WorkerState {
        if worker.thread().is_none() || worker.is_idle() {
            WorkerState::Idle
        } else {
            worker.waits.state()
        }
    }
}

impl Supervised for ForkJoinEngine {
    fn watchdog(&self) -> &Watchdog {
        &self.watchdog
    }

    fn is_watched(&self) -> &AtomicBool {
        &self.is_watched
    }

    fn has_foreign_queue(&self) -> bool {
        false
    }

    /// A task for which a sleeper should have been woken: too few workers run, and none is on its way.
    fn has_ready_task(&self) -> bool {
        let has_task = !self.outside.is_empty()
            || self
                .slots
                .iter()
                .any(|slot| slot.deque.len() > slot.deque.jobs());
        has_task
            && self.ctl().read().runs_queued_tasks()
            && self.sleep.read().searching() == 0
            && self.lacks_runners()
    }

    fn queued(&self) -> usize {
        let inside: usize = self.slots.iter().map(|slot| slot.deque.len()).sum();
        self.outside.len() + inside
    }

    /// Its workers give memory back themselves.
    fn has_surplus(&self) -> bool {
        false
    }

    fn trim(&self) {}

    fn is_queue_empty(&self) -> bool {
        !self.has_visible_work()
    }

    fn taken(&self) -> u64 {
        self.with_workers(|workers| workers.counts().done())
    }

    fn wake_idle_workers(&self) {
        self.wake_all();
    }

    fn labels(&self) -> Option<&LabelTable> {
        self.labels.as_ref()
    }

    fn measured(&self) -> LabelSums {
        self.with_workers(|workers| workers.metrics())
    }

    /// Blocked workers may wait for the very work that a spare is to do.
    fn lacks_refused_worker(&self) -> bool {
        self.starts.failed_in_a_row.get() > 0
            && self.ctl().read().runs_queued_tasks()
            && self.sleep.read().searching() == 0
            && self.lacks_runners()
            && self.has_visible_work()
    }

    fn start_missing_workers(&self) {
        self.start_workers_for_queued();
    }

    fn long_runs(&self) -> &LongRuns<Worker> {
        &self.long_runs
    }

    fn long_running_event(&self, run: Box<LongRun>) -> ForkJoinEvent {
        ForkJoinEvent::LongRunning(run)
    }

    fn lost_wakeup_event(&self, queued: usize) -> ForkJoinEvent {
        let pool = self.name.to_string();
        ForkJoinEvent::LostWakeup { pool, queued }
    }
}
