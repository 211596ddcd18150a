//! The lanes of a serial executor, and the drains that run them.
//!
//! ```text
//!   by_key:  { key: Lane { queue, running, drains } }
//!   submit:  push; if no drain is sure to come, submit one to the inner executor
//!   drain:   if the lane is running already, return; else run one task after another until it is empty
//! ```
//!
//! A *drain* is the task that the inner executor gets. It is *sure* if it runs, or if the inner executor has accepted it.
//! While the submission of one submitter's drain is still open, another submitter sends its own. So a rejection by the
//! inner executor hits exactly the task for which it was asked, and that task is returned; unless another drain is sure to
//! run it.
//!
//! # Invariants
//!
//! - **LANES-1** A lane is in the map while it has a task or runs. The map's lock is taken before a lane's, never the
//!   other way round; a lane gets tasks and leaves the map under both. A late drain of a lane that has left the map finds
//!   nothing there.
//! - **LANES-2** At most one drain runs a lane. It stops only when it finds the queue empty, and clears `running` in the
//!   same step.
//! - **LANES-3** `sure` counts drains: each adds one when the inner executor has answered and subtracts one when it starts
//!   or is dropped, in either order. So it is above 0 only if an accepted drain has not started yet.
//! - **LANES-4** When a drain is dropped unrun and no other is sure to come, the lane's tasks are cancelled: a lane never
//!   waits for ever.
//! - **LANES-5** Hashing and comparing keys is user code and happens under the map's lock. Its panic leaves the map
//!   consistent. It must not call the executor. Keys, tasks and closures are dropped outside the locks.
//! - **LANES-6** A drain is a task of the inner executor and an engine to the tasks of its lane. It runs them outside its
//!   own task, so that an interrupt hits none of the code between them. They obey the stop of the thread like any task
//!   there; and since a stop stays set, the drain sees it as well, whatever the task has done about it.

use super::turn::{self, Turn};
use crate::executor::error::{RejectReason, Rejected};
use crate::executor::runner::Runner;
use crate::executor::traits::Executor;
use crate::task::{CancelReason, Task, TaskSpec};
use crate::time::Deadline;
use millpond_raw::catch_panic;
use millpond_raw::fork;
use millpond_raw::sync::Mutex;
use millpond_raw::task::current;
use millpond_raw::user_code::{self, Kind, under_own_locks};
use std::collections::{HashMap, VecDeque};
use std::hash::Hash;
use std::sync::Arc;

/// All lanes, and the inner executor.
pub(super) struct Lanes<K, E> {
    inner: E,
    by_key: Mutex<HashMap<Arc<K>, Arc<Lane>>>,
    /// How many tasks of a key may be queued.
    capacity: usize,
    runner: Runner,
    /// The fork generation that it was built in. In a child process no drain runs, and threads of the parent may hold the
    /// locks.
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
    /// Submitters whose drain the inner executor has not answered for.
    open: usize,
    /// LANES-3.
    sure: isize,
}

impl Queue {
    fn is_idle(&self) -> bool {
        self.tasks.is_empty() && !self.running
    }

    /// Whether a drain runs, or has been accepted and has not started yet.
    fn has_sure_drain(&self) -> bool {
        self.running || self.sure > 0
    }

    /// Removes a task that has not been run.
    fn remove(&mut self, number: u64) -> Option<Task> {
        let place = self
            .tasks
            .binary_search_by_key(&number, |(number, _)| *number)
            .ok()?;
        self.tasks.remove(place).map(|(_, task)| task)
    }

    /// LANES-4: the tasks that no drain will run.
    fn take_stranded(&mut self) -> VecDeque<(u64, Task)> {
        if self.has_sure_drain() || self.open > 0 {
            VecDeque::new()
        } else {
            std::mem::take(&mut self.tasks)
        }
    }
}

fn cancel_all(tasks: VecDeque<(u64, Task)>, reason: CancelReason) {
    for (_, task) in tasks {
        task.cancel(reason);
    }
}

impl<K, E> Lanes<K, E> {
    pub(super) fn new(inner: E, capacity: usize, runner: Runner) -> Self {
        Lanes {
            inner,
            by_key: Mutex::new(HashMap::new()),
            capacity,
            runner,
            born: {
                fork::install_handlers();
                fork::generation()
            },
        }
    }

    pub(super) fn is_forked(&self) -> bool {
        self.born != fork::generation()
    }

    pub(super) fn inner(&self) -> &E {
        &self.inner
    }

    /// How many keys have queued or running tasks.
    pub(super) fn busy(&self) -> usize {
        if self.is_forked() {
            0
        } else {
            self.by_key.lock().len()
        }
    }
}

impl<K, E> Lanes<K, E>
where
    K: Hash + Eq + Send + Sync + 'static,
    E: Executor + 'static,
{
    /// Accepts a task. If the inner executor blocks the submitter, then no longer than until `deadline`.
    pub(super) fn submit(
        self: &Arc<Self>,
        key: &Arc<K>,
        task: Task,
        deadline: Deadline,
    ) -> Result<(), Rejected<Task>> {
        let priority = task.priority();
        let (lane, number) = match self.push(key, task)? {
            Pushed::WillRun => return Ok(()),
            Pushed::NeedsDrain(lane, number) => (lane, number),
        };
        let request = DrainRequest {
            lanes: self,
            key,
            lane: &lane,
        };
        let drain = Drain {
            lanes: Arc::clone(self),
            key: Arc::clone(key),
            lane: Arc::clone(&lane),
            stage: DrainStage::Submitted,
        };
        // A drain works for many submitters, so it has neither the deadline nor the task-local values of its own, and is
        // exempt from shedding. It has the priority of the task that it is submitted for.
        let spec = TaskSpec::new().name("serial").deadline(Deadline::NEVER);
        let spec = spec.priority(priority).without_task_locals();
        user_code::check(Kind::Executor);
        let drain = spec.build_kept(move || drain.run());
        let answer = self.inner.execute_task_until(drain, deadline);
        match answer {
            Ok(()) => Ok(()),
            Err(Rejected {
                task: drain,
                reason,
                ..
            }) => {
                // LANES-3: as long as the rejected drain is neither dropped nor answered for it does not count in `sure`.
                let rejected = request.take_back(number);
                drop(drain);
                match rejected {
                    Some(task) => Err(Rejected::new(task, reason)),
                    // Another drain has taken it, or is sure to.
                    None => Ok(()),
                }
            }
        }
    }

    fn push(&self, key: &Arc<K>, task: Task) -> Result<Pushed, Rejected<Task>> {
        let mut lanes = self.by_key.lock();
        // The map hashes and compares keys: user code.
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
        if queue.has_sure_drain() {
            return Ok(Pushed::WillRun);
        }
        queue.open += 1;
        drop(queue);
        Ok(Pushed::NeedsDrain(lane, number))
    }

    /// Whether the current thread runs the lane of this key.
    pub(super) fn is_current(&self, key: &Arc<K>) -> bool {
        let lanes = self.by_key.lock();
        let lane = under_own_locks(1, || lanes.get(key).cloned());
        drop(lanes);
        lane.is_some_and(|lane| turn::is_current(lane.address()))
    }

    /// LANES-1: removes the lane from the map if it is idle.
    fn remove_if_idle(&self, key: &Arc<K>, lane: &Arc<Lane>) {
        let remove = || {
            let mut lanes = self.by_key.lock();
            let is_idle = lane.queue.lock().is_idle();
            let same = |other: &Arc<Lane>| Arc::ptr_eq(other, lane);
            under_own_locks(1, || {
                if is_idle && lanes.get(key).is_some_and(same) {
                    lanes.remove_entry(key)
                } else {
                    None
                }
            })
        };
        // A panic of the comparison leaks the lane, no more.
        catch_panic::drop(catch_panic::call(remove));
    }
}

/// What to do after a task is in its lane.
enum Pushed {
    /// Nothing: a drain is sure to run it.
    WillRun,
    /// Submit a drain to the inner executor.
    NeedsDrain(Arc<Lane>, u64),
}

/// A submission of a drain to the inner executor, until it is answered, also by a panic.
struct DrainRequest<'a, K: Hash + Eq + Send + Sync + 'static, E: Executor + 'static> {
    lanes: &'a Lanes<K, E>,
    key: &'a Arc<K>,
    lane: &'a Arc<Lane>,
}

impl<K: Hash + Eq + Send + Sync + 'static, E: Executor + 'static> DrainRequest<'_, K, E> {
    /// Takes back a task whose drain was rejected; `None` if another drain has run it, or is sure to.
    fn take_back(&self, number: u64) -> Option<Task> {
        let mut queue = self.lane.queue.lock();
        if queue.has_sure_drain() {
            None
        } else {
            queue.remove(number)
        }
    }
}

impl<K: Hash + Eq + Send + Sync + 'static, E: Executor + 'static> Drop for DrainRequest<'_, K, E> {
    fn drop(&mut self) {
        let stranded = {
            let mut queue = self.lane.queue.lock();
            queue.open -= 1;
            queue.sure += 1;
            queue.take_stranded()
        };
        cancel_all(stranded, CancelReason::Dropped);
        self.lanes.remove_if_idle(self.key, self.lane);
    }
}

/// The body of the task that the inner executor gets.
struct Drain<K: Hash + Eq + Send + Sync + 'static, E: Executor + 'static> {
    lanes: Arc<Lanes<K, E>>,
    key: Arc<K>,
    lane: Arc<Lane>,
    stage: DrainStage,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum DrainStage {
    /// It has not started.
    Submitted,
    /// It runs the lane.
    Running,
    /// Another drain runs it, or it is done.
    Over,
}

impl<K: Hash + Eq + Send + Sync + 'static, E: Executor + 'static> Drain<K, E> {
    fn run(mut self) {
        self.stage = self.begin();
        if self.stage == DrainStage::Over {
            return;
        }
        let _turn = Turn::begin(self.lane.address());
        // LANES-6.
        current::outside(|| {
            while let Some(task) = self.next() {
                if current::is_stopped() {
                    task.cancel(CancelReason::ShutDown);
                } else {
                    // The inner executor may be a pool, which counts and emits an event.
                    let on_drop = |dropped| self.lanes.inner.internals().report_dropped(dropped);
                    self.lanes.runner.run_with(task, on_drop, |_| ());
                }
            }
        });
        self.stage = DrainStage::Over;
        self.lanes.remove_if_idle(&self.key, &self.lane);
    }

    fn begin(&self) -> DrainStage {
        let mut queue = self.lane.queue.lock();
        queue.sure -= 1;
        if std::mem::replace(&mut queue.running, true) {
            return DrainStage::Over;
        }
        DrainStage::Running
    }

    /// LANES-2: the next task, or the end.
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
                DrainStage::Submitted => queue.sure -= 1,
                DrainStage::Running => queue.running = false,
            }
            queue.take_stranded()
        };
        cancel_all(stranded, CancelReason::Dropped);
        self.lanes.remove_if_idle(&self.key, &self.lane);
    }
}
