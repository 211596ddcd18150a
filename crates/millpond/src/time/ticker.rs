//! Cheap time for stamps: ticks of the machine, or of a manual clock.
//!
//! Whoever counts how long tasks wait and run reads the time two or three times a task. That must not
//! go through [`Clock::now`]: see `millpond_raw::tick`. A ticker is the same seam for such readings:
//! by a manual clock its ticks are that clock's nanoseconds, and nothing else differs.

use super::Clock;
use millpond_raw::tick::{self, Quick, Tick};
use std::time::{Duration, Instant};

/// Reads ticks by a clock.
#[derive(Clone, Debug)]
pub(crate) struct Ticker {
    /// The machine's own counter, if it is to be read and can be trusted.
    quick: Option<Quick>,
    /// `None` is the machine's time; else the clock, and when it was first looked at.
    by: Option<(Clock, Instant)>,
}

/// A moment in 48 bits, so that there is room for something else beside it in a word.
///
/// - Of the machine it is a reading in steps of [`COARSER`], about 10 ns, that comes round after three
///   weeks at 5 GHz and later where counters are slower. A difference of less than half of that is told
///   right; a larger one is taken for a counter that has gone back, and is none.
/// - Of a manual clock, which its hand may move by years, it does not come round: it is exact to the
///   nanosecond for the first 39 hours that the clock goes, and to 8 µs after that.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stamp(u64);

impl Stamp {
    pub(crate) const BITS: u32 = 48;
    const MASK: u64 = (1 << Stamp::BITS) - 1;

    /// What [`bits`](Stamp::bits) gave.
    pub(crate) fn from_bits(bits: u64) -> Self {
        Stamp(bits & Stamp::MASK)
    }

    pub(crate) fn bits(self) -> u64 {
        self.0
    }
}

/// A tick of the machine's counter is less than a nanosecond: more than a stamp has to tell. Two to
/// this many are a step. No more than that: stamps tell tasks apart, too (I1 in `pool/identity.rs`).
const COARSER: u32 = 5;

/// The bit of a manual clock's stamp that says that it is in steps.
const IN_STEPS: u64 = 1 << (Stamp::BITS - 1);

/// Two to this many nanoseconds are a step of a manual clock's stamp.
const MANUAL_COARSER: u32 = 13;

/// A manual clock's count as a stamp: as it is as long as there is room, then in steps. The last of
/// them is after 36 years.
fn shorten_manual(count: u64) -> Stamp {
    match count < IN_STEPS {
        true => Stamp(count),
        false => Stamp(IN_STEPS | (count >> MANUAL_COARSER).min(IN_STEPS - 1)),
    }
}

/// The other way round.
fn lengthen_manual(Stamp(bits): Stamp) -> u64 {
    match bits < IN_STEPS {
        true => bits,
        false => (bits & (IN_STEPS - 1)) << MANUAL_COARSER,
    }
}

impl Ticker {
    /// By this clock.
    pub(crate) fn of(clock: &Clock) -> Self {
        let by = clock.is_manual().then(|| (clock.clone(), clock.now()));
        let quick = match &by {
            None => Quick::new(),
            Some(_) => None,
        };
        Ticker { quick, by }
    }

    /// Now; never 0.
    #[inline]
    pub(crate) fn now(&self) -> Tick {
        match self.quick {
            Some(quick) => quick.now(),
            None => self.now_slowly(),
        }
    }

    #[cold]
    fn now_slowly(&self) -> Tick {
        let Some((clock, first)) = &self.by else {
            return tick::now();
        };
        let nanos = clock.now().saturating_duration_since(*first).as_nanos();
        Tick::from_count(u64::try_from(nanos).unwrap_or(u64::MAX - 1) + 1)
    }

    /// So many ticks, in nanoseconds.
    #[inline]
    fn in_nanos(&self, ticks: u64) -> u64 {
        match (self.quick, &self.by) {
            (Some(quick), _) => quick.nanos(ticks),
            (None, None) => tick::nanos(ticks),
            (None, Some(_)) => ticks,
        }
    }

    /// Whether two readings may be the same although something happened in between.
    pub(crate) fn stands_still(&self) -> bool {
        self.by.is_some()
    }

    /// How many nanoseconds `later` is after `earlier`.
    #[inline]
    pub(crate) fn nanos(&self, earlier: Tick, later: Tick) -> u64 {
        self.in_nanos(later.count().saturating_sub(earlier.count()))
    }

    /// Now, in short.
    #[inline]
    pub(crate) fn stamp(&self) -> Stamp {
        self.shorten(self.now())
    }

    #[inline]
    pub(crate) fn shorten(&self, tick: Tick) -> Stamp {
        match &self.by {
            None => Stamp::from_bits(tick.count() >> COARSER),
            Some(_) => shorten_manual(tick.count()),
        }
    }

    /// How many nanoseconds `later` is after a stamp.
    #[inline]
    pub(crate) fn nanos_from(&self, stamp: Stamp, later: Tick) -> u64 {
        if self.by.is_some() {
            return later.count().saturating_sub(lengthen_manual(stamp));
        }
        let apart = (later.count() >> COARSER).wrapping_sub(stamp.0) & Stamp::MASK;
        // Another CPU's counter may be a little ahead.
        match apart > Stamp::MASK / 2 {
            true => 0,
            false => self.in_nanos(apart << COARSER),
        }
    }

    /// How many ticks last so long.
    pub(crate) fn ticks(&self, duration: Duration) -> u64 {
        match &self.by {
            None => tick::ticks(duration),
            Some(_) => u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX),
        }
    }
}

#[cfg(all(test, not(any(millpond_loom, millpond_shuttle))))]
mod tests {
    use super::*;
    use crate::time::ManualClock;

    #[test]
    fn by_a_manual_clock_stamps_are_exact_to_the_nanosecond() {
        let hand = ManualClock::new();
        let ticker = Ticker::of(&hand.clock());
        let (start, stamp) = (ticker.now(), ticker.stamp());
        assert_ne!(start.count(), 0);
        hand.advance(Duration::from_nanos(1_234_567));
        let now = ticker.now();
        assert_eq!(ticker.nanos(start, now), 1_234_567);
        assert_eq!(ticker.nanos_from(stamp, now), 1_234_567);
        assert_eq!(
            ticker.nanos_from(ticker.stamp(), start),
            0,
            "never negative"
        );
        assert_eq!(ticker.ticks(Duration::from_nanos(7)), 7);
    }

    #[test]
    fn by_the_machine_a_stamp_is_right_to_a_few_nanoseconds() {
        let ticker = Ticker::of(&Clock::system());
        let early = ticker.now();
        let late = Tick::from_count(early.count() + ticker.ticks(Duration::from_millis(3)));
        let by_ticks = ticker.nanos(early, late);
        let by_stamp = ticker.nanos_from(ticker.shorten(early), late);
        assert!(by_ticks.abs_diff(by_stamp) < 100, "{by_ticks} {by_stamp}");
        assert!(by_ticks.abs_diff(3_000_000) < 3_000, "{by_ticks}");
    }

    const HOUR: Duration = Duration::from_secs(3600);

    #[test]
    fn by_the_machine_a_stamp_that_comes_round_still_tells_the_difference() {
        let ticker = Ticker::of(&Clock::system());
        for round in [1_u64, 2, 15] {
            let end = round << (Stamp::BITS + COARSER);
            let stamp = ticker.shorten(Tick::from_count(end - (10 << COARSER)));
            let later = Tick::from_count(end + (10 << COARSER));
            let told = ticker.nanos_from(stamp, later);
            assert_eq!(told, ticker.in_nanos(20 << COARSER));
        }
    }

    #[test]
    fn by_the_machine_a_wait_of_weeks_is_told_and_a_jump_back_of_weeks_is_no_wait() {
        let ticker = Ticker::of(&Clock::system());
        // Counters that run at up to 5 GHz; on machines without one a tick is a nanosecond.
        let most = (10 * 24 * HOUR).as_nanos() as u64 * 5;
        for start in [1, (1 << (Stamp::BITS + COARSER)) - 7] {
            let (early, late) = (Tick::from_count(start), Tick::from_count(start + most));
            let told = ticker.nanos_from(ticker.shorten(early), late);
            let exact = ticker.nanos(early, late);
            assert!(told.abs_diff(exact) < 100, "{told} instead of {exact}");
            assert_eq!(ticker.nanos_from(ticker.shorten(late), early), 0);
        }
    }

    #[test]
    fn by_a_manual_clock_a_wait_may_last_for_years() {
        for before in [Duration::ZERO, 38 * HOUR, 40 * HOUR, 24 * 365 * HOUR] {
            for waits in [HOUR, 38 * HOUR, 40 * HOUR, 80 * HOUR, 24 * 365 * 10 * HOUR] {
                let hand = ManualClock::new();
                let ticker = Ticker::of(&hand.clock());
                hand.advance(before);
                let (start, stamp) = (ticker.now(), ticker.stamp());
                hand.advance(waits);
                let told = Duration::from_nanos(ticker.nanos_from(stamp, ticker.now()));
                let error = told.abs_diff(waits);
                assert!(error < Duration::from_micros(10), "{waits:?} is {told:?}");
                assert_eq!(ticker.nanos_from(ticker.stamp(), start), 0);
            }
        }
    }
}
