//! Every interleaving of a scheduled pool with one task, weak memory included.
//!
//! The pool is the real one, with its wheel and its alarm on a manual clock. The executor is as
//! small as can be: it runs a task in the submitting thread. So the threads are those of the model, one
//! that advances the clock or schedules, and one that races with it.

use crate::model;
use millpond::executor::{Executor, Lifecycle, Rejected, TryExecuteError};
use millpond::schedule::ScheduledPool;
use millpond::task::{CancelReason, Task, TaskError};
use millpond::time::{Clock, ManualClock};
use millpond_raw::sync::atomic::{AtomicUsize, Ordering};
use millpond_raw::sync::thread::spawn;
use std::sync::Arc;
use std::time::Duration;

const SECOND: Duration = Duration::from_secs(1);

/// Runs tasks in the submitting thread.
#[derive(Debug)]
struct InPlace(Clock);

impl Executor for InPlace {
    fn execute_task(&self, task: Task) -> Result<(), Rejected<Task>> {
        let _ = task.run();
        Ok(())
    }

    fn try_execute_task(&self, task: Task) -> Result<(), TryExecuteError> {
        self.execute_task(task).map_err(TryExecuteError::Rejected)
    }

    fn clock(&self) -> Clock {
        self.0.clone()
    }
}

fn timers() -> (ScheduledPool<InPlace>, ManualClock) {
    let hand = ManualClock::new();
    (ScheduledPool::on(InPlace(hand.clock())).build(), hand)
}

/// Counts how often its closure has run, and how often it was dropped.
#[derive(Clone, Default)]
struct Count(Arc<[AtomicUsize; 2]>);

impl Count {
    fn of(&self) -> [usize; 2] {
        [0, 1].map(|which| self.0[which].load(Ordering::Relaxed))
    }

    fn closure(&self) -> impl FnOnce() -> u32 + Send + use<> {
        let mark = Mark(self.clone());
        move || {
            mark.0.0[0].fetch_add(1, Ordering::Relaxed);
            7
        }
    }
}

struct Mark(Count);

impl Drop for Mark {
    fn drop(&mut self) {
        self.0.0[1].fetch_add(1, Ordering::Relaxed);
    }
}

/// SCHEDULE-1: it is scheduled before the shutdown and runs at its time, or it is rejected. Java lost it
/// between the two.
#[test]
fn a_task_that_is_scheduled_meets_a_shutdown() {
    model(2, || {
        let (timers, hand) = timers();
        let count = Count::default();
        let scheduler = spawn({
            let (timers, count) = (timers.clone(), count.clone());
            move || timers.schedule(SECOND, count.closure())
        });
        timers.shutdown();
        match scheduler.join().unwrap() {
            Ok(handle) => {
                assert!(!timers.is_terminated());
                hand.advance(SECOND);
                assert_eq!(handle.join().unwrap(), 7);
                assert_eq!(count.of(), [1, 1]);
            }
            Err(rejected) => {
                assert!(rejected.reason.is_shut_down());
                assert_eq!(count.of(), [0, 0], "it came back");
            }
        }
        timers.await_termination().unwrap();
        assert_eq!(timers.snapshot().pending, 0);
        assert_eq!(hand.sleepers(), 0);
    });
}

/// The same for a task that is due at once, while a thread awaits termination.
#[test]
fn a_task_that_is_due_meets_a_shutdown() {
    model(2, || {
        let (timers, _hand) = timers();
        let scheduler = spawn({
            let timers = timers.clone();
            move || match timers.schedule(Duration::ZERO, || 7) {
                Ok(handle) => assert_eq!(handle.join().unwrap(), 7),
                Err(rejected) => assert!(rejected.reason.is_shut_down()),
            }
        });
        timers.close().unwrap();
        assert_eq!(timers.snapshot().pending, 0);
        scheduler.join().unwrap();
    });
}

/// SCHEDULE-2: the closure is run or dropped, once, and the handle says which.
#[test]
fn a_task_that_is_cancelled_meets_its_time() {
    model(2, || {
        let (timers, hand) = timers();
        let count = Count::default();
        let task = timers.schedule(SECOND, count.closure()).unwrap();
        let clock = spawn({
            let hand = hand.clone();
            move || hand.advance(SECOND)
        });
        let was_first = task.cancel();
        match task.join() {
            Ok(7) => assert!(!was_first),
            Err(TaskError::Cancelled(CancelReason::Requested)) => assert!(was_first),
            other => panic!("{other:?}"),
        }
        clock.join().unwrap();
        let [runs, drops] = count.of();
        assert_eq!(drops, 1);
        assert!(was_first || runs == 1, "it was finished before");
        assert_eq!(timers.snapshot().pending, 0);
        timers.close().unwrap();
        assert_eq!(hand.sleepers(), 0);
    });
}

/// DISPATCH-1: the alarm fires while it is being set for an earlier task.
#[test]
fn a_task_that_is_scheduled_meets_an_alarm() {
    model(2, || {
        let (timers, hand) = timers();
        let first = timers.schedule(SECOND, || 7).unwrap();
        let clock = spawn({
            let hand = hand.clone();
            move || hand.advance(SECOND)
        });
        let second = timers.schedule(Duration::ZERO, || 8).unwrap();
        clock.join().unwrap();
        // No thread moves any more, and both are due.
        assert!(first.is_finished() && second.is_finished());
        timers.close().unwrap();
        assert_eq!(hand.sleepers(), 0);
    });
}
