//! PCT schedules of a whole pool, third part: the rejection policies against workers and the end.

use crate::shuttle_kit::{
    Books, Brought, Gate, KEEP_ALIVE, Moody, Sums, Why, bringers, join_all, pct, pool,
    until_interrupted,
};
use millpond::executor::Lifecycle;
use millpond::pool::{Queue, RejectionPolicy, ThreadPool};
use millpond::task::CancelReason;
use millpond_raw::sync::thread::spawn;
use millpond_raw::task::Token;
use std::sync::Arc;
use std::time::Duration;

/// A pool whose one worker is held and whose queue of one place is full: the next is refused. Tasks 0
/// and 1 are in it.
fn full(rejection: RejectionPolicy, books: &Books) -> (ThreadPool, Gate, Vec<(usize, Held)>) {
    let (builder, _hand) = pool(1, 1, Queue::bounded(1));
    let pool = builder.rejection(rejection).build().unwrap();
    let gate = Gate::new();
    let held = books.bring_doing(&pool, 0, {
        let gate = gate.clone();
        move || gate.wait()
    });
    // The worker has its first task from the start, so the queue is empty for this one.
    let queued = books.bring(&pool, 1);
    (pool, gate, vec![(0, held), (1, queued)])
}

type Held = Option<millpond::task::TaskHandle<()>>;

fn hear_all(books: &Books, handles: Vec<(usize, Held)>) {
    for (number, handle) in handles {
        books.join(number, handle);
    }
}

#[test]
fn the_oldest_is_discarded_or_run_and_never_both() {
    pct(|| {
        let books = Books::new(4);
        let (pool, gate, handles) = full(RejectionPolicy::DiscardOldest, &books);
        let threads = bringers(&books, &pool, [2, 3]);
        gate.open();
        join_all(threads);
        hear_all(&books, handles);
        pool.shutdown();
        let sums = books.balance(&pool, &[CancelReason::Discarded]);
        assert_eq!(sums.refused, 0, "{sums:?}");
        assert!(sums.cancelled <= 2, "one for each that came: {sums:?}");
    });
}

#[test]
fn a_shutdown_that_meets_a_discard_costs_no_more_than_the_two() {
    pct(|| {
        let (builder, _hand) = pool(1, 1, Queue::bounded(3));
        let pool = builder
            .rejection(RejectionPolicy::DiscardOldest)
            .build()
            .unwrap();
        let books = Books::new(5);
        let gate = Gate::new();
        let held = books.bring_doing(&pool, 0, {
            let gate = gate.clone();
            move || gate.wait()
        });
        let queued = [1, 2, 3].map(|number| books.bring(&pool, number));
        let last = bringers(&books, &pool, [4]);
        let opener = spawn(move || gate.open());
        pool.shutdown();
        join_all(last);
        opener.join().unwrap();
        books.join(0, held);
        for (number, handle) in (1..).zip(queued) {
            books.join(number, handle);
        }
        let sums = books.balance(&pool, &[CancelReason::Discarded, CancelReason::ShutDown]);
        // The oldest that made room, and the new one if that came too late all the same.
        assert!(sums.refused == 0 && sums.cancelled <= 2, "{sums:?}");
    });
}

#[test]
fn a_pool_without_workers_whose_last_task_is_discarded_ends() {
    pct(|| {
        let (builder, _hand) = pool(0, 1, Queue::bounded(1));
        let pool = builder
            .rejection(RejectionPolicy::DiscardOldest)
            .build()
            .unwrap();
        let books = Books::new(2);
        let threads = bringers(&books, &pool, [0, 1]);
        pool.shutdown();
        join_all(threads);
        books.balance(&pool, &[CancelReason::Discarded, CancelReason::ShutDown]);
    });
}

fn end_against_blocked(stops: bool) -> (Books, Sums) {
    let books = Books::new(4);
    let (pool, gate, handles) = full(RejectionPolicy::Block(Duration::MAX), &books);
    let threads = bringers(&books, &pool, [2, 3]);
    let opener = spawn(move || gate.open());
    if stops {
        books.handed_back(pool.shutdown_now());
    } else {
        pool.shutdown();
    }
    join_all(threads);
    opener.join().unwrap();
    hear_all(&books, handles);
    let sums = books.balance(&pool, &[]);
    (books, sums)
}

#[test]
fn a_shutdown_wakes_those_who_wait_for_room() {
    pct(|| {
        let (books, sums) = end_against_blocked(false);
        assert_eq!(sums.run, sums.taken);
        for number in [2, 3] {
            let brought = books.page(number).brought;
            let fair = [Brought::Taken, Brought::Refused(Why::ShutDown)];
            assert!(fair.contains(&brought), "{brought:?}");
        }
    });
}

#[test]
fn a_stop_wakes_those_who_wait_for_room() {
    pct(|| drop(end_against_blocked(true)));
}

#[test]
fn one_who_waits_for_room_is_served_in_time_or_refused() {
    pct(|| {
        let (builder, hand) = pool(1, 1, Queue::bounded(1));
        let pool = builder
            .rejection(RejectionPolicy::Block(KEEP_ALIVE))
            .build();
        let pool = pool.unwrap();
        let books = Books::new(4);
        let threads = bringers(&books, &pool, 0..4);
        hand.advance(KEEP_ALIVE);
        join_all(threads);
        pool.shutdown();
        let sums = books.balance(&pool, &[]);
        assert_eq!(sums.run, sums.taken);
    });
}

#[test]
fn one_who_waits_for_room_can_be_interrupted() {
    pct(|| {
        let books = Books::new(3);
        let (pool, gate, handles) = full(RejectionPolicy::Block(Duration::MAX), &books);
        let token = Arc::new(Token::new());
        let waits = spawn({
            let (books, pool, token) = (books.clone(), pool.clone(), Arc::clone(&token));
            move || token.enter(|| books.bring(&pool, 2))
        });
        let opener = spawn(move || gate.open());
        token.set();
        let handle = waits.join().unwrap();
        opener.join().unwrap();
        books.join(2, handle);
        hear_all(&books, handles);
        pool.shutdown();
        books.balance(&pool, &[]);
        // Success leaves the token set, and reporting the interrupt clears it.
        let refused = books.page(2).brought == Brought::Refused(Why::Interrupted);
        assert_eq!(token.is_set(), !refused);
    });
}

/// A pool as [`full`], with a second worker that may be started by this plan.
fn short_of_threads(plan: u32, books: &Books) -> (ThreadPool, Gate, Vec<(usize, Held)>) {
    let (builder, _hand) = pool(1, 2, Queue::bounded(1));
    let builder = builder.rejection(RejectionPolicy::Block(Duration::MAX));
    let pool = builder.threads(Moody::new(plan)).build().unwrap();
    let gate = Gate::new();
    let held = books.bring_doing(&pool, 0, {
        let gate = gate.clone();
        move || gate.wait()
    });
    let queued = books.bring(&pool, 1);
    (pool, gate, vec![(0, held), (1, queued)])
}

fn wait_for_room_by(plan: u32) {
    let books = Books::new(4);
    let (pool, gate, handles) = short_of_threads(plan, &books);
    let threads = bringers(&books, &pool, [2, 3]);
    gate.open();
    join_all(threads);
    hear_all(&books, handles);
    pool.shutdown();
    let sums = books.balance(&pool, &[]);
    assert_eq!((sums.run, sums.refused), (4, 0), "{sums:?}");
}

fn end_while_submitters_wait_by(plan: u32) {
    let books = Books::new(4);
    let (pool, gate, handles) = short_of_threads(plan, &books);
    let threads = bringers(&books, &pool, [2, 3]);
    let opener = spawn(move || gate.open());
    pool.shutdown();
    join_all(threads);
    opener.join().unwrap();
    hear_all(&books, handles);
    books.balance(&pool, &[]);
    for number in [2, 3] {
        let brought = books.page(number).brought;
        let fair = [Brought::Taken, Brought::Refused(Why::ShutDown)];
        assert!(fair.contains(&brought), "{brought:?}");
    }
}

#[test]
fn submitters_wait_for_room_while_another_worker_is_refused() {
    // All but the first are refused, or the first two after it.
    pct(|| wait_for_room_by(u32::MAX - 1));
    pct(|| wait_for_room_by(0b110));
}

#[test]
fn a_shutdown_wakes_submitters_that_wait_for_room_while_another_worker_is_refused() {
    pct(|| end_while_submitters_wait_by(u32::MAX - 1));
    pct(|| end_while_submitters_wait_by(0b110));
}

#[test]
fn submitters_do_not_wait_for_a_worker_that_none_can_start() {
    // The only worker may leave while they wait, and none comes after it.
    pct(|| {
        let (builder, hand) = pool(0, 1, Queue::bounded(1));
        let builder = builder.rejection(RejectionPolicy::Block(Duration::MAX));
        let pool = builder.threads(Moody::new(u32::MAX - 1)).build().unwrap();
        let books = Books::new(4);
        let threads = bringers(&books, &pool, 0..4);
        hand.advance(KEEP_ALIVE);
        join_all(threads);
        pool.shutdown();
        books.balance(&pool, &[CancelReason::Rejected]);
    });
}

fn end_against_extra_threads(plan: u32, stops: bool) {
    let (builder, _hand) = pool(1, 1, Queue::bounded(1));
    let rejection = RejectionPolicy::NewThread { at_most: 1 };
    let pool = builder.rejection(rejection).threads(Moody::new(plan));
    let pool = pool.build().unwrap();
    let books = Books::new(4);
    let threads: Vec<_> = [[0, 1], [2, 3]]
        .map(|numbers| {
            let (books, pool) = (books.clone(), pool.clone());
            spawn(move || {
                let handles = numbers.map(|number| {
                    if stops {
                        books.bring_doing(&pool, number, until_interrupted)
                    } else {
                        books.bring(&pool, number)
                    }
                });
                for (number, handle) in numbers.into_iter().zip(handles) {
                    books.join(number, handle);
                }
            })
        })
        .into();
    if stops {
        books.handed_back(pool.shutdown_now());
    } else {
        pool.shutdown();
    }
    join_all(threads);
    pool.await_termination().unwrap();
    let last = pool.snapshot();
    assert_eq!((last.workers, last.extra_threads, last.queued), (0, 0, 0));
    // What extra threads run is nobody's figure, so the books stand alone.
    let sums = books.add_up(&[]);
    assert!(
        sums.run as u64 >= last.completed_by_workers(),
        "{sums:?} {last:?}"
    );
    assert_eq!(
        sums.handed_back as u64, last.handed_back,
        "{sums:?} {last:?}"
    );
}

#[test]
fn a_stop_reaches_extra_threads() {
    pct(|| end_against_extra_threads(0, true));
}

#[test]
fn a_stop_beside_extra_threads_that_fail_loses_nothing() {
    pct(|| end_against_extra_threads(0b10, true));
}

#[test]
fn a_shutdown_waits_for_extra_threads() {
    pct(|| end_against_extra_threads(0, false));
}

#[test]
fn a_caller_runs_its_task_or_hears_of_the_shutdown() {
    pct(|| {
        let books = Books::new(4);
        let (pool, gate, handles) = full(RejectionPolicy::CallerRuns, &books);
        let threads = bringers(&books, &pool, [2, 3]);
        let opener = spawn(move || gate.open());
        pool.shutdown();
        join_all(threads);
        opener.join().unwrap();
        hear_all(&books, handles);
        let sums = books.balance(&pool, &[]);
        assert_eq!(sums.run, sums.taken);
    });
}

#[test]
fn a_caller_runs_its_closure_or_hears_of_the_shutdown() {
    pct(|| {
        let books = Books::new(4);
        let (pool, gate, handles) = full(RejectionPolicy::CallerRuns, &books);
        let threads = [2, 3].map(|number| {
            let (books, pool) = (books.clone(), pool.clone());
            spawn(move || books.throw(&pool, number))
        });
        let opener = spawn(move || gate.open());
        pool.shutdown();
        join_all(threads.into());
        opener.join().unwrap();
        hear_all(&books, handles);
        let sums = books.balance(&pool, &[]);
        assert_eq!(sums.run, sums.taken);
    });
}

#[test]
fn a_cancelled_task_gives_its_place_to_one_who_comes() {
    pct(|| {
        let books = Books::new(4);
        let (pool, gate, handles) = full(RejectionPolicy::Abort, &books);
        let cancelled = handles[1].1.as_ref().map(|handle| handle.cancel());
        assert_eq!(cancelled, Some(true));
        let comes = bringers(&books, &pool, [2]);
        let purger = spawn({
            let pool = pool.clone();
            move || assert!(pool.purge() <= 1)
        });
        purger.join().unwrap();
        gate.open();
        join_all(comes);
        books.bring_and_join(&pool, 3);
        hear_all(&books, handles);
        pool.shutdown();
        let sums = books.balance(&pool, &[CancelReason::Requested]);
        assert_eq!((sums.run, sums.cancelled, sums.refused), (3, 1, 0));
    });
}
