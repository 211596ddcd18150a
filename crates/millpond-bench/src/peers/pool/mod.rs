//! A pool, as a workload uses it.
//!
//! | file | what |
//! |---|---|
//! | [`hand_rolled`] | threads that take boxed closures out of a channel: what many programs write |
//! | [`claiming`] | the same, with tasks that a waiter may run itself |
//! | [`awake`] | others, with a handle that waits awake for a moment, as ours does |
//! | [`shared`] | any of them, shared with its own tasks |
//! | [`millpond`], [`fork_join`] | ours |
//! | [`rayon`], [`tokio`], [`threadpool`], [`rusty_pool`], [`threadfin`], [`executors`], [`futures`] | crates |
//! | [`async_executor`], [`blocking`] | the executor behind smol, with threads to drive it, and its pool for closures |
//! | [`thread_per_task`] | no pool at all |
//!
//! Each is called as its users call it. A pool without handles of its own gets a channel for one
//! result, the fastest there is.
//!
//! # Left out
//!
//! `forte`. Of its versions Rust 1.95 builds 1.0.0-alpha.4 and older ones. There a task that is submitted
//! from outside the pool is run by its submitter, unless its heartbeat comes by just then: of a
//! hundred thousand tasks all were. So none of the questions of a pool can be asked. (Newer ones need
//! Rust 1.96. In an earlier measurement it hung in two of five runs; a candidate that may hang should be
//! a guest, which can be ended: see [`crate::peers::guest`].)

pub mod async_executor;
pub mod awake;
pub mod blocking;
pub mod claiming;
pub mod executors;
pub mod fork_join;
pub mod futures;
pub mod hand_rolled;
pub mod millpond;
pub mod rayon;
pub mod rusty_pool;
pub mod shared;
pub mod thread_per_task;
pub mod threadfin;
pub mod threadpool;
pub mod tokio;

use crate::harness::Absent;
use anyhow::Result;

/// The queue element of pools of boxed closures.
pub type Job = Box<dyn FnOnce() + Send>;

/// How many threads every pool has, where that is not the question.
pub const WORKERS: usize = 2;

/// The policy of a pool whose queue is full.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WhenFull {
    /// The submitter waits for room.
    Wait,
    /// The submitter runs the task.
    CallerRuns,
}

/// The kind of its queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Queue {
    /// It takes whatever comes.
    Unbounded,
    /// It holds so many tasks.
    Bounded(usize, WhenFull),
}

impl Queue {
    /// How many tasks it holds, if that is bounded.
    pub fn bound(self) -> Option<usize> {
        match self {
            Queue::Unbounded => None,
            Queue::Bounded(bound, _) => Some(bound),
        }
    }

    /// Whether the caller runs tasks that do not fit.
    pub fn caller_runs(self) -> bool {
        matches!(self, Queue::Bounded(_, WhenFull::CallerRuns))
    }
}

/// How long the threads of a pool live, and so how they are found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Threads {
    /// As long as the pool.
    Own,
    /// As long as the process. Their names begin like this.
    Kept(&'static str),
    /// As long as a task.
    PerTask,
}

/// A pool: of [`WORKERS`] threads, where nothing else is said.
pub trait Pool: Sized + Sync {
    /// Its name.
    const NAME: &'static str;

    /// How long its threads live.
    const THREADS: Threads = Threads::Own;

    /// The handle to wait for a task with.
    type Handle;

    /// Opens one.
    ///
    /// # Errors
    ///
    /// If it cannot be opened.
    fn open(queue: Queue) -> Result<Self> {
        Self::with_workers(WORKERS, queue)
    }

    /// Opens one of so many threads. A pool that cannot choose its number of threads implements
    /// [`open`](Self::open) instead, and is left out where another number is wanted.
    ///
    /// # Errors
    ///
    /// If it cannot be opened, or not with so many.
    fn with_workers(workers: usize, queue: Queue) -> Result<Self> {
        let _ = (workers, queue);
        Err(Absent("its number of threads is not ours to choose".into()).into())
    }

    /// Runs the closure, without a handle to wait for it.
    fn run<F: FnOnce() + Send + 'static>(&self, f: F);

    /// Runs the closure, and returns a handle to its result.
    fn submit<F: FnOnce() -> u64 + Send + 'static>(&self, f: F) -> Self::Handle;

    /// Waits for a result.
    fn join(&self, handle: Self::Handle) -> u64;

    /// Waits for a result, and runs the task here if it has not begun. Those that cannot just wait.
    fn run_or_join(&self, handle: Self::Handle) -> u64 {
        self.join(handle)
    }

    /// Waits for all results, and adds them up.
    fn join_all(&self, handles: &mut Vec<Self::Handle>) -> u64 {
        let results = handles.drain(..).map(|handle| self.join(handle));
        results.fold(0, u64::wrapping_add)
    }

    /// Runs what is still queued, and ends the threads.
    fn close(self);
}

/// A closure that sends its result, for pools without handles of their own.
fn with_handle<F>(f: F) -> (impl FnOnce() + Send + 'static, oneshot::Receiver<u64>)
where
    F: FnOnce() -> u64 + Send + 'static,
{
    let (sender, receiver) = oneshot::channel();
    let job = move || {
        // The receiver is gone only if the round has failed already.
        let _ = sender.send(f());
    };
    (job, receiver)
}

/// Waits for the result of [`with_handle`].
fn receive(handle: oneshot::Receiver<u64>) -> u64 {
    handle.recv().expect("a task of the bench does not panic")
}

/// Waits for all results in turn, and adds them up, for pools whose handles are futures.
async fn awaited<H: Future<Output = u64>>(handles: &mut Vec<H>) -> u64 {
    let mut sum = 0_u64;
    for handle in handles.drain(..) {
        sum = sum.wrapping_add(handle.await);
    }
    sum
}

#[cfg(test)]
mod tests;
