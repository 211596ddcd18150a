//! A stack is copied at once, however late it is told. From inside, because only there one can see that it
//! has been copied.

#![allow(
    clippy::disallowed_types,
    clippy::disallowed_methods,
    reason = "a test uses std's threads and channels beside what it tests"
)]

use super::{ENDED, Seen, stack};
use crate::executor::{ExecutorExt, Lifecycle};
use crate::pool::{Notice, RunWarning, ThreadPool};
use crate::task::TaskSpec;
use std::sync::{Mutex, mpsc};
use std::thread;
use std::time::{Duration, Instant};

const LONG: Duration = Duration::from_secs(20);

#[inline(never)]
fn is_in_first(stay: &mpsc::Receiver<()>) {
    let _ = std::hint::black_box(stay.recv());
}

#[inline(never)]
fn is_in_second(stay: &mpsc::Receiver<()>) {
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
    let (tell, told) = mpsc::channel();
    let (open, gate) = mpsc::channel::<()>();
    let gate = Mutex::new(gate);
    let slow = move |notice: &Notice| {
        tell.send(notice.clone()).unwrap();
        let _ = gate.lock().unwrap().recv();
    };
    let limit = RunWarning::after(Duration::from_millis(20));
    let pool = ThreadPool::builder("mill")
        .core(1)
        .max(1)
        .run_warning(limit)
        .on_notice(slow);
    let pool = pool.build().unwrap();
    let mut notices = Vec::new();
    for (number, name) in (1..).zip(["first", "second"]) {
        let (leave, stay) = mpsc::channel();
        // Files of a pool at the outer end of a stack are not shown; those inside others are.
        let body = move || match number {
            1 => thread::scope(|_| is_in_first(&stay)),
            _ => thread::scope(|_| is_in_second(&stay)),
        };
        let task = pool.submit_spec(TaskSpec::new().name(name), body).unwrap();
        wait_for_copies(&pool, number);
        if number == 1 {
            notices.push(told.recv_timeout(LONG).unwrap());
        }
        drop(leave);
        task.join().unwrap();
    }
    drop(open);
    notices.push(told.recv_timeout(LONG).unwrap());
    for (notice, name) in notices.iter().zip(["first", "second"]) {
        let Notice::RunsLong(run) = notice else {
            panic!("{notice}");
        };
        assert_eq!(run.label.to_string(), name);
        match stack::IS_BUILT && cfg!(feature = "stack-dump") {
            // A busy machine may not let it answer in time.
            true if run.stack.contains("did not answer") => {}
            true => assert!(run.stack.contains(&format!("is_in_{name}")), "{notice}"),
            false => assert!(run.stack.starts_with("no stack: "), "{notice}"),
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
        let workers = pool.engine.with_crew(|crew| crew.workers());
        seen.push(Seen::now(&workers[0]));
        let stacks = pool.engine.stacks_of_seen(&seen);
        let (last, before) = stacks.split_last().unwrap();
        assert_ne!(last, ENDED);
        let is_right = |stack: &String| !stack::IS_BUILT || stack == ENDED;
        assert!(before.iter().all(is_right), "{before:?}");
        drop(leave);
        task.join().unwrap();
    }
    pool.close().unwrap();
}
