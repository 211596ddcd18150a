//! Interrupting the very task that runs too long.

use millpond_raw::sync::Mutex;
use millpond_raw::task::Stop;
use millpond_raw::user_code;
use std::sync::Arc;

/// Interrupts one task of a worker, and neither the one before nor the one after it (WATCHDOG-2).
pub(crate) struct InterruptTarget {
    /// The number of the task that runs.
    turn: Option<u64>,
    stop: Arc<Stop>,
}

impl InterruptTarget {
    pub(crate) fn new() -> Self {
        InterruptTarget {
            turn: None,
            stop: Arc::new(Stop::new()),
        }
    }

    /// A task starts. Returns the stop to run it under.
    pub(crate) fn begin(target: &Mutex<InterruptTarget>, turn: u64) -> Arc<Stop> {
        let mut target = target.lock();
        target.turn = Some(turn);
        if target.stop.is_set() {
            target.stop = Arc::new(Stop::new());
        }
        Arc::clone(&target.stop)
    }

    /// The task has ended.
    pub(crate) fn clear(target: &Mutex<InterruptTarget>) {
        target.lock().turn = None;
    }

    /// Interrupts the task with this number, if it still runs. Returns true if it does.
    pub(crate) fn interrupt(target: &Mutex<InterruptTarget>, turn: u64) -> bool {
        let target = target.lock();
        let runs = target.turn == Some(turn);
        if runs && !target.stop.is_set() {
            // Under the lock, or it would hit the next task. A thread that blocks under a stop is ours, and its waker is
            // no user code.
            user_code::except_locks(|| target.stop.set());
        }
        runs
    }
}

#[cfg(all(test, not(any(millpond_loom, millpond_shuttle))))]
mod tests {
    use super::*;

    #[test]
    fn one_task_is_interrupted_and_none_when_it_is_over() {
        let target = Mutex::new(InterruptTarget::new());
        let first = InterruptTarget::begin(&target, 1);
        assert!(
            !InterruptTarget::interrupt(&target, 2) && !first.is_set(),
            "another task"
        );
        assert!(InterruptTarget::interrupt(&target, 1) && first.is_set());
        InterruptTarget::clear(&target);
        assert!(!InterruptTarget::interrupt(&target, 1), "it has ended");
        let second = InterruptTarget::begin(&target, 2);
        assert!(
            !InterruptTarget::interrupt(&target, 1) && !second.is_set(),
            "the one before"
        );
    }
}
