//! What a scheduled pool tells without being asked.

use super::failure::RunOutcome;
use std::fmt;
use std::time::Duration;

/// What a scheduled pool tells: a run has failed, or there was no room for one.
///
/// Left alone it goes to the standard error; with the feature `tracing` it is an event.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ScheduleNotice {
    /// What the pool is called.
    pub pool: String,
    /// What the task or the series is called, or where it was made.
    pub label: String,
    /// What became of the run.
    pub outcome: RunOutcome,
    /// How many runs the series has had, this one included; 0 for a task that is no series.
    pub runs: u64,
    /// What comes next.
    pub then: Then,
}

/// What comes after a run that failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Then {
    /// Nothing more: the series has ended, or there was only this one run.
    Nothing,
    /// The series goes on as planned.
    Next,
    /// Another try after this pause.
    RetryIn(Duration),
}

impl fmt::Display for ScheduleNotice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ScheduleNotice {
            pool,
            label,
            outcome,
            runs,
            then,
        } = self;
        match (runs, then) {
            (0, Then::Nothing) => return write!(f, "{pool}: {label} {outcome}; it will not run"),
            (0, _) => write!(f, "{pool}: a run of {label} {outcome}")?,
            (runs, _) => write!(f, "{pool}: run {runs} of {label} {outcome}")?,
        }
        match then {
            Then::Nothing => f.write_str("; the series has ended"),
            Then::Next => f.write_str("; the series goes on"),
            Then::RetryIn(pause) => write!(f, "; it is tried again in {pause:?}"),
        }
    }
}

#[cfg(feature = "tracing")]
pub(super) fn to_nobody_in_particular(notice: &ScheduleNotice) {
    tracing::warn!(target: "millpond", "{notice}");
}

#[cfg(not(feature = "tracing"))]
pub(super) fn to_nobody_in_particular(notice: &ScheduleNotice) {
    eprintln!("millpond: {notice}");
}
