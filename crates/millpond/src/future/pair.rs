//! Two completables: both, or the first.

use super::completable::Completable;
use super::group::{all_of, any_of};
use crate::executor::Executor;

impl<T, E> Completable<T, E>
where
    T: Send + 'static,
    E: Send + Sync + 'static,
{
    /// Ends with the one stage that is made from it.
    fn inner(self) -> Self {
        self.meta().set_inner();
        self
    }

    /// Both values; complete when both are. If one fails it fails likewise, but not before the other is complete.
    ///
    /// ```
    /// use millpond::future::Completable;
    ///
    /// let sacks = Completable::<_, ()>::completed(7);
    /// assert_eq!(sacks.zip(Completable::completed("rye")).join().unwrap(), (7, "rye"));
    /// ```
    #[doc(alias = "thenCombine")]
    #[doc(alias = "thenAcceptBoth")]
    #[doc(alias = "runAfterBoth")]
    #[track_caller]
    pub fn zip<U>(self, other: Completable<U, E>) -> Completable<(T, U), E>
    where
        U: Send + 'static,
    {
        all_of((self, other))
    }

    /// What the closure makes of both values; it is called when both are complete. If one fails it fails likewise, but not
    /// before the other is complete, and the closure is dropped.
    ///
    /// ```
    /// use millpond::future::Completable;
    ///
    /// let (width, height) = (Completable::<_, ()>::completed(6), Completable::completed(7));
    /// assert_eq!(width.zip_with(height, |width, height| width * height).join().unwrap(), 42);
    /// ```
    #[doc(alias = "thenCombine")]
    #[doc(alias = "thenAcceptBoth")]
    #[doc(alias = "runAfterBoth")]
    #[track_caller]
    pub fn zip_with<U, V, F>(self, other: Completable<U, E>, f: F) -> Completable<V, E>
    where
        U: Send + 'static,
        V: Send + 'static,
        F: FnOnce(T, U) -> V + Send + 'static,
    {
        self.zip(other).inner().map(|(own, other)| f(own, other))
    }

    /// As [`zip_with`](Completable::zip_with), but the closure runs on the [default executor](super::DefaultExecutor).
    #[doc(alias = "thenCombineAsync")]
    #[doc(alias = "thenAcceptBothAsync")]
    #[doc(alias = "runAfterBothAsync")]
    #[track_caller]
    pub fn zip_with_async<U, V, F>(self, other: Completable<U, E>, f: F) -> Completable<V, E>
    where
        U: Send + 'static,
        V: Send + 'static,
        F: FnOnce(T, U) -> V + Send + 'static,
    {
        self.zip(other)
            .inner()
            .map_async(|(own, other)| f(own, other))
    }

    /// As [`zip_with`](Completable::zip_with), but the closure runs on this executor.
    #[track_caller]
    pub fn zip_with_on<U, V, F, X>(
        self,
        executor: &X,
        other: Completable<U, E>,
        f: F,
    ) -> Completable<V, E>
    where
        U: Send + 'static,
        V: Send + 'static,
        F: FnOnce(T, U) -> V + Send + 'static,
        X: Executor + Clone + 'static,
    {
        self.zip(other)
            .inner()
            .map_on(executor, |(own, other)| f(own, other))
    }

    /// The outcome of the one that is complete first, be it a value or a failure.
    ///
    /// ```
    /// use millpond::future;
    ///
    /// let ((_slow, rye), (fast, wheat)) = (future::promise::<_, ()>(), future::promise());
    /// let first = rye.race(wheat);
    /// fast.complete("wheat").unwrap();
    /// assert_eq!(first.join().unwrap(), "wheat");
    /// ```
    #[doc(alias = "applyToEither")]
    #[doc(alias = "acceptEither")]
    #[doc(alias = "runAfterEither")]
    #[track_caller]
    pub fn race(self, other: Self) -> Self {
        any_of([self, other])
    }

    /// What the closure makes of the value of the one that is complete first. If that one has failed, it fails likewise.
    ///
    /// ```
    /// use millpond::future::{self, Completable};
    ///
    /// let (_slow, rye) = future::promise::<&str, ()>();
    /// let first = rye.race_with(Completable::completed("wheat"), str::len);
    /// assert_eq!(first.join().unwrap(), 5);
    /// ```
    #[doc(alias = "applyToEither")]
    #[track_caller]
    pub fn race_with<U, F>(self, other: Self, f: F) -> Completable<U, E>
    where
        U: Send + 'static,
        F: FnOnce(T) -> U + Send + 'static,
    {
        self.race(other).inner().map(f)
    }

    /// As [`race_with`](Completable::race_with), but the closure runs on the [default executor](super::DefaultExecutor).
    #[doc(alias = "applyToEitherAsync")]
    #[track_caller]
    pub fn race_with_async<U, F>(self, other: Self, f: F) -> Completable<U, E>
    where
        U: Send + 'static,
        F: FnOnce(T) -> U + Send + 'static,
    {
        self.race(other).inner().map_async(f)
    }

    /// As [`race_with`](Completable::race_with), but the closure runs on this executor.
    #[track_caller]
    pub fn race_with_on<U, F, X>(self, executor: &X, other: Self, f: F) -> Completable<U, E>
    where
        U: Send + 'static,
        F: FnOnce(T) -> U + Send + 'static,
        X: Executor + Clone + 'static,
    {
        self.race(other).inner().map_on(executor, f)
    }
}
