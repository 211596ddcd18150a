//! What attacks on the pool have found: wake-ups that were lost, ends that never came, books that were wrong.

use crate::{TIMEOUT, pool, until};
use millpond::executor::{ExecutorExt, Lifecycle};
use millpond::forkjoin::{self, ForkJoinPool};
use millpond::thread::{Body, JoinHandle, ThreadFactory};
use std::io;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Barrier, Mutex};
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

#[test]
fn tasks_that_await_quiescence_do_not_wait_for_each_other() {
    let pool = pool(2);
    let both = Arc::new(Barrier::new(2));
    let waits = [0, 1].map(|_| {
        let (own, both) = (pool.clone(), Arc::clone(&both));
        pool.submit(move || {
            both.wait();
            own.await_quiescence(TIMEOUT).unwrap()
        })
    });
    assert!(waits.into_iter().all(|wait| wait.unwrap().join().unwrap()));
}

#[test]
fn a_task_that_helps_until_quiescence_waits_for_what_another_worker_runs() {
    let pool = pool(2);
    let own = pool.clone();
    let (release, released) = mpsc::channel::<()>();
    let helps = pool.submit(move || {
        let other = own.submit(move || released.recv().unwrap()).unwrap();
        until(|| other.is_started());
        own.help_quiesce();
        other.is_finished()
    });
    // The helper has found nothing to run.
    until(|| pool.snapshot().sleeping == 1);
    release.send(()).unwrap();
    assert!(helps.unwrap().join().unwrap());
}

#[test]
fn a_task_that_helps_until_quiescence_runs_what_comes_meanwhile() {
    let builder = ForkJoinPool::builder("mill").parallelism(2).max_spares(0);
    let pool = builder.build().unwrap();
    let own = pool.clone();
    let (release, released) = mpsc::channel::<()>();
    let holds = pool.submit(move || released.recv().unwrap()).unwrap();
    until(|| holds.is_started());
    let helps = pool.submit(move || own.help_quiesce()).unwrap();
    until(|| pool.snapshot().sleeping == 1);
    assert_eq!(pool.submit(|| 7).unwrap().join_timeout(TIMEOUT).unwrap(), 7);
    assert!(!helps.is_finished());
    assert!(!pool.is_quiescent());
    release.send(()).unwrap();
    helps.join().unwrap();
}

#[test]
fn a_task_that_helps_until_quiescence_does_not_wait_for_one_that_waits_for_it() {
    let pool = pool(2);
    let own = pool.clone();
    let (done, is_done) = mpsc::channel();
    let is_done = Mutex::new(is_done);
    pool.install(|| {
        forkjoin::join(
            // It is woken when the other part is over, and has nothing to help with.
            || forkjoin::blocking(|| is_done.lock().unwrap().recv_timeout(TIMEOUT).unwrap()),
            || {
                own.help_quiesce();
                done.send(()).unwrap();
            },
        )
    });
}

// Under the address sanitizer locals are not on the stack, so nobody knows how much of it is left.
#[cfg(not(millpond_plain_memory))]
#[test]
fn many_tasks_that_all_help_until_quiescence_do_not_overflow_the_stack() {
    let pool = pool(1);
    let own = pool.clone();
    let (ran, count) = (Arc::new(AtomicUsize::new(0)), 50_000);
    let all = Arc::clone(&ran);
    let forks = pool.submit(move || {
        for _ in 0..count {
            let (helper, ran) = (own.clone(), Arc::clone(&all));
            let helps = move || {
                helper.help_quiesce();
                ran.fetch_add(1, Ordering::Relaxed);
            };
            own.execute(helps).unwrap();
        }
    });
    forks.unwrap().join().unwrap();
    pool.close().unwrap();
    assert_eq!(ran.load(Ordering::Relaxed), count);
}

/// A task that makes itself again, on the deque of its worker, until it is told to stop.
fn again(pool: &ForkJoinPool, stop: &Arc<AtomicBool>) {
    if !stop.load(Ordering::Relaxed) {
        let (inner, own) = (pool.clone(), Arc::clone(stop));
        pool.execute(move || again(&inner, &own)).unwrap();
    }
}

#[test]
fn a_lower_parallelism_does_not_starve_tasks_from_outside_while_all_workers_make_their_own() {
    let pool = pool(2);
    let stop = Arc::new(AtomicBool::new(false));
    let all = Arc::new(Barrier::new(3));
    for _ in 0..2 {
        let (inner, own, all) = (pool.clone(), Arc::clone(&stop), Arc::clone(&all));
        pool.execute(move || {
            all.wait();
            again(&inner, &own);
        })
        .unwrap();
    }
    all.wait();
    pool.set_parallelism(1).unwrap();
    let outside = pool.submit(|| 7).unwrap().join_timeout(TIMEOUT);
    stop.store(true, Ordering::Relaxed);
    assert_eq!(outside.unwrap(), 7);
}

#[test]
fn no_producer_is_starved_while_all_workers_make_tasks_of_their_own() {
    let pool = pool(3);
    let stop = Arc::new(AtomicBool::new(false));
    for _ in 0..3 {
        let (inner, own) = (pool.clone(), Arc::clone(&stop));
        pool.execute(move || again(&inner, &own)).unwrap();
    }
    // Each thread has a stripe of its own; there are more threads than stripes.
    for _ in 0..8 {
        let inner = pool.clone();
        let outside = thread::spawn(move || inner.submit(|| 7).unwrap());
        let outside = outside.join().unwrap();
        until(|| outside.is_finished());
    }
    stop.store(true, Ordering::Relaxed);
    pool.close().unwrap();
}
