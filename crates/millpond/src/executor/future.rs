//! Futures on an executor that knows nothing of futures.
//!
//! ```text
//!           spawn                    wake                      ready
//!   idle ----------> scheduled ---> polling ---> idle ...  --------------> over
//!                        ^             |  wake while polling: scheduled again at once
//!                        +-------------+
//! ```
//!
//! Every wake brings one task to the executor, which polls once; wakes that come before it does are
//! one. The value is delivered by a task of its own that is run in place when the future is ready,
//! so the caller holds an ordinary [`TaskHandle`]: it can be joined, awaited, cancelled.
//!
//! # Rules
//!
//! - **P1** The future is polled by one at a time: whoever moved the stage to POLLING has it in
//!   hand, out of the lock. So no user's code runs under the lock.
//! - **P2** When the handle is cancelled the future is dropped: at once if it is idle, else by
//!   whoever polls it.
//! - **P3** When the executor refuses a later poll, nobody is there to be given anything back: the
//!   future is dropped and the handle cancelled, as refused.
//! - **P4** A poll that is woken meanwhile brings the next one. If the executor runs that in its
//!   caller, which is inside the first, the second only says so and the first goes on in a loop:
//!   the stack does not grow with the number of wakes.

use super::dropped::{self, why_dropped};
use super::error::{NotTaken, Rejected};
use super::traits::Executor;
use super::watched::Watched;
use crate::task::{CancelReason, Task, TaskHandle, TaskSpec};
use crate::time::{Clock, Deadline, Owner, Work, aside, is_timer_thread, let_go};
use millpond_raw::park::Site;
use millpond_raw::quiet;
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
    /// Each wake of the future brings a task to the executor. If one of them is refused, the future
    /// is dropped and its handle cancelled; so this wants an executor with room, one that
    /// refuses nothing but after its shutdown.
    ///
    /// # Errors
    ///
    /// The future, if its first poll is refused.
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
    /// That of the handle that it was spawned by: an executor that does not know what its handles have in common
    /// has at least that for all that it spawns.
    address: usize,
    inner: Watched<Inner<Fut>>,
    /// What the polls are: the name and the place of the spawn.
    spec: TaskSpec,
}

struct Inner<Fut: Future> {
    stage: Stage,
    future: Held<Fut>,
    /// Completes the handle; and where it finds what to complete it with.
    deliver: Option<Task>,
    output: Option<Caught<Fut::Output>>,
    hand: Hand,
}

/// P4: how a poll comes back from an executor that runs it in its caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Hand {
    Empty,
    /// This thread brings a poll to the executor, out of a poll.
    Bringing(ThreadId),
    /// The executor gave it back to be run right there.
    BroughtBack(ThreadId),
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
    /// Not polled yet: it can be given back.
    Fresh(Fut),
    Pinned(Pin<Box<Fut>>),
    /// Somebody has it in hand, or it is gone.
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
        address: executor.address(),
        inner: Watched::new(Inner {
            stage: Stage::Scheduled,
            future: Held::Fresh(future),
            deliver: None,
            output: None,
            hand: Hand::Empty,
        }),
        spec: spec.clone(),
    });
    let wanted = Wanted(Arc::downgrade(&driver));
    let (deliver, handle) = spec.build(move || wanted.collect());
    driver.inner.with(|inner| inner.deliver = Some(deliver));
    let poll = driver.poll_task();
    user_code::check(Kind::Executor);
    match driver.executor.execute(poll) {
        Ok(()) => Ok(handle),
        Err(Rejected { task, reason, .. }) => {
            let held = driver.inner.with(|inner| {
                inner.stage = Stage::Over;
                inner.future.take()
            });
            drop((task, handle));
            match held {
                Held::Fresh(future) => Err(Rejected::new(future, reason)),
                _ => panic!("an executor that refuses a task must not have run it"),
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
        match self
            .inner
            .with(|inner| matches!(inner.future, Held::Fresh(_)))
        {
            // The deadline is for the start of the future.
            true => spec
                .inherit_deadline()
                .build_detached(move || polled.poll()),
            // A poll that is late is still a poll: what has begun is not given up because it comes by again.
            false => spec
                .deadline(Deadline::NEVER)
                .build_kept(move || polled.poll()),
        }
    }

    /// Brings a poll to the executor; P3 if it is refused. Whoever calls this has moved the stage
    /// to SCHEDULED.
    fn schedule(self: &Arc<Self>) {
        let poll = self.poll_task();
        if !is_timer_thread() {
            return self.bring(poll);
        }
        // Others wait for this thread: it neither waits for room, nor polls, nor drops a future.
        let answer = quiet::call(|| self.executor.try_execute(poll));
        let Some(Err(not_taken)) = answer else {
            return;
        };
        let poll = match not_taken {
            NotTaken::NotAtOnce(poll) => poll,
            NotTaken::Refused(refused) => refused.task,
        };
        let own = Arc::clone(self);
        aside(Owner::at(self.address, Work::Bring), move || {
            own.bring(poll);
        });
    }

    fn bring(&self, poll: Task) {
        // A panic of the executor is a refusal, too: the drop of the poll sees to it.
        user_code::check(Kind::Executor);
        let answer = quiet::call(|| self.executor.execute(poll));
        if let Some(Err(refused)) = answer {
            self.give_up(CancelReason::Refused);
            drop(refused);
        }
    }

    /// Takes the future in hand, if there is something to poll.
    fn begin(&self) -> Option<Pin<Box<Fut>>> {
        let here = thread::current().id();
        let held = self.inner.with(|inner| {
            if inner.hand == Hand::Bringing(here) {
                inner.hand = Hand::BroughtBack(here);
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

    /// Whether somebody has a handle to it, or had and has cancelled it.
    fn has_listener(&self) -> bool {
        let has_handle = |task: &Task| task.others() > 0;
        self.inner.with(|inner| {
            inner.stage == Stage::Over || inner.deliver.as_ref().is_some_and(has_handle)
        })
    }

    fn is_too_late(&self) -> bool {
        self.inner.with(|inner| {
            matches!(inner.future, Held::Fresh(_))
                && inner.deliver.as_ref().is_some_and(Task::is_expired)
        })
    }

    fn run(self: &Arc<Self>) {
        if self.is_too_late() {
            return self.give_up(CancelReason::Expired);
        }
        let waker = Waker::from(Arc::clone(self));
        while let Some(mut future) = self.begin() {
            user_code::check(Kind::Future);
            let polled = catch_unwind(AssertUnwindSafe(|| {
                future.as_mut().poll(&mut Context::from_waker(&waker))
            }));
            match polled {
                Ok(Poll::Pending) => {
                    if !self.rest(future) {
                        return;
                    }
                }
                Ok(Poll::Ready(output)) => return self.finish(future, Ok(output)),
                Err(payload) => return self.finish(future, Err(payload)),
            }
        }
    }

    fn finish(&self, future: Pin<Box<Fut>>, output: Caught<Fut::Output>) {
        // The future goes first: who sees its output may count on that.
        quiet::drop(future);
        let deliver = self.inner.change(|inner| {
            inner.stage = Stage::Over;
            inner.output = Some(output);
            inner.deliver.take()
        });
        // Cancelled meanwhile, it does nothing, and the output goes with the driver.
        quiet::drop(deliver.map(Task::run));
    }

    /// Puts a future back that was not ready. Returns whether it is to be polled here again (P4).
    fn rest(self: &Arc<Self>, future: Pin<Box<Fut>>) -> bool {
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
                inner.hand = Hand::Bringing(here);
            }
            again
        });
        // P2: still here, so it was cancelled while it was in our hands.
        quiet::drop(future);
        if !again {
            return false;
        }
        self.schedule();
        self.inner.with(|inner| {
            let back = inner.hand == Hand::BroughtBack(here);
            if back || inner.hand == Hand::Bringing(here) {
                inner.hand = Hand::Empty;
            }
            back
        })
    }

    /// Ends it without an output: P2, P3.
    fn give_up(&self, reason: CancelReason) {
        let (held, deliver) = self.inner.change(|inner| {
            inner.stage = Stage::Over;
            (inner.future.take(), inner.deliver.take())
        });
        quiet::drop(held);
        if let Some(deliver) = deliver {
            // Also if it is joined in place, and waits there for an output that does not come.
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
        let_go(Owner::at(self.address, Work::Drop), self);
    }
}

/// A poll on its way. One that an executor drops unrun cancels the handle: nobody waits for ever.
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
            dropped::has_listener(self.driver.has_listener());
            self.driver.give_up(why_dropped());
        }
    }
}

/// What the delivering task is made of. Dropped unrun it tells the driver that nobody wants the
/// output.
struct Wanted<Fut, E>(Weak<Driver<Fut, E>>)
where
    E: Executor + 'static,
    Fut: Future + Send + 'static,
    Fut::Output: Send + 'static;

impl<Fut, E> Wanted<Fut, E>
where
    E: Executor + 'static,
    Fut: Future + Send + 'static,
    Fut::Output: Send + 'static,
{
    /// The output. It is there, unless the handle's owner runs the task in place
    /// (`join_here`): then this waits for it.
    fn collect(mut self) -> Fut::Output {
        let driver = std::mem::take(&mut self.0).upgrade();
        let output = driver.and_then(|driver| {
            let site = Site::new("future.join_here");
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
            // Given up: the handle is cancelled, and nobody will see this.
            None => resume_unwind(Box::new("the future was dropped before it was ready")),
        }
    }
}

impl<Fut, E> Drop for Wanted<Fut, E>
where
    E: Executor + 'static,
    Fut: Future + Send + 'static,
    Fut::Output: Send + 'static,
{
    fn drop(&mut self) {
        if let Some(driver) = self.0.upgrade() {
            driver.give_up(CancelReason::Requested);
        }
    }
}
