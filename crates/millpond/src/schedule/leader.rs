//! The leader: an idle worker of the pool's own executor that waits for the next due time, in place of the timer.
//!
//! With the timer two threads have to wake up for a task, one after the other; and where tasks follow each other
//! fast both are busy, which is one too many on a small machine. A leader wakes up by itself and runs what it
//! finds. It is any idle worker (leader and followers). When it has a task to run it leaves, and the next
//! idle worker becomes the leader. While there is none the [alarm](super::alarm) fires.
//!
//! ```text
//!              enter: a worker is idle
//!   alarm  ------------------------------>  leader: wakes up when something is due
//!     ^                                       |
//!     +---------------------------------------+
//!              leave: it has a task to run
//! ```
//!
//! To set an alarm may mean to wake the timer, which takes longer than many a task. So where gaps between leaders
//! were short of late ([`SHORT_GAP`]), a leader that leaves accepts an alarm that fires a moment later ([`GRACE`]).
//! Mostly the next leader is there long before; if not, that alarm fires.
//!
//! If no alarm can be set, because the timer's thread cannot be had, the leader that leaves says so, and its
//! executor wakes other idle workers to take over. If all are busy, the first that is idle again enters by itself.
//!
//! # Invariants
//!
//! - **LEADER-1** While there is a leader no alarm is set; one that was set before may fire, for nothing. `armed`
//!   (ALARM-1) is the leader's then.
//! - **LEADER-2** A leader that goes to sleep records until when, in the same step. A thread that dispatches and finds
//!   something that is due earlier wakes it.
//! - **LEADER-3** A leader that leaves sees to it that an alarm is set, up to [`GRACE`] later than necessary if gaps are
//!   short.
//! - **LEADER-4** Leaders sleep by the clock of the executor. So a pool that goes by another clock has none.
//! - **LEADER-5** A leader that finds another thread dispatching has it do another round (DISPATCH-1) and parks, at most
//!   for [`TURN_PAUSE`]: the other thread may wait for this very CPU, or be held up in user code, such as a thread
//!   factory. At the end of its turn it wakes the leader if something is still due (LEADER-2).

use super::dispatch::Limit;
use super::engine::ScheduleEngine;
use crate::executor::{TimerSource, TimerStatus};
use crate::time::{Clock, Deadline};
use std::sync::Arc;
use std::task::Waker;
use std::time::{Duration, Instant};

/// A gap between two leaders of at most this length is short.
const SHORT_GAP: Duration = Duration::from_micros(20);

/// So many of the last eight gaps must have been short to expect the same of the next. Not all of them: now
/// and then a thread has to wait for a CPU, which says nothing about the tasks.
const MOSTLY: u32 = 6;

/// By how much a task may be late that becomes due in a gap that is not short, against expectation.
const GRACE: Duration = Duration::from_micros(500);

/// How long a leader parks while another thread dispatches.
const TURN_PAUSE: Duration = Duration::from_millis(1);

/// Too long to be passed without a search for tasks that are submitted meanwhile.
const FAR: Duration = Duration::from_micros(250);

/// A leader that leaves hands over so many tasks. The rest is for the next leader.
const BATCH: usize = 8;

/// The leader, and what leaders have learned.
#[derive(Default)]
pub(super) struct LeaderState {
    leader: Option<Leader>,
    /// Since when there is no leader, or was none, until the present leader looks for the first time.
    gap_since: Option<Instant>,
    /// Whether the last eight gaps were short, one bit for each. Tasks count as long until they have proved to be short.
    short_gaps: u8,
}

struct Leader {
    waker: Waker,
    /// Until when it sleeps; `None` if it is awake, or has been woken.
    sleeps_until: Option<Deadline>,
}

impl LeaderState {
    pub(super) fn is_present(&self) -> bool {
        self.leader.is_some()
    }

    /// The waker of a leader that would sleep too long for something that is due then (LEADER-2).
    pub(super) fn wake_before(&mut self, due: Deadline) -> Option<Waker> {
        let leader = self.leader.as_mut()?;
        let until = leader.sleeps_until?;
        (due < until).then(|| {
            leader.sleeps_until = None;
            leader.waker.clone()
        })
    }

    /// Whether the next gap is expected to be short.
    fn has_short_gaps(&self, clock: &Clock) -> bool {
        self.short_gaps.count_ones() >= MOSTLY && !clock.is_manual()
    }

    /// By when the next leader is expected, if there is none since a moment only.
    pub(super) fn expected_by(&self, clock: &Clock) -> Option<Deadline> {
        let back = Deadline::after(self.gap_since?, SHORT_GAP);
        (self.has_short_gaps(clock) && !back.has_passed(clock.now())).then_some(back)
    }

    /// The leader is awake: records how long the gap was.
    fn note_awake(&mut self, now: Instant) {
        if let Some(since) = self.gap_since.take() {
            let is_short = now.saturating_duration_since(since) <= SHORT_GAP;
            self.short_gaps = self.short_gaps << 1 | u8::from(is_short);
        }
        if let Some(leader) = &mut self.leader {
            leader.sleeps_until = None;
        }
    }
}

impl TimerSource for ScheduleEngine {
    fn try_lead(&self, waker: &Waker) -> bool {
        let Some(mut state) = self.live_state() else {
            return false;
        };
        if state.leader.is_present() || state.is_terminated {
            return false;
        }
        state.leader.leader = Some(Leader {
            waker: waker.clone(),
            sleeps_until: None,
        });
        state.alarm.armed = state.next_due();
        true
    }

    fn check(&self) -> TimerStatus {
        let now = self.clock.now();
        let mut state = self.state();
        let due = state.alarm.armed;
        state.leader.note_awake(now);
        let until = if !due.has_passed(now) {
            self.clock.sleep_until(due, now)
        } else if state.turn.is_taken() {
            // LEADER-5
            state.turn.request_rerun();
            Deadline::after(now, TURN_PAUSE)
        } else {
            return TimerStatus::Due;
        };
        // LEADER-2
        if let Some(leader) = &mut state.leader.leader {
            leader.sleeps_until = Some(until);
        }
        TimerStatus::Park {
            until,
            is_far: Deadline::after(now, FAR) < until,
        }
    }

    fn dispatch_one(self: Arc<Self>) -> bool {
        self.dispatch(Limit::one_batch(1), None)
    }

    fn is_called(&self) -> bool {
        let state = self.state();
        let leader = state.leader.leader.as_ref();
        leader.is_some_and(|leader| leader.sleeps_until.is_none())
    }

    fn resign(self: Arc<Self>) -> bool {
        let now = self.clock.now();
        let mut state = self.state();
        let leader = state.leader.leader.take();
        state.leader.gap_since = Some(now);
        let grace = if state.leader.has_short_gaps(&self.clock) {
            GRACE
        } else {
            Duration::ZERO
        };
        let not_before = Deadline::after(now, grace);
        let due = state.alarm.armed;
        // LEADER-3: the alarm that is set fires in time, or nothing is due.
        let is_covered = state.alarm.fires_at <= due.max(not_before) || due == Deadline::NEVER;
        state.alarm.armed = state.alarm.fires_at;
        drop(state);
        drop(leader);
        if is_covered {
            return false;
        }
        let limit = if grace.is_zero() {
            Limit::one_batch(BATCH)
        } else {
            Limit::NOTHING
        };
        self.dispatch(limit, Some(not_before));
        let state = self.state();
        // Nobody will look: the timer's thread could not be had.
        let is_unattended = state.alarm.armed == Deadline::NEVER && !state.leader.is_present();
        is_unattended && !state.turn.is_taken() && state.next_due() != Deadline::NEVER
    }
}
