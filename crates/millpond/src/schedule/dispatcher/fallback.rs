//! Draining the dispatcher's queue without its thread.

use super::{DispatchQueue, DueTask, NO_DISPATCHER, RETRY, SHORTAGE_LIMIT, ScheduleEngine};
use crate::executor::{RejectReason, Rejected, TryExecuteError};
use crate::schedule::liveness::InHand;
use crate::thread::on_demand::{Demand, Drain, Drainer, Next, OnDemand};
use crate::time::Deadline;
use millpond_raw::catch_panic;
use millpond_raw::user_code::{self, Kind};
use std::io;
use std::sync::Arc;
use std::time::Instant;

/// A time in which the thread could not be started.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shortage {
    since: Instant,
    /// The last failed start.
    last: Instant,
}

impl Shortage {
    /// Records a failed start. Returns true if the shortage has lasted for [`SHORTAGE_LIMIT`]. A failure that
    /// comes so long after the one before begins a new shortage.
    pub(super) fn record(shortage: &mut Option<Self>, now: Instant) -> bool {
        let is_recent = |one: &Self| !Deadline::after(one.last, SHORTAGE_LIMIT).has_passed(now);
        let since = shortage.filter(is_recent).map_or(now, |one| one.since);
        *shortage = Some(Shortage { since, last: now });
        Deadline::after(since, SHORTAGE_LIMIT).has_passed(now)
    }
}

impl ScheduleEngine {
    /// Drains the queue on this thread, which must not be the timer's: hands over what the executor accepts or rejects
    /// at once. The first task that would have to wait ends that, or is rejected
    /// if `rejects` is set. Returns when to try again because something is left.
    #[cold]
    pub(in crate::schedule) fn dispatch_without_thread(
        self: &Arc<Self>,
        rejects: bool,
    ) -> Deadline {
        let demand = self.dispatch_queue.inner.lock().thread.demand();
        match demand {
            Demand::Served => return Deadline::NEVER,
            Demand::Wake(parked) => {
                parked.wake();
                return Deadline::NEVER;
            }
            Demand::Start => {}
        }
        let fallback = Fallback {
            engine: Arc::clone(self),
            rejects,
            is_stuck: false,
        };
        Drainer::new(fallback).run();
        if self.dispatch_queue.inner.lock().tasks.is_empty() {
            Deadline::NEVER
        } else {
            self.clock.deadline(RETRY)
        }
    }
}

/// Drains the queue as far as that takes no waiting.
#[derive(Clone)]
struct Fallback {
    engine: Arc<ScheduleEngine>,
    /// Whether a task that would have to wait is rejected.
    rejects: bool,
    /// The first task would have to wait.
    is_stuck: bool,
}

impl Drain for Fallback {
    type Job = DueTask;

    fn with<R>(&self, f: impl FnOnce(&mut OnDemand) -> R) -> R {
        f(&mut self.engine.dispatch_queue.inner.lock().thread)
    }

    fn now(&self) -> Option<Instant> {
        self.engine.clock.system_now()
    }

    fn next(&mut self) -> Next<DueTask> {
        if self.is_stuck {
            return Next::Abandon;
        }
        let mut inner = self.engine.dispatch_queue.inner.lock();
        if let Some(due) = self.engine.next_task(&mut inner) {
            return Next::Run(due);
        }
        inner.thread.leave();
        Next::Leave
    }

    fn run(&mut self, due: DueTask) {
        self.is_stuck = !self.settle(due);
    }

    /// The caller of [`dispatch_without_thread`](ScheduleEngine::dispatch_without_thread) tries again later.
    fn abandoned(&self) {}
}

impl Fallback {
    /// Hands a task over, or rejects it. Returns false if it was put back.
    fn settle(&self, due: DueTask) -> bool {
        let _in_hand = InHand::attach(&self.engine);
        let left = self.execute_at_once(due);
        let is_settled = left.is_none_or(|due| self.reject_or_put_back(due));
        self.engine.dispatch_queue.clear_in_flight();
        is_settled
    }

    /// Hands a task over if that takes no waiting; otherwise returns it.
    fn execute_at_once(&self, due: DueTask) -> Option<DueTask> {
        let DueTask { task, is_run } = due;
        let engine = &self.engine;
        if !engine.track_handed_over(&task) {
            engine.return_to_stop(task);
            return None;
        }
        user_code::check(Kind::Executor);
        match catch_panic::call(|| engine.executor.try_execute_task(task)) {
            // If it panicked, it has dropped the task.
            None => None,
            Some(Ok(())) => {
                // Tasks get through without the thread, if slowly.
                engine.dispatch_queue.inner.lock().shortage = None;
                None
            }
            Some(Err(TryExecuteError::Rejected(rejected))) => {
                engine.not_executed(rejected, is_run);
                None
            }
            Some(Err(TryExecuteError::WouldBlock(task))) => {
                engine.untrack_handed_over(&task);
                Some(DueTask { task, is_run })
            }
        }
    }

    /// For a task that would have to wait. Returns false if it was put back.
    fn reject_or_put_back(&self, due: DueTask) -> bool {
        let DueTask { task, is_run } = due;
        if self.rejects {
            let reason = RejectReason::SpawnFailed(io::Error::other(NO_DISPATCHER));
            self.engine
                .not_executed(Rejected::new(task, reason), is_run);
            return true;
        }
        let Some(stopped) = self
            .engine
            .dispatch_queue
            .put_back(DueTask { task, is_run })
        else {
            return false;
        };
        // DISPATCHER-2
        self.engine.return_to_stop(stopped.task);
        true
    }
}

impl DispatchQueue {
    /// Puts the task in flight back to the front; returns it if the queue is sealed. In one step: a stop finds the
    /// task in flight or in the queue.
    fn put_back(&self, due: DueTask) -> Option<DueTask> {
        let mut inner = self.inner.lock();
        if inner.is_sealed {
            return Some(due);
        }
        inner.tasks.push_front(due);
        self.store_len(&inner);
        let in_flight = inner.in_flight.take();
        drop(inner);
        drop(in_flight);
        None
    }
}
