//! A scheduler that a user may build of our parts: [`DelayQueue`], with threads that take tasks out of it.
//!
//! Cancelling a task empties it. Its tombstone stays in the queue until it is due, as it does in
//! `scheduled-thread-pool` and, by default, in Java.

use super::Timers;
use crate::peers::pool::WORKERS;
use anyhow::Result;
use millpond::queue::{BlockingQueue, DelayQueue, QueueExt};
use millpond::task::{self, Task, TaskHandle};
use std::fmt;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Instant;

/// Nothing, as an element, is the end of a thread.
type Element = Option<Task>;

/// A [`DelayQueue`] of tasks, and threads.
pub struct Delayed {
    queue: Arc<DelayQueue<Element>>,
    threads: Vec<JoinHandle<()>>,
}

const REFUSED: &str = "a queue without a bound refuses nothing";

impl Timers for Delayed {
    const NAME: &'static str = "millpond delay queue";
    type Ticket = TaskHandle<()>;

    fn open() -> Result<Self> {
        let queue: Arc<DelayQueue<Element>> = Arc::new(DelayQueue::new());
        let work = |queue: Arc<DelayQueue<Element>>| {
            std::thread::spawn(move || {
                while let Ok(Some(task)) = queue.take() {
                    // It has a handle, which knows how it went.
                    let _ = task.run();
                }
            })
        };
        let threads = (0..WORKERS).map(|_| work(Arc::clone(&queue))).collect();
        Ok(Delayed { queue, threads })
    }

    fn schedule<F: FnOnce() + Send + 'static>(&mut self, due: Instant, task: F) -> Self::Ticket {
        let (task, handle) = task::new(task);
        self.queue.offer_at(Some(task), due).expect(REFUSED);
        handle
    }

    fn cancel(&mut self, ticket: Self::Ticket) {
        ticket.cancel();
    }

    fn close(self) {
        self.queue.clear();
        for _ in &self.threads {
            self.queue.offer(None).expect(REFUSED);
        }
        for thread in self.threads {
            thread.join().expect("a worker of the bench does not panic");
        }
    }
}

impl fmt::Debug for Delayed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Delayed").finish_non_exhaustive()
    }
}
