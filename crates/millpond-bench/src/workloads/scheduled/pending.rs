//! Schedule a task and cancel one, while very many wait: what timeouts do all day.
//!
//! First so many timers are scheduled, each due in an hour or two, in no order. Then one more is
//! scheduled and the one of [`LATER`] before it is cancelled, again and again; only that is timed. None
//! of them may run.

use super::far::Far;
use crate::harness::Sample;
use crate::peers::timers::Timers;
use crate::usage::Usage;
use anyhow::Result;
use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// A timer is cancelled when so many more have been scheduled.
pub const LATER: usize = 1_000;

/// One timed operation for so many that wait.
pub const SHARE: u64 = 10;

/// It ends sooner if it takes this long: a candidate may be slow beyond all bounds, as `tokio-util` is
/// where it is built with its own checks.
const LONGEST: Duration = Duration::from_millis(500);

/// So often it looks at the clock.
const LOOKS_EVERY: u64 = 100;

/// Schedules and cancels timers while `pending` others wait.
///
/// # Errors
///
/// If one of them ran.
pub fn run<T: Timers>(pending: u64) -> Result<Sample> {
    let mut far = Far::<T>::open()?;
    for _ in 0..pending {
        drop(far.schedule());
    }
    let mut recent: VecDeque<T::Ticket> = (0..LATER).map(|_| far.schedule()).collect();
    let most = (pending / SHARE).max(1);
    let before = far.used();
    let ((operations, elapsed), by_the_caller) = Usage::during(|| {
        let (start, mut done) = (Instant::now(), 0);
        while done < most && start.elapsed() < LONGEST {
            let some = LOOKS_EVERY.min(most - done);
            for _ in 0..some {
                recent.push_back(far.schedule());
                if let Some(oldest) = recent.pop_front() {
                    far.cancel(oldest);
                }
            }
            done += some;
        }
        (done, start.elapsed())
    });
    let by_its_threads = far.used() - before;
    drop(recent);
    far.close()?;
    Ok(Sample {
        operations,
        elapsed,
        usage: [by_the_caller, by_its_threads].into_iter().sum(),
        quantiles: None,
        rush: None,
        memory: None,
        by_workers: None,
    })
}
