//! Events that a scheduled pool reports: failed and rejected runs.
//!
//! They are queued and delivered by [`crate::engine::events`], to the listener that
//! [`ScheduledBuilder::on_event`](super::ScheduledBuilder::on_event) sets.

use super::engine::ScheduleEngine;
use super::failure::RunOutcome;
#[cfg(feature = "tracing")]
use crate::engine::events::LogFields;
use crate::engine::events::{EventSource, Events, LogEvent};
use crate::executor::Inside;
use crate::time::Clock;
use std::fmt;
use std::panic::Location;
use std::time::Duration;

/// An event of a scheduled pool: a run has failed, or the executor has rejected one.
///
/// By default it goes to the standard error, or to `tracing` with that feature; of a flood only the first lines, and
/// how many more there were. With [`on_event`](super::ScheduledBuilder::on_event) it goes to a listener:
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
pub enum ScheduleEvent {
    /// A run of a series has panicked, or returned an error.
    Failed(Box<RunReport>),
    /// The executor has rejected a task or a run that was due, or dropped it.
    Rejected(Box<RunReport>),
    /// Events were dropped, because the listener did not keep up with them, or because there is none and they would
    /// have flooded the log.
    Dropped {
        /// The pool's name.
        pool: String,
        /// The number dropped since the last event of this kind.
        events: u64,
    },
}

/// A run that was no success, or did not begin.
///
/// ```
/// use millpond::executor::Lifecycle;
/// use millpond::pool::ThreadPool;
/// use millpond::schedule::{NextRun, ScheduleEvent, ScheduledPool};
/// use std::sync::mpsc;
/// use std::time::Duration;
///
/// let (tell, told) = mpsc::channel();
/// let timers = ScheduledPool::owning(ThreadPool::builder("mill").core(1).build()?)
///     .on_event(move |event| drop(tell.send(event.clone())))
///     .build();
/// let ms = Duration::from_millis(1);
/// let pump = timers.schedule_at_fixed_rate(ms, ms, || Err::<(), _>("dry"))?;
/// let ScheduleEvent::Failed(report) = told.recv()? else { panic!("nothing else has happened") };
/// assert_eq!((report.runs, report.next), (1, NextRun::Never));
/// assert_eq!(report.outcome.to_string(), "failed: dry");
/// timers.close()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RunReport {
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
        match self {
            ScheduleEvent::Failed(report) | ScheduleEvent::Rejected(report) => report.fmt(f),
            ScheduleEvent::Dropped { pool, events } => write!(
                f,
                "{pool}: {events} more events were dropped, because they came too fast"
            ),
        }
    }
}

impl LogEvent for ScheduleEvent {
    #[cfg(feature = "tracing")]
    fn fields(&self) -> LogFields {
        let of_run = |event, report: &RunReport| {
            let fields = LogFields::new(event, &report.pool).task(&report.label);
            fields.reason(&report.outcome).count(report.runs)
        };
        match self {
            ScheduleEvent::Failed(report) => of_run("run_failed", report),
            ScheduleEvent::Rejected(report) => of_run("run_rejected", report),
            ScheduleEvent::Dropped { pool, events } => {
                LogFields::new("events_dropped", pool).count(*events)
            }
        }
    }
}

impl fmt::Display for RunReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let RunReport {
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

impl RunReport {
    pub(super) fn into_event(self) -> ScheduleEvent {
        match self.outcome {
            RunOutcome::Rejected => ScheduleEvent::Rejected(Box::new(self)),
            _ => ScheduleEvent::Failed(Box::new(self)),
        }
    }
}

impl EventSource for ScheduleEngine {
    type Event = ScheduleEvent;

    fn events(&self) -> &Events<Self> {
        &self.events
    }

    fn clock(&self) -> &Clock {
        &self.clock
    }

    fn dropped_events(&self, events: u64) -> ScheduleEvent {
        let pool = self.name.to_string();
        ScheduleEvent::Dropped { pool, events }
    }

    /// A listener may be called inside a run, or by a thread that dispatches: the pool does not terminate before it
    /// returns.
    fn enter_delivery(&self) -> Option<Inside> {
        Some(Inside::of(self))
    }
}

/// The name of a task, or where it was made.
pub(super) fn label_of(name: Option<&str>, made_at: &Location<'_>) -> String {
    name.map_or_else(|| format!("the task made at {made_at}"), str::to_owned)
}
