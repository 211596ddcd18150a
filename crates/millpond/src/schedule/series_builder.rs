//! The builder of a series, and the task behind its handle.

use super::body::{Body, Done, Finish};
use super::engine::ScheduleEngine;
use super::failure::{OnFailure, RunReturn, RunStatus};
use super::handle::{Ending, Scheduled};
use super::plan::{Catchup, Every, Next, Overlap};
use super::series::{self, Series};
use crate::executor::{RejectReason, Rejected};
use crate::task::{TaskHandle, TaskSpec};
use millpond_raw::sync::Mutex;
use std::borrow::Cow;
use std::fmt;
use std::panic;
use std::sync::Arc;
use std::time::Duration;

/// Describes a series: see [`ScheduledPool::series`](super::ScheduledPool::series), which has an example.
///
/// ```
/// use millpond::executor::Lifecycle;
/// use millpond::preset;
/// use millpond::schedule::Every;
/// use std::ops::ControlFlow;
/// use std::time::Duration;
///
/// let timers = preset::scheduled("mill", 1)?;
/// let mut left = 3;
/// let bell = timers.series(Every::rate(Duration::from_millis(1))).start(move || {
///     left -= 1;
///     if left == 0 { ControlFlow::Break("midnight") } else { ControlFlow::Continue(()) }
/// })?;
/// assert_eq!(bell.join()?, "midnight");
/// timers.close()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[must_use = "a description does nothing until the series is started"]
pub struct SeriesBuilder<'a> {
    engine: &'a Arc<ScheduleEngine>,
    spec: TaskSpec,
    name: Option<Cow<'static, str>>,
    every: Every,
    initial: Option<Duration>,
    overlap: Overlap,
    catchup: Option<Catchup>,
    on_failure: OnFailure,
}

impl<'a> SeriesBuilder<'a> {
    #[track_caller]
    pub(super) fn new(engine: &'a Arc<ScheduleEngine>, every: Every) -> Self {
        SeriesBuilder {
            engine,
            spec: TaskSpec::new(),
            name: None,
            every,
            initial: None,
            overlap: Overlap::default(),
            catchup: None,
            on_failure: OnFailure::default(),
        }
    }

    /// The name of its runs, in metrics, events and lists. Default: where it was made.
    ///
    /// ```
    /// use millpond::executor::Lifecycle;
    /// use millpond::preset;
    /// use millpond::schedule::Every;
    /// use std::ops::ControlFlow;
    /// use std::time::Duration;
    ///
    /// let timers = preset::scheduled("mill", 1)?;
    /// let every = Every::delay(Duration::from_secs(3600));
    /// let bell = timers.series(every).name("bell").start(|| ())?;
    /// assert_eq!(bell.name(), Some("bell"));
    /// bell.cancel();
    /// timers.close()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn name(mut self, name: impl Into<Cow<'static, str>>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// When the first run is due, from now. Default: one period, or one delay, from now. The first time of a
    /// calendar is the first after this, by default after now.
    ///
    /// ```
    /// use millpond::executor::Lifecycle;
    /// use millpond::preset;
    /// use millpond::schedule::Every;
    /// use std::ops::ControlFlow;
    /// use std::time::Duration;
    ///
    /// let timers = preset::scheduled("mill", 1)?;
    /// // At once, and not in an hour.
    /// let every = Every::rate(Duration::from_secs(3600));
    /// let bell = timers.series(every).first_after(Duration::ZERO).start(|| ControlFlow::<_>::Break(7))?;
    /// assert_eq!(bell.join()?, 7);
    /// timers.close()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn first_after(mut self, initial: Duration) -> Self {
        self.initial = Some(initial);
        self
    }

    /// What becomes of a run that is due while one still runs. Default: [`Overlap::Queue`]. With a fixed
    /// delay that cannot happen.
    ///
    /// ```
    /// use millpond::executor::Lifecycle;
    /// use millpond::preset;
    /// use millpond::schedule::{Every, Overlap};
    /// use std::ops::ControlFlow;
    /// use std::time::Duration;
    ///
    /// let timers = preset::scheduled("mill", 1)?;
    /// let series = timers.series(Every::rate(Duration::from_millis(1))).overlap(Overlap::Concurrent);
    /// let refused = series.start(|| ()).unwrap_err();
    /// assert!(refused.to_string().contains("start_shared"), "runs that overlap share the closure");
    /// timers.close()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn overlap(mut self, overlap: Overlap) -> Self {
        self.overlap = overlap;
        self
    }

    /// What becomes of due times that were missed. Default: [`Catchup::All`]; by the calendar,
    /// [`Catchup::Skip`].
    ///
    /// ```
    /// use millpond::executor::Lifecycle;
    /// use millpond::preset;
    /// use millpond::schedule::{Catchup, Every};
    /// use std::ops::ControlFlow;
    /// use std::time::Duration;
    ///
    /// let timers = preset::scheduled("mill", 1)?;
    /// // Runs that were missed are not made up for.
    /// let series = timers.series(Every::rate(Duration::from_millis(1))).catchup(Catchup::Skip);
    /// assert_eq!(series.start(|| ControlFlow::<_>::Break(7))?.join()?, 7);
    /// timers.close()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn catchup(mut self, catchup: Catchup) -> Self {
        self.catchup = Some(catchup);
        self
    }

    /// What becomes of the series when a run fails. Default: [`OnFailure::Stop`].
    ///
    /// ```
    /// use millpond::executor::Lifecycle;
    /// use millpond::preset;
    /// use millpond::schedule::{Every, OnFailure};
    /// use std::ops::ControlFlow;
    /// use std::time::Duration;
    ///
    /// let timers = preset::scheduled("mill", 1)?;
    /// let mut tries = 0;
    /// let series = timers.series(Every::delay(Duration::from_millis(1))).on_failure(OnFailure::Continue);
    /// let bell = series.start(move || {
    ///     tries += 1;
    ///     match tries {
    ///         1 => Err("the rope is wet"),
    ///         _ => Ok(ControlFlow::<_>::Break(tries)),
    ///     }
    /// })?;
    /// assert_eq!(bell.join()?, 2);
    /// timers.close()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn on_failure(mut self, on_failure: OnFailure) -> Self {
        self.on_failure = on_failure;
        self
    }

    /// Starts it. The closure is called by one thread at a time.
    ///
    /// # Errors
    ///
    /// The closure, if the pool is shut down or full, the description makes no sense, or runs may overlap:
    /// then it must be [shared](SeriesBuilder::start_shared).
    ///
    /// ```
    /// use millpond::executor::Lifecycle;
    /// use millpond::preset;
    /// use millpond::schedule::Every;
    /// use std::ops::ControlFlow;
    /// use std::time::Duration;
    ///
    /// let timers = preset::scheduled("mill", 1)?;
    /// let bell = timers.series(Every::rate(Duration::from_millis(1))).start(|| ControlFlow::<_>::Break("ding"))?;
    /// assert_eq!(bell.join()?, "ding");
    ///
    /// let senseless = timers.series(Every::rate(Duration::ZERO)).start(|| ());
    /// assert!(senseless.is_err());
    /// timers.close()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn start<F, R>(self, f: F) -> Result<Scheduled<R::End>, Rejected<F>>
    where
        F: FnMut() -> R + Send + 'static,
        R: RunReturn,
    {
        if self.overlap == Overlap::Concurrent && self.every.may_overlap() {
            let text = "runs that overlap call the closure in several threads at once: start the \
                        series with start_shared, or choose Overlap::Skip or Overlap::Queue";
            return Err(self
                .engine
                .not_accepted(f, RejectReason::Invalid(text.into())));
        }
        self.start_with(f, |mut f, aside| {
            Body::Exclusive(Box::new(move || put_aside(&aside, f())))
        })
    }

    /// Starts it with a closure that several threads may call at once.
    ///
    /// # Errors
    ///
    /// The closure, if the pool is shut down or full, or the description makes no sense.
    ///
    /// ```
    /// use millpond::preset;
    /// use millpond::schedule::{Every, Overlap};
    /// use std::time::Duration;
    ///
    /// let timers = preset::scheduled("mill", 4)?;
    /// let probe = timers
    ///     .series(Every::rate(Duration::from_millis(1)))
    ///     .overlap(Overlap::Concurrent)
    ///     .start_shared(|| println!("knock"))?;
    /// # probe.cancel();
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn start_shared<F, R>(self, f: F) -> Result<Scheduled<R::End>, Rejected<F>>
    where
        F: Fn() -> R + Send + Sync + 'static,
        R: RunReturn,
    {
        self.start_with(f, |f, aside| {
            Body::Shared(Arc::new(move || put_aside(&aside, f())))
        })
    }

    fn start_with<F, T: Send + 'static>(
        self,
        f: F,
        body: impl FnOnce(F, Aside<T>) -> Body,
    ) -> Result<Scheduled<T>, Rejected<F>> {
        let engine = self.engine;
        if engine.is_forked() {
            return Err(engine.not_accepted(f, RejectReason::Forked));
        }
        if let Some(problem) = self.every.problem() {
            return Err(engine.not_accepted(f, RejectReason::Invalid(problem.into())));
        }
        let mut spec = self.spec.without_inherited_deadline();
        spec = spec.clock_by_default(engine.clock.clone());
        let name = self.name.as_deref().map(str::to_owned);
        if let Some(name) = self.name {
            spec = spec.name(name);
        }
        let (now, queued) = (engine.now(), engine.dispatch_queue.len());
        let first = self.every.first(self.initial, now);
        let aside = Arc::new(Mutex::new(None));
        let (done, handle) = end_of(&spec, Arc::clone(&aside));
        let mut state = engine.state();
        // ALARM-2: also if its first run is due at once, for the second is not.
        if !state.alarm.has_hold() && first != Next::Never {
            drop(state);
            state = match engine.hold_threads(queued) {
                Ok(state) => state,
                Err(reason) => return Err(engine.not_accepted(f, reason)),
            };
        }
        if let Some(reason) = state.reject_reason(queued) {
            drop(state);
            return Err(engine.not_accepted(f, reason));
        }
        let guard = state.guards.issue(engine);
        let series = Series::new(
            engine,
            guard,
            series::Parts {
                name,
                catchup: self.catchup.unwrap_or(self.every.default_catchup()),
                every: self.every,
                overlap: self.overlap,
                on_failure: self.on_failure,
                spec,
                body: body(f, aside),
                done,
                first,
                now,
            },
        );
        let must_dispatch = series.wait_for(&mut state, first, now);
        drop(state);
        if must_dispatch {
            engine.dispatch_due();
        }
        Ok(Scheduled::series(handle, series))
    }
}

impl fmt::Debug for SeriesBuilder<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SeriesBuilder")
            .field("name", &self.name)
            .field("every", &self.every)
            .field("overlap", &self.overlap)
            .field("catchup", &self.catchup)
            .field("on_failure", &self.on_failure)
            .finish_non_exhaustive()
    }
}

/// The value that a series ends with, until it has ended.
type Aside<T> = Arc<Mutex<Option<SeriesEnd<T>>>>;

enum SeriesEnd<T> {
    Value(T),
    Failed(super::RunError),
    Panicked(crate::task::Panic),
}

fn put_aside<R: RunReturn>(aside: &Mutex<Option<SeriesEnd<R::End>>>, returned: R) -> RunStatus<()> {
    match returned.status() {
        RunStatus::Continue => RunStatus::Continue,
        RunStatus::Failed(error) => RunStatus::Failed(error),
        RunStatus::End(value) => {
            let former = aside.lock().replace(SeriesEnd::Value(value));
            drop(former);
            RunStatus::End(())
        }
    }
}

/// The end of a series: a task that returns the value that was put aside, and its handle.
fn end_of<T: Send + 'static>(spec: &TaskSpec, aside: Aside<T>) -> (Done, TaskHandle<Ending<T>>) {
    let outcome = Arc::clone(&aside);
    let (task, handle) = spec.clone().build(move || {
        let ended = outcome.lock().take();
        match ended {
            Some(SeriesEnd::Value(value)) => Ending::Value { value, late: 0 },
            Some(SeriesEnd::Failed(error)) => Ending::Failed(error),
            Some(SeriesEnd::Panicked(panic)) => panic::resume_unwind(panic.into_payload()),
            None => Ending::NotRun,
        }
    });
    let done = Box::new(move |finish| {
        let ended = match finish {
            Finish::Value => None,
            Finish::Failed(error) => Some(SeriesEnd::Failed(error)),
            Finish::Panicked(panic) => Some(SeriesEnd::Panicked(panic)),
            Finish::Cancelled(reason) => {
                task.cancel(reason);
                return;
            }
        };
        if let Some(ended) = ended {
            let former = aside.lock().replace(ended);
            drop(former);
        }
        let _ = task.run();
    });
    (done, handle)
}
