//! Where tasks wait for a worker: the queue that the user chose, behind the few calls that a pool
//! makes of it.
//!
//! Workers wait *in* the queue, as takers of it, and whoever puts a task in wakes one there. So every
//! flavor works with its own semantics, hand-off and delay too, and the protocol of sleeping and
//! waking is written and checked once, in [`crate::queue`].
//!
//! # The seal
//!
//! A task that slips into the queue behind the back of a shutdown would wait there for ever. Java
//! lets it in, looks again, and takes it out. The plain flavors, and the one by priority, are *sealed*
//! instead: under the queue's own lock, before the state of the pool changes.
//!
//! - **S1** A line of ours that holds tasks is sealed before the control word leaves RUNNING. So whoever reads a later
//!   state and then finds the line empty knows that it stays empty.
//! - **S2** A hand-off holds nothing: what it takes in a worker has.
//! - **S3** Any other line cannot be sealed. Who puts a task in looks at the state again afterwards,
//!   and takes that very task out if it is too late; see `Engine::take_back`.
//!
//! # Orderings
//!
//! - `[E-line]` Who changes the control word and then looks into the line, and who puts a task in and
//!   then looks at the word: one of them sees the other. Lines of ours need nothing for that: both
//!   sides go through the line's lock, and who is second there sees what the first did before. A line
//!   of the user's may be made of anything, so both look behind a fence; the other one is in
//!   `Engine::look_again`.
//! - `[E-stay]` The same fence is in front of the last look of a worker that stays for a task:
//!   explained in [`super::engine`].

use crate::interrupt;
use crate::manage::{Invalid, OverloadOrder};
use crate::queue::{
    BlockingQueue, CapacityError, Glance, HandOffQueue, LinkedQueue, Offered, Place, PriorityQueue,
    Taken,
};
use crate::task::Task;
use crate::time::Clock;
use millpond_raw::quiet;
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
/// let pool = ThreadPool::builder("mill").queue(Queue::own(by_deadline)).build()?;
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
    Own(Box<dyn BlockingQueue<Task>>),
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
    /// is refused.
    ///
    /// ```
    /// use millpond::executor::{ExecutorExt, Lifecycle};
    /// use millpond::pool::{Queue, ThreadPool};
    /// use std::sync::mpsc;
    ///
    /// let pool = ThreadPool::builder("mill").core(0).max(1).queue(Queue::hand_off()).build()?;
    /// let (say, hear) = mpsc::channel::<()>();
    /// let busy = pool.submit(move || hear.recv().is_err())?;
    /// let refused = pool.submit(|| "flour").unwrap_err();
    /// assert_eq!((refused.task)(), "flour", "the closure comes back");
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
    /// Nobody starves: a task of level `n` (high 0, normal 1, low 2) is overtaken by what is more
    /// urgent and comes in within the next `n * per_level`, and by nothing that comes later. So when it
    /// has waited for that long, at most `capacity - 1` tasks go before it, whatever else comes.
    ///
    /// A `per_level` about as long as an urgent task may have to wait is a good start; with 0 priorities
    /// mean nothing. Where low ones may starve, use a [`PriorityQueue`] without aging as a queue of your
    /// [own](Queue::own).
    ///
    /// ```
    /// use millpond::executor::ExecutorExt;
    /// use millpond::pool::{Queue, ThreadPool};
    /// use millpond::task::{Priority, TaskSpec};
    /// use std::time::Duration;
    ///
    /// let queue = Queue::by_priority(100, Duration::from_millis(500));
    /// let pool = ThreadPool::builder("mill").queue(queue).build()?;
    /// let report = pool.submit_spec(TaskSpec::new().priority(Priority::Low), || "report")?;
    /// let order = pool.submit_spec(TaskSpec::new().priority(Priority::High), || "order")?;
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
    /// Workers are takers of it. Comparators of it compare [`Task`]s. A task that starts a worker, below
    /// the core or because the queue is full, goes straight to that worker and never sees the queue:
    /// where its order or its delays must hold for every task, use a core of 0, or start the core ahead.
    ///
    /// ```
    /// use millpond::executor::{ExecutorExt, Lifecycle};
    /// use millpond::pool::{Queue, ThreadPool};
    /// use millpond::queue::LinkedQueue;
    ///
    /// let queue = Queue::own(LinkedQueue::bounded(10)?);
    /// let pool = ThreadPool::builder("mill").core(1).queue(queue).build()?;
    /// assert_eq!(pool.submit(|| "flour")?.join()?, "flour");
    /// pool.close()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn own(queue: impl BlockingQueue<Task> + 'static) -> Self {
        Queue {
            choice: Choice::Own(Box::new(queue)),
        }
    }

    pub(super) fn build(self, clock: &Clock) -> Result<Line, CapacityError> {
        Ok(match self.choice {
            Choice::Bounded(capacity) => plain(LinkedQueue::bounded(capacity)?, clock),
            Choice::Unbounded => plain(LinkedQueue::unbounded(), clock),
            Choice::HandOff => Line::HandOff(HandOffQueue::unfair().with_clock(clock.clone())),
            Choice::ByPriority {
                capacity,
                per_level,
            } => {
                let queue = PriorityQueue::by(|_: &Task, _: &Task| CmpOrdering::Equal)
                    .aging(per_level, |task| task.priority().level());
                Line::Sorted(queue.with_clock(clock.clone()).with_bound(capacity)?)
            }
            Choice::Own(queue) => Line::Other(queue),
        })
    }
}

fn plain(queue: LinkedQueue<Task>, clock: &Clock) -> Line {
    Line::Plain(queue.with_clock(clock.clone()).thrifty())
}

/// A queue as its pool knows it.
#[allow(
    clippy::large_enum_variant,
    reason = "one per pool, and the common one is reached without another pointer"
)]
pub(super) enum Line {
    Plain(LinkedQueue<Task>),
    HandOff(HandOffQueue<Task>),
    /// By priority, with aging.
    Sorted(PriorityQueue<Task>),
    Other(Box<dyn BlockingQueue<Task>>),
}

impl Line {
    fn queue(&self) -> &dyn BlockingQueue<Task> {
        match self {
            Line::Plain(queue) => queue,
            Line::HandOff(queue) => queue,
            Line::Sorted(queue) => queue,
            Line::Other(queue) => {
                user_code::check(Kind::Queue);
                &**queue
            }
        }
    }

    /// Calls it. Who waits in a line of ours is a thread, a worker or a submitter, and its waker is our parker's:
    /// such a line may be called under a lock of the pool. One of the user's may not (E5).
    fn call<R>(&self, f: impl FnOnce(&dyn BlockingQueue<Task>) -> R) -> R {
        match self.is_foreign() {
            true => f(self.queue()),
            false => user_code::except_locks(|| f(self.queue())),
        }
    }

    /// Whether it is the user's own: a task can slip in behind the back of a shutdown (S3), and
    /// any call of it may panic.
    #[inline]
    pub(super) fn is_foreign(&self) -> bool {
        matches!(self, Line::Other(_))
    }

    /// Whether it keeps tasks until their time has come. A queue of the user's may panic when it is
    /// asked; then nobody knows, and its tasks had better wait.
    pub(super) fn holds_back(&self) -> bool {
        match self {
            Line::Other(queue) => quiet::call(|| queue.holds_back()).unwrap_or(true),
            Line::Plain(_) | Line::Sorted(_) | Line::HandOff(_) => false,
        }
    }

    /// Whether it can be sealed (S1).
    pub(super) fn is_plain(&self) -> bool {
        matches!(self, Line::Plain(_) | Line::Sorted(_))
    }

    /// Takes no more tasks in (S1).
    pub(super) fn seal(&self) {
        match self {
            Line::Plain(queue) => queue.seal(),
            Line::Sorted(queue) => queue.seal(),
            _ => {}
        }
    }

    pub(super) fn is_sealed(&self) -> bool {
        match self {
            Line::Plain(queue) => queue.is_sealed(),
            Line::Sorted(queue) => queue.is_sealed(),
            _ => false,
        }
    }

    /// Whether it is full for sure, as far as that can be told at a glance.
    #[inline]
    pub(super) fn is_full(&self) -> bool {
        matches!(self, Line::Plain(queue) if queue.is_full())
    }

    #[inline]
    pub(super) fn offer(&self, task: Task) -> Result<(), Task> {
        match self {
            Line::Plain(queue) => user_code::except_locks(|| queue.offer(task)),
            other => other.call(|queue| queue.offer(task)),
        }
        .map_err(|refused| refused.element)
    }

    #[inline]
    pub(super) fn poll(&self) -> Option<Task> {
        match self {
            Line::Plain(queue) => queue.poll(),
            other => other.queue().poll(),
        }
    }

    /// Takes out the newest task if `takes_newest` says so of the oldest, and else that one. Lines with
    /// an order of their own keep it.
    pub(super) fn poll_by(&self, takes_newest: impl FnOnce(&Task) -> bool) -> Option<Task> {
        match self {
            Line::Plain(queue) => queue.poll_by(takes_newest),
            other => other.poll(),
        }
    }

    /// Looks out for a task for a moment, before its worker rests. `takes` hears when it is about to
    /// try, and when it has tried in vain.
    pub(super) fn seek(&self, takes: impl Fn(bool)) -> Option<Task> {
        match self {
            Line::Plain(queue) => queue.seek(takes),
            // Whoever meets others in a hand-off must wait there to be found.
            Line::HandOff(_) => None,
            Line::Sorted(_) | Line::Other(_) => {
                let queue = self.queue();
                queue.glance()?;
                let is_ready = || queue.glance().is_some_and(|glance| glance.is_ready);
                interrupt::seek(is_ready, || {
                    takes(true);
                    let got = queue.poll();
                    if got.is_none() {
                        takes(false);
                    }
                    got
                })
            }
        }
    }

    /// Counts its worker as one that looks out for a task while `looks` does so in its own way. Of plain
    /// lines only; others look without being counted.
    pub(super) fn as_seeker(&self, looks: impl FnOnce() -> Option<Task>) -> Option<Task> {
        match self {
            Line::Plain(queue) => queue.as_seeker(looks),
            _ => looks(),
        }
    }

    /// Whether it is the plain one, in which workers can be counted as seekers.
    pub(super) fn has_seekers(&self) -> bool {
        matches!(self, Line::Plain(_))
    }

    #[inline]
    pub(super) fn glance(&self) -> Option<Glance> {
        match self {
            Line::Plain(queue) => queue.glance(),
            other => other.queue().glance(),
        }
    }

    pub(super) fn poll_take(&self, place: &mut Place, waker: &Waker) -> Taken<Task> {
        self.queue().poll_take(place, waker)
    }

    pub(super) fn leave_take(&self, place: &mut Place) -> Option<Task> {
        self.queue().leave_take(place)
    }

    pub(super) fn hand_back(&self, task: Task) {
        self.queue().hand_back(task);
    }

    pub(super) fn poll_offer(
        &self,
        task: &mut Option<Task>,
        place: &mut Place,
        waker: &Waker,
    ) -> Offered {
        self.queue().poll_offer(task, place, waker)
    }

    pub(super) fn leave_offer(&self, task: &mut Option<Task>, place: &mut Place) {
        self.queue().leave_offer(task, place);
    }

    /// Before any look into it that follows a look at the control word, or a change of it.
    fn fence(&self) {
        if self.is_foreign() {
            // [E-line] [E-stay]
            fence(Ordering::SeqCst);
        }
    }

    /// How many tasks wait. What waits at a hand-off is still its caller's.
    pub(super) fn len(&self) -> usize {
        self.fence();
        match self {
            Line::HandOff(_) => 0,
            line => line.queue().len(),
        }
    }

    /// Whether nothing waits. A queue of the user's that panics counts as one that holds something:
    /// whoever asks is a worker, or ends the pool, and must go on.
    pub(super) fn is_empty(&self) -> bool {
        match self {
            Line::Other(_) => quiet::call(|| self.len() == 0).unwrap_or(false),
            line => line.len() == 0,
        }
    }

    /// Takes everything out. What a queue of the user's does not give out for its panics stays.
    pub(super) fn clear_out(&self) -> Vec<Task> {
        let all = || self.remove_where(usize::MAX, &mut |_| true);
        quiet::call(all).unwrap_or_default()
    }

    pub(super) fn capacity(&self) -> Option<usize> {
        self.queue().capacity()
    }

    pub(super) fn set_capacity(&self, capacity: usize) -> Result<(), CapacityError> {
        self.call(|queue| queue.set_capacity(capacity))
    }

    /// What is wrong with a capacity, as far as can be told without setting it: a queue of the user's
    /// says so when it is asked to.
    pub(super) fn objects_to(&self, capacity: usize) -> Option<CapacityError> {
        match self {
            Line::Plain(_) | Line::Sorted(_) => (capacity == 0).then_some(CapacityError::Zero),
            // It never has another one, so trying changes nothing.
            Line::HandOff(queue) => queue.set_capacity(capacity).err(),
            Line::Other(_) => None,
        }
    }

    /// What is wrong with an order under overload.
    pub(super) fn objects_to_order(&self, order: OverloadOrder) -> Option<Invalid> {
        let newest = order == OverloadOrder::NewestFirst;
        (newest && !matches!(self, Line::Plain(_))).then_some(Invalid::OrderOfItsOwn)
    }

    pub(super) fn visit(&self, see: &mut dyn FnMut(&Task)) {
        self.visit_until(&mut |task| {
            see(task);
            false
        });
    }

    /// Shows the tasks until `see` has seen enough.
    pub(super) fn visit_until(&self, see: &mut dyn FnMut(&Task) -> bool) {
        if !matches!(self, Line::HandOff(_)) {
            self.queue().visit(&mut |task| match see(task) {
                true => ControlFlow::Break(()),
                false => ControlFlow::Continue(()),
            });
        }
    }

    /// Takes out what `unwanted` chooses; see [`Line::len`] for hand-offs.
    pub(super) fn remove_where(
        &self,
        limit: usize,
        unwanted: &mut dyn FnMut(&Task) -> bool,
    ) -> Vec<Task> {
        self.fence();
        match self {
            Line::HandOff(_) => Vec::new(),
            line => line.call(|queue| queue.remove_where(limit, unwanted)),
        }
    }
}

impl fmt::Debug for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.queue().fmt(f)
    }
}

#[cfg(all(test, not(any(millpond_loom, millpond_shuttle))))]
mod tests;
