//! Rare events that a pool counts, by whichever thread sees them.
//!
//! The counters of workers are in [`crate::engine::metrics`], those of rejections in
//! [`super::rejection::counters`](super::rejection), those of tasks that left the queue without a worker in
//! [`crate::engine`].

use super::engine::PoolEngine;
use crate::engine::metrics::Counter;
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
}

impl PoolEngine {
    /// Accepted tasks that left the queue, or the slot of a worker's first task, otherwise than through a worker's
    /// hands; and accepted ones that were never there. Each of these counters is raised after the task has left.
    pub(super) fn left_without_worker(&self) -> u64 {
        let rare = &self.rare;
        rare.discarded.get() + rare.extra_begun.get() + self.removed.total()
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
