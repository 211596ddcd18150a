//! Accepted tasks that left the queues of an engine otherwise than through the hands of a worker: they were cancelled, had
//! expired, were run by a joining thread, or were handed back to their submitter.
//!
//! - **REMOVED-1** Each counter is raised after the task has left the queue, and each task raises one of them once. So the
//!   accepted tasks are those that workers took, those that are queued, and the [total](RemovedTasks::total) here.

use super::dropped::DropSource;
use super::metrics::Counter;
use super::spawn::WorkerEngine;
use super::termination::Hold;
use super::workers::Worker;
use crate::executor::{DroppedTask, TaskOutcome, cancel_dropped};
use crate::manage::RunState;
use crate::task::{CancelReason, InlineRunner, Task, Tombstone};
use std::sync::Arc;

/// Tasks that left the queues without a worker, by what became of them.
#[derive(Debug, Default)]
pub(crate) struct RemovedTasks {
    pub(crate) cancelled: Counter,
    pub(crate) expired: Counter,
    /// A thread that is no worker ran them inline.
    pub(crate) elsewhere: Counter,
    /// Tombstones of tasks that a worker ran inline, which left the queue and met no worker.
    pub(crate) tombstones: Counter,
    pub(crate) handed_back: Counter,
}

impl RemovedTasks {
    /// All of them (REMOVED-1).
    pub(crate) fn total(&self) -> u64 {
        self.never_ran_here() + self.tombstones.get()
    }

    /// Those that no worker ran.
    pub(crate) fn never_ran_here(&self) -> u64 {
        let counters = [
            &self.cancelled,
            &self.expired,
            &self.elsewhere,
            &self.handed_back,
        ];
        counters.into_iter().map(Counter::get).sum()
    }

    /// Counts a tombstone that has left a queue, and that no worker will meet.
    pub(crate) fn count_tombstone(&self, tombstone: Tombstone) {
        let counter = match TaskOutcome::of(tombstone) {
            TaskOutcome::RanByOwnWorker => &self.tombstones,
            TaskOutcome::RanElsewhere => &self.elsewhere,
            TaskOutcome::Expired | TaskOutcome::TooLate => &self.expired,
            TaskOutcome::Cancelled
            | TaskOutcome::Shed
            | TaskOutcome::Completed
            | TaskOutcome::Panicked
            | TaskOutcome::Unwanted => &self.cancelled,
        };
        counter.add(1);
    }

    /// Keeps those of the tasks that have something to run, for their submitter, and counts them all.
    pub(crate) fn hand_back(&self, unstarted: &mut Vec<Task>) {
        unstarted.retain(|task| {
            let by_us = task.detach();
            let is_gone = task.is_gone();
            if is_gone {
                self.count_tombstone(match task.tombstone() {
                    // The worker that claimed it finds that it has left the queue, and does not count it.
                    Tombstone::Inline(InlineRunner::OwnWorker) if by_us => {
                        Tombstone::Inline(InlineRunner::OtherThread)
                    }
                    tombstone => tombstone,
                });
            }
            !is_gone
        });
        self.handed_back.add(unstarted.len());
    }

    /// Cancels the tasks, and counts them. `report` is told of accepted tasks that nobody holds a handle of, when all are
    /// counted. Returns how many were not tombstones.
    pub(crate) fn cancel(
        &self,
        tasks: Vec<Task>,
        reason: CancelReason,
        report: impl FnMut(DroppedTask),
    ) -> usize {
        let (mut cancelled, mut unheard) = (0, Vec::new());
        for task in tasks {
            let tombstone = match reason {
                // It was accepted, and the drop was not requested.
                CancelReason::Rejected => match cancel_dropped(task, reason) {
                    Ok(dropped) => {
                        unheard.extend(dropped);
                        None
                    }
                    Err(task) => Some(task.tombstone()),
                },
                _ => task.cancel_or_tombstone(reason),
            };
            match tombstone {
                None => cancelled += 1,
                Some(tombstone) => self.count_tombstone(tombstone),
            }
        }
        self.cancelled.add(cancelled);
        unheard.into_iter().for_each(report);
        cancelled
    }
}

/// An engine out of whose queues tasks are taken.
pub(crate) trait RemovesTasks: WorkerEngine + DropSource {
    fn removed(&self) -> &RemovedTasks;

    /// Takes all such tasks out of the queues.
    fn take_where(&self, hold: &Hold<'_, Self>, wanted: &mut dyn FnMut(&Task) -> bool)
    -> Vec<Task>;

    /// Takes out all that has not started, also what these workers were to start with. The engine is stopped.
    fn take_unstarted(
        &self,
        hold: &Hold<'_, Self>,
        workers: &[Arc<Worker<Self::Part>>],
    ) -> Vec<Task>;

    /// Tasks were taken out, not by a worker. They may have been the last that others wait for (END-1).
    fn tasks_removed(&self);

    /// Lets all that wait see that the engine is stopped.
    fn wake_for_stop(&self);

    /// Accepts no more tasks, interrupts running ones, and hands back those that have not started.
    fn stop_workers(&self) -> Vec<Task> {
        if self.is_forked() {
            self.ctl().advance_to(RunState::Stopped);
            return Vec::new();
        }
        // END-4
        let (all, hold) = Hold::stop(self);
        let mut unstarted = Vec::new();
        if let Some(hold) = &hold {
            // Before anybody is interrupted: a worker that stops what it runs must not begin the next one.
            unstarted = self.take_unstarted(hold, &all);
            self.removed().hand_back(&mut unstarted);
        }
        for worker in all {
            worker.stop.set();
        }
        self.wake_for_stop();
        // END-1
        drop(hold);
        unstarted
    }

    /// Takes tasks out of the queues for their submitter, while the engine goes on. Tasks that start at this moment stay.
    fn take_back_where(&self, wanted: &mut dyn FnMut(&Task) -> bool) -> Vec<Task> {
        if self.is_forked() {
            return Vec::new();
        }
        // END-4: before the tasks leave the queue.
        let Some(hold) = Hold::unless_over(self) else {
            return Vec::new();
        };
        let mut taken = self.take_where(&hold, wanted);
        if !taken.is_empty() {
            self.removed().hand_back(&mut taken);
            self.tasks_removed();
        }
        taken
    }

    /// Takes tasks out of the queues and cancels them, for a caller that is no worker. Returns how many were not tombstones.
    fn take_and_cancel(
        &self,
        reason: CancelReason,
        take: impl FnOnce(&Hold<'_, Self>) -> Vec<Task>,
    ) -> usize {
        // END-4: before the tasks leave the queue.
        let hold = Hold::unless_over(self);
        let taken = hold.as_ref().map_or_else(Vec::new, take);
        self.give_up(taken, reason)
    }

    /// Cancels tasks that have been taken out of the queues, and counts them. Returns how many were not tombstones.
    fn give_up(&self, tasks: Vec<Task>, reason: CancelReason) -> usize {
        if tasks.is_empty() {
            return 0;
        }
        let report = |dropped| self.report_dropped(dropped);
        let given_up = self.removed().cancel(tasks, reason, report);
        self.tasks_removed();
        given_up
    }
}
