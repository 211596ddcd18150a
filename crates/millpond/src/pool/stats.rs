//! Rare events that a pool counts, by whichever thread sees them.
//!
//! The counters of workers are in [`crate::engine::metrics`], those of rejections in
//! [`super::rejection::counters`](super::rejection).

use crate::engine::metrics::Counter;
use millpond_raw::sync::atomic::{AtomicU64, Ordering};

/// Rare events.
#[derive(Debug, Default)]
pub(super) struct RareStats {
    pub(super) blocked: Counter,
    pub(super) discarded: Counter,
    pub(super) cancelled: Counter,
    pub(super) expired: Counter,
    pub(super) elsewhere: Counter,
    /// Tombstones of tasks that a worker ran inline, which left the queue and met no worker.
    pub(super) tombstones: Counter,
    pub(super) handed_back: Counter,
    pub(super) dropped_detached: Counter,
    pub(super) threads_started: Counter,
    pub(super) thread_failures: Counter,
    /// Failed starts of workers since the last one that succeeded.
    pub(super) failed_starts_in_a_row: Counter,
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

impl RareStats {
    /// Accepted tasks that left the queue, or the slot of a worker's first task, otherwise than through a worker's
    /// hands; and accepted ones that were never there. Each of these counters is raised after the task has left.
    pub(super) fn left_without_worker(&self) -> u64 {
        let counters = [
            &self.discarded,
            &self.cancelled,
            &self.expired,
            &self.elsewhere,
            &self.tombstones,
            &self.handed_back,
            &self.extra_begun,
        ];
        counters.into_iter().map(Counter::get).sum()
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
