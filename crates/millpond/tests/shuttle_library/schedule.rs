//! PCT schedules of a scheduled pool: tasks that run once, while the clock advances and the pool is
//! shut down.
//!
//! A task that is forgotten shows in two ways: it was due and is not finished when nothing moves any more
//! ([`at_rest`]), or the pool does not terminate, which is a deadlock of the thread that awaits it.
//!
//! Each scenario runs under 150 schedules for each depth.
#![allow(
    clippy::disallowed_types,
    reason = "what the test counts is std's, so that the checker does not branch on it"
)]

use crate::schedule_kit::{
    Held, SECOND, at_rest, ends, handed_back, hear, in_place, move_until, mover, on_workers, pct,
    schedule,
};
use crate::shuttle_kit::{Books, Brought, Gate, Why, join_all, pool, until_interrupted};
use millpond::executor::{Executor, ExecutorExt, Lifecycle};
use millpond::pool::{Hooks, Queue};
use millpond::schedule::{ScheduledBuilder, ScheduledPool};
use millpond::task::{CancelReason, TaskError};
use millpond::time::ManualClock;
use millpond_raw::sync::thread::{JoinHandle, spawn};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Starts a thread for each of these tasks, which schedules it and returns the result.
fn schedulers<E: Executor + 'static>(
    books: &Books,
    timers: &ScheduledPool<E>,
    tasks: impl IntoIterator<Item = (usize, Duration)>,
    body: fn(),
) -> Vec<JoinHandle<Held>> {
    let start = |(number, delay)| {
        let (books, timers) = (books.clone(), timers.clone());
        spawn(move || schedule(&books, &timers, number, delay, body))
    };
    tasks.into_iter().map(start).collect()
}

fn held_by(threads: Vec<JoinHandle<Held>>) -> Vec<Held> {
    let held = threads.into_iter().map(JoinHandle::join);
    held.map(Result::unwrap).collect()
}

fn refused_only_too_late(books: &Books, tasks: usize) {
    for number in 0..tasks {
        if let Brought::Refused(why) = books.page(number).brought {
            assert_eq!(why, Why::ShutDown, "task {number}");
        }
    }
}

/// SCHEDULE-1: a task comes before the shutdown and runs at its time, or comes after it and is rejected.
#[test]
fn a_task_scheduled_during_a_shutdown_runs_or_is_rejected() {
    pct(|| {
        let (builder, hand) = in_place();
        let (timers, books) = (builder.build(), Books::new(3));
        let tasks = [(0, SECOND), (1, Duration::ZERO), (2, 2 * SECOND)];
        let threads = schedulers(&books, &timers, tasks, || ());
        let clock = mover(&hand, 1);
        timers.shutdown();
        let held = held_by(threads);
        clock.join().unwrap();
        at_rest(&held, &hand);
        hand.advance(2 * SECOND);
        at_rest(&held, &hand);
        hear(&books, held);
        ends(&timers, &hand);
        let sums = books.add_up(&[]);
        assert_eq!(sums.run, sums.taken);
        refused_only_too_late(&books, 3);
    });
}

/// The same with an executor that ends with the pool, and must not do so before.
#[test]
fn an_executor_that_ends_with_the_pool_runs_tasks_scheduled_during_the_shutdown() {
    pct(|| {
        let (builder, hand) = on_workers(1);
        let (timers, books) = (builder.build(), Books::new(2));
        let threads = schedulers(&books, &timers, [(0, SECOND), (1, Duration::ZERO)], || ());
        timers.shutdown();
        let held = held_by(threads);
        hand.advance(SECOND);
        hear(&books, held);
        ends(&timers, &hand);
        let sums = books.add_up(&[]);
        assert_eq!(sums.run, sums.taken);
        refused_only_too_late(&books, 2);
    });
}

/// Task 1 has no delay: once it was taken it runs, also if another thread is handing over and this one is
/// still an entry of the wheel when the shutdown comes.
fn shutdown_without_delayed_tasks<E: Executor + 'static>(
    builder: ScheduledBuilder<E>,
    hand: &ManualClock,
) {
    let timers = builder.run_delayed_after_shutdown(false).build();
    let books = Books::new(4);
    let tasks = [
        (0, SECOND),
        (1, Duration::ZERO),
        (2, 2 * SECOND),
        (3, Duration::ZERO),
    ];
    let threads = schedulers(&books, &timers, tasks, || ());
    let clock = mover(hand, 1);
    timers.shutdown();
    let held = held_by(threads);
    clock.join().unwrap();
    // Terminating does not wait for the due time of a cancelled task.
    ends(&timers, hand);
    hear(&books, held);
    books.add_up(&[CancelReason::ShutDown]);
    refused_only_too_late(&books, 4);
    for number in [1, 3] {
        let page = books.page(number);
        let is_taken = matches!(page.brought, Brought::Taken);
        assert_eq!(page.runs == 1, is_taken, "task {number} was due");
    }
}

#[test]
fn a_task_that_may_not_run_after_a_shutdown_runs_before_it_or_is_cancelled_or_rejected() {
    pct(|| {
        let (builder, hand) = in_place();
        shutdown_without_delayed_tasks(builder, &hand);
    });
}

/// The policy is changed during the shutdown: whichever thread purges, no due task is purged.
#[test]
fn a_due_task_runs_though_delayed_tasks_are_switched_off_during_the_shutdown() {
    pct(|| {
        let (builder, hand) = in_place();
        let (timers, books) = (builder.build(), Books::new(2));
        let switch = spawn({
            let timers = timers.clone();
            move || timers.set_run_delayed_after_shutdown(false)
        });
        // Time advances before the task comes, so a thread that has read the clock before finds it in the future.
        let threads = [0, 1].map(|number| {
            let (books, timers, hand) = (books.clone(), timers.clone(), hand.clone());
            spawn(move || {
                hand.advance(SECOND);
                schedule(&books, &timers, number, Duration::ZERO, || ())
            })
        });
        timers.shutdown();
        let held = held_by(threads.into());
        switch.join().unwrap();
        ends(&timers, &hand);
        hear(&books, held);
        let sums = books.add_up(&[]);
        assert_eq!(sums.run, sums.taken);
        refused_only_too_late(&books, 2);
    });
}

#[test]
fn a_task_that_is_due_at_a_shutdown_reaches_the_workers_though_delayed_tasks_may_not_run() {
    pct(|| {
        let (builder, hand) = on_workers(1);
        shutdown_without_delayed_tasks(builder, &hand);
    });
}

/// Bodies that wait to be interrupted: one that the stop does not reach never ends.
fn stop_against_tasks<E: Executor + 'static>(timers: &ScheduledPool<E>, hand: &ManualClock) {
    let books = Books::new(3);
    let tasks = [(0, SECOND), (1, Duration::ZERO), (2, 2 * SECOND)];
    let threads = schedulers(&books, timers, tasks, until_interrupted);
    let clock = mover(hand, 1);
    handed_back(&books, timers.shutdown_now());
    let held = held_by(threads);
    clock.join().unwrap();
    hear(&books, held);
    ends(timers, hand);
    // A task that was on its way to the executor is returned by no call.
    books.add_up(&[CancelReason::ShutDown, CancelReason::Rejected]);
    refused_only_too_late(&books, 3);
}

#[test]
fn a_stop_reaches_tasks_scheduled_on_an_executor_that_ends_with_the_pool() {
    pct(|| {
        let (builder, hand) = on_workers(1);
        stop_against_tasks(&builder.build(), &hand);
    });
}

#[test]
fn a_stop_reaches_tasks_scheduled_on_an_executor_that_goes_on() {
    pct(|| {
        let (builder, hand) = pool(2, 2, Queue::bounded(4));
        let workers = builder.build().unwrap();
        stop_against_tasks(&ScheduledPool::on(workers.clone()).build(), &hand);
        assert_eq!(workers.submit(|| 7).unwrap().join().unwrap(), 7);
        workers.close().unwrap();
    });
}

/// Tells of the end of a pool without a handle.
struct Last(Gate);

impl Hooks for Last {
    fn terminated(&self) {
        self.0.open();
    }
}

#[test]
fn dropping_the_last_handle_ends_the_pool_after_its_scheduled_tasks() {
    pct(|| {
        let (builder, hand) = pool(1, 1, Queue::bounded(4));
        let gate = Gate::new();
        let workers = builder.hooks(Last(gate.clone())).build().unwrap();
        let (timers, books) = (ScheduledPool::owning(workers).build(), Books::new(3));
        let threads = schedulers(&books, &timers, [(0, SECOND), (1, Duration::ZERO)], || ());
        // This thread has a handle and may be the one that drops the last.
        let own = timers.clone();
        let mut held = vec![schedule(&books, &timers, 2, SECOND, move || drop(own))];
        drop(timers);
        held.extend(held_by(threads));
        hand.advance(SECOND);
        hear(&books, held);
        gate.wait();
        assert_eq!(books.add_up(&[]).run, 3);
        assert_eq!(hand.sleepers(), 0, "an alarm is left behind");
    });
}

/// SCHEDULE-2: the closure is run or dropped, once, and the handle says which.
fn cancel_against_fire<E: Executor + 'static>(timers: &ScheduledPool<E>, hand: &ManualClock) {
    let books = Books::new(2);
    let (_, task) = schedule(&books, timers, 0, SECOND, || ());
    let task = task.unwrap();
    let other = schedule(&books, timers, 1, 2 * SECOND, || ());
    let canceller = spawn({
        let books = books.clone();
        move || {
            let was_first = task.cancel();
            let then = books.page(0);
            let said = task.join();
            assert_eq!(was_first, said.is_err());
            books.heard(0, said);
            then
        }
    });
    let clock = mover(hand, 1);
    let when_cancelled = canceller.join().unwrap();
    clock.join().unwrap();
    at_rest(std::slice::from_ref(&other), hand);
    timers.shutdown();
    hand.advance(SECOND);
    hear(&books, [other]);
    ends(timers, hand);
    books.add_up(&[CancelReason::Requested]);
    if books.page(0).runs == 0 {
        assert_eq!(when_cancelled.drops, 1, "before the cancel returned");
    }
}

#[test]
fn a_task_that_is_cancelled_when_due_runs_or_is_dropped_and_the_handle_says_which() {
    pct(|| {
        let (builder, hand) = in_place();
        cancel_against_fire(&builder.build(), &hand);
    });
}

#[test]
fn a_task_that_is_cancelled_on_its_way_to_a_worker_runs_or_is_dropped() {
    pct(|| {
        let (builder, hand) = on_workers(1);
        cancel_against_fire(&builder.build(), &hand);
    });
}

/// The last task of a pool that is shut down is cancelled: its alarm goes with it.
#[test]
fn a_pool_whose_last_task_is_cancelled_during_the_shutdown_terminates_without_an_alarm() {
    pct(|| {
        let (builder, hand) = in_place();
        let (timers, books) = (builder.build(), Books::new(1));
        let (_, task) = schedule(&books, &timers, 0, SECOND, || ());
        let task = task.unwrap();
        let canceller = spawn(move || {
            assert!(task.cancel());
            task
        });
        timers.shutdown();
        let task = canceller.join().unwrap();
        books.heard(0, task.join());
        ends(&timers, &hand);
        books.add_up(&[CancelReason::Requested]);
    });
}

/// DISPATCH-1: the alarm is set for a later task, replaced for an earlier one, and fires in between.
#[test]
fn no_task_is_forgotten_when_two_threads_schedule_while_the_clock_moves() {
    pct(|| {
        let (builder, hand) = in_place();
        let (timers, books) = (builder.build(), Books::new(4));
        let threads: Vec<_> = [[(0, 3), (1, 1)], [(2, 2), (3, 0)]]
            .map(|tasks| {
                let (books, timers) = (books.clone(), timers.clone());
                spawn(move || {
                    tasks.map(|(number, seconds)| {
                        schedule(&books, &timers, number, seconds * SECOND, || ())
                    })
                })
            })
            .into();
        let clock = mover(&hand, 2);
        let held: Vec<Held> = threads
            .into_iter()
            .flat_map(|thread| thread.join().unwrap())
            .collect();
        clock.join().unwrap();
        at_rest(&held, &hand);
        // One move is enough for what is left: so the alarm was set for the first of it.
        timers.shutdown();
        for _ in 0..3 {
            hand.advance(SECOND);
            at_rest(&held, &hand);
        }
        hear(&books, held);
        ends(&timers, &hand);
        assert_eq!(books.add_up(&[]).run, 4);
    });
}

/// The next due task is cancelled, and its alarm fires for nothing; the others do not wait behind it.
#[test]
fn cancelling_the_task_that_the_alarm_is_set_for_delays_no_other() {
    pct(|| {
        let (builder, hand) = in_place();
        let (timers, books) = (builder.build(), Books::new(3));
        let (_, first) = schedule(&books, &timers, 0, SECOND, || ());
        let first = first.unwrap();
        let canceller = spawn(move || {
            first.cancel();
            first
        });
        let tasks = [(1, SECOND), (2, 2 * SECOND)];
        let threads = schedulers(&books, &timers, tasks, || ());
        let clock = mover(&hand, 2);
        let mut held = held_by(threads);
        held.push((0, Some(canceller.join().unwrap())));
        clock.join().unwrap();
        at_rest(&held, &hand);
        timers.shutdown();
        for _ in 0..2 {
            hand.advance(SECOND);
            at_rest(&held, &hand);
        }
        hear(&books, held);
        ends(&timers, &hand);
        let sums = books.add_up(&[CancelReason::Requested]);
        assert!(sums.run >= 2, "{sums:?}");
    });
}

/// Another thread shuts the executor down: due tasks are cancelled then, and the pool still terminates.
#[test]
fn an_executor_that_others_shut_down_runs_or_rejects_due_tasks() {
    pct(|| {
        let (builder, hand) = pool(1, 1, Queue::bounded(4));
        let workers = builder.build().unwrap();
        let timers = ScheduledPool::on(workers.clone()).on_event(|_| ()).build();
        let books = Books::new(2);
        let held = [1, 2].map(|at| schedule(&books, &timers, at - 1, at as u32 * SECOND, || ()));
        let clock = mover(&hand, 2);
        let other = spawn(move || workers.close().unwrap());
        timers.shutdown();
        hear(&books, held);
        join_all(vec![clock, other]);
        ends(&timers, &hand);
        books.add_up(&[CancelReason::Rejected]);
    });
}

/// A task waits for one that only its own worker can run.
#[test]
fn a_worker_that_joins_its_own_scheduled_task_runs_it_if_no_other_can() {
    pct(|| {
        let (builder, hand) = on_workers(1);
        let (timers, books) = (builder.build(), Books::new(2));
        let done = Arc::new(AtomicBool::new(false));
        let joiner = timers.submit({
            let (books, timers, done) = (books.clone(), timers.clone(), Arc::clone(&done));
            move || {
                let tasks = [(0, SECOND), (1, Duration::ZERO)];
                let held =
                    tasks.map(|(number, after)| schedule(&books, &timers, number, after, || ()));
                hear(&books, held);
                done.store(true, Ordering::SeqCst);
            }
        });
        move_until(&hand, || done.load(Ordering::SeqCst));
        joiner.unwrap().join().unwrap();
        timers.shutdown();
        ends(&timers, &hand);
        assert_eq!(books.add_up(&[]).run, 2);
    });
}

/// The same during a stop: the join in the worker is interrupted.
#[test]
fn a_worker_that_joins_its_own_scheduled_task_notices_a_stop() {
    pct(|| {
        let (builder, hand) = on_workers(1);
        let (timers, books) = (builder.build(), Books::new(1));
        let joiner = timers.submit({
            let (books, timers) = (books.clone(), timers.clone());
            move || {
                let (_, handle) = schedule(&books, &timers, 0, SECOND, || ());
                handle.map(|handle| handle.join())
            }
        });
        let clock = mover(&hand, 1);
        handed_back(&books, timers.shutdown_now());
        clock.join().unwrap();
        match joiner.unwrap().join() {
            Ok(None | Some(Ok(()) | Err(TaskError::Interrupted | TaskError::Cancelled(_)))) => {}
            Err(TaskError::Cancelled(_)) => {}
            other => panic!("{other:?}"),
        }
        ends(&timers, &hand);
    });
}

/// LIVENESS-2: after termination the handles have their outcomes, also if another executor runs the tasks.
#[test]
fn a_terminated_pool_has_delivered_the_outcomes_of_its_tasks() {
    pct(|| {
        let (builder, hand) = in_place();
        let timers = builder.build();
        let mut first = timers.schedule(SECOND, || 1).unwrap();
        let mut second = timers.schedule(2 * SECOND, || 2).unwrap();
        let clock = mover(&hand, 2);
        timers.close().unwrap();
        assert!(matches!(first.try_join(), Some(Ok(1))));
        assert!(matches!(second.try_join(), Some(Ok(2))));
        clock.join().unwrap();
    });
}
