//! What a pool counts.
//!
//! A worker counts for itself, in lines of its own that nobody else writes, so counting costs two
//! plain stores a task. When it leaves, its counts go into the pool's. Events that are rare (a
//! refusal, a thread that could not start) are counted in the pool's own words at once.

use crate::executor::Fate;
use millpond_raw::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// A count that one thread writes and any may read.
#[derive(Debug, Default)]
struct Own(AtomicU64);

impl Own {
    #[inline]
    fn add_one(&self) {
        let next = self.0.load(Ordering::Relaxed).wrapping_add(1);
        self.0.store(next, Ordering::Relaxed);
    }

    fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// What one worker counts.
#[derive(Debug, Default)]
pub(super) struct WorkerStats {
    is_busy: AtomicBool,
    completed: Own,
    panicked: Own,
    cancelled: Own,
    expired: Own,
    elsewhere: Own,
    /// Tasks of the queue that the worker joined and ran in place: begun, ended, and the shells of
    /// such tasks, whoever ran them, that it has met.
    joins: Own,
    joined: Own,
    shells: Own,
}

impl WorkerStats {
    /// A task of the queue begins in place, inside the one that the worker runs.
    pub(super) fn begin_in_place(&self) {
        self.joins.add_one();
    }

    /// It is over. Counted first and off the stack second, as in [`end`](WorkerStats::end).
    pub(super) fn end_in_place(&self, panicked: bool) {
        self.count_run(panicked);
        self.joined.add_one();
    }

    #[inline]
    fn count_run(&self, panicked: bool) {
        if panicked {
            self.panicked.add_one();
        }
        self.completed.add_one();
    }

    #[inline]
    pub(super) fn begin(&self) {
        self.is_busy.store(true, Ordering::Relaxed);
    }

    /// There is nothing to begin: a stop has the task that this worker was started with.
    pub(super) fn rest(&self) {
        self.is_busy.store(false, Ordering::Relaxed);
    }

    /// The task is over. It is counted before the worker counts as idle: between the two a task may
    /// be seen twice, but never not at all.
    #[inline]
    pub(super) fn end(&self, fate: Fate) {
        match fate {
            Fate::Completed => self.count_run(false),
            Fate::Panicked => self.count_run(true),
            Fate::Cancelled => self.cancelled.add_one(),
            Fate::Expired => self.expired.add_one(),
            Fate::RanElsewhere => self.elsewhere.add_one(),
            Fate::RanAtHome => self.shells.add_one(),
        }
        self.is_busy.store(false, Ordering::Relaxed);
    }

    pub(super) fn is_busy(&self) -> bool {
        self.is_busy.load(Ordering::Relaxed)
    }

    pub(super) fn counts(&self) -> Counts {
        Counts {
            completed: self.completed.get(),
            panicked: self.panicked.get(),
            cancelled: self.cancelled.get(),
            expired: self.expired.get(),
            elsewhere: self.elsewhere.get(),
            joins: self.joins.get(),
            joined: self.joined.get(),
            shells: self.shells.get(),
        }
    }
}

/// Sums of what workers count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Counts {
    pub(super) completed: u64,
    pub(super) panicked: u64,
    pub(super) cancelled: u64,
    pub(super) expired: u64,
    pub(super) elsewhere: u64,
    pub(super) joins: u64,
    pub(super) joined: u64,
    pub(super) shells: u64,
}

impl Counts {
    pub(super) fn add(&mut self, other: Counts) {
        self.completed += other.completed;
        self.panicked += other.panicked;
        self.cancelled += other.cancelled;
        self.expired += other.expired;
        self.elsewhere += other.elsewhere;
        self.joins += other.joins;
        self.joined += other.joined;
        self.shells += other.shells;
    }
}

/// What is counted as it happens, by whoever sees it.
#[derive(Debug, Default)]
pub(super) struct RareStats {
    pub(super) rejected: Event,
    pub(super) blocked: Event,
    pub(super) discarded: Event,
    pub(super) caller_ran: Event,
    pub(super) cancelled: Event,
    pub(super) expired: Event,
    pub(super) elsewhere: Event,
    pub(super) shells: Event,
    pub(super) handed_back: Event,
    pub(super) threads_started: Event,
    pub(super) thread_failures: Event,
}

/// A count that many write.
#[derive(Debug, Default)]
pub(super) struct Event(AtomicU64);

impl Event {
    pub(super) fn happened(&self, times: usize) {
        self.0.fetch_add(times as u64, Ordering::Relaxed);
    }

    pub(super) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}
