//! Shutdown, stop, drop; threads that cannot be started.

use crate::{fib, pool};
use millpond::executor::{ExecutorExt, Lifecycle, RejectReason};
use millpond::forkjoin::{self, ForkJoinPool};
use millpond::thread::{Body, JoinHandle, ThreadFactory};
use std::io;
use std::sync::mpsc;
use std::time::Duration;

#[derive(Debug)]
struct Refusing;

impl ThreadFactory for Refusing {
    fn start(&self, _: Body) -> io::Result<JoinHandle<()>> {
        Err(io::Error::other("no threads today"))
    }
}

#[test]
fn without_threads_callers_compute_themselves_and_tasks_come_back() {
    let pool = ForkJoinPool::builder("mill")
        .threads(Refusing)
        .build()
        .unwrap();
    for _ in 0..20 {
        assert_eq!(pool.install(|| fib(10)), 55);
        assert_eq!(pool.join(|| 3, || 4), (3, 4));
        let mut out = 0;
        pool.scope(|scope| scope.spawn(|_| out = 7));
        assert_eq!(out, 7);
        let rejected = pool.submit(|| "flour").unwrap_err();
        assert!(
            matches!(rejected.reason, RejectReason::SpawnFailed(_)),
            "{rejected}"
        );
        assert_eq!((rejected.task)(), "flour");
    }
    pool.close().unwrap();
    assert!(pool.is_terminated());
}

#[test]
fn what_was_accepted_before_a_shutdown_still_runs_and_nothing_is_accepted_afterwards() {
    for _ in 0..200 {
        let pool = pool(2);
        let handles: Vec<_> = (0..20)
            .map(|n| pool.submit(move || fib(n)).unwrap())
            .collect();
        pool.shutdown();
        assert!(pool.submit(|| ()).is_err());
        assert_eq!(pool.install(|| fib(10)), 55, "the caller runs it");
        pool.await_termination().unwrap();
        for (n, handle) in handles.into_iter().enumerate() {
            assert_eq!(handle.join().unwrap(), fib(n as u64));
        }
    }
}

#[test]
fn a_stop_hands_back_what_has_not_started_and_interrupts_the_rest() {
    // A spare would run what is queued as soon as the worker sleeps.
    let builder = ForkJoinPool::builder("mill").parallelism(1).max_spares(0);
    let pool = builder.build().unwrap();
    let (tell, told) = mpsc::channel();
    let running = pool.submit(move || {
        tell.send(()).unwrap();
        millpond::interrupt::sleep(Duration::from_secs(3600)).is_err()
    });
    told.recv().unwrap();
    let waiting = pool.submit(|| 7).unwrap();
    assert_eq!(pool.shutdown_now().len(), 1);
    assert!(running.unwrap().join().unwrap(), "it was interrupted");
    pool.await_termination().unwrap();
    assert!(waiting.join().unwrap_err().is_cancelled());
}

#[test]
fn dropping_the_last_handle_lets_accepted_tasks_run() {
    let pool = pool(2);
    let handles: Vec<_> = (0..50)
        .map(|n| pool.submit(move || fib(n % 15)).unwrap())
        .collect();
    drop(pool);
    for handle in handles {
        handle.join().unwrap();
    }
}

#[test]
fn a_pool_can_be_shut_down_while_it_computes() {
    for _ in 0..100 {
        let pool = pool(3);
        std::thread::scope(|threads| {
            threads.spawn(|| assert_eq!(pool.install(|| fib(16)), 987));
            pool.shutdown();
        });
        pool.await_termination().unwrap();
    }
}

#[test]
fn the_common_pool_ignores_every_end() {
    let common = ForkJoinPool::common();
    common.shutdown();
    assert!(common.shutdown_now().is_empty());
    common.close().unwrap();
    assert!(!common.is_shutdown() && !common.is_terminated());
    assert_eq!(forkjoin::join(|| 3, || 4), (3, 4));
    assert!(
        !common
            .await_termination_timeout(Duration::from_millis(1))
            .unwrap()
    );
}

#[test]
fn idle_workers_leave_after_their_keep_alive_and_come_back() {
    let pool = ForkJoinPool::builder("mill")
        .parallelism(2)
        .keep_alive(Duration::ZERO);
    let pool = pool.build().unwrap();
    for _ in 0..500 {
        assert_eq!(pool.install(|| fib(8)), 21);
    }
    pool.close().unwrap();
}

#[test]
fn what_is_installed_in_a_closed_pool_runs_in_the_caller_with_all_its_joins_and_loops() {
    let pool = ForkJoinPool::builder("mill")
        .parallelism(2)
        .build()
        .unwrap();
    pool.close().unwrap();
    let here = std::thread::current().id();
    let own = || assert_eq!(std::thread::current().id(), here);
    pool.install(|| {
        own();
        forkjoin::join(own, || forkjoin::join(own, own));
        forkjoin::scope(|scope| {
            scope.spawn(|scope| {
                own();
                scope.spawn(|_| own());
            });
        });
        forkjoin::parallel::over(0..1_000).for_each(|_| own());
    });
    // Afterwards this thread is as it was: joins run in the common pool.
    let (there, _) = forkjoin::join(|| std::thread::current().id(), || ());
    assert_ne!(there, here);
}
