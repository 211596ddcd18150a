//! The reading half: waiting, looking, cancelling.

use super::error::{Cause, CompletionError, Outcome};
use super::meta::StageMeta;
use super::promise::Promise;
use super::stage::{InPlace, Next, OnExecutor, ReaderOf, call, take};
use super::waiting::{self, Registration};
use super::watch;
use crate::executor::Executor;
use crate::task::{self, CancelReason, TaskSpec};
use crate::time::{Clock, Deadline};
use millpond_raw::catch_panic;
use millpond_raw::promise::{self, Queue};
use std::borrow::Cow;
use std::convert::Infallible;
use std::fmt;
use std::future::Future;
use std::panic::Location;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

/// A result that will be there, to be waited for and to be composed.
///
/// It is the reading half of a [`Promise`], or a stage that is computed from others. Operations consume it, as those of a
/// `Future` or an iterator do; a [clone](Completable::clone) is another reader of the same result. The last reader gets the
/// value itself, others get clones; [`into_shared`](Completable::into_shared) makes any value cheap to clone.
///
/// Dropping it cancels nothing: a stage runs whether anybody reads its result or not.
///
/// ```
/// use millpond::future::Completable;
///
/// let flour = Completable::supply_async(|| 21);
/// let bread = flour.map(|sacks| sacks * 2);
/// assert_eq!(bread.join()?, 42);
/// # Ok::<(), millpond::future::CompletionError>(())
/// ```
#[doc(alias = "CompletableFuture")]
#[must_use = "it runs to its end without you, but nobody will hear of a failure"]
pub struct Completable<T, E = Infallible> {
    /// `None` after a poll that was ready.
    reader: Option<ReaderOf<T, E>>,
    waiting: Option<Registration>,
}

const TAKEN: &str = "the result of this completable has been taken already";

impl<T, E> Completable<T, E>
where
    T: Send + 'static,
    E: Send + Sync + 'static,
{
    #[inline]
    pub(super) fn from_reader(reader: ReaderOf<T, E>) -> Self {
        Completable {
            reader: Some(reader),
            waiting: None,
        }
    }

    #[inline]
    pub(super) fn into_reader(self) -> ReaderOf<T, E> {
        self.reader.expect(TAKEN)
    }

    #[inline]
    pub(super) fn reader(&self) -> &ReaderOf<T, E> {
        self.reader.as_ref().expect(TAKEN)
    }

    #[inline]
    pub(super) fn meta(&self) -> &StageMeta {
        self.reader().meta()
    }

    #[inline]
    pub(super) fn of_outcome(outcome: Outcome<T, E>, meta: StageMeta) -> Self {
        Completable::from_reader(promise::ready(outcome, meta))
    }

    /// A complete one, with this value.
    ///
    /// ```
    /// use millpond::future::Completable;
    ///
    /// assert_eq!(Completable::<_, ()>::completed("flour").join().unwrap(), "flour");
    /// ```
    #[doc(alias = "completedFuture")]
    #[doc(alias = "completedStage")]
    #[track_caller]
    pub fn completed(value: T) -> Self {
        Completable::of_outcome(Ok(value), StageMeta::new(Location::caller()))
    }

    /// A complete one, which has failed with this error.
    ///
    /// ```
    /// use millpond::future::Completable;
    ///
    /// let none = Completable::<u32, _>::failed("no wind");
    /// assert_eq!(none.join().unwrap_err().error(), Some(&"no wind"));
    /// ```
    #[doc(alias = "failedFuture")]
    #[doc(alias = "failedStage")]
    #[track_caller]
    pub fn failed(error: E) -> Self {
        let meta = StageMeta::new(Location::caller());
        let error = meta.error(Cause::Failed(error));
        Completable::of_outcome(Err(error), meta)
    }

    /// One with this outcome.
    ///
    /// ```
    /// use millpond::future::Completable;
    ///
    /// let number = Completable::of("42".parse::<u32>());
    /// assert_eq!(number.join()?, 42);
    /// # Ok::<(), millpond::future::CompletionError<std::num::ParseIntError>>(())
    /// ```
    #[track_caller]
    pub fn of(result: Result<T, E>) -> Self {
        match result {
            Ok(value) => Completable::completed(value),
            Err(error) => Completable::failed(error),
        }
    }

    /// One that is never complete, unless by hand or by a timeout.
    ///
    /// ```
    /// use millpond::future::Completable;
    ///
    /// assert!(!Completable::<u32, ()>::never().is_complete());
    /// ```
    #[doc(alias = "newIncompleteFuture")]
    #[track_caller]
    pub fn never() -> Self {
        let (_producer, reader) = promise::pair(StageMeta::new(Location::caller()));
        Completable::from_reader(reader)
    }

    /// Waits, and takes the value: itself, if this is the last reader, or else a clone.
    ///
    /// # Errors
    ///
    /// Why there is no value; or the caller, itself a task, was interrupted, or waits for what waits for it.
    ///
    /// ```
    /// use millpond::future;
    ///
    /// let (promise, flour) = future::promise::<_, ()>();
    /// std::thread::spawn(move || promise.complete("flour"));
    /// assert_eq!(flour.join().unwrap(), "flour");
    /// ```
    #[doc(alias = "get")]
    pub fn join(self) -> Result<T, CompletionError<E>> {
        let reader = self.into_reader();
        match reader.take() {
            Ok(outcome) => outcome,
            Err(reader) => {
                waiting::wait(&reader, &Clock::system(), Deadline::NEVER)?;
                take(reader)
            }
        }
    }

    /// As [`join`](Completable::join), but waits no longer than that. After a timeout the completable can be used again.
    ///
    /// # Errors
    ///
    /// As [`join`](Completable::join), or the timeout is over: [`CompletionError::is_join_timed_out`].
    ///
    /// # Panics
    ///
    /// If the value has been taken by an earlier call.
    ///
    /// ```
    /// use millpond::future;
    /// use std::time::Duration;
    ///
    /// let (promise, mut flour) = future::promise::<_, ()>();
    /// let error = flour.join_timeout(Duration::from_millis(1)).unwrap_err();
    /// assert!(error.is_join_timed_out());
    /// promise.complete("flour").unwrap();
    /// assert_eq!(flour.join_timeout(Duration::from_millis(1)).unwrap(), "flour");
    /// ```
    #[doc(alias = "get")]
    pub fn join_timeout(&mut self, timeout: Duration) -> Result<T, CompletionError<E>> {
        self.join_timeout_by(&Clock::system(), timeout)
    }

    /// As [`join_timeout`](Completable::join_timeout), by this clock.
    ///
    /// # Errors
    ///
    /// As [`join_timeout`](Completable::join_timeout).
    ///
    /// # Panics
    ///
    /// If the value has been taken by an earlier call.
    pub fn join_timeout_by(
        &mut self,
        clock: &Clock,
        timeout: Duration,
    ) -> Result<T, CompletionError<E>> {
        if !self.is_complete() {
            waiting::wait(self.reader(), clock, clock.deadline(timeout))?;
        }
        self.waiting = None;
        take(self.reader.take().expect(TAKEN))
    }

    /// Waits, and leaves the value where it is.
    ///
    /// # Errors
    ///
    /// As [`join`](Completable::join).
    ///
    /// ```
    /// use millpond::future::Completable;
    ///
    /// let flour = Completable::supply_async(|| String::from("flour"));
    /// assert_eq!(flour.wait()?.len(), 5);
    /// assert_eq!(flour.join()?, "flour");
    /// # Ok::<(), millpond::future::CompletionError>(())
    /// ```
    pub fn wait(&self) -> Result<&T, CompletionError<E>>
    where
        T: Sync,
    {
        if !self.is_complete() {
            waiting::wait(self.reader(), &Clock::system(), Deadline::NEVER)?;
        }
        let outcome = self.reader().get().expect("it is complete");
        outcome.as_ref().map_err(Clone::clone)
    }

    /// The outcome, if it is there.
    ///
    /// ```
    /// use millpond::future;
    ///
    /// let (promise, flour) = future::promise::<_, ()>();
    /// assert!(flour.try_get().is_none());
    /// promise.complete("flour").unwrap();
    /// assert_eq!(flour.try_get().unwrap().unwrap(), &"flour");
    /// ```
    #[doc(alias = "resultNow")]
    #[doc(alias = "exceptionNow")]
    #[doc(alias = "getNow")]
    pub fn try_get(&self) -> Option<Result<&T, &CompletionError<E>>>
    where
        T: Sync,
    {
        self.reader().get().map(Result::as_ref)
    }

    /// Takes the value, if it is there, and `other` if it is not.
    ///
    /// # Errors
    ///
    /// Why there will never be a value.
    ///
    /// ```
    /// use millpond::future;
    ///
    /// let (_promise, flour) = future::promise::<_, ()>();
    /// assert_eq!(flour.get_now_or("none yet").unwrap(), "none yet");
    /// ```
    #[doc(alias = "getNow")]
    pub fn get_now_or(self, other: T) -> Result<T, CompletionError<E>> {
        self.into_reader().take().unwrap_or(Ok(other))
    }

    /// Whether it has a value or has failed. Once true it stays true, and joining does not block.
    #[doc(alias = "isDone")]
    #[inline]
    pub fn is_complete(&self) -> bool {
        self.reader().is_complete()
    }

    /// Whether this very stage was cancelled: not one further up.
    ///
    /// ```
    /// use millpond::future;
    ///
    /// let (promise, flour) = future::promise::<u32, ()>();
    /// assert!(!flour.is_cancelled());
    /// assert!(promise.cancel() && flour.is_cancelled());
    /// ```
    #[doc(alias = "isCancelled")]
    pub fn is_cancelled(&self) -> bool {
        self.failure()
            .is_some_and(|failure| !failure.is_propagated() && failure.is_cancelled())
    }

    /// Whether it is complete without a value.
    #[doc(alias = "isCompletedExceptionally")]
    pub fn is_failed(&self) -> bool {
        self.failure().is_some()
    }

    /// Why it has no value; `None` if it has one, or is not complete.
    #[doc(alias = "exceptionNow")]
    pub fn failure(&self) -> Option<CompletionError<E>> {
        waiting::failure(self.reader())
    }

    /// Completes it as cancelled, unless it is complete. Returns whether it is cancelled now.
    ///
    /// The closure of this stage is dropped if it has not started. Stages further up go on, and so does a closure that
    /// runs; unless the chain is [linked](Completable::linked).
    ///
    /// ```
    /// use millpond::future;
    ///
    /// let (promise, flour) = future::promise::<u32, ()>();
    /// let bread = flour.map(|sacks| sacks * 40);
    /// assert!(bread.cancel());
    /// assert_eq!(promise.complete(7), Ok(())); // has nothing to do with it
    /// assert!(bread.join().unwrap_err().is_cancelled());
    /// ```
    pub fn cancel(&self) -> bool {
        if !self.is_complete() {
            let cancelled = self.meta().error(Cause::Cancelled(CancelReason::Requested));
            let mut queue = Queue::new();
            let _ = self.reader().complete(Err(cancelled), &mut queue);
            queue.run();
        }
        self.is_cancelled()
    }

    /// From now on, cancelling this stage, or one that is made from it, cancels what it waits for, up to the tasks that
    /// compute it, which are [interrupted](crate::interrupt). The same if it is completed in another way, such as by a
    /// [timeout](Completable::or_timeout). Other readers of what is cancelled see that, too.
    ///
    /// ```
    /// use millpond::future;
    ///
    /// let (promise, flour) = future::promise::<u32, ()>();
    /// let bread = flour.map(|sacks| sacks * 40).linked();
    /// bread.cancel();
    /// assert!(promise.is_complete());
    /// ```
    #[doc(alias = "structured")]
    pub fn linked(self) -> Self {
        self.meta().link();
        self
    }

    /// Gives this stage a name: failures that arise in it carry it, and while it is not complete it is listed by
    /// [`pending`](super::pending).
    ///
    /// ```
    /// use millpond::future;
    ///
    /// let (promise, flour) = future::promise::<u32, ()>();
    /// let flour = flour.named("flour");
    /// assert!(future::pending().iter().any(|stage| stage.name() == Some("flour")));
    /// drop(promise);
    /// assert_eq!(flour.join().unwrap_err().origin().name(), Some("flour"));
    /// ```
    pub fn named(self, name: impl Into<Cow<'static, str>>) -> Self {
        self.meta().set_name(name.into().into());
        watch::register(self.reader());
        self
    }

    /// The name of this stage.
    pub fn name(&self) -> Option<String> {
        self.meta().name().map(|name| name.as_str().to_owned())
    }

    /// The source location where this stage was made.
    pub fn location(&self) -> &'static Location<'static> {
        self.meta().location()
    }

    /// A way to complete this stage by hand, whatever it waits for. Dropping that promise does not abandon the stage, unless
    /// the stage came from a promise in the first place.
    ///
    /// ```
    /// use millpond::future;
    ///
    /// let (_mill, flour) = future::promise::<u32, ()>();
    /// let bread = flour.map(|sacks| sacks * 40);
    /// bread.promise().complete(7).unwrap(); // bought
    /// assert_eq!(bread.join().unwrap(), 7);
    /// ```
    pub fn promise(&self) -> Promise<T, E> {
        let producer = self.reader().producer();
        producer.add_writer();
        Promise::from_producer(producer)
    }

    /// How many stages and readers wait for this one.
    #[doc(alias = "getNumberOfDependents")]
    pub fn dependents(&self) -> usize {
        let mut queue = Queue::new();
        let source = self.reader().upstream().to_source();
        source.dependents(&mut queue) as usize
    }

    /// A stage that runs in place.
    #[inline]
    pub(super) fn stage<U, E2, G>(
        self,
        location: &'static Location<'static>,
        g: G,
    ) -> Completable<U, E2>
    where
        U: Send + 'static,
        E2: Send + Sync + 'static,
        G: FnOnce(Outcome<T, E>, &StageMeta) -> Next<U, E2> + Send + 'static,
    {
        let source = self.into_reader();
        let meta = source.meta().below(location);
        if source.is_complete() {
            let next = call(&meta, || g(take(source), &meta), Next::Done);
            return Completable::of_next(next, meta);
        }
        let body = InPlace::First {
            source,
            g,
            context: task::carried(),
        };
        let mut queue = Queue::new();
        Completable::from_reader(promise::stage(body, meta, &mut queue))
    }

    #[inline]
    fn of_next(next: Next<T, E>, meta: StageMeta) -> Self {
        match next {
            Next::Done(outcome) => Completable::of_outcome(outcome, meta),
            // A stage of its own: this one may be named, cancelled or linked.
            Next::Wait(inner) => inner.stage(meta.location(), |outcome, _| {
                Next::Done(super::stage::relayed(outcome))
            }),
        }
    }

    /// A stage that runs on an executor, if it wants the outcome.
    #[inline]
    pub(super) fn stage_on<U, E2, G, X>(
        self,
        executor: X,
        location: &'static Location<'static>,
        wants: fn(&Outcome<T, E>) -> bool,
        g: G,
    ) -> Completable<U, E2>
    where
        U: Send + 'static,
        E2: Send + Sync + 'static,
        G: FnOnce(Outcome<T, E>, &StageMeta) -> Next<U, E2> + Send + 'static,
        X: Executor + 'static,
    {
        let source = self.into_reader();
        let meta = source.meta().below(location);
        let body = OnExecutor::First {
            source,
            g,
            wants,
            executor,
            spec: TaskSpec::new().located(location),
        };
        let mut queue = Queue::new();
        let reader = promise::stage(body, meta, &mut queue);
        queue.run();
        Completable::from_reader(reader)
    }
}

/// Another reader of the same result.
impl<T, E> Clone for Completable<T, E>
where
    T: Clone + Sync,
    E: Send + Sync,
{
    fn clone(&self) -> Self {
        Completable {
            reader: self.reader.as_ref().map(|reader| reader.share()),
            waiting: None,
        }
    }
}

/// Awaiting is cancel-safe: a completable that is dropped or polled elsewhere meanwhile loses nothing, and `&mut` of it can
/// be awaited, too.
///
/// ```
/// # use std::{future::Future, pin::pin, task::{Context, Waker}};
/// use millpond::future::Completable;
///
/// let flour = Completable::<_, ()>::completed(42);
/// let answer = async { flour.await };
/// # let ready = pin!(answer).poll(&mut Context::from_waker(Waker::noop()));
/// # assert!(matches!(ready, std::task::Poll::Ready(Ok(42))));
/// ```
impl<T, E> Future for Completable<T, E>
where
    T: Send + 'static,
    E: Send + Sync + 'static,
{
    type Output = Result<T, CompletionError<E>>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let Completable { reader, waiting } = self.get_mut();
        let own = reader.as_ref().expect(TAKEN);
        if !own.is_complete() {
            waiting::register(own, waiting, context.waker());
            if !own.is_complete() {
                return Poll::Pending;
            }
        }
        *waiting = None;
        Poll::Ready(take(reader.take().expect(TAKEN)))
    }
}

impl<T, E> Unpin for Completable<T, E> {}

impl<T, E: fmt::Debug + Send + Sync> fmt::Debug for Completable<T, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(reader) = &self.reader else {
            return f.write_str("Completable(taken)");
        };
        watch::debug(reader, f)
    }
}

/// Drops something of the user's.
pub(super) fn discard<V>(value: V) {
    catch_panic::drop(value);
}
