//! One timer that is due in an hour or two: who wakes up meanwhile, and for what?
//!
//! Who keeps a clock that ticks wakes up for nothing. An operation is a millisecond of that. All threads
//! count that the candidate has, the one that rings our alarms included; so each has a process of its
//! own.

use super::far::Far;
use crate::harness::Sample;
use crate::peers::timers::Timers;
use crate::staff::Staff;
use anyhow::Result;
use std::time::{Duration, Instant};

/// How long threads may take to fall asleep. A thread that was started a moment ago has more to do than
/// one that waits.
pub const FALLS_ASLEEP_IN: Duration = Duration::from_millis(if cfg!(test) { 3 } else { 300 });

/// Leaves it alone for so many milliseconds.
///
/// # Errors
///
/// If it cannot be opened, or the timer ran.
pub fn run<T: Timers>(millis: u64) -> Result<Sample> {
    // Some have threads that are not there before the first timer is.
    let (far, staff) = Staff::of(|| -> Result<_> {
        let mut far = Far::<T>::open()?;
        let ticket = far.schedule();
        std::thread::sleep(FALLS_ASLEEP_IN);
        Ok((far, ticket))
    });
    let (far, ticket) = far?;
    let staff = staff.with_ringer();
    let before = staff.usage();
    let start = Instant::now();
    std::thread::sleep(Duration::from_millis(millis));
    let elapsed = start.elapsed();
    let usage = staff.usage() - before;
    drop(ticket);
    far.close()?;
    Ok(Sample {
        operations: millis,
        elapsed,
        usage,
        quantiles: None,
        rush: None,
        memory: None,
    })
}
