//! The writing half.

use super::completable::Completable;
use super::error::{Cause, CompletionError, Outcome};
use super::meta::StageMeta;
use super::stage::ProducerOf;
use crate::task::CancelReason;
use millpond_raw::promise::{self, Queue};
use std::fmt;
use std::panic::Location;

/// Completes a [`Completable`], once.
///
/// Clones are promises of the same result: of many callers that race, exactly one wins, and the others get their value
/// back. If the last promise is dropped before that, the completable fails as [abandoned](Cause::Abandoned).
///
/// Stages run on the thread that completes the promise, unless they were given an executor.
///
/// ```
/// use millpond::future;
///
/// let (promise, flour) = future::promise::<_, ()>();
/// let other = promise.clone();
/// assert_eq!(promise.complete("wheat"), Ok(()));
/// assert_eq!(other.complete("rye"), Err("rye"));
/// assert_eq!(flour.join().unwrap(), "wheat");
/// ```
#[doc(alias = "CompletableFuture")]
#[must_use = "dropping the last promise abandons the completable"]
pub struct Promise<T, E = std::convert::Infallible>
where
    T: Send + 'static,
    E: Send + Sync + 'static,
{
    producer: ProducerOf<T, E>,
}

/// A promise, and what it promises.
///
/// ```
/// use millpond::future;
///
/// let (promise, flour) = future::promise::<&str, ()>();
/// drop(promise);
/// assert!(flour.join().unwrap_err().is_abandoned());
/// ```
#[doc(alias = "newIncompleteFuture")]
#[track_caller]
pub fn promise<T, E>() -> (Promise<T, E>, Completable<T, E>)
where
    T: Send + 'static,
    E: Send + Sync + 'static,
{
    let (producer, reader) = promise::pair(StageMeta::new(Location::caller()));
    (Promise { producer }, Completable::from_reader(reader))
}

impl<T, E> Promise<T, E>
where
    T: Send + 'static,
    E: Send + Sync + 'static,
{
    pub(super) fn from_producer(producer: ProducerOf<T, E>) -> Self {
        Promise { producer }
    }

    pub(super) fn producer(&self) -> &ProducerOf<T, E> {
        &self.producer
    }

    #[inline]
    pub(super) fn settle(&self, outcome: Outcome<T, E>) -> Result<(), Outcome<T, E>> {
        let mut queue = Queue::new();
        let done = self.producer.complete(outcome, &mut queue);
        queue.run();
        done
    }

    /// Completes it with this value.
    ///
    /// # Errors
    ///
    /// The value, if it is complete already.
    #[inline]
    pub fn complete(&self, value: T) -> Result<(), T> {
        self.settle(Ok(value)).map_err(|outcome| match outcome {
            Ok(value) => value,
            Err(_) => unreachable!("what comes back is what was given"),
        })
    }

    /// Makes it fail with this error.
    ///
    /// # Errors
    ///
    /// The error, if it is complete already.
    ///
    /// ```
    /// use millpond::future;
    ///
    /// let (promise, flour) = future::promise::<u32, _>();
    /// assert_eq!(promise.fail("no wind"), Ok(()));
    /// assert_eq!(promise.fail("no water"), Err("no water"));
    /// assert_eq!(flour.join().unwrap_err().error(), Some(&"no wind"));
    /// ```
    #[doc(alias = "completeExceptionally")]
    pub fn fail(&self, error: E) -> Result<(), E> {
        if self.producer.is_complete() {
            return Err(error);
        }
        let failure = self.producer.meta().error(Cause::Failed(error));
        self.settle(Err(failure)).map_err(|outcome| match outcome {
            Err(failure) => match failure.into_error() {
                Ok(error) => error,
                Err(_) => unreachable!("nobody else has it"),
            },
            Ok(_) => unreachable!("what comes back is what was given"),
        })
    }

    /// Completes it with this value, or makes it fail with this error.
    ///
    /// # Errors
    ///
    /// The same, if it is complete already.
    pub fn complete_with(&self, result: Result<T, E>) -> Result<(), Result<T, E>> {
        match result {
            Ok(value) => self.complete(value).map_err(Ok),
            Err(error) => self.fail(error).map_err(Err),
        }
    }

    /// Passes a failure of another completable on.
    ///
    /// # Errors
    ///
    /// The failure, if it is complete already.
    pub fn fail_with(&self, failure: CompletionError<E>) -> Result<(), CompletionError<E>> {
        self.settle(Err(failure.propagated()))
            .map_err(|outcome| match outcome {
                Err(failure) => failure,
                Ok(_) => unreachable!("what comes back is what was given"),
            })
    }

    /// Completes it as cancelled, unless it is complete. Returns whether this call did.
    ///
    /// ```
    /// use millpond::future;
    ///
    /// let (promise, flour) = future::promise::<u32, ()>();
    /// assert!(promise.cancel());
    /// assert!(!promise.cancel());
    /// assert!(flour.join().unwrap_err().is_cancelled());
    /// ```
    pub fn cancel(&self) -> bool {
        self.settle_with(Cause::Cancelled(CancelReason::Requested))
    }

    pub(super) fn settle_with(&self, cause: Cause<E>) -> bool {
        if self.producer.is_complete() {
            return false;
        }
        let failure = self.producer.meta().error(cause);
        self.settle(Err(failure)).is_ok()
    }

    /// Whether it has a value or has failed.
    #[doc(alias = "isDone")]
    pub fn is_complete(&self) -> bool {
        self.producer.is_complete()
    }
}

impl<T, E> Clone for Promise<T, E>
where
    T: Send + 'static,
    E: Send + Sync + 'static,
{
    fn clone(&self) -> Self {
        self.producer.add_writer();
        Promise {
            producer: self.producer.another(),
        }
    }
}

impl<T, E> Drop for Promise<T, E>
where
    T: Send + 'static,
    E: Send + Sync + 'static,
{
    fn drop(&mut self) {
        if self.producer.remove_writer() {
            self.settle_with(Cause::Abandoned);
        }
    }
}

impl<T, E> fmt::Debug for Promise<T, E>
where
    T: Send + 'static,
    E: Send + Sync + 'static,
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Promise")
            .field("is_complete", &self.is_complete())
            .field("origin", &self.producer.meta().origin())
            .finish()
    }
}
