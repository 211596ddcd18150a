//! A thread for each task: what a pool is there to save.
//!
//! No program starts a million threads at once, and neither does this: before it starts one more than
//! [`MOST_ALIVE`] it waits for the oldest.

use super::{Pool, Queue, Threads};
use anyhow::Result;
use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};
use std::thread::JoinHandle;

/// The maximum number of threads that have not been joined yet.
pub const MOST_ALIVE: usize = 16;

/// `std::thread::spawn`.
#[derive(Debug, Default)]
pub struct ThreadPerTask {
    /// Threads that run or have run a task without a handle.
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
