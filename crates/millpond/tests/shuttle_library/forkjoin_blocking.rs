//! PCT schedules of fork-join pools whose workers block: spares take over, are released, and leave.
//!
//! Each scenario is a deadlock unless the right worker is woken or started.

use crate::shuttle_kit::{KEEP_ALIVE, pct};
use millpond::executor::{ExecutorExt, Lifecycle};
use millpond::forkjoin::{self, ForkJoinPool};
use millpond::queue::{BlockingQueue, FifoQueue};
use millpond::time::ManualClock;
use millpond_raw::sync::thread::spawn;
use std::sync::Arc;

fn pool(parallelism: usize, max_spares: usize) -> (ForkJoinPool, ManualClock) {
    let hand = ManualClock::new();
    let pool = ForkJoinPool::builder("model")
        .parallelism(parallelism)
        .max_spares(max_spares)
        .keep_alive(KEEP_ALIVE)
        .clock(hand.clock())
        .build();
    (pool.unwrap(), hand)
}

fn end(pool: &ForkJoinPool) {
    pool.shutdown();
    pool.await_termination().unwrap();
    let now = pool.snapshot();
    assert_eq!((now.blocked, now.joining, now.workers), (0, 0, 0));
}

/// A queue for hand-overs.
fn gate() -> Arc<FifoQueue<u32>> {
    Arc::new(FifoQueue::unbounded())
}

#[test]
fn a_task_that_comes_while_the_only_worker_blocks_is_run_by_a_spare() {
    pct(|| {
        let (pool, _) = pool(1, 1);
        let gate = gate();
        let from = Arc::clone(&gate);
        let waits = pool.submit(move || from.take().unwrap()).unwrap();
        pool.execute(move || gate.put(7).unwrap()).unwrap();
        assert_eq!(waits.join().unwrap(), 7);
        end(&pool);
    });
}

#[test]
fn a_spare_that_is_released_takes_over_again() {
    pct(|| {
        let (pool, _) = pool(1, 1);
        for round in 0..2 {
            let gate = gate();
            let from = Arc::clone(&gate);
            let waits = pool.submit(move || from.take().unwrap()).unwrap();
            pool.execute(move || gate.put(round).unwrap()).unwrap();
            assert_eq!(waits.join().unwrap(), round);
        }
        assert!(pool.snapshot().largest <= 2);
        end(&pool);
    });
}

#[test]
fn a_spare_that_leaves_when_the_next_worker_blocks_is_missed_by_nobody() {
    pct(|| {
        let (pool, hand) = pool(1, 1);
        let first = gate();
        let from = Arc::clone(&first);
        let waits = pool.submit(move || from.take().unwrap()).unwrap();
        pool.execute(move || first.put(1).unwrap()).unwrap();
        assert_eq!(waits.join().unwrap(), 1);
        let clock = spawn(move || hand.advance(KEEP_ALIVE));
        let second = gate();
        let from = Arc::clone(&second);
        let waits = pool.submit(move || from.take().unwrap()).unwrap();
        pool.execute(move || second.put(2).unwrap()).unwrap();
        assert_eq!(waits.join().unwrap(), 2);
        clock.join().unwrap();
        end(&pool);
    });
}

/// The leaving worker is still counted when the task comes, so its submitter wakes nobody; the other one sleeps.
#[test]
fn a_task_that_meets_a_spare_leaving_wakes_the_worker_that_sleeps() {
    pct(|| {
        let (pool, hand) = pool(1, 1);
        let gate = gate();
        let from = Arc::clone(&gate);
        let waits = pool.submit(move || from.take().unwrap()).unwrap();
        pool.execute(move || gate.put(1).unwrap()).unwrap();
        assert_eq!(waits.join().unwrap(), 1);
        // The worker that falls asleep after this has another keep-alive than the one that fell asleep before.
        let clock = spawn(move || (0..2).for_each(|_| hand.advance(KEEP_ALIVE / 2)));
        for number in 0..3 {
            assert_eq!(pool.submit(move || number).unwrap().join().unwrap(), number);
        }
        clock.join().unwrap();
        end(&pool);
    });
}

#[test]
fn tasks_that_wait_for_each_other_in_a_row_all_end_with_a_spare_for_each() {
    pct(|| {
        let (pool, _) = pool(1, 2);
        let (first, second) = (gate(), gate());
        let (from, to) = (Arc::clone(&first), Arc::clone(&second));
        let last = pool.submit(move || from.take().unwrap()).unwrap();
        let middle = pool.submit(move || first.put(to.take().unwrap()).unwrap());
        pool.execute(move || second.put(7).unwrap()).unwrap();
        middle.unwrap().join().unwrap();
        assert_eq!(last.join().unwrap(), 7);
        end(&pool);
    });
}

#[test]
fn at_the_bound_tasks_wait_until_somebody_outside_frees_a_worker() {
    pct(|| {
        let (pool, _) = pool(1, 1);
        let gate = gate();
        let waits = [0, 1].map(|_| {
            let from = Arc::clone(&gate);
            pool.submit(move || from.take().unwrap()).unwrap()
        });
        let queued = pool.submit(|| 7).unwrap();
        let frees = spawn(move || (0..2).for_each(|n| gate.put(n).unwrap()));
        assert_eq!(queued.join().unwrap(), 7);
        waits.into_iter().for_each(|wait| _ = wait.join().unwrap());
        frees.join().unwrap();
        assert!(pool.snapshot().largest <= 2);
        end(&pool);
    });
}

#[test]
fn a_private_job_is_published_before_its_worker_blocks() {
    pct(|| {
        let (pool, _) = pool(1, 1);
        let gate = gate();
        let both =
            pool.install(|| forkjoin::join(|| gate.take().unwrap(), || gate.put(7).unwrap()));
        assert_eq!(both, (7, ()));
        end(&pool);
    });
}

#[test]
fn a_worker_that_waits_in_a_join_is_replaced_for_a_task() {
    pct(|| {
        let (pool, _) = pool(2, 2);
        let gate = gate();
        let (to, own) = (Arc::clone(&gate), pool.clone());
        let both = pool.install(|| {
            let task = move || to.put(7).unwrap();
            // The task is run by whoever does not wait.
            forkjoin::join(|| own.execute(task).unwrap(), || gate.take().unwrap())
        });
        assert_eq!(both, ((), 7));
        end(&pool);
    });
}

#[test]
fn two_blockers_two_submitters_and_a_new_bound_forget_nothing() {
    pct(|| {
        let (pool, _) = pool(1, 1);
        let (gate, other) = (gate(), pool.clone());
        let limits = pool.clone();
        let from = Arc::clone(&gate);
        let submits = spawn(move || other.submit(move || from.take().unwrap()).unwrap());
        let patches = spawn(move || {
            limits.set_max_spares(2).unwrap();
            limits.set_parallelism(2).unwrap();
        });
        let from = Arc::clone(&gate);
        let waits = pool.submit(move || from.take().unwrap()).unwrap();
        pool.execute(move || (0..2).for_each(|n| gate.put(n).unwrap()))
            .unwrap();
        waits.join().unwrap();
        submits.join().unwrap().join().unwrap();
        patches.join().unwrap();
        end(&pool);
    });
}

#[test]
fn a_shutdown_while_a_worker_blocks_still_runs_what_frees_it() {
    pct(|| {
        let (pool, _) = pool(1, 1);
        let gate = gate();
        let from = Arc::clone(&gate);
        let waits = pool.submit(move || from.take().unwrap()).unwrap();
        pool.execute(move || gate.put(7).unwrap()).unwrap();
        pool.shutdown();
        assert_eq!(waits.join().unwrap(), 7);
        pool.await_termination().unwrap();
    });
}
