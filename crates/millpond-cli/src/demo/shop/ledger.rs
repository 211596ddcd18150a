//! The shop's own ledger: what became of every task, counted where it happens and without asking the
//! pool.
//!
//! Every task takes a [`Slip`] along. The slip is handed in when the work is done; one that is dropped
//! before says that its task never ran. So at the end everything that came was done, was rejected, or
//! was dropped by a policy, and a task in none of these was lost.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use serde::Serialize;

#[derive(Debug, Default)]
pub(super) struct Ledger {
    came: AtomicU64,
    gave_up: AtomicU64,
    done: AtomicU64,
    rejected: AtomicU64,
    /// Rejected tasks are among them: their slips are dropped with the returned closures.
    unrun: AtomicU64,
    late_micros: AtomicU64,
}

/// The sums of the ledger at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct Counts {
    /// Submitted to the pool.
    pub(crate) came: u64,
    /// Never submitted: they had waited too long at the door, because earlier ones were held up.
    pub(crate) gave_up: u64,
    /// Ran to the end.
    pub(crate) done: u64,
    /// Given back to their callers. Programs know it as `refused`.
    #[serde(rename = "refused")]
    pub(crate) rejected: u64,
    /// Accepted and never run: dropped by the policy, or returned when everything was stopped.
    pub(crate) dropped: u64,
}

impl Counts {
    /// Tasks that have neither ended nor been returned; when the pool has terminated, lost tasks.
    pub(crate) fn open(&self) -> u64 {
        let over = self.done + self.rejected + self.dropped;
        self.came.saturating_sub(over)
    }

    /// Tasks that the pool rejected, whoever got the error.
    pub(crate) fn turned_away(&self) -> u64 {
        self.rejected + self.dropped
    }
}

impl Ledger {
    /// A customer comes: the slip goes with the task.
    pub(super) fn open_slip(self: &Arc<Self>) -> Slip {
        self.came.fetch_add(1, Relaxed);
        Slip {
            ledger: Arc::clone(self),
            is_done: false,
        }
    }

    pub(super) fn note_refusal(&self) {
        self.rejected.fetch_add(1, Relaxed);
    }

    pub(super) fn note_giving_up(&self) {
        self.gave_up.fetch_add(1, Relaxed);
    }

    pub(super) fn note_lateness(&self, late: Duration) {
        let micros = u64::try_from(late.as_micros()).unwrap_or(u64::MAX);
        self.late_micros.store(micros, Relaxed);
    }

    /// How late the last customer was let in, because those before were held up at the door.
    pub(super) fn lateness(&self) -> Duration {
        Duration::from_micros(self.late_micros.load(Relaxed))
    }

    pub(super) fn counts(&self) -> Counts {
        // Arrivals are read last, so no more tasks have ended than have come.
        let done = self.done.load(Relaxed);
        let unrun = self.unrun.load(Relaxed);
        let rejected = self.rejected.load(Relaxed);
        Counts {
            done,
            rejected,
            dropped: unrun.saturating_sub(rejected),
            gave_up: self.gave_up.load(Relaxed),
            came: self.came.load(Relaxed),
        }
    }
}

/// Goes with a task.
#[derive(Debug)]
pub(super) struct Slip {
    ledger: Arc<Ledger>,
    is_done: bool,
}

impl Slip {
    pub(super) fn done(mut self) {
        self.is_done = true;
    }
}

impl Drop for Slip {
    fn drop(&mut self) {
        let count = if self.is_done {
            &self.ledger.done
        } else {
            &self.ledger.unrun
        };
        count.fetch_add(1, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_is_done_rejected_or_dropped() {
        let ledger = Arc::new(Ledger::default());
        let [done, rejected, dropped, open] = std::array::from_fn(|_| ledger.open_slip());
        done.done();
        drop(rejected);
        ledger.note_refusal();
        drop(dropped);
        let counts = ledger.counts();
        let expected = Counts {
            came: 4,
            gave_up: 0,
            done: 1,
            rejected: 1,
            dropped: 1,
        };
        assert_eq!((counts, counts.open()), (expected, 1));
        open.done();
        assert_eq!(ledger.counts().open(), 0);
    }

    #[test]
    fn a_slip_that_is_never_seen_again_is_missing_in_the_end() {
        let ledger = Arc::new(Ledger::default());
        std::mem::forget(ledger.open_slip());
        assert_eq!(ledger.counts().open(), 1);
    }
}
