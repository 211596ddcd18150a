//! An executor that is driven by the test: a deterministic interleaving, step by step.

use millpond::executor::{Executor, RejectReason, Rejected};
use millpond::task::{Ran, Task};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Keeps tasks until the test runs them. Clones are the same executor.
#[derive(Clone, Debug, Default)]
pub struct ManualExecutor {
    hand: Arc<Mutex<Hand>>,
}

#[derive(Debug, Default)]
struct Hand {
    tasks: VecDeque<Task>,
    rejects: bool,
}

impl ManualExecutor {
    /// An executor without tasks.
    pub fn new() -> Self {
        ManualExecutor::default()
    }

    fn hand(&self) -> MutexGuard<'_, Hand> {
        self.hand.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The number of tasks that wait to be run.
    pub fn waiting(&self) -> usize {
        self.hand().tasks.len()
    }

    /// From now on, rejects every task, or accepts them again.
    pub fn refuse(&self, rejects: bool) {
        self.hand().rejects = rejects;
    }

    /// Takes the next task out.
    pub fn next(&self) -> Option<Task> {
        self.hand().tasks.pop_front()
    }

    /// Runs the next task here, and returns how it ran.
    pub fn run_next(&self) -> Option<Ran> {
        self.next().map(Task::run)
    }

    /// Runs all tasks here, including those that they submit; returns how many there were.
    pub fn run_all(&self) -> usize {
        std::iter::from_fn(|| self.run_next()).count()
    }
}

impl Executor for ManualExecutor {
    fn execute_task(&self, task: Task) -> Result<(), Rejected<Task>> {
        let mut hand = self.hand();
        if hand.rejects {
            return Err(Rejected::new(task, RejectReason::ShutDown));
        }
        hand.tasks.push_back(task);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use millpond::executor::ExecutorExt;

    #[test]
    fn nothing_runs_until_the_test_runs_it() {
        let manual = ManualExecutor::new();
        let one = manual.submit(|| 1).unwrap();
        let two = manual.submit(|| 2).unwrap();
        assert_eq!(manual.waiting(), 2);
        assert!(!one.is_started());
        assert!(manual.run_next().is_some());
        assert!(one.is_finished() && !two.is_finished());
        assert_eq!(manual.run_all(), 1);
        assert_eq!((one.join().unwrap(), two.join().unwrap()), (1, 2));
        assert!(manual.run_next().is_none());
    }

    #[test]
    fn a_task_that_is_dropped_by_hand_is_cancelled() {
        let manual = ManualExecutor::new();
        let handle = manual.submit(|| 1).unwrap();
        drop(manual.next());
        assert!(handle.join().unwrap_err().is_cancelled());
    }

    #[test]
    fn rejected_tasks_are_returned() {
        let manual = ManualExecutor::new();
        manual.refuse(true);
        assert_eq!((manual.submit(|| 7).unwrap_err().task)(), 7);
        manual.refuse(false);
        assert!(manual.submit(|| 7).is_ok());
    }
}
