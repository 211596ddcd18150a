//! Accepted tasks that left the queues of an engine otherwise than through the hands of a worker: they were cancelled, had
//! expired, were run by a joining thread, or were handed back to their submitter.
//!
//! - **REMOVED-1** Each counter is raised after the task has left the queue, and each task raises one of them once. So the
//!   accepted tasks are those that workers took, those that are queued, and the [total](RemovedTasks::total) here.

use super::metrics::Counter;
use crate::executor::{DroppedTask, RunOutcome, cancel_dropped};
use crate::task::{CancelReason, InlineRunner, Task, Tombstone};

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
        let counter = match RunOutcome::of(tombstone) {
            RunOutcome::RanByOwnWorker => &self.tombstones,
            RunOutcome::RanElsewhere => &self.elsewhere,
            RunOutcome::Expired => &self.expired,
            RunOutcome::Cancelled
            | RunOutcome::Shed
            | RunOutcome::Completed
            | RunOutcome::Panicked
            | RunOutcome::Unwanted => &self.cancelled,
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
