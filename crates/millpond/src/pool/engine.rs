//! The pool itself, without the handles of its users: its parts, and the protocol between submitters and workers.
//!
//! ```text
//!                    below core?           room in the queue?      below max?
//!   submit(task) -----> yes: new worker --> yes: enqueue     -----> yes: new worker --> rejection
//!                |                     no ^                no ^                    no ^   policy
//!                |
//!                |      queue                     workers
//!                +---> [ t t t t ] <--- take ---  1 2 3 ..   run, search, park, leave
//! ```
//!
//! # The protocol
//!
//! Workers are consumers of the queue, so sleeping and waking is the queue's business. What is left is when workers come and
//! go:
//!
//! - **POOL-1** A submitter that has enqueued a task reads the control word *afterwards*. If no worker is counted, or
//!   fewer than it relied on, it starts one. (With threads first it may rely on one that is free: see `free_workers`. A
//!   counted worker looks into the queue before it leaves; for one that could not start, the thread that counted it
//!   does, SPAWN-1.)
//! - **POOL-2** A leaving worker decrements the worker count first, then re-checks the queue. If a task is there and there
//!   are fewer workers than its submitter could rely on (none; fewer than the core; with threads first, fewer than the
//!   maximum), it counts itself in again and stays: no thread needs to be started for that, so none can fail to start.
//!   Likewise a submitter that waits for room is on the list of the waiters first and reads the count afterwards; a
//!   leaving worker wakes that list.
//! - **POOL-3** A task that a worker has taken out of the queue is run by it, with its token set if the pool has been
//!   stopped meanwhile; or it was a tombstone.
//! - **POOL-4** No user code (a factory, hook, handler, queue, closure or destructor) runs under a lock of the pool.
//!
//! Beside it: CTL, WORKERS, SPAWN, IDENTITY and END in [`crate::engine`], FREE in `free_workers`, SEAL in `task_queue`, TIMERLEADER in
//! `timer_leader`.
//!
//! # Orderings
//!
//! - `[E-queue]` One of two fences for queues of the user's. It is explained in [`super::task_queue`], where the other is.
//! - `[E-epoch]` A thread that wakes the idle workers advances the epoch first and then wakes them. A worker reads the epoch
//!   before each park. The wake carries the order. The accesses are sequentially consistent all the same, because that is
//!   as cheap here and pairs with the control word, which is read in between. The read before the park needs no order of
//!   its own, so no model notices if it has none. Proof: let a worker park without having seen the new epoch. If it was
//!   in the registry when the waking thread walked it, the worker gets a token after the epoch was advanced. It looks
//!   again only after it has taken that token. That acquires what came before the wake (`[P-tok]`), so the worker sees the
//!   epoch. If it was not in the registry, it has entered it later, under the same lock, and its first read comes after that.
//! - `[E-stay]` A worker that stays for a task says so before its last look into the queue. With a user's queue that look
//!   is behind the fence in [`super::task_queue`]. A thread that takes a task out reads afterwards, behind a fence, whether
//!   a worker stays. One of them sees the other.
//!
//! # In a child process
//!
//! After a `fork()` every call asks the [`ForkGuard`] first, and takes no lock unless it is free:
//!
//! | call | in the child |
//! |---|---|
//! | `execute`, `submit` and so on | rejected: [`RejectReason::Forked`](crate::executor::RejectReason::Forked), whatever the policy |
//! | `shutdown`, `shutdown_now`, dropping it | recorded, without an event; no task is handed back, for they are the parent's |
//! | `await_termination` and so on, `close`, `is_terminated` | returns at once, and says that it is over: nothing of it runs here |
//! | `snapshot` | no worker, nothing queued; the counters, if their lock is free |
//! | `apply`, `set_*` of parameters, `prestart_*` | an error |
//! | `metrics`, `metrics_by_name`, `workers`, `stacks`, `run_warning` | nothing |
//! | `set_run_warning*`, `set_rejection`, `set_thread_factory`, `remove`, `purge`, `queued_tasks` | nothing |
//!
//! What is in its queue is never dropped in the child, nor its workers' copies of themselves: a little memory stays
//! taken. Handles of its tasks say [`TaskError::Forked`](crate::task::TaskError).

use super::config::{LiveConfig, Overload};
use super::events::{PoolEvent, Reports};
use super::finish::FinishTimes;
use super::free_workers::FreeWorkers;
use super::hooks::Hooks;
use super::pacer::Pacer;
use super::rejection::RejectionCounters;
use super::rejection::RejectionPolicy;
use super::shed::Shedder;
use super::stats::RareStats;
use super::task_queue::TaskQueue;
use super::timer_leader::TimerSlot;
use super::worker::{Worker, Workers};
use crate::engine::dropped::Drops;
use crate::engine::events::Events;
use crate::engine::metrics::LabelTable;
use crate::engine::stacks::LongRuns;
use crate::engine::watchdog::Watchdog;
use crate::engine::{
    AtomicCtl, CommonBuilder, ForkGuard, RemovedTasks, Starts, Termination, Tombstones,
    WorkerBuilder,
};
use crate::executor::Runner;
use crate::task::QueueOwner;
use crate::thread::{ThreadFactory, Threads};
use crate::time::{Clock, TimestampClock};
use millpond_raw::cache_padded::CachePadded;
use millpond_raw::sync::Mutex;
use millpond_raw::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize};
use millpond_raw::user_code;
use millpond_raw::wait_queue::WaitQueue;
use std::borrow::Cow;
use std::sync::{Arc, Weak};

/// What the handles of a pool and its workers share.
pub(super) struct PoolEngine {
    pub(super) name: Cow<'static, str>,
    front: CachePadded<Front>,
    pub(super) queue: TaskQueue,
    /// To be dropped after the queue (TAG-2), so it stands behind it.
    pub(super) tombstones: Tombstones,
    pub(super) idle: IdleWorkers,
    pub(super) free_workers: FreeWorkers,
    workers: Mutex<Workers>,
    pub(super) termination: Termination,
    /// Submitters that wait for room, to be told of new limits and of the end.
    pub(super) room_waiters: WaitQueue,
    pub(super) rare: RareStats,
    pub(super) starts: Starts,
    pub(super) removed: RemovedTasks,
    pub(super) rejections: RejectionCounters,
    /// Which tasks are shed when their turn comes.
    pub(super) shedder: CachePadded<Shedder>,
    /// How long tasks take that have a time by which they must have ended.
    pub(super) finish_times: FinishTimes,
    /// How long the queue needs to drain, for rejected submitters.
    pub(super) pacer: CachePadded<Pacer>,
    pub(super) hooks: Option<Box<dyn Hooks>>,
    pub(super) runner: Runner,
    pub(super) clock: Clock,
    pub(super) timestamps: TimestampClock,
    /// The labels of its metrics; `None` if it keeps none.
    pub(super) labels: Option<LabelTable>,
    pub(super) watchdog: Watchdog,
    pub(super) events: Events<PoolEngine>,
    pub(super) reports: Reports,
    pub(super) dropped: Drops,
    pub(super) long_runs: LongRuns<Worker>,
}

/// What every submit reads and hardly any thread writes.
struct Front {
    ctl: AtomicCtl,
    config: LiveConfig,
    /// True while the [watchdog](crate::engine::watchdog) is armed.
    is_watched: AtomicBool,
    fork_guard: ForkGuard,
}

/// What idle workers look at.
pub(super) struct IdleWorkers {
    /// Advances when something has changed that idle workers must look at; see [`PoolEngine::wake_idle_workers`].
    pub(super) epoch: CachePadded<AtomicU64>,
    /// How many surplus workers stay for a queued task; see [`PoolEngine::wake_staying_workers`].
    pub(super) staying: CachePadded<AtomicUsize>,
    /// Where one of them may wait for a time as well.
    pub(super) timer: TimerSlot,
}

/// What a pool is made of.
pub(super) struct Parts {
    pub(super) common: CommonBuilder<PoolEvent>,
    pub(super) workers: WorkerBuilder,
    pub(super) config: LiveConfig,
    pub(super) overload: Overload,
    pub(super) queue: TaskQueue,
    pub(super) hooks: Option<Box<dyn Hooks>>,
}

impl PoolEngine {
    pub(super) fn new(parts: Parts, own: Weak<PoolEngine>) -> Self {
        let tombstones = Tombstones::new(if parts.queue.is_foreign() {
            QueueOwner::User
        } else {
            QueueOwner::Engine
        });
        let common = parts.common;
        let of_workers = parts.workers.into_parts(&common.clock);
        let (labels, now) = (of_workers.labels, of_workers.timestamps.now());
        PoolEngine {
            name: common.name,
            front: CachePadded::new(Front {
                ctl: AtomicCtl::new(),
                config: parts.config,
                is_watched: AtomicBool::new(false),
                fork_guard: ForkGuard::new(),
            }),
            queue: parts.queue,
            tombstones,
            idle: IdleWorkers {
                epoch: CachePadded::new(AtomicU64::new(0)),
                staying: CachePadded::new(AtomicUsize::new(0)),
                timer: TimerSlot::default(),
            },
            free_workers: FreeWorkers::default(),
            workers: Mutex::new(Workers::default()),
            termination: Termination::new(),
            room_waiters: WaitQueue::new(),
            rare: RareStats::default(),
            starts: Starts::default(),
            removed: RemovedTasks::default(),
            rejections: RejectionCounters::new(labels.as_ref().map_or(1, LabelTable::len)),
            shedder: CachePadded::new(Shedder::new(parts.overload, now)),
            finish_times: FinishTimes::default(),
            pacer: CachePadded::new(Pacer::new(now)),
            hooks: parts.hooks,
            runner: of_workers.runner,
            timestamps: of_workers.timestamps,
            labels,
            watchdog: of_workers.watchdog,
            events: Events::new(&own, common.listener),
            reports: Reports::default(),
            dropped: Drops::new(),
            long_runs: LongRuns::default(),
            clock: common.clock,
        }
    }

    #[inline]
    pub(super) fn ctl(&self) -> &AtomicCtl {
        &self.front.ctl
    }

    /// Whether its threads are in the parent of this process.
    #[inline]
    pub(super) fn is_forked(&self) -> bool {
        self.front.fork_guard.is_forked()
    }

    #[inline]
    pub(super) fn config(&self) -> &LiveConfig {
        &self.front.config
    }

    #[inline]
    pub(super) fn is_watched(&self) -> &AtomicBool {
        &self.front.is_watched
    }

    /// Reads the registry of workers, or changes it.
    pub(super) fn with_workers<R>(&self, f: impl FnOnce(&mut Workers) -> R) -> R {
        f(&mut self.workers.lock())
    }

    /// Reads the registry of workers, if its lock is free.
    pub(super) fn try_with_workers<R>(&self, f: impl FnOnce(&mut Workers) -> R) -> Option<R> {
        self.workers.try_lock().map(|mut workers| f(&mut workers))
    }

    /// The number of labels that a new worker needs metrics for.
    pub(super) fn max_labels(&self) -> usize {
        self.labels.as_ref().map_or(0, LabelTable::len)
    }

    pub(super) fn overload(&self) -> Overload {
        if self.is_forked() {
            Overload::default()
        } else {
            self.shedder.settings()
        }
    }

    pub(super) fn rejection(&self) -> RejectionPolicy {
        if self.is_forked() {
            RejectionPolicy::Abort
        } else {
            self.config().rejection()
        }
    }

    pub(super) fn factory(&self) -> Arc<dyn ThreadFactory> {
        if self.is_forked() {
            Arc::new(Threads::named(self.name.clone()))
        } else {
            Arc::clone(&self.config().lock().factory)
        }
    }
}

impl Drop for PoolEngine {
    fn drop(&mut self) {
        // Its hooks, its factory and its queue are the user's.
        user_code::check(user_code::Kind::Destructor);
    }
}
