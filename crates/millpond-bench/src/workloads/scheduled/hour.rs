//! One timer that is due in an hour or two: which threads wake up meanwhile?
//!
//! A timer with a ticking clock wakes up for nothing. An operation is a millisecond of that. All threads
//! count that the candidate has, so each has a process of its own: there it schedules its timer, and the
//! bench looks on from outside. (Were it to look at itself, it would wake up for that.) Of a JVM only the
//! pool's threads count.

use super::far::Far;
use crate::harness::Sample;
use crate::peers::guest::{Order, Process};
use crate::peers::timers::Timers;
use crate::usage::Usage;
use anyhow::{Result, ensure};
use std::time::{Duration, Instant};

/// How long threads may take to fall asleep. A thread that was started a moment ago has more to do than
/// one that waits.
const FALLS_ASLEEP_IN: Duration = Duration::from_millis(if cfg!(test) { 3 } else { 100 });

/// Schedules the timer. It waits until this process ends.
///
/// # Errors
///
/// If there is no such scheduler here.
pub(super) fn begin<T: Timers>(operations: u64) -> Result<Sample> {
    let start = Instant::now();
    let mut far = Far::<T>::open()?;
    let ticket = far.schedule();
    std::mem::forget((far, ticket));
    Ok(sample(operations, start.elapsed(), Usage::default()))
}

/// Has a process schedule the timer, and looks on for as many milliseconds as there are operations to
/// its threads whose names begin so.
///
/// # Errors
///
/// If the timer is not scheduled, or there is no such thread.
pub(super) fn watch(process: &mut Process, order: &Order<'_>, threads: &str) -> Result<Sample> {
    process.run(order)?;
    std::thread::sleep(FALLS_ASLEEP_IN);
    let used = || Usage::of_process(process.id(), threads);
    let before = used();
    ensure!(
        before.cpu != Some(Duration::ZERO),
        "it has no threads whose names begin with {threads:?}"
    );
    let start = Instant::now();
    std::thread::sleep(Duration::from_millis(order.operations));
    let elapsed = start.elapsed();
    Ok(sample(order.operations, elapsed, used() - before))
}

fn sample(operations: u64, elapsed: Duration, usage: Usage) -> Sample {
    Sample {
        operations,
        elapsed,
        usage,
        quantiles: None,
        rush: None,
        memory: None,
        by_workers: None,
    }
}
