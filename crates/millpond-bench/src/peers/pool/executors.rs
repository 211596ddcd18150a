//! `executors`: its work-stealing pool. (Its others are a `crossbeam-channel` and a `threadpool` inside,
//! which are here by themselves.)

use super::{Pool, Queue, receive, with_handle};
use anyhow::Result;
use executors::Executor;
use executors::crossbeam_workstealing_pool::{ThreadPool, small_pool};
use executors::parker::{SmallThreadData, StaticParker};
use std::fmt;

/// `executors::crossbeam_workstealing_pool`, of its kind for up to 32 threads.
pub struct Executors(ThreadPool<StaticParker<SmallThreadData>>);

impl Pool for Executors {
    const NAME: &'static str = "executors";
    type Handle = oneshot::Receiver<u64>;

    fn with_workers(workers: usize, _unbounded: Queue) -> Result<Self> {
        Ok(Executors(small_pool(workers)))
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

    fn close(self) {
        // It waits for some seconds, and says if that was not enough. Then its threads are late, and
        // opening the next pool waits for them, as for those of pools that have no way to wait at all.
        let _ = self.0.shutdown();
    }
}

impl fmt::Debug for Executors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Executors").finish()
    }
}
