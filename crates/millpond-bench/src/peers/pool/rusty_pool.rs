//! `rusty_pool`.

use super::{Pool, Queue};
use anyhow::Result;
use rusty_pool::{Builder, JoinHandle, ThreadPool};
use std::fmt;

/// `rusty_pool::ThreadPool`.
pub struct RustyPool(ThreadPool);

impl Pool for RustyPool {
    const NAME: &'static str = "rusty_pool";
    type Handle = JoinHandle<u64>;

    fn with_workers(workers: usize, _unbounded: Queue) -> Result<Self> {
        let sized = Builder::new().core_size(workers).max_size(workers);
        Ok(RustyPool(sized.build()))
    }

    fn run<F: FnOnce() + Send + 'static>(&self, f: F) {
        self.0.execute(f);
    }

    fn submit<F: FnOnce() -> u64 + Send + 'static>(&self, f: F) -> Self::Handle {
        self.0.evaluate(f)
    }

    fn join(&self, handle: Self::Handle) -> u64 {
        handle.await_complete()
    }

    fn close(self) {
        self.0.shutdown_join();
    }
}

impl fmt::Debug for RustyPool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("RustyPool").finish()
    }
}
