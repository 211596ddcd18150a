//! Events as fields, for a log that is searched by them.

#[cfg(feature = "tracing")]
use super::super::dropped::DroppedDetached;
#[cfg(feature = "tracing")]
use super::super::long_run::LongRun;
use std::fmt;

/// The fields of an event. Those that it does not have are left out of the log.
#[cfg(feature = "tracing")]
#[derive(Debug, Default)]
pub(crate) struct LogFields {
    /// What has happened, in one word.
    pub(crate) event: &'static str,
    /// The name of the engine.
    pub(crate) engine: String,
    /// The name of a task or series, or the location where it was created.
    pub(crate) task: Option<String>,
    /// The location where the task was created.
    pub(crate) location: Option<String>,
    /// Why.
    pub(crate) reason: Option<String>,
    /// How many: tasks, events, workers.
    pub(crate) count: Option<u64>,
    /// How long it took, in milliseconds.
    pub(crate) millis: Option<u64>,
}

/// An event that can be logged.
pub(crate) trait LogEvent: fmt::Display {
    /// Its fields, beside its text.
    #[cfg(feature = "tracing")]
    fn fields(&self) -> LogFields;
}

#[cfg(feature = "tracing")]
impl LogFields {
    pub(crate) fn new(event: &'static str, engine: &str) -> Self {
        LogFields {
            event,
            engine: engine.to_owned(),
            ..LogFields::default()
        }
    }

    pub(crate) fn count(self, count: u64) -> Self {
        LogFields {
            count: Some(count),
            ..self
        }
    }

    pub(crate) fn task(self, task: impl fmt::Display) -> Self {
        LogFields {
            task: Some(task.to_string()),
            ..self
        }
    }

    pub(crate) fn reason(self, reason: impl fmt::Display) -> Self {
        LogFields {
            reason: Some(reason.to_string()),
            ..self
        }
    }

    pub(crate) fn of_long_run(run: &LongRun) -> Self {
        LogFields {
            location: run.location.map(|location| location.to_string()),
            millis: u64::try_from(run.running_for.as_millis()).ok(),
            ..LogFields::new("long_running", &run.pool).task(&run.label)
        }
    }

    pub(crate) fn of_dropped(report: &DroppedDetached) -> Self {
        let fields = LogFields::new("dropped_detached", &report.pool);
        LogFields {
            location: Some(report.location.to_string()),
            ..fields
                .task(&report.label)
                .reason(report.reason)
                .count(report.dropped)
        }
    }
}

/// Where events go without a listener.
#[cfg(feature = "tracing")]
pub(super) fn log(event: &dyn LogEvent) {
    let LogFields {
        event: what,
        engine,
        task,
        location,
        reason,
        count,
        millis,
    } = event.fields();
    tracing::warn!(
        target: "millpond",
        event = what,
        engine = &*engine,
        task = task.as_deref(),
        location = location.as_deref(),
        reason = reason.as_deref(),
        count,
        millis,
        "{event}"
    );
}

/// Where events go without a listener.
#[cfg(not(feature = "tracing"))]
pub(super) fn log(event: &dyn LogEvent) {
    eprintln!("millpond: {event}");
}
