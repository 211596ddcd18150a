//! Shutdown, stop and termination of a scheduled pool (SCHEDULE-4).

use super::dispatcher::Drained;
use super::engine::ScheduleEngine;
use super::pending::Entry;
use crate::engine::events::EventSource;
use crate::engine::{Terminates, Termination};
use crate::executor::{Inside, TerminationError};
use crate::manage::RunState;
use crate::task::{CancelReason, Task, Witness};
use crate::time::Deadline;
use millpond_raw::catch_panic;
use millpond_raw::park::Site;
use std::sync::Arc;

impl Terminates for ScheduleEngine {
    const AWAIT_SITE: Site = Site::new("schedule.await_termination");

    /// Accepts no more tasks. Two policies decide what becomes of those that are pending.
    fn shut_down(self: &Arc<Self>) {
        if ScheduleEngine::is_forked(self) {
            return;
        }
        let closed = {
            let mut state = self.state();
            state.run_state = state.run_state.max(RunState::ShutDown);
            state.guards.close(self)
        };
        self.cancel_unwanted();
        drop(closed);
    }

    fn is_forked(&self) -> bool {
        ScheduleEngine::is_forked(self)
    }

    /// Its executor may still have to terminate: see [`is_terminated`](ScheduleEngine::is_terminated).
    fn is_over(&self) -> bool {
        self.state().is_terminated
    }

    /// Whether the caller is one of its tasks, or one of an executor of the pool's own.
    fn is_caller_inside(&self) -> bool {
        let is_inside = !ScheduleEngine::is_forked(self) && Inside::is(self);
        let owned = self.owned.as_ref();
        is_inside || owned.is_some_and(|owned| owned.is_caller_inside())
    }

    fn termination(&self) -> &Termination {
        &self.termination
    }
}

impl ScheduleEngine {
    /// After a shutdown: cancels pending entries, by the policies as they are now.
    ///
    /// A task that is due is not delayed any more, so it runs whatever the policies are. It may still be in
    /// the queue, because another thread dispatches (DISPATCH-1). Series have no such right: they end.
    pub(super) fn cancel_unwanted(self: &Arc<Self>) {
        let unwanted = {
            let mut state = self.state();
            let (once, series) = (state.runs_delayed, state.runs_periodic);
            if state.run_state == RunState::Running || (once && series) {
                return;
            }
            // Read after the shutdown is known, so not before the due time of a task without delay that was
            // accepted before it.
            let now = self.nanos(Deadline::at(self.clock.now()));
            state.pending.take_by_due(|due, entry| match entry {
                Entry::Once(_) => !once && due > now,
                Entry::Series(_) => !series,
            })
        };
        for entry in unwanted {
            match entry {
                Entry::Once(task) => {
                    task.cancel(CancelReason::ShutDown);
                }
                Entry::Series(series) => series.end(CancelReason::ShutDown),
            }
        }
        // For what is due, and for an alarm that is not needed any more.
        self.dispatch_due();
    }

    /// Accepts no more tasks, asks those that run to stop, and hands back those that have not begun.
    pub(super) fn stop(self: &Arc<Self>) -> Vec<Task> {
        if self.is_forked() {
            return Vec::new();
        }
        let (closed, entries, hold) = {
            let mut state = self.state();
            state.run_state = state.run_state.max(RunState::Stopped);
            let entries = state.pending.take_all();
            // ALARM-2: nothing will wait for its time any more.
            let hold = state.alarm.release_hold();
            (state.guards.close(self), entries, hold)
        };
        let Drained { tasks, awaited } = self.dispatch_queue.drain();
        let mut unstarted: Vec<Task> = tasks.into_iter().map(|due| due.task).collect();
        let mut series = Vec::new();
        for entry in entries {
            match entry {
                Entry::Once(task) => unstarted.push(task),
                Entry::Series(entry) => series.push(entry),
            }
        }
        let mut in_flight = Vec::new();
        match &self.owned {
            // It may be the user's.
            Some(owned) => {
                unstarted.extend(catch_panic::call(|| owned.shutdown_now()).unwrap_or_default())
            }
            None => {
                let is_in_flight = |task: &Witness| Some(task.address()) == awaited;
                let handed_over = self.handed_over.stop().into_iter();
                let (flying, there) = handed_over.partition(is_in_flight);
                in_flight = flying;
                unstarted.extend(self.take_back(there));
            }
        }
        if awaited.is_some() {
            let returned = self.await_in_flight();
            in_flight.retain(|flying| !returned.iter().any(|task| flying.is_of(task)));
            // Otherwise the executor has it by now, or keeps it.
            unstarted.extend(self.take_back(in_flight));
            unstarted.splice(0..0, returned);
        }
        unstarted.retain(|task| !task.is_gone());
        // SERIES-5: when it is known which of their runs came back.
        for series in series {
            series.hand_back(&mut unstarted);
        }
        self.dispatch_due();
        drop(hold);
        drop(closed);
        self.stop_waiting_for_guards();
        unstarted
    }

    /// Nothing keeps the pool alive any more ([`super::liveness`]). Two threads may find that out.
    pub(super) fn terminate(&self) {
        if self.is_forked() || !self.release_handed_over() {
            return;
        }
        if let Some(owned) = &self.owned {
            // It may be the user's, and must not keep the pool from its end.
            let _ = catch_panic::call(|| owned.shutdown());
        }
        // EVENTS-5: before a waiter can see the end.
        self.end_events();
        let (alarm, hold) = {
            let mut state = self.state();
            state.is_terminated = true;
            // A thread that dispatches finds nothing left; nobody needs an alarm for what was cancelled.
            state.turn.request_rerun();
            let alarm = if state.turn.is_taken() {
                None
            } else {
                state.alarm.disarm()
            };
            (alarm, state.alarm.release_hold())
        };
        drop(alarm);
        // ALARM-2: after the alarm, so that the timer's thread does not sleep until that.
        drop(hold);
        self.dispatch_queue.close();
        self.termination.announce();
    }

    pub(super) fn is_terminated(&self) -> bool {
        let is_over = self.is_forked() || self.is_over();
        is_over
            && self
                .owned
                .as_ref()
                .is_none_or(|owned| owned.is_terminated())
    }

    /// Waits for the termination, also of an executor of the pool's own.
    pub(super) fn await_with_executor(&self, deadline: Deadline) -> Result<bool, TerminationError> {
        if !self.await_termination(deadline)? {
            return Ok(false);
        }
        match &self.owned {
            Some(owned) if !self.is_forked() => owned.await_termination_until(deadline),
            _ => Ok(true),
        }
    }
}
