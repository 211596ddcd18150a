//! Joins: results, panics, depth, nesting.

use crate::helping::within;
use crate::{fib, pool};
use millpond::forkjoin::{self, ForkJoinPool, HelpPolicy};
use std::panic::{AssertUnwindSafe, catch_unwind, panic_any};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, mpsc};
use std::time::{Duration, Instant};

#[test]
fn results_are_those_of_the_sequential_program_however_many_workers_there_are() {
    for parallelism in [1, 2, 3, 8] {
        let pool = pool(parallelism);
        for _ in 0..20 {
            assert_eq!(pool.install(|| fib(20)), 6765);
        }
    }
}

#[test]
fn outside_of_a_pool_the_common_one_is_used() {
    assert_eq!(fib(15), 610);
    assert_eq!(forkjoin::join(|| 3, || 4), (3, 4));
    let name = ForkJoinPool::common().install(|| std::thread::current().name().map(String::from));
    assert!(name.unwrap().starts_with("common-"));
}

#[test]
fn the_first_panic_crosses_the_join_when_both_sides_are_over() {
    for parallelism in [1, 2, 4] {
        let pool = pool(parallelism);
        for round in 0..200_u32 {
            let (left, right) = (AtomicUsize::new(0), AtomicUsize::new(0));
            let caught = catch_unwind(AssertUnwindSafe(|| {
                pool.join(
                    || {
                        left.store(1, Ordering::Relaxed);
                        fib(round as u64 % 12);
                        if round % 3 != 1 {
                            panic_any("left");
                        }
                        left.store(2, Ordering::Relaxed);
                    },
                    || {
                        right.store(1, Ordering::Relaxed);
                        fib(round as u64 % 10);
                        if round % 3 != 0 {
                            panic_any("right");
                        }
                        right.store(2, Ordering::Relaxed);
                    },
                )
            }));
            let payload = *caught.unwrap_err().downcast::<&str>().unwrap();
            assert_eq!(payload, if round % 3 == 1 { "right" } else { "left" });
            if round % 3 == 0 {
                assert_ne!(
                    right.load(Ordering::Relaxed),
                    1,
                    "it has ended, or not begun"
                );
            }
        }
        assert_eq!(pool.install(|| fib(10)), 55, "the pool works on");
    }
}

#[test]
fn private_jobs_are_as_deep_as_the_stack() {
    fn deep(n: u32) -> u32 {
        match n {
            0 => 0,
            n => forkjoin::join(|| deep(n - 1), || 1).0 + 1,
        }
    }
    let pool = ForkJoinPool::builder("mill").parallelism(2);
    let threads = millpond::thread::Threads::named("mill").stack_size(256 << 20);
    let pool = pool.threads(threads).build().unwrap();
    for _ in 0..5 {
        assert_eq!(pool.install(|| deep(100_000)), 100_000);
    }
}

#[test]
fn pools_inside_pools_wait_for_each_other() {
    let (outer, inner) = (pool(2), pool(2));
    let sum = outer.install(|| {
        let parts = forkjoin::join(
            || inner.install(|| fib(15) + outer.install(|| fib(10))),
            || inner.join(|| fib(11), || fib(12)),
        );
        parts.0 + parts.1.0 + parts.1.1
    });
    assert_eq!(sum, 610 + 55 + 89 + 144);
}

#[test]
fn a_lock_that_is_held_while_joining_is_not_met_again_on_the_same_stack() {
    // Each item takes the lock and joins under it. A worker that ran another item while it waits would deadlock.
    let pool = pool(4);
    let lock = Mutex::new(0_u64);
    fn each(lock: &Mutex<u64>, from: u64, to: u64) {
        if to - from > 1 {
            let middle = from.midpoint(to);
            forkjoin::join(|| each(lock, from, middle), || each(lock, middle, to));
            return;
        }
        let mut sum = lock.lock().unwrap();
        *sum += fib(12);
    }
    pool.install(|| each(&lock, 0, 300));
    assert_eq!(*lock.lock().unwrap(), 300 * 144);
}

#[test]
fn every_policy_gives_the_same_results() {
    for help in [HelpPolicy::Descendants, HelpPolicy::Any, HelpPolicy::Never] {
        let pool = ForkJoinPool::builder("mill").parallelism(3).help(help);
        let pool = pool.build().unwrap();
        for _ in 0..50 {
            assert_eq!(pool.install(|| fib(18)), 2584);
        }
    }
}

#[test]
fn two_long_halves_of_a_single_join_run_side_by_side() {
    /// Says that it has begun, waits until the other half has, and computes for a while.
    fn half(begun: mpsc::Sender<()>, other: mpsc::Receiver<()>) -> bool {
        let met = begun.send(()).is_ok() && other.recv_timeout(Duration::from_secs(30)).is_ok();
        let begin = Instant::now();
        while begin.elapsed() < Duration::from_micros(100) {
            std::hint::spin_loop();
        }
        met
    }
    let pool = pool(2);
    for _ in 0..20 {
        let (left, is_left) = mpsc::channel();
        let (right, is_right) = mpsc::channel();
        let met = pool.join(|| half(left, is_right), || half(right, is_left));
        assert_eq!(met, (true, true));
    }
}

#[test]
fn pools_of_one_worker_install_into_each_other() {
    let (there, back) = (pool(1), pool(1));
    let depth =
        within(move || there.install(|| back.install(|| there.install(|| back.install(|| 4)))));
    assert_eq!(depth, 4);
}

#[test]
fn many_threads_install_crosswise_into_two_pools() {
    let sum = within(|| {
        let pools = [pool(2), pool(2)];
        let sum = AtomicUsize::new(0);
        std::thread::scope(|threads| {
            for caller in 0..4 {
                let (outer, inner) = (&pools[caller % 2], &pools[1 - caller % 2]);
                let sum = &sum;
                threads.spawn(move || {
                    for _ in 0..200 {
                        let one = outer.install(|| inner.install(|| 1));
                        sum.fetch_add(one, Ordering::Relaxed);
                    }
                });
            }
        });
        sum.into_inner()
    });
    assert_eq!(sum, 800);
}

#[test]
fn pools_may_be_used_in_what_catches_panics() {
    let pool = ForkJoinPool::builder("mill").build().unwrap();
    let caught = std::panic::catch_unwind(|| pool.install(|| panic!("the dam broke")));
    assert!(caught.is_err());
    assert_eq!(pool.join(|| 3, || 4), (3, 4));
}
