//! Timestamps by a clock: ticks of the processor's counter, or of a manual clock.
//!
//! The metrics read the time two or three times per task, which is too often for [`Clock::now`]: see
//! `millpond_raw::timestamp`. A [`TimestampClock`] is the Time seam for these readings: on a manual clock its
//! ticks are that clock's nanoseconds, and nothing else differs.

use super::Clock;
use millpond_raw::timestamp::{self, Timestamp, Tsc};
use std::time::{Duration, Instant};

/// Takes timestamps by a clock.
#[derive(Clone, Debug)]
pub(crate) struct TimestampClock {
    /// The processor's counter, if the clock is the system's and the counter can be trusted.
    tsc: Option<Tsc>,
    /// The manual clock and its first reading; `None` for the system's time.
    manual: Option<(Clock, Instant)>,
}

/// A timestamp in 48 bits, which leaves 16 bits of a word for something else.
///
/// - By the system's time it is a reading in steps of 2^[`STEP_BITS`] ticks, about 10 ns, and wraps around after
///   three weeks at 5 GHz, and later where counters are slower. Differences of less than half of that are
///   exact; a larger one is taken for a counter that went back, and counts as 0.
/// - By a manual clock, which a test may advance by years, it does not wrap: it is exact to the nanosecond for
///   the first 39 hours of the clock, and to 8 µs after that.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ShortTimestamp(u64);

impl ShortTimestamp {
    pub(crate) const BITS: u32 = 48;
    const MASK: u64 = (1 << ShortTimestamp::BITS) - 1;

    /// The inverse of [`bits`](ShortTimestamp::bits).
    pub(crate) fn from_bits(bits: u64) -> Self {
        ShortTimestamp(bits & ShortTimestamp::MASK)
    }

    pub(crate) fn bits(self) -> u64 {
        self.0
    }
}

/// A step of a short timestamp is two to this many ticks, for a tick is finer than needed. Steps must not be
/// coarser: timestamps tell tasks apart, too (see `engine/identity.rs`).
const STEP_BITS: u32 = 5;

/// The bit of a manual clock's short timestamp which says that it is in steps.
const IN_STEPS: u64 = 1 << (ShortTimestamp::BITS - 1);

/// A step of a manual clock's short timestamp is two to this many nanoseconds.
const MANUAL_STEP_BITS: u32 = 13;

/// A manual clock's count in 48 bits: exact while it fits, then in steps, up to 36 years.
fn shorten_manual(count: u64) -> ShortTimestamp {
    if count < IN_STEPS {
        ShortTimestamp(count)
    } else {
        ShortTimestamp(IN_STEPS | (count >> MANUAL_STEP_BITS).min(IN_STEPS - 1))
    }
}

/// The inverse of [`shorten_manual`].
fn lengthen_manual(ShortTimestamp(bits): ShortTimestamp) -> u64 {
    if bits < IN_STEPS {
        bits
    } else {
        (bits & (IN_STEPS - 1)) << MANUAL_STEP_BITS
    }
}

impl TimestampClock {
    pub(crate) fn of(clock: &Clock) -> Self {
        let manual = clock.is_manual().then(|| (clock.clone(), clock.now()));
        let tsc = match &manual {
            None => Tsc::new(),
            Some(_) => None,
        };
        TimestampClock { tsc, manual }
    }

    /// The current timestamp; its count is never 0.
    #[inline]
    pub(crate) fn now(&self) -> Timestamp {
        match self.tsc {
            Some(tsc) => tsc.now(),
            None => self.now_slow(),
        }
    }

    #[cold]
    fn now_slow(&self) -> Timestamp {
        let Some((clock, first)) = &self.manual else {
            return timestamp::now();
        };
        let nanos = clock.now().saturating_duration_since(*first).as_nanos();
        Timestamp::from_count(u64::try_from(nanos).unwrap_or(u64::MAX - 1) + 1)
    }

    #[inline]
    fn ticks_to_nanos(&self, ticks: u64) -> u64 {
        match (self.tsc, &self.manual) {
            (Some(tsc), _) => tsc.nanos(ticks),
            (None, None) => timestamp::nanos(ticks),
            (None, Some(_)) => ticks,
        }
    }

    /// Whether two readings may be the same although something happened in between.
    pub(crate) fn stands_still(&self) -> bool {
        self.manual.is_some()
    }

    /// The nanoseconds from `earlier` to `later`; 0 if it is not later.
    #[inline]
    pub(crate) fn nanos(&self, earlier: Timestamp, later: Timestamp) -> u64 {
        self.ticks_to_nanos(later.count().saturating_sub(earlier.count()))
    }

    /// The current timestamp in 48 bits.
    #[inline]
    pub(crate) fn short_now(&self) -> ShortTimestamp {
        self.shorten(self.now())
    }

    #[inline]
    pub(crate) fn shorten(&self, tick: Timestamp) -> ShortTimestamp {
        match &self.manual {
            None => ShortTimestamp::from_bits(tick.count() >> STEP_BITS),
            Some(_) => shorten_manual(tick.count()),
        }
    }

    /// The nanoseconds from `stamp` to `later`; 0 if it is not later.
    #[inline]
    pub(crate) fn nanos_from(&self, stamp: ShortTimestamp, later: Timestamp) -> u64 {
        if self.manual.is_some() {
            return later.count().saturating_sub(lengthen_manual(stamp));
        }
        let apart = (later.count() >> STEP_BITS).wrapping_sub(stamp.0) & ShortTimestamp::MASK;
        // The counter of another CPU may be slightly ahead.
        if apart > ShortTimestamp::MASK / 2 {
            0
        } else {
            self.ticks_to_nanos(apart << STEP_BITS)
        }
    }

    /// The number of ticks in a duration.
    pub(crate) fn ticks(&self, duration: Duration) -> u64 {
        match &self.manual {
            None => timestamp::ticks(duration),
            Some(_) => u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX),
        }
    }
}

#[cfg(all(test, not(any(millpond_loom, millpond_shuttle))))]
mod tests {
    use super::*;
    use crate::time::ManualClock;

    #[test]
    fn by_a_manual_clock_timestamps_are_exact_to_the_nanosecond() {
        let manual = ManualClock::new();
        let timestamps = TimestampClock::of(&manual.clock());
        let (start, stamp) = (timestamps.now(), timestamps.short_now());
        assert_ne!(start.count(), 0);
        manual.advance(Duration::from_nanos(1_234_567));
        let now = timestamps.now();
        assert_eq!(timestamps.nanos(start, now), 1_234_567);
        assert_eq!(timestamps.nanos_from(stamp, now), 1_234_567);
        assert_eq!(
            timestamps.nanos_from(timestamps.short_now(), start),
            0,
            "never negative"
        );
        assert_eq!(timestamps.ticks(Duration::from_nanos(7)), 7);
    }

    #[test]
    fn by_the_system_a_short_timestamp_is_right_to_a_few_nanoseconds() {
        let timestamps = TimestampClock::of(&Clock::system());
        let early = timestamps.now();
        let late =
            Timestamp::from_count(early.count() + timestamps.ticks(Duration::from_millis(3)));
        let by_ticks = timestamps.nanos(early, late);
        let by_stamp = timestamps.nanos_from(timestamps.shorten(early), late);
        assert!(by_ticks.abs_diff(by_stamp) < 100, "{by_ticks} {by_stamp}");
        assert!(by_ticks.abs_diff(3_000_000) < 3_000, "{by_ticks}");
    }

    const HOUR: Duration = Duration::from_secs(3600);

    #[test]
    fn a_short_timestamp_of_the_system_that_wraps_around_still_tells_the_difference() {
        let timestamps = TimestampClock::of(&Clock::system());
        for round in [1_u64, 2, 15] {
            let end = round << (ShortTimestamp::BITS + STEP_BITS);
            let stamp = timestamps.shorten(Timestamp::from_count(end - (10 << STEP_BITS)));
            let later = Timestamp::from_count(end + (10 << STEP_BITS));
            let told = timestamps.nanos_from(stamp, later);
            assert_eq!(told, timestamps.ticks_to_nanos(20 << STEP_BITS));
        }
    }

    #[test]
    fn by_the_system_a_wait_of_weeks_is_measured_and_a_jump_back_of_weeks_is_no_wait() {
        let timestamps = TimestampClock::of(&Clock::system());
        // Counters that run at up to 5 GHz; on machines without one a tick is a nanosecond.
        let most = (10 * 24 * HOUR).as_nanos() as u64 * 5;
        for start in [1, (1 << (ShortTimestamp::BITS + STEP_BITS)) - 7] {
            let (early, late) = (
                Timestamp::from_count(start),
                Timestamp::from_count(start + most),
            );
            let told = timestamps.nanos_from(timestamps.shorten(early), late);
            let exact = timestamps.nanos(early, late);
            assert!(told.abs_diff(exact) < 100, "{told} instead of {exact}");
            assert_eq!(timestamps.nanos_from(timestamps.shorten(late), early), 0);
        }
    }

    #[test]
    fn by_a_manual_clock_a_wait_may_last_for_years() {
        for before in [Duration::ZERO, 38 * HOUR, 40 * HOUR, 24 * 365 * HOUR] {
            for waits in [HOUR, 38 * HOUR, 40 * HOUR, 80 * HOUR, 24 * 365 * 10 * HOUR] {
                let manual = ManualClock::new();
                let timestamps = TimestampClock::of(&manual.clock());
                manual.advance(before);
                let (start, stamp) = (timestamps.now(), timestamps.short_now());
                manual.advance(waits);
                let told = Duration::from_nanos(timestamps.nanos_from(stamp, timestamps.now()));
                let error = told.abs_diff(waits);
                assert!(error < Duration::from_micros(10), "{waits:?} is {told:?}");
                assert_eq!(timestamps.nanos_from(timestamps.short_now(), start), 0);
            }
        }
    }
}
