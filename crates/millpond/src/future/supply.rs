//! Results that tasks compute.

use super::DefaultExecutor;
use super::completable::Completable;
use super::error::Cause;
use super::meta::StageMeta;
use super::promise::Promise;
use super::stage::{self, Next};
use crate::executor::{Executor, Rejected};
use crate::task::TaskSpec;
use std::panic::Location;

impl<T: Send + 'static> Completable<T> {
    /// Calls the closure on the [default executor](DefaultExecutor).
    ///
    /// ```
    /// use millpond::future::Completable;
    ///
    /// assert_eq!(Completable::supply_async(|| 6 * 7).join()?, 42);
    /// # Ok::<(), millpond::future::CompletionError>(())
    /// ```
    #[doc(alias = "supplyAsync")]
    #[doc(alias = "runAsync")]
    #[track_caller]
    pub fn supply_async<F>(f: F) -> Self
    where
        F: FnOnce() -> T + Send + 'static,
    {
        or_rejected(Completable::supply_on(&DefaultExecutor, f))
    }

    /// Calls the closure on this executor.
    ///
    /// # Errors
    ///
    /// The closure, if the executor rejects it.
    ///
    /// ```
    /// use millpond::future::Completable;
    /// use millpond::preset;
    ///
    /// let mill = preset::single("mill").build()?;
    /// assert_eq!(Completable::supply_on(&mill, || 6 * 7)?.join()?, 42);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[doc(alias = "supplyAsync")]
    #[doc(alias = "runAsync")]
    #[track_caller]
    pub fn supply_on<F, X>(executor: &X, f: F) -> Result<Self, Rejected<F>>
    where
        F: FnOnce() -> T + Send + 'static,
        X: Executor + ?Sized,
    {
        Completable::supply_with(executor, TaskSpec::new(), f)
    }

    /// As [`supply_on`](Completable::supply_on), as the task that is described. Its name is that of the stage, too.
    ///
    /// # Errors
    ///
    /// The closure, if the executor rejects it.
    ///
    /// ```
    /// use millpond::future::{Completable, DefaultExecutor};
    /// use millpond::task::TaskSpec;
    ///
    /// let named = TaskSpec::new().name("grind");
    /// let flour = Completable::supply_with(&DefaultExecutor, named, || panic!("the dam broke"));
    /// let error = flour.unwrap().map(|()| 7).join().unwrap_err();
    /// assert_eq!(error.origin().name(), Some("grind"));
    /// ```
    pub fn supply_with<F, X>(executor: &X, spec: TaskSpec, f: F) -> Result<Self, Rejected<F>>
    where
        F: FnOnce() -> T + Send + 'static,
        X: Executor + ?Sized,
    {
        let call = |f: F, _: &StageMeta| Next::Done(Ok(f()));
        stage::supply(&executor, spec, f, call).map(Completable::from_reader)
    }
}

impl Completable<()> {
    /// Calls the closure on the [default executor](DefaultExecutor), for its effect.
    ///
    /// ```
    /// use millpond::future::Completable;
    ///
    /// Completable::run_async(|| println!("the mill turns")).join()?;
    /// # Ok::<(), millpond::future::CompletionError>(())
    /// ```
    #[doc(alias = "runAsync")]
    #[track_caller]
    pub fn run_async<F>(f: F) -> Self
    where
        F: FnOnce() + Send + 'static,
    {
        Completable::supply_async(f)
    }

    /// Calls the closure on this executor, for its effect.
    ///
    /// # Errors
    ///
    /// The closure, if the executor rejects it.
    #[doc(alias = "runAsync")]
    #[track_caller]
    pub fn run_on<F, X>(executor: &X, f: F) -> Result<Self, Rejected<F>>
    where
        F: FnOnce() + Send + 'static,
        X: Executor + ?Sized,
    {
        Completable::supply_on(executor, f)
    }
}

impl<T, E> Completable<T, E>
where
    T: Send + 'static,
    E: Send + Sync + 'static,
{
    /// Calls the closure, which may fail, on the [default executor](DefaultExecutor).
    ///
    /// ```
    /// use millpond::future::Completable;
    ///
    /// let none = Completable::try_supply_async(|| "no wind".parse::<u32>());
    /// assert!(none.join().unwrap_err().is_failed());
    /// ```
    #[doc(alias = "supplyAsync")]
    #[track_caller]
    pub fn try_supply_async<F>(f: F) -> Self
    where
        F: FnOnce() -> Result<T, E> + Send + 'static,
    {
        or_rejected(Completable::try_supply_on(&DefaultExecutor, f))
    }

    /// Calls the closure, which may fail, on this executor.
    ///
    /// # Errors
    ///
    /// The closure, if the executor rejects it.
    #[doc(alias = "supplyAsync")]
    #[track_caller]
    pub fn try_supply_on<F, X>(executor: &X, f: F) -> Result<Self, Rejected<F>>
    where
        F: FnOnce() -> Result<T, E> + Send + 'static,
        X: Executor + ?Sized,
    {
        Completable::try_supply_with(executor, TaskSpec::new(), f)
    }

    /// As [`try_supply_on`](Completable::try_supply_on), as the task that is described. Its name is that of the stage, too.
    ///
    /// # Errors
    ///
    /// The closure, if the executor rejects it.
    pub fn try_supply_with<F, X>(executor: &X, spec: TaskSpec, f: F) -> Result<Self, Rejected<F>>
    where
        F: FnOnce() -> Result<T, E> + Send + 'static,
        X: Executor + ?Sized,
    {
        let call = |f: F, meta: &StageMeta| {
            Next::Done(f().map_err(|error| meta.error(Cause::Failed(error))))
        };
        stage::supply(&executor, spec, f, call).map(Completable::from_reader)
    }
}

/// A stage that was rejected fails with that.
#[track_caller]
fn or_rejected<T, E, F>(made: Result<Completable<T, E>, Rejected<F>>) -> Completable<T, E>
where
    T: Send + 'static,
    E: Send + Sync + 'static,
{
    let location = Location::caller();
    made.unwrap_or_else(|rejected| {
        let meta = StageMeta::new(location);
        let failure = stage::rejected(&meta, rejected.reason);
        Completable::of_outcome(Err(failure), meta)
    })
}

impl<T, E> Promise<T, E>
where
    T: Send + 'static,
    E: Send + Sync + 'static,
{
    /// Completes it with what the closure returns on the [default executor](DefaultExecutor). Other promises may be faster.
    ///
    /// ```
    /// use millpond::future;
    ///
    /// let (promise, flour) = future::promise::<_, ()>();
    /// promise.complete_async(|| "flour");
    /// assert_eq!(flour.join().unwrap(), "flour");
    /// ```
    #[doc(alias = "completeAsync")]
    #[track_caller]
    pub fn complete_async<F>(self, f: F)
    where
        F: FnOnce() -> T + Send + 'static,
    {
        let location = Location::caller();
        if let Err(rejected) = self.clone().complete_on(&DefaultExecutor, f) {
            let failure = stage::rejected(&StageMeta::new(location), rejected.reason);
            let _ = self.settle(Err(failure));
        }
    }

    /// Completes it with what the closure returns on this executor. Other promises may be faster.
    ///
    /// # Errors
    ///
    /// The closure, if the executor rejects it. Then this promise is dropped.
    #[doc(alias = "completeAsync")]
    #[track_caller]
    pub fn complete_on<F, X>(self, executor: &X, f: F) -> Result<(), Rejected<F>>
    where
        F: FnOnce() -> T + Send + 'static,
        X: Executor + ?Sized,
    {
        let made =
            stage::supply::<T, E, F>(&executor, TaskSpec::new(), f, |f, _| Next::Done(Ok(f())));
        Completable::from_reader(made?).forward(self);
        Ok(())
    }
}
