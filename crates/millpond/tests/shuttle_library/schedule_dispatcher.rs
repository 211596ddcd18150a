//! PCT schedules of the dispatcher: what is due meets an executor that makes its callers wait.
//!
//! The executor is a pool of one worker, which is held, and a queue of capacity one. A further task waits for
//! room, and only the dispatcher may do that.
#![allow(
    clippy::disallowed_types,
    reason = "what the test counts is std's, so that the checker does not branch on it"
)]

use crate::schedule_kit::{
    Held, SECOND, ends, handed_back, hear, move_until, mover, pct, schedule,
};
use crate::shuttle_kit::{Books, Gate, Moody, join_all, pool};
use millpond::executor::{DirectExecutor, ExecutorExt, Lifecycle};
use millpond::pool::{Queue, RejectionPolicy, ThreadPool};
use millpond::schedule::ScheduledPool;
use millpond::task::CancelReason;
use millpond::thread::{Body, JoinHandle, ThreadFactory};
use millpond::time::ManualClock;
use millpond_raw::sync::thread::{self, spawn};
use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// A worker that is held until the gate opens.
fn narrow() -> (ThreadPool, Gate, ManualClock) {
    let (builder, hand) = pool(1, 1, Queue::bounded(1));
    let builder = builder.rejection(RejectionPolicy::Block(Duration::MAX));
    let workers = builder.build().unwrap();
    let gate = Gate::new();
    let held = gate.clone();
    workers.execute(move || held.wait()).unwrap();
    (workers, gate, hand)
}

/// The numbers of the tasks in the order in which they ran.
type Order = Arc<Mutex<Vec<usize>>>;

/// Schedules a task for each of these seconds; they note their numbers.
fn in_a_row(
    books: &Books,
    timers: &ScheduledPool<ThreadPool>,
    seconds: &[u32],
) -> (Vec<Held>, Order) {
    let order = Order::default();
    let one = |(number, second): (usize, &u32)| {
        let order = Arc::clone(&order);
        let note = move || order.lock().unwrap().push(number);
        schedule(books, timers, number, *second * SECOND, note)
    };
    let held = seconds.iter().enumerate().map(one).collect();
    (held, order)
}

/// DISPATCH-2: whether it goes straight to the executor or through the dispatcher's queue.
#[test]
fn the_dispatcher_submits_tasks_in_the_order_of_their_due_times() {
    pct(|| {
        let (workers, gate, hand) = narrow();
        let (timers, books) = (ScheduledPool::owning(workers).build(), Books::new(5));
        let (held, order) = in_a_row(&books, &timers, &[1, 1, 1, 2, 3]);
        let opener = spawn(move || gate.open());
        let clock = mover(&hand, 3);
        hear(&books, held);
        join_all(vec![opener, clock]);
        timers.shutdown();
        ends(&timers, &hand);
        assert_eq!(books.add_up(&[]).run, 5);
        assert_eq!(*order.lock().unwrap(), [0, 1, 2, 3, 4]);
    });
}

#[test]
fn a_shutdown_while_the_dispatcher_waits_runs_what_is_in_its_queue() {
    pct(|| {
        let (workers, gate, hand) = narrow();
        let (timers, books) = (ScheduledPool::owning(workers).build(), Books::new(4));
        let (held, order) = in_a_row(&books, &timers, &[1, 1, 1, 2]);
        hand.advance(SECOND);
        let clock = mover(&hand, 1);
        let opener = spawn(move || gate.open());
        timers.shutdown();
        join_all(vec![opener, clock]);
        hear(&books, held);
        ends(&timers, &hand);
        assert_eq!(books.add_up(&[]).run, 4);
        assert_eq!(*order.lock().unwrap(), [0, 1, 2, 3]);
    });
}

/// Each task has run, or comes back, or was on its way.
fn stop_while_it_waits(timers: &ScheduledPool<ThreadPool>, gate: Gate, hand: &ManualClock) {
    let books = Books::new(4);
    let (held, _) = in_a_row(&books, timers, &[1, 1, 1, 2]);
    let clock = mover(hand, 2);
    let opener = spawn(move || gate.open());
    handed_back(&books, timers.shutdown_now());
    join_all(vec![opener, clock]);
    hear(&books, held);
    ends(timers, hand);
    books.add_up(&[CancelReason::ShutDown]);
}

#[test]
fn a_stop_while_the_dispatcher_waits_ends_the_pool() {
    pct(|| {
        let (workers, gate, hand) = narrow();
        let timers = ScheduledPool::owning(workers).on_event(|_| ()).build();
        stop_while_it_waits(&timers, gate, &hand);
    });
}

#[test]
fn a_stop_while_the_dispatcher_waits_leaves_an_executor_alone_that_goes_on() {
    pct(|| {
        let (workers, gate, hand) = narrow();
        let timers = ScheduledPool::on(workers.clone()).build();
        stop_while_it_waits(&timers, gate, &hand);
        drop(timers);
        assert_eq!(workers.submit(|| 7).unwrap().join().unwrap(), 7);
        workers.close().unwrap();
    });
}

/// There is no room before the stop has returned, and, if the executor goes on, before the pool has ended.
fn stop_without_room(timers: &ScheduledPool<ThreadPool>, gate: &Gate, hand: &ManualClock) -> Books {
    let books = Books::new(4);
    let (held, _) = in_a_row(&books, timers, &[1, 1, 1, 2]);
    hand.advance(SECOND);
    handed_back(&books, timers.shutdown_now());
    if timers.executor().is_shutdown() {
        gate.open();
    }
    hear(&books, held);
    ends(timers, hand);
    gate.open();
    books
}

#[test]
fn a_stop_returns_the_task_that_the_dispatcher_is_waiting_to_submit() {
    pct(|| {
        let (workers, gate, hand) = narrow();
        let timers = ScheduledPool::owning(workers).build();
        let books = stop_without_room(&timers, &gate, &hand);
        assert_eq!(books.add_up(&[]).handed_back, 4);
        assert_eq!(timers.snapshot().rejected_when_due, 0);
    });
}

#[test]
fn a_stop_returns_the_task_that_the_dispatcher_is_waiting_to_submit_to_an_executor_that_goes_on() {
    pct(|| {
        let (workers, gate, hand) = narrow();
        let timers = ScheduledPool::on(workers.clone()).build();
        let books = stop_without_room(&timers, &gate, &hand);
        assert_eq!(books.add_up(&[]).handed_back, 4);
        assert_eq!(timers.snapshot().rejected_when_due, 0);
        drop(timers);
        workers.close().unwrap();
    });
}

/// While others move the clock and make room, so that a stop may also run out of timeout.
#[test]
fn two_stops_while_the_dispatcher_waits_return_each_task_at_most_once() {
    pct(|| {
        let (workers, gate, hand) = narrow();
        let timers = ScheduledPool::on(workers.clone()).build();
        let books = Books::new(3);
        let (held, _) = in_a_row(&books, &timers, &[1, 1, 1]);
        hand.advance(SECOND);
        let stop = {
            let (books, timers) = (books.clone(), timers.clone());
            spawn(move || handed_back(&books, timers.shutdown_now()))
        };
        let clock = mover(&hand, 2);
        let opener = spawn(move || gate.open());
        handed_back(&books, timers.shutdown_now());
        join_all(vec![stop, clock, opener]);
        hear(&books, held);
        ends(&timers, &hand);
        books.add_up(&[CancelReason::ShutDown]);
        drop(timers);
        workers.close().unwrap();
    });
}

/// The body ends when the stop has returned; the clock stands still, so no timeout runs out.
#[test]
fn a_stop_waits_for_no_body_that_begins_on_the_dispatcher_thread() {
    pct(|| {
        let (hand, gate) = (ManualClock::new(), Gate::new());
        let timers = ScheduledPool::on(DirectExecutor::new()).clock(hand.clock());
        let (timers, books) = (timers.build(), Books::new(2));
        let held = [0, 1].map(|number| {
            let gate = gate.clone();
            schedule(&books, &timers, number, SECOND, move || gate.wait())
        });
        hand.advance(SECOND);
        handed_back(&books, timers.shutdown_now());
        gate.open();
        hear(&books, held);
        ends(&timers, &hand);
        books.add_up(&[CancelReason::ShutDown]);
    });
}

/// Starts threads that are lost before their first step, a given number of them.
#[derive(Debug)]
struct Losing(AtomicUsize);

impl ThreadFactory for Losing {
    fn start(&self, body: Body) -> io::Result<JoinHandle<()>> {
        let one_less = |left: usize| left.checked_sub(1);
        let to_lose = &self.0;
        match to_lose.fetch_update(Ordering::SeqCst, Ordering::SeqCst, one_less) {
            Ok(_) => Ok(spawn(move || drop(body))),
            Err(_) => Ok(spawn(body)),
        }
    }
}

/// Nothing is lost, and nothing overtakes, while there is no dispatcher.
fn dispatchers_that_fail(factory: impl ThreadFactory) {
    let (workers, gate, hand) = narrow();
    let timers = ScheduledPool::owning(workers);
    let timers = timers.dispatcher_threads(factory).build();
    let books = Books::new(4);
    let (held, order) = in_a_row(&books, &timers, &[1, 1, 1, 2]);
    hand.advance(SECOND);
    gate.open();
    let ran = Arc::clone(&order);
    move_until(&hand, || ran.lock().unwrap().len() == 4);
    hear(&books, held);
    timers.shutdown();
    ends(&timers, &hand);
    assert_eq!(books.add_up(&[]).run, 4);
    assert_eq!(*order.lock().unwrap(), [0, 1, 2, 3]);
}

#[test]
fn a_dispatcher_thread_that_is_refused_at_first_is_started_later() {
    pct(|| dispatchers_that_fail(Moody::new(0b11)));
}

#[test]
fn a_dispatcher_that_is_lost_at_first_is_replaced() {
    pct(|| dispatchers_that_fail(Losing(AtomicUsize::new(2))));
}

/// An executor that runs tasks in the submitting thread: all of them go through the dispatcher's queue.
#[test]
fn the_dispatcher_runs_tasks_that_would_run_on_the_timer_thread() {
    pct(|| {
        let hand = ManualClock::new();
        let timers = ScheduledPool::on(DirectExecutor::new()).clock(hand.clock());
        let (timers, books) = (timers.build(), Books::new(3));
        let rings = thread::current().id();
        let threads: Vec<_> = [(0, 1), (1, 0)]
            .map(|(number, second)| {
                let (books, timers) = (books.clone(), timers.clone());
                spawn(move || schedule(&books, &timers, number, second * SECOND, || ()))
            })
            .into();
        let elsewhere = move || assert_ne!(thread::current().id(), rings);
        let mut held = vec![schedule(&books, &timers, 2, SECOND, elsewhere)];
        hand.advance(SECOND);
        held.extend(threads.into_iter().map(|thread| thread.join().unwrap()));
        timers.shutdown();
        hand.advance(SECOND);
        hear(&books, held);
        ends(&timers, &hand);
        assert_eq!(books.add_up(&[]).run, 3);
    });
}
