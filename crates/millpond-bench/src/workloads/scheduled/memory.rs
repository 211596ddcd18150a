//! The memory of very many timers while they wait, and of their remains when they are cancelled.
//!
//! It is read off what the process has of the machine's memory (see [`crate::memory`]), in a process in
//! which nothing else has happened. A timer is counted with its closure, which has a number of its own,
//! and with the handle that cancels it.
//!
//! What is *kept* shows when as many are scheduled again. All are cancelled and as many scheduled,
//! [`WAVES`] times over. A scheduler that removes a cancelled timer has room for the next; one that
//! keeps it until it is due needs more with each wave. So it does not matter whether an allocator gives
//! back what is free, or keeps it for the next who asks; and what a collector leaves over once counts
//! for little.

use super::far::Far;
use crate::harness::Sample;
use crate::memory::{self, Memory};
use crate::peers::timers::Timers;
use crate::pool_threads::PoolThreads;
use crate::usage::Usage;
use anyhow::{Context, Result};
use std::time::{Duration, Instant};

/// All are cancelled and scheduled again so often.
pub const WAVES: u64 = 3;

/// Threads that use nothing for this long have nothing left to do.
const STILL_FOR: Duration = Duration::from_millis(if cfg!(test) { 1 } else { 20 });

/// Some threads may never be still. In tests some of them may be other tests'.
const LONGEST: Duration = Duration::from_millis(if cfg!(test) { 20 } else { 2_000 });

/// Has `timers` wait, and cancels them.
///
/// # Errors
///
/// If one of them ran, or the kernel does not say what is resident.
pub fn run<T: Timers>(timers: u64) -> Result<Sample> {
    let mut far = Far::<T>::open()?;
    let mut tickets: Vec<T::Ticket> = Vec::new();
    let empty = resident(far.pool_threads())?;
    let start = Instant::now();
    tickets.extend((0..timers).map(|_| far.schedule()));
    let first = resident(far.pool_threads())?;
    for _ in 0..WAVES {
        for ticket in tickets.drain(..) {
            far.cancel(ticket);
        }
        wait_until_still(far.pool_threads());
        tickets.extend((0..timers).map(|_| far.schedule()));
    }
    let last = resident(far.pool_threads())?;
    let elapsed = start.elapsed();
    drop(tickets);
    far.close()?;
    Ok(Sample {
        operations: timers,
        elapsed,
        usage: Usage::default(),
        quantiles: None,
        rush: None,
        memory: Some(Memory {
            resident: first.saturating_sub(empty),
            kept: last.saturating_sub(first) / WAVES,
        }),
        by_workers: None,
    })
}

/// The resident memory once its threads have processed their requests.
fn resident(pool_threads: &PoolThreads) -> Result<u64> {
    wait_until_still(pool_threads);
    memory::resident().context("there is no /proc/self/smaps_rollup")
}

fn wait_until_still(pool_threads: &PoolThreads) {
    let start = Instant::now();
    let mut before = pool_threads.usage();
    while start.elapsed() < LONGEST {
        std::thread::sleep(STILL_FOR);
        let now = pool_threads.usage();
        if now == before {
            return;
        }
        before = now;
    }
}
