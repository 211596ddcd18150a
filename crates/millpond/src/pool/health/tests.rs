//! A stack is copied at once, however late it is received. From inside, because only there one can see that it
//! has been copied.

#![allow(
    clippy::disallowed_types,
    clippy::disallowed_methods,
    reason = "a test uses std's threads and channels beside what it tests"
)]

use crate::engine::stacks::{self, ENDED, Seen};
use crate::executor::{ExecutorExt, Lifecycle};
use crate::pool::{PoolEvent, RunWarning, ThreadPool};
use crate::stack;
use crate::task::TaskSpec;
use std::sync::{Mutex, mpsc};
use std::thread;
use std::time::{Duration, Instant};

const LONG: Duration = Duration::from_secs(20);

#[inline(never)]
fn run_in_first(stay: &mpsc::Receiver<()>) {
    let _ = std::hint::black_box(stay.recv());
}

#[inline(never)]
fn run_in_second(stay: &mpsc::Receiver<()>) {
    let _ = std::hint::black_box(stay.recv());
    std::hint::black_box(2);
}

/// Waits until the stacks of so many long runs have been copied.
fn wait_for_copies(pool: &ThreadPool, runs: u64) {
    let start = Instant::now();
    while pool.engine.long_runs.copied() < runs {
        assert!(start.elapsed() < LONG);
        thread::yield_now();
    }
}

#[test]
fn the_stack_of_a_long_run_is_that_of_its_task_although_it_is_told_when_that_has_ended() {
    let (sender, received) = mpsc::channel();
    let (open, gate) = mpsc::channel::<()>();
    let gate = Mutex::new(gate);
    let slow = move |event: &PoolEvent| {
        sender.send(event.clone()).unwrap();
        let _ = gate.lock().unwrap().recv();
    };
    let limit = RunWarning::after(Duration::from_millis(20));
    let pool = ThreadPool::builder("mill")
        .core(1)
        .max(1)
        .run_warning(limit)
        .on_event(slow);
    let pool = pool.build().unwrap();
    let mut events = Vec::new();
    for (number, name) in (1..).zip(["first", "second"]) {
        let (leave, stay) = mpsc::channel();
        // Files of a pool at the outer end of a stack are not shown; those inside others are.
        let body = move || match number {
            1 => thread::scope(|_| run_in_first(&stay)),
            _ => thread::scope(|_| run_in_second(&stay)),
        };
        let task = pool.submit_with(TaskSpec::new().name(name), body).unwrap();
        wait_for_copies(&pool, number);
        if number == 1 {
            events.push(received.recv_timeout(LONG).unwrap());
        }
        drop(leave);
        task.join().unwrap();
    }
    drop(open);
    events.push(received.recv_timeout(LONG).unwrap());
    for (event, name) in events.iter().zip(["first", "second"]) {
        let PoolEvent::LongRunning(run) = event else {
            panic!("{event}");
        };
        assert_eq!(run.label.to_string(), name);
        if !stack::IS_SUPPORTED {
            assert!(run.stack.starts_with("no stack: "), "{event}");
        } else if !run.stack.contains("did not answer") {
            // A busy machine may not let it answer in time.
            assert!(run.stack.contains(&format!("run_in_{name}")), "{event}");
        }
    }
    pool.close().unwrap();
}

#[test]
fn a_worker_that_has_gone_on_to_another_task_has_no_stack_of_the_one_before() {
    let pool = ThreadPool::builder("mill").core(1).max(1).build().unwrap();
    let mut seen = Vec::new();
    for _ in 0..2 {
        let ((leave, stay), (say, hear)) = (mpsc::channel::<()>(), mpsc::channel());
        let body = move || {
            say.send(()).unwrap();
            let _ = stay.recv();
        };
        let task = pool.submit(body).unwrap();
        hear.recv_timeout(LONG).unwrap();
        let workers = pool.engine.with_workers(|workers| workers.list());
        seen.push(Seen::now(&workers[0]));
        let stacks = stacks::of_seen(&seen);
        let (last, before) = stacks.split_last().unwrap();
        assert_ne!(last, ENDED);
        let is_right = |stack: &String| !stack::IS_SUPPORTED || stack == ENDED;
        assert!(before.iter().all(is_right), "{before:?}");
        drop(leave);
        task.join().unwrap();
    }
    pool.close().unwrap();
}
