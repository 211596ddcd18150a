//! Programs that once ran user code under a lock of ours, or on the timer's thread. The guard of
//! `millpond_raw::user_code` aborts a process that does, so each runs in one of its own.

#![cfg(not(any(millpond_loom, millpond_shuttle)))]
#![allow(
    clippy::disallowed_types,
    clippy::disallowed_methods,
    reason = "a test stands outside: it uses std's threads and channels beside what it tests"
)]

mod forward_kit;

use forward_kit::forward_to_inner;
use millpond::executor::{
    CompletionService, Executor, ExecutorExt, Lifecycle, RejectReason, Rejected, TryExecuteError,
};
use millpond::forkjoin::{ForkJoinEvent, ForkJoinPool};
use millpond::pool::{PoolEvent, Queue, RunWarning, ThreadPool};
use millpond::queue::{
    BlockingQueue, CapacityError, FifoQueue, OfferError, Offered, QueueHint, Taken, WaitSlot,
};
use millpond::schedule::ScheduledPool;
use millpond::task::{Task, TaskHandle, TaskSpec};
use millpond::time::Clock;
use millpond_testkit::watch;
use std::ops::ControlFlow;
use std::process::Command;
use std::sync::mpsc;
use std::task::Waker;
use std::time::Duration;

const INSIDE: &str = "MILLPOND_TEST_INSIDE";

/// Runs `program` in a process of its own, which is this test again, and fails if it does not end well.
fn alone(test: &str, program: impl FnOnce()) {
    if std::env::var_os(INSIDE).is_some() {
        let _watch = watch();
        return program();
    }
    let mut again = Command::new(std::env::current_exe().expect("this program has a path"));
    again.args(["--exact", test, "--nocapture", "--test-threads=1"]);
    let output = again.env(INSIDE, "yes").output();
    let output = output.expect("this program can be started");
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}\n{text}", output.status);
    assert!(!text.contains("millpond: user code"), "{text}");
}

/// A destructor that might do anything.
struct Heavy;

impl Drop for Heavy {
    fn drop(&mut self) {
        millpond_raw::user_code::check(millpond_raw::user_code::Kind::Destructor);
    }
}

/// Keeps a worker busy until the sender is dropped.
fn hold(pool: &impl Executor) -> mpsc::Sender<()> {
    let (go, may_go) = mpsc::channel::<()>();
    let busy = pool.submit(move || may_go.recv().is_err()).unwrap();
    wait_until_started(&busy);
    go
}

fn wait_until_started<T>(task: &TaskHandle<T>) {
    while !task.is_started() {
        std::thread::yield_now();
    }
}

#[test]
fn cancelled_tasks_that_are_purged_from_a_full_queue_are_dropped_under_no_lock() {
    let test = "cancelled_tasks_that_are_purged_from_a_full_queue_are_dropped_under_no_lock";
    alone(test, || {
        let pool = ThreadPool::builder("mill").core(1).max(1);
        let pool = pool.queue(Queue::bounded(2)).build().unwrap();
        let go = hold(&pool);
        for _ in 0..2 {
            let cancelled = pool.submit(|| Heavy).unwrap();
            assert!(cancelled.cancel());
        }
        // Full of tombstones: this one clears them out.
        let last = pool.submit(|| ()).unwrap();
        drop(go);
        last.join().unwrap();
    });
}

/// A queue as a user might write one: each call of it might take long.
#[derive(Debug)]
struct Own(FifoQueue<Task>);

impl BlockingQueue<Task> for Own {
    forward_to_inner!();

    fn hand_back(&self, task: Task) {
        self.0.hand_back(task);
    }

    fn hint(&self) -> Option<QueueHint> {
        self.0.hint()
    }
}

#[test]
fn the_watchdog_of_a_pool_calls_no_queue_of_the_user_on_the_timers_thread() {
    let test = "the_watchdog_of_a_pool_calls_no_queue_of_the_user_on_the_timers_thread";
    alone(test, || {
        let (tell, told) = mpsc::channel();
        let pool = ThreadPool::builder("mill").core(1).max(1);
        let pool = pool.queue(Queue::custom(Own(FifoQueue::unbounded())));
        let pool = pool.run_warning(RunWarning::after(Duration::from_millis(5)));
        let pool = pool.on_event(move |notice| {
            if let PoolEvent::LongRunning(_) = notice {
                let _ = tell.send(());
            }
        });
        let pool = pool.build().unwrap();
        // The watch tells of a task that runs long, and asks the queue after that: the second time it has asked.
        for _ in 0..2 {
            let go = hold(&pool);
            told.recv().unwrap();
            drop(go);
        }
    });
}

#[test]
fn the_watchdog_of_a_fork_join_pool_calls_no_listener_on_the_timers_thread() {
    let test = "the_watchdog_of_a_fork_join_pool_calls_no_listener_on_the_timers_thread";
    alone(test, || {
        let (tell, told) = mpsc::channel();
        let pool = ForkJoinPool::builder("mill").parallelism(1);
        let pool = pool.run_warning(RunWarning::after(Duration::from_millis(5)));
        let pool = pool.on_event(move |event| {
            millpond_raw::user_code::check(millpond_raw::user_code::Kind::Listener);
            if let ForkJoinEvent::LongRunning(_) = event {
                let _ = tell.send(());
            }
        });
        let pool = pool.build().unwrap();
        let go = hold(&pool);
        told.recv().unwrap();
        drop(go);
    });
}

/// The only worker of `pool` is busy when the deadline of a task comes.
fn misses_a_deadline(pool: impl Executor + Clone + 'static) {
    let go = hold(&pool);
    let results = CompletionService::new(pool);
    let soon = Clock::system().deadline(Duration::from_millis(20));
    let heavy = Heavy;
    let late = move || drop(heavy);
    results
        .submit_with(TaskSpec::new().deadline(soon), late)
        .map_err(|rejected| rejected.reason)
        .unwrap();
    let arrived = results.take().unwrap();
    assert!(arrived.result.unwrap_err().is_cancelled());
    drop(go);
}

#[test]
fn a_task_whose_deadline_comes_is_not_dropped_on_the_timers_thread() {
    let test = "a_task_whose_deadline_comes_is_not_dropped_on_the_timers_thread";
    alone(test, || {
        let pool = ThreadPool::builder("mill").core(1).max(1).build();
        misses_a_deadline(pool.unwrap());
    });
}

#[test]
fn a_task_of_a_fork_join_pool_whose_deadline_comes_is_not_dropped_on_the_timers_thread() {
    let test =
        "a_task_of_a_fork_join_pool_whose_deadline_comes_is_not_dropped_on_the_timers_thread";
    alone(test, || {
        let pool = ForkJoinPool::builder("mill").parallelism(1).build();
        misses_a_deadline(pool.unwrap());
    });
}

#[test]
fn cancelled_tasks_of_a_fork_join_pool_are_dropped_under_no_lock() {
    let test = "cancelled_tasks_of_a_fork_join_pool_are_dropped_under_no_lock";
    alone(test, || {
        let pool = ForkJoinPool::builder("mill").parallelism(1);
        let pool = pool.build().unwrap();
        let go = hold(&pool);
        for _ in 0..2 {
            let heavy = Heavy;
            let cancelled = pool.submit(move || drop(heavy)).unwrap();
            assert!(cancelled.cancel());
        }
        let heavy = Heavy;
        pool.execute(move || drop(heavy)).unwrap();
        drop(pool.shutdown_now());
        drop(go);
        pool.await_termination().unwrap();
    });
}

/// Takes nothing, and says so at once.
#[derive(Debug)]
struct Rejecting;

impl Executor for Rejecting {
    fn execute_task(&self, task: Task) -> Result<(), Rejected<Task>> {
        Err(Rejected::new(task, RejectReason::saturated(7, 7, 2)))
    }

    fn try_execute_task(&self, task: Task) -> Result<(), TryExecuteError> {
        self.execute_task(task).map_err(TryExecuteError::Rejected)
    }
}

#[test]
fn a_rejected_scheduled_task_is_not_dropped_on_the_timers_thread() {
    let test = "a_rejected_scheduled_task_is_not_dropped_on_the_timers_thread";
    alone(test, || {
        let pool = ScheduledPool::on(Rejecting).on_event(|_| ()).build();
        let heavy = Heavy;
        let rejected = pool.schedule(Duration::from_millis(20), move || drop(heavy));
        let rejected = rejected.map_err(|rejected| rejected.reason).unwrap();
        assert!(rejected.join().unwrap_err().is_cancelled());
    });
}

#[test]
fn a_scheduled_task_starts_no_worker_on_the_timers_thread() {
    let test = "a_scheduled_task_starts_no_worker_on_the_timers_thread";
    alone(test, || {
        let below = ThreadPool::builder("mill").core(1).max(1).build();
        runs_when_due(below.unwrap());
    });
}

#[test]
fn a_scheduled_task_starts_no_fork_join_worker_on_the_timers_thread() {
    let test = "a_scheduled_task_starts_no_fork_join_worker_on_the_timers_thread";
    alone(test, || {
        let below = ForkJoinPool::builder("mill").parallelism(1).build();
        runs_when_due(below.unwrap());
    });
}

/// The first task of the executor comes from a timer.
fn runs_when_due(below: impl Executor + 'static) {
    let pool = ScheduledPool::on(below).build();
    let task = pool.schedule(Duration::from_millis(20), || 7);
    let task = task.map_err(|rejected| rejected.reason).unwrap();
    assert_eq!(task.join().unwrap(), 7);
}
