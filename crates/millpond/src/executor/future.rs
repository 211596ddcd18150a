//! Futures on an executor that knows nothing of futures.
//!
//! ```text
//!           spawn                    wake                      ready
//!   idle ----------> scheduled ---> polling ---> idle ...  --------------> over
//!                        ^             |  wake while polling: scheduled again at once
//!                        +-------------+
//! ```
//!
//! Every wake submits one task to the executor, which polls once; wakes before that poll are merged. The value is
//! delivered by a task of its own that is run inline when the future is ready, so the caller has an ordinary
//! [`TaskHandle`]: it can be joined, awaited, cancelled.
//!
//! # Rules
//!
//! - **FUTURE-1** One thread at a time polls the future: the thread that has moved the stage to POLLING owns it, outside
//!   the lock. So no user code runs under the lock.
//! - **FUTURE-2** When the handle is cancelled the future is dropped: at once if it is idle, else by the polling thread.
//! - **FUTURE-3** When the executor rejects a later poll, there is no caller to give anything back to: the future is
//!   dropped and the handle cancelled, as rejected.
//! - **FUTURE-4** A poll that is woken meanwhile submits the next one. If the executor runs that in its caller, which is
//!   inside the first poll, the second only records it and the first goes on in a loop: the stack does not grow with the
//!   number of wakes.

use super::dropped::{self, why_dropped};
use super::error::{Rejected, TryExecuteError};
use super::traits::Executor;
use super::waitable::Waitable;
use crate::task::{CancelReason, Task, TaskHandle, TaskSpec};
use crate::time::{Clock, Deadline, Owner, Work, drop_off_timer, is_timer_thread, run_off_timer};
use millpond_raw::catch_panic;
use millpond_raw::park::Site;
use millpond_raw::user_code::{self, Kind};
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::pin::Pin;
use std::sync::{Arc, Weak};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Result as Caught, ThreadId};

/// Drives futures on any executor that can be cloned, such as `Arc<dyn Executor>`.
pub trait SpawnFuture: Executor + Clone + Sized + 'static {
    /// Polls the future on this executor until it is ready, and returns the handle to its output.
    ///
    /// Each wake of the future submits a task to the executor. If one of them is rejected, the future is dropped and its
    /// handle cancelled; so use an executor that rejects nothing before its shutdown.
    ///
    /// # Errors
    ///
    /// The future, if its first poll is rejected.
    ///
    /// ```
    /// use millpond::executor::{DirectExecutor, SpawnFuture};
    /// use millpond::task;
    ///
    /// let (mill, flour) = task::new(|| "flour");
    /// let bread = DirectExecutor::new().spawn_future(async { flour.await.unwrap().len() })?;
    /// assert!(!bread.is_finished());
    /// mill.run();
    /// assert_eq!(bread.join()?, 5);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[track_caller]
    fn spawn_future<Fut>(&self, future: Fut) -> Result<TaskHandle<Fut::Output>, Rejected<Fut>>
    where
        Fut: Future + Send + 'static,
        Fut::Output: Send + 'static,
    {
        let spec = TaskSpec::new().clock_by_default(self.clock());
        spawn(self, spec, future)
    }
}

impl<E: Executor + Clone + 'static> SpawnFuture for E {}

struct Driver<Fut: Future, E> {
    executor: E,
    /// The address of the executor, or of the handle to it that the future was spawned by.
    address: usize,
    inner: Waitable<Inner<Fut>>,
    /// The description of the polls: name and source location of the spawn.
    spec: TaskSpec,
}

struct Inner<Fut: Future> {
    stage: Stage,
    future: Held<Fut>,
    /// Completes the handle with `output`.
    deliver: Option<Task>,
    output: Option<Caught<Fut::Output>>,
    resubmission: Resubmission,
}

/// FUTURE-4: detects an executor that runs a poll in its caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Resubmission {
    None,
    /// This thread submits a poll from inside a poll.
    Submitting(ThreadId),
    /// The executor ran that poll on this very thread.
    RanInCaller(ThreadId),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Idle,
    Scheduled,
    Polling,
    /// Woken while it was polled.
    PollAgain,
    Over,
}

enum Held<Fut> {
    /// Not polled yet, so it can be returned.
    Fresh(Fut),
    Pinned(Pin<Box<Fut>>),
    /// A thread is polling it, or it is gone.
    Away,
}

impl<Fut> Held<Fut> {
    fn take(&mut self) -> Self {
        std::mem::replace(self, Held::Away)
    }
}

pub(super) fn spawn<E, Fut>(
    executor: &E,
    spec: TaskSpec,
    future: Fut,
) -> Result<TaskHandle<Fut::Output>, Rejected<Fut>>
where
    E: Executor + Clone + 'static,
    Fut: Future + Send + 'static,
    Fut::Output: Send + 'static,
{
    let driver = Arc::new(Driver {
        executor: executor.clone(),
        address: executor.internals().address(),
        inner: Waitable::new(Inner {
            stage: Stage::Scheduled,
            future: Held::Fresh(future),
            deliver: None,
            output: None,
            resubmission: Resubmission::None,
        }),
        spec: spec.clone(),
    });
    let delivery = Delivery(Arc::downgrade(&driver));
    let (deliver, handle) = spec.build(move || delivery.collect());
    driver.inner.with(|inner| inner.deliver = Some(deliver));
    let poll = driver.poll_task();
    user_code::check(Kind::Executor);
    match driver.executor.execute_task(poll) {
        Ok(()) => Ok(handle),
        Err(Rejected { task, reason, .. }) => {
            let held = driver.inner.with(|inner| {
                inner.stage = Stage::Over;
                inner.future.take()
            });
            drop((task, handle));
            match held {
                Held::Fresh(future) => Err(Rejected::new(future, reason)),
                _ => panic!("an executor that rejects a task must not have run it"),
            }
        }
    }
}

impl<Fut, E> Driver<Fut, E>
where
    E: Executor + 'static,
    Fut: Future + Send + 'static,
    Fut::Output: Send + 'static,
{
    fn poll_task(self: &Arc<Self>) -> Task {
        let polled = Polled {
            driver: Arc::clone(self),
            done: false,
        };
        let spec = self.spec.clone();
        let is_first = self
            .inner
            .with(|inner| matches!(inner.future, Held::Fresh(_)));
        if is_first {
            // The deadline is for the start of the future.
            spec.inherit_deadline()
                .build_detached(move || polled.poll())
        } else {
            // A future that has started is neither expired nor shed; but it ends at its `finish_by`.
            spec.deadline(Deadline::NEVER)
                .build_kept(move || polled.poll())
        }
    }

    /// Submits a poll to the executor (FUTURE-3). The caller has moved the stage to SCHEDULED.
    fn schedule(self: &Arc<Self>) {
        let poll = self.poll_task();
        if !is_timer_thread() {
            return self.submit(poll);
        }
        // The timer's thread serves others: it neither waits for room, nor polls, nor drops a future.
        let answer = catch_panic::call(|| self.executor.try_execute_task(poll));
        let Some(Err(error)) = answer else {
            return;
        };
        let poll = match error {
            TryExecuteError::WouldBlock(poll) => poll,
            TryExecuteError::Rejected(rejected) => rejected.task,
        };
        let own = Arc::clone(self);
        run_off_timer(Owner::at(self.address, Work::Submit), move || {
            own.submit(poll);
        });
    }

    fn submit(&self, poll: Task) {
        // A panic of the executor drops the poll, which cancels the handle.
        user_code::check(Kind::Executor);
        let answer = catch_panic::call(|| self.executor.execute_task(poll));
        if let Some(Err(rejected)) = answer {
            self.cancel(CancelReason::Rejected);
            drop(rejected);
        }
    }

    /// Takes the future, if there is something to poll.
    fn begin(&self) -> Option<Pin<Box<Fut>>> {
        let here = thread::current().id();
        let held = self.inner.with(|inner| {
            if inner.resubmission == Resubmission::Submitting(here) {
                inner.resubmission = Resubmission::RanInCaller(here);
                return Held::Away;
            }
            if inner.stage != Stage::Scheduled {
                return Held::Away;
            }
            inner.stage = Stage::Polling;
            inner.future.take()
        });
        match held {
            Held::Fresh(future) => Some(Box::pin(future)),
            Held::Pinned(future) => Some(future),
            Held::Away => None,
        }
    }

    /// Whether there is a handle, or was one that has cancelled the future.
    fn has_listener(&self) -> bool {
        let has_handle = |task: &Task| task.others() > 0;
        self.inner.with(|inner| {
            inner.stage == Stage::Over || inner.deliver.as_ref().is_some_and(has_handle)
        })
    }

    /// Why it is not to be polled for the first time any more.
    fn expiry(&self) -> Option<CancelReason> {
        self.inner.with(|inner| match inner.future {
            Held::Fresh(_) => inner.deliver.as_ref()?.expiry(),
            Held::Pinned(_) | Held::Away => None,
        })
    }

    fn run(self: &Arc<Self>) {
        if let Some(reason) = self.expiry() {
            return self.cancel(reason);
        }
        let waker = Waker::from(Arc::clone(self));
        while let Some(mut future) = self.begin() {
            user_code::check(Kind::Future);
            let polled = catch_unwind(AssertUnwindSafe(|| {
                future.as_mut().poll(&mut Context::from_waker(&waker))
            }));
            match polled {
                Ok(Poll::Pending) => {
                    if !self.put_back(future) {
                        return;
                    }
                }
                Ok(Poll::Ready(output)) => return self.finish(future, Ok(output)),
                Err(payload) => return self.finish(future, Err(payload)),
            }
        }
    }

    fn finish(&self, future: Pin<Box<Fut>>, output: Caught<Fut::Output>) {
        // The future is dropped before its output is visible.
        catch_panic::drop(future);
        let deliver = self.inner.change(|inner| {
            inner.stage = Stage::Over;
            inner.output = Some(output);
            inner.deliver.take()
        });
        // If it was cancelled meanwhile it does nothing, and the output is dropped with the driver.
        catch_panic::drop(deliver.map(Task::run));
    }

    /// Puts a future back that was not ready. Returns whether to poll it again here (FUTURE-4).
    fn put_back(self: &Arc<Self>, future: Pin<Box<Fut>>) -> bool {
        let here = thread::current().id();
        let mut future = Some(future);
        let again = self.inner.with(|inner| {
            if inner.stage == Stage::Over {
                return false;
            }
            inner.future = future.take().map_or(Held::Away, Held::Pinned);
            let again = inner.stage == Stage::PollAgain;
            inner.stage = if again { Stage::Scheduled } else { Stage::Idle };
            if again {
                inner.resubmission = Resubmission::Submitting(here);
            }
            again
        });
        // FUTURE-2: still here, so it was cancelled while it was polled.
        catch_panic::drop(future);
        if !again {
            return false;
        }
        self.schedule();
        self.inner.with(|inner| {
            let ran = inner.resubmission == Resubmission::RanInCaller(here);
            if ran || inner.resubmission == Resubmission::Submitting(here) {
                inner.resubmission = Resubmission::None;
            }
            ran
        })
    }

    /// Ends it without an output (FUTURE-2, FUTURE-3).
    fn cancel(&self, reason: CancelReason) {
        let (held, deliver) = self.inner.change(|inner| {
            inner.stage = Stage::Over;
            (inner.future.take(), inner.deliver.take())
        });
        catch_panic::drop(held);
        if let Some(deliver) = deliver {
            // Also if it is joined inline, and waits there for an output that will not come.
            deliver.cancel_even_if_run(reason);
        }
    }
}

impl<Fut, E> Wake for Driver<Fut, E>
where
    E: Executor + 'static,
    Fut: Future + Send + 'static,
    Fut::Output: Send + 'static,
{
    fn wake(self: Arc<Self>) {
        let schedule = self.inner.with(|inner| match inner.stage {
            Stage::Idle => {
                inner.stage = Stage::Scheduled;
                true
            }
            Stage::Polling => {
                inner.stage = Stage::PollAgain;
                false
            }
            Stage::Scheduled | Stage::PollAgain | Stage::Over => false,
        });
        if schedule {
            self.schedule();
        }
        drop_off_timer(Owner::at(self.address, Work::Drop), self);
    }
}

/// A submitted poll. If the executor drops it unrun it cancels the handle, so that no caller waits for ever.
struct Polled<Fut, E>
where
    E: Executor + 'static,
    Fut: Future + Send + 'static,
    Fut::Output: Send + 'static,
{
    driver: Arc<Driver<Fut, E>>,
    done: bool,
}

impl<Fut, E> Polled<Fut, E>
where
    E: Executor + 'static,
    Fut: Future + Send + 'static,
    Fut::Output: Send + 'static,
{
    fn poll(mut self) {
        self.done = true;
        self.driver.run();
    }
}

impl<Fut, E> Drop for Polled<Fut, E>
where
    E: Executor + 'static,
    Fut: Future + Send + 'static,
    Fut::Output: Send + 'static,
{
    fn drop(&mut self) {
        if !self.done {
            dropped::set_listener(self.driver.has_listener());
            self.driver.cancel(why_dropped());
        }
    }
}

/// The body of the delivering task. Dropped unrun, it tells the driver that the output is not wanted.
struct Delivery<Fut, E>(Weak<Driver<Fut, E>>)
where
    E: Executor + 'static,
    Fut: Future + Send + 'static,
    Fut::Output: Send + 'static;

impl<Fut, E> Delivery<Fut, E>
where
    E: Executor + 'static,
    Fut: Future + Send + 'static,
    Fut::Output: Send + 'static,
{
    /// The output. If the owner of the handle runs the task inline (`run_or_join`), this waits for it.
    fn collect(mut self) -> Fut::Output {
        let driver = std::mem::take(&mut self.0).upgrade();
        let output = driver.and_then(|driver| {
            let site = Site::new("future.run_or_join");
            let waited = driver
                .inner
                .wait(site, &Clock::system(), Deadline::NEVER, |inner| {
                    (inner.stage == Stage::Over).then(|| inner.output.take())
                });
            waited.ok().flatten()
        });
        match output {
            Some(Ok(output)) => output,
            Some(Err(payload)) => resume_unwind(payload),
            // The handle is cancelled, so this panic is not seen.
            None => resume_unwind(Box::new("the future was dropped before it was ready")),
        }
    }
}

impl<Fut, E> Drop for Delivery<Fut, E>
where
    E: Executor + 'static,
    Fut: Future + Send + 'static,
    Fut::Output: Send + 'static,
{
    fn drop(&mut self) {
        if let Some(driver) = self.0.upgrade() {
            driver.cancel(CancelReason::Requested);
        }
    }
}
