//! `threadpool`.

use super::{Pool, Queue, receive, with_handle};
use anyhow::Result;
use threadpool::ThreadPool;

/// `threadpool::ThreadPool`.
#[derive(Debug)]
pub struct Threadpool(ThreadPool);

impl Pool for Threadpool {
    const NAME: &'static str = "threadpool";
    type Handle = oneshot::Receiver<u64>;

    fn with_workers(workers: usize, _unbounded: Queue) -> Result<Self> {
        Ok(Threadpool(ThreadPool::new(workers)))
    }

    fn run<F: FnOnce() + Send + 'static>(&self, f: F) {
        self.0.execute(f);
    }

    fn submit<F: FnOnce() -> u64 + Send + 'static>(&self, f: F) -> Self::Handle {
        let (job, handle) = with_handle(f);
        self.0.execute(job);
        handle
    }

    fn join(&self, handle: Self::Handle) -> u64 {
        receive(handle)
    }

    /// Its threads end by themselves soon after.
    fn close(self) {
        self.0.join();
    }
}
