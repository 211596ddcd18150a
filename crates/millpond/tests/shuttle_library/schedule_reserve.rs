//! PCT schedules of the thread in reserve (DEFER-4): a scheduled pool holds it beside the timer's thread, and no other
//! thread can be started.
//!
//! The clock has a timer with a thread of its own, which must not call the user's factory, nor drop or reject anything.
//! It leaves that to a deferred thread, which is refused, and so to the thread in reserve. There is no system clock in a
//! model, so no alarm tries again to start a deferred thread: what the reserve does not do is never done, and shuttle
//! reports a deadlock.

#![allow(
    clippy::disallowed_types,
    reason = "what the test counts is std's, so that the checker does not branch on it"
)]

use crate::alarm::Moody;
use crate::schedule_kit::{SECOND, handed_back, hear, pct, schedule};
use crate::shuttle_kit::{Books, join_all};
use millpond::executor::{DirectExecutor, Lifecycle};
use millpond::schedule::ScheduledPool;
use millpond::task::CancelReason;
use millpond::time::ManualClock;
use millpond_raw::sync::thread::{self, spawn};
use std::sync::Arc;
use std::time::Duration;

/// Two tasks become due while another thread ends the pool, by a timer with a thread of its own. All tasks need the
/// dispatcher's thread, and deferred threads are refused. Returns how many have run.
fn while_tasks_become_due(
    dispatchers: Moody,
    reasons: &[CancelReason],
    end: fn(&Books, &ScheduledPool<DirectExecutor>),
) -> usize {
    thread::refuse("millpond-deferred");
    let (clock, timer, alive) = (ManualClock::new(), Moody::default(), Arc::new(()));
    let listener = Arc::clone(&alive);
    let timers = ScheduledPool::on(DirectExecutor::new())
        .clock(clock.clock().with_timer(timer.clone()))
        .dispatcher_threads(dispatchers.clone())
        .on_event(move |_| drop(Arc::clone(&listener)))
        .build();
    // Another pool holds the reserve as well. Without a holder it goes when the pool has terminated, and a job that the
    // timer's thread defers after that, such as dropping its last reference, waits for the alarm that a model lacks.
    let holder = ScheduledPool::on(DirectExecutor::new())
        .clock(clock.clock().with_timer(timer.clone()))
        .build();
    let never = holder.schedule(Duration::MAX, || ()).unwrap();
    let books = Books::new(2);
    let held = [0, 1].map(|number| {
        let delay = SECOND * (number as u32 + 1);
        schedule(&books, &timers, number, delay, || ())
    });
    let ending = {
        let (books, timers) = (books.clone(), timers.clone());
        spawn(move || end(&books, &timers))
    };
    // Time goes on until all is over, so that attempts to start the dispatcher are repeated, or given up.
    let mover = {
        let (clock, timers) = (clock.clone(), timers.clone());
        spawn(move || {
            while !timers.is_terminated() {
                clock.advance(SECOND / 4);
                thread::yield_now();
            }
        })
    };
    hear(&books, held);
    join_all(vec![ending, mover]);
    timers.await_termination().unwrap();
    let now = timers.snapshot();
    assert_eq!((now.pending, now.submitted), (0, 2), "{now:?}");
    drop(timers);
    // Threads of the model may hold the pool a little longer, and must not outlive the model.
    while Arc::strong_count(&alive) > 1 {
        clock.advance(SECOND);
        thread::yield_now();
    }
    assert!(never.cancel());
    drop(holder);
    timer.end(&clock);
    dispatchers.end(&clock);
    books.add_up(reasons).run
}

#[test]
fn what_is_due_while_no_thread_can_be_started_is_rejected_with_a_reason_and_the_pool_ends() {
    pct(|| {
        let dispatchers = Moody::refusing(usize::MAX);
        let reasons = [CancelReason::Rejected];
        let end = |_: &Books, timers: &ScheduledPool<_>| timers.shutdown();
        let ran = while_tasks_become_due(dispatchers, &reasons, end);
        assert_eq!(ran, 0, "there was no thread to run them");
    });
}

/// Three attempts fail. That may take longer than a task waits for a dispatcher, for time goes on.
#[test]
fn what_is_due_while_threads_are_refused_for_a_while_runs_or_has_a_reason_though_the_pool_is_shut_down()
 {
    pct(|| {
        let reasons = [CancelReason::Rejected];
        let end = |_: &Books, timers: &ScheduledPool<_>| timers.shutdown();
        while_tasks_become_due(Moody::refusing(3), &reasons, end);
    });
}

#[test]
fn what_is_due_while_no_thread_can_be_started_is_handed_back_by_a_stop_or_has_a_reason() {
    pct(|| {
        let dispatchers = Moody::refusing(usize::MAX);
        let reasons = [CancelReason::Rejected, CancelReason::ShutDown];
        let end = |books: &Books, timers: &ScheduledPool<_>| {
            handed_back(books, timers.shutdown_now());
        };
        let ran = while_tasks_become_due(dispatchers, &reasons, end);
        assert_eq!(ran, 0, "there was no thread to run them");
    });
}
