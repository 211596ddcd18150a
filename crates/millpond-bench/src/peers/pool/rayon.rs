//! `rayon`: a pool of its own, with tasks submitted from outside with `spawn`. (`rayon` re-exports it from
//! `rayon-core`.)

use super::{Pool, Queue, receive, with_handle};
use anyhow::Result;
use rayon_core::{ThreadPool, ThreadPoolBuilder};

/// `rayon::ThreadPool`.
#[derive(Debug)]
pub struct Rayon(ThreadPool);

impl Pool for Rayon {
    const NAME: &'static str = "rayon spawn";
    type Handle = oneshot::Receiver<u64>;

    fn with_workers(workers: usize, _unbounded: Queue) -> Result<Self> {
        let pool = ThreadPoolBuilder::new().num_threads(workers).build()?;
        Ok(Rayon(pool))
    }

    fn run<F: FnOnce() + Send + 'static>(&self, f: F) {
        self.0.spawn(f);
    }

    fn submit<F: FnOnce() -> u64 + Send + 'static>(&self, f: F) -> Self::Handle {
        let (job, handle) = with_handle(f);
        self.0.spawn(job);
        handle
    }

    fn join(&self, handle: Self::Handle) -> u64 {
        receive(handle)
    }

    /// Its threads end by themselves soon after.
    fn close(self) {
        drop(self.0);
    }
}
