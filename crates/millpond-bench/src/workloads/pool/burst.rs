//! Many tasks at once for a pool that sleeps: how soon do all its workers help, and at what price for
//! the one that submits the tasks? The time runs until the last task has run.

use super::Opened;
use super::opened::settle;
use crate::harness::Sample;
use crate::peers::pool::{Pool, Queue};
use crate::tally::Tally;
use crate::usage::Usage;
use anyhow::Result;
use std::time::{Duration, Instant};

/// So many tasks make a burst.
pub const TASKS: u64 = 10_000;

/// Brings `bursts` bursts of tasks, and lets the pool fall asleep before each.
///
/// # Errors
///
/// If not all tasks ran, or one ran twice.
pub fn run<P: Pool>(bursts: u64) -> Result<Sample> {
    let opened = Opened::<P>::new(Queue::Unbounded)?;
    let (pool, tally) = (&opened.pool, Tally::take());
    let (elapsed, by_the_caller) = Usage::during(|| {
        let mut elapsed = Duration::ZERO;
        for burst in 0..bursts {
            settle();
            let start = Instant::now();
            for number in burst * TASKS + 1..=(burst + 1) * TASKS {
                pool.run(move || tally.count(number));
            }
            tally.wait_for((burst + 1) * TASKS);
            elapsed += start.elapsed();
        }
        elapsed
    });
    let by_the_pool = opened.close();
    tally.check(bursts * TASKS)?;
    Ok(Sample {
        operations: bursts,
        elapsed,
        usage: [by_the_caller, by_the_pool].into_iter().sum(),
        quantiles: None,
        rush: None,
        memory: None,
        by_workers: None,
    })
}
