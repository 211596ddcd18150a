//! What does it take to sum 1 to 1,000,000,000 on all CPUs?
//!
//! The times go to the error output.
//!
//! ```sh
//! cargo run -p examples --example 28_sum_of_a_billion
//! ```
//!
//! ```text
//! sequentially:            500000000500000000
//! with hand-made threads:  500000000500000000
//! forked:                  500000000500000000
//! as a parallel loop:      500000000500000000
//! ```

#![forbid(unsafe_code)]
#![allow(
    clippy::disallowed_methods,
    reason = "it compares with threads made by hand, and measures"
)]

use millpond::forkjoin::{self, parallel};
use std::hint::black_box;
use std::ops::Range;
use std::thread;
use std::time::Instant;

const END: u64 = 1_000_000_001;

/// The sum of a range. `black_box` hides the numbers from the compiler, which knows Gauss's formula.
fn sequential(range: Range<u64>) -> u64 {
    range.map(black_box).sum()
}

/// One thread per CPU, each with an equal share. If one of them is late, all wait for it.
fn by_hand() -> u64 {
    let threads = thread::available_parallelism().map_or(1, usize::from) as u64;
    let bound = |n: u64| 1 + n * (END - 1) / threads;
    thread::scope(|scope| {
        let parts: Vec<_> = (0..threads)
            .map(|n| scope.spawn(move || sequential(bound(n)..bound(n + 1))))
            .collect();
        let sums = parts.into_iter().map(|part| part.join());
        sums.map(|sum| sum.expect("a sum does not panic")).sum()
    })
}

/// Halves, until it is not worth it. Who is idle steals the largest part that is left.
fn forked(range: Range<u64>) -> u64 {
    if range.end - range.start <= 100_000 {
        return sequential(range);
    }
    let middle = range.start.midpoint(range.end);
    let (left, right) =
        forkjoin::join(|| forked(range.start..middle), || forked(middle..range.end));
    left + right
}

fn timed(name: &str, sum: impl FnOnce() -> u64) {
    let begin = Instant::now();
    let sum = sum();
    eprintln!("{name} {:?}", begin.elapsed());
    println!("{name:24} {sum}");
}

fn main() {
    timed("sequentially:", || sequential(1..END));
    timed("with hand-made threads:", by_hand);
    timed("forked:", || forked(1..END));
    // No threshold: the loop finds its own.
    timed("as a parallel loop:", || {
        parallel::over(1..END).map(black_box).sum()
    });
}
