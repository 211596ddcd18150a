//! PCT schedules of a whole pool, second part: its end comes while tasks come, run and wait.
//!
//! That every model ends at all is half of what it shows: a pool that does not terminate is a deadlock
//! of those who wait for its end.
#![allow(
    clippy::disallowed_types,
    reason = "what hooks note is std's, so that the checker does not branch on it"
)]

use crate::shuttle_kit::{
    Books, Brought, Gate, KEEP_ALIVE, Moody, Stillborn, Why, bringers, end_while_threads_die,
    join_all, pct, pool, until_interrupted,
};
use millpond::executor::Lifecycle;
use millpond::manage::Growth;
use millpond::pool::{Hooks, Queue};
use millpond::task::CancelReason;
use millpond_raw::sync::thread::spawn;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// Whoever was refused was so because it was too late.
fn only_too_late(books: &Books, tasks: usize) {
    for number in 0..tasks {
        if let Brought::Refused(why) = books.page(number).brought {
            assert_eq!(why, Why::ShutDown, "task {number}");
        }
    }
}

fn shutdown_against_bringers(core: usize, max: usize, growth: Growth) {
    let (builder, _hand) = pool(core, max, Queue::bounded(4));
    let pool = builder.growth(growth).build().unwrap();
    let books = Books::new(4);
    let threads: Vec<_> = [[0, 1], [2, 3]]
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
    pool.shutdown();
    join_all(threads);
    let sums = books.balance(&pool, &[]);
    assert_eq!(sums.run, sums.taken, "what was taken is run");
    only_too_late(&books, 4);
}

#[test]
fn a_shutdown_runs_what_was_taken_and_refuses_the_rest() {
    pct(|| shutdown_against_bringers(1, 2, Growth::QueueFirst));
}

#[test]
fn a_shutdown_of_a_pool_without_a_core_runs_what_was_taken() {
    pct(|| shutdown_against_bringers(0, 2, Growth::QueueFirst));
}

#[test]
fn a_shutdown_runs_what_was_taken_when_threads_come_first() {
    pct(|| shutdown_against_bringers(1, 3, Growth::ThreadsFirst));
}

/// Workers that are idle when the shutdown comes all look at the last task; one gets it.
#[test]
fn workers_that_race_for_the_last_task_all_leave() {
    pct(|| {
        let (builder, _hand) = pool(3, 3, Queue::bounded(4));
        let pool = builder.build().unwrap();
        let books = Books::new(2);
        pool.prestart_all_core().unwrap();
        let handles = [0, 1].map(|number| books.bring(&pool, number));
        pool.shutdown();
        for (number, handle) in handles.into_iter().enumerate() {
            books.join(number, handle);
        }
        assert_eq!(books.balance(&pool, &[]).run, 2);
    });
}

fn stop_against_bringers(core: usize, max: usize, growth: Growth) {
    let (builder, _hand) = pool(core, max, Queue::bounded(2));
    let pool = builder.growth(growth).build().unwrap();
    let books = Books::new(4);
    let threads: Vec<_> = [[0, 1], [2, 3]]
        .map(|numbers| {
            let (books, pool) = (books.clone(), pool.clone());
            spawn(move || {
                let handles =
                    numbers.map(|number| books.bring_doing(&pool, number, until_interrupted));
                for (number, handle) in numbers.into_iter().zip(handles) {
                    books.join(number, handle);
                }
            })
        })
        .into();
    books.handed_back(pool.shutdown_now());
    join_all(threads);
    books.balance(&pool, &[]);
}

#[test]
fn a_stop_interrupts_hands_back_or_refuses_each_task() {
    pct(|| stop_against_bringers(1, 2, Growth::QueueFirst));
}

#[test]
fn a_stop_of_a_pool_without_a_core_reaches_each_task() {
    pct(|| stop_against_bringers(0, 1, Growth::QueueFirst));
}

#[test]
fn a_stop_reaches_each_task_when_threads_come_first() {
    pct(|| stop_against_bringers(0, 3, Growth::ThreadsFirst));
}

#[test]
fn a_stop_after_a_shutdown_and_beside_another_stop_hands_each_task_back_once() {
    pct(|| {
        let (builder, _hand) = pool(1, 1, Queue::bounded(4));
        let pool = builder.build().unwrap();
        let books = Books::new(3);
        let bringer = spawn({
            let (books, pool) = (books.clone(), pool.clone());
            move || {
                let handles = [0, 1, 2].map(|n| books.bring_doing(&pool, n, until_interrupted));
                for (number, handle) in handles.into_iter().enumerate() {
                    books.join(number, handle);
                }
            }
        });
        let stopper = spawn({
            let (books, pool) = (books.clone(), pool.clone());
            move || books.handed_back(pool.shutdown_now())
        });
        pool.shutdown();
        books.handed_back(pool.shutdown_now());
        join_all(vec![bringer, stopper]);
        books.balance(&pool, &[]);
    });
}

/// Counts the calls of its last hook, and what it saw then.
struct Last {
    calls: Arc<AtomicUsize>,
    gate: Gate,
}

impl Hooks for Last {
    fn terminated(&self) {
        self.calls.fetch_add(1, Ordering::Relaxed);
        self.gate.open();
    }
}

#[test]
fn everyone_who_waits_for_the_end_hears_of_it_after_its_one_hook() {
    pct(|| {
        let (builder, hand) = pool(1, 2, Queue::bounded(2));
        let calls = Arc::new(AtomicUsize::new(0));
        let hooks = Last {
            calls: Arc::clone(&calls),
            gate: Gate::new(),
        };
        let pool = builder.hooks(hooks).build().unwrap();
        let books = Books::new(2);
        let waiter = |timeout: Option<Duration>| {
            let (pool, calls) = (pool.clone(), Arc::clone(&calls));
            spawn(move || {
                let over = match timeout {
                    None => pool.await_termination().map(|()| true),
                    Some(timeout) => pool.await_termination_timeout(timeout),
                };
                if over.unwrap() {
                    assert_eq!(calls.load(Ordering::Relaxed), 1);
                    assert!(pool.is_terminated() && !pool.is_terminating());
                }
            })
        };
        let waiters = vec![waiter(None), waiter(Some(KEEP_ALIVE))];
        let threads = bringers(&books, &pool, 0..2);
        let other = spawn({
            let pool = pool.clone();
            move || pool.shutdown()
        });
        hand.advance(KEEP_ALIVE);
        pool.shutdown();
        join_all(waiters);
        join_all(threads);
        other.join().unwrap();
        books.balance(&pool, &[]);
        assert_eq!(calls.load(Ordering::Relaxed), 1);
    });
}

/// No handle is left, so the last hook is the only one who tells of the end.
fn last_handle(shut_down_too: bool) {
    let (builder, _hand) = pool(1, 2, Queue::bounded(1));
    let (calls, gate) = (Arc::new(AtomicUsize::new(0)), Gate::new());
    let hooks = Last {
        calls: Arc::clone(&calls),
        gate: gate.clone(),
    };
    let pool = builder.hooks(hooks).build().unwrap();
    let books = Books::new(3);
    let threads: Vec<_> = [0, 1]
        .map(|number| {
            let (books, pool) = (books.clone(), pool.clone());
            spawn(move || {
                let handle = books.bring(&pool, number);
                if shut_down_too {
                    pool.shutdown();
                }
                drop(pool);
                books.join(number, handle);
            })
        })
        .into();
    // This one takes a handle along and may be the one who drops the last, in a worker.
    let own = pool.clone();
    let handle = books.bring_doing(&pool, 2, move || drop(own));
    drop(pool);
    books.join(2, handle);
    join_all(threads);
    gate.wait();
    assert_eq!(calls.load(Ordering::Relaxed), 1);
    let sums = books.add_up(&[]);
    assert_eq!(sums.run, sums.taken);
}

#[test]
fn the_last_handle_that_drops_ends_the_pool_in_order() {
    pct(|| last_handle(false));
}

#[test]
fn shutdowns_beside_the_drop_of_the_last_handle_end_the_pool_once() {
    pct(|| last_handle(true));
}

#[test]
fn a_shutdown_beside_workers_that_time_out_ends_the_pool() {
    pct(|| {
        let (builder, hand) = pool(0, 2, Queue::bounded(2));
        let pool = builder.build().unwrap();
        let books = Books::new(3);
        books.bring_and_join(&pool, 0);
        let clock = spawn(move || hand.advance(KEEP_ALIVE));
        let threads = bringers(&books, &pool, [1, 2]);
        pool.shutdown();
        join_all(threads);
        clock.join().unwrap();
        let sums = books.balance(&pool, &[]);
        assert_eq!(sums.run, sums.taken);
        only_too_late(&books, 3);
    });
}

#[test]
fn a_shutdown_beside_new_limits_ends_the_pool() {
    pct(|| {
        let (builder, _hand) = pool(1, 3, Queue::bounded(4));
        let pool = builder.build().unwrap();
        let books = Books::new(3);
        let handles = [0, 1, 2].map(|number| books.bring(&pool, number));
        let governor = spawn({
            let pool = pool.clone();
            move || {
                pool.set_core(3).unwrap();
                pool.set_core(0).unwrap();
                pool.set_max(1).unwrap();
            }
        });
        pool.shutdown();
        for (number, handle) in handles.into_iter().enumerate() {
            books.join(number, handle);
        }
        governor.join().unwrap();
        assert_eq!(books.balance(&pool, &[]).run, 3);
    });
}

fn end_without_threads(plan: u32, stops: bool) {
    let (builder, _hand) = pool(1, 2, Queue::bounded(1));
    let pool = builder.threads(Moody::new(plan)).build().unwrap();
    let books = Books::new(3);
    let threads: Vec<_> = (0..3)
        .map(|number| {
            let (books, pool) = (books.clone(), pool.clone());
            spawn(move || {
                let handle = match stops {
                    true => books.bring_doing(&pool, number, until_interrupted),
                    false => books.bring(&pool, number),
                };
                books.join(number, handle);
            })
        })
        .collect();
    match stops {
        true => books.handed_back(pool.shutdown_now()),
        false => pool.shutdown(),
    }
    join_all(threads);
    // What was taken while a thread was hoped for that did not come is refused after the fact.
    books.balance(&pool, &[CancelReason::Rejected]);
}

#[test]
fn a_stop_beside_threads_that_fail_ends_the_pool() {
    pct(|| end_without_threads(0b101, true));
}

#[test]
fn a_shutdown_beside_threads_that_fail_ends_the_pool() {
    pct(|| end_without_threads(0b101, false));
}

#[test]
fn a_shutdown_of_a_pool_that_gets_no_thread_ends_it() {
    pct(|| end_without_threads(u32::MAX, false));
}

#[test]
fn the_end_waits_for_a_task_whose_thread_died_before_its_first_step() {
    pct(|| {
        let (builder, _hand) = pool(1, 1, Queue::bounded(1));
        end_while_threads_die(&builder.threads(Stillborn).build().unwrap());
    });
}
