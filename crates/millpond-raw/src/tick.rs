//! The cheapest reading of time there is, for stamps on every task.
//!
//! A call for the system's monotonic clock costs 20 to 50 ns, which is half of what a small task costs
//! altogether. The processor's own counter costs 10. It is read where it can be trusted, and
//! everywhere else the system's clock is:
//!
//! | machine | what is read | trusted because |
//! |---|---|---|
//! | x86_64, Linux | the time-stamp counter | the kernel keeps its own time by it: it has seen that the counter runs evenly, through idle states, and alike on all CPUs |
//! | any other | the monotonic clock | |
//! | a model | a counter that goes up by one with every look | so that what is stamped later has a later stamp |
//!
//! Ticks tell how much time went by and not what time it is. Differences saturate: a tick that another
//! CPU read a moment before may be a little larger.
//!
//! # How long a tick is
//!
//! The counter does not say how fast it runs. Two pairs of readings, of it and of the monotonic clock,
//! a fraction of a millisecond apart, do. Each pair is the quickest of several tries, so that an
//! interruption between the two readings does not matter. That makes durations right to about one in a
//! thousand. [`prepare`] does it once for the process, so that no task has to.
//!
//! # Invariants
//!
//! - **X1** Reading the time-stamp counter touches no memory and is allowed to every program, unless the
//!   system forbids it; Linux does so only for processes that ask for it.

#![allow(
    clippy::disallowed_types,
    clippy::disallowed_methods,
    reason = "how fast a counter runs is a fact of the machine: no model is about it, and here is the seam to it"
)]

use std::num::NonZeroU64;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// A moment, as some counter told it. Worth something only beside another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Tick(u64);

/// Nanoseconds a tick, times two to the 32nd; 0 until it is known.
static SCALE: AtomicU64 = AtomicU64::new(0);

impl Tick {
    /// A tick that was taken apart.
    pub const fn from_count(count: u64) -> Self {
        Tick(count)
    }

    /// What the counter said.
    pub const fn count(self) -> u64 {
        self.0
    }

    /// How many nanoseconds after `earlier` this is; none, if it is not after.
    #[inline]
    pub fn nanos_since(self, earlier: Tick) -> u64 {
        nanos(self.0.saturating_sub(earlier.0))
    }
}

/// That the processor's counter is trusted, and how long its ticks are: whoever has it reads the time
/// without asking either.
#[derive(Clone, Copy, Debug)]
pub struct Quick {
    scale: NonZeroU64,
}

impl Quick {
    /// `None` where the counter is not to be trusted, or there is none.
    pub fn new() -> Option<Self> {
        let scale = NonZeroU64::new(prepare())?;
        counter::is_quick().then_some(Quick { scale })
    }

    /// Now, as [`now`] has it.
    #[inline]
    pub fn now(self) -> Tick {
        counter::quickly(self)
    }

    /// How many nanoseconds so many ticks last, as [`nanos`] has it.
    #[inline]
    pub fn nanos(self, ticks: u64) -> u64 {
        scaled(ticks, self.scale.get())
    }
}

/// 32 bits of the scale are a fraction. What does not fit into a word lasts for centuries.
#[inline]
fn scaled(ticks: u64, scale: u64) -> u64 {
    ((u128::from(ticks) * u128::from(scale)) >> 32) as u64
}

/// How many nanoseconds so many ticks last.
#[inline]
pub fn nanos(ticks: u64) -> u64 {
    let scale = match SCALE.load(Ordering::Relaxed) {
        0 => prepare(),
        scale => scale,
    };
    scaled(ticks, scale)
}

/// How many ticks last so long.
pub fn ticks(duration: Duration) -> u64 {
    let scale = match SCALE.load(Ordering::Relaxed) {
        0 => prepare(),
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

    /// How far the two pairs are apart.
    const APART: Duration = Duration::from_micros(300);
    const TRIES: usize = 5;

    /// Now.
    #[inline]
    pub fn now() -> Tick {
        match TRUST.load(Ordering::Relaxed) {
            TRUSTED => Tick(read()),
            _ => now_otherwise(),
        }
    }

    #[cold]
    fn now_otherwise() -> Tick {
        match is_trusted() {
            true => Tick(read()),
            false => super::by_the_clock(),
        }
    }

    #[inline]
    fn read() -> u64 {
        // SAFETY: X1.
        unsafe { core::arch::x86_64::_rdtsc() }
    }

    pub(super) fn is_quick() -> bool {
        is_trusted()
    }

    #[inline]
    pub(super) fn quickly(_: Quick) -> Tick {
        Tick(read())
    }

    fn is_trusted() -> bool {
        let known = match TRUST.load(Ordering::Relaxed) {
            UNKNOWN => {
                let source = std::fs::read_to_string(SOURCE).unwrap_or_default();
                let known = match source.trim() == "tsc" {
                    true => TRUSTED,
                    false => NOT_TRUSTED,
                };
                // Whoever else asks meanwhile finds the same.
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
    use super::Tick;

    /// Now.
    #[inline]
    pub fn now() -> Tick {
        super::by_the_clock()
    }

    pub(super) fn is_quick() -> bool {
        false
    }

    pub(super) fn quickly(_: super::Quick) -> Tick {
        now()
    }

    pub(super) fn scale() -> u64 {
        1 << 32
    }
}

#[cfg(any(millpond_loom, millpond_shuttle))]
mod counter {
    use super::*;

    /// Later than every moment before.
    pub fn now() -> Tick {
        static LOOKS: AtomicU64 = AtomicU64::new(1);
        Tick(LOOKS.fetch_add(1, Ordering::Relaxed))
    }

    pub(super) fn is_quick() -> bool {
        false
    }

    pub(super) fn quickly(_: Quick) -> Tick {
        now()
    }

    pub(super) fn scale() -> u64 {
        1 << 32
    }
}

pub use counter::now;

/// Finds out how long a tick is, unless that is known. Takes a fraction of a millisecond.
#[cold]
pub fn prepare() -> u64 {
    let known = SCALE.load(Ordering::Relaxed);
    if known != 0 {
        return known;
    }
    let scale = counter::scale();
    // The first one stays, so that nobody sees two.
    match SCALE.compare_exchange(0, scale, Ordering::Relaxed, Ordering::Relaxed) {
        Ok(_) => scale,
        Err(first) => first,
    }
}

/// Nanoseconds since the first look, plus one.
#[cfg(not(any(millpond_loom, millpond_shuttle)))]
fn by_the_clock() -> Tick {
    use std::sync::OnceLock;
    use std::time::Instant;
    static FIRST: OnceLock<Instant> = OnceLock::new();
    let nanos = FIRST.get_or_init(Instant::now).elapsed().as_nanos();
    Tick(u64::try_from(nanos).unwrap_or(u64::MAX).saturating_add(1))
}

#[cfg(all(test, not(any(millpond_loom, millpond_shuttle))))]
mod tests {
    use super::*;
    use std::time::Instant;

    #[test]
    fn ticks_tell_the_time_that_goes_by() {
        prepare();
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
    fn a_moment_before_is_no_time_at_all() {
        let early = now();
        let late = Tick(early.count() + 10_000);
        assert_eq!(early.nanos_since(late), 0);
        assert!(late.nanos_since(early) > 0);
    }

    #[test]
    fn the_quick_way_tells_the_same_time() {
        let Some(quick) = Quick::new() else {
            return;
        };
        let (early, quickly, late) = (now(), quick.now(), now());
        assert!(early <= quickly && quickly <= late);
        for ticks in [0, 1, 1 << 20, 1 << 50] {
            assert_eq!(quick.nanos(ticks), nanos(ticks));
        }
    }

    #[test]
    fn ticks_and_durations_go_into_each_other() {
        for micros in [1, 1_000, 3_600_000_000] {
            let duration = Duration::from_micros(micros);
            let back = nanos(ticks(duration)) as f64 / duration.as_nanos() as f64;
            assert!((0.99..=1.0).contains(&back), "{duration:?}: {back}");
        }
        assert_eq!(ticks(Duration::MAX), u64::MAX);
        assert_eq!(ticks(Duration::ZERO), 0);
    }
}
