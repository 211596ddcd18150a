//! The state of a pool at one moment: its books, and what its workers do. In sentences: `explain`.
//!
//! ```text
//!   calls     = submitted + rejected
//!   submitted = completed + cancelled + queued tasks + running tasks      at rest
//! ```
//!
//! A task is counted as submitted by the queue that takes it, before the call returns; if there is no worker then, when one
//! has been started. `submitted` is never shown below the tasks that are over.
//!
//! Jobs of joins and scopes are in no book: they are parts of a task, and there may be a billion of them. What comes from
//! outside by `install` is counted by itself (`installed`), and its joins are not.

use super::ForkJoinPool;
use super::engine::ForkJoinEngine;
use super::explain::warnings;
use crate::engine::WorkerEngine;
use crate::engine::metrics::TaskMetrics;
use crate::manage::{Details, EngineSnapshot, Measurement, RunState};
use std::fmt;

/// The state of a [`ForkJoinPool`] at one moment: see [`ForkJoinPool::snapshot`].
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ForkJoinSnapshot {
    /// The name of the pool.
    pub name: String,
    /// Whether it runs, ends, or has ended.
    pub state: RunState,
    /// How many workers may compute at a time.
    pub parallelism: usize,
    /// Workers that there are.
    pub workers: usize,
    /// Workers that run something, and are neither blocked nor wait in a join.
    pub active: usize,
    /// Workers that are blocked by what they run.
    pub blocked: usize,
    /// Workers that wait in a join or scope for jobs that others run.
    pub joining: usize,
    /// Workers beyond the parallelism, which replace blocked ones, or sleep until they are needed again.
    pub spares: usize,
    /// How many spares there may be.
    pub max_spares: usize,
    /// Workers that sleep.
    pub sleeping: usize,
    /// Workers that look for work.
    pub searching: usize,
    /// The most workers that there have been.
    pub largest: usize,
    /// What waits in the queue from outside. A task that was cancelled, or that a worker joined and ran before its turn,
    /// may count until a worker comes to it.
    pub queued_outside: usize,
    /// What waits in the deque of each worker, likewise.
    pub queued_by_worker: Vec<usize>,
    /// What of these a worker joined, and runs or has run before its turn.
    pub queued_joined: usize,
    /// Tasks that run, those that run inside of others included; jobs of joins and scopes are none.
    pub running: usize,
    /// Tasks that were accepted.
    pub submitted: u64,
    /// Tasks that were rejected.
    pub rejected: u64,
    /// Tasks that have run, on whichever thread.
    pub completed: u64,
    /// Tasks of these that a joining thread, which is no worker, ran itself.
    pub ran_elsewhere: u64,
    /// Tasks of these that panicked.
    pub panicked: u64,
    /// Tasks that ended and will never run: cancelled, expired or handed back.
    pub cancelled: u64,
    /// Tasks of these whose deadline had passed.
    pub expired: u64,
    /// Tasks of these that a stop handed back.
    pub handed_back: u64,
    /// Computations that came from threads outside and that are no tasks: calls of [`install`](ForkJoinPool::install),
    /// joins, scopes and loops. They are in none of the counts above.
    pub installed: u64,
    /// Jobs of joins that were made visible to other workers.
    pub published: u64,
    /// Tasks and jobs that a worker took from another one, or from outside.
    pub steals: u64,
    /// Jobs that a worker took from the one that it waited for.
    pub leaps: u64,
    /// The most jobs that a worker ran inside of each other, because it helped while it waited.
    pub max_help_depth: u64,
    /// How often work had to wait although fewer workers ran than the parallelism says, because there were as many spares
    /// as there may be.
    pub spares_exhausted: u64,
    /// How often a worker parked without work, or in a join.
    pub parks: u64,
    /// How often a worker was woken for work.
    pub wakes: u64,
    /// Cycles of tasks that joined each other, and of which one got an error instead of waiting for ever.
    pub deadlocks: u64,
    /// Tasks without a handle that were accepted and dropped before they ran.
    pub dropped_detached: u64,
    /// Attempts to start a thread that failed.
    pub thread_failures: u64,
    /// Failures of these since the last thread that started.
    pub failed_starts_in_a_row: u64,
}

impl fmt::Display for ForkJoinSnapshot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let queued: usize = self.queued_by_worker.iter().sum();
        write!(
            f,
            "{}: {}, {} of {} workers active, {} queued outside and {queued} with workers, {} completed, {} steals",
            self.name,
            self.state,
            self.active,
            self.parallelism,
            self.queued_outside,
            self.completed,
            self.steals
        )
    }
}

impl Details for ForkJoinSnapshot {
    fn measurements(&self) -> Vec<Measurement> {
        vec![
            Measurement::gauge("parallelism", self.parallelism).with_unit("workers"),
            Measurement::gauge("active", self.active).with_unit("workers"),
            Measurement::gauge("blocked", self.blocked).with_unit("workers"),
            Measurement::gauge("joining", self.joining).with_unit("workers"),
            Measurement::gauge("spares", self.spares).with_unit("workers"),
            Measurement::gauge("sleeping", self.sleeping).with_unit("workers"),
            Measurement::gauge("searching", self.searching).with_unit("workers"),
            Measurement::gauge("largest", self.largest).with_unit("workers"),
            Measurement::gauge("queued_outside", self.queued_outside),
            Measurement::gauge(
                "queued_by_workers",
                self.queued_by_worker.iter().sum::<usize>(),
            ),
            Measurement::gauge("queued_joined", self.queued_joined),
            Measurement::counter("ran_elsewhere", self.ran_elsewhere).with_unit("tasks"),
            Measurement::counter("expired", self.expired).with_unit("tasks"),
            Measurement::counter("handed_back", self.handed_back).with_unit("tasks"),
            Measurement::counter("installed", self.installed),
            Measurement::counter("published", self.published).with_unit("jobs"),
            Measurement::counter("steals", self.steals),
            Measurement::counter("leaps", self.leaps).with_unit("jobs"),
            Measurement::gauge("max_help_depth", self.max_help_depth).with_unit("jobs"),
            Measurement::counter("spares_exhausted", self.spares_exhausted).with_unit("times"),
            Measurement::counter("parks", self.parks).with_unit("times"),
            Measurement::counter("wakes", self.wakes).with_unit("times"),
            Measurement::counter("dropped_detached", self.dropped_detached).with_unit("tasks"),
            Measurement::counter("thread_failures", self.thread_failures).with_unit("attempts"),
        ]
    }
}

impl ForkJoinEngine {
    fn snapshot(&self) -> ForkJoinSnapshot {
        let ctl = self.ctl().read();
        let rare = &self.rare;
        let mut snapshot = ForkJoinSnapshot {
            name: self.name.to_string(),
            state: self.shown(ctl),
            parallelism: self.parallelism(),
            workers: 0,
            active: 0,
            blocked: 0,
            joining: 0,
            spares: 0,
            max_spares: self.config.max_spares(),
            sleeping: 0,
            searching: 0,
            largest: 0,
            queued_outside: 0,
            queued_by_worker: Vec::new(),
            running: 0,
            queued_joined: 0,
            submitted: 0,
            rejected: rare.rejected.get(),
            completed: 0,
            ran_elsewhere: 0,
            panicked: 0,
            cancelled: 0,
            expired: 0,
            handed_back: 0,
            installed: rare.installed.get(),
            published: 0,
            steals: 0,
            leaps: 0,
            max_help_depth: 0,
            spares_exhausted: self.spares.exhausted.get(),
            parks: 0,
            wakes: rare.wakes.get(),
            deadlocks: self.watchdog.deadlocks.get(),
            dropped_detached: self.dropped.count(),
            thread_failures: self.starts.failures.get(),
            failed_starts_in_a_row: self.starts.failed_in_a_row.get(),
        };
        let counted = self
            .read_workers(|workers| {
                let (busy, counts) = (workers.busy(), workers.counts());
                (busy, counts, workers.forks(), workers.largest())
            })
            .unwrap_or_default();
        let (busy, counts, forks, largest) = counted;
        snapshot.largest = largest;
        // In a child, nothing is queued and nothing runs.
        if !self.is_forked() {
            let idle = self.sleep.read();
            snapshot.workers = ctl.workers();
            snapshot.active = ctl.workers().saturating_sub(idle.count() + idle.waiting());
            snapshot.blocked = idle.blocked();
            snapshot.joining = idle.joining();
            snapshot.spares = ctl.workers().saturating_sub(snapshot.parallelism);
            snapshot.sleeping = idle.sleeping();
            snapshot.searching = idle.searching();
            snapshot.queued_outside = self.outside.len();
            snapshot.queued_by_worker = self
                .slots
                .iter()
                .filter(|slot| slot.is_taken())
                .map(|slot| slot.deque.len())
                .collect();
            snapshot.running = busy + counts.nested() as usize;
            let tombstones = counts.queued_tombstones(self.removed.tombstones.get());
            snapshot.queued_joined = usize::try_from(tombstones).unwrap_or(usize::MAX);
        }
        let removed = &self.removed;
        snapshot.ran_elsewhere = counts.elsewhere + removed.elsewhere.get();
        snapshot.completed = counts.completed + snapshot.ran_elsewhere;
        // A panic on a joining thread is counted before its task has left the queue.
        let panicked = counts.panicked + self.tombstones.tag().panics_elsewhere();
        snapshot.panicked = panicked.min(snapshot.completed);
        snapshot.expired = counts.expired + removed.expired.get();
        snapshot.handed_back = removed.handed_back.get();
        snapshot.cancelled =
            counts.cancelled + removed.cancelled.get() + snapshot.expired + snapshot.handed_back;
        let over = snapshot.completed + snapshot.cancelled;
        snapshot.submitted = self.submitted().max(over);
        snapshot.published = forks.published;
        snapshot.steals = forks.steals;
        snapshot.leaps = forks.leaps;
        snapshot.max_help_depth = forks.max_help_depth;
        snapshot.parks = forks.parks;
        snapshot
    }
}

impl ForkJoinPool {
    /// Its parameters and counters at one moment.
    ///
    /// ```
    /// use millpond::executor::{ExecutorExt, Lifecycle};
    /// use millpond::forkjoin::ForkJoinPool;
    ///
    /// let pool = ForkJoinPool::builder("mill").parallelism(2).build()?;
    /// for _ in 0..10 {
    ///     pool.execute(|| ())?;
    /// }
    /// pool.close()?;
    /// let snapshot = pool.snapshot();
    /// assert_eq!((snapshot.completed, snapshot.workers, snapshot.queued_outside), (10, 0, 0));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[doc(alias = "getStealCount")]
    #[doc(alias = "getQueuedSubmissionCount")]
    #[doc(alias = "getActiveThreadCount")]
    pub fn snapshot(&self) -> ForkJoinSnapshot {
        self.engine.snapshot()
    }

    pub(super) fn as_engine_snapshot(&self) -> EngineSnapshot {
        let own = self.snapshot();
        let mut engine = EngineSnapshot::new(own.name.clone(), "fork-join pool", own.state);
        engine.workers = own.workers;
        // What is in the queues may be jobs, or tombstones of tasks that have run. Every task that is not over waits or runs.
        // In a forked child, none does.
        let over = own.completed + own.cancelled;
        let unfinished = match self.engine.is_forked() {
            true => 0,
            false => own.submitted.saturating_sub(over) as usize,
        };
        engine.running = own.running.min(unfinished);
        engine.queued = unfinished - engine.running;
        engine.submitted = own.submitted;
        engine.completed = own.completed;
        engine.failed = own.panicked;
        engine.rejected = own.rejected;
        engine.cancelled = own.cancelled;
        let named = self.metrics_by_name().into_iter();
        engine.latencies = named.map(TaskMetrics::into_latency).collect();
        let health = self.health();
        engine.warnings = warnings(&own, &health);
        engine
            .with_details(own)
            .with_measurements(health.measurements())
    }
}
