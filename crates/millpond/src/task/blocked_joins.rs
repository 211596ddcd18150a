//! The table of blocked joins, in which wait cycles are detected.
//!
//! A body that is about to park in a join without a timeout adds an entry here: *these* tasks wait for *that* one. Before
//! it does, it follows the entries from the task that it wants to wait for. If they lead back to itself, nothing in that
//! cycle could ever go on, and the join fails with an error that names all of its tasks. Joins of finished tasks, joins
//! with a timeout, and threads that run no task do not touch the table: no task can wait for those.
//!
//! ```text
//!   thread 1 runs A, which joins B         A -> B
//!   thread 2 runs B, which joins C         B -> C
//!   thread 3 runs C, and inside it,        C -> A     C waits for D, which it runs itself, and D
//!            inline, D, which joins A      D -> A     for A. A leads to B, B to C: a cycle
//! ```
//!
//! # The protocol
//!
//! - **JOINS-1** A task is identified by the address of its interrupt token. The token is in the task's cell; or, if no
//!   task was created (`executor::caller_run`), on the stack that runs the closure. A waiter has the joined task's handle,
//!   and the thread that runs a body has its cell, or its token; each for as long as the entry exists. So as long as an
//!   address is in the table it means one task.
//! - **JOINS-2** All bodies on the stack of the thread wait for what the innermost one waits for: none of them can end
//!   before. So a thread adds an entry for each of them. A task runs once, on one thread, and a thread parks in one join
//!   at a time: there is at most one entry for a task.
//! - **JOINS-3** The search for a cycle and the insertion are one step, under the table's lock.
//! - **JOINS-4** An entry is removed by its own thread before its join returns, whatever ended it. A wait lasts until
//!   then: an interrupt that the join has not returned yet has not ended it.
//! - **JOINS-5** An entry counts only as long as its target is not finished. (A cancelled task is finished, although its
//!   body may go on, and wait.)
//!
//! *Every cycle is found.* Its entries were inserted one after the other (JOINS-3). The thread of the last one searched in
//! the same step, saw all others, and did not insert it.
//!
//! *Nothing else is found.* Suppose that the walk finds a cycle. The table was locked all the while, so all entries
//! existed when the walk read the first of them; their targets were unfinished when they were read later, so they were
//! unfinished then (a finished task stays finished). By JOINS-4 and JOINS-5 all of them were waiting at that moment, each
//! for the next: it was a cycle. (One of them may have been interrupted and about to return. That cannot be distinguished
//! from an interrupt that came a moment later.)
//!
//! # Scopes
//!
//! The end of a scope waits for the scope's tasks, and is entered likewise. But it cannot return an error: its tasks still
//! use what they borrow. If it closes a cycle it makes another join fail, the first one in the cycle. There is one: a
//! scope waits for its own tasks only, which are younger than itself, and waits for younger tasks alone form no cycle.
//!
//! # What is not detected
//!
//! Waits for anything but one task: queues, channels, locks, `.await`, `invoke_any`, a completion service, the
//! termination of a pool; joins with a timeout, which end by themselves; and joins of a task that waits for nothing, but
//! that no worker is left to run (a worker runs what it joins in its *own* pool's queue, see [`super::inline`]; two pools
//! whose workers all join tasks in each other's queues do starve each other).

use super::cycle::{BlockedJoin, Cycle, DetectedCycle, TaskLabel};
use super::meta::Meta;
use crate::interrupt;
use crate::time::{Clock, Deadline};
use millpond_raw::sync::{Mutex, global};
use millpond_raw::task::{self as raw, current};
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::task::Waker;
use std::thread::Thread;

/// How many detected cycles are kept.
const KEPT: usize = 8;

global! {
    static TABLE: Mutex<Table> = Mutex::new(Table::new());
}

/// Keeps the table consistent across forks. In the child the entries of the parent's threads stay in it, and lead nowhere:
/// tasks of another process are not joined.
pub(super) fn keep_at_forks() {
    #[cfg(not(any(millpond_loom, millpond_shuttle)))]
    millpond_raw::fork::register_lock(&TABLE);
}

struct Table {
    /// By the address of the waiting task.
    entries: BTreeMap<usize, Arc<Entry>>,
    found: VecDeque<DetectedCycle>,
}

/// The blocked join of one thread.
struct Entry {
    /// The bodies on its stack, innermost first (JOINS-2).
    bodies: Vec<Body>,
    target: JoinTarget,
    thread: Thread,
    /// Where a cycle is reported to it; `None` if it cannot fail.
    report: Option<Mutex<CycleReport>>,
}

/// A body on the stack of a waiting thread.
struct Body {
    address: usize,
    /// If it runs inline. For other bodies the entries that wait for them have the label.
    label: Option<TaskLabel>,
}

#[derive(Default)]
struct CycleReport {
    waker: Option<Waker>,
    cycle: Option<Cycle>,
}

/// The task, or the work on behalf of a task, that a join waits for.
pub(crate) struct JoinTarget {
    pub(super) address: usize,
    pub(super) label: TaskLabel,
    /// Whether there is nothing left to wait for (JOINS-5). Called under the lock, so no user code.
    pub(super) is_over: Box<dyn Fn() -> bool + Send + Sync>,
}

impl JoinTarget {
    /// A task, until it is finished.
    pub(super) fn task(witness: raw::Witness<Meta>) -> Self {
        JoinTarget {
            address: address(witness.token()),
            label: witness.meta().label(),
            is_over: Box::new(move || witness.state().is_finished()),
        }
    }
}

pub(super) fn address(token: &raw::Token) -> usize {
    std::ptr::from_ref(token).addr()
}

impl Table {
    const fn new() -> Self {
        Table {
            entries: BTreeMap::new(),
            found: VecDeque::new(),
        }
    }

    /// Follows the entries from the target of `own`. Returns the cycle and its other entries, if they lead back.
    fn find_cycle(&self, own: &Entry) -> Option<(Cycle, Vec<Arc<Entry>>)> {
        let (mut tasks, mut entries) = (Vec::new(), Vec::new());
        let mut target = &own.target;
        // Each step but the last is another entry.
        for _ in 0..=self.entries.len() {
            if (target.is_over)() {
                return None;
            }
            tasks.push(target.label.clone());
            if let Some(position) = own.position_of(target.address) {
                // The last task in the row is the first in the cycle; after it come those that run inline inside it.
                tasks.rotate_right(1);
                let inside = own.inside(position);
                tasks.splice(1..1, inside);
                return Some((Cycle { tasks }, entries));
            }
            let entry = self.entries.get(&target.address)?;
            let position = entry.position_of(target.address)?;
            tasks.extend(entry.inside(position));
            entries.push(Arc::clone(entry));
            target = &entry.target;
        }
        None
    }

    fn keep(&mut self, cycle: &Cycle) {
        if self.found.len() == KEPT {
            self.found.pop_front();
        }
        self.found.push_back(DetectedCycle {
            cycle: cycle.clone(),
            at: Clock::system().now(),
        });
    }

    fn insert(&mut self, entry: &Arc<Entry>) {
        for body in &entry.bodies {
            self.entries.insert(body.address, Arc::clone(entry));
        }
    }

    fn remove(&mut self, entry: &Entry) {
        for body in &entry.bodies {
            self.entries.remove(&body.address);
        }
    }
}

impl Entry {
    fn position_of(&self, address: usize) -> Option<usize> {
        self.bodies.iter().position(|body| body.address == address)
    }

    /// The labels of the bodies that run inside the one at this position, outermost first.
    fn inside(&self, position: usize) -> Vec<TaskLabel> {
        let inner = self.bodies[..position].iter().rev();
        inner.filter_map(|body| body.label.clone()).collect()
    }
}

/// The entry of a blocked join in the table, removed when this drops.
pub(crate) struct JoinGuard {
    entry: Option<Arc<Entry>>,
}

impl JoinGuard {
    fn new(entry: Option<Arc<Entry>>) -> Self {
        JoinGuard { entry }
    }

    /// No entry.
    pub(crate) fn none() -> Self {
        JoinGuard::new(None)
    }

    /// Adds an entry for the tasks on this thread. There is none if the thread runs no task, has a deadline, or has been
    /// interrupted.
    ///
    /// # Errors
    ///
    /// The cycle that this would close.
    pub(crate) fn enter(
        deadline: Deadline,
        target: impl FnOnce() -> JoinTarget,
    ) -> Result<Self, Cycle> {
        if deadline != Deadline::NEVER || interrupt::is_interrupted() {
            return Ok(JoinGuard::new(None));
        }
        let Some(entry) = Entry::new(target, true) else {
            return Ok(JoinGuard::new(None));
        };
        let mut table = TABLE.lock();
        let Some((cycle, others)) = table.find_cycle(&entry) else {
            table.insert(&entry);
            drop(table);
            return Ok(JoinGuard::new(Some(entry)));
        };
        table.keep(&cycle);
        drop(table);
        // Outside the lock: these may be the last references.
        drop(others);
        Err(cycle)
    }

    /// As [`enter`](JoinGuard::enter), for a wait that cannot fail. If it closes a cycle, another join in it fails.
    pub(crate) fn enter_infallible(target: impl FnOnce() -> JoinTarget) -> Self {
        let Some(entry) = Entry::new(target, false) else {
            return JoinGuard::new(None);
        };
        let mut table = TABLE.lock();
        let found = table.find_cycle(&entry);
        if let Some((cycle, _)) = &found {
            table.keep(cycle);
        }
        table.insert(&entry);
        drop(table);
        if let Some((cycle, others)) = found {
            if let Some(report) = others.iter().find_map(|other| other.report.as_ref()) {
                let waker = {
                    let mut report = report.lock();
                    report.cycle = Some(cycle);
                    report.waker.take()
                };
                if let Some(waker) = waker {
                    waker.wake();
                }
            }
        }
        JoinGuard::new(Some(entry))
    }

    /// Before each park: the cycle that another thread has reported to this join; otherwise `waker` is woken by such a
    /// report.
    pub(crate) fn poll_cycle(&self, waker: &Waker) -> Option<Cycle> {
        let mut report = self.entry.as_ref()?.report.as_ref()?.lock();
        let is_registered = report
            .waker
            .as_ref()
            .is_some_and(|own| own.will_wake(waker));
        if report.cycle.is_none() && !is_registered {
            report.waker = Some(waker.clone());
        }
        report.cycle.take()
    }
}

impl Entry {
    fn new(target: impl FnOnce() -> JoinTarget, can_fail: bool) -> Option<Arc<Self>> {
        let mut bodies = Vec::new();
        current::bodies(|token| {
            let address = address(token);
            bodies.push(Body {
                address,
                label: super::inline::label_of(address),
            });
        });
        if bodies.is_empty() {
            return None;
        }
        Some(Arc::new(Entry {
            bodies,
            target: target(),
            thread: std::thread::current(),
            report: can_fail.then(Mutex::default),
        }))
    }
}

impl Drop for JoinGuard {
    /// JOINS-4.
    fn drop(&mut self) {
        if let Some(entry) = self.entry.take() {
            TABLE.lock().remove(&entry);
        }
    }
}

/// The joins that are blocked at this moment, in the whole process: every task that waits in a join without a timeout for
/// another task.
///
/// ```
/// use millpond::executor::ExecutorExt;
/// use millpond::pool::ThreadPool;
/// use millpond::task::{self, TaskSpec};
///
/// let pool = ThreadPool::builder("mill").build()?;
/// let (grain, flour) = TaskSpec::new().name("grain").build(|| "flour");
/// let bread = pool.submit(|| flour.join())?;
/// while task::blocked_joins().is_empty() {
///     std::thread::yield_now();
/// }
/// assert_eq!(task::blocked_joins()[0].task.name(), Some("grain"));
/// grain.run();
/// assert_eq!(bread.join()??, "flour");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn blocked_joins() -> Vec<BlockedJoin> {
    let entries: Vec<Arc<Entry>> = {
        let table = TABLE.lock();
        let outermost = |entry: &&Arc<Entry>, address: &usize| {
            entry
                .bodies
                .last()
                .is_some_and(|body| body.address == *address)
        };
        let all = table.entries.iter();
        all.filter(|(address, entry)| outermost(entry, address))
            .map(|(_, entry)| Arc::clone(entry))
            .collect()
    };
    entries
        .iter()
        .map(|entry| BlockedJoin {
            thread: entry.thread.name().map(str::to_owned),
            task: entry.target.label.clone(),
        })
        .collect()
}

/// The last wait cycles that were detected in this process, oldest first; at most eight.
pub fn wait_cycles() -> Vec<DetectedCycle> {
    TABLE.lock().found.iter().cloned().collect()
}

#[cfg(all(test, not(any(millpond_loom, millpond_shuttle))))]
mod tests;
