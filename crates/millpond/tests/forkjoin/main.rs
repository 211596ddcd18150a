//! The fork-join pool on real threads.

#![cfg(not(any(millpond_loom, millpond_shuttle)))]
#![allow(
    clippy::disallowed_types,
    clippy::disallowed_methods,
    reason = "a test stands outside: it uses std's threads, clocks and channels beside what it tests"
)]

mod context;
mod ends;
mod joins;
mod parallel;
mod recursive;
mod scopes;
mod sorting;
mod tasks;

use millpond::forkjoin::{self, ForkJoinPool};

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
