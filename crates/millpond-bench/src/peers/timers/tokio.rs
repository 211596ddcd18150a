//! `tokio`, in two ways: a task that sleeps until it is due, as most do it; and `DelayQueue` of
//! `tokio-util`, which one task owns, and which runs what is due where it is polled. Both have the same
//! wheel behind them, whose ticks are a millisecond.

use super::Timers;
use crate::peers::pool::WORKERS;
use anyhow::Result;
use std::fmt;
use std::future::poll_fn;
use std::time::Instant;
use tokio::runtime::{Builder, Runtime};
use tokio::task::JoinHandle;
use tokio::time::sleep_until;
use tokio_util::time::DelayQueue;
use tokio_util::time::delay_queue::Key;

/// A task that sleeps, on a runtime with several workers.
#[derive(Debug)]
pub struct Sleep(Runtime);

impl Timers for Sleep {
    const NAME: &'static str = "tokio sleep";
    type Ticket = JoinHandle<()>;

    fn open() -> Result<Self> {
        let mut builder = Builder::new_multi_thread();
        let builder = builder.worker_threads(WORKERS).enable_time();
        Ok(Sleep(builder.build()?))
    }

    fn schedule<F: FnOnce() + Send + 'static>(&mut self, due: Instant, task: F) -> Self::Ticket {
        self.0.spawn(async move {
            sleep_until(due.into()).await;
            task();
        })
    }

    fn cancel(&mut self, ticket: Self::Ticket) {
        ticket.abort();
    }

    fn close(self) {
        drop(self.0);
    }
}

type Job = Box<dyn FnOnce() + Send>;

/// `tokio_util::time::DelayQueue`, on a runtime of this one thread.
pub struct Queue {
    runtime: Runtime,
    queue: DelayQueue<Job>,
}

impl Timers for Queue {
    const NAME: &'static str = "tokio-util DelayQueue";
    type Ticket = Key;

    fn open() -> Result<Self> {
        let runtime = Builder::new_current_thread().enable_time().build()?;
        Ok(Queue {
            runtime,
            queue: DelayQueue::new(),
        })
    }

    fn schedule<F: FnOnce() + Send + 'static>(&mut self, due: Instant, task: F) -> Self::Ticket {
        // It makes a timer when it has its first element, and a timer belongs to a runtime.
        let _here = self.runtime.enter();
        self.queue.insert_at(Box::new(task), due.into())
    }

    fn cancel(&mut self, ticket: Self::Ticket) {
        let _here = self.runtime.enter();
        drop(self.queue.remove(&ticket));
    }

    fn drive(&mut self, tasks: u64) {
        let Queue { runtime, queue } = self;
        runtime.block_on(async {
            for _ in 0..tasks {
                let Some(due) = poll_fn(|context| queue.poll_expired(context)).await else {
                    return;
                };
                (due.into_inner())();
            }
        });
    }

    fn close(self) {
        let _here = self.runtime.enter();
        drop(self.queue);
    }
}

impl fmt::Debug for Queue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Queue").finish_non_exhaustive()
    }
}
