//! The figures of an engine at one moment.

use super::OverloadOrder;
use crate::adapt::CoDel;
use std::fmt;
use std::time::Duration;

/// What comes first when a task finds all workers of the core there.
///
/// ```
/// use millpond::manage::Growth;
/// use millpond::pool::ThreadPool;
///
/// let pool = ThreadPool::builder("mill").growth(Growth::ThreadsFirst).build()?;
/// assert_eq!(pool.growth().to_string(), "threads first");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Growth {
    /// The queue; more workers, up to the maximum, only when it is full. Java's rule.
    #[default]
    QueueFirst,
    /// More workers, up to the maximum, whenever none is free; then the queue. For services whose
    /// tasks block and whose callers wait.
    ThreadsFirst,
}

impl fmt::Display for Growth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Growth::QueueFirst => "queue first",
            Growth::ThreadsFirst => "threads first",
        })
    }
}

/// Where an engine is in its life. It only ever moves on.
///
/// ```
/// use millpond::executor::Lifecycle;
/// use millpond::manage::RunState;
/// use millpond::preset;
///
/// let pool = preset::single("mill").build()?;
/// assert_eq!(pool.snapshot().state, RunState::Running);
/// pool.close()?;
/// assert_eq!(pool.snapshot().state, RunState::Terminated);
/// assert!(RunState::Running < RunState::Terminated, "in the order of a life");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum RunState {
    /// Takes tasks and runs them.
    Running = 0,
    /// Takes no more tasks, and runs those that it has.
    ShutDown = 1,
    /// Takes no more tasks, starts none, and has interrupted those that run.
    Stopped = 2,
    /// All have ended; the hook for the end runs.
    Tidying = 3,
    /// Over.
    Terminated = 4,
}

impl fmt::Display for RunState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            RunState::Running => "running",
            RunState::ShutDown => "shut down",
            RunState::Stopped => "stopped",
            RunState::Tidying => "tidying up",
            RunState::Terminated => "terminated",
        })
    }
}

/// The parameters and figures of a pool at one moment.
///
/// Each figure is right by itself; together they are as close as reading them one after the other
/// can be.
///
/// # The books
///
/// At rest, and whenever nothing happens between two of its readings, they balance: every task that
/// was accepted is in exactly one of
///
/// ```text
///   completed + cancelled + expired + shed + discarded + handed_back + ran_elsewhere   what is over
/// + queued + active + in_place                                                         what is not
/// ```
///
/// `panicked`, `cancelled_while_running` and `self_joined` are parts of `completed`. `dropped_detached` are
/// those of `expired` and `shed` that had no handle, those of `cancelled` for which no thread could be
/// started, and what wrappers of the pool have dropped. Beside the books are tasks that the pool took and
/// its rejection policy let others run: `caller_ran`, those of extra threads, and what a custom policy
/// kept for itself.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PoolSnapshot {
    /// What the pool is called.
    pub name: String,
    /// Where it is in its life.
    pub state: RunState,
    /// How many workers are kept.
    pub core: usize,
    /// How many workers there may be.
    pub max: usize,
    /// How long an idle worker beyond the core stays.
    pub keep_alive: Duration,
    /// Whether idle workers of the core leave, too.
    pub core_may_time_out: bool,
    /// What comes first, the queue or more threads.
    pub growth: Growth,
    /// How many tasks may wait; `None` if there is no bound, 0 if tasks are handed over.
    pub capacity: Option<usize>,
    /// How long a task may wait; `None` is for ever.
    pub max_queue_wait: Option<Duration>,
    /// When it is overloaded, and sheds tasks; `None` is never.
    pub shedding: Option<CoDel>,
    /// Which task comes next while it is overloaded.
    pub overload_order: OverloadOrder,
    /// How many workers there are.
    pub workers: usize,
    /// How many of them run a task.
    pub active: usize,
    /// The most workers that there ever were.
    pub largest: usize,
    /// How many threads run a task outside the pool, because it was full.
    pub extra_threads: usize,
    /// How many tasks wait. What was cancelled there counts until it has left the queue; what a worker
    /// has taken out of turn, to run it in place, does not.
    pub queued: usize,
    /// Whether it is overloaded, by its [`shedding`](Self::shedding): a queue that stands.
    pub is_overloaded: bool,
    /// How long the queue needs to drain, by what tasks have taken of late, if nothing else comes;
    /// `None` if no task is over yet.
    pub drains_in: Option<Duration>,
    /// How many tasks run inside others: a worker joined them while they waited, and runs them in place.
    pub in_place: usize,
    /// How many tasks workers have run to their end, those that panicked included.
    pub completed: u64,
    /// How many of these panicked.
    pub panicked: u64,
    /// How many of the completed ones were cancelled while they ran, and returned: nobody wanted what they
    /// came to any more. One that panicked after it was cancelled is among the panicked ones.
    pub cancelled_while_running: u64,
    /// How many of the completed ones a worker ran in place, because it joined them while they waited.
    /// Tasks of this pool wait for other tasks of it, then.
    pub self_joined: u64,
    /// How many left the queue without being run: cancelled, or removed.
    pub cancelled: u64,
    /// How many left the queue because somebody who waited for them ran them: who called `join_here` in
    /// a thread that is no worker of this pool, or a scope.
    pub ran_elsewhere: u64,
    /// How many were dropped when their turn came, because their deadline had passed.
    pub expired: u64,
    /// How many were dropped when their turn came, because they had waited too long: longer than
    /// [`max_queue_wait`](Self::max_queue_wait), or too long under overload.
    pub shed: u64,
    /// How many tasks without a handle were accepted and dropped unrun: because their deadline had passed, they
    /// had waited too long, or no thread could be started for them. Those of a serial executor or a
    /// scheduled pool on top of the pool are among them. Nobody else heard of them: see
    /// [`Notice::DroppedDetached`](crate::pool::Notice::DroppedDetached), whose numbers add up to this.
    pub dropped_detached: u64,
    /// How many there was no room for, at once or in time: the rejection policy took over. A task that a
    /// handler brings again, and that is refused again, counts once.
    pub rejected: u64,
    /// How many had to wait for room ([`Rejection::Block`](crate::pool::Rejection::Block)).
    pub blocked: u64,
    /// How many the rejection policy threw away, new ones and old ones.
    pub discarded: u64,
    /// How many the rejection policy let their callers run.
    pub caller_ran: u64,
    /// How many were handed back by `shutdown_now`.
    pub handed_back: u64,
    /// How many threads have been started, extra ones included.
    pub threads_started: u64,
    /// How often a thread could not be started.
    pub thread_failures: u64,
}

impl PoolSnapshot {
    /// Tasks that workers have run, run or will run.
    ///
    /// ```
    /// use millpond::executor::{ExecutorExt, Lifecycle};
    /// use millpond::preset;
    ///
    /// let pool = preset::single("mill").build()?;
    /// for _ in 0..3 {
    ///     pool.run(|| ())?;
    /// }
    /// pool.close()?;
    /// assert_eq!(pool.snapshot().task_count(), 3);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[doc(alias = "getTaskCount")]
    pub fn task_count(&self) -> u64 {
        let unfinished = self.active + self.in_place + self.queued;
        self.completed + unfinished as u64
    }
}

impl fmt::Display for PoolSnapshot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}: {}, {} of {} {} busy (core {}, max {}, most ever {}), {} queued",
            self.name,
            self.state,
            self.active,
            self.workers,
            if self.workers == 1 {
                "worker"
            } else {
                "workers"
            },
            self.core,
            self.max,
            self.largest,
            self.queued
        )?;
        match self.capacity {
            Some(capacity) => write!(f, " of {capacity}")?,
            None => f.write_str(" (no bound)")?,
        }
        write!(
            f,
            ", {} completed, {} rejected",
            self.completed, self.rejected
        )
    }
}
