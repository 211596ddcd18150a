//! A pool that is open, warm and idle, and what a round of it took.

use crate::harness::Sample;
use crate::peers::forkjoin::ForkJoin;
use crate::peers::forkjoin::sequential::Sequential;
use crate::pool_threads::PoolThreads;
use crate::stats::Quantiles;
use crate::usage::Usage;
use anyhow::{Result, ensure};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// After this long without work a pool is asleep, or never will be.
const SETTLES_IN: Duration = Duration::from_millis(2);

/// How long to wait for threads to end. In tests some of them may be other tests', and stay.
const ENDS_IN: Duration = Duration::from_millis(if cfg!(test) { 20 } else { 1_000 });

/// How long to wait for the second thread.
const GATHERS_IN: Duration = Duration::from_millis(200);

/// How often that is tried. A worker of `chili`'s that goes to sleep just when a job is published for it is not woken, and
/// the same caller publishes no other.
const ATTEMPTS: usize = 10;

/// A pool that is open.
#[derive(Debug)]
pub struct Team<F> {
    /// The pool.
    pub pool: F,
    pool_threads: PoolThreads,
    before: Usage,
}

impl<F: ForkJoin> Team<F> {
    /// Opens a pool in which so many threads compute, and waits until two of them do, if there are two.
    ///
    /// # Errors
    ///
    /// If it cannot be opened, or never has two threads at work.
    pub fn open(threads: usize) -> Result<Self> {
        let (pool, pool_threads) = PoolThreads::of(|| -> Result<F> {
            let pool = F::open(threads)?;
            let is_alone = threads == 1 || F::NAME == Sequential::NAME;
            let mut attempts = 0..ATTEMPTS;
            let is_shared =
                is_alone || attempts.any(|_| pool.run(|context| is_shared::<F>(context)));
            ensure!(
                is_shared,
                "its {threads} threads never work at the same time"
            );
            if is_alone {
                // It starts its thread, if it has one.
                pool.run(|_| ());
            }
            Ok(pool)
        });
        let pool = pool?;
        std::thread::sleep(SETTLES_IN);
        let before = pool_threads.usage();
        Ok(Team {
            pool,
            pool_threads,
            before,
        })
    }

    /// Has the pool do `operations`: `work` says how long they took, and checks what came out. Then closes it.
    ///
    /// # Errors
    ///
    /// Those of `work`.
    pub fn measure(
        self,
        operations: u64,
        work: impl FnOnce(&F) -> Result<Duration>,
    ) -> Result<Sample> {
        let (elapsed, by_the_caller) = Usage::during(|| work(&self.pool));
        // Until now its threads may have gone on looking for work: that is part of the price.
        std::thread::sleep(SETTLES_IN);
        let by_the_pool = self.pool_threads.usage() - self.before;
        self.pool.close();
        self.pool_threads.wait_until_gone(ENDS_IN);
        Ok(Sample {
            operations,
            elapsed: elapsed?,
            usage: [by_the_caller, by_the_pool].into_iter().sum(),
            quantiles: None,
            rush: None,
            memory: None,
            by_workers: None,
        })
    }

    /// The same, where each operation is timed: in nanoseconds.
    ///
    /// # Errors
    ///
    /// Those of `work`.
    pub fn measure_each(self, work: impl FnOnce(&F) -> Result<Vec<u64>>) -> Result<Sample> {
        let mut quantiles = None;
        let mut count = 0;
        let sample = self.measure(1, |pool| {
            let times = work(pool)?;
            count = times.len() as u64;
            quantiles = Quantiles::of(&times);
            Ok(Duration::from_nanos(times.iter().sum()))
        })?;
        Ok(Sample {
            operations: count,
            quantiles,
            ..sample
        })
    }
}

/// Joins until another thread takes part, but not for ever.
fn is_shared<F: ForkJoin>(context: &mut F::Context<'_>) -> bool {
    let (start, is_over) = (Instant::now(), AtomicBool::new(false));
    let is_taken = AtomicBool::new(false);
    F::join(
        context,
        |context| {
            // A heartbeat makes a job visible at a join, so there must be some.
            while !is_taken.load(Ordering::Relaxed) && start.elapsed() < GATHERS_IN {
                F::join(context, |_| (), |_| ());
            }
            is_over.store(true, Ordering::Relaxed);
        },
        |_| is_taken.store(!is_over.load(Ordering::Relaxed), Ordering::Relaxed),
    );
    is_taken.into_inner()
}
