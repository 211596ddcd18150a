//! `tokio`'s blocking pool behind a semaphore: a task that gets no permit at once is rejected. What many servers have.

use super::{End, PATIENCE, Rushed};
use crate::peers::pool::{Job, WORKERS};
use anyhow::Result;
use std::sync::Arc;
use std::time::Instant;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::Semaphore;

/// `spawn_blocking`, with so many tasks at once at most: those that run, and those that wait for a thread.
#[derive(Debug)]
pub struct Limited {
    runtime: Runtime,
    permits: Arc<Semaphore>,
    taken_in: Vec<(usize, oneshot::Receiver<()>)>,
}

impl Limited {
    /// Opens one with so many permits.
    ///
    /// # Errors
    ///
    /// If the runtime cannot be built.
    pub fn open(permits: usize) -> Result<Self> {
        let mut builder = Builder::new_current_thread();
        Ok(Limited {
            runtime: builder.max_blocking_threads(WORKERS).build()?,
            permits: Arc::new(Semaphore::new(permits)),
            taken_in: Vec::new(),
        })
    }
}

impl Rushed for Limited {
    fn offer(&mut self, number: usize, _came: Instant, task: Job) -> bool {
        let Ok(permit) = Arc::clone(&self.permits).try_acquire_owned() else {
            return false;
        };
        let (over, is_over) = oneshot::channel();
        drop(self.runtime.spawn_blocking(move || {
            task();
            drop(permit);
            // The receiver is gone only if the round has failed already.
            let _ = over.send(());
        }));
        self.taken_in.push((number, is_over));
        true
    }

    fn ends(&mut self) -> Vec<(usize, End)> {
        let until = Instant::now() + PATIENCE;
        let end = |(number, is_over): (usize, oneshot::Receiver<()>)| {
            let left = until.saturating_duration_since(Instant::now());
            is_over.recv_timeout(left).ok()?;
            Some((number, End::Answered))
        };
        self.taken_in.drain(..).filter_map(end).collect()
    }

    fn close(self: Box<Self>) {
        drop(self.runtime);
    }
}
