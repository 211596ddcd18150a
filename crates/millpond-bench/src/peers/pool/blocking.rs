//! `blocking`: the pool that smol runs closures on. There is one in a process, and it stays: its threads
//! are told apart from others by their names, and one candidate at a time may open it.

use super::{Pool, Queue, Threads, WORKERS, awaited};
use anyhow::{Context, Result};
use blocking::{Task, set_max_blocking_threads, unblock};
use futures_lite::future::block_on;
use std::num::NonZeroUsize;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// `blocking::unblock`, with as many threads for it as all pools have.
#[derive(Debug)]
pub struct Blocking(#[expect(dead_code, reason = "it is held, not read")] MutexGuard<'static, ()>);

static ALONE: Mutex<()> = Mutex::new(());

impl Pool for Blocking {
    const NAME: &'static str = "blocking unblock";
    const THREADS: Threads = Threads::Kept("blocking-");
    type Handle = Task<u64>;

    /// The number of its threads can be set, but those that are there stay.
    fn open(_unbounded: Queue) -> Result<Self> {
        let alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        set_max_blocking_threads(NonZeroUsize::new(WORKERS).context("a pool has workers")?);
        Ok(Blocking(alone))
    }

    fn run<F: FnOnce() + Send + 'static>(&self, f: F) {
        unblock(f).detach();
    }

    fn submit<F: FnOnce() -> u64 + Send + 'static>(&self, f: F) -> Self::Handle {
        unblock(f)
    }

    fn join(&self, handle: Self::Handle) -> u64 {
        block_on(handle)
    }

    /// Entered once for all of them.
    fn join_all(&self, handles: &mut Vec<Self::Handle>) -> u64 {
        block_on(awaited(handles))
    }

    /// All tasks of the bench have run by now, and its threads stay.
    fn close(self) {}
}
