//! What a pool counts.
//!
//! A worker counts for itself, in lines of its own that nobody else writes, so counting costs two
//! plain stores a task. When it leaves, its counts go into the pool's. Events that are rare (a
//! task that is handed back, a thread that could not start) are counted in the pool's own words at
//! once. Refusals come in crowds and are counted elsewhere ([`super::refusals`]).

use crate::executor::Fate;
use crate::meter::Count;
use millpond_raw::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// What one worker counts.
#[derive(Debug, Default)]
pub(super) struct WorkerStats {
    is_busy: AtomicBool,
    completed: Count,
    panicked: Count,
    cancelled: Count,
    expired: Count,
    shed: Count,
    /// Nanoseconds, on those that are completed.
    spent: Count,
    elsewhere: Count,
    /// How many of the completed ones were cancelled while they ran.
    unwanted: Count,
    /// Tasks of the queue that the worker joined and ran in place: begun, ended, and the shells of
    /// such tasks, whoever ran them, that it has met.
    joins: Count,
    joined: Count,
    shells: Count,
}

impl WorkerStats {
    /// A task of the queue begins in place, inside the one that the worker runs.
    pub(super) fn begin_in_place(&self) {
        self.joins.add(1);
    }

    /// It is over. Counted first and off the stack second, as in [`end`](WorkerStats::end).
    pub(super) fn end_in_place(&self, fate: Fate) {
        self.count_run(fate);
        self.joined.add(1);
    }

    #[inline]
    fn count_run(&self, fate: Fate) {
        match fate {
            Fate::Panicked => self.panicked.add(1),
            Fate::Unwanted => self.unwanted.add(1),
            _ => {}
        }
        self.completed.add(1);
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
    pub(super) fn end(&self, fate: Fate, ran: u64) {
        if fate == Fate::Completed {
            self.spent.add(ran);
            self.completed.add(1);
        } else {
            self.end_unusual(fate, ran);
        }
        self.is_busy.store(false, Ordering::Relaxed);
    }

    #[cold]
    fn end_unusual(&self, fate: Fate, ran: u64) {
        match fate {
            Fate::Completed | Fate::Panicked | Fate::Unwanted => {
                self.spent.add(ran);
                self.count_run(fate);
            }
            Fate::Cancelled => self.cancelled.add(1),
            Fate::Expired => self.expired.add(1),
            Fate::RanElsewhere => self.elsewhere.add(1),
            Fate::RanAtHome => self.shells.add(1),
            Fate::Shed => self.shed.add(1),
        }
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
            shed: self.shed.get(),
            spent: self.spent.get(),
            elsewhere: self.elsewhere.get(),
            unwanted: self.unwanted.get(),
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
    pub(super) shed: u64,
    pub(super) spent: u64,
    pub(super) elsewhere: u64,
    pub(super) unwanted: u64,
    pub(super) joins: u64,
    pub(super) joined: u64,
    pub(super) shells: u64,
}

impl Counts {
    /// How many tasks have left the queue for good, by workers: what goes up while work is done.
    pub(super) fn done(&self) -> u64 {
        self.completed + self.cancelled + self.expired + self.shed + self.elsewhere + self.shells
    }

    pub(super) fn add(&mut self, other: Counts) {
        self.completed += other.completed;
        self.panicked += other.panicked;
        self.cancelled += other.cancelled;
        self.expired += other.expired;
        self.shed += other.shed;
        self.spent += other.spent;
        self.elsewhere += other.elsewhere;
        self.unwanted += other.unwanted;
        self.joins += other.joins;
        self.joined += other.joined;
        self.shells += other.shells;
    }
}

/// What is counted as it happens, by whoever sees it.
#[derive(Debug, Default)]
pub(super) struct RareStats {
    pub(super) blocked: Event,
    pub(super) discarded: Event,
    pub(super) cancelled: Event,
    pub(super) expired: Event,
    pub(super) elsewhere: Event,
    pub(super) shells: Event,
    pub(super) handed_back: Event,
    pub(super) dropped_detached: Event,
    pub(super) threads_started: Event,
    pub(super) thread_failures: Event,
    /// Those of workers since one was started.
    pub(super) failed_starts_in_a_row: Event,
}

/// A count that many write.
#[derive(Debug, Default)]
pub(in crate::pool) struct Event(AtomicU64);

impl Event {
    pub(in crate::pool) fn happened(&self, times: usize) {
        self.0.fetch_add(times as u64, Ordering::Relaxed);
    }

    pub(super) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    /// Counts anew.
    pub(super) fn reset(&self) {
        self.0.store(0, Ordering::Relaxed);
    }
}
