//! An engine and its workers, as the watchdog sees them, and what all that look into an engine are told.

use super::{INTERVAL, InterruptTarget, LimitedRun, Limits, Watchdog, look_after, needs_watchdog};
use crate::engine::dropped::DropSource;
use crate::engine::health::Health;
use crate::engine::long_run::LongRun;
use crate::engine::metrics::{
    Label, LabelId, LabelSums, LabelTable, RunningTask, TaskMetrics, WorkerMetrics,
};
use crate::engine::spawn::WorkerEngine;
use crate::engine::stacks::{self, LongRuns};
use crate::engine::view::{WorkerState, WorkerView};
use crate::engine::workers::{ThreadInfo, Worker, WorkerPart};
use millpond_raw::sync::Mutex;
use millpond_raw::sync::atomic::{AtomicBool, Ordering};
use millpond_raw::timestamp::Timestamp;
use std::sync::Arc;
use std::time::Duration;

/// A worker, as the watchdog sees it.
pub(crate) trait SupervisedWorker {
    /// Its number, which no other worker of the engine has.
    fn number(&self) -> u64;

    /// The task that it runs.
    fn running(&self) -> Option<RunningTask>;

    /// True from when it finds no task to when it has taken one: its own flag, which may lag behind (WATCHDOG-1).
    fn is_flagged_idle(&self) -> bool;

    /// True if its thread has begun and runs no task, by its metrics (see `find_lost_wakeup`).
    fn has_no_task(&self) -> bool;

    /// Interrupts the task that it runs.
    fn interrupt_target(&self) -> &Mutex<InterruptTarget>;

    /// Its thread, once that has started.
    fn thread(&self) -> Option<&ThreadInfo>;

    /// What it does, for those that look at it.
    fn state(&self) -> WorkerState;
}

/// What an engine keeps for a worker, as the watchdog sees it.
pub(crate) trait SupervisedPart: WorkerPart + Sized {
    fn metrics(&self) -> &WorkerMetrics;

    fn interrupt_target(&self) -> &Mutex<InterruptTarget>;

    /// As [`SupervisedWorker::has_no_task`], of a worker whose thread has started.
    fn has_no_task(worker: &Worker<Self>) -> bool;

    /// What the worker does, for those that look at it.
    fn state(worker: &Worker<Self>) -> WorkerState;
}

impl<P: SupervisedPart> SupervisedWorker for Worker<P> {
    fn number(&self) -> u64 {
        Worker::number(self)
    }

    fn running(&self) -> Option<RunningTask> {
        P::metrics(self).running()
    }

    fn is_flagged_idle(&self) -> bool {
        self.is_idle()
    }

    fn has_no_task(&self) -> bool {
        Worker::thread(self).is_some() && P::has_no_task(self)
    }

    fn interrupt_target(&self) -> &Mutex<InterruptTarget> {
        P::interrupt_target(self)
    }

    fn thread(&self) -> Option<&ThreadInfo> {
        Worker::thread(self)
    }

    fn state(&self) -> WorkerState {
        P::state(self)
    }
}

/// An engine, as the watchdog sees it, and those that look into it.
pub(crate) trait Supervised: WorkerEngine<Part: SupervisedPart> + DropSource {
    /// Its watchdog.
    fn watchdog(&self) -> &Watchdog;

    /// True while the watchdog is armed. Beside what every submit reads.
    fn is_watched(&self) -> &AtomicBool;

    /// True if its queue is user code (WATCHDOG-3).
    fn has_foreign_queue(&self) -> bool;

    /// True if a task waits that a worker could take.
    fn has_ready_task(&self) -> bool;

    /// The number of tasks that wait.
    fn queued(&self) -> usize;

    /// True if a burst of tasks has left memory that is not needed any more.
    fn has_surplus(&self) -> bool;

    /// Returns that memory to the system.
    fn trim(&self);

    /// True if no task waits. A user's queue that panics is not empty.
    fn is_queue_empty(&self) -> bool;

    /// The number of tasks that workers have taken so far.
    fn taken(&self) -> u64;

    /// Wakes the workers that wait for tasks.
    fn wake_idle_workers(&self);

    /// The labels of its metrics; `None` if it keeps none.
    fn labels(&self) -> Option<&LabelTable>;

    /// What all its workers have measured, by the ids of their labels.
    fn measured(&self) -> LabelSums;

    /// How many tasks of this label were rejected.
    fn rejections_of(&self, _label: LabelId) -> u64 {
        0
    }

    /// Whether work waits for a worker that was refused a thread.
    fn lacks_refused_worker(&self) -> bool {
        false
    }

    /// Starts workers for what is queued, if there may be more. It may call the user's thread factory.
    fn start_missing_workers(&self) {}

    /// Long runs whose stacks are to be copied.
    fn long_runs(&self) -> &LongRuns<Worker<Self::Part>>;

    /// The event that a task runs too long.
    fn long_running_event(&self, run: Box<LongRun>) -> Self::Event;

    /// The event that so many tasks waited while workers were idle.
    fn lost_wakeup_event(&self, queued: usize) -> Self::Event;

    /// Its workers.
    fn workers(&self) -> Vec<Arc<Worker<Self::Part>>> {
        self.with_workers(|workers| workers.list())
    }

    /// The label with this id.
    fn label(&self, id: LabelId) -> Label {
        let labels = self.labels();
        labels.map_or(Label::Others, |labels| labels.label(id))
    }

    /// Lets idle labels make room for others.
    fn renew_labels(&self) {
        let Some(labels) = self.labels().filter(|labels| labels.may_renew()) else {
            return;
        };
        let workers = self.workers();
        let running = workers.iter().filter_map(|one| one.running());
        let running: Vec<LabelId> = running.map(|running| running.id).collect();
        labels.renew(self.clock().now(), &running, |id| self.rejections_of(id));
    }

    /// Metrics of each label by itself. Empty in a forked process.
    fn metrics_by_name(&self) -> Vec<TaskMetrics> {
        let Some(labels) = self.labels().filter(|_| !self.is_forked()) else {
            return Vec::new();
        };
        self.renew_labels();
        labels.by_name(self.measured(), |id| self.rejections_of(id))
    }

    /// What a worker does now.
    fn view(&self, worker: &Worker<Self::Part>, now: Timestamp) -> WorkerView {
        WorkerView::of(worker, self.timestamps(), |id| self.label(id), now)
    }

    /// What each worker does now. A forked process has none.
    fn views(&self) -> Vec<WorkerView> {
        if self.is_forked() {
            return Vec::new();
        }
        let (workers, now) = (self.workers(), self.timestamps().now());
        workers.iter().map(|one| self.view(one, now)).collect()
    }

    /// The stacks of its workers, in the order of [`views`](Supervised::views).
    fn stacks(&self) -> Vec<String> {
        if self.is_forked() {
            return Vec::new();
        }
        stacks::of(&self.workers())
    }

    /// Its health, but for what only engines of its kind count; there may be so many workers. Nothing of now in a forked
    /// process, which has no workers, and where a lock may have been copied while it was held.
    fn common_health(&self, max_workers: usize) -> Health {
        let (watchdog, starts) = (self.watchdog(), self.starts());
        let (long_running, since_lost_wakeup) = if self.is_forked() {
            (0, None)
        } else {
            (self.long_running(), self.since_lost_wakeup())
        };
        Health {
            long_running,
            since_lost_wakeup,
            lost_wakeups: watchdog.lost_wakeups.get(),
            long_runs: watchdog.long_runs.get(),
            deadlocks: watchdog.deadlocks.get(),
            thread_failures: starts.failures.get(),
            failed_starts_in_a_row: starts.failed_in_a_row.get(),
            surplus_workers: self.ctl().read().workers().saturating_sub(max_workers),
            ..Health::default()
        }
    }

    /// The number of tasks that are running and have exceeded their limits.
    fn long_running(&self) -> usize {
        if !self.watchdog().has_limits() {
            return 0;
        }
        let (workers, now) = (self.workers(), self.timestamps().now());
        let runs = workers
            .iter()
            .filter_map(|it| LimitedRun::of(self, &**it, now));
        runs.filter(LimitedRun::is_too_long).count()
    }

    /// The time since the last lost wake-up was found.
    fn since_lost_wakeup(&self) -> Option<Duration> {
        let at = self.watchdog().state.lock().lost_wakeup_at?;
        let timestamps = self.timestamps();
        Some(Duration::from_nanos(timestamps.nanos(at, timestamps.now())))
    }

    /// Arms the watchdog, for the first time or after a rest.
    #[cold]
    fn arm_watchdog(self: &Arc<Self>) {
        let watchdog = self.watchdog();
        if !needs_watchdog(&**self) || watchdog.was_just_refused(self.timestamps()) {
            return;
        }
        if !self.is_watched().swap(true, Ordering::Relaxed) {
            watchdog.state.lock().idle_looks = 0;
            let shortest = watchdog.limits.lock().shortest();
            look_after(self, shortest.unwrap_or(INTERVAL).min(INTERVAL));
        }
    }

    /// True if there is no need to [arm](Supervised::arm_watchdog) the watchdog: it is armed, or there is none.
    #[inline]
    fn is_watchdog_armed(&self) -> bool {
        !self.watchdog().is_enabled
            || self.is_watched().load(Ordering::Relaxed)
            || !needs_watchdog(self)
    }

    /// Changes the limits. In a forked process nothing changes.
    fn change_limits(self: &Arc<Self>, change: impl FnOnce(&mut Limits)) {
        if !self.is_forked() {
            self.watchdog().write_limits(change);
            self.heed_limits();
        }
    }

    /// Goes by the limits that have been [written](Watchdog::write_limits); under no lock.
    fn heed_limits(self: &Arc<Self>) {
        let watchdog = self.watchdog();
        if !watchdog.has_limits() {
            let hold = watchdog.state.lock().hold.take();
            drop(hold);
        }
        // A shorter limit must not wait for the next look; and the first one finds no watchdog by a manual clock.
        if self.is_watched().load(Ordering::Relaxed) {
            look_after(self, Duration::ZERO);
        } else {
            self.arm_watchdog();
        }
    }
}
