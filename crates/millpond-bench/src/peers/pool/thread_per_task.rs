//! A thread for each task: what a pool is there to save.
//!
//! Nobody starts a million threads at once, and neither does this: before it starts one more than
//! [`MOST_ALIVE`] it waits for the oldest.

use super::{Pool, Queue, Threads};
use anyhow::Result;
use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};
use std::thread::JoinHandle;

/// So many threads at most that nobody has waited for yet.
pub const MOST_ALIVE: usize = 16;

/// `std::thread::spawn`.
#[derive(Debug, Default)]
pub struct ThreadPerTask {
    /// Those that run or have run a task that nobody waits for.
    unwaited: Mutex<VecDeque<JoinHandle<()>>>,
}

const NO_PANIC: &str = "a task of the bench does not panic";

impl ThreadPerTask {
    /// The oldest, if there are too many.
    fn keep(&self, thread: JoinHandle<()>) -> Option<JoinHandle<()>> {
        let unwaited = self.unwaited.lock();
        let mut unwaited = unwaited.unwrap_or_else(PoisonError::into_inner);
        unwaited.push_back(thread);
        (unwaited.len() >= MOST_ALIVE).then(|| unwaited.pop_front())?
    }
}

impl Pool for ThreadPerTask {
    const NAME: &'static str = "std::thread per task";
    const THREADS: Threads = Threads::PerTask;
    type Handle = JoinHandle<u64>;

    fn open(_unbounded: Queue) -> Result<Self> {
        Ok(ThreadPerTask::default())
    }

    fn run<F: FnOnce() + Send + 'static>(&self, f: F) {
        if let Some(oldest) = self.keep(std::thread::spawn(f)) {
            oldest.join().expect(NO_PANIC);
        }
    }

    fn submit<F: FnOnce() -> u64 + Send + 'static>(&self, f: F) -> Self::Handle {
        std::thread::spawn(f)
    }

    fn join(&self, handle: Self::Handle) -> u64 {
        handle.join().expect(NO_PANIC)
    }

    fn close(self) {
        let unwaited = self.unwaited.into_inner();
        for thread in unwaited.unwrap_or_else(PoisonError::into_inner) {
            thread.join().expect(NO_PANIC);
        }
    }
}
