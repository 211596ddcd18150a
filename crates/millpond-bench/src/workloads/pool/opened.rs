//! A pool that is open, warm and idle.

use crate::peers::pool::{Pool, Queue, Threads, WORKERS};
use crate::staff::Staff;
use crate::tally::Tally;
use crate::usage::Usage;
use anyhow::Result;
use std::sync::{Arc, Barrier};
use std::time::Duration;

/// So many tasks warm up a pool: they fill its first blocks and the allocator's lists.
const WARM_UP: u64 = 1_000;

/// After this long without a task a pool is asleep, or never will be.
const SETTLES_IN: Duration = Duration::from_millis(2);

/// How long to wait for threads to end. In tests some of them may be other tests', and stay.
const PATIENCE: Duration = Duration::from_millis(if cfg!(test) { 20 } else { 1_000 });

/// A pool that is open, warm and idle, and its threads.
#[derive(Debug)]
pub struct Opened<P> {
    /// The pool.
    pub pool: P,
    staff: Staff,
    before: Usage,
}

impl<P: Pool> Opened<P> {
    /// Opens a pool, and has it start all its workers.
    ///
    /// # Errors
    ///
    /// If it cannot be opened, or does not run what it is brought.
    pub fn new(queue: Queue) -> Result<Self> {
        Self::warm(WORKERS, || P::open(queue))
    }

    /// The same, with so many workers.
    ///
    /// # Errors
    ///
    /// As [`new`](Self::new), and [`Absent`](crate::harness::Absent) if it cannot have so many.
    pub fn with_workers(workers: usize, queue: Queue) -> Result<Self> {
        Self::warm(workers, || P::with_workers(workers, queue))
    }

    fn warm(workers: usize, open: impl FnOnce() -> Result<P>) -> Result<Self> {
        let (pool, staff) = Staff::of(|| -> Result<P> {
            let pool = open()?;
            wake_all(&pool, workers);
            Ok(pool)
        });
        let pool = pool?;
        let staff = match P::THREADS {
            Threads::Own => staff,
            Threads::Kept(prefix) => Staff::named(prefix),
            Threads::PerTask => Staff::unknown(),
        };
        // A thread that ends with its task leaves nothing warm.
        if P::THREADS != Threads::PerTask {
            let tally = Tally::take();
            (1..=WARM_UP).for_each(|number| pool.run(move || tally.count(number)));
            tally.wait_for(WARM_UP);
            tally.check(WARM_UP)?;
        }
        settle();
        let before = staff.usage();
        Ok(Opened {
            pool,
            staff,
            before,
        })
    }

    /// Leaves it alone for a while, and forgets what its threads have used until then.
    pub fn rest(&mut self, time: Duration) {
        std::thread::sleep(time);
        self.before = self.staff.usage();
    }

    /// How many threads it has, if that is known.
    pub fn threads(&self) -> Option<usize> {
        self.staff.count()
    }

    /// Closes it, and says what its threads have used since it was idle. Waits until they are gone:
    /// the next pool should not have to share the machine with them.
    pub fn close(self) -> Usage {
        // Until now they may have gone on looking for work: that is part of the price.
        settle();
        let used = self.staff.usage() - self.before;
        self.pool.close();
        if P::THREADS == Threads::Own {
            self.staff.wait_until_gone(PATIENCE);
        }
        used
    }
}

/// Has every worker run a task at the same time.
fn wake_all<P: Pool>(pool: &P, workers: usize) {
    let all = Arc::new(Barrier::new(workers + 1));
    for _ in 0..workers {
        let all = Arc::clone(&all);
        pool.run(move || {
            all.wait();
        });
    }
    all.wait();
}

/// Lets a pool fall asleep.
pub(super) fn settle() {
    std::thread::sleep(SETTLES_IN);
}
