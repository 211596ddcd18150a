//! Fill an empty scheduler with very many timers, and cancel all of them, in the order in which they came: what a
//! server does whose clients all connect at once, and leave at once.
//!
//! Each is due between a second and a thousand seconds after the start, in no order. The scheduler is opened anew for
//! each turn, so this has a price that schedulers in their steady state have paid before: tables grow, and memory comes
//! from the system, as far as the allocator has not kept it. One of the two is timed, and the other is done all the same.
//!
//! A scheduler may take longer than a second. So some timers may run, but none that was not due.

use super::firing::ENDS_IN;
use crate::harness::Sample;
use crate::peers::timers::Timers;
use crate::plan::Random;
use crate::pool_threads::PoolThreads;
use crate::tally::Tally;
use crate::usage::Usage;
use anyhow::Result;
use std::time::{Duration, Instant};

/// No timer is due before this.
pub const NEAREST: Duration = Duration::from_secs(1);

/// Or after this.
pub const FARTHEST: Duration = Duration::from_secs(1_000);

/// The seed of all due times.
const SEED: u64 = 0x6669_6c6c;

/// Which half is timed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Timed {
    /// Scheduling all of them.
    Filling,
    /// Cancelling all of them.
    Cancelling,
}

/// Schedules `timers`, and cancels them.
///
/// # Errors
///
/// If one ran that was not due.
pub fn run<T: Timers>(timed: Timed, timers: u64) -> Result<Sample> {
    let mut random = Random::new(SEED);
    // Drawn before, and so is the room for the tickets: neither is the scheduler's.
    let delays: Vec<Duration> = (0..timers)
        .map(|_| NEAREST + (FARTHEST - NEAREST).mul_f64(random.share()))
        .collect();
    let mut tickets = Vec::with_capacity(delays.len());
    let (scheduler, pool_threads) = PoolThreads::of(T::open);
    let mut scheduler = scheduler?;
    let tally = Tally::take();
    let used = || -> Usage { [pool_threads.usage(), T::used_beside()].into_iter().sum() };
    let at_first = used();
    let start = Instant::now();
    let ((), by_the_filler) = Usage::during(|| {
        let due = delays.iter().map(|&delay| start + delay);
        tickets.extend(
            due.zip(1..)
                .map(|(due, own)| scheduler.schedule(due, move || tally.count(own))),
        );
    });
    let filled = start.elapsed();
    let between = used();
    let from = Instant::now();
    let ((), by_the_canceller) = Usage::during(|| {
        for ticket in tickets.drain(..) {
            scheduler.cancel(ticket);
        }
    });
    let cancelled = from.elapsed();
    let at_last = used();
    scheduler.close();
    pool_threads.wait_until_gone(ENDS_IN);
    let lasted = start.elapsed();
    let due = delays.iter().filter(|&&delay| delay <= lasted).count() as u64;
    tally.check_at_most(due)?;
    let (elapsed, by_the_caller, by_its_threads) = match timed {
        Timed::Filling => (filled, by_the_filler, between - at_first),
        Timed::Cancelling => (cancelled, by_the_canceller, at_last - between),
    };
    Ok(Sample {
        operations: timers,
        elapsed,
        usage: [by_the_caller, by_its_threads].into_iter().sum(),
        quantiles: None,
        rush: None,
        memory: None,
        by_workers: None,
    })
}
