//! `async-io`: a timer that a task awaits, on an `async-executor` that is driven as in the suite `pool`.
//!
//! The timers themselves are kept by a reactor of the whole process. It has a thread of its own, which
//! cannot be ended.

use super::Timers;
use crate::peers::pool::async_executor::AsyncExecutor;
use crate::peers::pool::{Pool, Queue};
use anyhow::Result;
use async_executor::Task;
use async_io::Timer;
use std::time::Instant;

/// `async_io::Timer`, awaited by a task.
#[derive(Debug)]
pub struct AsyncIo(AsyncExecutor);

/// A task that goes on when this is dropped, as those of the others do.
#[derive(Debug)]
pub struct Ticket(Option<Task<()>>);

impl Drop for Ticket {
    fn drop(&mut self) {
        if let Some(task) = self.0.take() {
            task.detach();
        }
    }
}

impl Timers for AsyncIo {
    const NAME: &'static str = "async-io timer";
    const BESIDE: Option<&'static str> = Some("async-io");
    type Ticket = Ticket;

    fn open() -> Result<Self> {
        AsyncExecutor::open(Queue::Unbounded).map(AsyncIo)
    }

    fn schedule<F: FnOnce() + Send + 'static>(&mut self, due: Instant, task: F) -> Self::Ticket {
        let task = self.0.executor().spawn(async move {
            Timer::at(due).await;
            task();
        });
        Ticket(Some(task))
    }

    fn cancel(&mut self, mut ticket: Self::Ticket) {
        // Dropping the task cancels it; the thread that runs the executor drops its future.
        drop(ticket.0.take());
    }

    fn close(self) {
        self.0.close();
    }
}
