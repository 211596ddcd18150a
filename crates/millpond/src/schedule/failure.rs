//! What a run of a series may return, and what a failure does to the series.

use std::convert::Infallible;
use std::error::Error;
use std::fmt;
use std::ops::ControlFlow;
use std::time::Duration;

/// The error that a failed run returned.
pub type RunError = Box<dyn Error + Send + Sync>;

/// What a run means for its series: [`RunReturn`] makes it of what the closure returned.
///
/// ```
/// use millpond::schedule::{RunReturn, RunStatus};
/// use std::ops::ControlFlow;
///
/// assert!(matches!(().status(), RunStatus::Continue));
/// assert!(matches!(ControlFlow::Break(7).status(), RunStatus::End(7)));
/// assert!(matches!(Err::<(), _>("no water").status(), RunStatus::Failed(_)));
/// ```
#[derive(Debug)]
pub enum RunStatus<T> {
    /// The run succeeded, and the series goes on.
    Continue,
    /// The run succeeded, and the series ends with this value.
    End(T),
    /// The run failed. See [`OnFailure`].
    Failed(RunError),
}

/// What the closure of a series may return.
///
/// | it returns | the series |
/// |---|---|
/// | `()` | goes on for ever |
/// | `ControlFlow<T>` | ends with the value of a `Break` |
/// | `Result<_, E>` of these | the same, and an error is a failure |
///
/// ```
/// use millpond::preset;
/// use millpond::schedule::ScheduledPool;
/// use std::ops::ControlFlow;
/// use std::time::Duration;
///
/// let timers = preset::scheduled("mill", 1)?;
/// let mut sacks = 0;
/// let full = timers.schedule_with_fixed_delay(Duration::ZERO, Duration::from_millis(1), move || {
///     sacks += 1;
///     match sacks {
///         3 => ControlFlow::Break(sacks),
///         _ => ControlFlow::Continue(()),
///     }
/// })?;
/// assert_eq!(full.join()?, 3);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub trait RunReturn {
    /// The value that the series can end with.
    type End: Send + 'static;

    /// What this return value means for the series.
    fn status(self) -> RunStatus<Self::End>;
}

impl RunReturn for () {
    type End = Infallible;

    fn status(self) -> RunStatus<Infallible> {
        RunStatus::Continue
    }
}

impl<T: Send + 'static> RunReturn for ControlFlow<T> {
    type End = T;

    fn status(self) -> RunStatus<T> {
        match self {
            ControlFlow::Continue(()) => RunStatus::Continue,
            ControlFlow::Break(value) => RunStatus::End(value),
        }
    }
}

impl<R: RunReturn, E: Into<RunError>> RunReturn for Result<R, E> {
    type End = R::End;

    fn status(self) -> RunStatus<R::End> {
        match self {
            Ok(run) => run.status(),
            Err(error) => RunStatus::Failed(error.into()),
        }
    }
}

/// What becomes of a series when a run of it panics or returns an error.
///
/// In any case the handle shows it, and the pool reports an
/// [event](super::ScheduleEvent), so no series ends in silence.
///
/// ```
/// use millpond::preset;
/// use millpond::schedule::{Backoff, Every, OnFailure};
/// use std::ops::ControlFlow;
/// use std::time::Duration;
///
/// let timers = preset::scheduled("mill", 1)?;
/// let ms = Duration::from_millis(1);
/// let mut tries = 0;
/// let pump = timers
///     .series(Every::rate(ms))
///     .on_failure(OnFailure::Retry(Backoff::starting_at(ms).tries(5)))
///     .start(move || {
///         tries += 1;
///         match tries {
///             3 => Ok(ControlFlow::Break("water")),
///             _ => Err("dry"),
///         }
///     })?;
/// assert_eq!(pump.join()?, "water");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnFailure {
    /// It ends, and its handle has the failure. What Java does.
    #[default]
    Stop,
    /// It goes on as if nothing had happened.
    Continue,
    /// It is retried, after a pause that grows; after too many retries it ends.
    Retry(Backoff),
}

/// Pauses between tries: each twice as long as the one before.
///
/// ```
/// use millpond::schedule::Backoff;
/// use std::time::Duration;
///
/// let second = Duration::from_secs(1);
/// let pauses = Backoff::starting_at(second).at_most(5 * second).tries(4);
/// let all: Vec<_> = (1..=5).map(|failures| pauses.after(failures)).collect();
/// assert_eq!(all, [Some(second), Some(2 * second), Some(4 * second), Some(5 * second), None]);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Backoff {
    first: Duration,
    most: Duration,
    tries: Option<u32>,
}

impl Backoff {
    /// A first pause of so long, then twice as long, and so on, up to a minute (or `first`, if that is
    /// longer), for ever.
    ///
    /// ```
    /// use millpond::schedule::Backoff;
    /// use std::time::Duration;
    ///
    /// let pauses = Backoff::starting_at(Duration::from_secs(1));
    /// assert_eq!(pauses.after(3), Some(Duration::from_secs(4)));
    /// assert_eq!(pauses.after(1000), Some(Duration::from_secs(60)));
    /// ```
    pub fn starting_at(first: Duration) -> Self {
        Backoff {
            first,
            most: first.max(Duration::from_secs(60)),
            tries: None,
        }
    }

    /// No pause is longer than this.
    ///
    /// ```
    /// use millpond::schedule::Backoff;
    /// use std::time::Duration;
    ///
    /// let pauses = Backoff::starting_at(Duration::from_secs(1)).at_most(Duration::from_secs(3));
    /// assert_eq!(pauses.after(9), Some(Duration::from_secs(3)));
    /// ```
    #[must_use]
    pub fn at_most(mut self, most: Duration) -> Self {
        self.most = most;
        self
    }

    /// So many tries after the first failure, and no more. A run that succeeds starts the count anew.
    ///
    /// ```
    /// use millpond::schedule::Backoff;
    /// use std::time::Duration;
    ///
    /// let pauses = Backoff::starting_at(Duration::from_secs(1)).tries(2);
    /// assert!(pauses.after(2).is_some() && pauses.after(3).is_none());
    /// ```
    #[must_use]
    pub fn tries(mut self, tries: u32) -> Self {
        self.tries = Some(tries);
        self
    }

    /// The pause after so many failures in a row; `None` if it is not tried again.
    ///
    /// ```
    /// use millpond::schedule::Backoff;
    /// use std::time::Duration;
    ///
    /// let pauses = Backoff::starting_at(Duration::from_secs(1));
    /// assert_eq!(pauses.after(1), Some(Duration::from_secs(1)));
    /// assert_eq!(pauses.after(2), Some(Duration::from_secs(2)));
    /// ```
    pub fn after(&self, failures: u32) -> Option<Duration> {
        if self.tries.is_some_and(|tries| failures > tries) {
            return None;
        }
        let doubled = 1_u32.checked_shl(failures.saturating_sub(1));
        let pause = doubled.and_then(|factor| self.first.checked_mul(factor));
        Some(pause.map_or(self.most, |pause| pause.min(self.most)))
    }
}

/// How a run of a series ended: see [`last_outcome`](super::Scheduled::last_outcome).
///
/// ```
/// use millpond::schedule::RunOutcome;
///
/// assert_eq!(RunOutcome::Completed.to_string(), "completed");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RunOutcome {
    /// It succeeded.
    Completed,
    /// It returned an error, with this text.
    Failed(String),
    /// It panicked, with this message.
    Panicked(String),
    /// It did not begin: the executor rejected it, or dropped it.
    Rejected,
}

impl fmt::Display for RunOutcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RunOutcome::Completed => f.write_str("completed"),
            RunOutcome::Failed(error) => write!(f, "failed: {error}"),
            RunOutcome::Panicked(text) => write!(f, "panicked: {text}"),
            RunOutcome::Rejected => f.write_str("was rejected by the executor, or dropped by it"),
        }
    }
}
