//! Tasks that were handed over to an executor that is not the pool's own.
//!
//! An executor of the pool's own is stopped with the pool. For all others the pool has to know which of their tasks
//! it must take back or cancel in a stop, so it keeps a [witness](Witness) of each. Witnesses of finished tasks
//! go when the list is full.

use super::engine::ScheduleEngine;
use crate::executor::Inside;
use crate::task::{CancelReason, Task, Witness};
use crate::time::{Owner, Work, run_off_timer};
use millpond_raw::catch_panic;
use millpond_raw::sync::Mutex;
use std::collections::HashMap;

pub(super) struct HandedOver(Mutex<Tracked>);

struct Tracked {
    tasks: Vec<Witness>,
    /// A stop has taken the tasks: nothing more goes to the executor.
    is_stopped: bool,
    /// A thread that terminates the pool is dropping the witnesses.
    is_releasing: bool,
}

impl HandedOver {
    pub(super) fn new() -> Self {
        HandedOver(Mutex::new(Tracked {
            tasks: Vec::new(),
            is_stopped: false,
            is_releasing: false,
        }))
    }

    /// A stop takes the tasks, and nothing more goes to the executor.
    pub(super) fn stop(&self) -> Vec<Witness> {
        let mut tracked = self.0.lock();
        tracked.is_stopped = true;
        std::mem::take(&mut tracked.tasks)
    }
}

impl ScheduleEngine {
    pub(super) fn tracks_handed_over(&self) -> bool {
        self.owned.is_none()
    }

    /// Tracks a task that is about to be handed over. Returns false if the pool has been stopped: the stop would
    /// not find the task.
    pub(super) fn track_handed_over(&self, task: &Task) -> bool {
        if !self.tracks_handed_over() {
            return true;
        }
        let mut finished = Vec::new();
        let mut tracked = self.handed_over.0.lock();
        if tracked.is_stopped {
            return false;
        }
        if tracked.tasks.len() == tracked.tasks.capacity() {
            let tasks = tracked.tasks.drain(..);
            let (over, others) = tasks.partition(Witness::is_over);
            (finished, tracked.tasks) = (over, others);
        }
        tracked.tasks.push(task.witness());
        drop(tracked);
        // Not under the lock, and not on the timer's thread: a witness may be the last of a task.
        if !finished.is_empty() {
            run_off_timer(Owner::of(self, Work::Drop), move || drop(finished));
        }
        true
    }

    /// The executor did not take the task: a stop hands it back instead of cancelling it.
    pub(super) fn untrack_handed_over(&self, task: &Task) {
        if !self.tracks_handed_over() {
            return;
        }
        let mut tracked = self.handed_over.0.lock();
        let found = tracked.tasks.iter().rposition(|other| other.is_of(task));
        let witness = found.map(|index| tracked.tasks.swap_remove(index));
        drop(tracked);
        drop(witness);
    }

    /// Takes tasks back from an executor, as far as they have not begun and the executor can find them. Others
    /// that have not begun are cancelled, and those that run are asked to stop.
    pub(super) fn take_back(&self, handed_over: Vec<Witness>) -> Vec<Task> {
        if handed_over.is_empty() {
            return Vec::new();
        }
        // The witnesses keep the tasks in memory, so no other task has their addresses.
        let mut left: HashMap<usize, Witness> = handed_over
            .into_iter()
            .map(|task| (task.address(), task))
            .collect();
        let mut wanted = |task: &Task| left.contains_key(&task.address());
        let back = catch_panic::call(|| self.executor.internals().take_back(&mut wanted))
            .unwrap_or_default();
        for task in &back {
            left.remove(&task.address());
        }
        for task in left.into_values() {
            task.stop(CancelReason::ShutDown);
        }
        back
    }

    /// Drops the values of tasks without a handle, so that none is left when the pool has terminated. Returns false
    /// if another thread is at it, which terminates the pool, too.
    pub(super) fn release_handed_over(&self) -> bool {
        let tasks = {
            let mut tracked = self.handed_over.0.lock();
            if tracked.is_releasing {
                return false;
            }
            tracked.is_releasing = !tracked.tasks.is_empty();
            std::mem::take(&mut tracked.tasks)
        };
        if !tasks.is_empty() {
            // A destructor must not wait for the termination, which waits for it.
            let _inside = Inside::of(self);
            run_off_timer(Owner::of(self, Work::Drop), move || drop(tasks));
            self.handed_over.0.lock().is_releasing = false;
        }
        true
    }
}
