//! The operations of `ops`, on the default executor and on a given one.

use super::DefaultExecutor;
use super::completable::Completable;
use super::error::{CompletionError, Outcome};
use super::ops::{always, done, observe, on_failure, on_value};
use super::stage::Next;
use crate::executor::Executor;
use std::panic::Location;

impl<T, E> Completable<T, E>
where
    T: Send + 'static,
    E: Send + Sync + 'static,
{
    /// As [`map`](Completable::map), but the closure runs on the [default executor](DefaultExecutor).
    ///
    /// ```
    /// use millpond::future::Completable;
    ///
    /// let bread = Completable::<_, ()>::completed(7).map_async(|sacks| sacks * 40);
    /// assert_eq!(bread.join().unwrap(), 280);
    /// ```
    #[doc(alias = "thenApplyAsync")]
    #[doc(alias = "thenAcceptAsync")]
    #[doc(alias = "thenRunAsync")]
    #[track_caller]
    pub fn map_async<U, F>(self, f: F) -> Completable<U, E>
    where
        U: Send + 'static,
        F: FnOnce(T) -> U + Send + 'static,
    {
        self.stage_on(
            DefaultExecutor,
            Location::caller(),
            Outcome::is_ok,
            on_value(|value, _| Next::Done(Ok(f(value)))),
        )
    }

    /// As [`map`](Completable::map), but the closure runs on this executor. If that rejects it the stage fails as
    /// rejected.
    ///
    /// ```
    /// use millpond::future::Completable;
    ///
    /// let mill = millpond::preset::single("mill").build()?;
    /// let bread = Completable::<_, ()>::completed(7).map_on(&mill, |sacks| sacks * 40);
    /// assert_eq!(bread.join().unwrap(), 280);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[track_caller]
    pub fn map_on<U, F, X>(self, executor: &X, f: F) -> Completable<U, E>
    where
        U: Send + 'static,
        F: FnOnce(T) -> U + Send + 'static,
        X: Executor + Clone + 'static,
    {
        self.stage_on(
            executor.clone(),
            Location::caller(),
            Outcome::is_ok,
            on_value(|value, _| Next::Done(Ok(f(value)))),
        )
    }

    /// As [`try_map`](Completable::try_map), but the closure runs on the [default executor](DefaultExecutor).
    ///
    /// ```
    /// use millpond::future::Completable;
    ///
    /// let bread = Completable::completed("42").try_map_async(|text| text.parse::<u32>());
    /// assert_eq!(bread.join().unwrap(), 42);
    /// ```
    #[doc(alias = "thenApplyAsync")]
    #[track_caller]
    pub fn try_map_async<U, F>(self, f: F) -> Completable<U, E>
    where
        U: Send + 'static,
        F: FnOnce(T) -> Result<U, E> + Send + 'static,
    {
        self.stage_on(
            DefaultExecutor,
            Location::caller(),
            Outcome::is_ok,
            on_value(|value, meta| done(meta, f(value))),
        )
    }

    /// As [`try_map`](Completable::try_map), but the closure runs on this executor. If that rejects it the stage fails as
    /// rejected.
    ///
    /// ```
    /// use millpond::future::Completable;
    ///
    /// let mill = millpond::preset::single("mill").build()?;
    /// let bread = Completable::completed("42").try_map_on(&mill, |text| text.parse::<u32>());
    /// assert_eq!(bread.join().unwrap(), 42);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[track_caller]
    pub fn try_map_on<U, F, X>(self, executor: &X, f: F) -> Completable<U, E>
    where
        U: Send + 'static,
        F: FnOnce(T) -> Result<U, E> + Send + 'static,
        X: Executor + Clone + 'static,
    {
        self.stage_on(
            executor.clone(),
            Location::caller(),
            Outcome::is_ok,
            on_value(|value, meta| done(meta, f(value))),
        )
    }

    /// As [`and_then`](Completable::and_then), but the closure runs on the [default executor](DefaultExecutor).
    ///
    /// ```
    /// use millpond::future::Completable;
    ///
    /// let bread = Completable::<_, ()>::completed(7).and_then_async(|sacks| Completable::completed(sacks * 40));
    /// assert_eq!(bread.join().unwrap(), 280);
    /// ```
    #[doc(alias = "thenComposeAsync")]
    #[track_caller]
    pub fn and_then_async<U, F>(self, f: F) -> Completable<U, E>
    where
        U: Send + 'static,
        F: FnOnce(T) -> Completable<U, E> + Send + 'static,
    {
        self.stage_on(
            DefaultExecutor,
            Location::caller(),
            Outcome::is_ok,
            on_value(|value, _| Next::Wait(f(value))),
        )
    }

    /// As [`and_then`](Completable::and_then), but the closure runs on this executor. If that rejects it the stage fails
    /// as rejected.
    ///
    /// ```
    /// use millpond::future::Completable;
    ///
    /// let mill = millpond::preset::single("mill").build()?;
    /// let bread = Completable::<_, ()>::completed(7).and_then_on(&mill, |sacks| Completable::completed(sacks * 40));
    /// assert_eq!(bread.join().unwrap(), 280);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[track_caller]
    pub fn and_then_on<U, F, X>(self, executor: &X, f: F) -> Completable<U, E>
    where
        U: Send + 'static,
        F: FnOnce(T) -> Completable<U, E> + Send + 'static,
        X: Executor + Clone + 'static,
    {
        self.stage_on(
            executor.clone(),
            Location::caller(),
            Outcome::is_ok,
            on_value(|value, _| Next::Wait(f(value))),
        )
    }

    /// As [`recover`](Completable::recover), but the closure runs on the [default executor](DefaultExecutor).
    ///
    /// ```
    /// use millpond::future::Completable;
    ///
    /// let bread = Completable::failed("no wind").recover_async(|_| 0);
    /// assert_eq!(bread.join().unwrap(), 0);
    /// ```
    #[doc(alias = "exceptionallyAsync")]
    #[track_caller]
    pub fn recover_async<F>(self, f: F) -> Self
    where
        F: FnOnce(CompletionError<E>) -> T + Send + 'static,
    {
        self.stage_on(
            DefaultExecutor,
            Location::caller(),
            Outcome::is_err,
            on_failure(|failure| Next::Done(Ok(f(failure)))),
        )
    }

    /// As [`recover`](Completable::recover), but the closure runs on this executor. If that rejects it the stage fails as
    /// rejected.
    ///
    /// ```
    /// use millpond::future::Completable;
    ///
    /// let mill = millpond::preset::single("mill").build()?;
    /// let bread = Completable::failed("no wind").recover_on(&mill, |_| 0);
    /// assert_eq!(bread.join().unwrap(), 0);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[track_caller]
    pub fn recover_on<F, X>(self, executor: &X, f: F) -> Self
    where
        F: FnOnce(CompletionError<E>) -> T + Send + 'static,
        X: Executor + Clone + 'static,
    {
        self.stage_on(
            executor.clone(),
            Location::caller(),
            Outcome::is_err,
            on_failure(|failure| Next::Done(Ok(f(failure)))),
        )
    }

    /// As [`or_else`](Completable::or_else), but the closure runs on the [default executor](DefaultExecutor).
    ///
    /// ```
    /// use millpond::future::Completable;
    ///
    /// let bread = Completable::failed("no wind").or_else_async(|_| Completable::completed(7));
    /// assert_eq!(bread.join().unwrap(), 7);
    /// ```
    #[doc(alias = "exceptionallyComposeAsync")]
    #[track_caller]
    pub fn or_else_async<F>(self, f: F) -> Self
    where
        F: FnOnce(CompletionError<E>) -> Completable<T, E> + Send + 'static,
    {
        self.stage_on(
            DefaultExecutor,
            Location::caller(),
            Outcome::is_err,
            on_failure(|failure| Next::Wait(f(failure))),
        )
    }

    /// As [`or_else`](Completable::or_else), but the closure runs on this executor. If that rejects it the stage fails as
    /// rejected.
    ///
    /// ```
    /// use millpond::future::Completable;
    ///
    /// let mill = millpond::preset::single("mill").build()?;
    /// let bread = Completable::failed("no wind").or_else_on(&mill, |_| Completable::completed(7));
    /// assert_eq!(bread.join().unwrap(), 7);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[track_caller]
    pub fn or_else_on<F, X>(self, executor: &X, f: F) -> Self
    where
        F: FnOnce(CompletionError<E>) -> Completable<T, E> + Send + 'static,
        X: Executor + Clone + 'static,
    {
        self.stage_on(
            executor.clone(),
            Location::caller(),
            Outcome::is_err,
            on_failure(|failure| Next::Wait(f(failure))),
        )
    }

    /// As [`handle`](Completable::handle), but the closure runs on the [default executor](DefaultExecutor).
    ///
    /// ```
    /// use millpond::future::Completable;
    ///
    /// let bread = Completable::<u32, _>::failed("no wind").handle_async(|outcome| outcome.is_ok());
    /// assert!(!bread.join().unwrap());
    /// ```
    #[doc(alias = "handleAsync")]
    #[track_caller]
    pub fn handle_async<U, F>(self, f: F) -> Completable<U, E>
    where
        U: Send + 'static,
        F: FnOnce(Result<T, CompletionError<E>>) -> U + Send + 'static,
    {
        self.stage_on(DefaultExecutor, Location::caller(), always, |outcome, _| {
            Next::Done(Ok(f(outcome)))
        })
    }

    /// As [`handle`](Completable::handle), but the closure runs on this executor. If that rejects it the stage fails as
    /// rejected.
    ///
    /// ```
    /// use millpond::future::Completable;
    ///
    /// let mill = millpond::preset::single("mill").build()?;
    /// let bread = Completable::<u32, _>::failed("no wind").handle_on(&mill, |outcome| outcome.is_ok());
    /// assert!(!bread.join().unwrap());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[track_caller]
    pub fn handle_on<U, F, X>(self, executor: &X, f: F) -> Completable<U, E>
    where
        U: Send + 'static,
        F: FnOnce(Result<T, CompletionError<E>>) -> U + Send + 'static,
        X: Executor + Clone + 'static,
    {
        self.stage_on(
            executor.clone(),
            Location::caller(),
            always,
            |outcome, _| Next::Done(Ok(f(outcome))),
        )
    }

    /// As [`try_handle`](Completable::try_handle), but the closure runs on the [default executor](DefaultExecutor).
    ///
    /// ```
    /// use millpond::future::Completable;
    ///
    /// let bread = Completable::<u32, _>::failed("no wind").try_handle_async(|outcome| outcome.map_err(|failure| failure.to_string()));
    /// assert!(bread.join().unwrap_err().error().unwrap().starts_with("no wind"));
    /// ```
    #[doc(alias = "handleAsync")]
    #[track_caller]
    pub fn try_handle_async<U, E2, F>(self, f: F) -> Completable<U, E2>
    where
        U: Send + 'static,
        E2: Send + Sync + 'static,
        F: FnOnce(Result<T, CompletionError<E>>) -> Result<U, E2> + Send + 'static,
    {
        self.stage_on(
            DefaultExecutor,
            Location::caller(),
            always,
            |outcome, meta| done(meta, f(outcome)),
        )
    }

    /// As [`try_handle`](Completable::try_handle), but the closure runs on this executor. If that rejects it the stage
    /// fails as rejected.
    ///
    /// ```
    /// use millpond::future::Completable;
    ///
    /// let mill = millpond::preset::single("mill").build()?;
    /// let bread = Completable::<u32, _>::failed("no wind").try_handle_on(&mill, |outcome| outcome.map_err(|failure| failure.to_string()));
    /// assert!(bread.join().unwrap_err().error().unwrap().starts_with("no wind"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[track_caller]
    pub fn try_handle_on<U, E2, F, X>(self, executor: &X, f: F) -> Completable<U, E2>
    where
        U: Send + 'static,
        E2: Send + Sync + 'static,
        F: FnOnce(Result<T, CompletionError<E>>) -> Result<U, E2> + Send + 'static,
        X: Executor + Clone + 'static,
    {
        self.stage_on(
            executor.clone(),
            Location::caller(),
            always,
            |outcome, meta| done(meta, f(outcome)),
        )
    }

    /// As [`when_complete`](Completable::when_complete), but the closure runs on the [default executor](DefaultExecutor).
    ///
    /// ```
    /// use millpond::future::Completable;
    ///
    /// let bread = Completable::<_, ()>::completed(7).when_complete_async(|outcome| assert!(outcome.is_ok()));
    /// assert_eq!(bread.join().unwrap(), 7);
    /// ```
    #[doc(alias = "whenCompleteAsync")]
    #[track_caller]
    pub fn when_complete_async<F>(self, f: F) -> Self
    where
        F: FnOnce(Result<&T, &CompletionError<E>>) + Send + 'static,
    {
        self.stage_on(DefaultExecutor, Location::caller(), always, observe(f))
    }

    /// As [`when_complete`](Completable::when_complete), but the closure runs on this executor. If that rejects it the
    /// stage fails as rejected.
    ///
    /// ```
    /// use millpond::future::Completable;
    ///
    /// let mill = millpond::preset::single("mill").build()?;
    /// let bread = Completable::<_, ()>::completed(7).when_complete_on(&mill, |outcome| assert!(outcome.is_ok()));
    /// assert_eq!(bread.join().unwrap(), 7);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[track_caller]
    pub fn when_complete_on<F, X>(self, executor: &X, f: F) -> Self
    where
        F: FnOnce(Result<&T, &CompletionError<E>>) + Send + 'static,
        X: Executor + Clone + 'static,
    {
        self.stage_on(executor.clone(), Location::caller(), always, observe(f))
    }
}
