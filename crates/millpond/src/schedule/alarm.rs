//! The pool's one alarm at the timer, and its hold on the threads that it depends on.
//!
//! A pool has one alarm, however many entries are pending: for the first of them. It is not set while a worker
//! is the [leader](super::leader) and waits for the due time itself.
//!
//! # Invariants
//!
//! - **ALARM-1** `armed` is when somebody looks for due entries next, the alarm or the leader. It is never later than
//!   the first due time (but for a moment, when a leader has just left: LEADER-3). So whoever inserts an entry
//!   that is due before `armed` dispatches, and nobody else has to.
//! - **ALARM-2** What is accepted never waits for a thread that cannot be had. So a pool holds the timer's thread
//!   (TIMER-7 in `time/timer.rs`) from the first task that is not due at once, and from the first series, even if there
//!   is a leader: it may have to leave. With it goes the thread in reserve (DEFER-4), which does what is not for the
//!   timer's thread if no other can be started. If one of the two cannot be had, that first task is rejected. The
//!   pool lets go of both when it is stopped or has terminated. Due tasks that need the dispatcher's thread and
//!   cannot have it go without, or are rejected ([`dispatcher`](super::dispatcher)).

use super::dispatch::Limit;
use super::engine::ScheduleEngine;
use super::pending::Due;
use super::state::PoolState;
use crate::executor::{RejectReason, TimerThread};
use crate::time::{Alarm, Deadline, Owner, ThreadHold, Work, drop_off_timer, is_timer_thread};
use millpond_raw::sync::{MutexGuard, chaos};
use std::sync::Arc;
use std::task::{Wake, Waker};

pub(super) struct AlarmState {
    /// ALARM-1; never, if nobody looks.
    pub(super) armed: Deadline,
    alarm: Option<Alarm>,
    /// When the alarm fires; never, if none is set.
    pub(super) fires_at: Deadline,
    /// When to try again to start the dispatcher's thread; mostly never.
    retry: Deadline,
    /// ALARM-2
    hold: Option<ThreadHold>,
}

impl AlarmState {
    pub(super) fn new() -> Self {
        AlarmState {
            armed: Deadline::NEVER,
            alarm: None,
            fires_at: Deadline::NEVER,
            retry: Deadline::NEVER,
            hold: None,
        }
    }

    /// Whether nobody looks early enough for an entry that is due then (ALARM-1).
    #[inline]
    pub(super) fn is_after(&self, due: Deadline) -> bool {
        due < self.armed
    }

    /// Whether the threads are held (ALARM-2).
    #[inline]
    pub(super) fn has_hold(&self) -> bool {
        self.hold.is_some()
    }

    /// The hold, to be dropped without the lock.
    pub(super) fn release_hold(&mut self) -> Option<ThreadHold> {
        self.hold.take()
    }

    /// Takes the alarm back, to be dropped without the lock.
    pub(super) fn disarm(&mut self) -> Option<Alarm> {
        (self.armed, self.fires_at) = (Deadline::NEVER, Deadline::NEVER);
        self.alarm.take()
    }

    /// The pool is gone.
    pub(super) fn close(&mut self) -> (Option<Alarm>, Option<ThreadHold>) {
        (self.alarm.take(), self.hold.take())
    }
}

impl PoolState {
    /// When there is something to do next.
    pub(super) fn next_due(&self) -> Deadline {
        self.pending.next_due().min(self.alarm.retry)
    }
}

impl ScheduleEngine {
    /// The last step of a round of [dispatch](super::dispatch): arms the leader, or sets the alarm, for the next
    /// due time. `retry` is when to try again to start the dispatcher's thread. An alarm is not set for earlier
    /// than `not_before`. If the leader must be woken, its waker is put into `leader`. `batch` is the memory of the
    /// round.
    ///
    /// Returns the state, locked, for the decision whether this was the last round.
    ///
    /// If no thread can be had for the alarm (TIMER-4 in `time/timer.rs`; ALARM-2: only if the timer's thread has died, or
    /// nothing had to wait for its time), pending entries are left to whoever dispatches next: a leader, a caller, or
    /// the timer's thread as soon as there is one. Tasks that wait for the dispatcher's thread are rejected then.
    pub(super) fn rearm(
        self: &Arc<Self>,
        batch: Vec<Due>,
        retry: Deadline,
        not_before: Option<Deadline>,
        leader: &mut Option<Waker>,
    ) -> MutexGuard<'static, PoolState> {
        let mut state = self.state();
        state.pending.keep_memory(batch);
        state.alarm.retry = retry;
        let due = state.next_due();
        let next = not_before.map_or(due, |early| due.max(early));
        // An alarm that fired while it was being replaced has recorded that none is set; but another one is.
        let is_idle = next == Deadline::NEVER && state.alarm.alarm.is_some();
        if state.leader.is_present() {
            // LEADER-1
            state.alarm.armed = due;
            if let Some(waker) = state.leader.wake_before(due) {
                *leader = Some(waker);
            }
            if !is_idle {
                return state;
            }
            state.alarm.fires_at = Deadline::NEVER;
            let former = state.alarm.alarm.take();
            drop(state);
            drop(former);
            return self.state();
        }
        let is_set = state.alarm.fires_at == next && !is_idle;
        if is_set || state.turn.is_rerun_requested() {
            return state;
        }
        // Entries that come while the alarm is being set do not rely on it: it may be refused.
        let former = state.alarm.disarm();
        state.alarm.fires_at = next;
        drop(state);
        drop(former);
        chaos::point("schedule.arm");
        // It may fire before this returns.
        let set = self.clock.alarm(next, &Waker::from(Arc::clone(self)));
        let is_attended = set.is_ok();
        let alarm = set.unwrap_or_else(|no_thread| no_thread.alarm);
        let mut state = self.state();
        state.alarm.alarm = (next != Deadline::NEVER).then_some(alarm);
        if !is_attended {
            state.alarm.fires_at = Deadline::NEVER;
            if retry != Deadline::NEVER && !is_timer_thread() {
                drop(state);
                self.dispatch_without_thread(true);
                state = self.state();
                state.alarm.retry = Deadline::NEVER;
            }
        }
        if !state.leader.is_present() {
            // Never, if it has fired meanwhile.
            state.alarm.armed = state.alarm.fires_at;
        }
        state
    }

    /// Whether an entry that is due then has to wait for its time; what is never due does not.
    pub(super) fn must_wait_for(&self, due: Deadline) -> bool {
        due != Deadline::NEVER && !due.has_passed(self.clock.now())
    }

    /// Takes hold of the threads (ALARM-2), and returns the state, locked. `queued` is how many tasks the
    /// dispatcher has.
    ///
    /// # Errors
    ///
    /// Why nothing is accepted: the pool is shut down or full, or a thread cannot be had. If the pool is shut down
    /// meanwhile it may hold no thread; the caller checks that in any case.
    #[cold]
    pub(super) fn hold_threads(
        &self,
        queued: usize,
    ) -> Result<MutexGuard<'static, PoolState>, RejectReason> {
        let rejected = self.state().reject_reason(queued);
        if let Some(reason) = rejected {
            return Err(reason);
        }
        // The factory may be the user's, so it is not called under the lock (SCHEDULE-3).
        let hold = ThreadHold::new(&self.clock).map_err(TimerThread::failed)?;
        let mut state = self.state();
        if state.alarm.has_hold() || !state.guards.is_open() {
            drop(state);
            drop(hold);
            return Ok(self.state());
        }
        state.alarm.hold = Some(hold);
        Ok(state)
    }

    /// Takes hold of the threads if the pool does not hold them. Returns whether it does now.
    #[cold]
    pub(super) fn try_hold_threads(&self) -> bool {
        if self.state().alarm.has_hold() {
            return true;
        }
        let Ok(hold) = ThreadHold::new(&self.clock) else {
            return false;
        };
        let mut state = self.state();
        let unused = if state.alarm.has_hold() || state.is_terminated {
            Some(hold)
        } else {
            state.alarm.hold.replace(hold)
        };
        drop(state);
        drop(unused);
        true
    }
}

/// The alarm fires.
impl Wake for ScheduleEngine {
    fn wake(self: Arc<Self>) {
        // DISPATCH-1: it has fired, so the next one must be set, whatever this one was set for.
        let leader_back_by = {
            let mut state = self.state();
            state.alarm.fires_at = Deadline::NEVER;
            if state.leader.is_present() {
                // LEADER-1: the leader dispatches, and sets the next alarm when it leaves.
                return;
            }
            state.alarm.armed = Deadline::NEVER;
            state.leader.expected_by(&self.clock)
        };
        match leader_back_by {
            None => self.dispatch_due(),
            Some(back) => {
                self.dispatch(Limit::NOTHING, Some(back));
            }
        }
        // SCHEDULE-3: this may be the last reference, with all that the engine has of the user's.
        drop_off_timer(Owner::of(&*self, Work::Drop), self);
    }
}
