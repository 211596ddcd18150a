//! PCT schedules of a pool that starts threads first: who counts on a free worker, in a queue of ours and in one that
//! must not be called under a lock.

use crate::shuttle_kit::{Books, Gate, KEEP_ALIVE, join_all, pct, pool};
use millpond::executor::Lifecycle;
use millpond::manage::Growth;
use millpond::pool::{Queue, ThreadPool};
use millpond::queue::FifoQueue;
use millpond_raw::sync::thread::{JoinHandle, spawn, yield_now};

fn ours() -> Queue {
    Queue::bounded(4)
}

fn own() -> Queue {
    Queue::custom(FifoQueue::bounded_growing(4).unwrap())
}

/// Brings two tasks, each from a thread of its own. Neither ends before the other has begun.
fn pair(books: &Books, pool: &ThreadPool, first: usize) -> Vec<JoinHandle<()>> {
    let gates = [Gate::new(), Gate::new()];
    let bring = |side: usize| {
        let (books, pool) = (books.clone(), pool.clone());
        let (mine, other) = (gates[side].clone(), gates[1 - side].clone());
        spawn(move || {
            let number = first + side;
            let handle = books.bring_doing(&pool, number, move || {
                mine.open();
                other.wait();
            });
            books.join(number, handle);
        })
    };
    vec![bring(0), bring(1)]
}

fn all_run(books: &Books, pool: &ThreadPool, tasks: usize, most: usize) {
    pool.shutdown();
    assert_eq!(books.balance(pool, &[]).run, tasks);
    let last = pool.snapshot();
    assert!(last.largest <= most, "{last:?}");
}

/// Two tasks that need each other get a worker each, whoever leaves meanwhile.
fn nobody_waits(queue: Queue) {
    let (builder, hand) = pool(0, 2, queue);
    let pool = builder.growth(Growth::ThreadsFirst).build().unwrap();
    let books = Books::new(4);
    join_all(pair(&books, &pool, 0));
    let threads = pair(&books, &pool, 2);
    hand.advance(KEEP_ALIVE);
    join_all(threads);
    all_run(&books, &pool, 4, 2);
}

#[test]
fn threads_first_lets_no_task_wait_while_a_thread_may_be_started() {
    pct(|| nobody_waits(ours()));
}

#[test]
fn threads_first_lets_no_task_wait_in_a_queue_of_the_users_either() {
    pct(|| nobody_waits(own()));
}

/// One of two counts on the only free worker, the other one starts a second worker, and nobody a third.
fn nobody_is_started_in_vain(queue: Queue) {
    let (builder, hand) = pool(0, 3, queue);
    let pool = builder.growth(Growth::ThreadsFirst).build().unwrap();
    let books = Books::new(3);
    books.bring_and_join(&pool, 0);
    while hand.sleepers() == 0 {
        // It is free when it waits for its time to leave.
        yield_now();
    }
    join_all(pair(&books, &pool, 1));
    assert_eq!(pool.snapshot().threads_started, 2);
    all_run(&books, &pool, 3, 2);
}

#[test]
fn threads_first_one_free_worker_and_two_bringers_make_two_workers() {
    pct(|| nobody_is_started_in_vain(ours()));
}

#[test]
fn threads_first_one_free_worker_and_two_bringers_make_two_workers_with_a_queue_of_the_users() {
    pct(|| nobody_is_started_in_vain(own()));
}

/// Some bringers find the maximum reached and claim nobody, others find that a worker has left, and claim the one
/// that is free: it may take the task of the former.
fn claims_meet_tasks_without_one(queue: Queue) {
    let (builder, hand) = pool(0, 2, queue);
    let pool = builder.growth(Growth::ThreadsFirst).build().unwrap();
    let books = Books::new(5);
    let gate = Gate::new();
    let wait = || {
        let gate = gate.clone();
        move || gate.wait()
    };
    let held = [0, 1].map(|number| (number, books.bring_doing(&pool, number, wait())));
    let mut threads = pair(&books, &pool, 2);
    threads.push(spawn({
        let (books, pool) = (books.clone(), pool.clone());
        move || books.bring_and_join(&pool, 4)
    }));
    gate.open();
    hand.advance(KEEP_ALIVE);
    hand.advance(KEEP_ALIVE);
    for (number, handle) in held {
        books.join(number, handle);
    }
    join_all(threads);
    all_run(&books, &pool, 5, 2);
}

#[test]
fn threads_first_a_task_that_counts_on_nobody_leaves_no_other_behind() {
    pct(|| claims_meet_tasks_without_one(ours()));
}

#[test]
fn threads_first_a_task_that_counts_on_nobody_leaves_no_other_behind_in_a_queue_of_the_users() {
    pct(|| claims_meet_tasks_without_one(own()));
}
