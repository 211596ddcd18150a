//! `futures`: its `ThreadPool`, with futures that are ready at once.

use super::{Pool, Queue, awaited};
use anyhow::Result;
use futures::executor::{ThreadPool, block_on};
use futures::future::RemoteHandle;
use futures::task::SpawnExt;

/// `futures::executor::ThreadPool`.
#[derive(Debug)]
pub struct Futures(ThreadPool);

impl Pool for Futures {
    const NAME: &'static str = "futures ThreadPool";
    type Handle = RemoteHandle<u64>;

    fn with_workers(workers: usize, _unbounded: Queue) -> Result<Self> {
        Ok(Futures(ThreadPool::builder().pool_size(workers).create()?))
    }

    fn run<F: FnOnce() + Send + 'static>(&self, f: F) {
        self.0.spawn_ok(async move { f() });
    }

    fn submit<F: FnOnce() -> u64 + Send + 'static>(&self, f: F) -> Self::Handle {
        let spawned = self.0.spawn_with_handle(async move { f() });
        spawned.expect("an open pool refuses nothing")
    }

    fn join(&self, handle: Self::Handle) -> u64 {
        block_on(handle)
    }

    /// Entered once for all of them.
    fn join_all(&self, handles: &mut Vec<Self::Handle>) -> u64 {
        block_on(awaited(handles))
    }

    /// Its threads end by themselves soon after.
    fn close(self) {
        drop(self.0);
    }
}
