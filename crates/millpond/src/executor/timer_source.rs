//! Timer sources: an idle worker waits for tasks and, at the same time, for the next due time.
//!
//! A scheduler usually lets the timer of the process ring, which hands over to a worker: two threads have to wake up, one
//! after the other. An executor with idle workers may instead let one of them *lead* the scheduler's timer source: it
//! parks and waits for tasks like the others, but no longer than until the next due time. Then it dispatches what is due,
//! and runs it.

use crate::time::Deadline;
use std::fmt;
use std::sync::{Arc, Weak};
use std::task::Waker;

/// A scheduler, as its leader sees it. There is one leader at a time.
///
/// A leader [checks](TimerSource::check) until it is told to park, parks until then, or until it is
/// [called](TimerSource::is_called) or has a task, and checks again. It [resigns](TimerSource::resign) before it runs a
/// task, or does anything else that may take long.
pub(crate) trait TimerSource: Send + Sync {
    /// Makes the caller the leader, if there is none. The waker unparks it.
    fn try_lead(&self, waker: &Waker) -> bool;

    /// Whether something is due; if not, how to wait.
    fn check(&self) -> TimerStatus;

    /// Dispatches one task that is due, to the executor of the leader. Returns false if another thread is dispatching.
    fn dispatch_one(self: Arc<Self>) -> bool;

    /// Whether the leader must check again, although it was told to park.
    fn is_called(&self) -> bool;

    /// The caller is no longer the leader. Returns whether another leader is needed, because no other thread looks for
    /// what is due.
    fn resign(self: Arc<Self>) -> bool;
}

/// What a leader has to do next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TimerStatus {
    /// Dispatch.
    Due,
    /// Park until then. If that is far away, there is time to search for a task first.
    Park { until: Deadline, is_far: bool },
}

/// A timer source for idle workers, as long as the scheduler lives.
pub(crate) struct TimerSourceOffer(Weak<dyn TimerSource>);

impl TimerSourceOffer {
    pub(crate) fn new(source: Weak<dyn TimerSource>) -> Self {
        TimerSourceOffer(source)
    }

    pub(crate) fn get(&self) -> Option<Arc<dyn TimerSource>> {
        self.0.upgrade()
    }
}

impl fmt::Debug for TimerSourceOffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TimerSourceOffer")
    }
}
