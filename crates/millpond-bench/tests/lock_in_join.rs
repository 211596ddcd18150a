//! A job that holds a lock while it joins: the deadlock that users of rayon know, and the same program without it.
//!
//! The job holds the lock and waits in a join for a part that another worker runs. Meanwhile a job is queued that wants the
//! lock. Rayon's waiting worker takes that job and runs it on its own stack, where it waits for a lock that the frames
//! below hold. Ours runs only parts of what it waits for, and a spare worker runs the other job.

#![allow(
    clippy::disallowed_types,
    clippy::disallowed_methods,
    reason = "a test stands outside: it uses std's locks, threads and channels beside what it tests"
)]

use millpond::executor::ExecutorExt;
use millpond::forkjoin::{self, ForkJoinPool};
use std::sync::mpsc::{self, Receiver};
use std::sync::{Arc, Mutex};
use std::thread::{self, ThreadId};
use std::time::Duration;

const TIMEOUT: Duration = Duration::from_secs(60);

/// Who holds the lock and who wants it, when that is known; and a message when all is over.
struct Course {
    threads: Receiver<(ThreadId, ThreadId)>,
    over: Receiver<()>,
}

/// Runs the program on a thread of its own, which may never end.
fn play(
    install: impl FnOnce(Box<dyn FnOnce() + Send>) + Send + 'static,
    spawn: impl FnOnce(Box<dyn FnOnce() + Send>) + Send + 'static,
    join: impl FnOnce(Box<dyn FnOnce() + Send>, Box<dyn FnOnce() + Send>) + Send + 'static,
) -> Course {
    let (tell_threads, threads) = mpsc::channel();
    let (tell_over, over) = mpsc::channel();
    thread::spawn(move || {
        let lock = Arc::new(Mutex::new(()));
        install(Box::new(move || {
            let holder = thread::current().id();
            let held = lock.lock().unwrap();
            let (tell_started, started) = mpsc::channel();
            let (tell_wanted, wanted) = mpsc::channel();
            let other = Arc::clone(&lock);
            let wants = move || {
                tell_threads.send((holder, thread::current().id())).unwrap();
                tell_wanted.send(()).unwrap();
                drop(other.lock().unwrap());
            };
            let first = move || {
                started.recv_timeout(TIMEOUT).unwrap();
                spawn(Box::new(wants));
            };
            let second = move || {
                tell_started.send(()).unwrap();
                wanted.recv_timeout(TIMEOUT).unwrap();
            };
            join(Box::new(first), Box::new(second));
            drop(held);
        }));
        tell_over.send(()).unwrap();
    });
    Course { threads, over }
}

#[test]
fn rayon_runs_the_job_that_wants_the_lock_on_the_stack_that_holds_it_and_hangs() {
    let pool = rayon_core::ThreadPoolBuilder::new()
        .num_threads(2)
        .build()
        .unwrap();
    let course = play(
        move |program| pool.install(program),
        rayon_core::spawn,
        |first, second| _ = rayon_core::join(first, second),
    );
    let (holder, wants) = course.threads.recv_timeout(TIMEOUT).unwrap();
    assert_eq!(holder, wants, "on the same thread");
    assert!(
        course
            .over
            .recv_timeout(Duration::from_millis(200))
            .is_err(),
        "it hangs"
    );
}

#[test]
fn ours_runs_it_on_a_spare_and_ends() {
    let pool = ForkJoinPool::builder("mill")
        .parallelism(2)
        .build()
        .unwrap();
    let own = pool.clone();
    let course = play(
        move |program| pool.install(program),
        move |job| own.execute(job).unwrap(),
        |first, second| _ = forkjoin::join(first, second),
    );
    let (holder, wants) = course.threads.recv_timeout(TIMEOUT).unwrap();
    assert_ne!(holder, wants, "on another thread");
    course.over.recv_timeout(TIMEOUT).expect("it ends");
}
