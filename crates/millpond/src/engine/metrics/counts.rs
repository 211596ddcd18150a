//! What the workers of an engine count, whether it keeps metrics or not.
//!
//! A worker counts in cache lines of its own that no other thread writes, so counting costs two plain stores a task. When it
//! exits, its counts are added to those of earlier workers. Rare events are counted at once by whichever thread sees
//! them ([`Counter`]).

use crate::executor::TaskOutcome;
use crate::meter::Count;
use millpond_raw::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// The counts of one worker.
#[derive(Debug, Default)]
pub(crate) struct WorkerStats {
    is_busy: AtomicBool,
    completed: Count,
    panicked: Count,
    cancelled: Count,
    expired: Count,
    /// Those of `expired` that could not have been finished in time.
    too_late: Count,
    /// Completed tasks that ended after their time.
    finished_late: Count,
    shed: Count,
    /// Nanoseconds that completed tasks ran.
    spent: Count,
    elsewhere: Count,
    /// Completed tasks that were cancelled while they ran.
    unwanted: Count,
    /// Queued tasks that the worker joined and ran inline: begun, ended, and the tombstones of such tasks, whichever
    /// thread ran them, that it has taken from the queue.
    joins: Count,
    joined: Count,
    tombstones: Count,
    /// Tasks that the worker took from a queue inside of another one: begun, and over.
    nested: Count,
    nested_over: Count,
}

impl WorkerStats {
    /// A queued task begins inline, inside the one that the worker runs.
    pub(crate) fn begin_inline(&self) {
        self.joins.add(1);
    }

    /// It is over. It is counted before it stops being active, as in [`end`](WorkerStats::end).
    pub(crate) fn end_inline(&self, outcome: TaskOutcome) {
        self.count_run(outcome);
        self.joined.add(1);
    }

    /// A task that the worker took from a queue inside of another one begins.
    pub(crate) fn begin_inside(&self) {
        self.nested.add(1);
    }

    /// The task that is about to be counted as completed has ended after its time.
    pub(crate) fn count_finished_late(&self) {
        self.finished_late.add(1);
    }

    /// It is over. It is counted before it stops running, as in [`end`](WorkerStats::end).
    pub(crate) fn end_inside(&self, outcome: TaskOutcome) {
        self.count_inside(outcome);
        self.nested_over.add(1);
    }

    /// A tombstone that the worker took from a queue inside of a task.
    pub(crate) fn count_inside(&self, outcome: TaskOutcome) {
        self.end_unusual(outcome, 0);
    }

    #[inline]
    fn count_run(&self, outcome: TaskOutcome) {
        match outcome {
            TaskOutcome::Panicked => self.panicked.add(1),
            TaskOutcome::Unwanted => self.unwanted.add(1),
            _ => {}
        }
        self.completed.add(1);
    }

    #[inline]
    pub(crate) fn begin(&self) {
        self.is_busy.store(true, Ordering::Relaxed);
    }

    /// There is nothing to run: a stop has taken the task that this worker was started with.
    pub(crate) fn rest(&self) {
        self.is_busy.store(false, Ordering::Relaxed);
    }

    /// The task is over. It is counted before the worker counts as idle: between the two a reader may see the task
    /// twice, but never not at all.
    #[inline]
    pub(crate) fn end(&self, outcome: TaskOutcome, ran: u64) {
        if outcome == TaskOutcome::Completed {
            self.spent.add(ran);
            self.completed.add(1);
        } else {
            self.end_unusual(outcome, ran);
        }
        self.is_busy.store(false, Ordering::Relaxed);
    }

    #[cold]
    fn end_unusual(&self, outcome: TaskOutcome, ran: u64) {
        match outcome {
            TaskOutcome::Completed | TaskOutcome::Panicked | TaskOutcome::Unwanted => {
                self.spent.add(ran);
                self.count_run(outcome);
            }
            TaskOutcome::Cancelled => self.cancelled.add(1),
            TaskOutcome::Expired => self.expired.add(1),
            TaskOutcome::TooLate => {
                self.too_late.add(1);
                self.expired.add(1);
            }
            TaskOutcome::RanElsewhere => self.elsewhere.add(1),
            TaskOutcome::RanByOwnWorker => self.tombstones.add(1),
            TaskOutcome::Shed => self.shed.add(1),
        }
    }

    pub(crate) fn is_busy(&self) -> bool {
        self.is_busy.load(Ordering::Relaxed)
    }

    /// A task that panicked, or that was cancelled while it ran, is counted as such before it is counted as completed. It
    /// is shown when it is both: what is shown of them is never more than `completed`. The lesser of two numbers that
    /// never fall never falls.
    pub(crate) fn counts(&self) -> Counts {
        let (completed, expired) = (self.completed.get(), self.expired.get());
        Counts {
            completed,
            panicked: self.panicked.get().min(completed),
            cancelled: self.cancelled.get(),
            expired,
            too_late: self.too_late.get().min(expired),
            finished_late: self.finished_late.get().min(completed),
            shed: self.shed.get(),
            spent: self.spent.get(),
            elsewhere: self.elsewhere.get(),
            unwanted: self.unwanted.get().min(completed),
            joins: self.joins.get(),
            joined: self.joined.get(),
            tombstones: self.tombstones.get(),
            nested: self.nested.get(),
            nested_over: self.nested_over.get(),
            begun: 0,
        }
    }
}

/// Sums over workers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    pub(crate) completed: u64,
    pub(crate) panicked: u64,
    pub(crate) cancelled: u64,
    pub(crate) expired: u64,
    pub(crate) too_late: u64,
    pub(crate) finished_late: u64,
    pub(crate) shed: u64,
    pub(crate) spent: u64,
    pub(crate) elsewhere: u64,
    pub(crate) unwanted: u64,
    pub(crate) joins: u64,
    pub(crate) joined: u64,
    pub(crate) tombstones: u64,
    pub(crate) nested: u64,
    pub(crate) nested_over: u64,
    /// Tasks and tombstones that workers were started with, or have taken from the queue, and have begun. Counted by
    /// [`WorkerMetrics::turns_begun`](super::WorkerMetrics::turns_begun).
    pub(crate) begun: u64,
}

impl Counts {
    /// Tasks that workers have taken from the queue for good. It goes up while work is done.
    pub(crate) fn done(&self) -> u64 {
        self.completed
            + self.cancelled
            + self.expired
            + self.shed
            + self.elsewhere
            + self.tombstones
    }

    /// Tasks that run inside of others.
    pub(crate) fn nested(&self) -> u64 {
        self.joins.saturating_sub(self.joined) + self.nested.saturating_sub(self.nested_over)
    }

    /// Tombstones that are still queued, of tasks that workers run inline, or have run. So many have left the queues and
    /// met no worker.
    pub(crate) fn queued_tombstones(&self, met_no_worker: u64) -> u64 {
        let gone = self.tombstones + met_no_worker;
        self.joins.saturating_sub(gone)
    }

    pub(crate) fn add(&mut self, other: Counts) {
        self.completed += other.completed;
        self.panicked += other.panicked;
        self.cancelled += other.cancelled;
        self.expired += other.expired;
        self.too_late += other.too_late;
        self.finished_late += other.finished_late;
        self.shed += other.shed;
        self.spent += other.spent;
        self.elsewhere += other.elsewhere;
        self.unwanted += other.unwanted;
        self.joins += other.joins;
        self.joined += other.joined;
        self.tombstones += other.tombstones;
        self.nested += other.nested;
        self.nested_over += other.nested_over;
        self.begun += other.begun;
    }
}

/// A count that many threads write.
#[derive(Debug, Default)]
pub(crate) struct Counter(AtomicU64);

impl Counter {
    pub(crate) fn add(&self, times: usize) {
        self.0.fetch_add(times as u64, Ordering::Relaxed);
    }

    pub(crate) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    /// For code that must not know of counters.
    pub(crate) fn as_atomic(&self) -> &AtomicU64 {
        &self.0
    }

    /// Counts from 0 again.
    pub(crate) fn reset(&self) {
        self.0.store(0, Ordering::Relaxed);
    }
}

#[cfg(all(test, not(any(millpond_loom, millpond_shuttle))))]
mod tests {
    use super::*;

    #[test]
    fn a_task_that_has_panicked_is_not_shown_as_that_before_it_is_shown_as_completed() {
        let stats = WorkerStats::default();
        stats.panicked.add(1);
        stats.unwanted.add(1);
        let between = stats.counts();
        assert_eq!((between.panicked, between.unwanted), (0, 0));
        stats.completed.add(2);
        let after = stats.counts();
        assert_eq!((after.completed, after.panicked, after.unwanted), (2, 1, 1));
    }
}
