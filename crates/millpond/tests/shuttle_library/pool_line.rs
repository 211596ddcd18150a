//! PCT schedules of a whole pool, fourth part: hand-offs, queues of the user's own, and what is taken
//! out of a queue by others than workers.

use crate::shuttle_kit::{
    Books, Brought, Gate, KEEP_ALIVE, Moody, Why, bringers, join_all, pct, pool, until_interrupted,
};
use millpond::executor::Lifecycle;
use millpond::manage::OverloadOrder;
use millpond::pool::{Queue, RejectionPolicy};
use millpond::queue::{DelayQueue, PriorityQueue};
use millpond::task::{CancelReason, Task};
use millpond_raw::sync::thread::spawn;
use std::time::Duration;

/// A queue of the user's own: the pool cannot seal it.
fn by_name() -> Queue {
    Queue::custom(PriorityQueue::by(|one: &Task, other: &Task| {
        one.name().cmp(&other.name())
    }))
}

/// How a model ends its pool.
#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    Shutdown,
    Stop,
}

fn end_against_bringers(queue: Queue, core: usize, max: usize, end: End) {
    let (builder, _hand) = pool(core, max, queue);
    let pool = builder.build().unwrap();
    let books = Books::new(4);
    let threads: Vec<_> = [[0, 1], [2, 3]]
        .map(|numbers| {
            let (books, pool) = (books.clone(), pool.clone());
            spawn(move || {
                let handles = numbers.map(|number| match end {
                    End::Stop => books.bring_doing(&pool, number, until_interrupted),
                    End::Shutdown => books.bring(&pool, number),
                });
                for (number, handle) in numbers.into_iter().zip(handles) {
                    books.join(number, handle);
                }
            })
        })
        .into();
    match end {
        End::Stop => books.handed_back(pool.shutdown_now()),
        End::Shutdown => pool.shutdown(),
    }
    join_all(threads);
    let sums = books.balance(&pool, &[]);
    if end == End::Shutdown {
        assert_eq!(sums.run, sums.taken);
    }
}

#[test]
fn a_shutdown_takes_no_task_back_from_an_own_queue_that_was_taken() {
    pct(|| end_against_bringers(by_name(), 1, 2, End::Shutdown));
}

#[test]
fn a_shutdown_of_an_own_queue_without_a_core_ends() {
    pct(|| end_against_bringers(by_name(), 0, 1, End::Shutdown));
}

#[test]
fn a_stop_hands_each_task_of_an_own_queue_back_once() {
    pct(|| end_against_bringers(by_name(), 1, 1, End::Stop));
}

#[test]
fn a_stop_of_an_own_queue_without_a_core_ends() {
    pct(|| end_against_bringers(by_name(), 0, 1, End::Stop));
}

#[test]
fn a_shutdown_of_a_delay_queue_ends() {
    pct(|| end_against_bringers(Queue::custom(DelayQueue::new()), 2, 2, End::Shutdown));
}

#[test]
fn a_shutdown_meets_hands_that_are_held_out() {
    pct(|| end_against_bringers(Queue::hand_off(), 1, 2, End::Shutdown));
}

#[test]
fn a_stop_meets_hands_that_are_held_out() {
    pct(|| end_against_bringers(Queue::hand_off(), 0, 2, End::Stop));
}

#[test]
fn a_task_in_an_own_queue_that_meets_the_last_worker_leaving_is_run() {
    pct(|| {
        let (builder, hand) = pool(0, 1, by_name());
        let pool = builder.build().unwrap();
        let books = Books::new(3);
        books.bring_and_join(&pool, 0);
        let threads = bringers(&books, &pool, [1, 2]);
        hand.advance(KEEP_ALIVE);
        join_all(threads);
        pool.shutdown();
        assert_eq!(books.balance(&pool, &[]).run, 3);
    });
}

/// Tasks without handles are freed when they have run, and the next may lie where one lay.
#[test]
fn one_who_comes_too_late_takes_its_own_task_back_and_no_other() {
    pct(|| {
        let (builder, _hand) = pool(1, 1, by_name());
        let pool = builder.build().unwrap();
        let books = Books::new(3);
        let thrower = |number| {
            let (books, pool) = (books.clone(), pool.clone());
            spawn(move || books.throw(&pool, number))
        };
        let threads = vec![thrower(0), thrower(1), thrower(2)];
        pool.shutdown();
        join_all(threads);
        let sums = books.balance(&pool, &[]);
        assert_eq!(sums.run, sums.taken);
    });
}

#[test]
fn a_hand_off_meets_a_worker_that_leaves() {
    pct(|| {
        let (builder, hand) = pool(0, 1, Queue::hand_off());
        let pool = builder.build().unwrap();
        let books = Books::new(3);
        books.bring_and_join(&pool, 0);
        let threads = bringers(&books, &pool, [1, 2]);
        hand.advance(KEEP_ALIVE);
        join_all(threads);
        pool.shutdown();
        let sums = books.balance(&pool, &[]);
        assert_eq!(sums.run, sums.taken);
        for number in 0..3 {
            if let Brought::Refused(why) = books.page(number).brought {
                assert_eq!(why, Why::Saturated);
            }
        }
    });
}

#[test]
fn a_hand_off_beside_threads_that_fail_forgets_nobody() {
    pct(|| {
        let (builder, _hand) = pool(0, 1, Queue::hand_off());
        let pool = builder
            .rejection(RejectionPolicy::Block(Duration::MAX))
            .threads(Moody::new(0b1))
            .build()
            .unwrap();
        let books = Books::new(3);
        let threads = bringers(&books, &pool, 0..3);
        join_all(threads);
        pool.shutdown();
        let sums = books.balance(&pool, &[]);
        assert!(sums.refused <= 1, "{sums:?}");
    });
}

#[test]
fn a_removed_task_is_not_run_and_a_run_one_is_not_removed() {
    pct(|| {
        let (builder, _hand) = pool(1, 1, Queue::bounded(4));
        let pool = builder.build().unwrap();
        let books = Books::new(3);
        let mut handles = [0, 1, 2].map(|number| books.bring(&pool, number));
        let second = handles[1].take().unwrap();
        let remover = spawn({
            let (books, pool) = (books.clone(), pool.clone());
            move || {
                let removed = pool.remove(&second);
                let again = pool.remove(&second);
                books.heard(1, second.join());
                (removed, again)
            }
        });
        pool.shutdown();
        let (removed, again) = remover.join().unwrap();
        for (number, handle) in handles.into_iter().enumerate() {
            books.join(number, handle);
        }
        let sums = books.balance(&pool, &[CancelReason::Removed]);
        assert_eq!(sums.cancelled, usize::from(removed));
        assert!(!again);
    });
}

#[test]
fn what_is_purged_beside_a_shutdown_does_not_keep_the_pool() {
    pct(|| {
        let (builder, _hand) = pool(2, 2, Queue::bounded(4));
        let pool = builder.build().unwrap();
        let books = Books::new(4);
        let gate = Gate::new();
        let held = [0, 1].map(|number| {
            let gate = gate.clone();
            books.bring_doing(&pool, number, move || gate.wait())
        });
        let queued = [2, 3].map(|number| books.bring(&pool, number));
        let purger = spawn({
            let pool = pool.clone();
            move || {
                for handle in queued.iter().flatten() {
                    handle.cancel();
                    pool.purge();
                }
                queued
            }
        });
        let opener = spawn(move || gate.open());
        pool.shutdown();
        let queued = purger.join().unwrap();
        opener.join().unwrap();
        for (number, handle) in held.into_iter().chain(queued).enumerate() {
            books.join(number, handle);
        }
        books.balance(&pool, &[CancelReason::Requested]);
    });
}

fn joined_in_place(end: End) {
    let (builder, _hand) = pool(1, 1, Queue::bounded(4));
    let pool = builder.build().unwrap();
    let books = Books::new(4);
    let threads: Vec<_> = [[0, 1], [2, 3]]
        .map(|numbers| {
            let (books, pool) = (books.clone(), pool.clone());
            spawn(move || {
                for number in numbers {
                    if let Some(handle) = books.bring(&pool, number) {
                        books.heard(number, handle.run_or_join());
                    }
                }
            })
        })
        .into();
    match end {
        End::Stop => books.handed_back(pool.shutdown_now()),
        End::Shutdown => pool.shutdown(),
    }
    join_all(threads);
    books.balance(&pool, &[]);
}

#[test]
fn a_task_that_is_joined_in_place_runs_once() {
    pct(|| joined_in_place(End::Shutdown));
}

#[test]
fn a_stop_hands_back_no_task_that_is_joined_in_place() {
    pct(|| joined_in_place(End::Stop));
}

/// Workers that take at both ends, bringers that wait for room, and time that makes an overload of it:
/// each task is run once, or shed and told so.
#[test]
fn the_newest_first_under_overload_loses_nothing_and_wakes_who_waits_for_room() {
    pct(|| {
        let (builder, hand) = pool(2, 2, Queue::bounded(2));
        let pool = builder
            .max_queue_wait(Duration::from_secs(2))
            .overload_order(OverloadOrder::NewestFirst)
            .rejection(RejectionPolicy::Block(Duration::MAX))
            .build()
            .unwrap();
        let books = Books::new(6);
        let threads: Vec<_> = [[0, 1, 2], [3, 4, 5]]
            .map(|numbers| {
                let (books, pool) = (books.clone(), pool.clone());
                spawn(move || {
                    let handles = numbers.map(|number| books.bring(&pool, number));
                    for (number, handle) in numbers.into_iter().zip(handles) {
                        books.join(number, handle);
                    }
                })
            })
            .into();
        for _ in 0..3 {
            hand.advance(Duration::from_millis(1100));
        }
        join_all(threads);
        pool.shutdown();
        let sums = books.balance(&pool, &[CancelReason::WaitedTooLong]);
        assert_eq!(sums.taken, 6);
    });
}

/// Sealed before the state changes: what was taken is run, and nothing slips in afterwards.
#[test]
fn a_shutdown_of_a_queue_by_priority_runs_all_that_it_took() {
    pct(|| {
        let queue = Queue::by_priority(3, Duration::from_secs(1));
        end_against_bringers(queue, 1, 2, End::Shutdown);
    });
}

#[test]
fn a_stop_of_a_queue_by_priority_hands_each_task_back_once() {
    pct(|| {
        let queue = Queue::by_priority(3, Duration::from_secs(1));
        end_against_bringers(queue, 1, 1, End::Stop);
    });
}
