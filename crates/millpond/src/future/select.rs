//! Combinators that look at each outcome as it comes: the first success, all or the first failure, results in order of
//! completion.
//!
//! Each member gets a callback. When the result is complete, an observer of it cancels those that are left, so nothing stays
//! with members that are never complete.

use super::completable::{Completable, discard};
use super::error::{Cause, CompletionError, Outcome};
use super::meta::StageMeta;
use super::promise::{Promise, promise};
use super::stage::{ProducerOf, relayed};
use crate::executor::Waitable;
use crate::interrupt::{Interrupted, WaitError};
use crate::task::CancelReason;
use crate::time::{Clock, Deadline};
use millpond_raw::park::Site;
use millpond_raw::promise::{self, Body, Claimed, Queue, Source, Upstream};
use millpond_raw::sync::Mutex;
use std::collections::VecDeque;
use std::fmt;
use std::future::poll_fn;
use std::panic::Location;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

/// Runs when a result is complete, for what was left behind for it.
struct Cleanup<F> {
    source: Source<StageMeta>,
    f: F,
}

impl<F: FnOnce() + Send + 'static> Body<(), StageMeta> for Cleanup<F> {
    fn run(self, _: Option<usize>, claimed: Claimed<(), StageMeta, Self>, queue: &mut Queue) {
        let _ = claimed.complete((), queue);
        (self.f)();
    }

    fn sources(&self, see: &mut dyn FnMut(Upstream<'_, StageMeta>)) {
        see(self.source.upstream());
    }
}

fn when_over<T, E>(result: &Completable<T, E>, f: impl FnOnce() + Send + 'static)
where
    T: Send + 'static,
    E: Send + Sync + 'static,
{
    let source = result.reader().upstream().to_source();
    let (mut queue, meta) = (Queue::new(), StageMeta::new(Location::caller()));
    drop(promise::observer(Cleanup { source, f }, meta, &mut queue));
    queue.run();
}

/// Cancels what is not complete, and what that waits for.
fn cancel_rest<T, E>(members: Vec<ProducerOf<T, E>>)
where
    T: Send + 'static,
    E: Send + Sync + 'static,
{
    for member in members {
        if !member.is_complete() {
            member.meta().link();
            let cancelled = member
                .meta()
                .error(Cause::Cancelled(CancelReason::Abandoned));
            let mut queue = Queue::new();
            let _ = member.complete(Err(cancelled), &mut queue);
            queue.run();
        }
    }
}

/// Takes callbacks away from members that are not complete.
fn remove(callbacks: Vec<Completable<()>>) {
    for callback in callbacks {
        callback.cancel();
    }
}

/// The first value. It fails only if all of them do, as the last of them to fail. Of none it is never complete.
///
/// The others go on.
///
/// ```
/// use millpond::future::{self, Completable};
///
/// let mills = [Completable::failed("no wind"), Completable::completed("flour")];
/// assert_eq!(future::first_success(mills).join().unwrap(), "flour");
/// ```
#[doc(alias = "invokeAny")]
#[track_caller]
pub fn first_success<T, E>(
    members: impl IntoIterator<Item = Completable<T, E>>,
) -> Completable<T, E>
where
    T: Send + 'static,
    E: Send + Sync + 'static,
{
    let members: Vec<_> = members.into_iter().collect();
    if members.is_empty() {
        return Completable::never();
    }
    let (own, result) = promise();
    let left = Arc::new(Mutex::new(members.len()));
    let watch = move |(own, left): (Promise<T, E>, Arc<Mutex<usize>>)| {
        move |outcome: Outcome<T, E>| {
            let is_last = {
                let mut left = left.lock();
                *left -= 1;
                *left == 0
            };
            if outcome.is_ok() || is_last {
                if let Err(unwanted) = own.settle(relayed(outcome)) {
                    discard(unwanted);
                }
            }
        }
    };
    let callbacks = members.into_iter();
    let callbacks: Vec<_> = callbacks
        .map(|member| member.callback(watch((own.clone(), Arc::clone(&left)))))
        .collect();
    when_over(&result, move || remove(callbacks));
    result
}

/// The values of all of them. If one fails it fails likewise, at once, and the others are cancelled, with what they wait for
/// and the tasks that compute them.
///
/// ```
/// use millpond::future::{self, Completable};
///
/// let (promise, flour) = future::promise::<u32, _>();
/// let all = future::try_all_of([flour, Completable::failed("no wind")]);
/// assert_eq!(all.join().unwrap_err().error(), Some(&"no wind"));
/// assert!(promise.is_complete()); // cancelled
/// ```
#[doc(alias = "ShutdownOnFailure")]
#[track_caller]
pub fn try_all_of<T, E>(
    members: impl IntoIterator<Item = Completable<T, E>>,
) -> Completable<Vec<T>, E>
where
    T: Send + 'static,
    E: Send + Sync + 'static,
{
    let (own, result) = promise();
    let members: Vec<_> = members.into_iter().collect();
    let producers = members.iter().map(|member| member.reader().producer());
    let producers: Vec<_> = producers.collect();
    if members.is_empty() {
        let _ = own.complete(Vec::new());
        return result;
    }
    let values = (members.len(), members.iter().map(|_| None).collect());
    let values: Arc<Mutex<(usize, Vec<Option<T>>)>> = Arc::new(Mutex::new(values));
    let callbacks = members.into_iter().enumerate();
    let callbacks: Vec<_> = callbacks
        .map(|(number, member)| {
            let (own, values) = (own.clone(), Arc::clone(&values));
            member.callback(move |outcome: Outcome<T, E>| {
                let outcome = match outcome {
                    Ok(value) => {
                        let mut all = values.lock();
                        all.1[number] = Some(value);
                        all.0 -= 1;
                        if all.0 > 0 {
                            return;
                        }
                        let all = std::mem::take(&mut all.1);
                        Ok(all.into_iter().flatten().collect())
                    }
                    Err(failure) => Err(failure.propagated()),
                };
                if let Err(unwanted) = own.settle(outcome) {
                    discard(unwanted);
                }
            })
        })
        .collect();
    when_over(&result, move || {
        remove(callbacks);
        cancel_rest(producers);
    });
    result
}

/// The outcomes of all of them, each with its number, in the order in which they are complete.
///
/// ```
/// use millpond::future;
///
/// let (first, wheat) = future::promise::<_, ()>();
/// let (second, rye) = future::promise();
/// let mut flour = future::as_completed([wheat, rye]);
/// second.complete("rye").unwrap();
/// assert_eq!(flour.next().map(|(number, outcome)| (number, outcome.unwrap())), Some((1, "rye")));
/// first.complete("wheat").unwrap();
/// assert_eq!(flour.next().map(|(number, _)| number), Some(0));
/// assert!(flour.next().is_none());
/// ```
#[doc(alias = "ExecutorCompletionService")]
#[track_caller]
pub fn as_completed<T, E>(members: impl IntoIterator<Item = Completable<T, E>>) -> Completions<T, E>
where
    T: Send + 'static,
    E: Send + Sync + 'static,
{
    let arrived = Arc::new(Waitable::new(Arrived {
        outcomes: VecDeque::new(),
        waker: None,
    }));
    let members = members.into_iter().enumerate();
    let callbacks: Vec<_> = members
        .map(|(number, member)| {
            let arrived = Arc::clone(&arrived);
            member.callback(move |outcome| {
                let waker = arrived.change(|arrived| {
                    arrived.outcomes.push_back((number, outcome));
                    arrived.waker.take()
                });
                if let Some(waker) = waker {
                    millpond_raw::catch_panic::wake(waker);
                }
            })
        })
        .collect();
    Completions {
        left: callbacks.len(),
        arrived,
        callbacks,
    }
}

/// The number of a member, and its outcome.
pub type Numbered<T, E> = (usize, Result<T, CompletionError<E>>);

struct Arrived<T, E> {
    outcomes: VecDeque<Numbered<T, E>>,
    waker: Option<Waker>,
}

/// Outcomes in order of completion, see [`as_completed`].
///
/// As an iterator it blocks; async code takes [`next_async`](Completions::next_async) or
/// [`poll_next`](Completions::poll_next). Dropping it leaves the members alone.
#[must_use = "outcomes are there to be read"]
pub struct Completions<T, E> {
    left: usize,
    arrived: Arc<Waitable<Arrived<T, E>>>,
    callbacks: Vec<Completable<()>>,
}

impl<T, E> Completions<T, E>
where
    T: Send + 'static,
    E: Send + Sync + 'static,
{
    /// The next outcome, if it is there.
    pub fn try_next(&mut self) -> Option<Numbered<T, E>> {
        let next = self.arrived.with(|arrived| arrived.outcomes.pop_front());
        self.left -= usize::from(next.is_some());
        next
    }

    /// Waits for the next outcome; `None` after the last.
    ///
    /// # Errors
    ///
    /// The caller, itself a task, was interrupted.
    pub fn wait_next(&mut self) -> Result<Option<Numbered<T, E>>, Interrupted> {
        if self.left == 0 {
            return Ok(None);
        }
        promise::run_left_over();
        let (site, clock) = (Site::new("future.completions"), Clock::system());
        let next = self.arrived.wait(site, &clock, Deadline::NEVER, |arrived| {
            arrived.outcomes.pop_front()
        });
        match next {
            Ok(next) => {
                self.left -= 1;
                Ok(Some(next))
            }
            Err(WaitError::Interrupted | WaitError::TimedOut) => Err(Interrupted),
        }
    }

    /// As a stream is polled.
    pub fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<Option<Numbered<T, E>>> {
        if self.left == 0 {
            return Poll::Ready(None);
        }
        let waker = context.waker().clone();
        let (next, unused) = self
            .arrived
            .with(|arrived| match arrived.outcomes.pop_front() {
                Some(next) => (Some(next), Some(waker)),
                None => (None, arrived.waker.replace(waker)),
            });
        millpond_raw::catch_panic::drop_waker(unused);
        match next {
            Some(next) => {
                self.left -= 1;
                Poll::Ready(Some(next))
            }
            None => Poll::Pending,
        }
    }

    /// The next outcome, for async code; `None` after the last.
    ///
    /// ```
    /// # use std::{future::Future, pin::pin, task::{Context, Waker}};
    /// use millpond::future::{self, Completable};
    ///
    /// let mut flour = future::as_completed([Completable::<_, ()>::completed("rye")]);
    /// let all = async { while let Some((_, outcome)) = flour.next_async().await { assert!(outcome.is_ok()) } };
    /// # assert!(pin!(all).poll(&mut Context::from_waker(Waker::noop())).is_ready());
    /// ```
    pub async fn next_async(&mut self) -> Option<Numbered<T, E>> {
        poll_fn(|context| self.poll_next(context)).await
    }
}

/// It ends early if the caller, itself a task, is interrupted; the interrupt is left for the task.
impl<T, E> Iterator for Completions<T, E>
where
    T: Send + 'static,
    E: Send + Sync + 'static,
{
    type Item = Numbered<T, E>;

    fn next(&mut self) -> Option<Self::Item> {
        match self.wait_next() {
            Ok(next) => next,
            Err(Interrupted) => {
                crate::interrupt::restore(Err(WaitError::Interrupted));
                None
            }
        }
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (0, Some(self.left))
    }
}

impl<T, E> Drop for Completions<T, E> {
    fn drop(&mut self) {
        remove(std::mem::take(&mut self.callbacks));
    }
}

impl<T, E> fmt::Debug for Completions<T, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Completions")
            .field("left", &self.left)
            .finish_non_exhaustive()
    }
}
