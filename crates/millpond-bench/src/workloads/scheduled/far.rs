//! Timers that are due in an hour or two, in no order: they only wait, and none of them may run.

use super::firing::ENDS_IN;
use crate::peers::timers::Timers;
use crate::plan::Random;
use crate::pool_threads::PoolThreads;
use crate::tally::Tally;
use crate::usage::Usage;
use anyhow::Result;
use std::time::{Duration, Instant};

/// No timer is due before this, or after twice this.
pub const FAR: Duration = Duration::from_secs(3_600);

/// The seed of all due times.
const SEED: u64 = 0x7469_6d65_7273;

/// A scheduler for such timers.
#[derive(Debug)]
pub struct Far<T> {
    timers: T,
    pool_threads: PoolThreads,
    random: Random,
    tally: &'static Tally,
    start: Instant,
    number: u64,
}

impl<T: Timers> Far<T> {
    /// One without a timer.
    ///
    /// # Errors
    ///
    /// If it cannot be opened.
    pub fn open() -> Result<Self> {
        let (timers, pool_threads) = PoolThreads::of(T::open);
        Ok(Far {
            timers: timers?,
            pool_threads,
            random: Random::new(SEED),
            tally: Tally::take(),
            start: Instant::now(),
            number: 0,
        })
    }

    /// The threads that were started when it was opened.
    pub fn pool_threads(&self) -> &PoolThreads {
        &self.pool_threads
    }

    /// The usage of its threads, and of those that it shares with others.
    pub fn used(&self) -> Usage {
        [self.pool_threads.usage(), T::used_beside()]
            .into_iter()
            .sum()
    }

    /// One more.
    pub fn schedule(&mut self) -> T::Ticket {
        self.number += 1;
        let due = self.start + FAR + FAR.mul_f64(self.random.share());
        let (own, tally) = (self.number, self.tally);
        self.timers.schedule(due, move || tally.count(own))
    }

    /// One less.
    pub fn cancel(&mut self, ticket: T::Ticket) {
        self.timers.cancel(ticket);
    }

    /// Ends its threads.
    ///
    /// # Errors
    ///
    /// If one of the timers ran: not one of them was due.
    pub fn close(self) -> Result<()> {
        self.timers.close();
        self.pool_threads.wait_until_gone(ENDS_IN);
        self.tally.check(0)
    }
}
