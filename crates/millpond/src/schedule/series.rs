//! A series: one closure, many runs.
//!
//! ```text
//!              due            executor            body                  status
//!   waits ------------> handed over ------> runs ------------> settled ----------> over
//!     ^                     |                                      |
//!     |                     +-- rejected or dropped: lost ---------+
//!     +------------------------- the next due time ----------------+
//! ```
//!
//! With [`Overlap::Queue`], and with a fixed delay, the next due time is computed when the run before
//! has settled. Otherwise it is computed when the run before is handed over.
//!
//! # Invariants
//!
//! - **SERIES-1** Its state, and its entry in the queue of pending entries, change under the locks of the pool's state
//!   and of the series' state, taken in this order. So a series that has ended has no entry, and never will.
//! - **SERIES-2** Every run is a task of its own, with a fresh interrupt token, and settles exactly once: when its
//!   body has ended, or when the task is dropped without having begun.
//! - **SERIES-3** The closure is called by one thread at a time, unless it is shared. A run takes it out and puts it
//!   back afterwards, unless the series has ended; then it is dropped at once.
//! - **SERIES-4** No user code runs under either lock: not the closure, nor a destructor, nor the waker of a
//!   caller that waits for the end.

mod last;
mod next;

use super::body::{Body, Done, Finish};
use super::dispatcher::DueTask;
use super::engine::ScheduleEngine;
use super::events::label_of;
use super::events::{NextRun, RunReport};
use super::failure::{OnFailure, RunOutcome, RunStatus};
use super::liveness::Guard;
use super::pending::Entry;
use super::plan::{self, Catchup, DueTime, Every, Next, Now, Overlap};
use super::run::{Run, RunResult};
use super::state::PoolState;
use crate::engine::events::EventSource;
use crate::manage::RunState;
use crate::task::{CancelReason, Task, TaskHandle, TaskSpec};
use crate::time::{Deadline, Key};
use millpond_raw::catch_panic;
use millpond_raw::sync::atomic::Ordering;
use millpond_raw::sync::{Mutex, chaos};
use millpond_raw::user_code::{self, Kind};
use std::panic::{self, AssertUnwindSafe};
use std::sync::Arc;
#[cfg(feature = "cron")]
use std::time::Instant;
use std::time::{Duration, SystemTime};

pub(super) struct Series {
    pub(super) engine: Arc<ScheduleEngine>,
    pub(super) spec: TaskSpec,
    pub(super) name: Option<String>,
    pub(super) every: Every,
    pub(super) overlap: Overlap,
    pub(super) catchup: Catchup,
    pub(super) on_failure: OnFailure,
    body: Mutex<Option<Body>>,
    state: Mutex<SeriesState>,
}

struct SeriesState {
    /// Its entry, while it is pending.
    key: Option<Key>,
    /// What it waits for; the run before, if it is not pending.
    planned: DueTime,
    /// What the wall clock showed when it was last looked at.
    seen: SystemTime,
    /// Whether it waits for a retry, and not for a planned time.
    is_retry: bool,
    /// The last run by plan.
    last: DueTime,
    /// Runs that were handed over and have not settled.
    out: Vec<Out>,
    next_number: u64,
    has_ended: bool,
    done: Option<Done>,
    guard: Option<Guard>,
    failures_in_a_row: u32,
    metrics: SeriesMetrics,
}

/// The number and the handle of a run that was handed over; no handle while its task is still being built.
type Out = (u64, Option<Arc<TaskHandle<()>>>);

/// The counters of a series.
#[derive(Clone, Debug, Default)]
pub(super) struct SeriesMetrics {
    pub(super) runs: u64,
    pub(super) failures: u64,
    pub(super) skipped: u64,
    pub(super) rejected: u64,
    pub(super) outcome: Option<RunOutcome>,
    pub(super) late: Option<Duration>,
}

/// What a series is made of.
pub(super) struct Parts {
    pub(super) spec: TaskSpec,
    pub(super) name: Option<String>,
    pub(super) every: Every,
    pub(super) overlap: Overlap,
    pub(super) catchup: Catchup,
    pub(super) on_failure: OnFailure,
    pub(super) body: Body,
    pub(super) done: Done,
    pub(super) first: Next,
    pub(super) now: Now,
}

/// How often the wall clock is looked at, in case somebody sets it.
#[cfg(feature = "cron")]
const LOOK: Duration = Duration::from_secs(60);

impl Series {
    /// A series that is not pending yet.
    pub(super) fn new(engine: &Arc<ScheduleEngine>, guard: Guard, parts: Parts) -> Arc<Self> {
        let planned = match parts.first {
            Next::At(planned) => planned,
            Next::Never => DueTime {
                due: parts.now.instant,
                wall: parts.now.wall,
            },
        };
        engine.counters.series.fetch_add(1, Ordering::Relaxed);
        Arc::new(Series {
            engine: Arc::clone(engine),
            spec: parts.spec,
            name: parts.name,
            every: parts.every,
            overlap: parts.overlap,
            catchup: parts.catchup,
            on_failure: parts.on_failure,
            body: Mutex::new(Some(parts.body)),
            state: Mutex::new(SeriesState {
                key: None,
                planned,
                seen: parts.now.wall,
                is_retry: false,
                last: planned,
                out: Vec::new(),
                next_number: 0,
                has_ended: false,
                done: Some(parts.done),
                guard: Some(guard),
                failures_in_a_row: 0,
                metrics: SeriesMetrics::default(),
            }),
        })
    }

    pub(super) fn is_forked(&self) -> bool {
        self.engine.is_forked()
    }

    pub(super) fn metrics(&self) -> SeriesMetrics {
        if self.engine.is_forked() {
            SeriesMetrics::default()
        } else {
            self.state.lock().metrics.clone()
        }
    }

    pub(super) fn label(&self) -> String {
        label_of(self.name.as_deref(), self.spec.location())
    }

    /// When the next run is due; never, if the series has ended, or if that depends on a run that has not.
    pub(super) fn next_run(&self) -> Deadline {
        let pool = self.engine.state();
        let state = self.state.lock();
        match state.key.and_then(|key| pool.pending.due_of(key)) {
            Some(Deadline::NEVER) | None => Deadline::NEVER,
            Some(_) => Deadline::at(state.planned.due),
        }
    }

    /// When the next run is due, given when the entry is due: a calendar is looked at more often.
    pub(super) fn planned(&self, looked_at: Deadline) -> Deadline {
        match looked_at {
            Deadline::NEVER => looked_at,
            _ => Deadline::at(self.state.lock().planned.due),
        }
    }

    /// Plans its first run, and inserts its entry (SERIES-1). Returns whether the caller must dispatch because of it.
    pub(super) fn wait_for(self: &Arc<Self>, pool: &mut PoolState, next: Next, now: Now) -> bool {
        let mut state = self.state.lock();
        self.plan_locked(pool, &mut state, next, now)
    }

    /// Plans another run (BOOKS-1).
    fn plan_locked(
        self: &Arc<Self>,
        pool: &mut PoolState,
        state: &mut SeriesState,
        next: Next,
        now: Now,
    ) -> bool {
        pool.submitted += 1;
        self.wait_locked(pool, state, next, now)
    }

    /// Inserts its entry for a run that is planned.
    fn wait_locked(
        self: &Arc<Self>,
        pool: &mut PoolState,
        state: &mut SeriesState,
        next: Next,
        now: Now,
    ) -> bool {
        state.seen = now.wall;
        let due = match next {
            Next::Never => Deadline::NEVER,
            Next::At(planned) => {
                state.planned = planned;
                if state.is_retry {
                    // The calendar has no say in when a run is retried.
                    Deadline::at(planned.due)
                } else {
                    self.look_at(planned, now)
                }
            }
        };
        let (key, must_dispatch) = pool.insert(due, Entry::Series(Arc::clone(self)));
        state.key = Some(key);
        must_dispatch
    }

    #[cfg(feature = "cron")]
    fn look_at(&self, planned: DueTime, now: Now) -> Deadline {
        let look = now.instant.checked_add(LOOK);
        let sooner = |due: Instant| look.map_or(due, |look| look.min(due));
        if self.every.is_calendar() {
            Deadline::at(sooner(planned.due))
        } else {
            Deadline::at(planned.due)
        }
    }

    #[cfg(not(feature = "cron"))]
    fn look_at(&self, planned: DueTime, _: Now) -> Deadline {
        Deadline::at(planned.due)
    }

    /// Its entry was due: the run to be handed over, if there is to be one.
    pub(super) fn take_due_run(self: &Arc<Self>) -> Option<DueTask> {
        let now = self.engine.now();
        let run = {
            let mut pool = self.engine.state();
            let mut state = self.state.lock();
            state.key = None;
            if state.has_ended {
                return None;
            }
            let is_stopped = pool.run_state == RunState::Stopped;
            if is_stopped && !state.out.is_empty() {
                // SERIES-5: the stop did not find it, and has another run.
                pool.cancelled += 1;
                return None;
            }
            // The wall clock may have been set meanwhile, or this was only a look.
            let is_early = self.every.is_calendar() && now.wall < state.planned.wall;
            if is_early && !state.is_retry && !is_stopped {
                let next = if plan::is_set_back(state.seen, now.wall) {
                    self.every.first(None, now)
                } else {
                    plan::at_wall(state.planned.wall, now)
                };
                // The caller dispatches, and arms the alarm afterwards.
                let _ = self.wait_locked(&mut pool, &mut state, next, now);
                return None;
            }
            let planned = state.planned;
            if !std::mem::take(&mut state.is_retry) {
                state.last = planned;
            }
            let plans_ahead = self.plans_ahead() && !is_stopped;
            let skips = plans_ahead && self.overlap == Overlap::Skip && !state.out.is_empty();
            if skips {
                // The planned run waits for the next due time.
                let next = self.every.next(self.catchup, state.last, now);
                let _ = self.wait_locked(&mut pool, &mut state, next, now);
                state.metrics.skipped += 1;
                self.engine.counters.skipped.fetch_add(1, Ordering::Relaxed);
                return None;
            }
            if plans_ahead {
                let next = self.every.next(self.catchup, state.last, now);
                let _ = self.plan_locked(&mut pool, &mut state, next, now);
            }
            self.begin(&mut pool, &mut state, planned)
        }?;
        Some(DueTask {
            task: self.task_of(run),
            is_run: true,
        })
    }

    /// Whether the next due time is known before the run before has ended.
    fn plans_ahead(&self) -> bool {
        self.every.may_overlap() && self.overlap != Overlap::Queue
    }

    /// A run, unless the series has ended. The guard of the series is held (LIVENESS-1).
    fn begin(
        self: &Arc<Self>,
        pool: &mut PoolState,
        state: &mut SeriesState,
        planned: DueTime,
    ) -> Option<Run> {
        state.guard.as_ref()?;
        let guard = pool.guards.issue(&self.engine);
        let number = state.next_number;
        state.next_number += 1;
        state.out.push((number, None));
        Some(Run {
            series: Arc::clone(self),
            number,
            planned,
            is_settled: false,
            is_last: false,
            guard: Some(guard),
            running: None,
        })
    }

    fn task_of(self: &Arc<Self>, run: Run) -> Task {
        let number = run.number;
        let (task, handle) = self.spec.clone().build(move || run.run());
        let mut state = self.state.lock();
        let out = state.out.iter_mut().find(|(own, _)| *own == number);
        if let Some((_, run)) = out {
            *run = Some(Arc::new(handle));
        }
        task
    }

    /// Ends it for this reason, if it has not ended. A run that has begun goes on.
    pub(super) fn end(self: &Arc<Self>, reason: CancelReason) {
        let ended = {
            let mut pool = self.engine.state();
            let mut state = self.state.lock();
            self.close(&mut pool, &mut state)
        };
        self.finish(ended, Finish::Cancelled(reason));
    }

    /// As [`end`](Series::end), for its handle: runs that have not begun never will, and those that have
    /// are asked to stop, if `interrupts`.
    pub(super) fn cancel(self: &Arc<Self>, interrupts: bool) {
        self.end(CancelReason::Requested);
        // They stay in the list: a later call may interrupt what was only cancelled.
        let out: Vec<_> = {
            let state = self.state.lock();
            state
                .out
                .iter()
                .filter_map(|(_, run)| run.clone())
                .collect()
        };
        for handle in out {
            if interrupts {
                handle.interrupt();
            } else {
                handle.cancel();
            }
        }
    }

    /// Marks it as ended, and removes its entry (SERIES-1). `None` if it had ended before.
    fn close(&self, pool: &mut PoolState, state: &mut SeriesState) -> Option<EndedSeries> {
        if std::mem::replace(&mut state.has_ended, true) {
            return None;
        }
        let planned = state.key.take();
        // BOOKS-3
        pool.cancelled += u64::from(planned.is_some());
        let entry = planned.and_then(|key| pool.pending.remove(key));
        Some(EndedSeries {
            done: state.done.take(),
            guard: state.guard.take(),
            entry,
        })
    }

    /// What a series that has ended leaves to do, without a lock (SERIES-4).
    fn finish(&self, ended: Option<EndedSeries>, finish: Finish) {
        let Some(EndedSeries { done, guard, entry }) = ended else {
            return;
        };
        self.engine.counters.series.fetch_sub(1, Ordering::Relaxed);
        drop(entry);
        let body = self.body.lock().take();
        catch_panic::drop(body);
        if let Some(done) = done {
            done(finish);
        }
        drop(guard);
    }

    /// Records that a run begins, and how late it is. Returns its number, counted from 1.
    pub(super) fn record_begin(&self, late: Duration) -> u64 {
        let metrics = &mut self.state.lock().metrics;
        metrics.runs += 1;
        metrics.late = Some(late);
        metrics.runs
    }

    /// Whether a run may begin now. If it may not because of a shutdown, the series ends.
    pub(super) fn try_begin(self: &Arc<Self>, is_last: bool) -> bool {
        let may_run = {
            let pool = self.engine.state();
            if self.state.lock().has_ended {
                return false;
            }
            // After a stop it is run by whoever got it back, or by a worker that had it already.
            is_last || pool.lets_series_run() || pool.run_state == RunState::Stopped
        };
        if !may_run {
            self.end(CancelReason::ShutDown);
        }
        may_run
    }

    /// Calls the closure; `None` if it is gone.
    pub(super) fn call(&self) -> Option<RunStatus<()>> {
        let mut exclusive = {
            let mut body = self.body.lock();
            match body.take()? {
                Body::Exclusive(exclusive) => exclusive,
                Body::Shared(shared) => {
                    *body = Some(Body::Shared(Arc::clone(&shared)));
                    drop(body);
                    user_code::check(Kind::Closure);
                    return Some(shared());
                }
            }
        };
        user_code::check(Kind::Closure);
        let status = panic::catch_unwind(AssertUnwindSafe(&mut exclusive));
        // SERIES-3: also if it has panicked.
        let mut unwanted = None;
        {
            let state = self.state.lock();
            let mut body = self.body.lock();
            if state.has_ended {
                unwanted = Some(exclusive);
            } else {
                *body = Some(Body::Exclusive(exclusive));
            }
        }
        catch_panic::drop(unwanted);
        match status {
            Ok(status) => Some(status),
            Err(payload) => panic::resume_unwind(payload),
        }
    }

    /// A run is over (SERIES-2): records it, and decides what comes next.
    pub(super) fn settle(self: &Arc<Self>, run: &Run, result: RunResult) {
        chaos::point("schedule.settle");
        let now = self.engine.now();
        let outcome = result.outcome();
        let is_lost = matches!(result, RunResult::Lost);
        let mut must_dispatch = false;
        let settled = {
            let mut pool = self.engine.state();
            let mut state = self.state.lock();
            let index = state.out.iter().position(|(own, _)| *own == run.number);
            let handle = index.map(|index| state.out.swap_remove(index));
            // A stop takes runs back: no executor has rejected these, and there is nothing to report.
            let is_silent = is_lost && pool.run_state == RunState::Stopped || state.has_ended;
            if !is_silent {
                state.count(&result, &outcome);
            }
            let may_go_on = pool.lets_series_run()
                && !run.is_last
                && !self.engine.is_executor_down.load(Ordering::Relaxed);
            let by_result = self.next_after(&state, &result);
            let next = if may_go_on { by_result } else { NextRun::Never };
            let is_over = next == NextRun::Never
                && (by_result == NextRun::Never || !self.awaits_last_run(&pool, &state, is_lost));
            let ended = if is_over {
                self.close(&mut pool, &mut state)
            } else {
                None
            };
            if !state.has_ended && next != NextRun::Never {
                must_dispatch = self.wait_for_next(&mut pool, &mut state, next, is_lost, now);
            }
            Settled {
                is_silent,
                next,
                ended,
                handle,
                runs: state.metrics.runs,
            }
        };
        drop(settled.handle);
        if settled.ended.is_some() {
            self.finish(settled.ended, result.into_finish(self.on_failure));
        } else {
            catch_panic::drop(result);
        }
        if must_dispatch {
            self.engine.dispatch_due();
        }
        if settled.is_silent || outcome == RunOutcome::Completed {
            return;
        }
        if is_lost {
            let counter = &self.engine.counters.rejected_when_due;
            counter.fetch_add(1, Ordering::Relaxed);
        }
        let report = RunReport {
            pool: self.engine.name.to_string(),
            label: self.label(),
            outcome,
            runs: settled.runs,
            next: settled.next,
        };
        self.engine.emit(|_| report.into_event());
    }
}

impl SeriesState {
    fn count(&mut self, result: &RunResult, outcome: &RunOutcome) {
        let metrics = &mut self.metrics;
        match result {
            RunResult::Continue | RunResult::End => self.failures_in_a_row = 0,
            RunResult::Failed(_) | RunResult::Panicked(_) => {
                metrics.failures += 1;
                self.failures_in_a_row = self.failures_in_a_row.saturating_add(1);
            }
            RunResult::Lost => metrics.rejected += 1,
        }
        metrics.outcome = Some(outcome.clone());
    }
}

/// What is left to do for a run that has settled, without a lock.
struct Settled {
    /// It is neither counted nor reported.
    is_silent: bool,
    next: NextRun,
    ended: Option<EndedSeries>,
    handle: Option<Out>,
    runs: u64,
}

/// What is left of a series that has ended.
struct EndedSeries {
    done: Option<Done>,
    guard: Option<Guard>,
    entry: Option<Entry>,
}
