//! Inline joins: a worker that joins a task of its own engine's queue runs it there and then; and the tombstones that
//! such tasks, and cancelled ones, leave in the queue.
//!
//! The rules by which a join runs inline are those of `task::inline`. To the engine it is a task like any other: its
//! hooks are called and it is counted as completed. But it is *nested*: the worker runs two tasks at once, or more.
//!
//! When a tombstone leaves the queue it is counted under the outcome of its task. The exception is the tombstone of a task
//! that a worker of the engine ran inline: that task has been counted already. Until such a tombstone leaves, it must not
//! show as a queued task. So the engine counts how many of them were made and how many have left, and subtracts the
//! difference from the length of the queue.

use super::spawn::WorkerEngine;
use super::workers::Worker;
use crate::executor::{Inside, TaskOutcome};
use crate::task::{self, Cycle, InlineCallbacks, QueueOwner, QueueTag, Task, TaskView};
use millpond_raw::cache_padded::CachePadded;
use millpond_raw::catch_panic;
use millpond_raw::sync::Mutex;
use millpond_raw::sync::atomic::{AtomicUsize, Ordering};
use millpond_raw::task::BodyEnd;
use millpond_raw::timestamp::Timestamp;
use std::sync::Arc;

/// What an engine does when its workers run joined tasks inline. Only `contains` may panic.
pub(crate) trait InlineJoins: WorkerEngine {
    fn tombstones(&self) -> &Tombstones;

    /// Whether a queued task may run before its turn. Not if the queue keeps it until its time has come.
    fn allows_inline(&self) -> bool;

    /// Whether the task with this mark is in the queue, which may be the user's and panic.
    fn contains(&self, mark: usize) -> bool;

    /// A worker is about to run a joined task.
    fn inline_started(&self, worker: &Worker<Self::Part>, task: TaskView<'_>);

    /// It has run a joined task.
    fn inline_ended(&self, worker: &Worker<Self::Part>, task: TaskView<'_>, run: InlineRun);

    /// A task of the worker was the last of a cycle of joins, and has been told.
    fn deadlocked(self: &Arc<Self>, cycle: &Cycle);
}

/// The run of a task inline.
pub(crate) struct InlineRun {
    pub(crate) outcome: TaskOutcome,
    /// The message of its panic.
    pub(crate) message: Option<String>,
    pub(crate) start: Option<Timestamp>,
}

/// A worker, as a host of inline joins.
pub(crate) struct InlineHost<E: InlineJoins> {
    engine: Arc<E>,
    worker: Arc<Worker<E::Part>>,
    /// When the tasks started that run inline, the innermost last. Only the worker's own thread uses it. The lock
    /// only makes the type `Sync`.
    starts: Mutex<Vec<Timestamp>>,
}

impl<E: InlineJoins> InlineHost<E> {
    /// Runs `f` as the life of this worker. What it joins of its engine's queue runs inline, if that allows it.
    pub(crate) fn enter<R>(
        engine: &Arc<E>,
        worker: &Arc<Worker<E::Part>>,
        f: impl FnOnce() -> R,
    ) -> R {
        let _inside = Inside::of(&**engine);
        if !engine.allows_inline() {
            return f();
        }
        let host = InlineHost {
            engine: Arc::clone(engine),
            worker: Arc::clone(worker),
            starts: Mutex::new(Vec::new()),
        };
        task::enter_worker(&engine.tombstones().tag, Arc::new(host), f)
    }
}

impl<E: InlineJoins> InlineCallbacks for InlineHost<E> {
    fn contains(&self, mark: usize) -> bool {
        // After a panic of the user's queue this is unknown. Waiting is right in any case.
        catch_panic::call(|| self.engine.contains(mark)).unwrap_or(false)
    }

    fn started(&self, task: TaskView<'_>) {
        self.starts.lock().push(self.engine.timestamps().now());
        self.engine.inline_started(&self.worker, task);
    }

    fn deadlocked(&self, cycle: &Cycle) {
        self.engine.deadlocked(cycle);
    }

    fn ended(&self, task: TaskView<'_>, end: BodyEnd, message: Option<String>) {
        let run = InlineRun {
            outcome: match end {
                BodyEnd::Returned => TaskOutcome::Completed,
                BodyEnd::Panicked => TaskOutcome::Panicked,
                BodyEnd::Unwanted => TaskOutcome::Unwanted,
            },
            message,
            start: self.starts.lock().pop(),
        };
        self.engine.inline_ended(&self.worker, task, run);
    }
}

/// What an engine knows of the tombstones in its queue. To be dropped after the queue (TAG-2).
pub(crate) struct Tombstones {
    /// Where handles count tasks that they have emptied in the queue.
    tag: QueueTag,
    /// How many of them had been counted when the queue was last cleared.
    seen: CachePadded<AtomicUsize>,
    /// Tombstones are cleared out by one thread at a time.
    clearing: Mutex<()>,
}

impl Tombstones {
    pub(crate) fn new(owner: QueueOwner) -> Self {
        let tag = QueueTag::allocate(owner);
        Tombstones {
            seen: CachePadded::new(AtomicUsize::new(tag.tombstones())),
            tag,
            clearing: Mutex::new(()),
        }
    }

    /// The tag of the engine's queue, for tasks that come into it.
    #[inline]
    pub(crate) fn tag(&self) -> &QueueTag {
        &self.tag
    }

    /// Whether there may be tombstones that have come since the queue was last cleared.
    #[inline]
    pub(crate) fn has_new(&self) -> bool {
        let seen = self.seen.load(Ordering::Relaxed);
        self.tag.tombstones() != seen
    }

    /// Takes tombstones out of the queue, if new ones have come. They are dropped by the caller, under no lock: they may
    /// carry code of the user's, and the last one may terminate the engine.
    ///
    /// The count is read before the walk, so a task that is cancelled during it is a reason for the next walk
    /// (TOMBSTONE-1). It is recorded after the walk, so that a thread that comes meanwhile waits for the walk, unless
    /// the walk `is_unlocked`, because the queue is the user's.
    pub(crate) fn clear(&self, is_unlocked: bool, walk: impl FnOnce() -> Vec<Task>) -> Vec<Task> {
        let _turn = (!is_unlocked).then(|| self.clearing.lock());
        let counted = self.tag.tombstones();
        if self.seen.load(Ordering::Relaxed) == counted {
            return Vec::new();
        }
        let found = walk();
        self.seen.store(counted, Ordering::Relaxed);
        found
    }
}
