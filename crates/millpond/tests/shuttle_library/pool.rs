//! PCT schedules of a whole pool, first part: workers come and go while tasks come.
//!
//! Each scenario runs under 500 schedules for each depth. A task that is forgotten, or a worker that
//! sleeps on, shows as a deadlock, which shuttle reports with its schedule.

use crate::shuttle_kit::{
    Books, Brought, Gate, KEEP_ALIVE, Moody, Why, bringers, join_all, pct, pool,
};
use millpond::executor::Lifecycle;
use millpond::manage::{Growth, Patch};
use millpond::pool::{Queue, RejectionPolicy, ThreadPool};
use millpond::task::CancelReason;
use millpond_raw::sync::thread::spawn;
use std::time::Duration;

/// All tasks were run, by at most so many workers at a time. Only then the pool is shut down:
/// nobody was saved by the shutdown.
fn all_run(books: &Books, pool: &ThreadPool, tasks: usize, most: usize) {
    pool.shutdown();
    assert_eq!(books.balance(pool, &[]).run, tasks);
    let last = pool.snapshot();
    assert!(last.largest <= most, "{last:?}");
}

#[test]
fn a_task_that_meets_the_last_worker_leaving_is_run() {
    pct(|| {
        let (builder, hand) = pool(0, 1, Queue::bounded(4));
        let pool = builder.build().unwrap();
        let books = Books::new(3);
        books.bring_and_join(&pool, 0);
        let threads = bringers(&books, &pool, 1..3);
        hand.advance(KEEP_ALIVE);
        join_all(threads);
        all_run(&books, &pool, 3, 1);
    });
}

#[test]
fn a_core_that_times_out_together_forgets_nobody() {
    pct(|| {
        let (builder, hand) = pool(2, 2, Queue::bounded(4));
        let pool = builder.core_may_time_out(true).build().unwrap();
        let books = Books::new(4);
        pool.prestart_all_core().unwrap();
        let clock = spawn(move || {
            hand.advance(KEEP_ALIVE);
            hand.advance(KEEP_ALIVE);
        });
        let threads = bringers(&books, &pool, [0, 1]);
        books.bring_and_join(&pool, 2);
        books.bring_and_join(&pool, 3);
        join_all(threads);
        clock.join().unwrap();
        all_run(&books, &pool, 4, 2);
    });
}

#[test]
fn workers_that_time_out_together_leave_the_core() {
    pct(|| {
        let (builder, hand) = pool(1, 3, Queue::hand_off());
        let pool = builder.build().unwrap();
        let books = Books::new(3);
        let gate = Gate::new();
        let handles: Vec<_> = (0..3)
            .map(|number| {
                let gate = gate.clone();
                books.bring_doing(&pool, number, move || gate.wait())
            })
            .collect();
        assert_eq!(pool.snapshot().workers, 3);
        gate.open();
        let clock = spawn({
            let pool = pool.clone();
            move || {
                hand.advance(KEEP_ALIVE);
                assert!(pool.snapshot().workers >= 1);
                hand.advance(KEEP_ALIVE);
            }
        });
        for (number, handle) in handles.into_iter().enumerate() {
            books.join(number, handle);
        }
        clock.join().unwrap();
        assert!(pool.snapshot().workers >= 1, "{pool:?}");
        all_run(&books, &pool, 3, 3);
    });
}

#[test]
fn new_limits_meet_new_tasks() {
    pct(|| {
        let (builder, _hand) = pool(1, 3, Queue::bounded(1));
        let pool = builder
            .rejection(RejectionPolicy::Block(Duration::MAX))
            .build();
        let pool = pool.unwrap();
        let books = Books::new(4);
        let threads = bringers(&books, &pool, 0..4);
        pool.apply(&Patch::new().core(0).max(1)).unwrap();
        pool.apply(&Patch::new().core(2).max(2)).unwrap();
        join_all(threads);
        assert!(pool.snapshot().workers <= 3);
        all_run(&books, &pool, 4, 3);
    });
}

#[test]
fn a_surplus_worker_that_leaves_forgets_nobody() {
    pct(|| {
        let (builder, _hand) = pool(2, 2, Queue::bounded(4));
        let pool = builder.build().unwrap();
        let books = Books::new(4);
        pool.prestart_all_core().unwrap();
        let threads = bringers(&books, &pool, [0, 1]);
        pool.apply(&Patch::new().core(1).max(1)).unwrap();
        books.bring_and_join(&pool, 2);
        pool.apply(&Patch::new().core(0)).unwrap();
        books.bring_and_join(&pool, 3);
        join_all(threads);
        all_run(&books, &pool, 4, 2);
    });
}

#[test]
fn a_larger_core_starts_workers_for_those_who_wait() {
    pct(|| {
        let (builder, _hand) = pool(1, 3, Queue::bounded(4));
        let pool = builder.build().unwrap();
        let books = Books::new(3);
        let gate = Gate::new();
        // The first holds the only worker until another has run.
        let held = books.bring_doing(&pool, 0, {
            let gate = gate.clone();
            move || gate.wait()
        });
        let waiting = books.bring_doing(&pool, 1, move || gate.open());
        let third = bringers(&books, &pool, [2]);
        pool.set_core(3).unwrap();
        books.join(0, held);
        books.join(1, waiting);
        join_all(third);
        all_run(&books, &pool, 3, 3);
    });
}

#[test]
fn starting_the_core_ahead_counts_no_worker_twice() {
    pct(|| {
        let (builder, _hand) = pool(2, 2, Queue::bounded(4));
        let pool = builder.build().unwrap();
        let books = Books::new(2);
        let early = spawn({
            let pool = pool.clone();
            move || pool.prestart_all_core().unwrap()
        });
        let threads = bringers(&books, &pool, 0..2);
        join_all(threads);
        assert!(early.join().unwrap() <= 2);
        assert_eq!(pool.snapshot().workers, 2);
        all_run(&books, &pool, 2, 2);
    });
}

#[test]
fn a_larger_capacity_lets_blocked_bringers_in() {
    pct(|| {
        let (builder, _hand) = pool(1, 1, Queue::bounded(1));
        let pool = builder
            .rejection(RejectionPolicy::Block(Duration::MAX))
            .build();
        let pool = pool.unwrap();
        let books = Books::new(4);
        let gate = Gate::new();
        let held = books.bring_doing(&pool, 0, {
            let gate = gate.clone();
            move || gate.wait()
        });
        let threads: Vec<_> = (1..4)
            .map(|number| {
                let (books, pool) = (books.clone(), pool.clone());
                spawn(move || {
                    let handle = books.bring(&pool, number);
                    (number, handle)
                })
            })
            .collect();
        pool.set_capacity(2).unwrap();
        pool.set_capacity(3).unwrap();
        // All are in before the worker takes one.
        let handles: Vec<_> = threads.into_iter().map(|t| t.join().unwrap()).collect();
        gate.open();
        books.join(0, held);
        for (number, handle) in handles {
            books.join(number, handle);
        }
        all_run(&books, &pool, 4, 1);
    });
}

#[test]
fn a_larger_maximum_starts_workers_for_blocked_bringers() {
    pct(|| {
        let (builder, _hand) = pool(1, 1, Queue::hand_off());
        let pool = builder
            .rejection(RejectionPolicy::Block(Duration::MAX))
            .build();
        let pool = pool.unwrap();
        let books = Books::new(3);
        let gate = Gate::new();
        let held = books.bring_doing(&pool, 0, {
            let gate = gate.clone();
            move || gate.wait()
        });
        let threads = bringers(&books, &pool, [1, 2]);
        pool.set_max(2).unwrap();
        join_all(threads);
        gate.open();
        books.join(0, held);
        all_run(&books, &pool, 3, 2);
    });
}

#[test]
fn a_bringer_that_waits_for_a_hand_hears_of_a_worker_that_leaves() {
    pct(|| {
        let (builder, hand) = pool(0, 1, Queue::hand_off());
        let pool = builder
            .rejection(RejectionPolicy::Block(Duration::MAX))
            .build();
        let pool = pool.unwrap();
        let books = Books::new(3);
        books.bring_and_join(&pool, 0);
        let threads = bringers(&books, &pool, [1, 2]);
        hand.advance(KEEP_ALIVE);
        join_all(threads);
        all_run(&books, &pool, 3, 1);
    });
}

/// Of two that come when one worker is held and the other may leave, one may have to wait in the
/// queue; for the other there is a worker, who is there or is started.
#[test]
fn a_bringer_that_waits_for_room_hears_of_a_worker_that_leaves() {
    pct(|| {
        let (builder, hand) = pool(1, 2, Queue::bounded(1));
        let pool = builder
            .rejection(RejectionPolicy::Block(Duration::MAX))
            .build();
        let pool = pool.unwrap();
        let books = Books::new(5);
        let gate = Gate::new();
        let held = books.bring_doing(&pool, 0, {
            let gate = gate.clone();
            move || gate.wait()
        });
        // One waits, and for the next there is a second worker.
        let first = books.bring(&pool, 1);
        books.bring_and_join(&pool, 2);
        books.join(1, first);
        let late = |number| {
            let (books, pool, gate) = (books.clone(), pool.clone(), gate.clone());
            spawn(move || {
                let handle = books.bring_doing(&pool, number, move || gate.open());
                books.join(number, handle);
            })
        };
        let threads = vec![late(3), late(4)];
        hand.advance(KEEP_ALIVE);
        join_all(threads);
        books.join(0, held);
        all_run(&books, &pool, 5, 2);
    });
}

#[test]
fn a_new_growth_meets_new_tasks() {
    pct(|| {
        let (builder, _hand) = pool(1, 2, Queue::bounded(4));
        let pool = builder.build().unwrap();
        let books = Books::new(4);
        let threads = bringers(&books, &pool, 0..2);
        pool.set_growth(Growth::ThreadsFirst);
        books.bring_and_join(&pool, 2);
        pool.set_growth(Growth::QueueFirst);
        books.bring_and_join(&pool, 3);
        join_all(threads);
        all_run(&books, &pool, 4, 2);
    });
}

fn threads_that_fail(plan: u32, core: usize, max: usize) {
    let (builder, _hand) = pool(core, max, Queue::bounded(4));
    let pool = builder.threads(Moody::new(plan)).build().unwrap();
    let books = Books::new(3);
    let threads = bringers(&books, &pool, 0..2);
    books.bring_and_join(&pool, 2);
    join_all(threads);
    pool.shutdown();
    let sums = books.balance(&pool, &[CancelReason::Rejected]);
    let failures = plan.count_ones() as usize;
    assert!(sums.refused + sums.cancelled <= failures, "{sums:?}");
    for number in 0..3 {
        if let Brought::Refused(why) = books.page(number).brought {
            assert_eq!(why, Why::NoThread);
        }
    }
}

#[test]
fn a_thread_that_fails_costs_its_own_task_at_most() {
    pct(|| threads_that_fail(0b1, 0, 1));
}

#[test]
fn two_threads_that_fail_cost_two_tasks_at_most() {
    pct(|| threads_that_fail(0b11, 1, 2));
}

#[test]
fn a_core_that_cannot_be_started_ahead_forgets_nobody() {
    pct(|| {
        let (builder, _hand) = pool(1, 1, Queue::bounded(4));
        let pool = builder.threads(Moody::new(0b1)).build().unwrap();
        let books = Books::new(2);
        let early = spawn({
            let pool = pool.clone();
            move || pool.prestart_core().is_ok()
        });
        let threads = bringers(&books, &pool, 0..2);
        join_all(threads);
        let _ = early.join().unwrap();
        pool.shutdown();
        let sums = books.balance(&pool, &[CancelReason::Rejected]);
        assert!(sums.refused + sums.cancelled <= 1, "{sums:?}");
    });
}

/// A task without a handle is freed when it has run, and the next may lie where it lay.
#[test]
fn a_bringer_without_a_thread_gets_its_own_task_back_and_no_other() {
    pct(|| {
        let (builder, hand) = pool(0, 1, Queue::bounded(4));
        let pool = builder.threads(Moody::new(0b1010)).build().unwrap();
        let books = Books::new(3);
        let thrower = |number| {
            let (books, pool) = (books.clone(), pool.clone());
            spawn(move || books.throw(&pool, number))
        };
        let threads = vec![thrower(0), thrower(1), thrower(2)];
        hand.advance(KEEP_ALIVE);
        join_all(threads);
        pool.shutdown();
        books.balance(&pool, &[]);
    });
}
