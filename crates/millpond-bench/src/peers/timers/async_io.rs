//! `async-io`: a timer that a task awaits, on an `async-executor` that is driven as in the suite `pool`.
//!
//! The timers themselves are kept by a reactor of the whole process. It has a thread of its own, which
//! nobody can end, and whose CPU time is in no figure.

use super::Timers;
use crate::peers::pool::WORKERS;
use anyhow::Result;
use async_executor::{Executor, Task};
use async_io::Timer;
use futures_lite::future::block_on;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Instant;

/// `async_io::Timer`, awaited by a task.
#[derive(Debug)]
pub struct AsyncIo {
    executor: Arc<Executor<'static>>,
    /// Dropped to tell the threads to stop.
    open: flume::Sender<()>,
    threads: Vec<JoinHandle<()>>,
}

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
    type Ticket = Ticket;

    fn open() -> Result<Self> {
        let executor = Arc::new(Executor::new());
        let (open, closed) = flume::bounded::<()>(1);
        let drive = || {
            let (executor, closed) = (Arc::clone(&executor), closed.clone());
            std::thread::spawn(move || {
                // Nothing is ever sent: this ends when the sender is gone.
                let _ = block_on(executor.run(closed.recv_async()));
            })
        };
        let threads = (0..WORKERS).map(|_| drive()).collect();
        Ok(AsyncIo {
            executor,
            open,
            threads,
        })
    }

    fn schedule<F: FnOnce() + Send + 'static>(&mut self, due: Instant, task: F) -> Self::Ticket {
        let task = self.executor.spawn(async move {
            Timer::at(due).await;
            task();
        });
        Ticket(Some(task))
    }

    fn cancel(&mut self, mut ticket: Self::Ticket) {
        // Dropping the task cancels it; who runs the executor drops what it was to do.
        drop(ticket.0.take());
    }

    fn close(self) {
        drop(self.open);
        for thread in self.threads {
            thread.join().expect("a task of the bench does not panic");
        }
    }
}
