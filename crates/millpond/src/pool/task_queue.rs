//! Where tasks wait for a worker: the queue that the user chose, behind the few calls that a pool makes of it.
//!
//! Workers wait *in* the queue, as consumers of it, and a submitter that enqueues a task wakes one there. So every flavor
//! works with its own semantics, hand-off and delay too, and the protocol of sleeping and waking is written and checked
//! once, in [`crate::queue`].
//!
//! # The seal
//!
//! A task that enters the queue unnoticed by a shutdown would wait there for ever. Java lets it in, checks
//! again, and takes it out. The plain flavors, and the one by priority, are *sealed* instead: under the queue's own lock,
//! before the state of the pool changes.
//!
//! - **SEAL-1** A queue of ours that holds tasks is sealed before the control word leaves RUNNING. So a thread that reads
//!   a later state and then finds the queue empty knows that it stays empty.
//! - **SEAL-2** A hand-off holds nothing: what it accepts a worker has.
//! - **SEAL-3** Any other queue cannot be sealed. A submitter reads the state again after it has enqueued, and takes that
//!   very task out if it is too late; see `PoolEngine::take_back`.
//!
//! # Orderings
//!
//! - `[E-queue]` One thread changes the control word and then looks into the queue. Another enqueues a task and then
//!   reads the word. One of them sees the other. Our own queues need nothing for that: both threads take the queue's
//!   lock, and the second one sees what the first did before. A user's queue may be made of anything, so both threads
//!   have a fence before their look; the other fence is in `PoolEngine::take_back_if_late`.
//! - `[E-stay]` A worker that stays for a task has the same fence before its last look. It is explained in
//!   [`super::engine`].

use crate::interrupt;
use crate::manage::{Invalid, OverloadOrder};
use crate::queue::{
    BlockingQueue, CapacityError, FifoQueue, HandOffQueue, Offered, PriorityQueue, QueueHint,
    Taken, WaitSlot,
};
use crate::task::Task;
use crate::time::Clock;
use millpond_raw::catch_panic;
use millpond_raw::sync::atomic::{Ordering, fence};
use millpond_raw::user_code::{self, Kind};
use std::cmp::Ordering as CmpOrdering;
use std::fmt;
use std::ops::ControlFlow;
use std::task::Waker;
use std::time::Duration;

/// The queue of a pool.
///
/// ```
/// use millpond::pool::{Queue, ThreadPool};
/// use millpond::queue::PriorityQueue;
///
/// // What is due first goes first.
/// let by_deadline = PriorityQueue::by(|one: &millpond::task::Task, other: &_| {
///     one.deadline().cmp(&other.deadline())
/// });
/// let pool = ThreadPool::builder("mill").queue(Queue::custom(by_deadline)).build()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Queue {
    choice: Choice,
}

#[derive(Debug)]
enum Choice {
    Bounded(usize),
    Unbounded,
    HandOff,
    ByPriority {
        capacity: usize,
        per_level: Duration,
    },
    Custom(Box<dyn BlockingQueue<Task>>),
}

impl Queue {
    /// At most `capacity` tasks wait, first in, first out. The capacity can change while the pool
    /// runs.
    ///
    /// ```
    /// use millpond::pool::{Queue, ThreadPool};
    ///
    /// let pool = ThreadPool::builder("mill").queue(Queue::bounded(50)).build()?;
    /// assert_eq!(pool.capacity(), Some(50));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[doc(alias = "ArrayBlockingQueue")]
    pub fn bounded(capacity: usize) -> Self {
        Queue {
            choice: Choice::Bounded(capacity),
        }
    }

    /// Any number of tasks wait, as long as there is memory: nothing ever pushes back, and no worker
    /// beyond the core is ever started.
    ///
    /// ```
    /// use millpond::pool::{Queue, ThreadPool};
    ///
    /// let pool = ThreadPool::builder("mill").queue(Queue::unbounded()).build()?;
    /// assert_eq!(pool.capacity(), None);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[doc(alias = "LinkedBlockingQueue")]
    pub fn unbounded() -> Self {
        Queue {
            choice: Choice::Unbounded,
        }
    }

    /// No task waits: it is handed to a worker that is idle now, or a worker is started for it, or it
    /// is rejected.
    ///
    /// ```
    /// use millpond::executor::{ExecutorExt, Lifecycle};
    /// use millpond::pool::{Queue, ThreadPool};
    /// use std::sync::mpsc;
    ///
    /// let pool = ThreadPool::builder("mill").core(0).max(1).queue(Queue::hand_off()).build()?;
    /// let (say, hear) = mpsc::channel::<()>();
    /// let busy = pool.submit(move || hear.recv().is_err())?;
    /// let rejected = pool.submit(|| "flour").unwrap_err();
    /// assert_eq!((rejected.task)(), "flour", "the closure comes back");
    /// drop(say);
    /// assert!(busy.join()?);
    /// pool.close()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[doc(alias = "SynchronousQueue")]
    pub fn hand_off() -> Self {
        Queue {
            choice: Choice::HandOff,
        }
    }

    /// At most `capacity` tasks wait, the most urgent first ([`TaskSpec::priority`]), and those that are
    /// as urgent in the order in which they came. The capacity can change while the pool runs.
    ///
    /// No task starves: a task of level `n` (high 0, normal 1, low 2) is overtaken by what is more
    /// urgent and comes in within the next `n * per_level`, and by nothing that comes later. So when it
    /// has waited for that long, at most `capacity - 1` tasks go before it, whatever else comes.
    ///
    /// A `per_level` about as long as an urgent task may have to wait is a good start; with 0 priorities
    /// mean nothing. Where low ones may starve, use a [`PriorityQueue`] without aging as a
    /// [custom queue](Queue::custom).
    ///
    /// ```
    /// use millpond::executor::ExecutorExt;
    /// use millpond::pool::{Queue, ThreadPool};
    /// use millpond::task::{Priority, TaskSpec};
    /// use std::time::Duration;
    ///
    /// let queue = Queue::by_priority(100, Duration::from_millis(500));
    /// let pool = ThreadPool::builder("mill").queue(queue).build()?;
    /// let report = pool.submit_with(TaskSpec::new().priority(Priority::Low), || "report")?;
    /// let order = pool.submit_with(TaskSpec::new().priority(Priority::High), || "order")?;
    /// # (report.join()?, order.join()?);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// As with queues of your own, a task that starts a worker goes straight to it.
    ///
    /// [`TaskSpec::priority`]: crate::task::TaskSpec::priority
    #[doc(alias = "PriorityBlockingQueue")]
    pub fn by_priority(capacity: usize, per_level: Duration) -> Self {
        Queue {
            choice: Choice::ByPriority {
                capacity,
                per_level,
            },
        }
    }

    /// A queue of the caller's: any flavor of [`crate::queue`], or one of its own.
    ///
    /// Workers are consumers of it. Comparators of it compare [`Task`]s. A task that starts a worker, below
    /// the core or because the queue is full, goes straight to that worker and never sees the queue:
    /// where its order or its delays must hold for every task, use a core of 0, or start the core ahead.
    ///
    /// ```
    /// use millpond::executor::{ExecutorExt, Lifecycle};
    /// use millpond::pool::{Queue, ThreadPool};
    /// use millpond::queue::FifoQueue;
    ///
    /// let queue = Queue::custom(FifoQueue::bounded(10)?);
    /// let pool = ThreadPool::builder("mill").core(1).queue(queue).build()?;
    /// assert_eq!(pool.submit(|| "flour")?.join()?, "flour");
    /// pool.close()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn custom(queue: impl BlockingQueue<Task> + 'static) -> Self {
        Queue {
            choice: Choice::Custom(Box::new(queue)),
        }
    }

    pub(super) fn build(self, clock: &Clock) -> Result<TaskQueue, CapacityError> {
        Ok(match self.choice {
            Choice::Bounded(capacity) => plain(FifoQueue::bounded_growing(capacity)?, clock),
            Choice::Unbounded => plain(FifoQueue::unbounded(), clock),
            Choice::HandOff => TaskQueue::HandOff(HandOffQueue::unfair().with_clock(clock.clone())),
            Choice::ByPriority {
                capacity,
                per_level,
            } => {
                let queue = PriorityQueue::by(|_: &Task, _: &Task| CmpOrdering::Equal)
                    .aging(per_level, |task| task.priority().level());
                TaskQueue::Sorted(queue.with_clock(clock.clone()).with_bound(capacity)?)
            }
            Choice::Custom(queue) => TaskQueue::Other(queue),
        })
    }
}

fn plain(queue: FifoQueue<Task>, clock: &Clock) -> TaskQueue {
    TaskQueue::Plain(queue.with_clock(clock.clone()).throttle_wakeups())
}

/// The queue of a pool.
#[allow(
    clippy::large_enum_variant,
    reason = "one per pool, and the common one is reached without another pointer"
)]
pub(super) enum TaskQueue {
    Plain(FifoQueue<Task>),
    HandOff(HandOffQueue<Task>),
    /// By priority, with aging.
    Sorted(PriorityQueue<Task>),
    Other(Box<dyn BlockingQueue<Task>>),
}

impl TaskQueue {
    fn queue(&self) -> &dyn BlockingQueue<Task> {
        match self {
            TaskQueue::Plain(queue) => queue,
            TaskQueue::HandOff(queue) => queue,
            TaskQueue::Sorted(queue) => queue,
            TaskQueue::Other(queue) => {
                user_code::check(Kind::Queue);
                &**queue
            }
        }
    }

    /// Calls it. What waits in a queue of ours is a thread, a worker or a submitter, and its waker is our parker's: such a
    /// queue may be called under a lock of the pool. One of the user's may not (POOL-4).
    fn call<R>(&self, f: impl FnOnce(&dyn BlockingQueue<Task>) -> R) -> R {
        if self.is_foreign() {
            f(self.queue())
        } else {
            user_code::except_locks(|| f(self.queue()))
        }
    }

    /// Whether it is the user's own: a task can enter it unnoticed by a shutdown (SEAL-3), and any call of it may
    /// panic.
    #[inline]
    pub(super) fn is_foreign(&self) -> bool {
        matches!(self, TaskQueue::Other(_))
    }

    /// Whether it keeps tasks until their time has come. If a queue of the user's panics this is unknown, and its tasks had
    /// better wait.
    pub(super) fn holds_back(&self) -> bool {
        match self {
            TaskQueue::Other(queue) => catch_panic::call(|| queue.holds_back()).unwrap_or(true),
            TaskQueue::Plain(_) | TaskQueue::Sorted(_) | TaskQueue::HandOff(_) => false,
        }
    }

    /// Whether it can be sealed (SEAL-1).
    pub(super) fn is_sealable(&self) -> bool {
        matches!(self, TaskQueue::Plain(_) | TaskQueue::Sorted(_))
    }

    /// Accepts no more tasks (SEAL-1).
    pub(super) fn seal(&self) {
        match self {
            TaskQueue::Plain(queue) => queue.seal(),
            TaskQueue::Sorted(queue) => queue.seal(),
            _ => {}
        }
    }

    pub(super) fn is_sealed(&self) -> bool {
        match self {
            TaskQueue::Plain(queue) => queue.is_sealed(),
            TaskQueue::Sorted(queue) => queue.is_sealed(),
            _ => false,
        }
    }

    /// Whether it is certainly full. False if that cannot be told without its lock.
    #[inline]
    pub(super) fn is_full(&self) -> bool {
        matches!(self, TaskQueue::Plain(queue) if queue.is_full())
    }

    #[inline]
    pub(super) fn offer(&self, task: Task) -> Result<(), Task> {
        match self {
            TaskQueue::Plain(queue) => user_code::except_locks(|| queue.offer(task)),
            other => other.call(|queue| queue.offer(task)),
        }
        .map_err(|rejected| rejected.element)
    }

    #[inline]
    pub(super) fn poll(&self) -> Option<Task> {
        match self {
            TaskQueue::Plain(queue) => queue.poll(),
            other => other.queue().poll(),
        }
    }

    /// Takes out the newest task if `takes_newest` says so of the oldest, and else the oldest. Queues with an order of
    /// their own keep it.
    pub(super) fn poll_by(&self, takes_newest: impl FnOnce(&Task) -> bool) -> Option<Task> {
        match self {
            TaskQueue::Plain(queue) => queue.poll_by(takes_newest),
            other => other.poll(),
        }
    }

    /// Searches for a task for a moment, before its worker parks. `takes` is called when it is about to poll, and when it
    /// has polled and found nothing.
    pub(super) fn seek(&self, takes: impl Fn(bool)) -> Option<Task> {
        match self {
            TaskQueue::Plain(queue) => queue.search(takes),
            // A consumer of a hand-off must wait there to be found.
            TaskQueue::HandOff(_) => None,
            TaskQueue::Sorted(_) | TaskQueue::Other(_) => {
                let queue = self.queue();
                queue.hint()?;
                let is_ready = || queue.hint().is_some_and(|hint| hint.is_ready);
                let attempt = || {
                    takes(true);
                    let got = queue.poll();
                    if got.is_none() {
                        takes(false);
                    }
                    got
                };
                interrupt::Search::begin()?.run(is_ready, attempt, || queue.len())
            }
        }
    }

    /// Counts its worker as searching while `looks` does so in its own way. Only plain queues count; others search
    /// uncounted.
    pub(super) fn as_searching(&self, looks: impl FnOnce() -> Option<Task>) -> Option<Task> {
        match self {
            TaskQueue::Plain(queue) => queue.as_searching(looks),
            _ => looks(),
        }
    }

    /// Runs `work`, in which the calling worker may push one task for itself: it searches next, so nobody is woken.
    pub(super) fn push_for_self<R>(&self, work: impl FnOnce() -> R) -> R {
        match self {
            TaskQueue::Plain(queue) => queue.push_for_self(work),
            _ => work(),
        }
    }

    /// Whether searching workers are counted in it.
    pub(super) fn has_searching(&self) -> bool {
        matches!(self, TaskQueue::Plain(_))
    }

    #[inline]
    pub(super) fn hint(&self) -> Option<QueueHint> {
        match self {
            TaskQueue::Plain(queue) => queue.hint(),
            other => other.queue().hint(),
        }
    }

    pub(super) fn poll_take(&self, place: &mut WaitSlot, waker: &Waker) -> Taken<Task> {
        self.queue().poll_take(place, waker)
    }

    pub(super) fn leave_take(&self, place: &mut WaitSlot) -> Option<Task> {
        self.queue().leave_take(place)
    }

    pub(super) fn hand_back(&self, task: Task) {
        self.queue().hand_back(task);
    }

    pub(super) fn poll_offer(
        &self,
        task: &mut Option<Task>,
        place: &mut WaitSlot,
        waker: &Waker,
    ) -> Offered {
        self.queue().poll_offer(task, place, waker)
    }

    pub(super) fn leave_offer(&self, task: &mut Option<Task>, place: &mut WaitSlot) {
        self.queue().leave_offer(task, place);
    }

    /// Before any look into it that follows a read or a change of the control word.
    fn fence(&self) {
        if self.is_foreign() {
            // [E-queue] [E-stay]
            fence(Ordering::SeqCst);
        }
    }

    /// How many tasks are queued. What waits at a hand-off is still its submitter's.
    pub(super) fn len(&self) -> usize {
        self.fence();
        match self {
            TaskQueue::HandOff(_) => 0,
            other => other.queue().len(),
        }
    }

    /// Whether no task is queued. A queue of the user's that panics counts as not empty: the caller is a worker, or
    /// terminates the pool, and must go on.
    pub(super) fn is_empty(&self) -> bool {
        match self {
            TaskQueue::Other(_) => catch_panic::call(|| self.len() == 0).unwrap_or(false),
            other => other.len() == 0,
        }
    }

    pub(super) fn capacity(&self) -> Option<usize> {
        self.queue().capacity()
    }

    pub(super) fn set_capacity(&self, capacity: usize) -> Result<(), CapacityError> {
        self.call(|queue| queue.set_capacity(capacity))
    }

    /// What is wrong with a capacity, as far as can be told without setting it: a queue of the user's says the rest when it
    /// is set.
    pub(super) fn objects_to(&self, capacity: usize) -> Option<CapacityError> {
        match self {
            TaskQueue::Plain(_) | TaskQueue::Sorted(_) | TaskQueue::Other(_) => {
                (capacity == 0).then_some(CapacityError::Zero)
            }
            // It has no other capacity, so trying changes nothing.
            TaskQueue::HandOff(queue) => queue.set_capacity(capacity).err(),
        }
    }

    /// What is wrong with an order under overload.
    pub(super) fn objects_to_order(&self, order: OverloadOrder) -> Option<Invalid> {
        let newest = order == OverloadOrder::NewestFirst;
        (newest && !matches!(self, TaskQueue::Plain(_))).then_some(Invalid::OrderOfCustomQueue)
    }

    pub(super) fn visit(&self, see: &mut dyn FnMut(&Task)) {
        self.visit_until(&mut |task| {
            see(task);
            false
        });
    }

    /// Shows the tasks until `see` has seen enough.
    pub(super) fn visit_until(&self, see: &mut dyn FnMut(&Task) -> bool) {
        if !matches!(self, TaskQueue::HandOff(_)) {
            self.queue().visit(&mut |task| {
                if see(task) {
                    ControlFlow::Break(())
                } else {
                    ControlFlow::Continue(())
                }
            });
        }
    }

    /// Takes out what `unwanted` chooses; see [`TaskQueue::len`] for hand-offs.
    pub(super) fn remove_where(
        &self,
        limit: usize,
        unwanted: &mut dyn FnMut(&Task) -> bool,
    ) -> Vec<Task> {
        self.fence();
        match self {
            TaskQueue::HandOff(_) => Vec::new(),
            other => other.call(|queue| queue.remove_where(limit, unwanted)),
        }
    }
}

impl fmt::Debug for TaskQueue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.queue().fmt(f)
    }
}

#[cfg(all(test, not(any(millpond_loom, millpond_shuttle))))]
mod tests;
