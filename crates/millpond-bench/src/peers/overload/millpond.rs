//! Ours: [`ThreadPool`], with one kind of protection at a time.

use super::{BOUND, End, PATIENCE, Rushed};
use crate::peers::pool::{Job, WORKERS};
use anyhow::Result;
use millpond::executor::{ExecutorExt, Lifecycle};
use millpond::manage::{CoDel, OverloadOrder};
use millpond::pool::{Queue, RejectionPolicy, ThreadPool};
use millpond::task::{CancelReason, TaskError, TaskHandle, TaskSpec};
use millpond::time::Deadline;
use std::time::{Duration, Instant};

/// The protection of a pool against overload, besides rejecting tasks that do not fit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protection {
    /// Nothing.
    Nothing,
    /// Every task has a deadline, so long after it came.
    Deadlines(Duration),
    /// No task may wait for longer.
    MaxQueueWait(Duration),
    /// CoDel, as it is by default.
    CoDel,
    /// The same, and then the newest come first.
    CoDelNewestFirst,
}

/// [`ThreadPool`] in a rush.
#[derive(Debug)]
pub struct Millpond {
    pool: ThreadPool,
    deadline: Option<Duration>,
    taken_in: Vec<(usize, TaskHandle<()>)>,
}

impl Millpond {
    /// Opens one.
    ///
    /// # Errors
    ///
    /// If it cannot start its workers.
    pub fn open(protection: Protection) -> Result<Self> {
        let builder = ThreadPool::builder("rush")
            .core(WORKERS)
            .max(WORKERS)
            .queue(Queue::bounded(BOUND))
            .rejection(RejectionPolicy::Abort);
        let mut deadline = None;
        let builder = match protection {
            Protection::Nothing => builder,
            Protection::Deadlines(after) => {
                deadline = Some(after);
                builder
            }
            Protection::MaxQueueWait(most) => builder.max_queue_wait(most),
            Protection::CoDel => builder.shedding(CoDel::default()),
            Protection::CoDelNewestFirst => builder
                .shedding(CoDel::default())
                .overload_order(OverloadOrder::NewestFirst),
        };
        let pool = builder.build()?;
        pool.prestart_all_core()?;
        Ok(Millpond {
            pool,
            deadline,
            taken_in: Vec::new(),
        })
    }
}

impl Rushed for Millpond {
    fn offer(&mut self, number: usize, came: Instant, task: Job) -> bool {
        let mut spec = TaskSpec::new();
        if let Some(after) = self.deadline {
            spec = spec.deadline(Deadline::after(came, after));
        }
        let handle = self.pool.submit_with(spec, task);
        let is_in = handle.is_ok();
        self.taken_in
            .extend(handle.ok().map(|handle| (number, handle)));
        is_in
    }

    fn ends(&mut self) -> Vec<(usize, End)> {
        let until = Deadline::after(Instant::now(), PATIENCE);
        let taken_in = self.taken_in.drain(..);
        let end = |(number, mut handle): (usize, TaskHandle<()>)| {
            let end = match handle.join_until(until) {
                Ok(()) => End::Answered,
                Err(TaskError::Cancelled(CancelReason::Expired)) => End::Expired,
                Err(TaskError::Cancelled(CancelReason::Shed | CancelReason::WaitedTooLong)) => {
                    End::Shed
                }
                // No task is cancelled here, and none panics.
                Err(_) => return None,
            };
            Some((number, end))
        };
        taken_in.filter_map(end).collect()
    }

    fn close(self: Box<Self>) {
        self.pool.close().unwrap();
    }
}
