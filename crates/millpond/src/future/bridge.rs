//! Bridges: callbacks, tasks, futures.
//!
//! A completable is a `Future`, and a future becomes one here. A callback API completes a promise.

use super::completable::Completable;
use super::error::{Cause, CompletionError, Outcome, StagePanic};
use super::meta::StageMeta;
use super::promise::{Promise, promise};
use super::stage::Next;
use super::timeout::off_timer;
use crate::executor::{DirectExecutor, Executor, Rejected, SpawnFuture};
use crate::task::{TaskError, TaskHandle};
use millpond_raw::sync::Mutex;
use std::convert::Infallible;
use std::future::Future;
use std::panic::Location;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};

impl<T, E> Completable<T, E>
where
    T: Send + 'static,
    E: Send + Sync + 'static,
{
    /// Calls the closure with the outcome: on the thread that completes this, or here if it is complete.
    ///
    /// ```
    /// use millpond::future;
    /// use std::sync::mpsc;
    ///
    /// let (promise, flour) = future::promise::<u32, ()>();
    /// let (send, receive) = mpsc::channel();
    /// flour.on_complete(move |outcome| send.send(outcome.is_ok()).unwrap());
    /// promise.complete(7).unwrap();
    /// assert!(receive.recv()?);
    /// # Ok::<(), mpsc::RecvError>(())
    /// ```
    #[track_caller]
    pub fn on_complete<F>(self, f: F)
    where
        F: FnOnce(Result<T, CompletionError<E>>) + Send + 'static,
    {
        drop(self.callback(f));
    }

    #[track_caller]
    pub(super) fn callback<F>(self, f: F) -> Completable<()>
    where
        F: FnOnce(Outcome<T, E>) + Send + 'static,
    {
        self.stage::<(), Infallible, _>(Location::caller(), |outcome, _| {
            f(outcome);
            Next::Done(Ok(()))
        })
    }

    /// Completes that promise with what this comes to.
    ///
    /// ```
    /// use millpond::future::{self, Completable};
    ///
    /// let (promise, bread) = future::promise::<_, ()>();
    /// Completable::completed("bread").forward(promise);
    /// assert_eq!(bread.join().unwrap(), "bread");
    /// ```
    #[track_caller]
    pub fn forward(self, promise: Promise<T, E>) {
        self.on_complete(move |outcome| {
            let _ = promise.settle(super::stage::relayed(outcome));
        });
    }

    /// What this task comes to.
    ///
    /// ```
    /// use millpond::executor::ExecutorExt;
    /// use millpond::future::Completable;
    /// use millpond::preset;
    ///
    /// let mill = preset::single("mill").build()?;
    /// let flour = Completable::<_, ()>::from_task(mill.submit(|| 7)?);
    /// assert_eq!(flour.map(|sacks| sacks * 40).join().unwrap(), 280);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[track_caller]
    pub fn from_task(handle: TaskHandle<T>) -> Self {
        let (promise, completable) = promise();
        let watch = Arc::new(TaskWatch {
            handle: Mutex::new(None),
            promise,
        });
        watch.look(handle);
        completable
    }

    /// What this future comes to, polled on that executor whenever it is woken.
    ///
    /// # Errors
    ///
    /// The future, if the executor rejects it.
    ///
    /// ```
    /// use millpond::future::Completable;
    /// use millpond::preset;
    ///
    /// let mill = preset::single("mill").build()?;
    /// let flour = Completable::<_, ()>::from_future_on(&mill, async { 7 })?;
    /// assert_eq!(flour.join().unwrap(), 7);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[track_caller]
    pub fn from_future_on<Fut, X>(executor: &X, future: Fut) -> Result<Self, Rejected<Fut>>
    where
        Fut: Future<Output = T> + Send + 'static,
        X: Executor + Clone + 'static,
    {
        executor.spawn_future(future).map(Completable::from_task)
    }

    /// What this future comes to. It is polled here, and then by the threads that wake it, so it must be quick to poll: a
    /// receiver of a channel, a handle, a timer. Take [`from_future_on`](Completable::from_future_on) for all others.
    ///
    /// ```
    /// use millpond::future::Completable;
    ///
    /// let flour = Completable::<_, ()>::from_future(std::future::ready(7));
    /// assert_eq!(flour.join().unwrap(), 7);
    /// ```
    #[track_caller]
    pub fn from_future<Fut>(future: Fut) -> Self
    where
        Fut: Future<Output = T> + Send + 'static,
    {
        match DirectExecutor::new().spawn_future(future) {
            Ok(handle) => Completable::from_task(handle),
            Err(_) => unreachable!("this executor rejects nothing"),
        }
    }

    /// As [`from_future`](Completable::from_future), of a future with a result.
    ///
    /// ```
    /// use millpond::future::Completable;
    ///
    /// let none = Completable::<u32, _>::from_result_future(std::future::ready(Err("no wind")));
    /// assert_eq!(none.join().unwrap_err().error(), Some(&"no wind"));
    /// ```
    #[track_caller]
    pub fn from_result_future<Fut>(future: Fut) -> Self
    where
        Fut: Future<Output = Result<T, E>> + Send + 'static,
    {
        let location = Location::caller();
        Completable::<Result<T, E>, Infallible>::from_future(future).stage(
            location,
            |outcome, meta| {
                Next::Done(match outcome {
                    Ok(result) => result.map_err(|error| meta.error(Cause::Failed(error))),
                    Err(failure) => Err(failure.propagated().with_error(|never| match *never {})),
                })
            },
        )
    }
}

/// Completes a promise when a task ends.
struct TaskWatch<T, E>
where
    T: Send + 'static,
    E: Send + Sync + 'static,
{
    handle: Mutex<Option<TaskHandle<T>>>,
    promise: Promise<T, E>,
}

impl<T, E> TaskWatch<T, E>
where
    T: Send + 'static,
    E: Send + Sync + 'static,
{
    fn look(self: Arc<Self>, mut handle: TaskHandle<T>) {
        let waker = Waker::from(Arc::clone(&self));
        match handle.poll_end(&mut Context::from_waker(&waker)) {
            Poll::Ready(result) => self.settle(result),
            Poll::Pending => {
                *self.handle.lock() = Some(handle);
                // The wake may have come before the handle was there.
                let ended = self.handle.lock().take_if(|handle| handle.is_finished());
                if let Some(handle) = ended {
                    self.look(handle);
                }
            }
        }
    }

    fn settle(&self, result: Result<T, TaskError>) {
        let origin = self.promise.meta();
        let outcome = result.map_err(|error| {
            origin.error(match error {
                TaskError::Panicked(panic) => Cause::Panicked(StagePanic::new(panic)),
                TaskError::Cancelled(reason) => Cause::Cancelled(reason),
                _ => Cause::Abandoned,
            })
        });
        if let Err(unwanted) = self.promise.settle(outcome) {
            super::completable::discard(unwanted);
        }
    }
}

impl<T, E> Wake for TaskWatch<T, E>
where
    T: Send + 'static,
    E: Send + Sync + 'static,
{
    fn wake(self: Arc<Self>) {
        let handle = self.handle.lock().take();
        if let Some(handle) = handle {
            off_timer(move || self.look(handle));
        }
    }
}

impl<T: Send + 'static> From<TaskHandle<T>> for Completable<T> {
    fn from(handle: TaskHandle<T>) -> Self {
        Completable::from_task(handle)
    }
}

impl<T, E> Promise<T, E>
where
    T: Send + 'static,
    E: Send + Sync + 'static,
{
    fn meta(&self) -> &StageMeta {
        self.producer().meta()
    }
}
