//! Work of a known length: so many steps of arithmetic, each of which waits for the one before.
//!
//! Counting steps and not time makes it work: a thread that loses its CPU in the middle has done no more
//! when it comes back, and has to do the rest. How many steps a nanosecond has is measured once in a
//! run, on a thread that has a CPU for itself. Two threads on two halves of one core are slower than
//! that, and so is a processor that has become hot: a comparison with this is a comparison with a good day.

use std::cell::Cell;
use std::hint::black_box;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// So much work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spin {
    steps: u64,
    length: Duration,
}

impl Spin {
    /// Work that takes `length` on an undisturbed CPU; one step at least.
    pub fn of(length: Duration) -> Self {
        let steps = length.as_nanos() as f64 * steps_per_nano();
        Spin {
            steps: (steps.round() as u64).max(1),
            length,
        }
    }

    /// How long it is to take.
    pub fn length(self) -> Duration {
        self.length
    }

    /// Does it.
    pub fn work(self) {
        LAST.with(|last| last.set(steps(last.get(), self.steps)));
    }
}

/// An odd number with no pattern in its bits.
const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;

thread_local! {
    /// The last result of this thread. Its next work goes on from there: if it did not have to wait for
    /// that, the processor would begin it before the last one is done, and do two at once.
    static LAST: Cell<u64> = const { Cell::new(1) };
}

fn steps(from: u64, count: u64) -> u64 {
    let mut state = black_box(from);
    for _ in 0..count {
        state = (state ^ (state >> 32)).wrapping_mul(FACTOR);
    }
    state
}

/// Long enough for the clock, and short enough to fit between two ticks of the kernel.
const TRIAL: u64 = 100_000;

/// One of so many is not disturbed.
const TRIALS: usize = 40;

/// Measured once in a run.
fn steps_per_nano() -> f64 {
    static MEASURED: OnceLock<f64> = OnceLock::new();
    *MEASURED.get_or_init(|| {
        let trial = |_| {
            let start = Instant::now();
            black_box(steps(1, TRIAL));
            start.elapsed()
        };
        let fastest = (0..TRIALS).map(trial).min().unwrap_or_default();
        TRIAL as f64 / (fastest.as_nanos() as f64).max(1.0)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The fastest of many is what the work takes; all others were disturbed.
    fn fastest(spin: Spin) -> Duration {
        let once = |_| {
            let start = Instant::now();
            spin.work();
            start.elapsed()
        };
        (0..200).map(once).min().unwrap()
    }

    #[test]
    fn work_takes_as_long_as_it_says() {
        let length = Duration::from_micros(100);
        let took = fastest(Spin::of(length));
        // Never much less. How much more depends on what else the machine does.
        assert!(took > length / 2, "{took:?}");
        assert_eq!(Spin::of(length).length(), length);
    }

    #[test]
    fn a_thousand_in_a_row_take_as_long_as_a_thousand() {
        let spin = Spin::of(Duration::from_nanos(100));
        let row = |_| {
            let start = Instant::now();
            (0..1_000).for_each(|_| spin.work());
            start.elapsed()
        };
        let took = (0..50).map(row).min().unwrap();
        assert!(took > Duration::from_micros(80), "{took:?}");
    }

    #[test]
    fn twice_the_length_is_twice_the_steps() {
        let spin = |micros| Spin::of(Duration::from_micros(micros));
        assert!(spin(20).steps.abs_diff(2 * spin(10).steps) <= 2);
        assert_eq!(Spin::of(Duration::ZERO).steps, 1);
    }
}
