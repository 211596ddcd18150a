//! Rare events that a pool counts, by whichever thread sees them.
//!
//! The counters of workers are in [`crate::engine::metrics`], those of rejections in
//! [`super::rejection::counters`](super::rejection), those of tasks that left the queue without a worker in
//! [`crate::engine`].
//!
//! - **UNDECIDED-1** An [undecided](Undecided) task is counted in before it is put into the queue, and counted out when it
//!   is accepted or taken out. A snapshot reads `left`, then looks into the queue, then reads `entered`, each number under
//!   the lock. So all undecided tasks that it has seen are among [`most`](Undecided::most).

use super::engine::PoolEngine;
use crate::engine::metrics::Counter;
use millpond_raw::sync::Mutex;
use millpond_raw::sync::atomic::{AtomicU64, Ordering};

/// Rare events.
#[derive(Debug, Default)]
pub(super) struct RareStats {
    pub(super) waited_for_room: Counter,
    pub(super) discarded: Counter,
    pub(super) futile_spins: Counter,
    pub(super) preempted_yields: Counter,
    /// Tasks that extra threads have begun; of these, those that ran, that a waiting thread ran instead, that were
    /// cancelled, or that had expired.
    pub(super) extra_begun: Counter,
    pub(super) extra_ran: Counter,
    pub(super) extra_elsewhere: Counter,
    pub(super) extra_cancelled: Counter,
    pub(super) extra_expired: Counter,
    /// Tasks that panicked in their caller or on an extra thread.
    pub(super) panicked_outside: Counter,
    /// The most submitted tasks that a snapshot has shown. Only snapshots use it.
    pub(super) submitted: HighWater,
    pub(super) undecided: Undecided,
}

impl PoolEngine {
    /// Accepted tasks that left the queue, or the slot of a worker's first task, otherwise than through a worker's
    /// hands; and accepted ones that were never there. Each of these counters is raised after the task has left.
    pub(super) fn left_without_worker(&self) -> u64 {
        let rare = &self.rare;
        rare.discarded.get() + rare.extra_begun.get() + self.removed.total()
    }
}

/// Tasks that are put into the queue while there is no worker: they are accepted when a thread has been started for them,
/// and else taken out again. A snapshot may see them, and must not count them: what it has shown once stays (UNDECIDED-1).
#[derive(Debug, Default)]
pub(super) struct Undecided(Mutex<Passed>);

/// Both never fall.
#[derive(Debug, Default)]
struct Passed {
    entered: u64,
    left: u64,
}

impl Undecided {
    /// Counts a task in, until the entry is dropped.
    pub(super) fn enter(&self) -> UndecidedEntry<'_> {
        self.0.lock().entered += 1;
        UndecidedEntry(self)
    }

    /// How many have left, for [`most`](Undecided::most).
    pub(super) fn left(&self) -> u64 {
        self.0.lock().left
    }

    /// The most undecided tasks that a thread can have seen since it has read how many had left.
    pub(super) fn most(&self, left_before: u64) -> u64 {
        self.0.lock().entered - left_before
    }
}

/// A task that is neither accepted nor rejected.
#[derive(Debug)]
pub(super) struct UndecidedEntry<'a>(&'a Undecided);

impl Drop for UndecidedEntry<'_> {
    fn drop(&mut self) {
        self.0.0.lock().left += 1;
    }
}

/// The largest value that was seen.
#[derive(Debug, Default)]
pub(super) struct HighWater(AtomicU64);

impl HighWater {
    /// The largest value so far, this one included. What it returns never falls, whichever threads ask.
    pub(super) fn raise_to(&self, seen: u64) -> u64 {
        self.0.fetch_max(seen, Ordering::Relaxed).max(seen)
    }
}
