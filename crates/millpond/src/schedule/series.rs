//! A series: one closure, many runs.
//!
//! ```text
//!              due            executor            body                 verdict
//!   waits ------------> handed over ------> runs ------------> settled ----------> over
//!     ^                     |                                      |
//!     |                     +-- refused, or dropped: lost ---------+
//!     +------------------------- the next due time ----------------+
//! ```
//!
//! With [`Overlap::Queue`], and with a fixed delay, the next due time is worked out when the run before
//! has settled. Otherwise it is worked out when the run before is handed over.
//!
//! # Rules
//!
//! - **V1** State, and the place in the wheel, change under the lock of the books and that of the state, in
//!   this order. So a series that is over is in the wheel no more, and never will be.
//! - **V2** Every run is a task of its own, with a fresh token, and settles exactly once: when its body has
//!   ended, or when the task is dropped without having begun.
//! - **V3** The closure is called by one thread at a time, unless it is shared. It leaves its place while it
//!   runs and comes back afterwards, unless the series is over; then it is dropped, at once.
//! - **V4** No code of the user's runs under either lock: neither the closure, nor a destructor, nor who
//!   waits for the end.

mod next;

use super::body::{Body, Done, Finish};
use super::core::{Books, Core, Entry, label_of};
use super::courier::Parcel;
use super::failure::{OnFailure, RunOutcome, Verdict};
use super::notice::{ScheduleNotice, Then};
use super::plan::{self, Catchup, Every, Last, Next, Now, Overlap};
use super::run::{Run, Went};
use super::ward::Ward;
use crate::manage::RunState;
use crate::task::{CancelReason, Task, TaskHandle, TaskSpec};
use crate::time::{Deadline, Key};
use millpond_raw::quiet;
use millpond_raw::sync::atomic::Ordering;
use millpond_raw::sync::{Mutex, chaos};
use millpond_raw::user_code::{self, Kind};
use std::panic::{self, AssertUnwindSafe};
use std::sync::Arc;
#[cfg(feature = "cron")]
use std::time::Instant;
use std::time::{Duration, SystemTime};

pub(super) struct Series {
    core: Arc<Core>,
    pub(super) spec: TaskSpec,
    pub(super) name: Option<String>,
    pub(super) every: Every,
    pub(super) overlap: Overlap,
    pub(super) catchup: Catchup,
    pub(super) on_failure: OnFailure,
    body: Mutex<Option<Body>>,
    state: Mutex<State>,
}

struct State {
    /// Where it waits.
    key: Option<Key>,
    /// What it waits for there; the run before, if it is not waiting.
    planned: Last,
    /// What the wall clock showed when it was last looked at.
    seen: SystemTime,
    /// Whether it waits for another try, and not for a time of its plan.
    is_retry: bool,
    /// The last run by plan.
    last: Last,
    /// Runs that are handed over and not settled.
    out: Vec<Out>,
    next_number: u64,
    is_over: bool,
    done: Option<Done>,
    ward: Option<Arc<Ward>>,
    failures_in_a_row: u32,
    figures: SeriesFigures,
}

/// A run that is handed over, and its handle, unless its task is still being made.
type Out = (u64, Option<Arc<TaskHandle<()>>>);

/// What a series has counted.
#[derive(Clone, Debug, Default)]
pub(super) struct SeriesFigures {
    pub(super) runs: u64,
    pub(super) failures: u64,
    pub(super) skipped: u64,
    pub(super) refused: u64,
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

/// How often a calendar is looked at, in case somebody sets the wall clock.
#[cfg(feature = "cron")]
const LOOK: Duration = Duration::from_secs(60);

impl Series {
    /// A series that waits nowhere yet.
    pub(super) fn new(core: &Arc<Core>, ward: Arc<Ward>, parts: Parts) -> Arc<Self> {
        let planned = match parts.first {
            Next::At(planned) => planned,
            Next::Never => Last {
                due: parts.now.instant,
                wall: parts.now.wall,
            },
        };
        core.counts.series.fetch_add(1, Ordering::Relaxed);
        Arc::new(Series {
            core: Arc::clone(core),
            spec: parts.spec,
            name: parts.name,
            every: parts.every,
            overlap: parts.overlap,
            catchup: parts.catchup,
            on_failure: parts.on_failure,
            body: Mutex::new(Some(parts.body)),
            state: Mutex::new(State {
                key: None,
                planned,
                seen: parts.now.wall,
                is_retry: false,
                last: planned,
                out: Vec::new(),
                next_number: 0,
                is_over: false,
                done: Some(parts.done),
                ward: Some(ward),
                failures_in_a_row: 0,
                figures: SeriesFigures::default(),
            }),
        })
    }

    pub(super) fn is_forked(&self) -> bool {
        self.core.is_forked()
    }

    pub(super) fn figures(&self) -> SeriesFigures {
        match self.core.is_forked() {
            false => self.state.lock().figures.clone(),
            true => SeriesFigures::default(),
        }
    }

    pub(super) fn label(&self) -> String {
        label_of(self.name.as_deref(), self.spec.made_at())
    }

    /// When the next run is due; never, if it is over, or if that depends on one that has not ended.
    pub(super) fn next_run(&self) -> Deadline {
        let books = self.core.books();
        let state = self.state.lock();
        match state.key.and_then(|key| books.wheel.get(key)) {
            Some((Deadline::NEVER, _)) | None => Deadline::NEVER,
            Some(_) => Deadline::at(state.planned.due),
        }
    }

    /// When the next run is due, in place of when it is looked at next.
    pub(super) fn planned(&self, looked_at: Deadline) -> Deadline {
        match looked_at {
            Deadline::NEVER => looked_at,
            _ => Deadline::at(self.state.lock().planned.due),
        }
    }

    /// V1: waits for what is next. Returns whether somebody must ring for it.
    pub(super) fn waits_for(self: &Arc<Self>, books: &mut Books, next: Next, now: Now) -> bool {
        let mut state = self.state.lock();
        self.waits_in(books, &mut state, next, now)
    }

    fn waits_in(
        self: &Arc<Self>,
        books: &mut Books,
        state: &mut State,
        next: Next,
        now: Now,
    ) -> bool {
        state.seen = now.wall;
        let due = match next {
            Next::Never => Deadline::NEVER,
            Next::At(planned) => {
                state.planned = planned;
                match state.is_retry {
                    // The calendar has no say in when something is tried again.
                    true => Deadline::at(planned.due),
                    false => self.look_at(planned, now),
                }
            }
        };
        let (key, rings) = books.insert(due, Entry::Series(Arc::clone(self)));
        state.key = Some(key);
        rings
    }

    #[cfg(feature = "cron")]
    fn look_at(&self, planned: Last, now: Now) -> Deadline {
        let look = now.instant.checked_add(LOOK);
        let sooner = |due: Instant| look.map_or(due, |look| look.min(due));
        match self.every.is_calendar() {
            true => Deadline::at(sooner(planned.due)),
            false => Deadline::at(planned.due),
        }
    }

    #[cfg(not(feature = "cron"))]
    fn look_at(&self, planned: Last, _: Now) -> Deadline {
        Deadline::at(planned.due)
    }

    /// Its time has come: the task to be handed over, if there is to be one.
    pub(super) fn comes_due(self: &Arc<Self>) -> Option<Parcel> {
        let now = self.core.now();
        let run = {
            let mut books = self.core.books();
            let mut state = self.state.lock();
            state.key = None;
            if state.is_over {
                return None;
            }
            // The wall clock may have been set meanwhile, or this was only a look.
            if self.every.is_calendar() && !state.is_retry && now.wall < state.planned.wall {
                let next = match plan::is_set_back(state.seen, now.wall) {
                    true => self.every.first(None, now),
                    false => plan::at_wall(state.planned.wall, now),
                };
                // Whoever calls this rings, and looks again.
                let _ = self.waits_in(&mut books, &mut state, next, now);
                return None;
            }
            let planned = state.planned;
            if !std::mem::take(&mut state.is_retry) {
                state.last = planned;
            }
            let plans_ahead = self.plans_ahead();
            let skips = plans_ahead && self.overlap == Overlap::Skip && !state.out.is_empty();
            if plans_ahead {
                let next = self.every.next(self.catchup, state.last, now);
                let _ = self.waits_in(&mut books, &mut state, next, now);
            }
            match skips {
                true => {
                    state.figures.skipped += 1;
                    self.core.counts.skipped.fetch_add(1, Ordering::Relaxed);
                    None
                }
                false => self.begin(&mut state, planned),
            }
        }?;
        Some(Parcel {
            task: self.task_of(run),
            is_run: true,
        })
    }

    /// Whether the next due time is known before the run before has ended.
    fn plans_ahead(&self) -> bool {
        self.every.may_overlap() && self.overlap != Overlap::Queue
    }

    fn begin(self: &Arc<Self>, state: &mut State, planned: Last) -> Option<Run> {
        let ward = Arc::clone(state.ward.as_ref()?);
        let number = state.next_number;
        state.next_number += 1;
        state.out.push((number, None));
        Some(Run {
            series: Arc::clone(self),
            number,
            planned,
            is_settled: false,
            is_last: false,
            ward,
        })
    }

    fn task_of(self: &Arc<Self>, run: Run) -> Task {
        let number = run.number;
        let (task, handle) = self.spec.clone().build(move || run.go());
        let mut state = self.state.lock();
        let out = state.out.iter_mut().find(|(own, _)| *own == number);
        if let Some((_, place)) = out {
            *place = Some(Arc::new(handle));
        }
        task
    }

    /// The pool has been stopped: a task for who did that. Running it is one last run; dropping it cancels
    /// the series.
    pub(super) fn last_run(self: &Arc<Self>) -> Option<Task> {
        let mut run = {
            let mut state = self.state.lock();
            state.key = None;
            let planned = state.planned;
            match state.is_over {
                true => return None,
                false => self.begin(&mut state, planned)?,
            }
        };
        run.is_last = true;
        Some(self.task_of(run))
    }

    /// Ends it, if it is not over, for this reason. A run that has begun goes on.
    pub(super) fn end(self: &Arc<Self>, reason: CancelReason) {
        let over = {
            let mut books = self.core.books();
            let mut state = self.state.lock();
            self.close(&mut books, &mut state)
        };
        self.finish(over, Finish::Cancelled(reason));
    }

    /// As [`end`](Series::end), for its handle: runs that have not begun never will, and those that have
    /// are asked to stop, if `interrupts`.
    pub(super) fn cancel(self: &Arc<Self>, interrupts: bool) {
        self.end(CancelReason::Requested);
        // They stay: who has cancelled it may still ask what runs to stop.
        let out: Vec<_> = {
            let state = self.state.lock();
            state
                .out
                .iter()
                .filter_map(|(_, run)| run.clone())
                .collect()
        };
        for handle in out {
            match interrupts {
                true => handle.interrupt(),
                false => handle.cancel(),
            };
        }
    }

    /// V1: over, and in the wheel no more. `None` if it was over before.
    fn close(&self, books: &mut Books, state: &mut State) -> Option<Over> {
        if std::mem::replace(&mut state.is_over, true) {
            return None;
        }
        let waits = state.key.take().and_then(|key| books.wheel.remove(key));
        Some(Over {
            done: state.done.take(),
            ward: state.ward.take(),
            waits,
        })
    }

    /// V4: outside the locks.
    fn finish(&self, over: Option<Over>, finish: Finish) {
        let Some(Over { done, ward, waits }) = over else {
            return;
        };
        self.core.counts.series.fetch_sub(1, Ordering::Relaxed);
        if matches!(finish, Finish::Cancelled(_)) {
            self.core.counts.cancelled.fetch_add(1, Ordering::Relaxed);
        }
        drop(waits);
        let body = self.body.lock().take();
        quiet::drop(body);
        if let Some(done) = done {
            done(finish);
        }
        drop(ward);
    }

    /// A run begins, so late. Returns the how manieth it is.
    pub(super) fn begins(&self, late: Duration) -> u64 {
        let figures = &mut self.state.lock().figures;
        figures.runs += 1;
        figures.late = Some(late);
        figures.runs
    }

    /// Whether a run may begin now.
    pub(super) fn may_begin(self: &Arc<Self>, is_last: bool) -> bool {
        let is_over = {
            let books = self.core.books();
            let state = self.state.lock();
            // After a stop it is who has it back that runs it, or a worker that had it already.
            let may = is_last || books.lets_series_run() || books.state == RunState::Stopped;
            match state.is_over {
                true => None,
                false => Some(may),
            }
        };
        match is_over {
            None => false,
            Some(true) => true,
            Some(false) => {
                self.end(CancelReason::ShutDown);
                false
            }
        }
    }

    /// Calls the closure; `None` if it is gone.
    pub(super) fn call(&self) -> Option<Verdict<()>> {
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
        let verdict = panic::catch_unwind(AssertUnwindSafe(&mut exclusive));
        // V3: it comes back, also when it has panicked.
        let mut unwanted = None;
        {
            let state = self.state.lock();
            let mut body = self.body.lock();
            match state.is_over {
                true => unwanted = Some(exclusive),
                false => *body = Some(Body::Exclusive(exclusive)),
            }
        }
        quiet::drop(unwanted);
        match verdict {
            Ok(verdict) => Some(verdict),
            Err(payload) => panic::resume_unwind(payload),
        }
    }

    /// V2: a run is over. What comes next is worked out here.
    pub(super) fn settle(self: &Arc<Self>, run: &Run, went: Went) {
        chaos::point("schedule.settle");
        let now = self.core.now();
        let outcome = went.outcome();
        let mut rings = false;
        let settled = {
            let mut books = self.core.books();
            let mut state = self.state.lock();
            let place = state.out.iter().position(|(own, _)| *own == run.number);
            let handle = place.map(|place| state.out.swap_remove(place));
            let was_over = state.is_over;
            // A stop takes runs back: no executor has refused these, and there is nothing to tell.
            let is_unremarkable =
                matches!(went, Went::Lost) && books.state == RunState::Stopped || was_over;
            if !is_unremarkable {
                state.count(&went, &outcome);
            }
            let then = self.after(&state, &went);
            let may_go_on = books.lets_series_run()
                && !run.is_last
                && !self.core.is_alone.load(Ordering::Relaxed);
            let then = match may_go_on {
                true => then,
                false => Then::Nothing,
            };
            let over = match then {
                Then::Nothing => self.close(&mut books, &mut state),
                _ => None,
            };
            if !state.is_over {
                let is_lost = matches!(went, Went::Lost);
                rings = self.goes_on(&mut books, &mut state, then, is_lost, now);
            }
            Settled {
                is_unremarkable,
                then,
                over,
                handle,
                runs: state.figures.runs,
            }
        };
        drop(settled.handle);
        if settled.over.is_some() {
            self.finish(settled.over, went.into_finish(self.on_failure));
        } else {
            quiet::drop(went);
        }
        if rings {
            self.core.ring();
        }
        if settled.is_unremarkable || outcome == RunOutcome::Completed {
            return;
        }
        self.core.counts.note(&outcome);
        let is_lost = outcome == RunOutcome::Refused;
        let notice = ScheduleNotice {
            pool: self.core.name.to_string(),
            label: self.label(),
            outcome,
            runs: settled.runs,
            then: settled.then,
        };
        match is_lost {
            // K6: this may be the thread of the timer.
            true => {
                self.core.bag.add_notice(notice);
                self.core.ring();
            }
            false => self.core.tell(&notice),
        }
    }
}

impl State {
    fn count(&mut self, went: &Went, outcome: &RunOutcome) {
        let figures = &mut self.figures;
        match went {
            Went::Well | Went::Ends => self.failures_in_a_row = 0,
            Went::Failed(_) | Went::Panicked(_) => {
                figures.failures += 1;
                self.failures_in_a_row = self.failures_in_a_row.saturating_add(1);
            }
            Went::Lost => figures.refused += 1,
        }
        figures.outcome = Some(outcome.clone());
    }
}

/// What a run has left behind.
struct Settled {
    /// Whether nobody counts it or hears of it.
    is_unremarkable: bool,
    then: Then,
    over: Option<Over>,
    handle: Option<Out>,
    runs: u64,
}

/// What is left of a series that is over.
struct Over {
    done: Option<Done>,
    ward: Option<Arc<Ward>>,
    waits: Option<Entry>,
}
