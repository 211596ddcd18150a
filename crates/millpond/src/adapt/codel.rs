//! CoDel: telling a burst from an overload by the *minimum* wait.
//!
//! A queue absorbs bursts, and during a burst some tasks wait long. That is no overload: a moment later the
//! queue is nearly empty again. An overload is a *standing* queue, in which every task waits. So the decision
//! is based on the minimum wait within an interval, and not on the length of the queue, the mean or the
//! longest wait.
//!
//! ```text
//!   wait
//!    ^      . .                     .   .  . .  .  .  ..
//!    |     .   ..               . .   .  ..   .  .   .      <- twice the target: shed what is above,
//!    |    .      .             .                               while overloaded
//!    |----------------------------------------------------  <- target
//!    |  .          .        .
//!    +--------------------------------------------------> time
//!     |  interval   |  interval   |  interval   |  interval
//!       a burst: the  as before     all waited    overloaded, until a task has waited no longer
//!       minimum is low              too long      than the target, or the queue is empty
//! ```
//!
//! This is the variant for queues of requests, as in "Fail at Scale" (ACM Queue, 2015) and folly,
//! and not the one for routers: there is no sender to slow down by dropping ever more packets, so every
//! task that has waited for more than twice the target is shed while the overload lasts. Younger tasks run.
//!
//! # Invariants
//!
//! - **CODEL-1** An interval begins with a sample and ends with the first sample that comes at least an
//!   interval later. The samples from the first to the one before the last belong to it.
//! - **CODEL-2** Overload begins with the end of an interval in which every sample was above the target.
//! - **CODEL-3** It ends with the first sample that is not above the target, and when the queue is empty. Where
//!   the newest task is taken first it ends only with the latter ([`CodelState::on_dequeue_lifo`]): LIFO order
//!   thins the queue out, so that its oldest task has sometimes hardly waited although the load is the same;
//!   if the overload ended, another whole interval would pass in FIFO order, in which all tasks wait.
//! - **CODEL-4** Tasks are shed only during an overload, and only after a wait of more than twice the target.

use std::fmt;
use std::time::Duration;

/// When a pool is overloaded, and shed tasks.
///
/// If every task that is taken out of the queue during a whole `interval` has waited for longer than
/// `target`, the pool is overloaded. Until a task has waited less, or the queue is empty, tasks that have
/// waited for longer than twice the target are shed instead of run.
///
/// The default, 5 ms and 100 ms, fits most services.
///
/// ```
/// use millpond::adapt::CoDel;
/// use std::time::Duration;
///
/// let usual = CoDel::default();
/// assert_eq!(usual.to_string(), "target 5ms, interval 100ms");
///
/// let patient = CoDel::new(Duration::from_millis(50), Duration::from_secs(1));
/// assert_eq!(patient.target, Duration::from_millis(50));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CoDel {
    /// How long a task may wait without an overload.
    pub target: Duration,
    /// For how long all tasks must wait longer than the target before that is an overload: longer than any
    /// burst that the queue is to absorb.
    pub interval: Duration,
}

impl CoDel {
    /// With these times.
    ///
    /// ```
    /// use millpond::adapt::CoDel;
    /// use std::time::Duration;
    ///
    /// const STRICT: CoDel = CoDel::new(Duration::from_millis(1), Duration::from_millis(20));
    /// assert_eq!(STRICT.interval, Duration::from_millis(20));
    /// ```
    pub const fn new(target: Duration, interval: Duration) -> Self {
        CoDel { target, interval }
    }

    /// The target in nanoseconds.
    fn target_nanos(&self) -> u64 {
        nanos(self.target)
    }

    /// The wait, in nanoseconds, beyond which a task is shed during an overload (CODEL-4).
    ///
    /// ```
    /// use millpond::adapt::CoDel;
    ///
    /// assert_eq!(CoDel::default().shed_after_nanos(), 10_000_000, "twice 5 ms");
    /// ```
    pub fn shed_after_nanos(&self) -> u64 {
        self.target_nanos().saturating_mul(2)
    }
}

impl Default for CoDel {
    fn default() -> Self {
        CoDel::new(Duration::from_millis(5), Duration::from_millis(100))
    }
}

impl fmt::Display for CoDel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "target {:?}, interval {:?}", self.target, self.interval)
    }
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

/// What to do with a task that has been taken out of the queue.
///
/// ```
/// use millpond::adapt::{CoDel, CodelState, CodelDecision};
///
/// // Nothing is known yet, so the task is not shed.
/// let first = CodelState::new().on_dequeue(&CoDel::default(), 1_000_000_000, 0);
/// assert_eq!(first, CodelDecision { is_overloaded: false, shed: false });
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CodelDecision {
    /// Whether there is a standing queue.
    pub is_overloaded: bool,
    /// Whether this task is shed.
    pub shed: bool,
}

/// The state of CoDel for one queue.
///
/// ```
/// use millpond::adapt::{CoDel, CodelState};
///
/// const MS: u64 = 1_000_000;
/// let (codel, mut state) = (CoDel::default(), CodelState::new());
/// // For 100 ms every task waits for 30 ms.
/// for now in 0..100 {
///     assert!(!state.on_dequeue(&codel, 30 * MS, now * MS).shed);
/// }
/// assert!(state.on_dequeue(&codel, 30 * MS, 100 * MS).shed);
/// // A task that has waited for less than twice the target still runs.
/// assert!(!state.on_dequeue(&codel, 9 * MS, 101 * MS).shed);
/// // One has hardly waited: the overload is over.
/// assert!(!state.on_dequeue(&codel, 4 * MS, 102 * MS).is_overloaded);
/// assert!(!state.on_dequeue(&codel, 30 * MS, 103 * MS).shed);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CodelState {
    /// The end of the current interval; `None` before the first sample.
    ends_at: Option<u64>,
    /// The minimum wait in it.
    min_wait: u64,
    is_overloaded: bool,
}

impl CodelState {
    /// The state before the first sample.
    ///
    /// ```
    /// use millpond::adapt::CodelState;
    ///
    /// assert!(!CodelState::new().is_overloaded());
    /// ```
    pub const fn new() -> Self {
        CodelState {
            ends_at: None,
            min_wait: 0,
            is_overloaded: false,
        }
    }

    /// Records that a task was taken out of the queue at `now` after it had `waited`, both in nanoseconds, and
    /// decides about it. `now` has an arbitrary origin; a time before that of the last sample counts as the
    /// same time.
    ///
    /// ```
    /// use millpond::adapt::{CoDel, CodelState};
    ///
    /// const MS: u64 = 1_000_000;
    /// let (codel, mut state) = (CoDel::default(), CodelState::new());
    /// state.on_dequeue(&codel, 30 * MS, 0);
    /// assert!(state.on_dequeue(&codel, 30 * MS, 100 * MS).is_overloaded, "a whole interval");
    /// assert!(!state.on_dequeue(&codel, MS, 101 * MS).is_overloaded, "one has hardly waited");
    /// ```
    pub fn on_dequeue(&mut self, codel: &CoDel, waited: u64, now: u64) -> CodelDecision {
        self.on_dequeue_lifo(codel, waited, now);
        // CODEL-3
        self.is_overloaded &= waited > codel.target_nanos();
        self.decide(codel, waited)
    }

    /// The same for a queue that is served newest first: an overload lasts until the queue is empty.
    ///
    /// ```
    /// use millpond::adapt::{CoDel, CodelState};
    ///
    /// const MS: u64 = 1_000_000;
    /// let (codel, mut state) = (CoDel::default(), CodelState::new());
    /// state.on_dequeue_lifo(&codel, 30 * MS, 0);
    /// assert!(state.on_dequeue_lifo(&codel, 30 * MS, 100 * MS).is_overloaded);
    /// assert!(state.on_dequeue_lifo(&codel, MS, 101 * MS).is_overloaded, "it lasts");
    /// state.on_empty();
    /// assert!(!state.is_overloaded());
    /// ```
    pub fn on_dequeue_lifo(&mut self, codel: &CoDel, waited: u64, now: u64) -> CodelDecision {
        let target = codel.target_nanos();
        match self.ends_at {
            Some(end) if now < end => self.min_wait = self.min_wait.min(waited),
            is_over => {
                // CODEL-2
                self.is_overloaded |= is_over.is_some() && self.min_wait > target;
                self.ends_at = Some(now.saturating_add(nanos(codel.interval)));
                self.min_wait = waited;
            }
        }
        self.decide(codel, waited)
    }

    fn decide(&self, codel: &CoDel, waited: u64) -> CodelDecision {
        CodelDecision {
            is_overloaded: self.is_overloaded,
            shed: self.is_overloaded && waited > codel.shed_after_nanos(),
        }
    }

    /// Records that the queue is empty (CODEL-3).
    ///
    /// ```
    /// use millpond::adapt::CodelState;
    ///
    /// let mut state = CodelState::new();
    /// state.on_empty();
    /// assert_eq!(state, CodelState::new());
    /// ```
    pub fn on_empty(&mut self) {
        *self = CodelState::new();
    }

    /// Whether there was a standing queue at the last sample.
    ///
    /// ```
    /// use millpond::adapt::{CoDel, CodelState};
    /// use std::time::Duration;
    ///
    /// let (codel, mut state) = (CoDel::new(Duration::from_nanos(5), Duration::from_nanos(100)), CodelState::new());
    /// state.on_dequeue(&codel, 6, 0);
    /// state.on_dequeue(&codel, 6, 100);
    /// assert!(state.is_overloaded());
    /// ```
    pub fn is_overloaded(&self) -> bool {
        self.is_overloaded
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::*;

    const MS: u64 = 1_000_000;
    /// Target 5 ms, interval 100 ms.
    const USUAL: CoDel = CoDel::new(Duration::from_millis(5), Duration::from_millis(100));

    /// Plays samples of (now, waited) in milliseconds; returns the decision for each: overloaded, shed.
    fn play(samples: &[(u64, u64)]) -> Vec<(bool, bool)> {
        let mut state = CodelState::new();
        let told = |&(now, waited): &(u64, u64)| {
            let decision = state.on_dequeue(&USUAL, waited * MS, now * MS);
            assert_eq!(state.is_overloaded(), decision.is_overloaded);
            (decision.is_overloaded, decision.shed)
        };
        samples.iter().map(told).collect()
    }

    const CALM: (bool, bool) = (false, false);
    const RUNS: (bool, bool) = (true, false);
    const SHED: (bool, bool) = (true, true);

    #[test]
    fn with_the_newest_first_an_overload_lasts_until_the_queue_is_empty() {
        let (codel, mut state) = (CoDel::default(), CodelState::new());
        let ms = 1_000_000;
        for now in 0..=100 {
            state.on_dequeue_lifo(&codel, 30 * ms, now * ms);
        }
        let young = state.on_dequeue_lifo(&codel, ms, 101 * ms);
        assert!(young.is_overloaded && !young.shed);
        assert!(state.on_dequeue_lifo(&codel, 11 * ms, 102 * ms).shed);
        state.on_empty();
        assert!(
            !state
                .on_dequeue_lifo(&codel, 11 * ms, 103 * ms)
                .is_overloaded
        );
    }

    #[test]
    fn one_interval_of_long_waits_is_an_overload_and_not_a_moment_less() {
        assert_eq!(play(&[(0, 30), (99, 30), (100, 30)]), [CALM, CALM, SHED]);
        assert_eq!(play(&[(0, 30), (99, 30), (99, 30)]), [CALM; 3]);
    }

    #[test]
    fn a_wait_of_the_target_is_no_overload_and_one_of_twice_the_target_still_runs() {
        assert_eq!(play(&[(0, 5), (100, 6), (200, 11)]), [CALM, CALM, SHED]);
        assert_eq!(play(&[(0, 6), (100, 10), (101, 11)]), [CALM, RUNS, SHED]);
    }

    #[test]
    fn one_short_wait_makes_an_interval_a_burst() {
        let all = [(0, 50), (50, 5), (99, 50), (100, 50), (150, 50), (200, 50)];
        assert_eq!(play(&all), [CALM, CALM, CALM, CALM, CALM, SHED]);
    }

    #[test]
    fn overload_ends_with_the_first_short_wait_and_needs_a_whole_interval_to_come_back() {
        let all = [
            (0, 50),
            (100, 50),
            (110, 5),
            (111, 50),
            (200, 50),
            (299, 50),
            (300, 50),
        ];
        assert_eq!(play(&all), [CALM, SHED, CALM, CALM, CALM, CALM, SHED]);
    }

    #[test]
    fn overload_lasts_through_intervals_while_all_wait() {
        let all = [(0, 50), (100, 7), (250, 7), (400, 50), (401, 7), (800, 50)];
        assert_eq!(play(&all), [CALM, RUNS, RUNS, SHED, RUNS, SHED]);
    }

    #[test]
    fn an_empty_queue_resets_the_state() {
        let mut state = CodelState::new();
        state.on_dequeue(&USUAL, 50 * MS, 0);
        state.on_empty();
        // An hour later there is a burst.
        let hour = 3_600_000 * MS;
        assert!(!state.on_dequeue(&USUAL, 50 * MS, hour).is_overloaded);
        assert!(state.on_dequeue(&USUAL, 50 * MS, hour + 100 * MS).shed);
        state.on_empty();
        assert!(!state.is_overloaded());
        assert!(!state.on_dequeue(&USUAL, 50 * MS, hour + 101 * MS).shed);
    }

    #[test]
    fn tasks_that_are_rarer_than_intervals_are_shed_all_the_same() {
        assert_eq!(play(&[(0, 900), (1000, 900), (2000, 2)])[1..], [SHED, CALM]);
    }

    #[test]
    fn no_number_is_too_large() {
        let endless = CoDel::new(Duration::MAX, Duration::MAX);
        let mut state = CodelState::new();
        for (waited, now) in [(u64::MAX, u64::MAX), (0, 0), (u64::MAX, u64::MAX)] {
            assert!(!state.on_dequeue(&endless, waited, now).shed);
        }
        // A time that goes back starts no new interval.
        let mut state = CodelState::new();
        state.on_dequeue(&USUAL, u64::MAX, 500 * MS);
        assert!(!state.on_dequeue(&USUAL, u64::MAX, 0).is_overloaded);
    }

    /// Samples as they come: how long after the one before, and the wait.
    fn samples() -> impl Strategy<Value = Vec<(u64, u64)>> {
        vec((0..70_u64, 0..40_u64), 1..200)
    }

    proptest! {
        #![proptest_config(crate::proptest_kit::config(256))]

        /// CODEL-2: every period as long as an interval has a short wait in it.
        #[test]
        fn nothing_is_shed_while_every_interval_has_a_short_wait(
            samples in samples(),
            short in 0..=5_u64,
        ) {
            let (mut state, mut now, mut calm_until) = (CodelState::new(), 0, 0);
            for (gap, waited) in samples {
                now += gap;
                // In time, so that no interval is without one.
                if now >= calm_until {
                    state.on_dequeue(&USUAL, short * MS, calm_until * MS);
                    calm_until += 70;
                }
                let decision = state.on_dequeue(&USUAL, waited * MS, now * MS);
                prop_assert_eq!(decision, CodelDecision { is_overloaded: false, shed: false });
            }
        }

        /// Whatever happened before: after two intervals of a standing queue, old tasks are shed.
        #[test]
        fn a_standing_queue_is_shed_within_two_intervals(
            before in samples(),
            standing_for in vec((1..=10_u64, 11..1000_u64), 200..201),
        ) {
            let (mut state, mut now) = (CodelState::new(), 0);
            for (gap, waited) in before {
                now += gap;
                state.on_dequeue(&USUAL, waited * MS, now * MS);
            }
            let begin = now;
            for (gap, waited) in standing_for {
                now += gap;
                let decision = state.on_dequeue(&USUAL, waited * MS, now * MS);
                // Two intervals, and the gaps up to the samples that end them.
                prop_assert!(decision.shed || now - begin < 200 + 2 * 10, "at {}", now - begin);
            }
        }

        /// CODEL-4, and the decision is consistent.
        #[test]
        fn only_what_is_older_than_twice_the_target_is_ever_shed(samples in samples()) {
            let (mut state, mut now) = (CodelState::new(), 0);
            for (gap, waited) in samples {
                now += gap;
                let decision = state.on_dequeue(&USUAL, waited * MS, now * MS);
                prop_assert_eq!(decision.shed, decision.is_overloaded && waited > 10);
                prop_assert!(!decision.is_overloaded || waited > 5);
            }
        }
    }
}
