//! `tokio`, in the two ways in which it is used as a pool: `spawn_blocking`, for closures, and `spawn`
//! on its workers, for futures that are ready at once.

use super::{Pool, Queue};
use anyhow::Result;
use tokio::runtime::{Builder, Runtime};
use tokio::task::JoinHandle;

/// `spawn_blocking`, with as many threads for it as all pools have.
#[derive(Debug)]
pub struct SpawnBlocking(Runtime);

/// `spawn`, on a runtime with several workers.
#[derive(Debug)]
pub struct Spawn(Runtime);

const PANICKED: &str = "a task of the bench does not panic";

fn join(runtime: &Runtime, handle: JoinHandle<u64>) -> u64 {
    runtime.block_on(handle).expect(PANICKED)
}

/// The runtime is entered once for all of them.
fn join_all(runtime: &Runtime, handles: &mut Vec<JoinHandle<u64>>) -> u64 {
    runtime.block_on(async {
        let mut sum = 0_u64;
        for handle in handles.drain(..) {
            sum = sum.wrapping_add(handle.await.expect(PANICKED));
        }
        sum
    })
}

impl Pool for SpawnBlocking {
    const NAME: &'static str = "tokio spawn_blocking";
    type Handle = JoinHandle<u64>;

    fn with_workers(workers: usize, _unbounded: Queue) -> Result<Self> {
        let mut builder = Builder::new_current_thread();
        Ok(SpawnBlocking(
            builder.max_blocking_threads(workers).build()?,
        ))
    }

    fn run<F: FnOnce() + Send + 'static>(&self, f: F) {
        drop(self.0.spawn_blocking(f));
    }

    fn submit<F: FnOnce() -> u64 + Send + 'static>(&self, f: F) -> Self::Handle {
        self.0.spawn_blocking(f)
    }

    fn join(&self, handle: Self::Handle) -> u64 {
        join(&self.0, handle)
    }

    fn join_all(&self, handles: &mut Vec<Self::Handle>) -> u64 {
        join_all(&self.0, handles)
    }

    fn close(self) {
        drop(self.0);
    }
}

impl Pool for Spawn {
    const NAME: &'static str = "tokio spawn";
    type Handle = JoinHandle<u64>;

    fn with_workers(workers: usize, _unbounded: Queue) -> Result<Self> {
        let mut builder = Builder::new_multi_thread();
        Ok(Spawn(builder.worker_threads(workers).build()?))
    }

    fn run<F: FnOnce() + Send + 'static>(&self, f: F) {
        drop(self.0.spawn(async move { f() }));
    }

    fn submit<F: FnOnce() -> u64 + Send + 'static>(&self, f: F) -> Self::Handle {
        self.0.spawn(async move { f() })
    }

    fn join(&self, handle: Self::Handle) -> u64 {
        join(&self.0, handle)
    }

    fn join_all(&self, handles: &mut Vec<Self::Handle>) -> u64 {
        join_all(&self.0, handles)
    }

    fn close(self) {
        drop(self.0);
    }
}
