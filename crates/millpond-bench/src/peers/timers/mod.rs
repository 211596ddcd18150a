//! What runs a task at a time, to a workload.
//!
//! | file | who |
//! |---|---|
//! | [`millpond`] | ours: a delay queue, and threads that take tasks out of it |
//! | [`scheduled_thread_pool`] | the crate of that name |
//! | [`tokio`] | a task that sleeps; and the `DelayQueue` of `tokio-util` |
//!
//! Each is called as its users call it, and has [`WORKERS`](super::pool::WORKERS) threads.

pub mod millpond;
pub mod scheduled_thread_pool;
pub mod tokio;

use anyhow::Result;
use std::time::Instant;

/// Runs tasks when they are due.
pub trait Timers: Sized {
    /// What it is called.
    const NAME: &'static str;

    /// What a task is cancelled with.
    type Ticket;

    /// Opens one.
    ///
    /// # Errors
    ///
    /// If it cannot be opened.
    fn open() -> Result<Self>;

    /// Has the task run at `due`.
    fn schedule<F: FnOnce() + Send + 'static>(&mut self, due: Instant, task: F) -> Self::Ticket;

    /// Keeps a task from running that has not begun.
    fn cancel(&mut self, ticket: Self::Ticket);

    /// Runs so many tasks, where nobody does who was not asked to. Most have threads for that.
    fn drive(&mut self, tasks: u64) {
        let _ = tasks;
    }

    /// Forgets what is not due yet, and ends the threads.
    fn close(self);
}

#[cfg(test)]
mod tests;
