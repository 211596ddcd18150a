//! The state of a pool at one moment.

use super::ThreadPool;
use super::engine::PoolEngine;
use crate::engine::metrics::{Counts, TaskMetrics};
use crate::manage::{CoDel, Details, EngineSnapshot, Growth, Measurement, OverloadOrder, RunState};
use std::fmt;
use std::time::Duration;

/// The parameters and numbers of a thread pool at one moment.
///
/// Each number is right by itself; together they are as close as reading them one after the other
/// can be. The same in the form that all engines share, with latencies, is
/// [`engine_snapshot`](crate::manage::Managed::engine_snapshot).
///
/// # The books
///
/// At rest, and whenever nothing happens between two of its readings, they balance: every task that
/// was accepted is in exactly one of
///
/// ```text
///   completed + cancelled                                   ended
/// + queued + active + running_inline + extra_threads        unfinished
/// = submitted
/// ```
///
/// and every call that submits a task is in `submitted` or in `rejected`. The exception is a task that a custom
/// rejection policy keeps: that one is in neither, unless the policy submits it again.
///
/// | count | parts of it |
/// |---|---|
/// | `completed` | `ran_elsewhere`, `caller_ran`, `extra_ran`; the rest ran on workers. And `panicked`, `self_joined`, `cancelled_while_running`, `finished_late` |
/// | `panicked` | `panicked_outside` |
/// | `cancelled` | `expired`, `shed`, `discarded`, `handed_back`; the rest were cancelled or removed |
/// | `expired` | `too_late` |
/// | `left_to_policy` | `rejected`, `caller_ran`; most of `discarded` and `extra_ran`, and what a handler keeps |
///
/// `dropped_detached` are those of `expired` and `shed` that had no handle, those for which no thread could be started,
/// and tasks that wrappers of the pool have dropped.
///
/// `submitted` never falls and is exact at rest. In a snapshot of a busy pool it may lack tasks that are on
/// their way from one place to the next. No task is in it twice. The other numbers are read one after the other: a task that
/// goes on meanwhile may be in two of them, so that their sum is above `submitted`.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PoolSnapshot {
    /// The pool's name.
    pub name: String,
    /// Where it is in its life.
    pub state: RunState,
    /// Workers that are kept, also when they are idle.
    pub core: usize,
    /// The most workers there may be.
    pub max: usize,
    /// How long an idle worker above the core stays.
    pub keep_alive: Duration,
    /// Whether idle workers of the core leave as well.
    pub core_may_time_out: bool,
    /// Whether a task that finds the core busy is queued or starts another worker.
    pub growth: Growth,
    /// The most tasks that may wait; `None` if there is no bound, 0 if tasks are handed over.
    pub capacity: Option<usize>,
    /// The longest that a task may wait in the queue; `None` is forever.
    pub max_queue_wait: Option<Duration>,
    /// When the pool counts as overloaded and sheds tasks; `None` is never.
    pub shedding: Option<CoDel>,
    /// Which task comes next while the pool is overloaded.
    pub overload_order: OverloadOrder,
    /// Workers there are.
    #[doc(alias = "getPoolSize")]
    pub workers: usize,
    /// Workers that run a task.
    #[doc(alias = "getActiveCount")]
    pub active: usize,
    /// The most workers there ever were.
    #[doc(alias = "getLargestPoolSize")]
    pub largest: usize,
    /// Threads that run a task outside the pool, because it was full.
    pub extra_threads: usize,
    /// Tasks that wait. A task that was cancelled there counts until it has left the queue; a task that a
    /// worker has taken out of turn, to run it inline, does not.
    pub queued: usize,
    /// Whether the pool is overloaded, by its [`shedding`](Self::shedding).
    pub is_overloaded: bool,
    /// How long the queue needs to drain, by how long recent tasks have taken, if no more tasks come;
    /// `None` if no task has ended yet.
    pub drains_in: Option<Duration>,
    /// Tasks that run inside others: a worker joined them while they waited, and runs them inline.
    pub running_inline: usize,
    /// Tasks that the pool has accepted since it was built, and those that its rejection policy ran or dropped
    /// instead of giving them back. (A snapshot that is taken at the very moment when a queue of your own takes a task during
    /// a shutdown, or when the last worker leaves before a task for which no other thread can be started, may count that
    /// task, which is then given back. It makes up for it with the next task that is accepted.)
    pub submitted: u64,
    /// Tasks that have run to their end, panicked ones included, on whichever thread.
    pub completed: u64,
    /// Completed tasks that panicked.
    pub panicked: u64,
    /// Completed tasks that were cancelled while they ran, and returned. A task that panicked after it was
    /// cancelled is among the panicked ones.
    pub cancelled_while_running: u64,
    /// Completed tasks that a worker ran inline, because it joined them while they waited: tasks of this
    /// pool wait for other tasks of it.
    pub self_joined: u64,
    /// Submitted tasks that will never run, for whatever reason.
    pub cancelled: u64,
    /// Completed tasks that left the queue because a thread that waited for them ran them: one that called
    /// `run_or_join` and is no worker of this pool, or a scope.
    pub ran_elsewhere: u64,
    /// Cancelled tasks that were dropped when their turn came, because their deadline had passed, or because they were too
    /// late to be finished in time.
    pub expired: u64,
    /// Those of `expired` that a worker dropped because they could not have been finished in time
    /// ([`finish_by`](crate::task::TaskSpec::finish_by)).
    pub too_late: u64,
    /// Completed tasks that ended after the time by which they had to be finished: work that was of no use any more.
    pub finished_late: u64,
    /// Cancelled tasks that were dropped when their turn came, because they had waited longer than
    /// [`max_queue_wait`](Self::max_queue_wait), or too long under overload.
    pub shed: u64,
    /// Tasks without a handle that were accepted and dropped unrun: their deadline had passed, they
    /// had waited too long, or no thread could be started for them. Those of a serial executor or a
    /// scheduled pool on top of the pool are among them. No caller heard of them: see
    /// [`PoolEvent::DroppedDetached`](crate::pool::PoolEvent::DroppedDetached), whose numbers add up to this.
    pub dropped_detached: u64,
    /// Tasks that were not admitted, at once or in time, and were left to the rejection policy, whatever that did with
    /// them. A task that a handler submits again, and that is rejected again, counts once.
    pub left_to_policy: u64,
    /// Tasks that were given back to their callers: calls that returned an error.
    pub rejected: u64,
    /// Tasks that had to wait for room ([`RejectionPolicy::Block`](crate::pool::RejectionPolicy::Block)).
    pub waited_for_room: u64,
    /// Cancelled tasks that the rejection policy dropped, new ones and old ones.
    pub discarded: u64,
    /// Completed tasks that the rejection policy let their callers run, counted when they begin.
    pub caller_ran: u64,
    /// Completed tasks that the rejection policy ran on extra threads.
    pub extra_ran: u64,
    /// Panicked tasks among `caller_ran`, `extra_ran` and `ran_elsewhere`. One of the last is counted here when it
    /// panics, and in the other counts when it has left the queue.
    pub panicked_outside: u64,
    /// Cancelled tasks that `shutdown_now` handed back.
    pub handed_back: u64,
    /// Threads that have been started, extra ones included.
    pub threads_started: u64,
    /// Threads that could not be started.
    pub thread_failures: u64,
}

impl PoolSnapshot {
    /// Completed tasks that workers have run.
    ///
    /// ```
    /// use millpond::executor::{ExecutorExt, Lifecycle};
    /// use millpond::preset;
    ///
    /// let pool = preset::single("mill").build()?;
    /// pool.execute(|| ())?;
    /// pool.close()?;
    /// assert_eq!(pool.snapshot().completed_by_workers(), 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[doc(alias = "getCompletedTaskCount")]
    pub fn completed_by_workers(&self) -> u64 {
        self.completed - self.ran_elsewhere - self.caller_ran - self.extra_ran
    }

    /// Tasks that workers have completed, run now or will run.
    ///
    /// ```
    /// use millpond::executor::{ExecutorExt, Lifecycle};
    /// use millpond::preset;
    ///
    /// let pool = preset::single("mill").build()?;
    /// for _ in 0..3 {
    ///     pool.execute(|| ())?;
    /// }
    /// pool.close()?;
    /// assert_eq!(pool.snapshot().task_count(), 3);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[doc(alias = "getTaskCount")]
    pub fn task_count(&self) -> u64 {
        let unfinished = self.active + self.running_inline + self.queued;
        self.completed_by_workers() + unfinished as u64
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

impl Details for PoolSnapshot {
    fn measurements(&self) -> Vec<Measurement> {
        vec![
            Measurement::gauge("active", self.active).with_unit("workers"),
            Measurement::gauge("largest", self.largest).with_unit("workers"),
            Measurement::gauge("extra_threads", self.extra_threads).with_unit("threads"),
            Measurement::flag("is_overloaded", self.is_overloaded),
            Measurement::estimate("drains_in", self.drains_in),
            Measurement::gauge("running_inline", self.running_inline).with_unit("tasks"),
            Measurement::counter("panicked_outside", self.panicked_outside).with_unit("tasks"),
            Measurement::counter("cancelled_while_running", self.cancelled_while_running)
                .with_unit("tasks"),
            Measurement::counter("self_joined", self.self_joined).with_unit("tasks"),
            Measurement::counter("ran_elsewhere", self.ran_elsewhere).with_unit("tasks"),
            Measurement::counter("expired", self.expired).with_unit("tasks"),
            Measurement::counter("too_late", self.too_late).with_unit("tasks"),
            Measurement::counter("finished_late", self.finished_late).with_unit("tasks"),
            Measurement::counter("shed", self.shed).with_unit("tasks"),
            Measurement::counter("dropped_detached", self.dropped_detached).with_unit("tasks"),
            Measurement::counter("left_to_policy", self.left_to_policy).with_unit("tasks"),
            Measurement::counter("waited_for_room", self.waited_for_room).with_unit("tasks"),
            Measurement::counter("discarded", self.discarded).with_unit("tasks"),
            Measurement::counter("caller_ran", self.caller_ran).with_unit("tasks"),
            Measurement::counter("extra_ran", self.extra_ran).with_unit("tasks"),
            Measurement::counter("handed_back", self.handed_back).with_unit("tasks"),
            Measurement::counter("threads_started", self.threads_started).with_unit("threads"),
            Measurement::counter("thread_failures", self.thread_failures).with_unit("attempts"),
        ]
    }
}

impl ThreadPool {
    pub(super) fn as_engine_snapshot(&self) -> EngineSnapshot {
        let (pool, health) = (self.snapshot(), self.health());
        let mut engine = EngineSnapshot::new(pool.name.clone(), "thread pool", pool.state);
        engine.workers = pool.workers;
        engine.queued = pool.queued;
        engine.running = pool.active + pool.running_inline + pool.extra_threads;
        engine.submitted = pool.submitted;
        engine.completed = pool.completed;
        engine.failed = pool.panicked;
        engine.rejected = pool.rejected;
        engine.cancelled = pool.cancelled;
        let named = self.metrics_by_name().into_iter();
        engine.latencies = named.map(TaskMetrics::into_latency).collect();
        engine.warnings = health.warnings();
        engine
            .with_details(pool)
            .with_measurements(health.measurements())
    }
}

impl PoolEngine {
    pub(super) fn snapshot(&self) -> PoolSnapshot {
        let word = self.ctl().read();
        // For `submitted`, tasks are looked for in the reverse of the order in which they go through the pool: those
        // that have left, those that workers have begun, those whose worker is being started, those in the queue. So
        // one that goes on meanwhile may be missed, but is never seen twice.
        let decided = self.rare.undecided.left();
        let left = self.left_without_worker() + self.rejections.sum().caller_ran;
        let (active, largest, extra_threads, counts, firsts) = self.with_workers(|workers| {
            let counts = workers.counts();
            (
                workers.active(),
                workers.largest(),
                workers.extras(),
                counts,
                workers.waiting_firsts(),
            )
        });
        let (queued, capacity) = (self.queue.len(), self.queue.capacity());
        let overload = self.shedder.settings();
        let seen = left + counts.begun + firsts as u64 + queued as u64;
        // UNDECIDED-1
        let seen = seen.saturating_sub(self.rare.undecided.most(decided));
        // The tombstone of a task that a worker runs inline, or has run, is still in the queue.
        let tombstones = counts.queued_tombstones(self.removed.tombstones.get());
        PoolSnapshot {
            state: word.state(),
            capacity,
            max_queue_wait: overload.max_queue_wait,
            shedding: overload.shedding,
            overload_order: overload.order,
            workers: word.workers(),
            active,
            extra_threads,
            queued: queued.saturating_sub(tombstones as usize),
            is_overloaded: self.shedder.is_overloaded(),
            drains_in: self.drains_in(queued, word.workers()),
            running_inline: counts.joins.saturating_sub(counts.joined) as usize,
            ..self.without_life(largest, counts, seen)
        }
    }

    /// The snapshot in a forked process: takes no lock that is not free.
    pub(super) fn snapshot_of_a_fork(&self) -> PoolSnapshot {
        let counted = self.try_with_workers(|workers| (workers.largest(), workers.counts()));
        let (largest, counts) = counted.unwrap_or((0, Counts::default()));
        self.without_life(largest, counts, 0)
    }

    /// Its parameters and counts, with no worker and no task; so many have been seen that were submitted.
    fn without_life(&self, largest: usize, counts: Counts, seen: u64) -> PoolSnapshot {
        // CONFIG-1: one read, so that core, maximum and growth are of one configuration.
        let (config, rare) = (self.config(), &self.rare);
        let limits = config.limits();
        let rejections = self.rejections.sum();
        let mut snapshot = PoolSnapshot {
            name: self.name.clone().into_owned(),
            state: RunState::Terminated,
            core: limits.core(),
            max: limits.max(),
            keep_alive: config.keep_alive(),
            core_may_time_out: config.core_may_time_out(),
            growth: limits.growth(),
            capacity: Some(0),
            max_queue_wait: None,
            shedding: None,
            overload_order: OverloadOrder::default(),
            workers: 0,
            active: 0,
            largest,
            extra_threads: 0,
            queued: 0,
            is_overloaded: false,
            drains_in: None,
            running_inline: 0,
            submitted: 0,
            completed: 0,
            panicked: 0,
            self_joined: counts.joined,
            cancelled: 0,
            expired: counts.expired + self.removed.expired.get() + rare.extra_expired.get(),
            too_late: counts.too_late,
            finished_late: counts.finished_late,
            dropped_detached: self.dropped.count(),
            cancelled_while_running: counts.unwanted,
            shed: counts.shed,
            ran_elsewhere: counts.elsewhere
                + self.removed.elsewhere.get()
                + rare.extra_elsewhere.get(),
            left_to_policy: rejections.all(),
            rejected: rejections.all_given_back(),
            waited_for_room: rare.waited_for_room.get(),
            discarded: rare.discarded.get(),
            caller_ran: rejections.caller_ran,
            extra_ran: rare.extra_ran.get(),
            panicked_outside: rare.panicked_outside.get()
                + self.tombstones.tag().panics_elsewhere(),
            handed_back: self.removed.handed_back.get(),
            threads_started: self.starts.started.get(),
            thread_failures: self.starts.failures.get(),
        };
        let ran_outside = snapshot.ran_elsewhere + snapshot.caller_ran + snapshot.extra_ran;
        snapshot.completed = counts.completed + ran_outside;
        // A panic is counted before the task that it ends. The lesser of two numbers that never fall never falls.
        let panicked = counts.panicked + snapshot.panicked_outside;
        snapshot.panicked = panicked.min(snapshot.completed);
        let dropped = snapshot.expired + snapshot.shed + snapshot.discarded + snapshot.handed_back;
        let cancelled = counts.cancelled + self.removed.cancelled.get();
        snapshot.cancelled = cancelled + rare.extra_cancelled.get() + dropped;
        // Some of these were read later, so there may be more of them.
        let over = snapshot.completed + snapshot.cancelled;
        snapshot.submitted = rare.submitted.raise_to(seen.max(over));
        snapshot
    }
}
