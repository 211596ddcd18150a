//! Which tasks are shed when their turn comes, and whose turn it is under overload.
//!
//! ```text
//!   a worker takes a task out of the queue
//!       its deadline has passed?                            Expired         (as in every executor)
//!       it has waited for longer than max_queue_wait?       WaitedTooLong
//!       overloaded, and it has waited for too long?         Shed
//!       none of them                                        it runs
//! ```
//!
//! A task that starts a worker goes straight to it and has not waited, so only its deadline is checked. What belongs to
//! the machinery of an executor and not to one caller, a drain or the next poll of a future, is never shed
//! ([`TaskSpec::build_kept`](crate::task::TaskSpec)): it has waited on behalf of others.
//!
//! # When a pool is overloaded
//!
//! CoDel decides ([`crate::adapt`]), if it is set. Otherwise, for the order alone, it is when the oldest task has waited
//! for more than half of what it may.
//!
//! # Invariants
//!
//! - **SHED-1** Unless a parameter is set nothing here is touched: two bits of the word of the limits, which a worker
//!   reads anyway, say whether one is.
//! - **SHED-2** What is measured is the wait of the *oldest* task, in either order: the standing delay of the queue. The
//!   wait of a task that overtook all others says nothing about that.
//! - **SHED-3** Newest first takes the newest only if the oldest is not to be shed. So tasks that have waited too long
//!   are shed one by one, as they would be otherwise, and never occupy a place for nothing; and a task that overtakes
//!   need not be judged, because it has waited for less than one that is not shed.
//! - **SHED-4** The atomics are hints and plain numbers; they order nothing. CoDel's state is behind a lock that is taken
//!   only if CoDel is set.
//! - **SHED-5** A counter that goes back, as when the machine was suspended, sheds nothing: time is counted anew from
//!   there, what was measured is forgotten, and no task has waited for longer than time is counted.

use super::config::{ColdConfig, Overload};
use super::engine::PoolEngine;
use crate::adapt::CodelState;
use crate::engine::metrics::TaskStart;
use crate::manage::OverloadOrder;
use crate::task::{CancelReason, Task};
use crate::time::TimestampClock;
use millpond_raw::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use millpond_raw::sync::{Mutex, MutexGuard};
use millpond_raw::timestamp::Timestamp;
use std::time::Duration;

/// The end of the queue that a task was taken from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Turn {
    Oldest,
    /// It has overtaken all others (SHED-3).
    Newest,
}

/// How much the counters of two CPUs may differ without having been set.
const SKEW: Duration = Duration::from_millis(1);

/// Nothing waits as long as that.
const NEVER: u64 = u64::MAX;

/// The parameters in a form that is quick to read, and what has been measured.
pub(super) struct Shedder {
    /// In nanoseconds: a task that has waited longer is dropped in any case.
    most: AtomicU64,
    /// In nanoseconds: a task that has waited longer is shed under overload.
    most_under_overload: AtomicU64,
    /// In nanoseconds: while the oldest has waited for no longer, there is no overload.
    calm: AtomicU64,
    /// As far as the last sample can tell.
    is_overloaded: AtomicBool,
    state: Mutex<State>,
}

struct State {
    settings: Overload,
    codel: CodelState,
    /// Since when time is counted (SHED-5).
    since: Timestamp,
    /// The latest time that was read.
    latest: Timestamp,
}

fn nanos(duration: Option<Duration>) -> u64 {
    duration.map_or(NEVER, |duration| {
        u64::try_from(duration.as_nanos()).unwrap_or(NEVER)
    })
}

impl Shedder {
    pub(super) fn new(settings: Overload, now: Timestamp) -> Self {
        let shedder = Shedder {
            most: AtomicU64::new(NEVER),
            most_under_overload: AtomicU64::new(NEVER),
            calm: AtomicU64::new(NEVER),
            is_overloaded: AtomicBool::new(false),
            state: Mutex::new(State {
                settings: Overload::default(),
                codel: CodelState::new(),
                since: now,
                latest: now,
            }),
        };
        shedder.write(settings);
        shedder
    }

    pub(super) fn settings(&self) -> Overload {
        self.state.lock().settings
    }

    /// Changes parameters that have been validated. The guard is the writers' lock (CONFIG-2).
    pub(super) fn set(&self, _turn: &MutexGuard<'_, ColdConfig>, settings: Overload) {
        self.write(settings);
    }

    /// New settings reset what was measured. The same ones change nothing.
    fn write(&self, settings: Overload) {
        let mut state = self.state.lock();
        state.settings.finish_percentile = settings.finish_percentile;
        if state.settings == settings {
            return;
        }
        let (most, codel) = (nanos(settings.max_queue_wait), settings.shedding);
        let timeout = codel.map_or(NEVER, |codel| codel.shed_after_nanos());
        let calm = codel.map_or(most / 2, |codel| nanos(Some(codel.target)));
        self.most.store(most, Ordering::Relaxed);
        self.most_under_overload.store(timeout, Ordering::Relaxed);
        self.calm.store(calm, Ordering::Relaxed);
        self.is_overloaded.store(false, Ordering::Relaxed);
        state.settings = settings;
        state.codel = CodelState::new();
    }

    pub(super) fn is_overloaded(&self) -> bool {
        self.is_overloaded.load(Ordering::Relaxed)
    }

    fn note(&self, is_overloaded: bool) {
        if self.is_overloaded() != is_overloaded {
            self.is_overloaded.store(is_overloaded, Ordering::Relaxed);
        }
    }

    /// The queue has run empty.
    #[cold]
    pub(super) fn ran_empty(&self) {
        let mut state = self.state.lock();
        state.codel.on_empty();
        self.note(false);
    }

    /// The oldest task has waited so long by its timestamp (SHED-2). Returns how long it can have waited in truth, and
    /// whether CoDel sheds it.
    fn sample(&self, timestamps: &TimestampClock, waited: u64, now: Timestamp) -> (u64, bool) {
        let mut state = self.state.lock();
        let now = state.elapsed(timestamps, now);
        // SHED-5
        let waited = waited.min(now);
        let Some(codel) = state.settings.shedding else {
            self.note(waited > self.calm.load(Ordering::Relaxed));
            return (waited, false);
        };
        let decision = match state.settings.order {
            OverloadOrder::Unchanged => state.codel.on_dequeue(&codel, waited, now),
            // CODEL-3: the wait of the oldest tells little where the newest come first.
            OverloadOrder::NewestFirst => state.codel.on_dequeue_lifo(&codel, waited, now),
        };
        self.note(decision.is_overloaded);
        (waited, decision.shed)
    }

    /// Whether the newest task comes next, under overload, if the oldest has waited so long (SHED-3).
    fn takes_newest(&self, waited: u64) -> bool {
        let read = |nanos: &AtomicU64| nanos.load(Ordering::Relaxed);
        let most = read(&self.most).min(read(&self.most_under_overload));
        waited > read(&self.calm) && waited <= most
    }
}

impl State {
    /// Nanoseconds since time is counted: SHED-5.
    fn elapsed(&mut self, timestamps: &TimestampClock, now: Timestamp) -> u64 {
        let behind = self.latest.count().saturating_sub(now.count());
        if behind > timestamps.ticks(SKEW) {
            (self.since, self.latest) = (now, now);
            self.codel = CodelState::new();
        }
        self.latest = self.latest.max(now);
        timestamps.nanos(self.since, now)
    }
}

fn waited(timestamps: &TimestampClock, task: &Task, now: Timestamp) -> u64 {
    let since = task.queued_since();
    since.map_or(0, |since| timestamps.nanos_from(since, now))
}

impl PoolEngine {
    /// Whether a task that has been taken out of the queue is to be dropped, and why. Its deadline is checked when it is
    /// run.
    #[inline]
    pub(super) fn shed(
        &self,
        task: &Task,
        turn: Turn,
        start: Option<TaskStart>,
    ) -> Option<CancelReason> {
        if turn == Turn::Oldest && self.config().limits().sheds() {
            self.judge(task, start)
        } else {
            None
        }
    }

    #[cold]
    fn judge(&self, task: &Task, start: Option<TaskStart>) -> Option<CancelReason> {
        let shedder = &self.shedder;
        // With metrics the time has been read already.
        let (waited, now) = start.map_or_else(
            || {
                let now = self.timestamps.now();
                (waited(&self.timestamps, task, now), now)
            },
            |start| (start.waited, start.tick),
        );
        let (waited, sheds) = shedder.sample(&self.timestamps, waited, now);
        if task.is_kept() || task.is_expired() {
            return None;
        }
        if waited > shedder.most.load(Ordering::Relaxed) {
            return Some(CancelReason::WaitedTooLong);
        }
        sheds.then_some(CancelReason::Shed)
    }

    /// The next task, where the newest comes first under overload.
    #[cold]
    pub(super) fn poll_by_turn(&self) -> Option<(Task, Turn)> {
        let shedder = &self.shedder;
        if !shedder.is_overloaded() {
            return self.queue.poll().map(|task| (task, Turn::Oldest));
        }
        let (now, mut stood) = (self.timestamps.now(), None);
        let task = self.queue.poll_by(|oldest| {
            let waited = waited(&self.timestamps, oldest, now);
            let takes_newest = shedder.takes_newest(waited);
            stood = takes_newest.then_some(waited);
            takes_newest
        })?;
        let Some(stood) = stood else {
            return Some((task, Turn::Oldest));
        };
        shedder.sample(&self.timestamps, stood, now);
        Some((task, Turn::Newest))
    }
}

#[cfg(all(test, not(any(millpond_loom, millpond_shuttle))))]
mod tests {
    use super::*;
    use crate::manage::CoDel;
    use crate::time::ManualClock;

    const MS: u64 = 1_000_000;

    #[test]
    fn new_settings_forget_what_was_measured_and_the_same_ones_do_not() {
        let ms = Duration::from_millis;
        let usual = Overload {
            shedding: Some(CoDel::default()),
            ..Overload::default()
        };
        let other = Overload {
            max_queue_wait: Some(ms(700)),
            ..usual
        };
        let shedder = Shedder::new(usual, Timestamp::from_count(1));
        let sheds = sheds(&shedder);
        assert!(!sheds(50, 100));
        assert!(sheds(50, 200) && shedder.is_overloaded());
        shedder.write(usual);
        assert!(sheds(50, 201), "nothing has changed");
        shedder.write(other);
        assert!(!shedder.is_overloaded());
        assert!(!sheds(50, 202));
        assert!(sheds(50, 302));
    }

    /// Whether a task that has waited for so many milliseconds is shed at this one.
    fn sheds(shedder: &Shedder) -> impl Fn(u64, u64) -> bool {
        // Its ticks are nanoseconds.
        let timestamps = TimestampClock::of(&ManualClock::new().clock());
        move |waited, now| {
            let now = Timestamp::from_count(now * MS);
            shedder.sample(&timestamps, waited * MS, now).1
        }
    }

    #[test]
    fn a_counter_that_goes_back_sheds_nobody_and_is_counted_from_there() {
        let usual = Overload {
            shedding: Some(CoDel::default()),
            ..Overload::default()
        };
        let shedder = Shedder::new(usual, Timestamp::from_count(1));
        let hour = 3_600_000;
        let shed = sheds(&shedder);
        assert!(!shed(50, hour) && shed(50, hour + 100) && shedder.is_overloaded());
        // A little is no matter: CPUs differ.
        let timestamps = TimestampClock::of(&ManualClock::new().clock());
        let early = Timestamp::from_count((hour + 100) * MS - 1_000);
        assert!(shedder.sample(&timestamps, 50 * MS, early).1);
        // Back by an hour: earlier timestamps mean nothing from now on.
        let back = Timestamp::from_count(5 * MS);
        assert_eq!(shedder.sample(&timestamps, hour * MS, back), (0, false));
        assert!(!shedder.is_overloaded());
        let soon = Timestamp::from_count(8 * MS);
        assert_eq!(
            shedder.sample(&timestamps, hour * MS, soon),
            (3 * MS, false)
        );
        // And a queue that stands is found out as ever.
        assert!((1..=5).any(|interval| shed(90, 50 + interval * 100)));
        assert!(shedder.is_overloaded());
    }
}
