//! A pool that its own tasks can use: a reference to it that they carry along.

use super::{Pool, Queue, Threads};
use anyhow::Result;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The pool, shared with its tasks.
#[derive(Debug)]
pub struct Shared<P>(Arc<P>);

/// A task that has counted itself lets go of its reference a moment later.
const PATIENCE: Duration = Duration::from_secs(5);

impl<P> Clone for Shared<P> {
    fn clone(&self) -> Self {
        Shared(Arc::clone(&self.0))
    }
}

impl<P: Pool + Send> Pool for Shared<P> {
    const NAME: &'static str = P::NAME;
    const THREADS: Threads = P::THREADS;
    type Handle = P::Handle;

    fn with_workers(workers: usize, queue: Queue) -> Result<Self> {
        P::with_workers(workers, queue).map(|pool| Shared(Arc::new(pool)))
    }

    fn run<F: FnOnce() + Send + 'static>(&self, f: F) {
        self.0.run(f);
    }

    fn submit<F: FnOnce() -> u64 + Send + 'static>(&self, f: F) -> Self::Handle {
        self.0.submit(f)
    }

    fn join(&self, handle: Self::Handle) -> u64 {
        self.0.join(handle)
    }

    fn join_all(&self, handles: &mut Vec<Self::Handle>) -> u64 {
        self.0.join_all(handles)
    }

    /// # Panics
    ///
    /// If a task holds on to the pool for ever.
    fn close(self) {
        let start = Instant::now();
        let mut shared = self.0;
        loop {
            match Arc::try_unwrap(shared) {
                Ok(pool) => return pool.close(),
                Err(still) => shared = still,
            }
            assert!(
                start.elapsed() < PATIENCE,
                "a task still holds its pool, {}",
                P::NAME
            );
            std::thread::yield_now();
        }
    }
}
