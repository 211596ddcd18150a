//! Shutdown and stop of a pool, and what becomes of tasks that are taken out of its queue.

use super::engine::PoolEngine;
use crate::engine::events::EventSource;
use crate::engine::{Terminates, Termination, termination};
use crate::manage::RunState;
use crate::task::{CancelReason, Task};
use crate::time::{Clock, Deadline};
use millpond_raw::catch_panic;
use millpond_raw::park::Site;
use std::sync::Arc;

impl Terminates for PoolEngine {
    const AWAIT_SITE: Site = Site::new("pool.await_termination");

    fn shut_down(self: &Arc<Self>) {
        if self.is_forked() {
            self.ctl().advance_to(RunState::ShutDown);
            return;
        }
        // SEAL-1: sealed first.
        self.queue.seal();
        if self.ctl().advance_to(RunState::ShutDown) {
            self.wake_idle_workers();
            self.room_waiters.wake_all();
            self.try_terminate();
        }
    }

    fn is_forked(&self) -> bool {
        PoolEngine::is_forked(self)
    }

    fn is_over(&self) -> bool {
        self.ctl().read().state() == RunState::Terminated
    }

    fn clock(&self) -> &Clock {
        &self.clock
    }

    fn await_events(&self, deadline: Deadline) {
        self.await_delivery(deadline);
    }

    fn termination(&self) -> &Termination {
        &self.termination
    }
}

impl PoolEngine {
    /// The state that users see.
    pub(super) fn shown(&self) -> RunState {
        self.shown_state(|| self.ctl().read().state())
    }

    pub(super) fn is_shut_down(&self) -> bool {
        !self.ctl().read().is_running()
    }

    pub(super) fn try_terminate(&self) {
        termination::try_terminate(self);
    }

    /// Takes no more tasks, interrupts what runs, and hands back what has not started.
    pub(super) fn stop(&self) -> Vec<Task> {
        if self.is_forked() {
            self.ctl().advance_to(RunState::Stopped);
            return Vec::new();
        }
        self.queue.seal();
        let all = self.with_workers(|workers| {
            // WORKERS-1
            self.ctl().advance_to(RunState::Stopped);
            workers.list_all()
        });
        let mut unstarted = Vec::new();
        for worker in all {
            worker.stop.set();
            unstarted.extend(worker.hand_back_first());
        }
        unstarted.extend(self.queue.clear_out());
        self.removed.hand_back(&mut unstarted);
        self.wake_idle_workers();
        self.room_waiters.wake_all();
        self.try_terminate();
        unstarted
    }

    /// Takes tasks out of the queue for their submitter, while the pool goes on. Tasks that start at this moment stay.
    pub(super) fn take_back_where(&self, wanted: &mut dyn FnMut(&Task) -> bool) -> Vec<Task> {
        if self.is_forked() {
            return Vec::new();
        }
        let take = || self.queue.remove_where(usize::MAX, wanted);
        // A queue of the user's that panics keeps its tasks.
        let mut taken = catch_panic::call(take).unwrap_or_default();
        if !taken.is_empty() {
            self.removed.hand_back(&mut taken);
            self.tasks_removed();
        }
        taken
    }

    /// Takes tombstones out of the queue, and returns how many they were.
    pub(super) fn purge(&self) -> usize {
        let tombstones = self.take_tombstones();
        let purged = tombstones.len();
        self.give_up(tombstones, CancelReason::Dropped);
        purged
    }

    /// Takes tombstones out of the queue, to be [given up](PoolEngine::give_up) under no lock.
    pub(super) fn take_tombstones(&self) -> Vec<Task> {
        self.queue
            .remove_where(usize::MAX, &mut |task| task.is_gone())
    }

    /// Cancels tasks that have been taken out of the queue, and counts them. Returns how many were not tombstones.
    pub(super) fn give_up(&self, tasks: Vec<Task>, reason: CancelReason) -> usize {
        if tasks.is_empty() {
            return 0;
        }
        let report = |dropped| self.report_dropped(dropped);
        let given_up = self.removed.cancel(tasks, reason, report);
        self.tasks_removed();
        given_up
    }

    /// Tasks were taken out of the queue, not by a worker. They may have been the last that workers wait for, or that
    /// a shutdown waits for (END-1).
    pub(super) fn tasks_removed(&self) {
        if self.is_shut_down() {
            self.wake_idle_workers();
            self.try_terminate();
        } else if self.queue.is_foreign() {
            self.wake_staying_workers();
        }
    }
}
