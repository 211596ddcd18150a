//! PCT schedules of scopes on real executors: the end against tasks that run, are submitted, cancelled,
//! returned, interrupted.
//!
//! Each scenario runs under 500 schedules for each depth.

use crate::shuttle_kit::{pct, threads, until_interrupted};
use millpond::executor::{
    Executor, ExecutorExt, Lifecycle, Rejected, ScopeOptions, SerialExecutor,
};
use millpond::interrupt;
use millpond::task::{self, Task};
use millpond_raw::sync::Mutex;
use millpond_raw::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use millpond_raw::sync::thread::spawn;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;

/// Takes tasks; another thread runs, drops or keeps them.
#[derive(Debug, Default)]
struct Basket(Mutex<Vec<Task>>);

impl Executor for Basket {
    fn execute_task(&self, task: Task) -> Result<(), Rejected<Task>> {
        self.0.lock().push(task);
        Ok(())
    }
}

#[test]
fn every_task_has_run_once_when_the_scope_returns() {
    pct(|| {
        let executor = threads(3);
        let cells = [0, 1, 2].map(AtomicUsize::new);
        let sum = executor.scope(|s| {
            let handle = s.submit(|| cells[0].fetch_add(10, Relaxed)).unwrap();
            s.execute(|| cells[1].fetch_add(10, Relaxed)).unwrap();
            s.execute(|| cells[2].fetch_add(10, Relaxed)).unwrap();
            handle.join().unwrap()
        });
        assert_eq!(sum, 0);
        assert_eq!(cells.map(AtomicUsize::into_inner), [10, 11, 12]);
        executor.close().unwrap();
    });
}

#[test]
fn tasks_of_tasks_end_before_the_scope_does() {
    pct(|| {
        let executor = threads(4);
        let count = AtomicUsize::new(0);
        executor.scope(|s| {
            for _ in 0..2 {
                s.execute(|| {
                    s.execute(|| count.fetch_add(1, Relaxed)).unwrap();
                    s.submit(|| count.fetch_add(1, Relaxed))
                        .unwrap()
                        .join()
                        .unwrap();
                })
                .unwrap();
            }
        });
        assert_eq!(count.into_inner(), 4);
        executor.close().unwrap();
    });
}

#[test]
fn a_task_that_is_handed_back_run_late_or_dropped_runs_once() {
    pct(|| {
        let basket = Arc::new(Basket::default());
        let others: Vec<_> = (0..2)
            .map(|n| {
                let basket = Arc::clone(&basket);
                spawn(move || {
                    let tasks = std::mem::take(&mut *basket.0.lock());
                    for task in tasks {
                        match n {
                            0 => drop(task.run()),
                            _ => drop(task),
                        }
                    }
                })
            })
            .collect();
        let cells = [0, 0, 0].map(AtomicUsize::new);
        basket.scope(|s| {
            let handles = cells
                .each_ref()
                .map(|cell| s.submit(|| cell.fetch_add(1, Relaxed)));
            let [first, second, third] = handles.map(Result::unwrap);
            assert_eq!(first.join().unwrap(), 0);
            drop(second);
            std::mem::forget(third);
        });
        assert_eq!(cells.map(AtomicUsize::into_inner), [1, 1, 1]);
        for other in others {
            other.join().unwrap();
        }
        let left = std::mem::take(&mut *basket.0.lock());
        for late in left {
            assert!(late.is_gone());
        }
    });
}

#[test]
fn a_failure_cancels_running_and_queued_tasks() {
    pct(|| {
        let executor = threads(3);
        let ended = AtomicUsize::new(0);
        let failed = catch_unwind(AssertUnwindSafe(|| {
            executor.scope_with(ScopeOptions::new().cancel_on_failure(), |s| {
                for _ in 0..2 {
                    let submitted = s.execute(|| {
                        until_interrupted();
                        ended.fetch_add(1, Relaxed);
                    });
                    submitted.unwrap();
                }
                drop(s.execute(|| resume_unwind(Box::new("on purpose"))));
            });
        }));
        assert!(failed.is_err());
        assert!(ended.into_inner() <= 2);
        executor.close().unwrap();
    });
}

#[test]
fn an_interrupt_of_the_caller_ends_its_scope_and_stays() {
    pct(|| {
        let executor = Arc::new(threads(2));
        let (task, handle) = task::new({
            let executor = Arc::clone(&executor);
            move || {
                executor.scope(|s| {
                    s.execute(until_interrupted).unwrap();
                    s.execute(until_interrupted).unwrap();
                });
                assert!(interrupt::check().is_err(), "it is still interrupted");
            }
        });
        let runner = spawn(move || drop(task.run()));
        handle.interrupt();
        runner.join().unwrap();
        executor.close().unwrap();
    });
}

#[test]
fn stopping_the_executor_ends_a_scope_on_it() {
    pct(|| {
        let executor = Arc::new(threads(2));
        let owner = spawn({
            let executor = Arc::clone(&executor);
            move || {
                let count = AtomicUsize::new(0);
                let taken = executor.scope(|s| {
                    let taken = [0, 1].map(|_| s.execute(|| count.fetch_add(1, Relaxed)).is_ok());
                    taken.into_iter().filter(|taken| *taken).count()
                });
                assert_eq!(count.into_inner(), taken, "what was taken has run");
            }
        });
        drop(executor.shutdown_now());
        owner.join().unwrap();
        executor.await_termination().unwrap();
    });
}

#[test]
fn tasks_of_a_key_run_one_at_a_time_though_the_owner_waits() {
    pct(|| {
        let serial = SerialExecutor::new(threads(2));
        let (busy, order) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
        serial.key("one").scope(|s| {
            for n in 0..3 {
                let (busy, order) = (&busy, &order);
                let submitted = s.execute(move || {
                    assert_eq!(busy.fetch_add(1, Relaxed), 0);
                    order.lock().push(n);
                    busy.fetch_sub(1, Relaxed);
                });
                submitted.unwrap();
            }
        });
        assert_eq!(*order.lock(), [0, 1, 2]);
        serial.inner().close().unwrap();
    });
}
