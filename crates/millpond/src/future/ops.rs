//! Operations on one completable that run in place: on the thread that completes it, or in the caller if it is complete.

use super::completable::{Completable, discard};
use super::error::{Cause, CompletionError, Outcome};
use super::meta::StageMeta;
use super::stage::{Next, panicked, relayed};
use crate::task::Panic;
use millpond_raw::user_code::{self, Kind};
use std::convert::Infallible;
use std::panic::{AssertUnwindSafe, Location, catch_unwind};
use std::sync::Arc;

pub(super) fn always<T, E>(_: &Outcome<T, E>) -> bool {
    true
}

/// A closure that is wanted for a value. A failure is passed on.
#[inline]
pub(super) fn on_value<T, E, U>(
    f: impl FnOnce(T, &StageMeta) -> Next<U, E> + Send,
) -> impl FnOnce(Outcome<T, E>, &StageMeta) -> Next<U, E> + Send {
    move |outcome, meta| match outcome {
        Ok(value) => f(value, meta),
        Err(failure) => {
            discard(f);
            Next::Done(Err(failure.propagated()))
        }
    }
}

/// A closure that is wanted for a failure. A value is passed on.
#[inline]
pub(super) fn on_failure<T, E>(
    f: impl FnOnce(CompletionError<E>) -> Next<T, E> + Send,
) -> impl FnOnce(Outcome<T, E>, &StageMeta) -> Next<T, E> + Send {
    move |outcome, _| match outcome {
        Ok(value) => {
            discard(f);
            Next::Done(Ok(value))
        }
        Err(failure) => f(failure),
    }
}

#[inline]
pub(super) fn done<T, E>(meta: &StageMeta, result: Result<T, E>) -> Next<T, E> {
    Next::Done(result.map_err(|error| meta.error(Cause::Failed(error))))
}

#[inline]
pub(super) fn observe<T, E>(
    f: impl FnOnce(Result<&T, &CompletionError<E>>) + Send,
) -> impl FnOnce(Outcome<T, E>, &StageMeta) -> Next<T, E> + Send {
    move |outcome, meta| {
        user_code::check(Kind::Closure);
        let called = catch_unwind(AssertUnwindSafe(|| f(outcome.as_ref())));
        Next::Done(match (called, relayed(outcome)) {
            (Ok(()), outcome) => outcome,
            (Err(payload), Err(failure)) => {
                // What came first counts.
                failure.suppress(Panic::new(payload));
                Err(failure)
            }
            (Err(payload), Ok(value)) => {
                discard(value);
                Err(panicked(meta, payload))
            }
        })
    }
}

impl<T, E> Completable<T, E>
where
    T: Send + 'static,
    E: Send + Sync + 'static,
{
    /// Turns the value into another one. A failure is passed on, and the closure dropped.
    ///
    /// ```
    /// use millpond::future::Completable;
    ///
    /// let bread = Completable::<_, ()>::completed(7).map(|sacks| sacks * 40);
    /// assert_eq!(bread.join().unwrap(), 280);
    /// ```
    #[doc(alias = "thenApply")]
    #[doc(alias = "thenAccept")]
    #[doc(alias = "thenRun")]
    #[track_caller]
    #[inline]
    pub fn map<U, F>(self, f: F) -> Completable<U, E>
    where
        U: Send + 'static,
        F: FnOnce(T) -> U + Send + 'static,
    {
        self.stage(
            Location::caller(),
            on_value(|value, _| Next::Done(Ok(f(value)))),
        )
    }

    /// Turns the value into another one, or into an error. A failure is passed on, and the closure dropped.
    ///
    /// ```
    /// use millpond::future::Completable;
    ///
    /// let bread = Completable::completed("42").try_map(|text| text.parse::<u32>());
    /// assert_eq!(bread.join().unwrap(), 42);
    /// ```
    #[doc(alias = "thenApply")]
    #[track_caller]
    #[inline]
    pub fn try_map<U, F>(self, f: F) -> Completable<U, E>
    where
        U: Send + 'static,
        F: FnOnce(T) -> Result<U, E> + Send + 'static,
    {
        self.stage(
            Location::caller(),
            on_value(|value, meta| done(meta, f(value))),
        )
    }

    /// Goes on with another completable, which is made from the value. A failure is passed on, and the closure dropped.
    ///
    /// ```
    /// use millpond::future::Completable;
    ///
    /// let bread = Completable::<_, ()>::completed(7).and_then(|sacks| Completable::completed(sacks * 40));
    /// assert_eq!(bread.join().unwrap(), 280);
    /// ```
    #[doc(alias = "thenCompose")]
    #[doc(alias = "flatMap")]
    #[track_caller]
    #[inline]
    pub fn and_then<U, F>(self, f: F) -> Completable<U, E>
    where
        U: Send + 'static,
        F: FnOnce(T) -> Completable<U, E> + Send + 'static,
    {
        self.stage(
            Location::caller(),
            on_value(|value, _| Next::Wait(f(value))),
        )
    }

    /// Turns a failure of any kind into a value. A value is passed on, and the closure dropped.
    ///
    /// ```
    /// use millpond::future::Completable;
    ///
    /// let bread = Completable::failed("no wind").recover(|_| 0);
    /// assert_eq!(bread.join().unwrap(), 0);
    /// ```
    #[doc(alias = "exceptionally")]
    #[track_caller]
    #[inline]
    pub fn recover<F>(self, f: F) -> Self
    where
        F: FnOnce(CompletionError<E>) -> T + Send + 'static,
    {
        self.stage(
            Location::caller(),
            on_failure(|failure| Next::Done(Ok(f(failure)))),
        )
    }

    /// Goes on with another completable after a failure of any kind. A value is passed on, and the closure dropped.
    ///
    /// ```
    /// use millpond::future::Completable;
    ///
    /// let bread = Completable::failed("no wind").or_else(|_| Completable::completed(7));
    /// assert_eq!(bread.join().unwrap(), 7);
    /// ```
    #[doc(alias = "exceptionallyCompose")]
    #[track_caller]
    #[inline]
    pub fn or_else<F>(self, f: F) -> Self
    where
        F: FnOnce(CompletionError<E>) -> Completable<T, E> + Send + 'static,
    {
        self.stage(
            Location::caller(),
            on_failure(|failure| Next::Wait(f(failure))),
        )
    }

    /// Turns a value, or a failure of any kind, into a value.
    ///
    /// ```
    /// use millpond::future::Completable;
    ///
    /// let bread = Completable::<u32, _>::failed("no wind").handle(|outcome| outcome.is_ok());
    /// assert!(!bread.join().unwrap());
    /// ```
    #[track_caller]
    #[inline]
    pub fn handle<U, F>(self, f: F) -> Completable<U, E>
    where
        U: Send + 'static,
        F: FnOnce(Result<T, CompletionError<E>>) -> U + Send + 'static,
    {
        self.stage(Location::caller(), |outcome, _| Next::Done(Ok(f(outcome))))
    }

    /// Turns a value, or a failure of any kind, into a value or an error of another type.
    ///
    /// ```
    /// use millpond::future::Completable;
    ///
    /// let bread = Completable::<u32, _>::failed("no wind").try_handle(|outcome| outcome.map_err(|failure| failure.to_string()));
    /// assert!(bread.join().unwrap_err().error().unwrap().starts_with("no wind"));
    /// ```
    #[doc(alias = "handle")]
    #[track_caller]
    #[inline]
    pub fn try_handle<U, E2, F>(self, f: F) -> Completable<U, E2>
    where
        U: Send + 'static,
        E2: Send + Sync + 'static,
        F: FnOnce(Result<T, CompletionError<E>>) -> Result<U, E2> + Send + 'static,
    {
        self.stage(Location::caller(), |outcome, meta| done(meta, f(outcome)))
    }

    /// Calls the closure with the value or the failure, and passes that on afterwards. If the closure panics after a
    /// failure, the failure counts, and the panic is [kept with it](CompletionError::suppressed).
    ///
    /// ```
    /// use millpond::future::Completable;
    ///
    /// let bread = Completable::<_, ()>::completed(7).when_complete(|outcome| assert!(outcome.is_ok()));
    /// assert_eq!(bread.join().unwrap(), 7);
    /// ```
    #[doc(alias = "whenComplete")]
    #[track_caller]
    #[inline]
    pub fn when_complete<F>(self, f: F) -> Self
    where
        F: FnOnce(Result<&T, &CompletionError<E>>) + Send + 'static,
    {
        self.stage(Location::caller(), observe(f))
    }

    /// Looks at the value, and passes it on. A failure is passed on, and the closure dropped.
    ///
    /// ```
    /// use millpond::future::Completable;
    ///
    /// let flour = Completable::<_, ()>::completed(7).inspect(|sacks| assert_eq!(*sacks, 7));
    /// assert_eq!(flour.join().unwrap(), 7);
    /// ```
    #[track_caller]
    pub fn inspect<F>(self, f: F) -> Self
    where
        F: FnOnce(&T) + Send + 'static,
    {
        self.map(|value| {
            f(&value);
            value
        })
    }

    /// Looks at the failure, of whatever kind, and passes it on. A value is passed on, and the closure dropped.
    ///
    /// ```
    /// use millpond::future::Completable;
    ///
    /// let none = Completable::<u32, _>::failed("no wind").inspect_err(|failure| assert!(failure.is_failed()));
    /// assert!(none.is_failed());
    /// ```
    #[track_caller]
    pub fn inspect_err<F>(self, f: F) -> Self
    where
        F: FnOnce(&CompletionError<E>) + Send + 'static,
    {
        self.when_complete(|outcome| {
            if let Err(failure) = outcome {
                f(failure);
            }
        })
    }

    /// Turns an error into one of another type. Failures of other kinds, such as panics, stay what they are, and so does
    /// where a failure arose.
    ///
    /// ```
    /// use millpond::future::Completable;
    ///
    /// let none = Completable::<u32, _>::failed("no wind").map_err(|reason| reason.len());
    /// assert_eq!(none.join().unwrap_err().error(), Some(&7));
    /// ```
    #[track_caller]
    pub fn map_err<E2, F>(self, f: F) -> Completable<T, E2>
    where
        E2: Send + Sync + 'static,
        F: FnOnce(&E) -> E2 + Send + 'static,
    {
        self.stage(Location::caller(), |outcome, _| {
            Next::Done(outcome.map_err(|failure| failure.propagated().with_error(f)))
        })
    }

    /// Turns the type of errors into one that it converts into.
    ///
    /// ```
    /// use millpond::future::Completable;
    ///
    /// let none = Completable::<u32, _>::failed("no wind").err_into::<String>();
    /// assert_eq!(none.join().unwrap_err().error().unwrap(), "no wind");
    /// ```
    #[track_caller]
    pub fn err_into<E2>(self) -> Completable<T, E2>
    where
        E: Clone + Into<E2>,
        E2: Send + Sync + 'static,
    {
        self.map_err(|error| error.clone().into())
    }

    /// The value behind an `Arc`, so that there can be any number of readers, whatever it is.
    ///
    /// ```
    /// use millpond::future::Completable;
    /// use std::fs::File;
    ///
    /// let file = Completable::completed(File::open("/dev/null").unwrap());
    /// let file = Completable::<_, ()>::into_shared(file);
    /// let readers = [file.clone(), file];
    /// assert!(readers.into_iter().all(|reader| reader.join().is_ok()));
    /// ```
    #[track_caller]
    pub fn into_shared(self) -> Completable<Arc<T>, E>
    where
        T: Sync,
    {
        self.map(Arc::new)
    }

    /// A stage with the same outcome. What is done to it, by hand, by a timeout or by cancelling it, is not done to this one.
    ///
    /// ```
    /// use millpond::future;
    ///
    /// let (promise, flour) = future::promise::<u32, ()>();
    /// let copy = flour.copy();
    /// assert!(copy.cancel() && !flour.is_complete());
    /// promise.complete(7).unwrap();
    /// assert_eq!(flour.join().unwrap(), 7);
    /// ```
    #[doc(alias = "minimalCompletionStage")]
    #[track_caller]
    pub fn copy(&self) -> Self
    where
        T: Clone + Sync,
    {
        self.clone().map(|value| value)
    }
}

impl<T: Send + 'static> Completable<T> {
    /// One that cannot fail with an error, as one that could: to be combined with those that do.
    ///
    /// ```
    /// use millpond::future::Completable;
    ///
    /// let flour = Completable::supply_async(|| "7").with_error_type();
    /// let sacks = flour.try_map(|text| text.parse::<u32>());
    /// assert_eq!(sacks.join().unwrap(), 7);
    /// ```
    #[track_caller]
    pub fn with_error_type<E>(self) -> Completable<T, E>
    where
        E: Send + Sync + 'static,
    {
        self.map_err(|never: &Infallible| match *never {})
    }
}
