//! `scheduled-thread-pool`.

use super::Timers;
use crate::peers::pool::WORKERS;
use anyhow::Result;
use scheduled_thread_pool::{JobHandle, OnPoolDropBehavior, ScheduledThreadPool};
use std::fmt;
use std::time::Instant;

/// `scheduled_thread_pool::ScheduledThreadPool`, set to drop tasks that are not due when it is dropped.
pub struct Scheduled(ScheduledThreadPool);

impl Timers for Scheduled {
    const NAME: &'static str = "scheduled-thread-pool";
    type Ticket = JobHandle;

    fn open() -> Result<Self> {
        let builder = ScheduledThreadPool::builder()
            .num_threads(WORKERS)
            .on_drop_behavior(OnPoolDropBehavior::DiscardPendingScheduled);
        Ok(Scheduled(builder.build()))
    }

    fn schedule<F: FnOnce() + Send + 'static>(&mut self, due: Instant, task: F) -> Self::Ticket {
        let delay = due.saturating_duration_since(Instant::now());
        self.0.execute_after(delay, task)
    }

    fn cancel(&mut self, ticket: Self::Ticket) {
        ticket.cancel();
    }

    /// Its threads end by themselves soon after.
    fn close(self) {
        drop(self.0);
    }
}

impl fmt::Debug for Scheduled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Scheduled").finish_non_exhaustive()
    }
}
