//! How a scheduled pool ends.

use super::scheduled::{HOUR, Make, NOW, SECOND, Timers, keeping};
use crate::kit::{DropCount, Gate, Latch, delays};
use millpond::executor::{ExecutorExt, Lifecycle};
use millpond::interrupt;
use millpond::manage::RunState;
use millpond::pool::ThreadPool;
use millpond::schedule::{Every, ScheduledPool};
use millpond::task::{CancelReason, TaskError};

/// Tests of the end of a scheduled pool that is described by a [`Make`].
#[macro_export]
macro_rules! scheduled_ends_suite {
    ($make:expr) => {
        $crate::bodies! { scheduled_ends, ($make as $crate::suites::scheduled::Make);
            it_says_where_it_is_in_its_life
            nothing_is_taken_after_a_shutdown_in_whatever_form
            a_stop_hands_back_what_has_not_begun_and_interrupts_what_has
            a_stop_hands_back_what_waits_for_its_time_and_leaves_its_handles_alone
            what_a_stop_hands_back_of_a_series_is_one_last_run
            what_runs_at_the_shutdown_is_left_alone
            a_pool_that_is_forgotten_still_runs_its_tasks
        }
    };
}

/// Holds: ScheduledExecutorTest.testIsShutdown, ScheduledExecutorSubclassTest.testIsShutdown
/// Holds: ScheduledExecutorTest.testIsTerminated, ScheduledExecutorSubclassTest.testIsTerminated
/// Holds: ScheduledExecutorTest.testIsTerminating, ScheduledExecutorSubclassTest.testIsTerminating
pub fn it_says_where_it_is_in_its_life(make: &Make) {
    let timers = Timers::plain(make, 1);
    let said = || {
        (
            timers.is_shutdown(),
            timers.is_terminating(),
            timers.is_terminated(),
            ScheduledPool::snapshot(&timers).state,
        )
    };
    assert_eq!(said(), (false, false, false, RunState::Running));
    let far = timers.schedule(2 * SECOND, || ()).unwrap();
    timers.shutdown();
    assert_eq!(said(), (true, true, false, RunState::ShutDown));
    timers.pass(1);
    assert_eq!(said(), (true, true, false, RunState::ShutDown));
    assert_eq!(timers.await_termination_timeout(NOW), Ok(false));
    timers.manual.advance(SECOND);
    far.join().unwrap();
    timers.await_termination().unwrap();
    assert_eq!(said(), (true, false, true, RunState::Terminated));
    timers.shutdown();
    assert!(timers.shutdown_now().is_empty());
    assert_eq!(said(), (true, false, true, RunState::Terminated));
}

/// Every form there is, and each gives its closure back.
fn assert_rejects(timers: &ScheduledPool<ThreadPool>) {
    for delay in [NOW, SECOND] {
        let rejected = timers.schedule(delay, || 7).unwrap_err();
        assert!(rejected.reason.is_shut_down());
        assert_eq!((rejected.task)(), 7, "the closure comes back whole");
        let at = timers.schedule_at(std::time::Instant::now(), || 7);
        assert!(at.unwrap_err().reason.is_shut_down());
        let rate = timers.schedule_at_fixed_rate(delay, SECOND, || ());
        assert!(rate.unwrap_err().reason.is_shut_down());
        let pause = timers.schedule_with_fixed_delay(delay, SECOND, || ());
        assert!(pause.unwrap_err().reason.is_shut_down());
    }
    let shared = timers.series(Every::rate(SECOND)).start_shared(|| ());
    assert!(shared.unwrap_err().reason.is_shut_down());
    assert!(timers.submit(|| 7).unwrap_err().reason.is_shut_down());
    assert!(timers.execute(|| ()).unwrap_err().reason.is_shut_down());
}

/// Lesson 30. Adapted: the policy of the pool below is not asked; the caller gets the closure back.
///
/// Holds: ScheduledExecutorTest.testSubmittedTasksRejectedWhenShutdown
pub fn nothing_is_taken_after_a_shutdown_in_whatever_form(make: &Make) {
    for (stops, runs_delayed) in [(false, true), (false, false), (true, true)] {
        let (timers, count) = (Timers::plain(make, 1), DropCount::new());
        timers.set_run_delayed_after_shutdown(runs_delayed);
        let gate = timers.hold(1);
        let (one, two) = (count.token(), count.token());
        let due = timers.schedule(NOW, move || drop(one)).unwrap();
        let waits = timers.schedule(SECOND, move || drop(two)).unwrap();
        if stops {
            drop(timers.shutdown_now())
        } else {
            timers.shutdown()
        }
        assert_rejects(&timers);
        assert!(!timers.is_terminated(), "its worker is busy");
        gate.open();
        timers.manual.advance(SECOND);
        timers.await_end();
        assert_rejects(&timers);
        // What was accepted has run, or its handle says why not.
        assert_eq!(due.is_cancelled(), stops);
        assert_eq!(waits.is_cancelled(), stops || !runs_delayed);
        assert!(due.is_finished() && waits.is_finished());
        count.assert_alive(0);
    }
}

/// Adapted: tasks come back, not futures. Dropping one cancels it.
///
/// Holds: ScheduledExecutorTest.testShutdownNow, ScheduledExecutorSubclassTest.testShutdownNow
pub fn a_stop_hands_back_what_has_not_begun_and_interrupts_what_has(make: &Make) {
    let timers = Timers::plain(make, 2);
    let started = Latch::new(2);
    let running: Vec<_> = (0..2)
        .map(|_| {
            let begun = started.clone();
            let body = move || {
                begun.arrive();
                interrupt::sleep(delays::longer() * 1000).is_err()
            };
            timers.schedule(NOW, body).unwrap()
        })
        .collect();
    started.wait();
    // Five that are due and find no worker.
    let queued: Vec<_> = (0..5)
        .map(|number| timers.schedule(NOW, move || number).unwrap())
        .collect();
    let mut unstarted = timers.shutdown_now();
    assert_eq!(unstarted.len(), 5);
    let below = timers.below().snapshot();
    assert_eq!((timers.pending(), below.queued), (0, 0));
    for handle in running {
        assert!(handle.join().unwrap(), "it was asked to stop");
    }
    assert!(queued.iter().all(|handle| !handle.is_finished()));
    unstarted.pop().unwrap().run();
    assert_eq!(
        queued.iter().filter(|handle| handle.is_finished()).count(),
        1
    );
    drop(unstarted);
    timers.await_end();
    assert_eq!(
        timers.below().snapshot().completed,
        2,
        "only what it started"
    );
    let cancelled = queued.iter().filter(|handle| handle.is_cancelled());
    assert_eq!(cancelled.count(), 4);
}

/// Holds: ScheduledExecutorTest.testShutdownNow_delayedTasks
pub fn a_stop_hands_back_what_waits_for_its_time_and_leaves_its_handles_alone(make: &Make) {
    let timers = Timers::plain(make, 1);
    let (mut tasks, mut rates, mut pauses) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..3 {
        tasks.push(timers.schedule(HOUR, || 7).unwrap());
        rates.push(timers.schedule_at_fixed_rate(HOUR, HOUR, || ()).unwrap());
        pauses.push(timers.schedule_with_fixed_delay(HOUR, HOUR, || ()).unwrap());
    }
    assert_eq!(timers.pending(), 9);
    let unstarted = timers.shutdown_now();
    assert_eq!((unstarted.len(), timers.pending()), (9, 0));
    assert!(timers.is_shutdown());
    assert!(tasks.iter().all(|task| !task.is_finished()));
    let series = || rates.iter().chain(&pauses);
    assert!(series().all(|series| !series.is_finished()));
    timers.await_end();
    assert!(
        tasks.iter().all(|task| !task.is_finished()),
        "also after the end"
    );
    let mut unstarted = unstarted.into_iter();
    unstarted.next().unwrap().run();
    drop(unstarted);
    assert!(tasks.iter().all(|task| task.is_finished()));
    let runs: u64 = tasks.iter().map(|task| task.runs()).sum::<u64>()
        + series().map(|series| series.runs()).sum::<u64>();
    assert_eq!(runs, 1, "what was run by hand has run");
    let cancelled = tasks.iter().filter(|task| task.is_cancelled()).count()
        + series().filter(|series| series.is_cancelled()).count();
    assert!(
        cancelled >= 8,
        "what was dropped is cancelled, and so is a series"
    );
}

/// Wherever it was: waiting for its time, or for a worker.
pub fn what_a_stop_hands_back_of_a_series_is_one_last_run(make: &Make) {
    for is_due in [false, true] {
        let timers = Timers::plain(make, 1);
        let diary = timers.diary();
        let gate = timers.hold(1);
        let series = timers.schedule_at_fixed_rate(SECOND, SECOND, diary.run());
        let series = series.unwrap();
        if is_due {
            timers.manual.advance(SECOND);
            assert_eq!(timers.below().snapshot().queued, 1);
        }
        let mut unstarted = timers.shutdown_now();
        gate.open();
        assert_eq!((unstarted.len(), series.is_finished()), (1, false));
        unstarted.pop().unwrap().run();
        assert_eq!(diary.seconds(), [u64::from(is_due)], "due: {is_due}");
        assert_eq!(series.runs(), 1);
        let ended = series.join().unwrap_err();
        assert!(matches!(
            ended,
            TaskError::Cancelled(CancelReason::ShutDown)
        ));
    }
}

/// Holds: ScheduledExecutorSubclassTest.testShutdown_cancellation
pub fn what_runs_at_the_shutdown_is_left_alone(make: &Make) {
    let timers = Timers::plain(make, 2);
    let (gate, started) = (Gate::new(), Latch::new(2));
    let _open = gate.open_at_end();
    let held = || {
        let (gate, begun) = (gate.clone(), started.clone());
        move || {
            begun.arrive();
            gate.wait();
            assert!(!interrupt::is_interrupted());
        }
    };
    let task = timers.schedule(SECOND, held()).unwrap();
    let series = timers
        .schedule_at_fixed_rate(SECOND, SECOND, held())
        .unwrap();
    timers.manual.advance(SECOND);
    started.wait();
    timers.shutdown();
    assert!(!task.is_finished() && !series.is_finished() && !timers.is_terminated());
    gate.open();
    task.join().unwrap();
    timers.await_end();
    assert_eq!((series.runs(), series.failures()), (1, 0));
    assert!(series.join().unwrap_err().is_cancelled());
}

/// Dropping the last handle of the pool is an orderly shutdown; the handles of tasks are none.
pub fn a_pool_that_is_forgotten_still_runs_its_tasks(make: &Make) {
    let manual = millpond::time::ManualClock::new();
    let timers = make(super::pond::fresh_name(), 1, manual.clock()).build();
    let count = DropCount::new();
    let task = timers.schedule(SECOND, || 7).unwrap();
    let series = timers.schedule_at_fixed_rate(SECOND, SECOND, keeping(count.token()));
    let series = series.unwrap();
    drop(timers);
    assert!(series.is_cancelled());
    count.assert_alive(0);
    manual.advance(SECOND);
    assert_eq!(task.join().unwrap(), 7);
}
