//! What the handles, the tasks and the series of a scheduled pool share.
//!
//! ```text
//!   schedule(5 s, task) ---> [ pending queue: a timing wheel ]
//!                                   |  due: the timer's alarm fires, or the leader wakes up
//!                                   v
//!                              dispatch: try_execute_task ------------------> executor
//!                                   |  the caller would have to wait        ^
//!                                   +---> dispatcher's queue --- thread ----+
//! ```
//!
//! # Invariants
//!
//! - **SCHEDULE-1** The pending queue, and whether the pool accepts tasks, are under one lock. So a task is in the queue
//!   before a shutdown, and subject to it, or it is rejected; there is no moment in between. (Java had one, for
//!   twenty years.)
//! - **SCHEDULE-2** A task is in the pending queue, in the hands of the thread that dispatches, in the dispatcher's queue,
//!   or with the executor. It is moved, never copied, so it is run once or cancelled with a reason. Between
//!   cancelling and running, its cell decides.
//! - **SCHEDULE-3** No user code runs under a lock of the pool. On the timer's thread none runs but
//!   `Executor::try_execute_task`, which promises neither to wait nor to run the task. Tasks that are not accepted there, or
//!   must be dropped, are left to the dispatcher's thread or to another one.
//! - **SCHEDULE-4** A shutdown cancels what is due later, as the policies say. What is due runs, even if it is still in
//!   the pending queue. A stop hands back both: tasks of an executor that is not the pool's own as far as that
//!   gives them back, and the task in flight if it comes back soon (DISPATCHER-4).
//!
//! The others: LIVENESS-1 to LIVENESS-6 (when it has terminated), DISPATCH-1 to DISPATCH-3, DISPATCHER-1 to DISPATCHER-4,
//! ALARM-1 and ALARM-2, LEADER-1 to LEADER-4, STATESLOT-1 to STATESLOT-4, SERIES-1 to SERIES-5,
//! SCHEDULE-CONFIG-1. How they fit together is in `docs/design/schedule.md`.

use super::RunInfo;
use super::dispatcher::DispatchQueue;
use super::events::ScheduleEvent;
use super::handed_over::HandedOver;
use super::liveness::Runs;
use super::plan::Now;
use super::state::{PoolState, StateSlot};
use crate::engine::events::Events;
use crate::engine::{CommonBuilder, ForkGuard, Termination};
use crate::executor::{Executor, Lifecycle, RejectReason, Rejected};
use crate::thread::ThreadFactory;
use crate::time::{Clock, Deadline, due_since};
use millpond_raw::sync::MutexGuard;
use millpond_raw::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use millpond_raw::user_code::{self, Kind};
use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The user's code around every run.
pub(super) type Decorator = dyn Fn(&RunInfo, &mut dyn FnMut()) + Send + Sync;

/// An executor that terminates with the pool.
pub(super) type OwnedExecutor = dyn Lifecycle + Send + Sync;

pub(super) struct ScheduleEngine {
    pub(super) name: Cow<'static, str>,
    pub(super) clock: Clock,
    pub(super) executor: Arc<dyn Executor>,
    /// The executor again, if it is the pool's own.
    pub(super) owned: Option<Arc<OwnedExecutor>>,
    pub(super) slot: &'static StateSlot,
    pub(super) dispatch_queue: DispatchQueue,
    pub(super) dispatcher_threads: Box<dyn ThreadFactory>,
    pub(super) termination: Termination,
    pub(super) runs: Runs,
    pub(super) counters: Counters,
    /// The executor has rejected a task because it is shut down.
    pub(super) is_executor_down: AtomicBool,
    pub(super) handed_over: HandedOver,
    pub(super) decorator: Option<Box<Decorator>>,
    pub(super) events: Events<ScheduleEngine>,
    /// The instant from which due times are counted in nanoseconds.
    base: Instant,
    fork_guard: ForkGuard,
}

#[derive(Debug, Default)]
pub(super) struct Counters {
    /// Series that have not ended.
    pub(super) series: AtomicUsize,
    pub(super) skipped: AtomicU64,
    /// Tasks and series that were not accepted.
    pub(super) rejected: AtomicU64,
    /// Accepted tasks and runs that the executor rejected or dropped when they were due.
    pub(super) rejected_when_due: AtomicU64,
    /// Tasks that went straight to the executor, which accepted them.
    pub(super) executed: AtomicU64,
}

/// What a pool is made of.
pub(super) struct Parts {
    pub(super) common: CommonBuilder<ScheduleEvent>,
    pub(super) executor: Arc<dyn Executor>,
    pub(super) owned: Option<Arc<OwnedExecutor>>,
    pub(super) dispatcher_threads: Box<dyn ThreadFactory>,
    pub(super) decorator: Option<Box<Decorator>>,
    pub(super) max_pending: Option<usize>,
    pub(super) runs_delayed: bool,
    pub(super) runs_periodic: bool,
}

impl ScheduleEngine {
    pub(super) fn new(parts: Parts) -> Arc<Self> {
        let fork_guard = ForkGuard::new();
        let slot = StateSlot::acquire(&parts, parts.common.clock().now());
        let base = slot.lock().pending.base();
        let common = parts.common;
        Arc::new_cyclic(|this| ScheduleEngine {
            name: common.name,
            clock: common.clock,
            executor: parts.executor,
            owned: parts.owned,
            slot,
            dispatch_queue: DispatchQueue::new(),
            dispatcher_threads: parts.dispatcher_threads,
            termination: Termination::new(),
            runs: Runs::new(),
            counters: Counters::default(),
            is_executor_down: AtomicBool::new(false),
            handed_over: HandedOver::new(),
            decorator: parts.decorator,
            events: Events::new(this, common.listener),
            base,
            fork_guard,
        })
    }

    #[inline]
    pub(super) fn state(&self) -> MutexGuard<'static, PoolState> {
        self.slot.lock()
    }

    /// The state; `None` in a forked process, where its lock may be held by no thread.
    pub(super) fn live_state(&self) -> Option<MutexGuard<'static, PoolState>> {
        (!self.is_forked()).then(|| self.state())
    }

    /// The state, to read it. In a forked process `None` if its lock is not free: no thread will release it.
    pub(super) fn readable_state(&self) -> Option<MutexGuard<'static, PoolState>> {
        if self.is_forked() {
            self.slot.try_lock()
        } else {
            Some(self.state())
        }
    }

    /// Counts a task or a series that is not accepted, and gives it back.
    #[cold]
    pub(super) fn not_accepted<F>(&self, task: F, reason: RejectReason) -> Rejected<F> {
        self.counters.rejected.fetch_add(1, Ordering::Relaxed);
        Rejected::new(task, reason)
    }

    /// Whether the timer and the executor's threads are in the parent of this process.
    pub(super) fn is_forked(&self) -> bool {
        self.fork_guard.is_forked()
    }

    pub(super) fn now(&self) -> Now {
        Now {
            instant: self.clock.now(),
            wall: self.clock.wall(),
        }
    }

    /// A due time in one word; the largest is never.
    pub(super) fn nanos(&self, due: Deadline) -> u64 {
        due_since(self.base, due)
    }

    pub(super) fn instant(&self, nanos: u64) -> Instant {
        let due = self.base.checked_add(Duration::from_nanos(nanos));
        due.unwrap_or(self.base)
    }
}

impl Drop for ScheduleEngine {
    fn drop(&mut self) {
        // Its listener, its decorator and its factory are the user's.
        user_code::check(Kind::Destructor);
        self.slot.release();
    }
}

impl fmt::Debug for ScheduleEngine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ScheduleEngine")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}
