//! How soon a second thread works: from the start of a computation, in a pool that was idle, until another thread than the
//! first has run a part of it. The computation ends then.

use super::team::Team;
use crate::harness::Sample;
use crate::peers::forkjoin::ForkJoin;
use crate::peers::pool::WORKERS;
use anyhow::{Result, ensure};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// For so long the pool does nothing before each computation.
const IDLE: Duration = Duration::from_millis(1);

/// A computation of so many levels takes some hundred milliseconds, if nobody helps.
const LEVELS: u32 = if cfg!(debug_assertions) { 20 } else { 26 };

/// Measures that so often.
///
/// # Errors
///
/// If the pool cannot be opened, or no second thread ever worked.
pub fn round<F: ForkJoin>(times: u64) -> Result<Sample> {
    Team::<F>::open(WORKERS)?.measure_each(|pool| {
        let mut all = Vec::new();
        let mut alone = 0;
        for _ in 0..times.max(1) {
            std::thread::sleep(IDLE);
            let (nanos, is_alone) = pool.run(|context| {
                let watch = Watch {
                    start: Instant::now(),
                    first: here(),
                    second: AtomicU64::new(0),
                };
                part::<F>(context, &watch, LEVELS);
                let end = watch.start.elapsed().as_nanos() as u64;
                match watch.second.into_inner() {
                    0 => (end, true),
                    nanos => (nanos, false),
                }
            });
            all.push(nanos);
            alone += usize::from(is_alone);
        }
        ensure!(alone < all.len(), "no second thread ever worked");
        Ok(all)
    })
}

struct Watch {
    start: Instant,
    first: usize,
    /// When a second thread worked, in nanoseconds; 0 until then.
    second: AtomicU64,
}

fn part<F: ForkJoin>(context: &mut F::Context<'_>, watch: &Watch, levels: u32) {
    if watch.second.load(Ordering::Relaxed) != 0 {
        return;
    }
    if here() != watch.first {
        let nanos = watch.start.elapsed().as_nanos() as u64;
        watch.second.store(nanos.max(1), Ordering::Relaxed);
        return;
    }
    if levels > 0 {
        F::join(
            context,
            |context| part::<F>(context, watch, levels - 1),
            |context| part::<F>(context, watch, levels - 1),
        );
    }
}

/// A number of the thread.
fn here() -> usize {
    thread_local! {
        static HERE: u8 = const { 0 };
    }
    HERE.with(|here| std::ptr::from_ref(here).addr())
}
