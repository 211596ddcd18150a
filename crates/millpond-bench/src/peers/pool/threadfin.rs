//! `threadfin`.

use super::{Pool, Queue};
use anyhow::Result;
use threadfin::{Task, ThreadPool};

/// `threadfin::ThreadPool`. Where its queue has a bound it waits for room by itself, and `try_execute` gives
/// a task back that does not fit.
#[derive(Debug)]
pub struct Threadfin {
    pool: ThreadPool,
    caller_runs: bool,
}

impl Pool for Threadfin {
    const NAME: &'static str = "threadfin";
    type Handle = Task<u64>;

    fn with_workers(workers: usize, queue: Queue) -> Result<Self> {
        let builder = ThreadPool::builder().size(workers);
        let builder = match queue.bound() {
            Some(bound) => builder.queue_limit(bound),
            None => builder,
        };
        Ok(Threadfin {
            pool: builder.build(),
            caller_runs: queue.caller_runs(),
        })
    }

    fn run<F: FnOnce() + Send + 'static>(&self, f: F) {
        if !self.caller_runs {
            drop(self.pool.execute(f));
        } else if let Err(full) = self.pool.try_execute(f) {
            full.into_inner()();
        }
    }

    /// No caller of it waits for what it ran itself: where the caller runs tasks, none has a handle.
    fn submit<F: FnOnce() -> u64 + Send + 'static>(&self, f: F) -> Self::Handle {
        self.pool.execute(f)
    }

    fn join(&self, handle: Self::Handle) -> u64 {
        handle.join()
    }

    fn close(self) {
        self.pool.join();
    }
}
