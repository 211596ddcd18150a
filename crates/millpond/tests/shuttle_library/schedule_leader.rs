//! PCT schedules of leaders (LEADER-1 and TIMERLEADER-1): idle workers that wait for due times, and stop
//! leading for a task, for good, or for a moment, while other threads schedule.
//!
//! A forgotten task is one that no worker runs when its time has come: a deadlock of the thread that joins it.
//!
//! Most scenarios of the other files have leaders, too: every second walk ([`on_workers`]). Each scenario here
//! runs under 150 schedules for each depth.
#![allow(
    clippy::disallowed_types,
    reason = "what the test counts is std's, so that the checker does not branch on it"
)]

use crate::schedule_kit::{SECOND, ends, handed_back, hear, mover, on_leaders, pct, schedule};
use crate::shuttle_kit::{Books, Brought, Gate, KEEP_ALIVE, pool, until_interrupted};
use millpond::executor::{ExecutorExt, Lifecycle};
use millpond::pool::{Queue, ThreadPool};
use millpond::schedule::ScheduledPool;
use millpond::task::CancelReason;
use millpond_raw::sync::thread::spawn;
use std::time::Duration;

fn started(timers: &ScheduledPool<ThreadPool>) {
    timers.executor().prestart_all_core().unwrap();
}

/// The first task waits for the second: another worker must find that one.
fn due_while_the_leader_is_busy(second: Duration) {
    let (builder, hand) = on_leaders(2);
    let (timers, books, gate) = (builder.build(), Books::new(2), Gate::new());
    started(&timers);
    let first = {
        let gate = gate.clone();
        schedule(&books, &timers, 0, SECOND, move || gate.wait())
    };
    let second = schedule(&books, &timers, 1, second, move || gate.open());
    let clock = mover(&hand, 2);
    hear(&books, [first, second]);
    clock.join().unwrap();
    timers.shutdown();
    ends(&timers, &hand);
    assert_eq!(books.add_up(&[]).run, 2);
}

#[test]
fn a_task_that_becomes_due_while_the_leader_is_busy_runs_beside_it() {
    pct(|| due_while_the_leader_is_busy(2 * SECOND));
}

#[test]
fn tasks_that_are_due_at_the_same_time_run_beside_that_of_the_leader() {
    pct(|| due_while_the_leader_is_busy(SECOND));
}

#[test]
fn a_sleeping_leader_notices_a_task_that_is_due_earlier() {
    pct(|| {
        let (builder, hand) = on_leaders(1);
        let (timers, books) = (builder.build(), Books::new(3));
        started(&timers);
        let late = schedule(&books, &timers, 0, 9 * SECOND, || ());
        let other = {
            let (books, timers) = (books.clone(), timers.clone());
            spawn(move || schedule(&books, &timers, 1, SECOND, || ()))
        };
        let now = schedule(&books, &timers, 2, Duration::ZERO, || ());
        hear(&books, [now]);
        let soon = other.join().unwrap();
        hand.advance(SECOND);
        hear(&books, [soon]);
        hand.advance(8 * SECOND);
        hear(&books, [late]);
        timers.shutdown();
        ends(&timers, &hand);
        assert_eq!(books.add_up(&[]).run, 3);
    });
}

#[test]
fn a_leader_runs_submitted_tasks_and_forgets_no_due_one() {
    pct(|| {
        let (builder, hand) = on_leaders(1);
        let (timers, books) = (builder.build(), Books::new(2));
        started(&timers);
        let other = {
            let workers = timers.executor().clone();
            spawn(move || {
                let tasks: Vec<_> = (0..2).map(|_| workers.submit(|| ()).unwrap()).collect();
                tasks.into_iter().for_each(|task| task.join().unwrap());
            })
        };
        let held = [(0, SECOND), (1, 2 * SECOND)]
            .map(|(number, after)| schedule(&books, &timers, number, after, || ()));
        let clock = mover(&hand, 2);
        hear(&books, held);
        clock.join().unwrap();
        other.join().unwrap();
        timers.shutdown();
        ends(&timers, &hand);
        assert_eq!(books.add_up(&[]).run, 2);
    });
}

/// The alarm fires for due tasks when no worker is left.
#[test]
fn a_leader_exits_when_idle_too_long_and_due_tasks_run_all_the_same() {
    pct(|| {
        let (workers, hand) = pool(1, 2, Queue::bounded(8));
        let workers = workers.core_may_time_out(true).build().unwrap();
        let timers = ScheduledPool::owning(workers).worker_timers(true).build();
        let books = Books::new(2);
        started(&timers);
        let held = [(0, KEEP_ALIVE), (1, 3 * KEEP_ALIVE)]
            .map(|(number, after)| schedule(&books, &timers, number, after, || ()));
        let clock = {
            let hand = hand.clone();
            spawn(move || (0..3).for_each(|_| hand.advance(KEEP_ALIVE)))
        };
        hear(&books, held);
        clock.join().unwrap();
        timers.shutdown();
        ends(&timers, &hand);
        assert_eq!(books.add_up(&[]).run, 2);
    });
}

#[test]
fn a_stop_reaches_the_task_that_a_leader_is_about_to_run() {
    pct(|| {
        let (builder, hand) = on_leaders(2);
        let (timers, books) = (builder.build(), Books::new(3));
        started(&timers);
        let tasks = [(0, SECOND), (1, SECOND), (2, 2 * SECOND)];
        let held = tasks
            .map(|(number, after)| schedule(&books, &timers, number, after, until_interrupted));
        let clock = mover(&hand, 1);
        handed_back(&books, timers.shutdown_now());
        clock.join().unwrap();
        hear(&books, held);
        ends(&timers, &hand);
        // A task that was on its way to the executor is returned by no call.
        books.add_up(&[CancelReason::ShutDown, CancelReason::Rejected]);
    });
}

/// SCHEDULE-1 with a leader at its post.
#[test]
fn a_task_scheduled_during_a_shutdown_is_run_by_the_leader_or_rejected() {
    pct(|| {
        let (builder, hand) = on_leaders(1);
        let (timers, books) = (builder.build(), Books::new(2));
        started(&timers);
        let other = {
            let (books, timers) = (books.clone(), timers.clone());
            spawn(move || {
                [(0, SECOND), (1, Duration::ZERO)]
                    .map(|(number, after)| schedule(&books, &timers, number, after, || ()))
            })
        };
        timers.shutdown();
        let held = other.join().unwrap();
        hand.advance(SECOND);
        hear(&books, held);
        ends(&timers, &hand);
        let sums = books.add_up(&[]);
        assert_eq!(sums.run, sums.taken);
        let rejected = |number: usize| matches!(books.page(number).brought, Brought::Refused(_));
        assert!(!rejected(0) || rejected(1), "the second came later");
    });
}
