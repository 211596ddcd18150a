//! Ours: [`ThreadPool`], called as a user calls it.

use super::{Pool, Queue, WhenFull};
use anyhow::Result;
use millpond::executor::{ExecutorExt, Lifecycle};
use millpond::pool::{self, RejectionPolicy, ThreadPool};
use millpond::task::TaskHandle;
use std::time::Duration;

/// [`ThreadPool`], with as many workers from the start as all pools have. It keeps metrics of its
/// tasks, as it does by default.
#[derive(Debug)]
pub struct Millpond<const FIGURES: bool = true>(ThreadPool);

/// The same, without metrics.
pub type WithoutMetrics = Millpond<false>;

/// Longer than any round: a submitter that waits for room gets it.
const PATIENCE: Duration = Duration::from_secs(3_600);

const REFUSED: &str = "an open pool of the bench refuses nothing";

impl<const FIGURES: bool> Pool for Millpond<FIGURES> {
    const NAME: &'static str = if FIGURES {
        "millpond"
    } else {
        "millpond, without figures"
    };
    type Handle = TaskHandle<u64>;

    fn with_workers(workers: usize, queue: Queue) -> Result<Self> {
        let builder = ThreadPool::builder("bench").core(workers).max(workers);
        let builder = match queue {
            Queue::Unbounded => builder.queue(pool::Queue::unbounded()),
            Queue::Bounded(bound, when_full) => builder
                .queue(pool::Queue::bounded(bound))
                .rejection(match when_full {
                    WhenFull::Wait => RejectionPolicy::Block(PATIENCE),
                    WhenFull::CallerRuns => RejectionPolicy::CallerRuns,
                }),
        };
        let builder = if FIGURES {
            builder
        } else {
            builder.without_metrics()
        };
        let pool = builder.build()?;
        pool.prestart_all_core()?;
        Ok(Millpond(pool))
    }

    fn run<F: FnOnce() + Send + 'static>(&self, f: F) {
        self.0.execute(f).expect(REFUSED);
    }

    fn submit<F: FnOnce() -> u64 + Send + 'static>(&self, f: F) -> Self::Handle {
        self.0.submit(f).expect(REFUSED)
    }

    fn join(&self, handle: Self::Handle) -> u64 {
        handle.join().expect("a task of the bench does not panic")
    }

    fn run_or_join(&self, handle: Self::Handle) -> u64 {
        let joined = handle.run_or_join();
        joined.expect("a task of the bench does not panic")
    }

    fn close(self) {
        self.0.close().unwrap();
    }
}
