//! PCT schedules of tasks that wait for each other, and of workers that run what they join.
//!
//! Run with `RUSTFLAGS="--cfg millpond_shuttle" cargo test -p millpond --profile models --test
//! shuttle_waiting`. Each scenario runs under 500 schedules for each depth from 1 to 4;
//! `MILLPOND_SCHEDULES` changes the number.
#![cfg(millpond_shuttle)]

mod shuttle_drive;

use millpond::executor::{ExecutorExt, Lifecycle};
use millpond::pool::{Queue, ThreadPool};
use millpond::task::{self, SharedHandle, Task, TaskError, TaskSpec};
use millpond_raw::sync::Mutex;
use millpond_raw::sync::thread::{JoinHandle, spawn};
use std::sync::Arc;

fn pct(scenario: impl Fn() + Send + Sync + 'static) {
    shuttle_drive::pct(500, scenario);
}

/// The outcome of a task of a cycle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Heard {
    Value,
    Deadlock(usize),
    Interrupted,
    Cancelled,
}

type Ring = Arc<Mutex<Vec<SharedHandle<Heard>>>>;

const NAMES: [&str; 3] = ["one", "two", "three"];

/// So many tasks, each of which joins the next, and their handles.
fn ring(count: usize) -> (Vec<Task>, Vec<SharedHandle<Heard>>) {
    let all: Ring = Arc::default();
    let made = (0..count).map(|place| {
        let all = Arc::clone(&all);
        TaskSpec::new().name(NAMES[place]).build(move || {
            let next = all.lock()[(place + 1) % count].clone();
            match next.join() {
                Ok(_) => Heard::Value,
                Err(TaskError::Deadlock(cycle)) => {
                    let names = cycle.tasks().iter().map(|task| task.name().unwrap());
                    let ring = (0..count).map(|step| NAMES[(place + step) % count]);
                    assert!(names.eq(ring), "{cycle}");
                    Heard::Deadlock(place)
                }
                Err(TaskError::Interrupted) => Heard::Interrupted,
                Err(_) => Heard::Cancelled,
            }
        })
    });
    let (tasks, handles): (Vec<_>, Vec<_>) = made.unzip();
    let handles: Vec<_> = handles.into_iter().map(|one| one.shared()).collect();
    all.lock().extend(handles.iter().cloned());
    (tasks, handles)
}

fn run(tasks: Vec<Task>) -> Vec<JoinHandle<()>> {
    let runners = tasks.into_iter().map(|task| {
        spawn(move || {
            task.run();
        })
    });
    runners.collect()
}

fn exactly_one_is_told(count: usize) {
    let (tasks, handles) = ring(count);
    for runner in run(tasks) {
        runner.join().unwrap();
    }
    let heard: Vec<_> = handles.iter().map(|one| *one.join().unwrap()).collect();
    let told = heard.iter().filter(|one| matches!(one, Heard::Deadlock(_)));
    assert_eq!(told.count(), 1, "{heard:?}");
    let through = heard.iter().filter(|one| **one == Heard::Value);
    assert_eq!(through.count(), count - 1, "{heard:?}");
    assert!(task::blocked_joins().is_empty());
}

#[test]
fn in_a_cycle_of_two_exactly_one_join_fails_and_none_hangs() {
    pct(|| exactly_one_is_told(2));
}

#[test]
fn in_a_cycle_of_three_exactly_one_join_fails_and_none_hangs() {
    pct(|| exactly_one_is_told(3));
}

/// The interrupted task may break the cycle before it is closed, or not.
#[test]
fn an_interrupt_in_a_cycle_and_its_detection_agree() {
    pct(|| {
        let (tasks, handles) = ring(2);
        let runners = run(tasks);
        let interrupted = handles[0].interrupt();
        for runner in runners {
            runner.join().unwrap();
        }
        match (handles[0].join(), handles[1].join()) {
            (Err(TaskError::Cancelled(_)), Ok(heard)) => {
                assert!(interrupted);
                // Its join failed, or it got the cancellation of the other.
                assert!(matches!(heard, Heard::Cancelled | Heard::Deadlock(1)));
            }
            (Ok(one), Ok(two)) => {
                assert!(!interrupted);
                assert!(matches!(
                    (one, two),
                    (Heard::Value, Heard::Deadlock(1)) | (Heard::Deadlock(0), Heard::Value)
                ));
            }
            other => panic!("{other:?}"),
        }
        assert!(task::blocked_joins().is_empty());
    });
}

/// A chain is no cycle, however its ends meet in time.
#[test]
fn a_chain_of_joins_without_a_cycle_never_fails() {
    pct(|| {
        let (last, end) = task::new(|| 7);
        let end = end.shared();
        let other = end.clone();
        let (middle, handle) = task::new(move || *end.join().unwrap());
        let (first, handle) = task::new(move || handle.join().unwrap() + *other.join().unwrap());
        let runners = run(vec![last, middle, first]);
        assert_eq!(handle.join().unwrap(), 14);
        for runner in runners {
            runner.join().unwrap();
        }
    });
}

fn pool(workers: usize) -> ThreadPool {
    let pool = ThreadPool::builder("model").core(workers).max(workers);
    pool.queue(Queue::bounded(4)).build().unwrap()
}

fn balanced(pool: &ThreadPool, accepted: u64) {
    let now = pool.snapshot();
    let over = now.completed + now.cancelled;
    assert_eq!(over, accepted, "{now:?}");
    assert_eq!(now.queued + now.active + now.running_inline, 0, "{now:?}");
}

/// Whether its own worker runs it inline or another one does, it is counted once.
#[test]
fn a_joined_task_is_run_and_counted_once() {
    pct(|| {
        let pool = pool(2);
        let own = pool.clone();
        let parent = pool.submit(move || own.submit(|| 7).unwrap().join().unwrap());
        assert_eq!(parent.unwrap().join().unwrap(), 7);
        pool.close().unwrap();
        balanced(&pool, 2);
        assert_eq!(pool.snapshot().completed, 2);
    });
}

/// A task that is returned by a stop while its worker joins it: one of them has it.
#[test]
fn a_stop_and_a_self_join_do_not_both_count_a_task() {
    pct(|| {
        let pool = pool(1);
        let own = pool.clone();
        let parent = pool.submit(move || {
            let Ok(child) = own.submit(|| 7) else {
                return 1;
            };
            // Once it has reported the stop it may run tasks inline again.
            let mut child = child;
            while child.wait().is_err() {}
            2
        });
        let parent = parent.unwrap();
        let back = pool.shutdown_now();
        drop(back);
        // It may have been returned before it began.
        let accepted = parent.join().unwrap_or(1);
        pool.await_termination().unwrap();
        balanced(&pool, accepted);
    });
}
