//! A pool that had work and has none: what do its threads use until the next task?
//!
//! An operation is a millisecond of that. Only the pool's own threads are counted.

use super::Opened;
use crate::harness::Sample;
use crate::peers::pool::{Pool, Queue};
use anyhow::Result;
use std::time::{Duration, Instant};

/// Many workers need longer than two to be asleep, and what that takes is no idling: it happens once.
const FALLS_ASLEEP_IN: Duration = Duration::from_millis(20);

/// Leaves a pool alone for so many milliseconds.
///
/// # Errors
///
/// If the pool cannot be opened.
pub fn run<P: Pool>(millis: u64) -> Result<Sample> {
    leave_alone(Opened::<P>::new(Queue::Unbounded)?, millis)
}

/// The same, with a pool that is open.
///
/// # Errors
///
/// None, as other work has them.
pub fn leave_alone<P: Pool>(mut opened: Opened<P>, millis: u64) -> Result<Sample> {
    opened.rest(FALLS_ASLEEP_IN);
    let start = Instant::now();
    std::thread::sleep(Duration::from_millis(millis));
    let elapsed = start.elapsed();
    Ok(Sample {
        operations: millis,
        elapsed,
        usage: opened.close(),
        quantiles: None,
        rush: None,
        memory: None,
        by_workers: None,
    })
}
