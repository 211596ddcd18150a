//! The executor framework of `java.util.concurrent`, done the Rust way.
//!
//! ```
//! use millpond::executor::ExecutorExt;
//! use millpond::preset;
//!
//! let pool = preset::fixed("mill", preset::for_cpu_bound()).build()?;
//! let handle = pool.submit(|| (1..=20_u64).product::<u64>())?;
//! assert_eq!(handle.join()?, 2_432_902_008_176_640_000);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # What is in the box
//!
//! Modules depend downwards only, and modules of one rank do not know each other
//! (`cargo xtask layers` checks):
//!
//! | rank | module | what it is |
//! |---|---|---|
//! | 7 | [`preset`] | pools for the usual needs, and how many workers they should have |
//! | 6 | [`pool`] | the elastic thread pool |
//! | 6 | [`schedule`] | tasks at their time: after a delay, at a rate, by the calendar |
//! | 4 | [`manage`] | what an engine shows of itself, and how it is changed while it runs |
//! | 4 | [`executor`] | who runs tasks: the traits, and the executors without a queue of their own |
//! | 3 | [`task`] | a piece of work and its handle: join, `.await`, cancel, interrupt |
//! | 3 | [`queue`] | blocking queues of eight kinds, for threads and async code together |
//! | 2 | [`interrupt`] | asking a running task to stop; the one loop in which everything waits |
//! | 1 | [`time`] | clocks, system and manual, and deadlines that saturate |
//! | 0 | [`thread`] | how threads are started, and what they are called |
//! | 0 | [`stack`] | what a running thread is doing: its stack, by function and line |
//! | 0 | [`adapt`] | what to decide by what was measured: overload, time to drain |
//! | 0 | [`meter`] | counting and measuring at a price that every task can pay |
//! | 0 | [`machine`] | what machine this is: CPUs, quota, NUMA nodes |
//!
//! All unsafe code is in the crate `millpond-raw` below this one.

#![forbid(unsafe_code)]

pub mod adapt;
pub mod executor;
pub mod interrupt;
pub mod machine;
pub mod manage;
pub mod meter;
pub mod pool;
pub mod preset;
pub mod queue;
pub mod schedule;
pub mod stack;
pub mod task;
pub mod thread;
pub mod time;

#[cfg(test)]
#[path = "../tests/proptest_kit/mod.rs"]
mod proptest_kit;

/// The programs in the README, compiled and run as tests.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct ReadmeExamples;
