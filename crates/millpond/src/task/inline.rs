//! Inline joins: running a task on the thread that waits for it.
//!
//! A worker that joins a queued task of its own engine runs that task inline: that very one, and no other. So a pool
//! cannot starve on tasks that wait for tasks behind them in the queue, however few workers it has, and a worker that
//! would only wait does something useful.
//!
//! ```text
//!   worker:  [ body of A:  ... b.join() ]          queue:  [ b c d ]
//!                                |
//!                                +-- b is unstarted and has my tag: claim it
//!                                |   [ body of b ]            [ tombstone c d ]
//!                                +-- b is finished, so the join does not wait
//! ```
//!
//! A task carries the number of its [queue tag](super::queue_tag), and a worker's thread has the number of its own in a
//! thread-local ([`enter_worker`]). A join compares the two before it waits. So a thread that is no worker, or a join of
//! a task without a tag, pays for one look at most, and a join of a finished or running task pays nothing. If the number
//! cannot be trusted (TAG-4), the engine is asked whether the task is in its queue.
//!
//! # Rules
//!
//! - **INLINE-1** Only a task in the queue of the worker's own engine is run inline, however many engines there are.
//! - **INLINE-2** A task whose deadline has passed is not run but cancelled as expired, as a worker would do.
//! - **INLINE-3** A caller that is interrupted, or whose timeout is over, runs nothing: its join says so.
//! - **INLINE-4** A chain of inline joins is a recursion, and a stack overflow ends the process. So a task is run inline
//!   only while half of the worker's stack is left; where the stack is unknown, while no more than [`MAX_DEPTH`] tasks
//!   are nested. Beyond that the join waits like any other, for another worker.
//! - **INLINE-5** A task that is run inline by a worker of its engine is counted there once: by [`InlineCallbacks`], like
//!   any task of that worker. Its tombstone in the queue is recognized by its state and is not counted again. The engine
//!   may give the task back at the same moment. Both threads detach it (TOMBSTONE-3), the joining one after it has
//!   claimed it, the engine before it looks whether it is claimed; and the one that has detached it counts it.
//!
//! # Orderings
//!
//! - `[H-leave]` INLINE-5 has two ways to detach, both in [`super::queue_tag`]. The joining thread releases its claim when
//!   it detaches, and the engine acquires it. So an engine that comes second sees that the task is claimed.

use super::blocked_joins::address;
use super::cycle::TaskLabel;
use super::delivered::notify_delivered;
use super::finish::FinishAlarm;
use super::meta::{Meta, TaskView};
use super::{CancelReason, Cycle, QueueTag, context};
use crate::interrupt;
use crate::time::Deadline;
use millpond_raw::stack_space;
use millpond_raw::sync::local;
use millpond_raw::task::{self as raw, BodyEnd, InlineRunner, Panic};
use std::cell::{Cell, RefCell};
use std::sync::Arc;

/// How many tasks may be nested on a thread whose stack is unknown (INLINE-4).
const MAX_DEPTH: u32 = 64;

/// The engine of a worker, as inline joins need it. No call may panic.
pub(crate) trait InlineCallbacks: Send + Sync {
    /// Whether the task with this [mark](super::Task::mark) is in the engine's queue. Asked if the tag number cannot be
    /// trusted.
    fn contains(&self, mark: usize) -> bool;

    /// A worker has claimed this task of the engine, and its body is about to start.
    fn started(&self, task: TaskView<'_>);

    /// A task that runs on the worker closed a wait cycle, and its join has failed.
    fn deadlocked(&self, cycle: &Cycle);

    /// The body has ended; `message` is that of its panic.
    fn ended(&self, task: TaskView<'_>, end: BodyEnd, message: Option<String>);
}

/// Which engine the current thread is a worker of.
#[derive(Clone, Copy)]
struct WorkerContext {
    /// The tag number of the engine; 0 if the thread is no worker.
    tag: u32,
    /// Every task with that number is the engine's (TAG-4).
    is_trusted: bool,
    /// The engine; 0 if the thread is no worker.
    engine: u64,
    /// How many tasks run inline on the thread.
    depth: u32,
}

const NO_WORKER: WorkerContext = WorkerContext {
    tag: 0,
    is_trusted: true,
    engine: 0,
    depth: 0,
};

local! {
    static CONTEXT: Cell<WorkerContext> = Cell::new(NO_WORKER);
}

local! {
    /// The tasks that run inline on this thread, the innermost last.
    static NESTED: RefCell<Vec<(usize, TaskLabel)>> = RefCell::new(Vec::new());
}

local! {
    static CALLBACKS: RefCell<Option<Arc<dyn InlineCallbacks>>> = RefCell::new(None);
}

fn worker() -> WorkerContext {
    // A thread that is being torn down is no worker any more.
    CONTEXT.try_with(Cell::get).unwrap_or(NO_WORKER)
}

fn callbacks() -> Option<Arc<dyn InlineCallbacks>> {
    CALLBACKS
        .try_with(|own| own.borrow().clone())
        .ok()
        .flatten()
}

/// Reports a wait cycle to the engine whose worker this is, if any.
pub(super) fn report_deadlock(cycle: &Cycle) {
    if let Some(callbacks) = callbacks() {
        callbacks.deadlocked(cycle);
    }
}

/// Runs `f` as the life of a worker of the engine with this tag.
pub(crate) fn enter_worker<R>(
    tag: &QueueTag,
    callbacks: Arc<dyn InlineCallbacks>,
    f: impl FnOnce() -> R,
) -> R {
    struct Restore(WorkerContext, Option<Arc<dyn InlineCallbacks>>);

    impl Drop for Restore {
        fn drop(&mut self) {
            let _ = CONTEXT.try_with(|context| context.set(self.0));
            let ours = CALLBACKS.try_with(|own| own.replace(self.1.take()));
            // Not before the borrow has ended.
            drop(ours);
        }
    }

    let inside = WorkerContext {
        tag: tag.number(),
        is_trusted: tag.is_trusted(),
        engine: tag.engine(),
        depth: 0,
    };
    let before = CONTEXT.try_with(|context| context.replace(inside));
    let former = CALLBACKS.try_with(|own| own.replace(Some(callbacks)));
    let _restore = Restore(before.unwrap_or(NO_WORKER), former.ok().flatten());
    f()
}

/// A reference to a task through which the task can be claimed and run.
pub(super) trait Claimable {
    fn meta(&self) -> &Meta;

    fn token(&self) -> &raw::Token;

    fn state(&self) -> raw::state::TaskState;

    fn witness(&self) -> raw::Witness<Meta>;

    fn claim_and_run(
        &self,
        runner: InlineRunner,
        claimed: impl FnOnce(),
        panicked: impl FnOnce(&Panic),
    ) -> Option<BodyEnd>;

    fn cancel_unstarted(&self, reason: CancelReason) -> bool;
}

macro_rules! claimable {
    ([$($of:ident)?] $kind:ty) => {
        impl$(<$of>)? Claimable for $kind {
            fn meta(&self) -> &Meta {
                self.meta()
            }

            fn token(&self) -> &raw::Token {
                self.token()
            }

            fn state(&self) -> raw::state::TaskState {
                self.state()
            }

            fn witness(&self) -> raw::Witness<Meta> {
                self.witness()
            }

            fn claim_and_run(
                &self,
                runner: InlineRunner,
                claimed: impl FnOnce(),
                panicked: impl FnOnce(&Panic),
            ) -> Option<BodyEnd> {
                self.run_inline(runner, claimed, panicked)
            }

            fn cancel_unstarted(&self, reason: CancelReason) -> bool {
                self.give_up(reason)
            }
        }
    };
}

claimable!([T] raw::Handle<T, Meta>);
claimable!([T] raw::Shared<T, Meta>);
claimable!([] raw::Witness<Meta>);

/// Runs the task inline before a wait for it, if it is in the queue of the engine whose worker this is. Returns whether
/// it did.
#[inline]
pub(super) fn self_join(task: &impl Claimable, deadline: Deadline) -> bool {
    let tag = task.meta().tag.number();
    tag != 0 && worker().tag == tag && self_join_slow(task, deadline)
}

/// A task that a worker of its own engine may run inline, without having its handle.
pub(crate) struct InlineCandidate(raw::Witness<Meta>);

impl InlineCandidate {
    /// Of an unstarted task, if this is a worker of its engine.
    pub(super) fn of<T>(task: &raw::Handle<T, Meta>) -> Option<Self> {
        let tag = task.meta().tag.number();
        let may = tag != 0 && worker().tag == tag && !task.state().is_claimed();
        may.then(|| InlineCandidate(task.witness()))
    }

    pub(crate) fn is_unstarted(&self) -> bool {
        !self.0.state().is_claimed()
    }

    /// Runs it by the rules above. Returns whether it did.
    pub(crate) fn self_join(&self, deadline: Deadline) -> bool {
        self_join(&self.0, deadline)
    }
}

/// Whether the current thread is a worker of this engine.
pub(super) fn is_worker_of(engine: u64) -> bool {
    worker().engine == engine
}

/// Whether a task with the tag number of this worker is of this worker's engine (INLINE-1).
fn is_own(task: &impl Claimable) -> bool {
    worker().is_trusted || is_in_queue(task.meta())
}

#[cold]
fn is_in_queue(meta: &Meta) -> bool {
    callbacks().is_some_and(|engine| engine.contains(meta.mark()))
}

/// Whether the current thread is a worker of an engine with a queue.
pub(crate) fn on_engine_worker() -> bool {
    worker().tag != 0
}

/// Whether there is no stack left for another body (INLINE-4).
fn lacks_stack() -> bool {
    match stack_space::current() {
        Some(stack) => stack.left < stack.size / 2,
        None => worker().depth >= MAX_DEPTH,
    }
}

#[cold]
fn self_join_slow(task: &impl Claimable, deadline: Deadline) -> bool {
    let meta = task.meta();
    if task.state().is_claimed() || lacks_stack() || interrupt::is_interrupted() {
        return false;
    }
    if deadline != Deadline::NEVER && deadline.has_passed(meta.clock().now()) {
        return false;
    }
    if !is_own(task) {
        return false;
    }
    if let Some(reason) = meta.expiry() {
        if task.cancel_unstarted(reason) {
            meta.tag.count_tombstone();
        }
        return false;
    }
    run(task)
}

/// Runs the task on this thread, worker or not, if it is unstarted. Returns whether it did.
pub(super) fn run(task: &impl Claimable) -> bool {
    let meta = task.meta();
    let number = meta.tag.number();
    let is_own_worker = number != 0 && worker().tag == number && is_own(task);
    let callbacks = is_own_worker.then(callbacks).flatten();
    let runner = match callbacks {
        Some(_) => InlineRunner::OwnWorker,
        None => InlineRunner::OtherThread,
    };
    let is_counted = Cell::new(false);
    let claimed = || {
        QueueTag::count_tombstone(number);
        let Some(callbacks) = &callbacks else { return };
        if meta.tag.detach_claimed() == number {
            is_counted.set(true);
            callbacks.started(meta.view());
        }
    };
    let mut message = None;
    let panicked = |panic: &Panic| {
        if !is_counted.get() {
            QueueTag::count_panic(number);
        }
        if callbacks.is_some() {
            message = panic.message().map(str::to_owned);
        }
    };
    let body = || {
        let _nested = NestedBody::enter(address(task.token()), meta);
        task.claim_and_run(runner, claimed, panicked)
    };
    let inherited = meta.inherited();
    let ran = if context::is_plain(inherited) {
        body()
    } else {
        let _alarm = FinishAlarm::of(meta, || task.witness());
        context::enter(inherited.cloned(), body)
    };
    notify_delivered(address(task.token()));
    if let (Some(end), true, Some(callbacks)) = (ran, is_counted.get(), &callbacks) {
        callbacks.ended(meta.view(), end, message);
    }
    ran.is_some()
}

/// The label of the task at this address, if it runs inline on this thread.
pub(super) fn label_of(address: usize) -> Option<TaskLabel> {
    let found = NESTED.try_with(|nested| {
        let nested = nested.borrow();
        let own = nested.iter().find(|(body, _)| *body == address);
        own.map(|(_, label)| label.clone())
    });
    found.ok().flatten()
}

/// Records one more inline body on this thread, until it is dropped.
struct NestedBody;

impl NestedBody {
    // Inlined, so that the label is created in its place: moving it there takes longer than the rest.
    #[inline]
    fn enter(address: usize, meta: &Meta) -> Self {
        NestedBody::change_depth(1);
        let _ = NESTED.try_with(|nested| nested.borrow_mut().push((address, meta.label())));
        NestedBody
    }

    fn change_depth(more: i32) {
        let _ = CONTEXT.try_with(|context| {
            let now = context.get();
            context.set(WorkerContext {
                depth: now.depth.saturating_add_signed(more),
                ..now
            });
        });
    }
}

impl Drop for NestedBody {
    fn drop(&mut self) {
        NestedBody::change_depth(-1);
        let label = NESTED.try_with(|nested| nested.borrow_mut().pop());
        drop(label);
    }
}
