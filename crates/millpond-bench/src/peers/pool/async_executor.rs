//! `async-executor`, driven by threads as its documentation does it: each runs the executor until it is
//! asked to stop. Tasks are futures that are ready at once.

use super::{Pool, Queue, awaited};
use anyhow::Result;
use async_executor::{Executor, Task};
use futures_lite::future::block_on;
use std::sync::Arc;
use std::thread::JoinHandle;

/// `async_executor::Executor`, and the threads that drive it.
#[derive(Debug)]
pub struct AsyncExecutor {
    executor: Arc<Executor<'static>>,
    /// Dropped to tell the threads to stop.
    open: flume::Sender<()>,
    threads: Vec<JoinHandle<()>>,
}

impl AsyncExecutor {
    /// The executor that the threads drive.
    pub(in crate::peers) fn executor(&self) -> &Executor<'static> {
        &self.executor
    }
}

impl Pool for AsyncExecutor {
    const NAME: &'static str = "async-executor";
    type Handle = Task<u64>;

    fn with_workers(workers: usize, _unbounded: Queue) -> Result<Self> {
        let executor = Arc::new(Executor::new());
        let (open, closed) = flume::bounded::<()>(1);
        let drive = || {
            let (executor, closed) = (Arc::clone(&executor), closed.clone());
            std::thread::spawn(move || {
                // Nothing is ever sent: this ends when the sender is gone.
                let _ = block_on(executor.run(closed.recv_async()));
            })
        };
        let threads = (0..workers).map(|_| drive()).collect();
        Ok(AsyncExecutor {
            executor,
            open,
            threads,
        })
    }

    fn run<F: FnOnce() + Send + 'static>(&self, f: F) {
        self.executor.spawn(async move { f() }).detach();
    }

    fn submit<F: FnOnce() -> u64 + Send + 'static>(&self, f: F) -> Self::Handle {
        self.executor.spawn(async move { f() })
    }

    fn join(&self, handle: Self::Handle) -> u64 {
        block_on(handle)
    }

    /// Entered once for all of them.
    fn join_all(&self, handles: &mut Vec<Self::Handle>) -> u64 {
        block_on(awaited(handles))
    }

    fn close(self) {
        drop(self.open);
        for thread in self.threads {
            thread.join().expect("a task of the bench does not panic");
        }
    }
}
