//! What leaves before its time: nothing of it stays.

use super::scheduled::{HOUR, Make, NOW, SECOND, Timers, keeping};
use crate::kit::{DropCount, Gate, Latch, Stress};
use millpond::executor::Lifecycle;
use millpond::schedule::ScheduledPool;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Tests of what leaves a scheduled pool that is described by a [`Make`].
#[macro_export]
macro_rules! scheduled_leaving_suite {
    ($make:expr) => {
        $crate::bodies! { scheduled_leaving, ($make as $crate::suites::scheduled::Make);
            a_task_is_taken_out_once_and_not_when_it_runs
            what_is_cancelled_has_left_when_the_call_returns
            nothing_keeps_what_was_cancelled
            a_handle_that_is_let_go_takes_nothing_with_it_unless_it_says_so
            of_a_cancel_and_a_run_at_the_same_time_one_wins
        }
    };
}

/// Adapted: taking out is cancelling, by the handle. A task that runs cannot be taken out; cancelling it
/// finishes its handle, and its body goes on.
///
/// Holds: ScheduledExecutorSubclassTest.testRemove
pub fn a_task_is_taken_out_once_and_not_when_it_runs(make: &Make) {
    let timers = Timers::plain(make, 1);
    let (gate, started, ended) = (Gate::new(), Latch::new(1), Latch::new(1));
    let (held, begun, over) = (gate.clone(), started.clone(), ended.clone());
    let body = move || {
        begun.arrive();
        held.wait();
        over.arrive();
    };
    let runs = timers.schedule(NOW, body).unwrap();
    started.wait();
    let far: Vec<_> = (0..5)
        .map(|_| timers.schedule(HOUR, || ()).unwrap())
        .collect();
    let cancelled = || ScheduledPool::snapshot(&timers).cancelled;
    for (gone, task) in far.iter().enumerate() {
        assert_eq!(timers.pending(), 5 - gone);
        assert!(task.cancel(), "it waits, so it can be taken out");
        assert_eq!(timers.pending(), 4 - gone);
        assert!(!task.cancel(), "not a second time");
        assert_eq!(cancelled(), gone as u64 + 1);
    }
    assert!(runs.cancel(), "its handle is finished");
    assert_eq!(cancelled(), 5, "but nothing was taken out");
    assert_eq!(ended.missing(), 1);
    gate.open();
    ended.wait();
}

/// Lessons 25 and 33. Adapted: there is nothing to purge, neither repeatedly nor once.
///
/// Holds: ScheduledExecutorSubclassTest.testPurge
pub fn what_is_cancelled_has_left_when_the_call_returns(make: &Make) {
    let (timers, count) = (Timers::plain(make, 1), DropCount::new());
    let mut handles = Vec::new();
    for number in 1..=200 {
        let token = count.token();
        handles.push(timers.schedule(number * HOUR, move || drop(token)).unwrap());
    }
    let beat = keeping(count.token());
    let series = timers.schedule_at_fixed_rate(HOUR, HOUR, beat).unwrap();
    count.assert_alive(201);
    // From both ends and from the middle.
    for left in (0..200).rev() {
        let at = [0, left / 2, left][left % 3].min(left);
        let handle = handles.swap_remove(at);
        assert!(handle.cancel());
        count.assert_alive(left as i64 + 1);
        assert_eq!(timers.pending(), left + 1);
    }
    assert!(series.interrupt());
    count.assert_alive(0);
    assert_eq!((timers.pending(), timers.upcoming(1).len()), (0, 0));
    timers.shutdown();
    timers.await_end();
    assert_eq!(
        timers.manual.sleepers(),
        0,
        "nor does anybody wait for their time"
    );
}

/// Adapted: counted by drops, while all handles are still there, and no worker sits with any of them.
///
/// Holds: jtreg ScheduledThreadPoolExecutor.GCRetention
pub fn nothing_keeps_what_was_cancelled(make: &Make) {
    let (timers, count) = (Timers::plain(make, 4), DropCount::new());
    // Workers that have run something, and have nothing to do.
    for _ in 0..4 {
        timers.schedule(NOW, || ()).unwrap();
    }
    timers.await_rest();
    let handles: Vec<_> = (0..100)
        .map(|number| {
            let token = count.token();
            let delay = SECOND * (1 + number % 7);
            timers.schedule(delay, move || drop(token)).unwrap()
        })
        .collect();
    let series = timers.schedule_with_fixed_delay(SECOND, SECOND, keeping(count.token()));
    let series = series.unwrap();
    timers.pass(2);
    let ran = handles.iter().filter(|task| task.is_finished()).count();
    count.assert_alive(101 - ran as i64);
    for task in &handles {
        task.cancel();
    }
    series.cancel();
    count.assert_alive(0);
}

/// As everywhere.
pub fn a_handle_that_is_let_go_takes_nothing_with_it_unless_it_says_so(make: &Make) {
    let timers = Timers::plain(make, 1);
    let diary = timers.diary();
    let note = diary.run();
    drop(timers.schedule(SECOND, note).unwrap());
    drop(
        timers
            .schedule(SECOND, || panic!("it ran"))
            .unwrap()
            .abort_on_drop(),
    );
    drop(
        timers
            .schedule_at_fixed_rate(2 * SECOND, SECOND, diary.run())
            .unwrap(),
    );
    timers.pass(3);
    assert_eq!(diary.seconds(), [1, 2, 3]);
}

/// Each task runs, or its handle says that it was cancelled; each closure is dropped once.
pub fn of_a_cancel_and_a_run_at_the_same_time_one_wins(make: &Make) {
    let make = *make;
    Stress::new("cancel").one_in(20).run(|round| {
        let (timers, count) = (Timers::plain(&make, 2), DropCount::new());
        let ran = Arc::new(AtomicUsize::new(0));
        let handles: Vec<_> = (0..20)
            .map(|number| {
                let (ran, token) = (Arc::clone(&ran), count.token());
                let body = move || {
                    ran.fetch_add(1, Ordering::SeqCst);
                    drop(token);
                };
                timers.schedule(SECOND * (number % 4), body).unwrap()
            })
            .collect();
        let handles = Arc::new(handles);
        let own = Arc::clone(&handles);
        let canceller = round.actor("canceller", move |rng| {
            let victims = own.iter().filter(|_| rng.once_in(2));
            victims.filter(|task| task.cancel()).count()
        });
        for _ in 0..4 {
            round.rng.jitter();
            timers.manual.advance(SECOND);
        }
        let cancelled = canceller.finish();
        timers.await_rest();
        assert!(handles.iter().all(|task| task.is_finished()));
        let (ran, all) = (ran.load(Ordering::SeqCst), handles.len());
        assert!(
            ran <= all && ran + cancelled >= all,
            "{ran} ran, {cancelled} cancelled"
        );
        let said = handles.iter().filter(|task| task.is_cancelled()).count();
        assert_eq!(said, cancelled);
        count.assert_alive(0);
        assert_eq!(timers.pending(), 0);
    });
}
