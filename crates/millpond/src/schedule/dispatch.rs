//! Dispatching what is due: out of the queue of pending entries, to the executor.
//!
//! ```text
//!   a round:   take due entries      hand each one over      start the dispatcher's    set the next
//!              (a batch, one lock) -> (no lock)           ->  thread, if needed     ->  alarm
//! ```
//!
//! A round hands over a batch at a time until nothing is due or the limit is reached; then the alarm or the leader is
//! [armed](ScheduleEngine::rearm) for what comes next. A thread that wanted to dispatch meanwhile has requested another
//! round.
//!
//! # Invariants
//!
//! - **DISPATCH-1** One thread dispatches at a time: it has the [turn](Turn). A thread that comes meanwhile requests
//!   another round under the lock, and the one that has the turn does not end it without that round. A thread that
//!   inserts an entry that is due before the alarm dispatches; so does the alarm.
//! - **DISPATCH-2** Entries are handed over in the order of their due times, and those of the same due time in the
//!   order in which they were scheduled, also through the [dispatcher's queue](super::dispatcher).
//! - **DISPATCH-3** All rounds of a turn hand over a bounded number of tasks, and leave the rest to the alarm, so a flood
//!   in one pool does not keep the timer from others. (Not with a manual clock: it stands still meanwhile, so the
//!   rounds end by themselves.)

use super::dispatcher::DueTask;
use super::engine::ScheduleEngine;
use super::events::{NextRun, RunReport, label_of};
use super::failure::RunOutcome;
use super::pending::{Due, Entry};
use super::state::PoolState;
use crate::engine::events::EventSource;
use crate::executor::{Rejected, TryExecuteError};
use crate::queue::pushing_for_self;
use crate::task::{CancelReason, Task};
use crate::time::{Deadline, Owner, Work, drop_off_timer, is_timer_thread, run_off_timer};
use millpond_raw::catch_panic;
use millpond_raw::sync::MutexGuard;
use millpond_raw::sync::atomic::Ordering;
use std::sync::Arc;
use std::task::Waker;
use std::time::{Duration, Instant};

/// The turn of the thread that dispatches (DISPATCH-1).
#[derive(Debug, Default)]
pub(super) struct Turn {
    is_taken: bool,
    is_rerun_requested: bool,
}

impl Turn {
    pub(super) fn is_taken(&self) -> bool {
        self.is_taken
    }

    pub(super) fn is_rerun_requested(&self) -> bool {
        self.is_rerun_requested
    }

    /// Takes the turn. If another thread has it, requests another round of that one and returns false.
    fn take_or_request_rerun(&mut self) -> bool {
        self.request_rerun();
        !std::mem::replace(&mut self.is_taken, true)
    }

    /// Requests another round, if a thread has the turn.
    pub(super) fn request_rerun(&mut self) {
        self.is_rerun_requested = self.is_taken;
    }

    /// The caller is about to look at the queue, and will see what a request was for.
    fn begin_round(&mut self) {
        self.is_rerun_requested = false;
    }

    /// Ends the turn and returns true; or returns false if another round was requested.
    fn try_end(&mut self) -> bool {
        if std::mem::take(&mut self.is_rerun_requested) {
            return false;
        }
        self.is_taken = false;
        true
    }
}

/// How much one turn may hand over (DISPATCH-3).
#[derive(Clone, Copy, Debug)]
pub(super) struct Limit {
    batches: usize,
    /// Tasks that are taken out of the queue at a time, under one lock.
    batch: usize,
}

impl Limit {
    const USUAL: Limit = Limit {
        batches: 16,
        batch: 64,
    };

    /// Only the alarm is set.
    pub(super) const NOTHING: Limit = Limit {
        batches: 0,
        batch: 0,
    };

    pub(super) fn one_batch(batch: usize) -> Self {
        Limit { batches: 1, batch }
    }

    fn tasks(self) -> usize {
        self.batches * self.batch
    }
}

/// How long others have their turn at the timer if the limit was reached and another round is requested.
const PAUSE: Duration = Duration::from_micros(100);

impl ScheduleEngine {
    /// Hands over what is due, and sets the alarm for what is due next. If another thread is at it, that one does
    /// another round.
    pub(super) fn dispatch_due(self: &Arc<Self>) {
        self.dispatch(Limit::USUAL, None);
    }

    /// The same within a limit, without an alarm that fires earlier than `not_before`. Returns false if another
    /// thread is at it.
    ///
    /// A task that was handed over may be due again at once, and request another round (a series of microseconds
    /// that is rejected). So all rounds have one limit together (DISPATCH-3). When it is reached the rest is left
    /// to the alarm, after a [pause](PAUSE).
    pub(super) fn dispatch(
        self: &Arc<Self>,
        limit: Limit,
        mut not_before: Option<Deadline>,
    ) -> bool {
        let mut now = self.clock.now();
        let mut state = self.state();
        if !state.turn.take_or_request_rerun() {
            return false;
        }
        let mut budget = limit.tasks();
        let mut leader = None;
        loop {
            let batch = self.hand_over_batches(state, now, limit, &mut budget);
            let retry = self.ensure_dispatcher();
            state = self.rearm(batch, retry, not_before, &mut leader);
            if state.turn.try_end() {
                drop(state);
                leader.into_iter().for_each(Waker::wake);
                return true;
            }
            drop(state);
            if budget == 0 && self.clock.is_manual() {
                budget = limit.tasks();
            } else if budget == 0 && limit.batches > 0 {
                not_before = not_before.max(Some(self.clock.deadline(PAUSE)));
            }
            now = self.clock.now();
            state = self.state();
        }
    }

    /// Hands over what is due at `now`, and at the times of later looks. Returns the memory of the batches, empty.
    fn hand_over_batches(
        self: &Arc<Self>,
        mut state: MutexGuard<'static, PoolState>,
        mut now: Instant,
        limit: Limit,
        budget: &mut usize,
    ) -> Vec<Due> {
        let mut batch = Vec::new();
        for _ in 0..limit.batches {
            if *budget == 0 {
                break;
            }
            state.turn.begin_round();
            state.pending.take_due(now, limit.batch, &mut batch);
            let in_hand = (!batch.is_empty()).then(|| self.take_in_hand());
            drop(state);
            let handed_over = batch.len();
            self.hand_over_all(&mut batch);
            drop(in_hand);
            // An empty batch counts, too: it was a look at the queue.
            *budget = budget.saturating_sub(handed_over.max(1));
            if handed_over < limit.batch {
                break;
            }
            now = self.clock.now();
            state = self.state();
        }
        batch
    }

    fn hand_over_all(self: &Arc<Self>, batch: &mut Vec<Due>) {
        for (_, entry) in batch.drain(..) {
            let due = match entry {
                Entry::Once(task) => Some(DueTask::once(task)),
                Entry::Series(series) => {
                    let due = series.take_due_run();
                    // The series may have ended, and this may be the last reference to it.
                    drop_off_timer(Owner::of(&**self, Work::Drop), series);
                    due
                }
            };
            if let Some(due) = due {
                self.hand_over(due);
            }
        }
    }

    /// Hands a task to the executor, without waiting and without running it here. What cannot be done that way
    /// is left to the dispatcher's thread, and so is everything that comes while it has something (DISPATCH-2).
    fn hand_over(self: &Arc<Self>, due: DueTask) {
        if due.task.is_gone() {
            return run_off_timer(Owner::of(&**self, Work::Drop), move || drop(due));
        }
        let Some(DueTask { task, is_run }) = self.dispatch_queue.push_unless_empty(due) else {
            return;
        };
        if !self.track_handed_over(&task) {
            return self.cancel_late(task);
        }
        // FIFO-9: the leader takes it itself.
        let execute = || catch_panic::call(|| self.executor.try_execute_task(task));
        let task = match pushing_for_self(execute) {
            // If it panicked, it has dropped the task.
            None | Some(Ok(())) => return,
            Some(Err(TryExecuteError::WouldBlock(task))) => task,
            Some(Err(TryExecuteError::Rejected(rejected))) => {
                if !is_timer_thread() {
                    return self.not_executed(rejected, is_run);
                }
                // SCHEDULE-3: the dispatcher's thread drops it, after another try.
                rejected.task
            }
        };
        self.untrack_handed_over(&task);
        if let Some(late) = self.dispatch_queue.push(DueTask { task, is_run }) {
            self.cancel_late(late.task);
        }
    }

    /// The executor has rejected a task that was due. If the pool was stopped, the task is the stop's.
    pub(super) fn not_executed(self: &Arc<Self>, rejected: Rejected<Task>, is_run: bool) {
        if self.dispatch_queue.is_sealed() {
            self.return_to_stop(rejected.task);
        } else {
            self.reject(rejected, is_run);
        }
    }

    fn reject(self: &Arc<Self>, rejected: Rejected<Task>, is_run: bool) {
        let Rejected { task, reason, .. } = rejected;
        if reason.is_shut_down() || reason.is_forked() {
            self.is_executor_down.store(true, Ordering::Relaxed);
        }
        let label = label_of(task.name(), task.location());
        // A run of a series counts and reports for itself, when it is dropped.
        if task.cancel(CancelReason::Rejected) && !is_run {
            let counter = &self.counters.rejected_when_due;
            counter.fetch_add(1, Ordering::Relaxed);
            let report = RunReport {
                pool: self.name.to_string(),
                label,
                outcome: RunOutcome::Rejected,
                runs: 0,
                next: NextRun::Never,
            };
            self.emit(|_| report.into_event());
        }
    }
}
