//! CoDel: telling a burst from an overload by the *least* wait.
//!
//! A queue is there to absorb bursts, and while it does so some tasks wait long. That is no
//! overload: a moment later somebody finds the queue nearly empty. An overload is a *standing*
//! queue, one in which everybody waits. So what counts is the least wait within an interval, and
//! neither the length of the queue nor the mean nor the longest wait.
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
//!       a burst: the  as before     all waited    overloaded, until one has waited no longer than
//!       least is low                too long      the target, or the queue runs empty
//! ```
//!
//! This is the form of it for queues of requests, as in "Fail at Scale" (ACM Queue, 2015) and folly,
//! and not the one for routers: nobody has to be slowed down by losing ever more packets, so every
//! task that has waited for more than twice the target is shed, as long as the overload lasts. What is
//! younger than that still runs.
//!
//! # Rules
//!
//! - **A1** An interval begins with a sample and is over with the first sample that comes an interval
//!   later. It belongs to the samples between; there is at least one.
//! - **A2** Overload begins with the end of an interval whose every sample was above the target.
//! - **A3** It ends with the first sample that is not, and when the queue runs empty. Where the newest
//!   come first it ends with the latter only ([`Standing::see_until_empty`]): serving the newest thins the
//!   queue out, so that its oldest has now and then hardly waited although as much comes as before; and
//!   with the overload ended another whole interval would go by in the order in which all wait.
//! - **A4** Only while it lasts is anything shed, and only what has waited for more than twice the
//!   target.

use std::fmt;
use std::time::Duration;

/// When a pool is overloaded, and sheds tasks.
///
/// If everything that is taken out of the queue for a whole `interval` has waited for longer than
/// `target`, the pool is overloaded. Until somebody waits less, or the queue runs empty, what has
/// waited for longer than twice the target is shed instead of run.
///
/// The default is what was found to fit most services: 5 ms and 100 ms.
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
    /// How long a task may wait while all is well.
    pub target: Duration,
    /// For how long all tasks must wait longer before that is an overload: longer than any burst
    /// that the queue is there to absorb.
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

    /// What has waited for longer than this, in nanoseconds, is shed while overload lasts (A4).
    ///
    /// ```
    /// use millpond::adapt::CoDel;
    ///
    /// assert_eq!(CoDel::default().patience_nanos(), 10_000_000, "twice 5 ms");
    /// ```
    pub fn patience_nanos(&self) -> u64 {
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

/// What is to be done about a task that has been taken out of the queue.
///
/// ```
/// use millpond::adapt::{CoDel, Standing, Verdict};
///
/// // Nothing is known yet, so nobody is shed.
/// let first = Standing::new().see(&CoDel::default(), 1_000_000_000, 0);
/// assert_eq!(first, Verdict { is_overloaded: false, sheds: false });
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// Whether there is a standing queue.
    pub is_overloaded: bool,
    /// Whether this task is shed.
    pub sheds: bool,
}

/// What is known of one queue: whether tasks stand in it.
///
/// ```
/// use millpond::adapt::{CoDel, Standing};
///
/// const MS: u64 = 1_000_000;
/// let (codel, mut standing) = (CoDel::default(), Standing::new());
/// // For 100 ms everybody waits for 30 ms.
/// for now in 0..100 {
///     assert!(!standing.see(&codel, 30 * MS, now * MS).sheds);
/// }
/// assert!(standing.see(&codel, 30 * MS, 100 * MS).sheds);
/// // Whoever has waited less than twice the target still runs.
/// assert!(!standing.see(&codel, 9 * MS, 101 * MS).sheds);
/// // One has hardly waited at all: that was it.
/// assert!(!standing.see(&codel, 4 * MS, 102 * MS).is_overloaded);
/// assert!(!standing.see(&codel, 30 * MS, 103 * MS).sheds);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Standing {
    /// When the present interval is over; `None` before the first sample.
    ends_at: Option<u64>,
    /// The least wait in it.
    least: u64,
    is_overloaded: bool,
}

impl Standing {
    /// A queue of which nothing is known.
    ///
    /// ```
    /// use millpond::adapt::Standing;
    ///
    /// assert!(!Standing::new().is_overloaded());
    /// ```
    pub const fn new() -> Self {
        Standing {
            ends_at: None,
            least: 0,
            is_overloaded: false,
        }
    }

    /// A task is taken out at `now`, after it has `waited`, both in nanoseconds. `now` counts from
    /// any beginning; a time that lies before that of the last sample is taken for the same.
    ///
    /// ```
    /// use millpond::adapt::{CoDel, Standing};
    ///
    /// const MS: u64 = 1_000_000;
    /// let (codel, mut standing) = (CoDel::default(), Standing::new());
    /// standing.see(&codel, 30 * MS, 0);
    /// assert!(standing.see(&codel, 30 * MS, 100 * MS).is_overloaded, "a whole interval");
    /// assert!(!standing.see(&codel, MS, 101 * MS).is_overloaded, "one has hardly waited");
    /// ```
    pub fn see(&mut self, codel: &CoDel, waited: u64, now: u64) -> Verdict {
        self.see_until_empty(codel, waited, now);
        // A3
        self.is_overloaded &= waited > codel.target_nanos();
        self.verdict(codel, waited)
    }

    /// The same, but an overload that has begun lasts until the queue runs empty.
    ///
    /// ```
    /// use millpond::adapt::{CoDel, Standing};
    ///
    /// const MS: u64 = 1_000_000;
    /// let (codel, mut standing) = (CoDel::default(), Standing::new());
    /// standing.see_until_empty(&codel, 30 * MS, 0);
    /// assert!(standing.see_until_empty(&codel, 30 * MS, 100 * MS).is_overloaded);
    /// assert!(standing.see_until_empty(&codel, MS, 101 * MS).is_overloaded, "it lasts");
    /// standing.ran_empty();
    /// assert!(!standing.is_overloaded());
    /// ```
    pub fn see_until_empty(&mut self, codel: &CoDel, waited: u64, now: u64) -> Verdict {
        let target = codel.target_nanos();
        match self.ends_at {
            Some(end) if now < end => self.least = self.least.min(waited),
            is_over => {
                // A2
                self.is_overloaded |= is_over.is_some() && self.least > target;
                self.ends_at = Some(now.saturating_add(nanos(codel.interval)));
                self.least = waited;
            }
        }
        self.verdict(codel, waited)
    }

    fn verdict(&self, codel: &CoDel, waited: u64) -> Verdict {
        Verdict {
            is_overloaded: self.is_overloaded,
            sheds: self.is_overloaded && waited > codel.patience_nanos(),
        }
    }

    /// The queue has run empty: nobody stands in it (A3).
    ///
    /// ```
    /// use millpond::adapt::Standing;
    ///
    /// let mut standing = Standing::new();
    /// standing.ran_empty();
    /// assert_eq!(standing, Standing::new());
    /// ```
    pub fn ran_empty(&mut self) {
        *self = Standing::new();
    }

    /// Whether there is a standing queue, as far as the last sample can tell.
    ///
    /// ```
    /// use millpond::adapt::{CoDel, Standing};
    /// use std::time::Duration;
    ///
    /// let (codel, mut standing) = (CoDel::new(Duration::from_nanos(5), Duration::from_nanos(100)), Standing::new());
    /// standing.see(&codel, 6, 0);
    /// standing.see(&codel, 6, 100);
    /// assert!(standing.is_overloaded());
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

    /// Plays samples of (now, waited) in milliseconds; returns at which of them what was said.
    fn play(samples: &[(u64, u64)]) -> Vec<(bool, bool)> {
        let mut standing = Standing::new();
        let told = |&(now, waited): &(u64, u64)| {
            let verdict = standing.see(&USUAL, waited * MS, now * MS);
            assert_eq!(standing.is_overloaded(), verdict.is_overloaded);
            (verdict.is_overloaded, verdict.sheds)
        };
        samples.iter().map(told).collect()
    }

    const CALM: (bool, bool) = (false, false);
    const RUNS: (bool, bool) = (true, false);
    const SHED: (bool, bool) = (true, true);

    #[test]
    fn where_the_newest_come_first_overload_lasts_until_the_queue_is_empty() {
        let (codel, mut standing) = (CoDel::default(), Standing::new());
        let ms = 1_000_000;
        for now in 0..=100 {
            standing.see_until_empty(&codel, 30 * ms, now * ms);
        }
        let young = standing.see_until_empty(&codel, ms, 101 * ms);
        assert!(young.is_overloaded && !young.sheds);
        assert!(standing.see_until_empty(&codel, 11 * ms, 102 * ms).sheds);
        standing.ran_empty();
        assert!(
            !standing
                .see_until_empty(&codel, 11 * ms, 103 * ms)
                .is_overloaded
        );
    }

    #[test]
    fn one_interval_of_long_waits_is_an_overload_and_not_a_moment_less() {
        assert_eq!(play(&[(0, 30), (99, 30), (100, 30)]), [CALM, CALM, SHED]);
        assert_eq!(play(&[(0, 30), (99, 30), (99, 30)]), [CALM; 3]);
    }

    #[test]
    fn a_wait_of_the_target_is_well_and_one_of_twice_the_target_still_runs() {
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
    fn an_empty_queue_is_forgotten() {
        let mut standing = Standing::new();
        standing.see(&USUAL, 50 * MS, 0);
        standing.ran_empty();
        // An hour later there is a burst.
        let hour = 3_600_000 * MS;
        assert!(!standing.see(&USUAL, 50 * MS, hour).is_overloaded);
        assert!(standing.see(&USUAL, 50 * MS, hour + 100 * MS).sheds);
        standing.ran_empty();
        assert!(!standing.is_overloaded());
        assert!(!standing.see(&USUAL, 50 * MS, hour + 101 * MS).sheds);
    }

    #[test]
    fn tasks_that_are_rarer_than_intervals_are_judged_all_the_same() {
        assert_eq!(play(&[(0, 900), (1000, 900), (2000, 2)])[1..], [SHED, CALM]);
    }

    #[test]
    fn no_number_is_too_large() {
        let endless = CoDel::new(Duration::MAX, Duration::MAX);
        let mut standing = Standing::new();
        for (waited, now) in [(u64::MAX, u64::MAX), (0, 0), (u64::MAX, u64::MAX)] {
            assert!(!standing.see(&endless, waited, now).sheds);
        }
        // A time that goes back is no new interval.
        let mut standing = Standing::new();
        standing.see(&USUAL, u64::MAX, 500 * MS);
        assert!(!standing.see(&USUAL, u64::MAX, 0).is_overloaded);
    }

    /// Samples as they come: how long after the one before, and the wait.
    fn samples() -> impl Strategy<Value = Vec<(u64, u64)>> {
        vec((0..70_u64, 0..40_u64), 1..200)
    }

    proptest! {
        #![proptest_config(crate::proptest_kit::config(256))]

        /// A2: where each stretch as long as an interval has a short wait in it.
        #[test]
        fn nothing_is_shed_while_every_interval_has_a_short_wait(
            samples in samples(),
            short in 0..=5_u64,
        ) {
            let (mut standing, mut now, mut calm_until) = (Standing::new(), 0, 0);
            for (gap, waited) in samples {
                now += gap;
                // In time, so that no stretch of an interval is without one.
                if now >= calm_until {
                    standing.see(&USUAL, short * MS, calm_until * MS);
                    calm_until += 70;
                }
                let verdict = standing.see(&USUAL, waited * MS, now * MS);
                prop_assert_eq!(verdict, Verdict { is_overloaded: false, sheds: false });
            }
        }

        /// Whatever was before: two intervals of a standing queue, and what is too old is shed.
        #[test]
        fn a_standing_queue_is_shed_within_two_intervals(
            before in samples(),
            standing_for in vec((1..=10_u64, 11..1000_u64), 200..201),
        ) {
            let (mut standing, mut now) = (Standing::new(), 0);
            for (gap, waited) in before {
                now += gap;
                standing.see(&USUAL, waited * MS, now * MS);
            }
            let begin = now;
            for (gap, waited) in standing_for {
                now += gap;
                let verdict = standing.see(&USUAL, waited * MS, now * MS);
                // Two intervals, and the gaps up to the samples that end them.
                prop_assert!(verdict.sheds || now - begin < 200 + 2 * 10, "at {}", now - begin);
            }
        }

        /// A4, and that what is said agrees with itself.
        #[test]
        fn only_what_is_older_than_twice_the_target_is_ever_shed(samples in samples()) {
            let (mut standing, mut now) = (Standing::new(), 0);
            for (gap, waited) in samples {
                now += gap;
                let verdict = standing.see(&USUAL, waited * MS, now * MS);
                prop_assert_eq!(verdict.sheds, verdict.is_overloaded && waited > 10);
                prop_assert!(!verdict.is_overloaded || waited > 5);
            }
        }
    }
}
