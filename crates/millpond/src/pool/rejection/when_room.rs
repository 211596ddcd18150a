//! Waiting for room in async code: what [`RejectionPolicy::Block`](super::RejectionPolicy) does in threads, without a
//! thread.
//!
//! The future waits on the same list as threads do, in the order of arrival: that of the queue, which takes the task out
//! of the future when it is its turn, with room made by a worker or by a new capacity. It is on the list of the waiters
//! for room, too, for new limits and the end (POOL-2).
//!
//! # Invariants
//!
//! - **WHENROOM-1** A future that is dropped before it is ready has submitted nothing: it leaves the list, and a task that
//!   the queue has taken meanwhile is cancelled, which frees its place.
//! - **WHENROOM-2** A task that the queue has taken is rechecked (POOL-1), by the next poll or by the drop.

use super::apply::START_RETRY;
use super::counters::Resolution;
use crate::engine::{Identity, RemovesTasks};
use crate::executor::{RejectReason, Rejected, WaiterRegistration};
use crate::pool::ThreadPool;
use crate::queue::{Offered, WaitSlot, end_push_for_self};
use crate::task::{CancelReason, Task, TaskHandle, TaskSpec};
use crate::time::{Alarm, Deadline};
use millpond_raw::catch_panic;
use std::fmt;
use std::future::Future;
use std::marker::PhantomData;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

impl ThreadPool {
    /// Submits the closure when there is room for it. The future waits in the line of all that wait for room, and holds no
    /// thread meanwhile; the rejection policy is not asked.
    ///
    /// The future is cancel-safe: dropped before it is ready, it has submitted nothing. A task that got in at the last
    /// moment is cancelled then, unless it has started. [`into_closure`](SubmitWhenRoom::into_closure) gives the closure
    /// back, and [`timeout`](SubmitWhenRoom::timeout) limits the wait.
    ///
    /// # Errors
    ///
    /// The closure, if the pool is shut down, if a worker that is needed cannot be started, or if the time is up: then it
    /// is saturated.
    ///
    /// ```
    /// use millpond::executor::Lifecycle;
    /// use millpond::pool::{Queue, ThreadPool};
    /// # use std::{future::Future, pin::pin, task::{Context, Poll, Waker}};
    ///
    /// let pool = ThreadPool::builder("mill").max(1).queue(Queue::bounded(1)).build()?;
    /// let bread = async {
    ///     let flour = pool.submit_when_room(|| "flour").await?;
    ///     Ok::<_, Box<dyn std::error::Error>>(flour.await?.len())
    /// };
    /// # let mut bread = pin!(bread);
    /// # let bread = loop {
    /// #     let polled = bread.as_mut().poll(&mut Context::from_waker(Waker::noop()));
    /// #     match polled { Poll::Ready(bread) => break bread, Poll::Pending => std::thread::yield_now() }
    /// # };
    /// assert_eq!(bread?, 5); // bread.await?
    /// pool.close()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[track_caller]
    pub fn submit_when_room<F, T>(&self, f: F) -> SubmitWhenRoom<'_, F, T>
    where
        F: FnOnce() -> T + Send + 'static,
        T: Send + 'static,
    {
        self.submit_when_room_with(TaskSpec::new(), f)
    }

    /// As [`submit_when_room`](ThreadPool::submit_when_room), as the task that is described. If it has a deadline, and
    /// that passes while it waits, it is accepted when there is room, and dropped at its turn.
    ///
    /// ```
    /// use millpond::preset;
    /// use millpond::task::TaskSpec;
    ///
    /// let pool = preset::single("mill").build()?;
    /// let spec = TaskSpec::new().name("grind");
    /// let grind = pool.submit_when_room_with(spec, || "flour");
    /// drop(grind); // it was never polled: nothing is submitted
    /// assert_eq!(pool.snapshot().submitted, 0);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn submit_when_room_with<F, T>(&self, spec: TaskSpec, f: F) -> SubmitWhenRoom<'_, F, T>
    where
        F: FnOnce() -> T + Send + 'static,
        T: Send + 'static,
    {
        let (task, handle) = spec.clock_by_default(self.engine.clock.clone()).build(f);
        SubmitWhenRoom {
            waiter: RoomWaiter {
                pool: self,
                task: Some(task),
                line: None,
                deadline: Deadline::NEVER,
                alarm: None,
            },
            handle: Some(handle),
            _closure: PhantomData,
        }
    }
}

/// The future of [`ThreadPool::submit_when_room`].
#[must_use = "futures do nothing unless they are awaited"]
pub struct SubmitWhenRoom<'a, F, T> {
    waiter: RoomWaiter<'a>,
    /// Taken when it is ready.
    handle: Option<TaskHandle<T>>,
    _closure: PhantomData<fn() -> F>,
}

impl<F: 'static, T> SubmitWhenRoom<'_, F, T> {
    /// Waits no longer than this from now on, by the clock of the pool.
    ///
    /// ```
    /// # use std::{future::Future, pin::pin, task::{Context, Poll, Waker}};
    /// use millpond::executor::ExecutorExt;
    /// use millpond::pool::{Queue, ThreadPool};
    /// use std::{sync::mpsc, time::Duration};
    ///
    /// let pool = ThreadPool::builder("mill").max(1).queue(Queue::hand_off()).build()?;
    /// let (go, may_go) = mpsc::channel::<()>();
    /// pool.execute(move || while may_go.recv().is_ok() {})?;
    /// let late = async { pool.submit_when_room(|| "flour").timeout(Duration::ZERO).await };
    /// # let Poll::Ready(late) = pin!(late).poll(&mut Context::from_waker(Waker::noop())) else { panic!() };
    /// let rejected = late.unwrap_err(); // late.await
    /// assert!(rejected.reason.is_saturated());
    /// assert_eq!((rejected.task)(), "flour"); // the closure is back
    /// # drop(go);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn timeout(self, timeout: Duration) -> Self {
        let deadline = self.waiter.pool.engine.clock.deadline(timeout);
        self.deadline(deadline)
    }

    /// Waits no longer than until then, by the clock of the pool.
    pub fn deadline(mut self, deadline: Deadline) -> Self {
        self.waiter.deadline = deadline;
        self
    }

    /// Gives up, and returns the closure; `None` if the task has got in at the last moment and has started, or if the
    /// future was ready.
    ///
    /// ```
    /// use millpond::preset;
    ///
    /// let pool = preset::single("mill").build()?;
    /// let grind = pool.submit_when_room(|| "flour");
    /// assert_eq!(grind.into_closure().map(|grind| grind()), Some("flour"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn into_closure(mut self) -> Option<F> {
        let handle = self.handle.take()?;
        let task = self.waiter.end(&handle)?;
        task.reclaim(CancelReason::Requested).ok()
    }
}

// Nothing is pinned: the queue holds a waker, not a pointer into the future.
impl<F, T> Unpin for SubmitWhenRoom<'_, F, T> {}

impl<F: 'static, T> Future for SubmitWhenRoom<'_, F, T> {
    type Output = Result<TaskHandle<T>, Rejected<F>>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.get_mut();
        assert!(
            this.handle.is_some(),
            "a future that was ready is polled again"
        );
        let ended = match this.waiter.poll(context.waker()) {
            Poll::Pending => return Poll::Pending,
            Poll::Ready(ended) => ended,
        };
        let handle = this.handle.take();
        Poll::Ready(match (ended, handle) {
            (Ok(()), Some(handle)) => Ok(handle),
            (Ok(()), None) => unreachable!("it was there before"),
            (Err(rejected), _) => Err(rejected.reclaim()),
        })
    }
}

impl<F, T> Drop for SubmitWhenRoom<'_, F, T> {
    fn drop(&mut self) {
        if let Some(handle) = self.handle.take() {
            let task = self.waiter.end(&handle);
            if task.is_none() {
                // It has begun, or a queue of the user's has it.
                handle.cancel();
            }
        }
    }
}

impl<F, T> fmt::Debug for SubmitWhenRoom<'_, F, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SubmitWhenRoom")
            .field("pool", &self.waiter.pool)
            .field("is_waiting", &self.waiter.line.is_some())
            .finish_non_exhaustive()
    }
}

/// A task that waits for room.
struct RoomWaiter<'a> {
    pool: &'a ThreadPool,
    /// `None` when the queue has it, or when it is over.
    task: Option<Task>,
    /// `None` until it has found no room.
    line: Option<Line<'a>>,
    deadline: Deadline,
    alarm: Option<Alarm>,
}

/// The places where it waits.
struct Line<'a> {
    place: WaitSlot,
    registration: WaiterRegistration<'a>,
    identity: Identity,
    /// Why it was not admitted.
    reason: RejectReason,
    /// A worker could not be started: when to try again.
    retry_at: Option<Deadline>,
}

/// What a look has shown.
enum Look {
    In,
    Wait,
    /// It may be admitted now, or never.
    Changed,
    Never,
}

impl<'a> RoomWaiter<'a> {
    fn poll(&mut self, waker: &Waker) -> Poll<Result<(), Rejected<Task>>> {
        self.alarm = None;
        let clock = &self.pool.engine.clock;
        loop {
            if self.line.is_none() {
                if let Some(ended) = self.admit() {
                    return Poll::Ready(ended);
                }
            }
            let (look, retry_at) = self.look(waker);
            let is_late = self.deadline.has_passed(clock.now());
            if matches!(look, Look::Wait) && !is_late {
                let again = self.deadline.min(retry_at);
                self.alarm = Some(clock.alarm_for_future(again, waker));
                return Poll::Pending;
            }
            let Some(line) = self.leave() else { continue };
            let Some(task) = self.task.take() else {
                // POOL-1
                return Poll::Ready(self.recheck(line.identity));
            };
            match look {
                Look::Changed => self.task = Some(task),
                Look::Never => return Poll::Ready(self.give_back(task, line.reason)),
                Look::In | Look::Wait => {
                    let reason = self.pool.engine.saturation();
                    return Poll::Ready(self.give_back(task, reason));
                }
            }
        }
    }

    /// Tries at once, as every submit does. `None` if it has to wait.
    fn admit(&mut self) -> Option<Result<(), Rejected<Task>>> {
        let engine = &self.pool.engine;
        let task = self.task.take()?;
        if engine.is_forked() {
            return Some(Err(Rejected::new(task, RejectReason::Forked)));
        }
        let rejected = match engine.admit(task) {
            Ok(()) => return Some(Ok(())),
            Err(rejected) => engine.with_numbers(rejected),
        };
        // FIFO-9
        end_push_for_self();
        let Rejected { task, reason, .. } = rejected;
        task.detach();
        if !engine.may_find_room(&reason) {
            // The last worker may have left because of a shutdown.
            let reason = if engine.is_shut_down() {
                RejectReason::ShutDown
            } else {
                reason
            };
            return Some(self.give_back(task, reason));
        }
        engine.rare.waited_for_room.add(1);
        let tag = Some(engine.tombstones.tag());
        self.line = Some(Line {
            place: WaitSlot::default(),
            registration: WaiterRegistration::new(&engine.room_waiters),
            identity: Identity::give(&task, tag, &engine.timestamps),
            retry_at: (!reason.is_saturated()).then(|| engine.clock.deadline(START_RETRY)),
            reason,
        });
        self.task = Some(task);
        None
    }

    /// Looks for room, on both lists.
    fn look(&mut self, waker: &Waker) -> (Look, Deadline) {
        let engine = &self.pool.engine;
        let Some(line) = &mut self.line else {
            return (Look::Changed, Deadline::NEVER);
        };
        // Registered before the state and the limits are read: a change after that wakes us (POOL-2).
        line.registration.register(waker);
        let word = engine.ctl().read();
        let is_below_max = word.workers() < engine.config().limits().max();
        let retry_at = line.retry_at.filter(|_| is_below_max && word.workers() > 0);
        let may_start = is_below_max && retry_at.is_none_or(|at| at.has_passed(engine.clock.now()));
        if !word.is_running() || may_start {
            return (Look::Changed, Deadline::NEVER);
        }
        let offered = engine
            .queue
            .poll_offer(&mut self.task, &mut line.place, waker);
        let look = match offered {
            Offered::In => Look::In,
            Offered::Wait => Look::Wait,
            Offered::Never(_) => Look::Never,
        };
        (look, retry_at.unwrap_or(Deadline::NEVER))
    }

    /// Leaves both lists. Afterwards the queue has the task, or it is back.
    fn leave(&mut self) -> Option<Line<'a>> {
        let mut line = self.line.take()?;
        let queue = &self.pool.engine.queue;
        // The queue may be the user's, and panic.
        let _ = catch_panic::call(|| queue.leave_offer(&mut self.task, &mut line.place));
        Some(line)
    }

    /// WHENROOM-2
    fn recheck(&self, identity: Identity) -> Result<(), Rejected<Task>> {
        match self.pool.engine.recheck(identity) {
            Ok(()) => Ok(()),
            Err(rejected) => self.give_back(rejected.task, rejected.reason),
        }
    }

    fn give_back(&self, task: Task, reason: RejectReason) -> Result<(), Rejected<Task>> {
        task.detach();
        let engine = &self.pool.engine;
        engine.count_rejection(&task, Resolution::GivenBack);
        Err(Rejected::new(task, reason))
    }

    /// The future is given up before it was ready (WHENROOM-1). Returns the task, if it has not begun.
    fn end<T>(&mut self, handle: &TaskHandle<T>) -> Option<Task> {
        self.alarm = None;
        let engine = &self.pool.engine;
        let Some(line) = self.leave() else {
            // It was never polled.
            return self.task.take();
        };
        if let Some(task) = self.task.take() {
            return self
                .give_back(task, line.reason)
                .err()
                .map(|rejected| rejected.task);
        }
        if let Err(rejected) = self.recheck(line.identity) {
            return Some(rejected.task);
        }
        let address = handle.address();
        engine
            .take_back_where(&mut |task| task.address() == address)
            .pop()
    }
}
