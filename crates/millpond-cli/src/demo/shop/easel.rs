//! Work for the processor: rows of the Mandelbrot set, really computed.
//!
//! How fast this machine is decides how many rows make a millisecond, so a picture takes about as long
//! on a slow machine, and in an unoptimised build, as on a fast one.

use std::hint::black_box;
use std::time::{Duration, Instant};

const PIXELS: u32 = 64;
const MOST_STEPS: u32 = 120;

#[derive(Clone, Copy, Debug)]
pub(super) struct Easel {
    rows_per_second: f64,
}

impl Easel {
    /// Measures the machine, for a few milliseconds.
    pub(super) fn new() -> Self {
        const ROWS: u32 = 20;
        let once = || {
            let start = Instant::now();
            black_box((0..ROWS).map(row).sum::<u32>());
            start.elapsed()
        };
        // The least: whatever else the machine did meanwhile is not the price of a row.
        let least = (0..5).map(|_| once()).min().unwrap_or_default();
        let seconds = least.as_secs_f64().max(1e-9);
        Easel {
            rows_per_second: f64::from(ROWS) / seconds,
        }
    }

    /// Computes for about so long.
    pub(super) fn paint(self, takes: Duration) {
        let rows = (takes.as_secs_f64() * self.rows_per_second).ceil() as u32;
        let mut inside = 0_u64;
        for number in 0..rows.max(1) {
            inside += u64::from(row(number));
        }
        black_box(inside);
    }
}

/// How many steps the points of a row take together until they leave, or are given up.
fn row(number: u32) -> u32 {
    // A region where the set is rugged, so that rows are neither all empty nor all full.
    let y = 0.05 + f64::from(number % 20) * 0.01;
    (0..PIXELS)
        .map(|pixel| steps(-0.80 + f64::from(pixel) * 0.002, y))
        .sum()
}

fn steps(x: f64, y: f64) -> u32 {
    let (mut re, mut im) = (0.0_f64, 0.0_f64);
    for step in 0..MOST_STEPS {
        let (re2, im2) = (re * re, im * im);
        if re2 + im2 > 4.0 {
            return step;
        }
        im = 2.0 * re * im + y;
        re = re2 - im2 + x;
    }
    MOST_STEPS
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn points_inside_stay_and_points_outside_leave() {
        assert_eq!(steps(0.0, 0.0), MOST_STEPS);
        assert_eq!(steps(-1.0, 0.0), MOST_STEPS);
        assert!(steps(2.0, 2.0) < 3);
    }

    #[test]
    fn no_row_is_empty_and_none_is_free() {
        for number in 0..20 {
            let all = row(number);
            assert!(
                all > PIXELS && all <= PIXELS * MOST_STEPS,
                "{number}: {all}"
            );
        }
    }
}
