//! Our fork-join pool, with tasks that nobody joins: [`ForkJoinPool`].

use super::{Pool, Queue};
use anyhow::Result;
use millpond::executor::{ExecutorExt, Lifecycle};
use millpond::forkjoin::ForkJoinPool;
use millpond::task::TaskHandle;

/// [`ForkJoinPool`], in its mode for tasks that are never joined, which takes the oldest first. It keeps metrics, as it
/// does by default.
#[derive(Debug)]
pub struct ForkJoin(ForkJoinPool);

const REFUSED: &str = "an open pool of the bench refuses nothing";

impl Pool for ForkJoin {
    const NAME: &'static str = "millpond fork-join";
    type Handle = TaskHandle<u64>;

    fn with_workers(workers: usize, _unbounded: Queue) -> Result<Self> {
        let pool = ForkJoinPool::builder("bench").parallelism(workers);
        Ok(ForkJoin(pool.fifo(true).build()?))
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

    fn close(self) {
        self.0.close().unwrap();
    }
}
