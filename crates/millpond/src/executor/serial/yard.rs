//! The lanes of a serial executor, and who comes by to run them.
//!
//! ```text
//!   lanes: { key: Lane { queue, running, drains } }
//!   bring: push; if nobody is sure to come by, send a drain down to the executor below
//!   drain: if the lane runs already, leave; else run one after another until the lane is empty
//! ```
//!
//! A *drain* is the task that goes to the executor below. It is *sure to come by* if it runs, or if
//! the executor below has accepted it. While the acceptance of one bringer's drain is still open,
//! another bringer sends its own. So a refusal of the executor below hits exactly the task for whose
//! sake it was asked, and that task comes back; unless another's drain is sure to come by for it.
//!
//! # Invariants
//!
//! - **S1** A lane is in the map while it has a task or runs. The map's lock is taken before a
//!   lane's, never the other way round; a lane gets tasks and leaves the map under both. A drain
//!   that comes late to a lane that has left finds nothing there.
//! - **S2** At most one drain runs a lane. It stops only when it finds the queue empty, in the
//!   step that says so.
//! - **S3** `sure` counts drains: each adds one when the executor below has answered and takes one
//!   away when it begins or is dropped, in either order. So it is above 0 only if an accepted
//!   drain has yet to begin.
//! - **S4** When a drain is dropped unrun and nobody else will come by, the lane's tasks are
//!   cancelled: a lane never waits for ever.
//! - **S5** Hashing and comparing keys is users' code and happens under the map's lock. Its panic
//!   leaves the map whole. It must not call back into the executor. Keys, tasks and closures are
//!   dropped outside.
//! - **S6** A drain is a task of the executor below and an engine to the tasks of its lane. It runs
//!   them outside its own task, so that nothing between them is interrupted. They obey the stop of
//!   the thread like any task there; and since a stop stays set, the drain sees it as well, whatever
//!   the task that ran has made of it.

use super::turn::{self, Turn};
use crate::executor::error::{RejectReason, Rejected};
use crate::executor::traits::Executor;
use crate::executor::uncaught::Runner;
use crate::task::{CancelReason, Task, TaskSpec};
use crate::time::Deadline;
use millpond_raw::fork;
use millpond_raw::quiet;
use millpond_raw::sync::Mutex;
use millpond_raw::task::current;
use millpond_raw::user_code::{self, Kind, under_own_locks};
use std::collections::{HashMap, VecDeque};
use std::hash::Hash;
use std::sync::Arc;

/// All lanes, and the executor below them.
pub(super) struct Yard<K, E> {
    below: E,
    lanes: Mutex<HashMap<Arc<K>, Arc<Lane>>>,
    /// How many tasks of a key may wait.
    capacity: usize,
    runner: Runner,
    /// The generation of the process that it was made in. In a child of that nobody comes by, and one who
    /// is not here may have the locks.
    born: u32,
}

/// The tasks of one key.
#[derive(Default)]
struct Lane {
    queue: Mutex<Queue>,
}

impl Lane {
    fn address(self: &Arc<Self>) -> usize {
        Arc::as_ptr(self).addr()
    }
}

#[derive(Default)]
struct Queue {
    next: u64,
    tasks: VecDeque<(u64, Task)>,
    running: bool,
    /// Bringers whose drain the executor below has not answered for.
    open: usize,
    /// S3.
    sure: isize,
}

impl Queue {
    fn is_idle(&self) -> bool {
        self.tasks.is_empty() && !self.running
    }

    /// Whether a drain runs, or has been accepted and has yet to begin.
    fn is_sure_of_a_drain(&self) -> bool {
        self.running || self.sure > 0
    }

    /// Takes out one that has not been run.
    fn remove(&mut self, number: u64) -> Option<Task> {
        let place = self
            .tasks
            .binary_search_by_key(&number, |(number, _)| *number)
            .ok()?;
        self.tasks.remove(place).map(|(_, task)| task)
    }

    /// S4: the tasks that nobody will come by for.
    fn take_stranded(&mut self) -> VecDeque<(u64, Task)> {
        match self.is_sure_of_a_drain() || self.open > 0 {
            true => VecDeque::new(),
            false => std::mem::take(&mut self.tasks),
        }
    }
}

fn cancel_all(tasks: VecDeque<(u64, Task)>, reason: CancelReason) {
    for (_, task) in tasks {
        task.cancel(reason);
    }
}

impl<K, E> Yard<K, E> {
    pub(super) fn new(below: E, capacity: usize, runner: Runner) -> Self {
        Yard {
            below,
            lanes: Mutex::new(HashMap::new()),
            capacity,
            runner,
            born: {
                fork::watch();
                fork::generation()
            },
        }
    }

    pub(super) fn is_forked(&self) -> bool {
        self.born != fork::generation()
    }

    pub(super) fn below(&self) -> &E {
        &self.below
    }

    /// How many keys have something to do.
    pub(super) fn busy(&self) -> usize {
        match self.is_forked() {
            false => self.lanes.lock().len(),
            true => 0,
        }
    }
}

impl<K, E> Yard<K, E>
where
    K: Hash + Eq + Send + Sync + 'static,
    E: Executor + 'static,
{
    /// Takes a task in. If the executor below lets its submitter wait, no longer than `deadline`.
    pub(super) fn bring(
        self: &Arc<Self>,
        key: &Arc<K>,
        task: Task,
        deadline: Deadline,
    ) -> Result<(), Rejected<Task>> {
        let priority = task.priority();
        let (lane, number) = match self.push(key, task)? {
            Pushed::WillRun => return Ok(()),
            Pushed::NeedsADrain(lane, number) => (lane, number),
        };
        let asked = Asked {
            yard: self,
            key,
            lane: &lane,
        };
        let drain = Drain {
            yard: Arc::clone(self),
            key: Arc::clone(key),
            lane: Arc::clone(&lane),
            stage: DrainStage::Sent,
        };
        // A drain works for many, so it has no deadline of its own bringer's, carries nothing of his, and
        // is not shed. It is as urgent as the task that it is sent for.
        let spec = TaskSpec::new().name("serial").deadline(Deadline::NEVER);
        let spec = spec.priority(priority).empty_handed();
        user_code::check(Kind::Executor);
        let drain = spec.build_kept(move || drain.run());
        let answer = self.below.execute_until(drain, deadline);
        match answer {
            Ok(()) => Ok(()),
            Err(Rejected {
                task: drain,
                reason,
                ..
            }) => {
                // S3: while the refused drain is neither dropped nor answered for, it counts for
                // nothing, and what is left of `sure` is the others'.
                let refused = asked.take_back(number);
                drop(drain);
                match refused {
                    Some(task) => Err(Rejected::new(task, reason)),
                    // Another drain came by for it, or is sure to.
                    None => Ok(()),
                }
            }
        }
    }

    fn push(&self, key: &Arc<K>, task: Task) -> Result<Pushed, Rejected<Task>> {
        let mut lanes = self.lanes.lock();
        // The map compares keys, by code of the user's.
        let lane = under_own_locks(1, || match lanes.get(key) {
            Some(lane) => Arc::clone(lane),
            None => {
                let lane = Arc::new(Lane::default());
                lanes.insert(Arc::clone(key), Arc::clone(&lane));
                lane
            }
        });
        let mut queue = lane.queue.lock();
        if queue.tasks.len() >= self.capacity {
            let full = RejectReason::saturated(queue.tasks.len(), self.capacity, 1);
            return Err(Rejected::new(task, full));
        }
        queue.next += 1;
        let number = queue.next;
        queue.tasks.push_back((number, task));
        if queue.is_sure_of_a_drain() {
            return Ok(Pushed::WillRun);
        }
        queue.open += 1;
        drop(queue);
        Ok(Pushed::NeedsADrain(lane, number))
    }

    /// Whether the present thread runs the lane of this key.
    pub(super) fn is_our_turn(&self, key: &Arc<K>) -> bool {
        let lanes = self.lanes.lock();
        let lane = under_own_locks(1, || lanes.get(key).cloned());
        drop(lanes);
        lane.is_some_and(|lane| turn::is_here(lane.address()))
    }

    /// S1: takes the lane out of the map if it has nothing to do.
    fn forget_if_idle(&self, key: &Arc<K>, lane: &Arc<Lane>) {
        let forget = || {
            let mut lanes = self.lanes.lock();
            let is_idle = lane.queue.lock().is_idle();
            let same = |other: &Arc<Lane>| Arc::ptr_eq(other, lane);
            under_own_locks(1, || match is_idle && lanes.get(key).is_some_and(same) {
                true => lanes.remove_entry(key),
                false => None,
            })
        };
        // A key that panics when it is compared costs the memory of its lane, no more.
        quiet::drop(quiet::call(forget));
    }
}

/// What to do after a task is in its lane.
enum Pushed {
    /// Nothing: a drain will come by.
    WillRun,
    /// Ask the executor below for a drain.
    NeedsADrain(Arc<Lane>, u64),
}

/// A bringer's question to the executor below, from the moment it is open until it is answered,
/// also by a panic.
struct Asked<'a, K: Hash + Eq + Send + Sync + 'static, E: Executor + 'static> {
    yard: &'a Yard<K, E>,
    key: &'a Arc<K>,
    lane: &'a Arc<Lane>,
}

impl<K: Hash + Eq + Send + Sync + 'static, E: Executor + 'static> Asked<'_, K, E> {
    /// Takes a task back that was refused; `None` if somebody runs it, or is sure to.
    fn take_back(&self, number: u64) -> Option<Task> {
        let mut queue = self.lane.queue.lock();
        match queue.is_sure_of_a_drain() {
            true => None,
            false => queue.remove(number),
        }
    }
}

impl<K: Hash + Eq + Send + Sync + 'static, E: Executor + 'static> Drop for Asked<'_, K, E> {
    fn drop(&mut self) {
        let stranded = {
            let mut queue = self.lane.queue.lock();
            queue.open -= 1;
            queue.sure += 1;
            queue.take_stranded()
        };
        cancel_all(stranded, CancelReason::Dropped);
        self.yard.forget_if_idle(self.key, self.lane);
    }
}

/// The task that goes to the executor below.
struct Drain<K: Hash + Eq + Send + Sync + 'static, E: Executor + 'static> {
    yard: Arc<Yard<K, E>>,
    key: Arc<K>,
    lane: Arc<Lane>,
    stage: DrainStage,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum DrainStage {
    /// It has not begun.
    Sent,
    /// It runs the lane.
    Running,
    /// Others do, or it is through.
    Over,
}

impl<K: Hash + Eq + Send + Sync + 'static, E: Executor + 'static> Drain<K, E> {
    fn run(mut self) {
        self.stage = self.begin();
        if self.stage == DrainStage::Over {
            return;
        }
        let _turn = Turn::begin(self.lane.address());
        // S6.
        current::outside(|| {
            while let Some(task) = self.next() {
                if current::is_stopped() {
                    task.cancel(CancelReason::ShutDown);
                } else {
                    // The executor below may be a pool, which counts and gives notice.
                    let on_drop = |dropped| self.yard.below.report_dropped(dropped);
                    self.yard.runner.run_with(task, on_drop, |_| ());
                }
            }
        });
        self.stage = DrainStage::Over;
        self.yard.forget_if_idle(&self.key, &self.lane);
    }

    fn begin(&self) -> DrainStage {
        let mut queue = self.lane.queue.lock();
        queue.sure -= 1;
        if std::mem::replace(&mut queue.running, true) {
            return DrainStage::Over;
        }
        DrainStage::Running
    }

    /// S2: the next task, or the end.
    fn next(&self) -> Option<Task> {
        let mut queue = self.lane.queue.lock();
        let next = queue.tasks.pop_front();
        queue.running = next.is_some();
        next.map(|(_, task)| task)
    }
}

impl<K: Hash + Eq + Send + Sync + 'static, E: Executor + 'static> Drop for Drain<K, E> {
    fn drop(&mut self) {
        let stranded = {
            let mut queue = self.lane.queue.lock();
            match self.stage {
                DrainStage::Over => return,
                DrainStage::Sent => queue.sure -= 1,
                DrainStage::Running => queue.running = false,
            }
            queue.take_stranded()
        };
        cancel_all(stranded, CancelReason::Dropped);
        self.yard.forget_if_idle(&self.key, &self.lane);
    }
}
