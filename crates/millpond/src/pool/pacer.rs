//! How long the queue needs to drain, for those who are refused.
//!
//! Refusals may come by the million, so what a task takes is worked out once in a while and read from a
//! word in between: whoever comes first after [`PAUSE`] adds up what the workers have counted, and all
//! others take the last answer. Workers know nothing of it.

use super::engine::Engine;
use crate::adapt::{Pace, time_for};
use millpond_raw::sync::Mutex;
use millpond_raw::sync::atomic::{AtomicU64, Ordering};
use millpond_raw::tick::Tick;
use std::time::Duration;

/// How long an answer is good, in nanoseconds.
const PAUSE: u64 = 10_000_000;

const UNKNOWN: u64 = u64::MAX;

/// The last answer, and what it came from.
pub(super) struct Pacer {
    since: Tick,
    /// When the next look is due, in nanoseconds since then.
    next: AtomicU64,
    /// Nanoseconds that a task takes.
    per_task: AtomicU64,
    pace: Mutex<Pace>,
}

impl Pacer {
    pub(super) fn new(now: Tick) -> Self {
        Pacer {
            since: now,
            next: AtomicU64::new(0),
            per_task: AtomicU64::new(UNKNOWN),
            pace: Mutex::new(Pace::new()),
        }
    }
}

impl Engine {
    /// How long so many tasks need, on so many workers, by what tasks have taken of late; `None` if
    /// none is over, or no figures are kept.
    pub(super) fn drains_in(&self, queued: usize, workers: usize) -> Option<Duration> {
        let pacer = &*self.pacer;
        let now = self.ticker.nanos(pacer.since, self.ticker.now());
        let next = pacer.next.load(Ordering::Relaxed);
        // Further away than ever said: the counter has gone back.
        if now >= next || next - now > PAUSE {
            // Relaxed: it only chooses who looks.
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
        if self.names.is_none() {
            // Nobody measures how long tasks run.
            return;
        }
        let counts = self.with_crew(|crew| crew.counts());
        let mut pace = self.pacer.pace.lock();
        pace.read(now, counts.completed, counts.spent);
        let per_task = pace.nanos_per_task().unwrap_or(UNKNOWN);
        self.pacer.per_task.store(per_task, Ordering::Relaxed);
    }
}
