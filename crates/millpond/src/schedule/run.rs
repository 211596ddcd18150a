//! One run of a series, inside its task. The rules are in [`super::series`].

use super::RunInfo;
use super::body::Finish;
use super::failure::{OnFailure, RunError, RunOutcome, Verdict};
use super::plan::Last;
use super::series::Series;
use super::ward::Ward;
use crate::task::{CancelReason, Panic};
use crate::time::Deadline;
use millpond_raw::user_code::{self, Kind};
use std::panic::{self, AssertUnwindSafe};
use std::sync::Arc;
use std::time::Duration;

/// How a run went.
pub(super) enum Went {
    Well,
    Ends,
    Failed(RunError),
    Panicked(Panic),
    Lost,
}

impl Went {
    pub(super) fn outcome(&self) -> RunOutcome {
        match self {
            Went::Well | Went::Ends => RunOutcome::Completed,
            Went::Failed(error) => RunOutcome::Failed(error.to_string()),
            Went::Panicked(panic) => RunOutcome::Panicked(text_of(panic)),
            Went::Lost => RunOutcome::Refused,
        }
    }

    /// What the handle of a series hears that ends after this run.
    pub(super) fn into_finish(self, on_failure: OnFailure) -> Finish {
        match (self, on_failure) {
            (Went::Ends, _) => Finish::Value,
            (Went::Failed(error), OnFailure::Stop | OnFailure::Retry(_)) => Finish::Failed(error),
            (Went::Panicked(panic), OnFailure::Stop | OnFailure::Retry(_)) => {
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

/// One run, inside its task. Dropping it without a [`go`](Run::go) is a run that was lost.
pub(super) struct Run {
    pub(super) series: Arc<Series>,
    pub(super) number: u64,
    pub(super) planned: Last,
    pub(super) is_settled: bool,
    /// Whether it was handed back by a stop, and is the last.
    pub(super) is_last: bool,
    pub(super) ward: Arc<Ward>,
}

impl Run {
    pub(super) fn go(mut self) {
        let series = Arc::clone(&self.series);
        if !series.may_begin(self.is_last) {
            self.is_settled = true;
            return;
        }
        let core = &self.ward.0;
        let (late, _busy) = core.begins(core.nanos(Deadline::at(self.planned.due)));
        let late = Duration::from_nanos(late);
        let number = series.begins(late);
        let called = panic::catch_unwind(AssertUnwindSafe(|| match &core.decorator {
            None => series.call(),
            Some(decorator) => {
                let info = RunInfo {
                    name: series.name.clone(),
                    due: self.planned.due,
                    lateness: late,
                    number,
                };
                let mut verdict = None;
                user_code::check(Kind::Hook);
                decorator(&info, &mut || verdict = series.call());
                verdict
            }
        }));
        let (went, text) = match called {
            Ok(None | Some(Verdict::Again)) => (Went::Well, None),
            Ok(Some(Verdict::End(()))) => (Went::Ends, None),
            Ok(Some(Verdict::Failed(error))) => (Went::Failed(error), None),
            Err(payload) => {
                let panic = Panic::new(payload);
                let text = text_of(&panic);
                (Went::Panicked(panic), Some(text))
            }
        };
        self.is_settled = true;
        series.settle(&self, went);
        if let Some(text) = text {
            // For the executor's figures; the panic itself is the series'.
            panic::resume_unwind(Box::new(text));
        }
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        if self.is_settled {
            return;
        }
        self.is_settled = true;
        let series = Arc::clone(&self.series);
        series.settle(self, Went::Lost);
    }
}
