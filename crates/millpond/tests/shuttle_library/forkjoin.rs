//! PCT schedules of a whole fork-join pool: workers fall asleep, are woken, steal, wait and leave.
//!
//! Each scenario runs under 500 schedules for each depth. Work that is forgotten, or a worker that sleeps on, shows as a
//! deadlock, which shuttle reports with its schedule.

use crate::shuttle_drive;
use crate::shuttle_kit::{KEEP_ALIVE, Stillborn, end_while_threads_die, pct};
use millpond::executor::{ExecutorExt, Lifecycle};
use millpond::forkjoin::{self, ForkJoinBuilder, ForkJoinPool, HelpPolicy};
use millpond::queue::{BlockingQueue, FifoQueue};
use millpond::time::ManualClock;
use millpond_raw::sync::atomic::{AtomicUsize, Ordering};
use millpond_raw::sync::thread::spawn;
use std::sync::Arc;

fn builder(parallelism: usize) -> (ForkJoinBuilder, ManualClock) {
    let hand = ManualClock::new();
    let builder = ForkJoinPool::builder("model")
        .parallelism(parallelism)
        .keep_alive(KEEP_ALIVE)
        .clock(hand.clock());
    (builder, hand)
}

fn fib(n: u64) -> u64 {
    if n < 2 {
        return n;
    }
    let (left, right) = forkjoin::join(|| fib(n - 1), || fib(n - 2));
    left + right
}

/// Nobody is saved by the shutdown: all results are there before it.
fn end(pool: &ForkJoinPool) {
    pool.shutdown();
    pool.await_termination().unwrap();
    assert!(pool.is_quiescent());
}

#[test]
fn joins_of_two_workers_all_end() {
    pct(|| {
        let pool = builder(2).0.build().unwrap();
        assert_eq!(pool.install(|| fib(4)), 3);
        end(&pool);
    });
}

#[test]
fn joins_of_three_workers_all_end_whatever_the_policy() {
    for help in [HelpPolicy::Descendants, HelpPolicy::Any, HelpPolicy::Never] {
        shuttle_drive::pct(170, move || {
            let pool = builder(3).0.help(help).build().unwrap();
            assert_eq!(pool.install(|| fib(3)), 2);
            end(&pool);
        });
    }
}

#[test]
fn tasks_from_outside_find_a_worker_that_falls_asleep() {
    pct(|| {
        let pool = builder(1).0.build().unwrap();
        for number in 0..3 {
            assert_eq!(pool.submit(move || number).unwrap().join().unwrap(), number);
        }
        end(&pool);
    });
}

#[test]
fn two_submitters_and_two_workers_forget_nothing() {
    pct(|| {
        let pool = builder(2).0.build().unwrap();
        let other = pool.clone();
        let thread = spawn(move || other.submit(|| fib(2)).unwrap().join().unwrap());
        assert_eq!(pool.submit(|| fib(2)).unwrap().join().unwrap(), 1);
        assert_eq!(thread.join().unwrap(), 1);
        end(&pool);
    });
}

#[test]
fn a_task_that_meets_the_last_worker_leaving_is_run() {
    pct(|| {
        let (builder, hand) = builder(1);
        let pool = builder.build().unwrap();
        pool.install(|| ());
        let clock = spawn(move || hand.advance(KEEP_ALIVE));
        assert_eq!(pool.submit(|| 7).unwrap().join().unwrap(), 7);
        clock.join().unwrap();
        end(&pool);
    });
}

#[test]
fn a_shutdown_in_the_middle_of_a_computation_waits_for_it() {
    pct(|| {
        let pool = builder(2).0.build().unwrap();
        let other = pool.clone();
        let thread = spawn(move || other.shutdown());
        assert_eq!(pool.install(|| fib(3)), 2);
        thread.join().unwrap();
        pool.await_termination().unwrap();
    });
}

#[test]
fn a_task_is_accepted_and_run_or_comes_back_when_the_pool_is_shut_down() {
    pct(|| {
        let pool = builder(2).0.build().unwrap();
        let other = pool.clone();
        let thread = spawn(move || other.shutdown());
        if let Ok(handle) = pool.submit(|| 7) {
            assert_eq!(handle.join().unwrap(), 7);
        }
        thread.join().unwrap();
        pool.await_termination().unwrap();
    });
}

#[test]
fn a_stop_leaves_no_caller_waiting() {
    pct(|| {
        let pool = builder(1).0.build().unwrap();
        let other = pool.clone();
        let thread = spawn(move || drop(other.shutdown_now()));
        assert_eq!(pool.install(|| fib(2)), 1);
        if let Ok(handle) = pool.submit(|| 7) {
            // It ran, or was handed back and dropped.
            let _ = handle.join();
        }
        thread.join().unwrap();
        pool.await_termination().unwrap();
    });
}

#[test]
fn a_scope_waits_for_jobs_that_jobs_have_spawned() {
    pct(|| {
        let pool = builder(2).0.build().unwrap();
        let count = AtomicUsize::new(0);
        pool.scope(|scope| {
            scope.spawn(|scope| {
                scope.spawn(|_| _ = count.fetch_add(1, Ordering::Relaxed));
                count.fetch_add(1, Ordering::Relaxed);
            });
            scope.spawn(|_| _ = count.fetch_add(1, Ordering::Relaxed));
        });
        assert_eq!(count.load(Ordering::Relaxed), 3);
        end(&pool);
    });
}

#[test]
fn quiescence_is_seen_when_all_tasks_are_over() {
    pct(|| {
        let pool = builder(2).0.build().unwrap();
        let count = Arc::new(AtomicUsize::new(0));
        for _ in 0..2 {
            let (inner, count) = (pool.clone(), Arc::clone(&count));
            let task = move || {
                let own = Arc::clone(&count);
                let _ = inner.execute(move || _ = own.fetch_add(1, Ordering::Relaxed));
                count.fetch_add(1, Ordering::Relaxed);
            };
            pool.execute(task).unwrap();
        }
        assert!(pool.await_quiescence(std::time::Duration::MAX).unwrap());
        assert_eq!(count.load(Ordering::Relaxed), 4);
        end(&pool);
    });
}

#[test]
fn parallelism_that_changes_all_the_time_forgets_nothing() {
    pct(|| {
        let pool = builder(2).0.build().unwrap();
        let other = pool.clone();
        let thread = spawn(move || {
            other.set_parallelism(1).unwrap();
            other.set_parallelism(3).unwrap();
        });
        assert_eq!(pool.install(|| fib(3)), 2);
        assert_eq!(pool.submit(|| 7).unwrap().join().unwrap(), 7);
        thread.join().unwrap();
        end(&pool);
    });
}

#[test]
fn a_task_that_relies_on_a_worker_that_leaves_as_surplus_is_run_by_one_that_sleeps() {
    pct(|| {
        let pool = builder(2).0.max_spares(0).build().unwrap();
        // Two workers: the first task ends when the second runs.
        let gate = Arc::new(FifoQueue::unbounded());
        let from = Arc::clone(&gate);
        let waits = pool.submit(move || from.take().unwrap()).unwrap();
        pool.execute(move || gate.put(7).unwrap()).unwrap();
        assert_eq!(waits.join().unwrap(), 7);
        pool.set_parallelism(1).unwrap();
        assert_eq!(pool.submit(|| 7).unwrap().join().unwrap(), 7);
        end(&pool);
    });
}

#[test]
fn tasks_that_await_quiescence_let_each_other_through() {
    pct(|| {
        let pool = builder(2).0.build().unwrap();
        let waits = [0, 1].map(|_| {
            let own = pool.clone();
            pool.submit(move || {
                let _ = own.execute(|| ());
                own.await_quiescence(std::time::Duration::MAX).unwrap()
            })
        });
        for wait in waits {
            assert!(wait.unwrap().join().unwrap());
        }
        end(&pool);
    });
}

#[test]
fn the_end_waits_for_a_task_whose_thread_died_before_its_first_step() {
    pct(|| end_while_threads_die(&builder(1).0.threads(Stillborn).build().unwrap()));
}
