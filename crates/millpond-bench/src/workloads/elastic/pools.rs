//! The pools of this suite: those that have as many threads as their tasks need, up to a maximum.

use super::MAX_THREADS;
use anyhow::{Context, Result};
use millpond::executor::{ExecutorExt, Lifecycle};
use millpond::manage::Growth;
use millpond::pool::{Queue, ThreadPool};
use std::num::NonZeroUsize;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// A pool that grows to at most [`MAX_THREADS`] threads.
pub(super) trait ElasticPool: Sized {
    const NAME: &'static str;

    fn open() -> Result<Self>;

    /// Runs the closure some time, on some thread.
    fn run<F: FnOnce() + Send + 'static>(&self, f: F);

    /// All tasks have run by now.
    fn close(self);
}

const OPEN: &str = "an open pool of the bench rejects nothing";

/// Ours, which starts a thread for a task that finds none free.
pub(super) struct Grows(ThreadPool);

impl ElasticPool for Grows {
    const NAME: &'static str = "millpond, threads first";

    fn open() -> Result<Self> {
        let pool = ThreadPool::builder("bench").core(0).max(MAX_THREADS);
        let pool = pool.growth(Growth::ThreadsFirst);
        Ok(Grows(pool.queue(Queue::unbounded()).build()?))
    }

    fn run<F: FnOnce() + Send + 'static>(&self, f: F) {
        self.0.execute(f).expect(OPEN);
    }

    fn close(self) {
        self.0
            .close()
            .expect("no task of the bench closes its pool");
    }
}

/// Ours, with all its threads from the start.
pub(super) struct FromTheStart(ThreadPool);

impl ElasticPool for FromTheStart {
    const NAME: &'static str = "millpond, all threads from the start";

    fn open() -> Result<Self> {
        let pool = ThreadPool::builder("bench")
            .core(MAX_THREADS)
            .max(MAX_THREADS);
        let pool = pool.queue(Queue::unbounded()).build()?;
        pool.prestart_all_core()?;
        Ok(FromTheStart(pool))
    }

    fn run<F: FnOnce() + Send + 'static>(&self, f: F) {
        self.0.execute(f).expect(OPEN);
    }

    fn close(self) {
        self.0
            .close()
            .expect("no task of the bench closes its pool");
    }
}

/// `tokio::task::spawn_blocking`.
pub(super) struct SpawnBlocking(tokio::runtime::Runtime);

impl ElasticPool for SpawnBlocking {
    const NAME: &'static str = "tokio spawn_blocking";

    fn open() -> Result<Self> {
        let mut builder = tokio::runtime::Builder::new_current_thread();
        let runtime = builder.max_blocking_threads(MAX_THREADS).build()?;
        Ok(SpawnBlocking(runtime))
    }

    fn run<F: FnOnce() + Send + 'static>(&self, f: F) {
        drop(self.0.spawn_blocking(f));
    }

    fn close(self) {}
}

/// `blocking::unblock`. There is one in a process, and its threads stay.
pub(super) struct Blocking(
    #[expect(dead_code, reason = "it is held, not read")] MutexGuard<'static, ()>,
);

static ALONE: Mutex<()> = Mutex::new(());

impl ElasticPool for Blocking {
    const NAME: &'static str = "blocking unblock";

    fn open() -> Result<Self> {
        let alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        let max = NonZeroUsize::new(MAX_THREADS).context("a pool has threads")?;
        blocking::set_max_blocking_threads(max);
        Ok(Blocking(alone))
    }

    fn run<F: FnOnce() + Send + 'static>(&self, f: F) {
        blocking::unblock(f).detach();
    }

    fn close(self) {}
}

/// `rusty_pool`, with the core that it has unless told otherwise: a thread for each CPU.
pub(super) struct RustyPool(rusty_pool::ThreadPool);

impl ElasticPool for RustyPool {
    const NAME: &'static str = "rusty_pool";

    fn open() -> Result<Self> {
        let pool = rusty_pool::Builder::new().max_size(MAX_THREADS).build();
        Ok(RustyPool(pool))
    }

    fn run<F: FnOnce() + Send + 'static>(&self, f: F) {
        self.0.execute(f);
    }

    fn close(self) {
        self.0.shutdown_join();
    }
}

/// `std::thread::spawn`.
pub(super) struct ThreadPerTask;

impl ElasticPool for ThreadPerTask {
    const NAME: &'static str = "std::thread per task";

    fn open() -> Result<Self> {
        Ok(ThreadPerTask)
    }

    fn run<F: FnOnce() + Send + 'static>(&self, f: F) {
        drop(std::thread::spawn(f));
    }

    fn close(self) {}
}
