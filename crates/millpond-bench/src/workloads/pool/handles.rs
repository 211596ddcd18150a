//! A caller waits for what its tasks return: for a thousand together, or for each before the next.

use super::Opened;
use crate::harness::Sample;
use crate::peers::pool::{Pool, Queue};
use crate::stats::Quantiles;
use crate::tally::Tally;
use crate::usage::Usage;
use anyhow::{Result, ensure};
use std::time::{Duration, Instant};

/// So many tasks are brought before the first is waited for.
pub const BATCH: u64 = 1_000;

/// Pauses before a round trip: from so short that a worker may still be looking out for work, to so long that all
/// threads sleep and the CPU does, too.
pub const PAUSES: [Duration; 5] = [
    Duration::from_micros(10),
    Duration::from_micros(50),
    Duration::from_micros(200),
    Duration::from_millis(1),
    Duration::from_millis(10),
];

/// Brings `tasks` tasks, or as many more as make whole batches, and waits for each.
///
/// # Errors
///
/// If not all of them ran, one ran twice, or a result is wrong.
pub fn join_all<P: Pool>(tasks: u64) -> Result<Sample> {
    let batches = tasks.div_ceil(BATCH).max(1);
    let opened = Opened::<P>::new(Queue::Unbounded)?;
    let (pool, tally) = (&opened.pool, Tally::take());
    let mut handles = Vec::with_capacity(BATCH as usize);
    let ((sum, elapsed), by_the_caller) = Usage::during(|| {
        let start = Instant::now();
        let mut sum = 0_u64;
        for batch in 0..batches {
            handles.extend((batch * BATCH + 1..=(batch + 1) * BATCH).map(|number| {
                pool.submit(move || {
                    tally.count(number);
                    number
                })
            }));
            sum = sum.wrapping_add(pool.join_all(&mut handles));
        }
        (sum, start.elapsed())
    });
    let by_the_pool = opened.close();
    let all = batches * BATCH;
    tally.check(all)?;
    ensure!(
        sum == (1..=all).sum::<u64>(),
        "the tasks did not return what they were given"
    );
    Ok(Sample {
        operations: all,
        elapsed,
        usage: [by_the_caller, by_the_pool].into_iter().sum(),
        quantiles: None,
        rush: None,
        memory: None,
        by_workers: None,
    })
}

/// Brings a task and waits for it, `trips` times.
///
/// # Errors
///
/// If not all of them ran, one ran twice, or a result is wrong.
pub fn trips<P: Pool>(pause: Option<Duration>, here: bool, trips: u64) -> Result<Sample> {
    trips_of(Opened::<P>::new(Queue::Unbounded)?, pause, here, trips)
}

/// The same, with a pool that is open.
///
/// # Errors
///
/// If not all of them ran, one ran twice, or a result is wrong.
pub fn trips_of<P: Pool>(
    opened: Opened<P>,
    pause: Option<Duration>,
    here: bool,
    trips: u64,
) -> Result<Sample> {
    let (pool, tally) = (&opened.pool, Tally::take());
    let mut times = Vec::with_capacity(trips as usize);
    let mut paused = Duration::ZERO;
    let (wrong, mut by_the_caller) = Usage::during(|| {
        let mut wrong = 0_u64;
        for number in 1..=trips {
            paused += pause.map(work_for).unwrap_or_default();
            let start = Instant::now();
            let handle = pool.submit(move || {
                tally.count(number);
                number
            });
            let result = if here {
                pool.run_or_join(handle)
            } else {
                pool.join(handle)
            };
            times.push(nanos(start.elapsed()));
            wrong += u64::from(result != number);
        }
        wrong
    });
    by_the_caller.cpu = by_the_caller.cpu.map(|cpu| cpu.saturating_sub(paused));
    let by_the_pool = opened.close();
    tally.check(trips)?;
    ensure!(wrong == 0, "{wrong} of {trips} results are wrong");
    Ok(Sample {
        operations: trips,
        elapsed: Duration::from_nanos(times.iter().sum()),
        usage: [by_the_caller, by_the_pool].into_iter().sum(),
        quantiles: Quantiles::of(&times),
        rush: None,
        memory: None,
        by_workers: None,
    })
}

/// Keeps the CPU busy, and says for how long.
pub(crate) fn work_for(pause: Duration) -> Duration {
    let start = Instant::now();
    loop {
        let elapsed = start.elapsed();
        if elapsed >= pause {
            return elapsed;
        }
        std::hint::spin_loop();
    }
}

pub(crate) fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}
