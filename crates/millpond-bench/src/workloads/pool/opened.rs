//! A pool that is open, warm and idle.

use crate::peers::pool::{Pool, Queue, Threads, WORKERS};
use crate::pool_threads::PoolThreads;
use crate::tally::Tally;
use crate::usage::Usage;
use anyhow::{Result, ensure};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
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
    pool_threads: PoolThreads,
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
        let (pool, pool_threads) = PoolThreads::of(|| -> Result<P> {
            let pool = open()?;
            wake_all(&pool, workers, GATHERS_IN)?;
            Ok(pool)
        });
        let pool = pool?;
        let pool_threads = match P::THREADS {
            Threads::Own => pool_threads,
            Threads::Kept(prefix) => PoolThreads::named(prefix),
            Threads::PerTask => PoolThreads::unknown(),
        };
        // A thread that ends with its task leaves nothing warm.
        if P::THREADS != Threads::PerTask {
            let tally = Tally::take();
            (1..=WARM_UP).for_each(|number| pool.run(move || tally.count(number)));
            tally.wait_for(WARM_UP);
            tally.check(WARM_UP)?;
        }
        settle();
        let before = pool_threads.usage();
        Ok(Opened {
            pool,
            pool_threads,
            before,
        })
    }

    /// Leaves it alone for a while, and forgets what its threads have used until then.
    pub fn rest(&mut self, time: Duration) {
        std::thread::sleep(time);
        self.before = self.pool_threads.usage();
    }

    /// How many threads it has, if that is known.
    pub fn threads(&self) -> Option<usize> {
        self.pool_threads.count()
    }

    /// Closes it, and says what its threads have used since it was idle. Waits until they are gone:
    /// the next pool should not have to share the machine with them.
    pub fn close(self) -> Usage {
        // Until now they may have gone on looking for work: that is part of the price.
        settle();
        let used = self.pool_threads.usage() - self.before;
        self.pool.close();
        if P::THREADS == Threads::Own {
            self.pool_threads.wait_until_gone(PATIENCE);
        }
        used
    }
}

/// How long workers wait for each other.
const GATHERS_IN: Duration = Duration::from_secs(2);

/// How often they try.
const ATTEMPTS: usize = 5;

/// Has every worker run a task at the same time.
///
/// A task that waits for another one is more than a pool must bear: one that takes several tasks at once
/// may leave the second behind the first, where nobody looks for it any more. So they do not wait for
/// ever, and try again.
fn wake_all<P: Pool>(pool: &P, workers: usize, timeout: Duration) -> Result<()> {
    let gathered = (0..ATTEMPTS).any(|_| {
        let gathering = Arc::new(Gathering {
            workers,
            timeout,
            here: Mutex::new(0),
            more: Condvar::new(),
        });
        for _ in 0..workers {
            let gathering = Arc::clone(&gathering);
            pool.run(move || gathering.meet());
        }
        gathering.is_complete()
    });
    ensure!(
        gathered,
        "its {workers} workers never work at the same time"
    );
    Ok(())
}

/// Where workers meet.
#[derive(Debug)]
struct Gathering {
    /// So many are expected.
    workers: usize,
    timeout: Duration,
    here: Mutex<usize>,
    more: Condvar,
}

impl Gathering {
    /// Waits for the others, and leaves if they do not come: only those that are here count.
    fn meet(&self) {
        self.count(|here| *here += 1);
        if !self.is_complete() {
            self.count(|here| *here -= 1);
        }
    }

    fn count(&self, change: impl FnOnce(&mut usize)) {
        change(&mut self.here.lock().unwrap_or_else(PoisonError::into_inner));
        self.more.notify_all();
    }

    /// Waits for a while, and says whether all are here.
    fn is_complete(&self) -> bool {
        let here = self.here.lock().unwrap_or_else(PoisonError::into_inner);
        let some_are_missing = |here: &mut usize| *here < self.workers;
        let waited = self
            .more
            .wait_timeout_while(here, self.timeout, some_are_missing);
        let (here, _) = waited.unwrap_or_else(PoisonError::into_inner);
        *here >= self.workers
    }
}

/// Lets a pool fall asleep.
pub(super) fn settle() {
    std::thread::sleep(SETTLES_IN);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::peers::pool::hand_rolled::{Crossbeam, HandRolled};
    use std::sync::atomic::{AtomicUsize, Ordering};

    #[test]
    fn workers_that_never_work_at_the_same_time_are_found_out() {
        let lonely = HandRolled::<Crossbeam>::with_workers(1, Queue::Unbounded).unwrap();
        let error = wake_all(&lonely, 2, Duration::from_millis(1)).unwrap_err();
        let expected = "its 2 workers never work at the same time";
        assert_eq!(error.to_string(), expected);
        lonely.close();
    }

    /// Does not get round to the second task that it is brought.
    struct OneBehind {
        pool: HandRolled<Crossbeam>,
        brought: AtomicUsize,
    }

    impl Pool for OneBehind {
        const NAME: &'static str = "one behind";
        type Handle = oneshot::Receiver<u64>;

        fn open(queue: Queue) -> Result<Self> {
            Ok(OneBehind {
                pool: HandRolled::open(queue)?,
                brought: AtomicUsize::new(0),
            })
        }

        fn run<F: FnOnce() + Send + 'static>(&self, f: F) {
            if self.brought.fetch_add(1, Ordering::Relaxed) != 1 {
                self.pool.run(f);
            }
        }

        fn submit<F: FnOnce() -> u64 + Send + 'static>(&self, f: F) -> Self::Handle {
            self.pool.submit(f)
        }

        fn join(&self, handle: Self::Handle) -> u64 {
            self.pool.join(handle)
        }

        fn close(self) {
            self.pool.close();
        }
    }

    #[test]
    fn workers_that_missed_each_other_meet_at_the_next_attempt() {
        let pool = OneBehind::open(Queue::Unbounded).unwrap();
        wake_all(&pool, WORKERS, Duration::from_secs(1)).unwrap();
        assert!(pool.brought.load(Ordering::Relaxed) >= 2 * WORKERS);
        pool.close();
    }
}
