//! One run of a series, inside its task. The invariants are in [`super::series`].

use super::RunInfo;
use super::body::Finish;
use super::failure::{OnFailure, RunError, RunOutcome, RunStatus};
use super::liveness::{Guard, Running};
use super::plan::DueTime;
use super::series::Series;
use crate::task::{CancelReason, Panic};
use crate::time::Deadline;
use millpond_raw::user_code::{self, Kind};
use std::panic::{self, AssertUnwindSafe};
use std::sync::Arc;
use std::time::Duration;

/// How a run ended.
pub(super) enum RunResult {
    /// The series goes on.
    Continue,
    /// The series ends with a value.
    End,
    Failed(RunError),
    Panicked(Panic),
    /// It did not begin: the executor rejected or dropped it.
    Lost,
}

impl RunResult {
    pub(super) fn outcome(&self) -> RunOutcome {
        match self {
            RunResult::Continue | RunResult::End => RunOutcome::Completed,
            RunResult::Failed(error) => RunOutcome::Failed(error.to_string()),
            RunResult::Panicked(panic) => RunOutcome::Panicked(text_of(panic)),
            RunResult::Lost => RunOutcome::Rejected,
        }
    }

    /// The outcome of a series that ends after this run.
    pub(super) fn into_finish(self, on_failure: OnFailure) -> Finish {
        match (self, on_failure) {
            (RunResult::End, _) => Finish::Value,
            (RunResult::Failed(error), OnFailure::Stop | OnFailure::Retry(_)) => {
                Finish::Failed(error)
            }
            (RunResult::Panicked(panic), OnFailure::Stop | OnFailure::Retry(_)) => {
                Finish::Panicked(panic)
            }
            // It would have gone on, but for a shutdown.
            _ => Finish::Cancelled(CancelReason::ShutDown),
        }
    }
}

fn text_of(panic: &Panic) -> String {
    panic
        .message()
        .unwrap_or("with something that is no text")
        .to_owned()
}

/// One run, inside its task. A run that is dropped without a [`run`](Run::run) is lost.
pub(super) struct Run {
    pub(super) series: Arc<Series>,
    pub(super) number: u64,
    pub(super) planned: DueTime,
    pub(super) is_settled: bool,
    /// Whether it was handed back by a stop.
    pub(super) is_last: bool,
    /// One of these two, dropped last. The guard is there until the run begins.
    pub(super) guard: Option<Guard>,
    pub(super) running: Option<Running>,
}

impl Run {
    pub(super) fn run(mut self) {
        let series = Arc::clone(&self.series);
        if !series.try_begin(self.is_last) {
            self.is_settled = true;
            return;
        }
        let engine = &series.engine;
        let guard = self.guard.take().expect("a run is run once");
        let (late, running) = guard.begin(engine.nanos(Deadline::at(self.planned.due)));
        self.running = Some(running);
        let late = Duration::from_nanos(late);
        let number = series.record_begin(late);
        let called = panic::catch_unwind(AssertUnwindSafe(|| match &engine.decorator {
            None => series.call(),
            Some(decorator) => {
                let info = RunInfo {
                    name: series.name.clone(),
                    due: self.planned.due,
                    lateness: late,
                    number,
                };
                let mut status = None;
                user_code::check(Kind::Hook);
                decorator(&info, &mut || status = series.call());
                status
            }
        }));
        let (result, text) = match called {
            Ok(None | Some(RunStatus::Continue)) => (RunResult::Continue, None),
            Ok(Some(RunStatus::End(()))) => (RunResult::End, None),
            Ok(Some(RunStatus::Failed(error))) => (RunResult::Failed(error), None),
            Err(payload) => {
                let panic = Panic::new(payload);
                let text = text_of(&panic);
                (RunResult::Panicked(panic), Some(text))
            }
        };
        let has_failed = matches!(result, RunResult::Failed(_) | RunResult::Panicked(_));
        if let Some(running) = &mut self.running {
            running.record_end(has_failed);
        }
        self.is_settled = true;
        series.settle(&self, result);
        if let Some(text) = text {
            // For the executor's metrics; the panic itself belongs to the series.
            panic::resume_unwind(Box::new(text));
        }
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        if self.guard.is_some() {
            self.series.engine.record_unrun();
        }
        if self.is_settled {
            return;
        }
        self.is_settled = true;
        let series = Arc::clone(&self.series);
        series.settle(self, RunResult::Lost);
    }
}
