//! Rare events that a pool counts, by whichever thread sees them.
//!
//! The counters of workers are in [`crate::engine::metrics`], those of rejections in
//! [`super::rejection::counters`](super::rejection).

use crate::engine::metrics::Counter;

/// Rare events.
#[derive(Debug, Default)]
pub(super) struct RareStats {
    pub(super) blocked: Counter,
    pub(super) discarded: Counter,
    pub(super) cancelled: Counter,
    pub(super) expired: Counter,
    pub(super) elsewhere: Counter,
    pub(super) shells: Counter,
    pub(super) handed_back: Counter,
    pub(super) dropped_detached: Counter,
    pub(super) threads_started: Counter,
    pub(super) thread_failures: Counter,
    /// Failed starts of workers since the last one that succeeded.
    pub(super) failed_starts_in_a_row: Counter,
    pub(super) futile_spins: Counter,
    pub(super) preempted_yields: Counter,
}
