//! The fork-join pool on real threads.

#![cfg(not(any(millpond_loom, millpond_shuttle)))]
#![allow(
    clippy::disallowed_types,
    clippy::disallowed_methods,
    reason = "a test stands outside: it uses std's threads, clocks and channels beside what it tests"
)]

mod attacked;
mod blocking;
mod context;
mod ends;
mod helping;
mod joins;
mod outside;
mod pairs;
mod parallel;
mod recursive;
mod scopes;
mod sorting;
mod tasks;
mod watching;

use millpond::forkjoin::{self, ForkJoinPool};
use std::time::{Duration, Instant};

/// No test waits longer.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(60);

/// Waits until it is so.
#[track_caller]
pub(crate) fn until(is_so: impl Fn() -> bool) {
    let begin = Instant::now();
    while !is_so() {
        assert!(begin.elapsed() < TIMEOUT, "it is not so");
        std::thread::yield_now();
    }
}

pub(crate) fn pool(parallelism: usize) -> ForkJoinPool {
    let builder = ForkJoinPool::builder("mill").parallelism(parallelism);
    builder.build().expect("the parameters are in range")
}

pub(crate) fn fib(n: u64) -> u64 {
    if n < 2 {
        return n;
    }
    let (left, right) = forkjoin::join(|| fib(n - 1), || fib(n - 2));
    left + right
}
