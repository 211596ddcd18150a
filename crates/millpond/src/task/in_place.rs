//! Running a task in the thread that waits for it.
//!
//! # Self-join
//!
//! A worker that joins a task of its own pool which nobody has started runs it in place: that very
//! one, and no other. So a pool cannot starve on tasks that wait for tasks behind them in the queue,
//! however few workers it has, and a worker that would only wait does something useful.
//!
//! ```text
//!   worker:  [ body of A:  ... b.join() ]          queue:  [ b c d ]
//!                                |
//!                                +-- b has not started, and its home is mine: claim it
//!                                |   [ body of b ]            [ shell c d ]
//!                                +-- b is finished, so the join does not wait
//! ```
//!
//! How a worker knows: a task knows the number of its [home](super::home), and a worker's thread has
//! the number of its own in a thread-local ([`at_home`]). A join compares the two before it waits, so
//! who is no worker, or joins what has no home, pays for one look at most, and who joins what is
//! finished or runs pays nothing. A number that cannot be trusted (N4 in [`super::home`]) is a reason to
//! ask the engine whether the task is in its queue.
//!
//! # Rules
//!
//! - **P1** Only what is in a queue of the worker's own pool is run in place, however many pools there are.
//! - **P2** What is too late is not run: it is cancelled as expired, as a worker would do.
//! - **P3** A caller that is interrupted, or whose time is up, runs nothing: its join says so.
//! - **P4** A chain of self-joins is a recursion: each body has the frames of all those around it below
//!   it, and the end of a stack is the end of the process. So a task is run in place only while half
//!   of the worker's stack is left, for it to have; where nobody knows, while no more than [`DEEPEST`]
//!   are nested. Beyond that the join waits as any other, for another worker to come.
//! - **P5** A task that is run at home is counted there once: by the [`Host`], as any that the worker
//!   runs. The shell that is left in the queue is known by its state and is not counted again.
//!   Its engine may hand it back at that very moment. Both make it leave home (H3 in
//!   [`super::home`]), a waiter when it has claimed it, the engine before it looks whether somebody
//!   has; and the one by whom it has left counts it, the other one does not.
//!
//! # Orderings
//!
//! - `[H-leave]` The two ways to leave home, of P5, are in [`super::home`]. A waiter's releases its claim,
//!   and an engine's acquires it: an engine that comes second sees that the task is gone.

use super::cycle::TaskLabel;
use super::delivered::is_delivered;
use super::meta::{About, Meta};
use super::waiting::address;
use super::{CancelReason, Cycle, Home, context};
use crate::interrupt;
use crate::time::Deadline;
use millpond_raw::headroom;
use millpond_raw::sync::local;
use millpond_raw::task::{self as raw, BodyEnd, Panic, Place};
use std::cell::{Cell, RefCell};
use std::sync::Arc;

/// How many tasks may run nested in each other on a thread whose stack nobody knows (P4).
const DEEPEST: u32 = 64;

/// The engine behind a worker, as far as a task that is run in place needs it. No call may panic.
pub(crate) trait Host: Send + Sync {
    /// Whether the task with this [mark](super::Task::mark) is in the engine's queue. Asked if numbers do
    /// not tell.
    fn holds(&self, mark: usize) -> bool;

    /// A worker has claimed this task of the engine, and its body is about to begin.
    fn begins(&self, task: About<'_>);

    /// A task that runs on the worker is the last of a wait cycle, and has been told.
    fn deadlocked(&self, cycle: &Cycle);

    /// Its body has ended, if by a panic with this text.
    fn has_ended(&self, task: About<'_>, end: BodyEnd, message: Option<String>);
}

/// What a thread knows of where it is.
#[derive(Clone, Copy)]
struct Here {
    /// The number of the home whose worker it is; 0 if it is none.
    home: u32,
    /// Whether what has that number is the engine's for sure.
    is_trusted: bool,
    /// The engine; 0 if it is a worker of none.
    engine: u64,
    /// How many tasks run in place on it.
    depth: u32,
}

const NOWHERE: Here = Here {
    home: 0,
    is_trusted: true,
    engine: 0,
    depth: 0,
};

local! {
    static HERE: Cell<Here> = Cell::new(NOWHERE);
}

local! {
    /// The tasks that run in place on this thread, the innermost last.
    static NESTED: RefCell<Vec<(usize, TaskLabel)>> = RefCell::new(Vec::new());
}

local! {
    static HOST: RefCell<Option<Arc<dyn Host>>> = RefCell::new(None);
}

fn here() -> Here {
    // In a thread that is being torn down nobody is at home.
    HERE.try_with(Cell::get).unwrap_or(NOWHERE)
}

fn host() -> Option<Arc<dyn Host>> {
    HOST.try_with(|host| host.borrow().clone()).ok().flatten()
}

/// Tells the engine whose worker this is, if any, of a wait cycle.
pub(super) fn tell_host(cycle: &Cycle) {
    if let Some(host) = host() {
        host.deadlocked(cycle);
    }
}

/// Runs `f` as the life of a worker of the engine that has this home.
pub(crate) fn at_home<R>(home: &Home, host: Arc<dyn Host>, f: impl FnOnce() -> R) -> R {
    struct Left(Here, Option<Arc<dyn Host>>);

    impl Drop for Left {
        fn drop(&mut self) {
            let _ = HERE.try_with(|here| here.set(self.0));
            let ours = HOST.try_with(|host| host.replace(self.1.take()));
            // Not before the borrow has ended.
            drop(ours);
        }
    }

    let inside = Here {
        home: home.number(),
        is_trusted: home.is_trusted(),
        engine: home.engine(),
        depth: 0,
    };
    let before = HERE.try_with(|here| here.replace(inside));
    let former = HOST.try_with(|own| own.replace(Some(host)));
    let _left = Left(before.unwrap_or(NOWHERE), former.ok().flatten());
    f()
}

/// A reference to a task that somebody may claim to run it.
pub(super) trait Claimable {
    fn meta(&self) -> &Meta;

    fn token(&self) -> &raw::Token;

    fn state(&self) -> raw::state::Reading;

    fn claim_and_run(
        &self,
        place: Place,
        claimed: impl FnOnce(),
        panicked: impl FnOnce(&Panic),
    ) -> Option<BodyEnd>;

    fn give_up(&self, reason: CancelReason) -> bool;
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

            fn state(&self) -> raw::state::Reading {
                self.state()
            }

            fn claim_and_run(
                &self,
                place: Place,
                claimed: impl FnOnce(),
                panicked: impl FnOnce(&Panic),
            ) -> Option<BodyEnd> {
                self.run_here(place, claimed, panicked)
            }

            fn give_up(&self, reason: CancelReason) -> bool {
                self.give_up(reason)
            }
        }
    };
}

claimable!([T] raw::Handle<T, Meta>);
claimable!([T] raw::Shared<T, Meta>);
claimable!([] raw::Witness<Meta>);

/// Before a wait for the task: runs it in place, if it waits in a queue of the pool whose worker this
/// is. Returns whether it did.
#[inline]
pub(super) fn self_join(task: &impl Claimable, deadline: Deadline) -> bool {
    let home = task.meta().home.number();
    home != 0 && here().home == home && run_at_home(task, deadline)
}

/// A task that a worker of its own pool may run in place, without having its handle.
pub(crate) struct Queued(raw::Witness<Meta>);

impl Queued {
    /// Of a task that nobody has started, and in whose pool this is a worker.
    pub(super) fn of<T>(task: &raw::Handle<T, Meta>) -> Option<Self> {
        let home = task.meta().home.number();
        let may = home != 0 && here().home == home && !task.state().is_claimed();
        may.then(|| Queued(task.witness()))
    }

    pub(crate) fn is_unstarted(&self) -> bool {
        !self.0.state().is_claimed()
    }

    /// Runs it, under the rules above. Returns whether it did.
    pub(crate) fn self_join(&self, deadline: Deadline) -> bool {
        self_join(&self.0, deadline)
    }
}

/// Whether the present thread is a worker of this engine.
pub(super) fn is_at(engine: u64) -> bool {
    here().engine == engine
}

/// Whether a task with the number of this thread's home is the engine's own (P1).
fn is_ours(task: &impl Claimable) -> bool {
    here().is_trusted || is_in_queue(task.meta())
}

#[cold]
fn is_in_queue(meta: &Meta) -> bool {
    host().is_some_and(|host| host.holds(meta.mark()))
}

/// Whether the present thread is a worker of an engine with a queue.
pub(crate) fn is_at_home() -> bool {
    here().home != 0
}

/// Whether there is no stack left for another body (P4).
fn is_deep() -> bool {
    match headroom::here() {
        Some(stack) => stack.left < stack.size / 2,
        None => here().depth >= DEEPEST,
    }
}

#[cold]
fn run_at_home(task: &impl Claimable, deadline: Deadline) -> bool {
    let meta = task.meta();
    if task.state().is_claimed() || is_deep() || interrupt::is_interrupted() {
        return false;
    }
    if deadline != Deadline::NEVER && deadline.has_passed(meta.clock().now()) {
        return false;
    }
    if !is_ours(task) {
        return false;
    }
    if meta.is_expired() {
        if task.give_up(CancelReason::Expired) {
            meta.home.count_gone();
        }
        return false;
    }
    run(task)
}

/// Runs the task on this thread, wherever that is, if nobody has started it. Returns whether it did.
pub(super) fn run(task: &impl Claimable) -> bool {
    let meta = task.meta();
    let number = meta.home.number();
    let at_home = number != 0 && here().home == number && is_ours(task);
    let host = at_home.then(host).flatten();
    let place = match host {
        Some(_) => Place::AtHome,
        None => Place::Elsewhere,
    };
    let is_counted = Cell::new(false);
    let claimed = || {
        Home::count_at(number);
        let Some(host) = &host else { return };
        if meta.home.is_claimed_at_home() == number {
            is_counted.set(true);
            host.begins(meta.about());
        }
    };
    let mut message = None;
    let panicked = |panic: &Panic| {
        if host.is_some() {
            message = panic.message().map(str::to_owned);
        }
    };
    let body = || {
        let _deeper = Deeper::new(address(task.token()), meta);
        task.claim_and_run(place, claimed, panicked)
    };
    let inherited = meta.inherited();
    let ran = match context::is_plain(inherited) {
        true => body(),
        false => context::enter(inherited.cloned(), body),
    };
    is_delivered(address(task.token()));
    if let (Some(end), true, Some(host)) = (ran, is_counted.get(), &host) {
        host.has_ended(meta.about(), end, message);
    }
    ran.is_some()
}

/// What the task at this address is called, if it runs in place on this thread.
pub(super) fn label_of(address: usize) -> Option<TaskLabel> {
    let found = NESTED.try_with(|nested| {
        let nested = nested.borrow();
        let own = nested.iter().find(|(body, _)| *body == address);
        own.map(|(_, label)| label.clone())
    });
    found.ok().flatten()
}

/// One more body on this thread, as long as it is there.
struct Deeper;

impl Deeper {
    // Inlined, so that the label is made where it is to lie: to move it there takes longer than the rest.
    #[inline]
    fn new(address: usize, meta: &Meta) -> Self {
        Deeper::by(1);
        let _ = NESTED.try_with(|nested| nested.borrow_mut().push((address, meta.label())));
        Deeper
    }

    fn by(more: i32) {
        let _ = HERE.try_with(|here| {
            let now = here.get();
            here.set(Here {
                depth: now.depth.saturating_add_signed(more),
                ..now
            });
        });
    }
}

impl Drop for Deeper {
    fn drop(&mut self) {
        Deeper::by(-1);
        let label = NESTED.try_with(|nested| nested.borrow_mut().pop());
        drop(label);
    }
}
