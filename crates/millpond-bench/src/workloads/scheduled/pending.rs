//! Schedule a task and cancel one, while very many wait: what time-outs do all day.
//!
//! First so many timers are scheduled, each due in an hour or two, in no order. Then one more is
//! scheduled and the one of [`LATER`] before it is cancelled, again and again; only that is timed. None
//! of them may run.

use super::firing::ENDS_IN;
use crate::harness::Sample;
use crate::peers::timers::Timers;
use crate::plan::Random;
use crate::staff::Staff;
use crate::tally::Tally;
use crate::usage::Usage;
use anyhow::Result;
use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// A timer is cancelled when so many more have been scheduled.
pub const LATER: usize = 1_000;

/// One timed operation for so many that wait.
const SHARE: u64 = 10;

/// No timer is due before this, or after twice this.
const FAR: Duration = Duration::from_secs(3_600);

/// The seed of all due times.
const SEED: u64 = 0x7469_6d65_7273;

/// Schedules and cancels timers while `pending` others wait.
///
/// # Errors
///
/// If one of them ran.
pub fn run<T: Timers>(pending: u64) -> Result<Sample> {
    let (timers, staff) = Staff::of(T::open);
    let mut timers = timers?;
    let mut random = Random::new(SEED);
    let tally = Tally::take();
    let start = Instant::now();
    let mut number = 0;
    let mut schedule = |timers: &mut T| {
        number += 1;
        let due = start + FAR + FAR.mul_f64(random.share());
        let own = number;
        timers.schedule(due, move || tally.count(own))
    };
    for _ in 0..pending {
        drop(schedule(&mut timers));
    }
    let mut recent: VecDeque<T::Ticket> = (0..LATER).map(|_| schedule(&mut timers)).collect();
    let operations = (pending / SHARE).max(1);
    let before = staff.usage();
    let (elapsed, by_the_caller) = Usage::during(|| {
        let start = Instant::now();
        for _ in 0..operations {
            recent.push_back(schedule(&mut timers));
            if let Some(oldest) = recent.pop_front() {
                timers.cancel(oldest);
            }
        }
        start.elapsed()
    });
    let by_its_threads = staff.usage() - before;
    drop(recent);
    timers.close();
    staff.wait_until_gone(ENDS_IN);
    // Not one of them was due.
    tally.check(0)?;
    Ok(Sample {
        operations,
        elapsed,
        usage: [by_the_caller, by_its_threads].into_iter().sum(),
        quantiles: None,
        rush: None,
    })
}
