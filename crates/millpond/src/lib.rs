//! Thread pools, scheduled pools, fork-join pools, completable results and blocking queues: the executor framework of
//! `java.util.concurrent`, done the Rust way.
//!
//! ```
//! use millpond::prelude::*;
//!
//! let pool = ThreadPool::builder("mill")
//!     .core(2) // workers that stay
//!     .max(4) // the most workers there may be
//!     .queue(Queue::bounded(100)) // the most tasks that may wait
//!     .rejection(RejectionPolicy::CallerRuns) // what happens to one more
//!     .build()?;
//! let handle = pool.submit(|| (1..=20_u64).product::<u64>())?;
//! assert_eq!(handle.join()?, 2_432_902_008_176_640_000); // in async code: handle.await?
//! pool.close()?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # When to use it
//!
//! - Your tasks block or compute, and threads, queue and waiting time need limits that you can change while the
//!   process runs.
//! - You want to wait for a task from threads *and* from async code, with time-outs, cancellation and interruption.
//! - You run a service and want to know why it is slow: metrics by task name, what each worker does, what hangs, and
//!   what would help.
//!
//! It is no async runtime (tokio is; tasks of one can wait for tasks of the other), and of data-parallel loops it has only
//! those that most programs need ([`forkjoin::parallel`]; rayon has all).
//!
//! | I want | take |
//! |---|---|
//! | a pool of the usual shape | [`preset::fixed`], [`preset::cached`], [`preset::single`] |
//! | a pool with limits of my own | [`pool::ThreadPool::builder`] |
//! | things to happen later, or again and again | [`preset::scheduled`], [`schedule::ScheduledPool`] |
//! | to divide a computation, or a loop | [`forkjoin::join`], [`forkjoin::parallel`] |
//! | results of callbacks and tasks, combined, with time-outs and fallbacks | [`future::Completable`] |
//! | tasks that borrow from my stack | [`executor::ExecutorExt::scope`] |
//! | tasks of one key in order | [`executor::SerialExecutor`] |
//! | a bounded queue between threads and async code | one of the flavors in [`queue`] |
//! | to show and change any engine by name | [`manage::Managed`] |
//!
//! A rejected task comes back to the caller, whole. A panic is delivered to the handle. A handle always completes.
//!
//! # Modules
//!
//! | module | what it has |
//! |---|---|
//! | [`prelude`] | what most programs use, in one line |
//! | [`preset`] | pools for the usual needs, and how many workers they should have |
//! | [`pool`] | the elastic thread pool |
//! | [`forkjoin`] | the fork-join pool: computations that divide themselves, work stealing |
//! | [`schedule`] | tasks after a delay, at a rate, by the calendar |
//! | [`future`] | results that are composed: promises, stages, all of them, the first of them |
//! | [`executor`] | the executor traits, and the executors without a queue of their own |
//! | [`task`] | tasks and handles: join, `.await`, cancel, interrupt |
//! | [`queue`] | blocking queues, for threads and async code together |
//! | [`interrupt`] | asking a running task to stop |
//! | [`manage`] | snapshots and described parameters of engines of any kind |
//! | [`time`] | clocks, system and manual, and deadlines that saturate |
//! | [`thread`] | thread factories |
//! | [`machine`] | how many CPUs this process may use: affinity mask and cgroup quota |
//! | [`meter`] | distributions of measured times |
//! | [`adapt`] | pure controllers: overload, time to drain |
//!
//! # Features
//!
//! | feature | adds |
//! |---|---|
//! | `cron` | `schedule::Cron`: runs by the calendar of a time zone |
//! | `tokio`, `rayon` | `TokioExecutor` and `RayonExecutor`: their threads as executors |
//! | `futures` | `Spawner` as a spawner of the `futures` crates |
//! | `tracing` | a task runs in the span that was current where it was made; events go to `tracing` |
//! | `serde` | serialisation of snapshots, parameters, patches and policies; patches and policies are read, too |
//! | `stack-dump` | stacks of workers in events and views of pools (Linux on x86-64 and AArch64; crate `millpond-stack`) |
//! | `probe` | for tests: a registry of parked threads |
//!
//! This crate has no unsafe code: all of it is in `millpond-raw`.

// A module uses modules of lower ranks only (`cargo xtask layers`); the ranks are in `docs/hacking.md`. The private
// module `engine` has what every engine needs: workers and their start, termination, metrics, watchdog.

#![forbid(unsafe_code)]

pub mod adapt;
mod engine;
pub mod executor;
pub mod forkjoin;
pub mod future;
pub mod interrupt;
pub mod machine;
pub mod manage;
pub mod meter;
pub mod pool;
pub mod prelude;
pub mod preset;
pub mod queue;
pub mod schedule;
#[cfg(feature = "serde")]
mod serialize;
mod stack;
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
