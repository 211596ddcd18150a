//! What happens to waiting tasks when a scheduled pool is shut down: the two policies.

use super::scheduled::{Make, NOW, SECOND, Timers};
use crate::kit::{OpenAtEnd, until};
use millpond::executor::Lifecycle;
use millpond::schedule::{Scheduled, ScheduledPool};
use millpond::task::{CancelReason, TaskError};
use std::convert::Infallible;
use std::panic::panic_any;

/// Tests of the policies of a scheduled pool that is described by a [`Make`].
#[macro_export]
macro_rules! scheduled_policies_suite {
    ($make:expr) => {
        $crate::bodies! { scheduled_policies, ($make as $crate::suites::scheduled::Make);
            at_a_shutdown_tasks_still_run_and_series_end
            both_policies_can_be_the_other_way_round
            with_both_policies_off_every_handle_hears_of_it
            the_policies_can_be_changed_when_it_is_shut_down_already
            a_series_that_goes_on_after_the_shutdown_ends_when_it_fails
        }
    };
}

/// A pool with a task and a series of each kind that wait, and one task that is due and has no worker.
struct Waiting {
    gate: OpenAtEnd,
    timers: Timers,
    due: Scheduled<u32>,
    task: Scheduled<u32>,
    series: [Scheduled<Infallible>; 2],
}

impl Waiting {
    fn new(make: &Make) -> Self {
        let timers = Timers::plain(make, 1);
        let gate = timers.hold(1);
        let due = timers.schedule(NOW, || 1).unwrap();
        let task = timers.schedule(2 * SECOND, || 2).unwrap();
        let series = [
            timers
                .schedule_at_fixed_rate(SECOND, SECOND, || ())
                .unwrap(),
            timers
                .schedule_with_fixed_delay(SECOND, SECOND, || ())
                .unwrap(),
        ];
        Waiting {
            gate,
            timers,
            due,
            task,
            series,
        }
    }
}

/// The default policies.
///
/// Holds: ScheduledExecutorSubclassTest.testShutdown_cancellation
pub fn at_a_shutdown_tasks_still_run_and_series_end(make: &Make) {
    let Waiting {
        timers,
        gate,
        due,
        task,
        series,
    } = Waiting::new(make);
    assert!(timers.runs_delayed_after_shutdown() && !timers.runs_series_after_shutdown());
    timers.shutdown();
    assert!(series.iter().all(|series| series.is_cancelled()));
    assert_eq!((timers.pending(), task.is_finished()), (1, false));
    gate.open();
    timers.pass(1);
    assert!(!timers.is_terminated());
    timers.manual.advance(SECOND);
    assert_eq!((due.join().unwrap(), task.join().unwrap()), (1, 2));
    timers.await_end();
    assert_eq!(timers.pending(), 0);
}

/// Tasks are cancelled and series go on.
///
/// Holds: ScheduledExecutorSubclassTest.testShutdown_cancellation
pub fn both_policies_can_be_the_other_way_round(make: &Make) {
    let Waiting {
        timers,
        gate,
        due,
        task,
        series,
    } = Waiting::new(make);
    timers.set_run_delayed_after_shutdown(false);
    timers.set_run_series_after_shutdown(true);
    assert!(!timers.runs_delayed_after_shutdown() && timers.runs_series_after_shutdown());
    timers.shutdown();
    let ended = task.join().unwrap_err();
    assert!(matches!(
        ended,
        TaskError::Cancelled(CancelReason::ShutDown)
    ));
    assert_eq!(timers.pending(), 2);
    gate.open();
    assert_eq!(
        due.join().unwrap(),
        1,
        "what was due is with the pool below"
    );
    timers.pass(3);
    assert!(series.iter().all(|series| series.runs() == 3));
    assert!(!timers.is_terminated());
    assert!(series.iter().all(|series| series.cancel()));
    timers.await_end();
}

/// Lesson 29.
///
/// Holds: ScheduledExecutorSubclassTest.testShutdown_cancellation
pub fn with_both_policies_off_every_handle_hears_of_it(make: &Make) {
    let Waiting {
        timers,
        gate,
        due,
        task,
        series,
    } = Waiting::new(make);
    timers.set_run_delayed_after_shutdown(false);
    timers.shutdown();
    assert!(task.is_cancelled() && series.iter().all(|series| series.is_cancelled()));
    assert_eq!(
        (timers.pending(), ScheduledPool::snapshot(&timers).series),
        (0, 0)
    );
    gate.open();
    assert_eq!(due.join().unwrap(), 1);
    timers.await_end();
}

/// Both of them, one after the other.
pub fn the_policies_can_be_changed_when_it_is_shut_down_already(make: &Make) {
    let Waiting {
        timers,
        gate,
        task,
        series,
        ..
    } = Waiting::new(make);
    gate.open();
    timers.set_run_series_after_shutdown(true);
    timers.shutdown();
    timers.pass(1);
    assert!(series.iter().all(|series| series.runs() == 1));
    timers.set_run_series_after_shutdown(false);
    assert!(series.iter().all(|series| series.is_cancelled()));
    assert!(!task.is_finished() && !timers.is_terminated());
    timers.set_run_delayed_after_shutdown(false);
    assert!(task.is_cancelled());
    timers.await_end();
}

/// Holds: ScheduledExecutorSubclassTest.testShutdown_cancellation
pub fn a_series_that_goes_on_after_the_shutdown_ends_when_it_fails(make: &Make) {
    let timers = Timers::new(make, 1, |timers| {
        timers.run_series_after_shutdown(true).on_event(|_| ())
    });
    let mut runs = 0;
    let run = move || {
        runs += 1;
        if runs == 3 {
            panic_any("no grain");
        }
    };
    let series = timers.schedule_at_fixed_rate(SECOND, SECOND, run).unwrap();
    timers.shutdown();
    timers.pass(2);
    assert!(!series.is_finished() && !timers.is_terminated());
    timers.pass(1);
    // Not by the handle alone: a rejected run is skipped, and the series never fails.
    until("it has failed", || series.is_finished());
    assert!(series.join().unwrap_err().is_panicked());
    timers.await_end();
    assert_eq!(timers.pending(), 0);
}
