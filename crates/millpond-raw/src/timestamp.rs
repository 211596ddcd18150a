//! The cheapest timestamps there are, taken for every task.
//!
//! A call for the system's monotonic clock costs 20 to 50 ns, which is half of what a small task costs
//! altogether. The processor's time-stamp counter (TSC) costs 10. It is read where it can be trusted, and the
//! system's clock everywhere else:
//!
//! | machine | what is read | trusted because |
//! |---|---|---|
//! | x86_64, Linux | the time-stamp counter | the kernel uses it as its own clock source: it has checked that the counter runs at a constant rate, through idle states, and in step on all CPUs |
//! | any other | the monotonic clock | |
//! | a model | a counter that each read increments | so that later reads have later timestamps |
//!
//! Timestamps measure elapsed time and not the time of day. Differences saturate: a timestamp that another
//! CPU read a moment before may be slightly larger.
//!
//! # Calibration
//!
//! The counter does not say how fast it runs. Two pairs of readings, of the counter and of the monotonic
//! clock, a fraction of a millisecond apart, do. Each pair is the quickest of several tries, so that an
//! interruption between the two readings does not matter. That makes durations right to about one in a
//! thousand. [`calibrate`] does it once for the process, so that no task has to.
//!
//! # Invariants
//!
//! - **TSC-1** Reading the time-stamp counter touches no memory and is allowed to every program, unless the
//!   system forbids it; Linux does so only for processes that ask for it.

#![allow(
    clippy::disallowed_types,
    clippy::disallowed_methods,
    reason = "how fast a counter runs is a fact of the machine: no model is about it, and here is the seam to it"
)]

use std::num::NonZeroU64;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// A reading of the counter. Only differences are meaningful.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Timestamp(u64);

/// Nanoseconds per tick, times 2^32; 0 until it is calibrated.
static SCALE: AtomicU64 = AtomicU64::new(0);

impl Timestamp {
    /// The inverse of [`count`](Timestamp::count).
    pub const fn from_count(count: u64) -> Self {
        Timestamp(count)
    }

    /// The value of the counter.
    pub const fn count(self) -> u64 {
        self.0
    }

    /// The nanoseconds from `earlier` to this; 0 if it is not later.
    #[inline]
    pub fn nanos_since(self, earlier: Timestamp) -> u64 {
        nanos(self.0.saturating_sub(earlier.0))
    }
}

/// Proof that the time-stamp counter is trusted, with its scale: reads need no further checks.
#[derive(Clone, Copy, Debug)]
pub struct Tsc {
    scale: NonZeroU64,
}

impl Tsc {
    /// `None` where there is no trusted counter.
    pub fn new() -> Option<Self> {
        let scale = NonZeroU64::new(calibrate())?;
        counter::is_tsc_trusted().then_some(Tsc { scale })
    }

    /// As [`now`].
    #[inline]
    pub fn now(self) -> Timestamp {
        counter::read_trusted(self)
    }

    /// As [`nanos`].
    #[inline]
    pub fn nanos(self, ticks: u64) -> u64 {
        scaled(ticks, self.scale.get())
    }
}

/// The scale has 32 fractional bits. A result that does not fit a word means centuries.
#[inline]
fn scaled(ticks: u64, scale: u64) -> u64 {
    ((u128::from(ticks) * u128::from(scale)) >> 32) as u64
}

/// Converts ticks to nanoseconds.
#[inline]
pub fn nanos(ticks: u64) -> u64 {
    let scale = match SCALE.load(Ordering::Relaxed) {
        0 => calibrate(),
        scale => scale,
    };
    scaled(ticks, scale)
}

/// Converts a duration to ticks.
pub fn ticks(duration: Duration) -> u64 {
    let scale = match SCALE.load(Ordering::Relaxed) {
        0 => calibrate(),
        scale => scale,
    };
    let ticks = (duration.as_nanos() << 32) / u128::from(scale);
    u64::try_from(ticks).unwrap_or(u64::MAX)
}

#[cfg(all(
    target_arch = "x86_64",
    target_os = "linux",
    not(any(millpond_loom, millpond_shuttle, millpond_portable))
))]
mod counter {
    use super::*;
    use std::sync::atomic::AtomicU8;
    use std::time::Instant;

    const UNKNOWN: u8 = 0;
    const TRUSTED: u8 = 1;
    const NOT_TRUSTED: u8 = 2;

    static TRUST: AtomicU8 = AtomicU8::new(UNKNOWN);

    const SOURCE: &str = "/sys/devices/system/clocksource/clocksource0/current_clocksource";

    /// The time between the two pairs.
    const APART: Duration = Duration::from_micros(300);
    const TRIES: usize = 5;

    /// The current timestamp.
    #[inline]
    pub fn now() -> Timestamp {
        match TRUST.load(Ordering::Relaxed) {
            TRUSTED => Timestamp(read()),
            _ => now_slow(),
        }
    }

    #[cold]
    fn now_slow() -> Timestamp {
        if is_trusted() {
            Timestamp(read())
        } else {
            super::from_clock()
        }
    }

    #[inline]
    fn read() -> u64 {
        // SAFETY: TSC-1.
        unsafe { core::arch::x86_64::_rdtsc() }
    }

    pub(super) fn is_tsc_trusted() -> bool {
        is_trusted()
    }

    #[inline]
    pub(super) fn read_trusted(_: Tsc) -> Timestamp {
        Timestamp(read())
    }

    fn is_trusted() -> bool {
        let known = match TRUST.load(Ordering::Relaxed) {
            UNKNOWN => {
                let source = std::fs::read_to_string(SOURCE).unwrap_or_default();
                let known = if source.trim() == "tsc" {
                    TRUSTED
                } else {
                    NOT_TRUSTED
                };
                // A racing thread finds the same.
                TRUST.store(known, Ordering::Relaxed);
                known
            }
            known => known,
        };
        known == TRUSTED
    }

    pub(super) fn scale() -> u64 {
        if !is_trusted() {
            return 1 << 32;
        }
        let (counted, clock) = pair();
        while clock.elapsed() < APART {
            core::hint::spin_loop();
        }
        let (counted_then, clock_then) = pair();
        let ticks = u128::from(counted_then.saturating_sub(counted).max(1));
        let nanos = (clock_then - clock).as_nanos();
        ((nanos << 32) / ticks).max(1) as u64
    }

    /// Counter and clock at one moment.
    fn pair() -> (u64, Instant) {
        let tries = (0..TRIES).map(|_| {
            let (before, clock, after) = (read(), Instant::now(), read());
            (after.saturating_sub(before), before, clock)
        });
        let (took, before, clock) = tries.min_by_key(|(took, ..)| *took).unwrap_or_else(|| {
            let (before, clock) = (read(), Instant::now());
            (0, before, clock)
        });
        (before + took / 2, clock)
    }
}

#[cfg(not(any(
    millpond_loom,
    millpond_shuttle,
    all(target_arch = "x86_64", target_os = "linux", not(millpond_portable))
)))]
mod counter {
    use super::Timestamp;

    /// The current timestamp.
    #[inline]
    pub fn now() -> Timestamp {
        super::from_clock()
    }

    pub(super) fn is_tsc_trusted() -> bool {
        false
    }

    pub(super) fn read_trusted(_: super::Tsc) -> Timestamp {
        now()
    }

    pub(super) fn scale() -> u64 {
        1 << 32
    }
}

#[cfg(any(millpond_loom, millpond_shuttle))]
mod counter {
    use super::*;

    /// Later than every timestamp before.
    pub fn now() -> Timestamp {
        static READS: AtomicU64 = AtomicU64::new(1);
        Timestamp(READS.fetch_add(1, Ordering::Relaxed))
    }

    pub(super) fn is_tsc_trusted() -> bool {
        false
    }

    pub(super) fn read_trusted(_: Tsc) -> Timestamp {
        now()
    }

    pub(super) fn scale() -> u64 {
        1 << 32
    }
}

pub use counter::now;

/// Calibrates the counter, once. Takes a fraction of a millisecond. Returns the scale.
#[cold]
pub fn calibrate() -> u64 {
    let known = SCALE.load(Ordering::Relaxed);
    if known != 0 {
        return known;
    }
    let scale = counter::scale();
    // The first one stays, so that all threads use one scale.
    match SCALE.compare_exchange(0, scale, Ordering::Relaxed, Ordering::Relaxed) {
        Ok(_) => scale,
        Err(first) => first,
    }
}

/// Nanoseconds since the first call, plus one.
#[cfg(not(any(millpond_loom, millpond_shuttle)))]
fn from_clock() -> Timestamp {
    use std::sync::OnceLock;
    use std::time::Instant;
    static FIRST: OnceLock<Instant> = OnceLock::new();
    let nanos = FIRST.get_or_init(Instant::now).elapsed().as_nanos();
    Timestamp(u64::try_from(nanos).unwrap_or(u64::MAX).saturating_add(1))
}

#[cfg(all(test, not(any(millpond_loom, millpond_shuttle))))]
mod tests {
    use super::*;
    use std::time::Instant;

    #[test]
    fn timestamps_measure_elapsed_time() {
        calibrate();
        let (tick, clock) = (now(), Instant::now());
        while clock.elapsed() < Duration::from_millis(20) {
            std::hint::spin_loop();
        }
        let by_ticks = now().nanos_since(tick) as f64;
        let by_clock = clock.elapsed().as_nanos() as f64;
        let ratio = by_ticks / by_clock;
        assert!((0.98..1.02).contains(&ratio), "{ratio}");
    }

    #[test]
    fn an_earlier_moment_is_zero_nanoseconds_away() {
        let early = now();
        let late = Timestamp(early.count() + 10_000);
        assert_eq!(early.nanos_since(late), 0);
        assert!(late.nanos_since(early) > 0);
    }

    #[test]
    fn the_trusted_counter_tells_the_same_time() {
        let Some(quick) = Tsc::new() else {
            return;
        };
        let (early, between, late) = (now(), quick.now(), now());
        assert!(early <= between && between <= late);
        for ticks in [0, 1, 1 << 20, 1 << 50] {
            assert_eq!(quick.nanos(ticks), nanos(ticks));
        }
    }

    #[test]
    fn ticks_and_durations_convert_into_each_other() {
        for micros in [1, 1_000, 3_600_000_000] {
            let duration = Duration::from_micros(micros);
            let back = nanos(ticks(duration)) as f64 / duration.as_nanos() as f64;
            assert!((0.99..=1.0).contains(&back), "{duration:?}: {back}");
        }
        assert_eq!(ticks(Duration::MAX), u64::MAX);
        assert_eq!(ticks(Duration::ZERO), 0);
    }
}
