//! How long the queue needs to drain, for rejected submitters.
//!
//! Rejections may come by the million, so the time per task is computed once in a while and read from a word in between:
//! the first thread after [`PAUSE`] adds up what the workers have counted, and all others take the last answer. Workers
//! are not involved.

use super::engine::PoolEngine;
use crate::adapt::{Pace, time_for};
use millpond_raw::sync::Mutex;
use millpond_raw::sync::atomic::{AtomicU64, Ordering};
use millpond_raw::timestamp::Timestamp;
use std::time::Duration;

/// How long an answer is valid, in nanoseconds.
const PAUSE: u64 = 10_000_000;

const UNKNOWN: u64 = u64::MAX;

/// The last answer, and what it came from.
pub(super) struct Pacer {
    since: Timestamp,
    /// When the next computation is due, in nanoseconds since then.
    next: AtomicU64,
    /// Nanoseconds that a task takes.
    per_task: AtomicU64,
    pace: Mutex<Pace>,
}

impl Pacer {
    pub(super) fn new(now: Timestamp) -> Self {
        Pacer {
            since: now,
            next: AtomicU64::new(0),
            per_task: AtomicU64::new(UNKNOWN),
            pace: Mutex::new(Pace::new()),
        }
    }
}

impl PoolEngine {
    /// How long so many tasks need on so many workers, by how long recent tasks have taken; `None` if no task has
    /// ended, or there are no metrics.
    pub(super) fn drains_in(&self, queued: usize, workers: usize) -> Option<Duration> {
        let pacer = &*self.pacer;
        let now = self.timestamps.nanos(pacer.since, self.timestamps.now());
        let next = pacer.next.load(Ordering::Relaxed);
        // Further away than ever said: the counter has gone back.
        if now >= next || next - now > PAUSE {
            // Relaxed: it only chooses the thread that computes.
            let (at, relaxed) = (now.saturating_add(PAUSE), Ordering::Relaxed);
            let chosen = pacer.next.compare_exchange(next, at, relaxed, relaxed);
            if chosen.is_ok() {
                self.look_at_pace(now);
            }
        }
        match pacer.per_task.load(Ordering::Relaxed) {
            UNKNOWN => None,
            per_task => Some(time_for(per_task, queued, workers)),
        }
    }

    #[cold]
    fn look_at_pace(&self, now: u64) {
        if self.labels.is_none() {
            // There are no metrics.
            return;
        }
        let counts = self.with_workers(|workers| workers.counts());
        let mut pace = self.pacer.pace.lock();
        pace.update(now, counts.completed, counts.spent);
        let per_task = pace.nanos_per_task().unwrap_or(UNKNOWN);
        self.pacer.per_task.store(per_task, Ordering::Relaxed);
    }
}
