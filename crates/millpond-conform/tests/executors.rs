//! Every executor, and the suites that it must pass.

#![allow(
    clippy::disallowed_types,
    reason = "a test stands outside: it uses std's locks beside what it tests"
)]

use millpond::executor::{
    DirectExecutor, Executor, ExecutorExt, Lifecycle, SerialExecutor, ThreadPerTask,
};
use millpond::forkjoin::ForkJoinPool;
use millpond::thread::{Body, JoinHandle, ThreadFactory};
use millpond_conform::ask;
use millpond_conform::kit::{DropCount, Gate, ManualExecutor, until, watch};
use std::panic::panic_any;
use std::sync::{Arc, Mutex};

fn threads() -> Arc<ThreadPerTask> {
    Arc::new(ThreadPerTask::builder("conform", 32).build().unwrap())
}

ask! { direct, || Arc::new(DirectExecutor::new()), executor_suite }

ask! { thread_per_task, || threads(), executor_suite beside_suite completion_suite }

ask! { thread_per_task_ends, || threads(), lifecycle_suite }

ask! { serial, || Arc::new(SerialExecutor::new(threads()).key("conform")), executor_suite }

fn fork_join() -> Arc<ForkJoinPool> {
    Arc::new(
        ForkJoinPool::builder("conform")
            .parallelism(4)
            .build()
            .unwrap(),
    )
}

ask! { fork_join, || fork_join(), executor_suite beside_suite completion_suite }

ask! { fork_join_ends, || fork_join(), lifecycle_suite }

/// Starts nothing, as an operating system does that has run out of threads.
#[derive(Debug)]
struct Exhausted;

impl ThreadFactory for Exhausted {
    fn start(&self, _: Body) -> std::io::Result<JoinHandle<()>> {
        Err(std::io::ErrorKind::WouldBlock.into())
    }
}

#[test]
fn a_thread_that_cannot_be_started_costs_the_submitter_nothing() {
    let _watchdog = watch();
    let count = DropCount::new();
    let builder = ThreadPerTask::builder("none", 4).threads(Exhausted);
    let executor = builder.build().unwrap();
    let token = count.token();
    let rejected = executor.submit(move || token).unwrap_err();
    assert!(!rejected.reason.is_shut_down() && !rejected.reason.is_saturated());
    count.assert_alive(1);
    drop(rejected);
    count.assert_alive(0);
    executor.close().unwrap();
    assert!(
        executor.is_terminated(),
        "it ends although no thread ever was"
    );
}

#[test]
fn an_executor_without_room_rejects_until_a_task_has_ended() {
    let _watchdog = watch();
    let executor = ThreadPerTask::builder("one", 1).build().unwrap();
    let gate = Gate::new();
    let held = gate.clone();
    let first = executor.submit(move || held.wait()).unwrap();
    let rejected = executor.submit(|| 7).unwrap_err();
    assert!(rejected.reason.is_saturated());
    gate.open();
    first.join().unwrap();
    until("there is room again", || executor.threads() == 0);
    assert_eq!(executor.submit(rejected.task).unwrap().join().unwrap(), 7);
}

/// Holds: ExecutorsTest.testDefaultThreadFactory
#[test]
fn threads_are_called_by_the_name_of_their_executor_and_a_number() {
    let _watchdog = watch();
    let executor = ThreadPerTask::builder("mill", 1).build().unwrap();
    for number in 1..=3 {
        let name = || std::thread::current().name().map(str::to_owned);
        let handle = executor.submit(name).unwrap();
        assert_eq!(handle.join().unwrap(), Some(format!("mill-{number}")));
        until("there is room again", || executor.threads() == 0);
    }
}

#[test]
fn a_maximum_of_no_threads_is_an_error_with_advice() {
    let error = ThreadPerTask::builder("none", 0).build().unwrap_err();
    assert!(error.to_string().contains("allow at least one"), "{error}");
}

#[test]
fn tasks_of_one_key_run_one_after_another_and_a_panic_stalls_no_key() {
    let _watchdog = watch();
    let manual = ManualExecutor::new();
    let serial = SerialExecutor::new(manual.clone());
    let log = Arc::new(Mutex::new(Vec::new()));
    for (key, number) in [("a", 1), ("b", 2), ("a", 3), ("b", 4), ("a", 5)] {
        let log = Arc::clone(&log);
        let body = move || {
            log.lock().unwrap().push((key, number));
            if number == 1 {
                panic_any("the first of its key");
            }
        };
        drop(serial.key(key).submit(body).unwrap());
    }
    manual.run_all();
    let log = log.lock().unwrap();
    for key in ["a", "b"] {
        let numbers: Vec<u32> = log
            .iter()
            .filter(|one| one.0 == key)
            .map(|one| one.1)
            .collect();
        assert!(numbers.is_sorted(), "{numbers:?}");
    }
    assert_eq!(log.len(), 5);
    assert_eq!(serial.busy_keys(), 0, "a key without work does not exist");
}

#[test]
fn an_inner_executor_that_drops_its_tasks_leaves_no_join_waiting() {
    let _watchdog = watch();
    let manual = ManualExecutor::new();
    let serial = SerialExecutor::new(manual.clone());
    let handles = [1, 2].map(|number| serial.key("a").submit(move || number).unwrap());
    while manual.next().is_some() {}
    for handle in handles {
        assert!(handle.join().unwrap_err().is_cancelled());
    }
    assert_eq!(serial.busy_keys(), 0);
}

#[test]
fn any_pointer_to_an_executor_is_an_executor() {
    let _watchdog = watch();
    let shared: Arc<dyn Executor> = Arc::new(DirectExecutor::new());
    let boxed: Box<dyn Executor> = Box::new(Arc::clone(&shared));
    assert_eq!(boxed.submit(|| 7).unwrap().join().unwrap(), 7);
}
