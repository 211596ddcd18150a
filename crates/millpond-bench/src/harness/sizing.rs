//! How many operations a round has: found out by running it, or planned.

use super::{Candidate, Settings};
use anyhow::Result;
use std::fmt;
use std::time::Duration;

/// Sizing begins with so many operations.
const FEWEST_OPERATIONS: u64 = 64;

/// A round that is only there to warm up is so many times shorter.
const SHORT: u32 = 20;

/// Says how many operations come in so much time.
pub struct Planned(Box<dyn Fn(Duration) -> Result<u64>>);

impl Planned {
    /// Asks `plan`.
    pub fn by(plan: impl Fn(Duration) -> Result<u64> + 'static) -> Self {
        Planned(Box::new(plan))
    }

    /// How many come in `time`.
    ///
    /// # Errors
    ///
    /// If that cannot be known.
    pub fn arrivals(&self, time: Duration) -> Result<u64> {
        (self.0)(time)
    }
}

impl fmt::Debug for Planned {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Planned")
    }
}

/// Runs `candidate` for a short while, and says how many operations a whole round has.
pub(super) fn warm_up(candidate: &Candidate, planned: &Planned, settings: Settings) -> Result<u64> {
    let short = planned.arrivals(settings.round_time / SHORT)?;
    (candidate.run)(short.max(1))?;
    Ok(planned.arrivals(settings.round_time)?.max(1))
}

/// Finds how many operations of `candidate` fill a round, by running it.
pub(super) fn size(candidate: &Candidate, settings: Settings, most: u64) -> Result<u64> {
    let mut operations = FEWEST_OPERATIONS.min(most);
    loop {
        let mut elapsed = (candidate.run)(operations)?.elapsed;
        // Short runs are mostly thread starts and cold caches. They say how to go on, not where
        // to stop.
        let is_long = |elapsed| elapsed >= settings.round_time / 4;
        if is_long(elapsed) && operations < most {
            // One that lost its CPU for a moment looks long too, and would make all rounds short.
            elapsed = elapsed.min((candidate.run)(operations)?.elapsed);
        }
        let fitting = fitting(operations, elapsed, settings.round_time, most);
        if is_long(elapsed) || fitting <= operations {
            return Ok(fitting);
        }
        operations = fitting.min(operations * 16);
    }
}

/// So many operations take `wanted` if `operations` took `elapsed`.
pub(super) fn fitting(operations: u64, elapsed: Duration, wanted: Duration, most: u64) -> u64 {
    let factor = wanted.as_secs_f64() / elapsed.as_secs_f64().max(1e-9);
    // A float too large for an integer becomes the largest integer.
    ((operations as f64 * factor) as u64).clamp(1, most.max(1))
}
