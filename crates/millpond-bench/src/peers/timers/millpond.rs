//! Ours: [`ScheduledPool`].

use super::Timers;
use crate::peers::pool::WORKERS;
use crate::pool_threads::TIMER;
use anyhow::{Result, ensure};
use millpond::executor::Lifecycle;
use millpond::pool::ThreadPool;
use millpond::preset;
use millpond::schedule::{Scheduled, ScheduledPool};
use std::time::{Duration, Instant};

/// [`ScheduledPool`] with a pool of its own, as the preset makes it.
#[derive(Debug)]
pub struct Millpond(ScheduledPool<ThreadPool>);

/// How long its workers may take to end.
const PATIENCE: Duration = Duration::from_secs(5);

impl Timers for Millpond {
    const NAME: &'static str = "millpond";
    const BESIDE: Option<&'static str> = Some(TIMER);
    type Ticket = Scheduled<()>;

    fn open() -> Result<Self> {
        let timers = preset::scheduled("bench", WORKERS)?;
        // The others have theirs from the start.
        let started = timers.executor().prestart_all_core()?;
        ensure!(started == WORKERS, "{started} of {WORKERS} workers started");
        Ok(Millpond(timers))
    }

    fn schedule<F: FnOnce() + Send + 'static>(&mut self, due: Instant, task: F) -> Self::Ticket {
        self.0
            .schedule_at(due, task)
            .unwrap_or_else(|refused| panic!("a pool with room refuses nothing: {refused}"))
    }

    fn cancel(&mut self, ticket: Self::Ticket) {
        ticket.cancel();
    }

    fn close(self) {
        drop(self.0.shutdown_now());
        let ended = self.0.await_termination_timeout(PATIENCE);
        assert_eq!(ended, Ok(true), "it was told to end, and goes on");
    }
}
