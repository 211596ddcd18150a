//! How tasks and jobs come in, and inline joins.

use super::context::Context;
use super::engine::ForkJoinEngine;
use super::run_stop;
use super::worker::Worker;
use crate::engine::watchdog::Supervised;
use crate::engine::{
    Identity, InlineJoins, InlineRun, RemovesTasks, Spawn, Tombstones, WorkerEngine,
};
use crate::executor::{RejectReason, Rejected};
use crate::task::{Cycle, Name, Task, TaskView};
use millpond_raw::forkjoin::JobRef;
use std::sync::Arc;

impl ForkJoinEngine {
    /// Accepts a task: on the deque of the worker that this is, or in the queue from outside. It is in the books as
    /// submitted or as rejected when this returns, and may have run before.
    pub(super) fn submit(self: &Arc<Self>, task: Task) -> Result<(), Rejected<Task>> {
        let reject = |task, reason| {
            self.rare.rejected.add(1);
            Err(Rejected::new(task, reason))
        };
        if !self.is_watchdog_armed() {
            self.arm_watchdog();
        }
        let identity = Identity::give(&task, Some(self.tombstones.tag()), &self.timestamps);
        // FORKJOIN-3. While there is no worker a task is counted when one has been started for it, or it would have to be
        // counted out again.
        let admit = || {
            let ctl = self.ctl().read();
            ctl.is_running().then(|| ctl.workers() > 0)
        };
        let pushed: Result<_, Task> = Context::with_current(|here| match here {
            Some(here) if Arc::ptr_eq(&here.engine, self) => {
                let is_open = || admit().is_some();
                here.push_task(task, is_open)?;
                Ok((true, here.signal_task()))
            }
            _ => {
                let is_counted = self.outside.push_task(task, admit)?;
                Ok((is_counted, self.signal()))
            }
        });
        let (is_counted, signalled) = match pushed {
            Ok(pushed) => pushed,
            Err(task) => {
                task.detach();
                return reject(task, RejectReason::ShutDown);
            }
        };
        let count_late = || {
            if !is_counted {
                self.rare.submitted.add(1);
            }
        };
        let Err(error) = signalled else {
            count_late();
            return Ok(());
        };
        // There is no worker. What others have pushed meanwhile gets an attempt of its own.
        let own = self.remove_tasks(1, &mut |task| identity.is(task)).pop();
        self.recover_failed_spawn();
        self.tasks_removed();
        match own {
            None => {
                count_late();
                Ok(())
            }
            Some(task) => {
                if is_counted {
                    self.rare.taken_back.add(1);
                }
                task.detach();
                reject(task, RejectReason::SpawnFailed(error))
            }
        }
    }

    /// Accepts a job from outside. It goes back to its owner if no worker will run it.
    pub(super) fn inject(self: &Arc<Self>, mut job: JobRef) {
        let id = job.id();
        Context::with_current(|here| run_stop::surround(&mut job, here));
        // FORKJOIN-3
        let is_open = || self.ctl().read().is_running();
        if let Err(job) = self.outside.push_job(job, is_open) {
            drop(job);
            return;
        }
        if self.signal().is_err() {
            drop(self.outside.take_job(id));
            self.recover_failed_spawn();
            self.tasks_removed();
        } else {
            self.rare.installed.add(1);
        }
    }
}

impl InlineJoins for ForkJoinEngine {
    fn tombstones(&self) -> &Tombstones {
        &self.tombstones
    }

    fn allows_inline(&self) -> bool {
        true
    }

    fn contains(&self, mark: usize) -> bool {
        let mut is_there = false;
        let mut see = |task: &Task| is_there |= task.mark() == mark;
        self.outside.visit(&mut see);
        for slot in self.slots.iter() {
            slot.deque.visit(&mut see);
        }
        is_there
    }

    fn inline_started(&self, worker: &Worker, _task: TaskView<'_>) {
        worker.stats.begin_inline();
        Context::with_current(|here| here.map(Context::clear_tombstones));
    }

    fn inline_ended(&self, worker: &Worker, task: TaskView<'_>, run: InlineRun) {
        if let (Some(labels), Some(start)) = (&self.labels, run.start) {
            let waited = task
                .queued_since()
                .map_or(0, |stamp| self.timestamps.nanos_from(stamp, start));
            let ran = self.timestamps.nanos(start, self.timestamps.now());
            let name = task.shared_name();
            let id = labels.id_of(name.as_ref().map(Name::as_str), task.location());
            worker.metrics.record_nested(id, run.outcome, waited, ran);
        }
        worker.stats.end_inline(run.outcome);
    }

    fn deadlocked(self: &Arc<Self>, cycle: &Cycle) {
        self.report_deadlock(cycle);
    }
}
