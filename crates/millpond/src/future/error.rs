//! Why a completable has no value.

use crate::executor::RejectReason;
use crate::task::{CancelReason, Name, Panic};
use millpond_raw::sync::Mutex;
use std::convert::Infallible;
use std::error::Error;
use std::fmt;
use std::panic::Location;
use std::sync::Arc;

/// What a completable ends with.
pub(super) type Outcome<T, E> = Result<T, CompletionError<E>>;

/// Why a [`Completable`](super::Completable) has no value: the cause, and where it arose.
///
/// A failure that passes along a chain is one, shared by all stages: it is neither wrapped nor copied. Cloning is cheap.
///
/// ```
/// use millpond::future::{Cause, Completable};
///
/// let flour = Completable::<u32, _>::failed("no wind").map(|sacks| sacks * 2);
/// let error = flour.join().unwrap_err();
/// assert!(matches!(error.cause(), Cause::Failed("no wind")));
/// assert!(error.is_propagated()); // it arose further up
/// assert_eq!(error.origin().location().file(), file!());
/// ```
#[doc(alias = "CompletionException")]
#[doc(alias = "ExecutionException")]
pub struct CompletionError<E = Infallible> {
    shared: Arc<Shared<E>>,
    is_propagated: bool,
}

struct Shared<E> {
    cause: Cause<E>,
    origin: Origin,
    suppressed: Mutex<Vec<StagePanic>>,
}

/// What has happened.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Cause<E = Infallible> {
    /// A stage has failed with this error, or a promise was told to.
    Failed(E),
    /// The closure of a stage has panicked.
    Panicked(StagePanic),
    /// It was cancelled.
    Cancelled(CancelReason),
    /// The last promise was dropped without a value.
    #[doc(alias = "BrokenPromise")]
    Abandoned,
    /// Its time was up: [`or_timeout`](super::Completable::or_timeout).
    TimedOut,
    /// The executor of a stage has rejected the task.
    Rejected(Arc<RejectReason>),
    /// The reader did not want to wait any longer: [`join_timeout`](super::Completable::join_timeout). The completable goes
    /// on.
    JoinTimedOut,
    /// The reader, itself a task, was interrupted while it waited. The completable goes on.
    Interrupted,
    /// The reader waits for what waits for it.
    Deadlock(Loop),
}

/// Where a failure arose.
#[derive(Clone)]
pub struct Origin {
    name: Option<Name>,
    location: &'static Location<'static>,
}

impl Origin {
    pub(super) fn new(name: Option<Name>, location: &'static Location<'static>) -> Self {
        Origin { name, location }
    }

    /// The name of the stage, if it has one.
    pub fn name(&self) -> Option<&str> {
        self.name.as_ref().map(Name::as_str)
    }

    /// The source location where the stage was made.
    pub fn location(&self) -> &'static Location<'static> {
        self.location
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => write!(f, "`{name}` (made at {})", self.location),
            None => write!(f, "the stage made at {}", self.location),
        }
    }
}

impl fmt::Debug for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The panic of a stage. Clones are one panic: whoever resumes it first gets the payload, later ones its text.
#[derive(Clone)]
pub struct StagePanic(Arc<SharedPanic>);

struct SharedPanic {
    message: Option<String>,
    payload: Mutex<Option<Panic>>,
}

impl StagePanic {
    pub(super) fn new(panic: Panic) -> Self {
        StagePanic(Arc::new(SharedPanic {
            message: panic.message().map(str::to_owned),
            payload: Mutex::new(Some(panic)),
        }))
    }

    /// The text of the panic, if its payload was one.
    pub fn message(&self) -> Option<&str> {
        self.0.message.as_deref()
    }

    /// The payload, for the first who asks; then a copy of the text.
    pub fn take(&self) -> Panic {
        let payload = self.0.payload.lock().take();
        payload.unwrap_or_else(|| match self.message() {
            Some(text) => Panic::new(Box::new(text.to_owned())),
            None => Panic::new(Box::new(())),
        })
    }
}

impl fmt::Debug for StagePanic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = self.message().unwrap_or("the payload is not text");
        f.debug_tuple("StagePanic").field(&text).finish()
    }
}

/// Completables that wait for each other: each for the next, and the last for the first.
#[derive(Clone, Debug)]
pub struct Loop {
    pub(super) stages: Vec<Origin>,
}

impl Loop {
    /// The stages of the loop.
    pub fn stages(&self) -> &[Origin] {
        &self.stages
    }
}

impl fmt::Display for Loop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some((first, rest)) = self.stages.split_first() else {
            return f.write_str("the reader waits for the stage that it is a part of");
        };
        if rest.is_empty() {
            return write!(f, "{first} waits for itself");
        }
        write!(f, "{first}")?;
        for stage in rest {
            write!(f, " waits for {stage}, which")?;
        }
        write!(f, " waits for {first}")
    }
}

impl<E> CompletionError<E> {
    #[cold]
    pub(super) fn new(cause: Cause<E>, origin: Origin) -> Self {
        CompletionError {
            shared: Arc::new(Shared {
                cause,
                origin,
                suppressed: Mutex::new(Vec::new()),
            }),
            is_propagated: false,
        }
    }

    /// The same failure, in a stage further down.
    pub(super) fn propagated(self) -> Self {
        CompletionError {
            is_propagated: true,
            ..self
        }
    }

    pub(super) fn suppress(&self, panic: Panic) {
        self.shared.suppressed.lock().push(StagePanic::new(panic));
    }

    /// What has happened.
    #[doc(alias = "getCause")]
    pub fn cause(&self) -> &Cause<E> {
        &self.shared.cause
    }

    /// Where it happened first.
    pub fn origin(&self) -> &Origin {
        &self.shared.origin
    }

    /// Whether it arose in a stage further up.
    ///
    /// ```
    /// use millpond::future;
    ///
    /// let (promise, flour) = future::promise::<u32, ()>();
    /// let bread = flour.clone().map(|sacks| sacks * 40);
    /// promise.cancel();
    /// assert!(flour.is_cancelled() && !bread.is_cancelled());
    /// assert!(bread.join().unwrap_err().is_propagated());
    /// ```
    pub fn is_propagated(&self) -> bool {
        self.is_propagated
    }

    /// The error, if a stage has failed with one.
    pub fn error(&self) -> Option<&E> {
        match self.cause() {
            Cause::Failed(error) => Some(error),
            _ => None,
        }
    }

    /// The error by value, if a stage has failed with one and nobody else has this failure.
    ///
    /// # Errors
    ///
    /// This failure.
    pub fn into_error(self) -> Result<E, Self> {
        let Some(_) = self.error() else {
            return Err(self);
        };
        let is_propagated = self.is_propagated;
        match Arc::try_unwrap(self.shared) {
            Ok(shared) => match shared.cause {
                Cause::Failed(error) => Ok(error),
                _ => unreachable!("it was looked at"),
            },
            Err(shared) => Err(CompletionError {
                shared,
                is_propagated,
            }),
        }
    }

    /// Panics that were caught while this failure was passed on: of a callback of
    /// [`when_complete`](super::Completable::when_complete).
    #[doc(alias = "getSuppressed")]
    pub fn suppressed(&self) -> Vec<StagePanic> {
        self.shared.suppressed.lock().clone()
    }

    /// Whether a stage has failed with an error.
    pub fn is_failed(&self) -> bool {
        matches!(self.cause(), Cause::Failed(_))
    }

    /// Whether a stage has panicked.
    pub fn is_panicked(&self) -> bool {
        matches!(self.cause(), Cause::Panicked(_))
    }

    /// Whether something was cancelled.
    pub fn is_cancelled(&self) -> bool {
        matches!(self.cause(), Cause::Cancelled(_))
    }

    /// Whether a last promise was dropped.
    pub fn is_abandoned(&self) -> bool {
        matches!(self.cause(), Cause::Abandoned)
    }

    /// Whether the time of a stage was up.
    pub fn is_timed_out(&self) -> bool {
        matches!(self.cause(), Cause::TimedOut)
    }

    /// Whether an executor has rejected a stage.
    pub fn is_rejected(&self) -> bool {
        matches!(self.cause(), Cause::Rejected(_))
    }

    /// Whether the reader did not want to wait any longer.
    pub fn is_join_timed_out(&self) -> bool {
        matches!(self.cause(), Cause::JoinTimedOut)
    }

    /// Whether the reader was interrupted.
    pub fn is_interrupted(&self) -> bool {
        matches!(self.cause(), Cause::Interrupted)
    }

    /// Whether the reader would have waited for ever.
    pub fn is_deadlock(&self) -> bool {
        matches!(self.cause(), Cause::Deadlock(_))
    }

    /// Resumes the panic of a stage on this thread. Any other failure is returned.
    ///
    /// ```
    /// use millpond::future::Completable;
    /// use std::panic::{AssertUnwindSafe, catch_unwind};
    ///
    /// let flour = Completable::<u32, ()>::completed(7).map(|_| -> u32 { panic!("the dam broke") });
    /// let error = flour.join().unwrap_err();
    /// let payload = catch_unwind(AssertUnwindSafe(|| error.resume())).unwrap_err();
    /// assert_eq!(payload.downcast_ref(), Some(&"the dam broke"));
    /// ```
    #[must_use = "an error that is no panic comes back"]
    pub fn resume(self) -> Self {
        match self.cause() {
            Cause::Panicked(panic) => panic.take().resume(),
            _ => self,
        }
    }

    /// The same failure of another type, if it is none of that type.
    pub(super) fn with_error<E2>(self, map: impl FnOnce(&E) -> E2) -> CompletionError<E2> {
        let cause = match self.cause() {
            Cause::Failed(error) => Cause::Failed(map(error)),
            Cause::Panicked(panic) => Cause::Panicked(panic.clone()),
            Cause::Cancelled(reason) => Cause::Cancelled(*reason),
            Cause::Abandoned => Cause::Abandoned,
            Cause::TimedOut => Cause::TimedOut,
            Cause::Rejected(reason) => Cause::Rejected(Arc::clone(reason)),
            Cause::JoinTimedOut => Cause::JoinTimedOut,
            Cause::Interrupted => Cause::Interrupted,
            Cause::Deadlock(cycle) => Cause::Deadlock(cycle.clone()),
        };
        let mut other = CompletionError::new(cause, self.origin().clone());
        other.is_propagated = self.is_propagated;
        *other.shared.suppressed.lock() = self.suppressed();
        other
    }
}

impl<E> Clone for CompletionError<E> {
    fn clone(&self) -> Self {
        CompletionError {
            shared: Arc::clone(&self.shared),
            is_propagated: self.is_propagated,
        }
    }
}

impl<E: fmt::Debug> fmt::Debug for CompletionError<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CompletionError")
            .field("cause", self.cause())
            .field("origin", self.origin())
            .field("is_propagated", &self.is_propagated)
            .finish()
    }
}

impl<E: fmt::Display> fmt::Display for CompletionError<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let origin = self.origin();
        match self.cause() {
            Cause::Failed(error) => write!(f, "{error} (in {origin})"),
            Cause::Panicked(panic) => match panic.message() {
                Some(text) => write!(f, "{origin} panicked: {text}"),
                None => write!(f, "{origin} panicked with a payload that is no text"),
            },
            Cause::Cancelled(reason) => write!(f, "{origin} was cancelled: {reason}"),
            Cause::Abandoned => write!(
                f,
                "{origin} was abandoned: its last promise was dropped without a value"
            ),
            Cause::TimedOut => write!(f, "{origin} was not complete in time"),
            Cause::Rejected(reason) => write!(f, "{origin} was rejected by its executor: {reason}"),
            Cause::JoinTimedOut => write!(
                f,
                "{origin} was not complete within the timeout of the join"
            ),
            Cause::Interrupted => {
                write!(f, "the caller was interrupted while it waited for {origin}")
            }
            Cause::Deadlock(cycle) => write!(
                f,
                "deadlock: {cycle}. This join would never end: return the completable to be waited for by \
                 `and_then`, or join with a timeout"
            ),
        }
    }
}

impl<E: fmt::Debug + fmt::Display> Error for CompletionError<E> {}
