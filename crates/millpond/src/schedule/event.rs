//! Events that a scheduled pool reports: failed and rejected runs.

use super::core::Core;
use super::failure::RunOutcome;
use crate::engine::events;
use crate::executor::Inside;
use millpond_raw::catch_panic;
use millpond_raw::user_code::{self, Kind};
use std::fmt;
use std::panic::Location;
use std::time::Duration;

/// An event of a scheduled pool: a run has failed, or the executor has rejected one.
///
/// By default it goes to the standard error, or to `tracing` with that feature. With
/// [`on_event`](super::ScheduledBuilder::on_event) it goes to a listener:
///
/// ```
/// use millpond::pool::ThreadPool;
/// use millpond::queue::{BlockingQueue, FifoQueue};
/// use millpond::schedule::ScheduledPool;
/// use std::sync::Arc;
/// use std::time::Duration;
///
/// let told = Arc::new(FifoQueue::unbounded());
/// let tell = Arc::clone(&told);
/// let timers = ScheduledPool::owning(ThreadPool::builder("mill").core(1).build()?)
///     .name("mill")
///     .on_event(move |event| drop(tell.offer(event.clone())))
///     .build();
/// let ms = Duration::from_millis(1);
/// let pump = timers.series(millpond::schedule::Every::rate(ms)).name("pump");
/// let pump = pump.start(|| Err::<(), _>("dry"))?;
/// assert_eq!(
///     told.take()?.to_string(),
///     "mill: run 1 of pump failed: dry; the series has ended"
/// );
/// assert_eq!(pump.failures(), 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ScheduleEvent {
    /// The pool's name.
    pub pool: String,
    /// The name of the task or the series, or where it was made.
    pub label: String,
    /// How the run ended.
    pub outcome: RunOutcome,
    /// Runs of the series so far, this one included; 0 for a task that is no series.
    pub runs: u64,
    /// Whether and when there is another run.
    pub next: NextRun,
}

/// Whether and when a series runs again after a run that failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum NextRun {
    /// Nothing more: the series has ended, or there was only this one run.
    Never,
    /// The series goes on as planned.
    AsPlanned,
    /// Another try after this pause.
    RetryIn(Duration),
}

impl fmt::Display for ScheduleEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ScheduleEvent {
            pool,
            label,
            outcome,
            runs,
            next,
        } = self;
        match (runs, next) {
            (0, NextRun::Never) => return write!(f, "{pool}: {label} {outcome}; it will not run"),
            (0, _) => write!(f, "{pool}: a run of {label} {outcome}")?,
            (runs, _) => write!(f, "{pool}: run {runs} of {label} {outcome}")?,
        }
        match next {
            NextRun::Never => f.write_str("; the series has ended"),
            NextRun::AsPlanned => f.write_str("; the series goes on"),
            NextRun::RetryIn(pause) => write!(f, "; it is tried again in {pause:?}"),
        }
    }
}

impl Core {
    /// Calls the listener, here and now: never on the timer's thread (SCHEDULE-3).
    pub(super) fn deliver_event(&self, event: &ScheduleEvent) {
        user_code::check(Kind::Listener);
        // The pool cannot terminate before its listener returns, so a listener must not wait for that.
        let _inside = Inside::of(self);
        let _ = catch_panic::call(|| match &self.listener {
            Some(listener) => listener(event),
            None => events::log(event),
        });
    }
}

/// The name of a task, or where it was made.
pub(super) fn label_of(name: Option<&str>, made_at: &Location<'_>) -> String {
    name.map_or_else(|| format!("the task made at {made_at}"), str::to_owned)
}
