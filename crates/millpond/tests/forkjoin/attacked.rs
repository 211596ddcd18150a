//! What attacks on the pool have found: wake-ups that were lost, ends that never came, books that were wrong.

use crate::{TIMEOUT, until};
use millpond::executor::{ExecutorExt, Lifecycle};
use millpond::forkjoin::{self, ForkJoinPool};
use millpond::thread::{Body, JoinHandle, ThreadFactory};
use std::io;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread;
use std::time::Duration;

/// Starts one thread. All others are refused, when the test says so.
#[derive(Debug)]
struct OneThread {
    count: AtomicUsize,
    asked: Mutex<Sender<()>>,
    refuse: Mutex<Receiver<()>>,
}

impl ThreadFactory for OneThread {
    fn start(&self, body: Body) -> io::Result<JoinHandle<()>> {
        if self.count.fetch_add(1, Ordering::Relaxed) == 0 {
            return thread::Builder::new().spawn(body);
        }
        self.asked.lock().unwrap().send(()).unwrap();
        self.refuse.lock().unwrap().recv().unwrap();
        Err(io::Error::other("no thread today"))
    }
}

/// The only worker of a pool runs a task, and a second worker is counted, but its thread is not started yet. Then the task
/// ends, and the worker sleeps. `meanwhile` is called before the task ends. The second worker was to run a task, whose
/// result is checked after the start of its thread has failed.
fn second_start_fails(parallelism: usize, meanwhile: impl FnOnce(&ForkJoinPool)) -> ForkJoinPool {
    let (asked, is_asked) = mpsc::channel();
    let (refuse, is_refused) = mpsc::channel();
    let pool = ForkJoinPool::builder("mill")
        .parallelism(parallelism)
        .keep_alive(Duration::MAX)
        .threads(OneThread {
            count: AtomicUsize::new(0),
            asked: Mutex::new(asked),
            refuse: Mutex::new(is_refused),
        })
        .build()
        .unwrap();
    let (release, released) = mpsc::channel::<()>();
    let first = pool.submit(move || forkjoin::blocking(|| released.recv().unwrap()));
    until(|| pool.snapshot().blocked == 1);
    let other = pool.clone();
    let submitter = thread::spawn(move || other.submit(|| 7).unwrap());
    is_asked.recv().unwrap();
    meanwhile(&pool);
    release.send(()).unwrap();
    first.unwrap().join().unwrap();
    until(|| pool.snapshot().sleeping == 1);
    refuse.send(()).unwrap();
    let second = submitter.join().unwrap().join_timeout(TIMEOUT);
    assert_eq!(second.unwrap(), 7);
    pool
}

#[test]
fn a_thread_that_cannot_be_started_during_a_shutdown_does_not_keep_the_pool_from_ending() {
    let pool = second_start_fails(2, Lifecycle::shutdown);
    assert!(pool.await_termination_timeout(TIMEOUT).unwrap());
}

#[test]
fn a_sleeping_worker_runs_what_a_worker_that_cannot_be_started_was_to_run() {
    let pool = second_start_fails(1, |_| ());
    drop(pool);
}

#[derive(Debug)]
struct Refusing;

impl ThreadFactory for Refusing {
    fn start(&self, _: Body) -> io::Result<JoinHandle<()>> {
        Err(io::Error::other("no thread today"))
    }
}

#[test]
fn a_task_for_which_no_thread_can_be_started_is_rejected_and_not_submitted() {
    let pool = ForkJoinPool::builder("mill").threads(Refusing);
    let pool = pool.build().unwrap();
    for _ in 0..10 {
        assert!(pool.submit(|| ()).is_err());
    }
    let now = pool.snapshot();
    assert_eq!((now.submitted, now.rejected), (0, 10));
    assert_eq!(
        (now.completed, now.cancelled, now.queued_outside),
        (0, 0, 0)
    );
}
