//! A scheduler, as a workload uses it.
//!
//! | file | what |
//! |---|---|
//! | [`millpond`] | ours: a scheduled pool |
//! | [`delay_queue`] | our delay queue, and threads that take tasks out of it |
//! | [`scheduled_thread_pool`] | the crate of that name |
//! | [`tokio`] | a task that sleeps; and the `DelayQueue` of `tokio-util` |
//! | [`async_io`] | a task that awaits a timer |
//!
//! Each is called as its users call it, and has [`WORKERS`](super::pool::WORKERS) threads.

pub mod async_io;
pub mod delay_queue;
pub mod millpond;
pub mod scheduled_thread_pool;
pub mod tokio;

use crate::usage::Usage;
use anyhow::Result;
use std::time::Instant;

/// Runs tasks when they are due.
pub trait Timers: Sized {
    /// Its name.
    const NAME: &'static str;

    /// The common beginning of the names of threads that it shares with the whole process, if there are some: they
    /// work for it, too, and exist when it is idle.
    const BESIDE: Option<&'static str> = None;

    /// The handle to cancel a task with.
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

    /// Runs so many tasks, for a scheduler without threads of its own. Most have threads for that.
    fn drive(&mut self, tasks: u64) {
        let _ = tasks;
    }

    /// Forgets what is not due yet, and ends the threads.
    fn close(self);

    /// The usage of the threads that it shares with others. They should be asleep: see
    /// [`crate::usage`].
    fn used_beside() -> Usage {
        let names = Self::BESIDE;
        names.map_or(Usage::NONE, |names| {
            Usage::of_process(std::process::id(), names)
        })
    }
}

#[cfg(test)]
mod tests;
