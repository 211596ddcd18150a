//! Producers submit tasks, and wait for none of them. The time runs until the last task has run.

use super::Opened;
use crate::crew::{self, Member};
use crate::harness::Sample;
use crate::peers::pool::{Pool, Queue};
use crate::tally::Tally;
use anyhow::Result;

/// Brings `tasks` tasks, or as many more as share out evenly.
///
/// # Errors
///
/// If not all of them ran, or one ran twice.
pub fn run<P: Pool>(queue: Queue, producers: usize, tasks: u64) -> Result<Sample> {
    bring(Opened::<P>::new(queue)?, producers, tasks, || ())
}

/// The same, to a pool that is open, and each task does some work before it counts itself.
///
/// # Errors
///
/// If not all of them ran, or one ran twice.
pub fn bring<P: Pool>(
    opened: Opened<P>,
    producers: usize,
    tasks: u64,
    work: impl Fn() + Copy + Send + Sync + 'static,
) -> Result<Sample> {
    let share = tasks.div_ceil(producers as u64).max(1);
    let all = share * producers as u64;
    let (pool, tally) = (&opened.pool, Tally::take());
    let produce = |index: u64| -> Member<'_, u64> {
        Box::new(move || {
            for number in index * share + 1..=(index + 1) * share {
                pool.run(move || {
                    work();
                    tally.count(number);
                });
            }
            if index == 0 {
                tally.wait_for(all);
            }
            tally.by_this_thread()
        })
    };
    let done = crew::run((0..producers as u64).map(produce).collect());
    let by_the_pool = opened.close();
    tally.check(all)?;
    Ok(Sample {
        operations: all,
        elapsed: done.elapsed,
        usage: [done.usage, by_the_pool].into_iter().sum(),
        quantiles: None,
        rush: None,
        memory: None,
        by_workers: Some(all.saturating_sub(done.results.iter().sum())),
    })
}
