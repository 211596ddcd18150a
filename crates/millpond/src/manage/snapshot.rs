//! The state of an engine at one moment, in the form that engines of every kind share.

use super::Value;
use crate::meter::Distribution;
use std::any::Any;
use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// Where an engine is in its life. It only ever moves on.
///
/// ```
/// use millpond::executor::Lifecycle;
/// use millpond::manage::RunState;
/// use millpond::preset;
///
/// let pool = preset::single("mill").build()?;
/// assert_eq!(pool.snapshot().state, RunState::Running);
/// pool.close()?;
/// assert_eq!(pool.snapshot().state, RunState::Terminated);
/// assert!(RunState::Running < RunState::Terminated, "in the order of a life");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum RunState {
    /// Takes tasks and runs them.
    Running = 0,
    /// Takes no more tasks, and runs those that it has.
    ShutDown = 1,
    /// Takes no more tasks, starts none, and has interrupted those that run.
    Stopped = 2,
    /// All tasks have ended; the hook for the end runs.
    Tidying = 3,
    /// All threads have ended.
    Terminated = 4,
}

impl fmt::Display for RunState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            RunState::Running => "running",
            RunState::ShutDown => "shut down",
            RunState::Stopped => "stopped",
            RunState::Tidying => "tidying up",
            RunState::Terminated => "terminated",
        })
    }
}

/// An engine at one moment: what every engine has in common, and as [`details`](EngineSnapshot::details) what
/// only its kind has.
///
/// # The counts
///
/// `submitted`, `completed`, `failed`, `rejected` and `cancelled` count since the engine was built. **None of them ever
/// falls** from one snapshot to a later one, so they can be exported as monotone counters. Every engine keeps this
/// contract:
///
/// ```text
///   calls     =  submitted + rejected                      at rest
///   submitted =  completed + cancelled + queued + running  at rest
///   submitted >= completed + cancelled                     always
///   completed >= failed                                    always
/// ```
///
/// A call is one that submits a task, returned, and took effect: one that would have blocked (`try_execute`) is none.
/// An engine is at rest when no call is under way and no task moves from one place to the next. A snapshot of a busy
/// engine may lack tasks that move just then, and no task is in `submitted` twice; but `queued` and `running` are read one
/// after the other with the counts, so a task that moves may be shown in two of them for a moment. A task that a thread pool's
/// custom rejection policy keeps for itself is in neither count. A scheduled pool counts each planned run of a series
/// as submitted, too; a task that it executes at once is submitted to its executor instead.
///
/// A console that knows the kind of the engine asks for its own snapshot; one that does not shows the
/// [measurements](Details::measurements).
///
/// ```
/// use millpond::executor::{ExecutorExt, Lifecycle};
/// use millpond::manage::Managed;
/// use millpond::pool::PoolSnapshot;
/// use millpond::preset;
///
/// let pool = preset::fixed("mill", 2).build()?;
/// pool.submit(|| "flour")?.join()?;
/// pool.close()?;
///
/// let engine: &dyn Managed = &pool;
/// let now = engine.engine_snapshot();
/// assert_eq!((&*now.name, &*now.kind), ("mill", "thread pool"));
/// assert_eq!((now.submitted, now.completed, now.failed), (1, 1, 0));
/// assert_eq!(now.latencies[0].run.count(), 1);
///
/// assert_eq!(now.details::<PoolSnapshot>().unwrap().largest, 1);
/// let measured = now.measurements();
/// assert!(measured.iter().any(|each| each.name == "largest"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct EngineSnapshot {
    /// The engine's name.
    pub name: String,
    /// What kind of engine it is: `thread pool`, `scheduled pool`, `fork-join pool`.
    pub kind: Cow<'static, str>,
    /// Where it is in its life.
    pub state: RunState,
    /// Threads that it has.
    pub workers: usize,
    /// Submitted tasks that wait. In a thread pool a cancelled task is one until it has left the queue. In a fork-join pool
    /// jobs of joins and scopes are none: they are parts of a task. In a scheduled pool those that were handed to the
    /// executor and wait there are among them, and so are those that a `shutdown_now` has handed back, until they are run
    /// or dropped.
    pub queued: usize,
    /// Submitted tasks whose body runs, those that run inside of others included. A task that a joining thread runs, which
    /// is no worker, is `queued` until it leaves the queue, and `completed` from then on.
    pub running: usize,
    /// Tasks that it has accepted since it was built, whatever became of them.
    pub submitted: u64,
    /// Submitted tasks that have run to their end, failed ones included, on whichever thread. A task that a rejection
    /// policy lets its caller run may be counted when it begins.
    pub completed: u64,
    /// Completed tasks that panicked or returned an error to the engine.
    pub failed: u64,
    /// Tasks that it has given back to their callers, with an error, instead of accepting them.
    pub rejected: u64,
    /// Submitted tasks that will never run: cancelled, expired, shed, discarded or handed back. The details say which.
    pub cancelled: u64,
    /// How long tasks waited and ran, by task name. Empty if the engine does not measure that, as a scheduled pool:
    /// its executor does.
    pub latencies: Vec<TaskLatency>,
    /// How late tasks and runs began that were due at a time, those of all names together. Empty if the engine
    /// schedules none.
    pub lateness: Distribution,
    /// What the engine itself finds wrong now, a sentence each. Empty if it is healthy.
    pub warnings: Vec<String>,
    details: Option<Arc<dyn Details>>,
    more: Vec<Measurement>,
}

impl EngineSnapshot {
    /// A snapshot in which nothing has happened, for engines of other crates. All fields can be changed
    /// afterwards.
    ///
    /// ```
    /// use millpond::manage::{EngineSnapshot, RunState};
    ///
    /// let mut now = EngineSnapshot::new("db", "rayon pool", RunState::Running);
    /// now.workers = 8;
    /// assert_eq!(now.to_string(), "db (rayon pool): running, 8 workers, 0 queued, 0 running, \
    ///     0 submitted, 0 completed, 0 failed, 0 rejected, 0 cancelled");
    /// ```
    pub fn new(
        name: impl Into<String>,
        kind: impl Into<Cow<'static, str>>,
        state: RunState,
    ) -> Self {
        EngineSnapshot {
            name: name.into(),
            kind: kind.into(),
            state,
            workers: 0,
            queued: 0,
            running: 0,
            submitted: 0,
            completed: 0,
            failed: 0,
            rejected: 0,
            cancelled: 0,
            latencies: Vec::new(),
            lateness: Distribution::new(),
            warnings: Vec::new(),
            details: None,
            more: Vec::new(),
        }
    }

    /// The same with what only engines of its kind have.
    ///
    /// ```
    /// use millpond::manage::{Details, EngineSnapshot, Measurement, RunState};
    ///
    /// #[derive(Debug)]
    /// struct Steals(u64);
    ///
    /// impl Details for Steals {
    ///     fn measurements(&self) -> Vec<Measurement> {
    ///         vec![Measurement::counter("steals", self.0)]
    ///     }
    /// }
    ///
    /// let now = EngineSnapshot::new("db", "rayon pool", RunState::Running).with_details(Steals(7));
    /// assert_eq!(now.details::<Steals>().unwrap().0, 7);
    /// assert_eq!(now.measurements()[0].to_string(), "steals 7");
    /// ```
    #[must_use]
    pub fn with_details(mut self, details: impl Details) -> Self {
        self.details = Some(Arc::new(details));
        self
    }

    /// The same with numbers that are not in the details; [`measurements`](Self::measurements) lists them behind those.
    ///
    /// ```
    /// use millpond::manage::{EngineSnapshot, Measurement, RunState};
    ///
    /// let now = EngineSnapshot::new("db", "rayon pool", RunState::Running);
    /// let now = now.with_measurements(vec![Measurement::counter("steals", 7)]);
    /// assert_eq!(now.measurements()[0].to_string(), "steals 7");
    /// ```
    #[must_use]
    pub fn with_measurements(mut self, more: Vec<Measurement>) -> Self {
        self.more.extend(more);
        self
    }

    /// What only engines of its kind have, if it is of this type.
    ///
    /// ```
    /// use millpond::manage::Managed;
    /// use millpond::pool::PoolSnapshot;
    /// use millpond::preset;
    /// use millpond::schedule::ScheduleSnapshot;
    ///
    /// let timers = preset::scheduled("mill", 1)?;
    /// let now = timers.engine_snapshot();
    /// assert_eq!(now.details::<ScheduleSnapshot>().unwrap().series, 0);
    /// assert!(now.details::<PoolSnapshot>().is_none(), "that is the pool below: timers.executor()");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn details<T: Details>(&self) -> Option<&T> {
        let details = self.details.as_deref()?;
        let any: &dyn Any = details.as_any();
        any.downcast_ref()
    }

    /// What only engines of its kind have, for readers that do not know the kind.
    ///
    /// ```
    /// use millpond::manage::Managed;
    /// use millpond::preset;
    ///
    /// let pool = preset::single("mill").build()?;
    /// for each in pool.engine_snapshot().measurements() {
    ///     println!("{} {}", each.name, each.value);
    /// }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn measurements(&self) -> Vec<Measurement> {
        let details = self.details.as_deref();
        let mut all = details.map_or_else(Vec::new, Details::measurements);
        all.extend(self.more.iter().cloned());
        all
    }

    /// Whether the engine finds nothing wrong with itself now. It is true again when a fault is over.
    ///
    /// ```
    /// use millpond::manage::Managed;
    /// use millpond::preset;
    ///
    /// assert!(preset::single("mill").build()?.engine_snapshot().is_healthy());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn is_healthy(&self) -> bool {
        self.warnings.is_empty()
    }
}

impl fmt::Display for EngineSnapshot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let EngineSnapshot {
            name,
            kind,
            state,
            workers,
            queued,
            running,
            submitted,
            completed,
            failed,
            rejected,
            cancelled,
            ..
        } = self;
        let threads = if *workers == 1 { "worker" } else { "workers" };
        write!(
            f,
            "{name} ({kind}): {state}, {workers} {threads}, {queued} queued, {running} running, \
             {submitted} submitted, {completed} completed, {failed} failed, {rejected} rejected, {cancelled} cancelled"
        )
    }
}

/// How long tasks of one name waited and ran.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TaskLatency {
    /// The name, or where in the program the task was made.
    pub task: String,
    /// From being accepted to the start.
    pub queue_wait: Distribution,
    /// From the start to the end.
    pub run: Distribution,
}

impl TaskLatency {
    /// The latencies of one name.
    ///
    /// ```
    /// use millpond::manage::TaskLatency;
    /// use millpond::meter::Distribution;
    ///
    /// let unused = TaskLatency::new("thumbnail", Distribution::new(), Distribution::new());
    /// assert_eq!(unused.run.count(), 0);
    /// ```
    pub fn new(task: impl Into<String>, queue_wait: Distribution, run: Distribution) -> Self {
        TaskLatency {
            task: task.into(),
            queue_wait,
            run,
        }
    }
}

/// What only engines of one kind have: the snapshot of that kind.
pub trait Details: Any + fmt::Debug + Send + Sync + AsAny {
    /// Its numbers with their names, for readers that do not know the kind. The common ones need not be repeated.
    fn measurements(&self) -> Vec<Measurement>;
}

/// Upcasts to [`Any`]. Needed until Rust 1.86, which can upcast trait objects.
pub trait AsAny {
    /// The same as [`Any`].
    fn as_any(&self) -> &dyn Any;
}

impl<T: Any> AsAny for T {
    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// What kind of number a [`Measurement`] is, so that an exporter knows what to make of it.
///
/// ```
/// use millpond::manage::MeasurementKind;
///
/// assert_eq!(MeasurementKind::Counter.to_string(), "counter");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum MeasurementKind {
    /// It counts since the engine was built, and never falls.
    Counter,
    /// It is so now, and rises and falls; or it is an estimate, or the most that there ever was.
    Gauge,
    /// It is so now, or it is not.
    Flag,
}

impl fmt::Display for MeasurementKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            MeasurementKind::Counter => "counter",
            MeasurementKind::Gauge => "gauge",
            MeasurementKind::Flag => "flag",
        })
    }
}

/// A number with its name. In the engines of this library a name means the same wherever it is.
///
/// ```
/// use millpond::manage::{Measurement, MeasurementKind};
/// use std::time::Duration;
///
/// let steals = Measurement::counter("steals", 7).with_unit("jobs");
/// assert_eq!((steals.kind, steals.unit), (MeasurementKind::Counter, Some("jobs")));
/// assert_eq!(steals.to_string(), "steals 7");
///
/// let drains_in = Measurement::gauge("drains_in", Duration::from_nanos(163_022_912));
/// assert_eq!(drains_in.to_string(), "drains_in 163ms", "a duration is printed with three digits");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Measurement {
    /// The name.
    pub name: &'static str,
    /// The number.
    pub value: Value,
    /// What kind of number it is.
    pub kind: MeasurementKind,
    /// What a whole number counts, if the name does not say. A duration has its unit in its value.
    pub unit: Option<&'static str>,
}

impl Measurement {
    /// A count since the engine was built, which never falls.
    ///
    /// ```
    /// use millpond::manage::{Measurement, Value};
    ///
    /// assert_eq!(Measurement::counter("steals", 7).value, Value::Integer(7));
    /// ```
    pub fn counter(name: &'static str, count: u64) -> Self {
        Measurement::new(name, MeasurementKind::Counter, count.into())
    }

    /// A number or a duration that rises and falls.
    ///
    /// ```
    /// use millpond::manage::Measurement;
    ///
    /// assert_eq!(Measurement::gauge("active", 2_usize).to_string(), "active 2");
    /// ```
    pub fn gauge(name: &'static str, value: impl Into<Value>) -> Self {
        Measurement::new(name, MeasurementKind::Gauge, value.into())
    }

    /// Whether something is so now.
    ///
    /// ```
    /// use millpond::manage::Measurement;
    ///
    /// assert_eq!(Measurement::flag("is_overloaded", false).to_string(), "is_overloaded false");
    /// ```
    pub fn flag(name: &'static str, is_set: bool) -> Self {
        Measurement::new(name, MeasurementKind::Flag, is_set.into())
    }

    /// The same with what it counts.
    ///
    /// ```
    /// use millpond::manage::Measurement;
    ///
    /// assert_eq!(Measurement::gauge("active", 2_usize).with_unit("workers").unit, Some("workers"));
    /// ```
    #[must_use]
    pub fn with_unit(mut self, unit: &'static str) -> Self {
        self.unit = Some(unit);
        self
    }

    fn new(name: &'static str, kind: MeasurementKind, value: Value) -> Self {
        Measurement {
            name,
            value,
            kind,
            unit: None,
        }
    }

    /// A duration that is an estimate: it has three significant digits, so that its [value](Self::value) is short when
    /// it is printed.
    pub(crate) fn estimate(name: &'static str, estimate: impl Into<Option<Duration>>) -> Self {
        Measurement::gauge(name, estimate.into().map(rounded))
    }
}

/// To three significant digits.
fn rounded(duration: Duration) -> Duration {
    if duration == Duration::MAX {
        return duration;
    }
    let nanos = duration.as_nanos();
    let digits = nanos.checked_ilog10().unwrap_or(0);
    let unit = 10_u128.pow(digits.saturating_sub(2));
    let nanos = (nanos + unit / 2) / unit * unit;
    // A second more than the longest duration is none.
    let seconds = u64::try_from(nanos / 1_000_000_000);
    seconds.map_or(duration, |seconds| {
        Duration::new(seconds, (nanos % 1_000_000_000) as u32)
    })
}

impl fmt::Display for Measurement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.value {
            Value::Duration(duration) => {
                write!(f, "{} {}", self.name, Value::from(rounded(*duration)))
            }
            value => write!(f, "{} {value}", self.name),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_measured_duration_is_printed_with_three_digits_and_a_unit() {
        for (nanos, printed) in [
            (0, "0s"),
            (7, "7ns"),
            (999, "999ns"),
            (1_234, "1230ns"),
            (163_022_912, "163ms"),
            (999_600_000, "1s"),
            (1_629_999_999, "1630ms"),
            (90_000_000_000, "90s"),
        ] {
            let each = Measurement::gauge("wait", Duration::from_nanos(nanos));
            assert_eq!(each.to_string(), format!("wait {printed}"));
            let estimate = Measurement::estimate("wait", Duration::from_nanos(nanos));
            assert_eq!(estimate.value.to_string(), printed);
        }
        let forever = Measurement::gauge("wait", Duration::MAX);
        assert_eq!(forever.to_string(), "wait forever");
        let almost = Measurement::gauge("wait", Duration::MAX - Duration::from_nanos(1));
        assert!(almost.to_string().ends_with("s"), "{almost}");
        assert_eq!(Measurement::estimate("wait", None).to_string(), "wait none");
    }

    #[test]
    fn the_text_of_a_snapshot_has_all_its_counts() {
        let mut now = EngineSnapshot::new("mill", "thread pool", RunState::Running);
        (now.workers, now.queued, now.submitted, now.completed) = (1, 2, 9, 4);
        (now.failed, now.rejected, now.cancelled) = (1, 5, 3);
        assert_eq!(
            now.to_string(),
            "mill (thread pool): running, 1 worker, 2 queued, 0 running, 9 submitted, 4 completed, 1 failed, 5 rejected, \
             3 cancelled"
        );
    }
}
