//! PCT schedules of series: their runs against cancels, interrupts, rejections and the end of the pool.
//!
//! The closure of a model notes when it is called and when it is dropped ([`CallLog`]): by one thread at a
//! time, unless it is shared, never when it is gone, and it goes once.
#![allow(
    clippy::disallowed_types,
    reason = "what the test counts is std's, so that the checker does not branch on it"
)]

use crate::schedule_kit::{
    CallLog, SECOND, ends, in_place, move_until, mover, on_called_workers, on_workers, pct,
};
use crate::shuttle_kit::{Gate, join_all, pool, until_interrupted};
use millpond::executor::{ExecutorExt, Lifecycle};
use millpond::pool::{Queue, RejectionPolicy};
use millpond::schedule::{Backoff, Every, OnFailure, Overlap, ScheduledPool};
use millpond::task::{CancelReason, TaskError};
use millpond_raw::sync::thread::spawn;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

fn cancelled<T: std::fmt::Debug>(said: Result<T, TaskError>, reasons: &[CancelReason]) {
    match said {
        Err(TaskError::Cancelled(reason)) if reasons.contains(&reason) => {}
        other => panic!("{other:?}"),
    }
}

/// SERIES-1, SERIES-3: a cancel comes before, inside and after the runs.
fn cancel_against_runs(every: Every, overlap: Overlap) {
    let (builder, hand) = in_place();
    let timers = builder.build();
    let (log, recorder) = CallLog::new();
    let series = timers.series(every).overlap(overlap);
    let series = series.start(move || recorder.call(|| ())).unwrap();
    let clock = mover(&hand, 3);
    let canceller = spawn({
        let log = Arc::clone(&log);
        move || {
            assert!(series.cancel());
            // A run that had begun may still reach its first line.
            (series, log.calls() + 1)
        }
    });
    let (series, most) = canceller.join().unwrap();
    clock.join().unwrap();
    hand.advance(2 * SECOND);
    assert!(log.calls() <= most, "a run begins after the cancel");
    cancelled(series.join(), &[CancelReason::Requested]);
    log.assert_closed();
    timers.shutdown();
    ends(&timers, &hand);
}

#[test]
fn a_series_at_a_rate_that_is_cancelled_runs_no_more_and_drops_its_closure() {
    pct(|| cancel_against_runs(Every::rate(SECOND), Overlap::Queue));
}

#[test]
fn a_series_with_a_delay_that_is_cancelled_runs_no_more_and_drops_its_closure() {
    pct(|| cancel_against_runs(Every::delay(SECOND), Overlap::Queue));
}

#[test]
fn a_series_that_plans_ahead_and_is_cancelled_runs_no_more() {
    pct(|| cancel_against_runs(Every::rate(SECOND), Overlap::Skip));
}

/// On a worker, a run settles while the cancel goes on.
#[test]
fn a_series_that_is_cancelled_while_a_worker_runs_it_ends_once() {
    pct(|| {
        let (builder, hand) = on_workers(1);
        let timers = builder.build();
        let (log, recorder) = CallLog::new();
        let body = move || recorder.call(|| ());
        let series = timers.schedule_at_fixed_rate(Duration::ZERO, SECOND, body);
        let series = series.unwrap();
        let clock = mover(&hand, 1);
        series.cancel();
        clock.join().unwrap();
        cancelled(series.join(), &[CancelReason::Requested]);
        timers.shutdown();
        ends(&timers, &hand);
        log.assert_closed();
    });
}

/// SERIES-2: a run settles while the pool is shut down; the series ends all the same, and then the pool.
fn shutdown_against_runs(overlap: Overlap) {
    let (builder, hand) = on_workers(1);
    let timers = builder.build();
    let (log, recorder) = CallLog::new();
    let series = timers.series(Every::rate(SECOND)).overlap(overlap);
    let series = series.first_after(Duration::ZERO);
    let series = series.start(move || recorder.call(|| ())).unwrap();
    let clock = mover(&hand, 2);
    timers.shutdown();
    cancelled(series.join(), &[CancelReason::ShutDown]);
    clock.join().unwrap();
    ends(&timers, &hand);
    log.assert_closed();
}

#[test]
fn a_shutdown_ends_a_series_wherever_its_run_is() {
    pct(|| shutdown_against_runs(Overlap::Queue));
}

#[test]
fn a_shutdown_ends_a_series_that_plans_ahead_wherever_its_run_is() {
    pct(|| shutdown_against_runs(Overlap::Skip));
}

/// The only worker is held, so the run is in its queue, or on its way there, or not yet due.
#[test]
fn a_run_that_has_not_begun_when_the_pool_is_shut_down_does_not_take_place() {
    pct(|| {
        let (builder, hand) = on_workers(1);
        let (timers, gate) = (builder.build(), Gate::new());
        let held = gate.clone();
        timers.execute(move || held.wait()).unwrap();
        let (log, recorder) = CallLog::new();
        let body = move || recorder.call(|| ());
        let series = timers.schedule_at_fixed_rate(SECOND, SECOND, body).unwrap();
        let clock = mover(&hand, 2);
        timers.shutdown();
        gate.open();
        clock.join().unwrap();
        cancelled(series.join(), &[CancelReason::ShutDown]);
        ends(&timers, &hand);
        assert_eq!(log.calls(), 0);
        log.assert_closed();
    });
}

#[test]
fn a_series_that_may_go_on_after_a_shutdown_comes_to_its_own_end() {
    pct(|| {
        let (builder, hand) = on_workers(1);
        let timers = builder.run_series_after_shutdown(true).build();
        let (log, recorder) = CallLog::new();
        let twice = move || {
            recorder.call(|| ());
            match recorder.calls() {
                2 => ControlFlow::Break("enough"),
                _ => ControlFlow::Continue(()),
            }
        };
        let series = timers.schedule_with_fixed_delay(Duration::ZERO, SECOND, twice);
        let series = series.unwrap();
        let shutter = spawn({
            let timers = timers.clone();
            move || timers.shutdown()
        });
        move_until(&hand, || series.is_finished());
        assert_eq!(series.join().unwrap(), "enough");
        shutter.join().unwrap();
        ends(&timers, &hand);
        assert_eq!(log.calls(), 2);
        log.assert_closed();
    });
}

/// Running what a stop hands back is one last run; dropping it cancels the series.
fn stop_against_runs(runs_the_last: bool) {
    let (builder, hand) = on_workers(1);
    let timers = builder.on_event(|_| ()).build();
    let (log, recorder) = CallLog::new();
    let body = move || recorder.call(|| ());
    let series = timers.schedule_at_fixed_rate(Duration::ZERO, SECOND, body);
    let series = series.unwrap();
    let clock = mover(&hand, 2);
    let back = timers.shutdown_now();
    clock.join().unwrap();
    assert!(back.len() <= 1, "one series, one last run");
    for task in back {
        if runs_the_last {
            drop(task.run())
        } else {
            drop(task)
        }
    }
    let reasons = [CancelReason::ShutDown, CancelReason::Rejected];
    cancelled(series.join(), &reasons);
    ends(&timers, &hand);
    log.assert_closed();
}

#[test]
fn a_stop_ends_a_series_whose_last_run_is_dropped() {
    pct(|| stop_against_runs(false));
}

#[test]
fn a_stop_ends_a_series_after_its_last_run() {
    pct(|| stop_against_runs(true));
}

/// The run blocks until it is interrupted; without an interrupt it blocks for ever.
fn interrupt_against_run(cancels_first: bool) {
    let (builder, hand) = on_workers(1);
    let timers = builder.build();
    let (log, recorder) = CallLog::new();
    let body = move || recorder.call(until_interrupted);
    let series = timers.schedule_with_fixed_delay(Duration::ZERO, SECOND, body);
    let series = series.unwrap();
    let clock = mover(&hand, 1);
    if cancels_first {
        assert!(series.cancel());
    }
    assert_eq!(series.interrupt(), !cancels_first);
    clock.join().unwrap();
    cancelled(series.join(), &[CancelReason::Requested]);
    timers.shutdown();
    ends(&timers, &hand);
    assert!(log.calls() <= 1);
    log.assert_closed();
}

#[test]
fn an_interrupt_stops_a_run_that_blocks_and_the_series() {
    pct(|| interrupt_against_run(false));
}

#[test]
fn an_interrupt_stops_the_run_of_a_series_that_was_cancelled_before() {
    pct(|| interrupt_against_run(true));
}

/// Every due time is a run or is skipped, and none overlaps.
#[test]
fn a_series_that_skips_has_one_run_at_a_time_and_counts_the_others() {
    pct(|| {
        let (builder, hand) = on_called_workers(2);
        let timers = builder.build();
        let ((log, recorder), gate) = (CallLog::new(), Gate::new());
        let body = {
            let gate = gate.clone();
            move || recorder.call(|| gate.wait())
        };
        let series = timers.series(Every::rate(SECOND)).overlap(Overlap::Skip);
        let series = series.start(body).unwrap();
        let opener = spawn(move || gate.open());
        for _ in 0..3 {
            hand.advance(SECOND);
        }
        opener.join().unwrap();
        series.cancel();
        assert_eq!(series.rejected(), 0);
        let skipped = series.skipped() as usize;
        cancelled(series.join(), &[CancelReason::Requested]);
        timers.shutdown();
        ends(&timers, &hand);
        // A run that had not begun when the cancel came is neither.
        let sum = log.calls() + skipped;
        assert!((2..=3).contains(&sum), "{sum}");
        assert_eq!(timers.snapshot().skipped as usize, skipped);
        log.assert_closed();
    });
}

/// The first run waits for the second: they overlap, or neither ends.
#[test]
fn runs_that_may_overlap_run_beside_each_other() {
    pct(|| {
        let (builder, hand) = on_workers(2);
        let timers = builder.build();
        let (calls, gate) = (Arc::new(AtomicUsize::new(0)), Gate::new());
        let body = {
            let (calls, gate) = (Arc::clone(&calls), gate.clone());
            move || match calls.fetch_add(1, Ordering::SeqCst) {
                0 => gate.wait(),
                _ => gate.open(),
            }
        };
        let series = timers
            .series(Every::rate(SECOND))
            .overlap(Overlap::Concurrent);
        let series = series.start_shared(body).unwrap();
        let clock = mover(&hand, 2);
        gate.wait();
        clock.join().unwrap();
        let canceller = spawn(move || {
            series.cancel();
            series
        });
        timers.shutdown();
        let reasons = [CancelReason::Requested, CancelReason::ShutDown];
        cancelled(canceller.join().unwrap().join(), &reasons);
        ends(&timers, &hand);
        assert_eq!(calls.load(Ordering::SeqCst), 2);
        assert_eq!(Arc::strong_count(&calls), 1, "the closure is gone");
    });
}

/// A full pool rejects a run: the series goes on with the next.
fn refused_runs(every: Every) {
    let (builder, hand) = pool(1, 1, Queue::bounded(1));
    let workers = builder.rejection(RejectionPolicy::Abort).build().unwrap();
    let timers = ScheduledPool::on(workers.clone());
    let timers = timers.on_event(|_| ()).build();
    let gate = Gate::new();
    let held = gate.clone();
    workers.execute(move || held.wait()).unwrap();
    workers.execute(|| ()).unwrap();
    let (log, recorder) = CallLog::new();
    let series = timers.series(every).start(move || recorder.call(|| ()));
    let series = series.unwrap();
    // The first is rejected, the others are if they come before the worker is free.
    hand.advance(SECOND);
    assert_eq!((series.rejected(), log.calls()), (1, 0));
    let opener = spawn(move || gate.open());
    move_until(&hand, || log.calls() >= 2);
    opener.join().unwrap();
    assert!(!series.is_finished());
    series.cancel();
    cancelled(series.join(), &[CancelReason::Requested]);
    timers.shutdown();
    ends(&timers, &hand);
    log.assert_closed();
    workers.close().unwrap();
}

#[test]
fn a_rejected_run_does_not_end_a_series_at_a_rate() {
    pct(|| refused_runs(Every::rate(SECOND)));
}

#[test]
fn a_rejected_run_does_not_end_a_series_with_a_delay() {
    pct(|| refused_runs(Every::delay(SECOND)));
}

/// The next try is planned while the series is cancelled or the pool shut down.
#[test]
fn a_series_that_retries_ends_with_its_failure_or_with_the_shutdown() {
    pct(|| {
        let (builder, hand) = on_workers(1);
        let timers = builder.on_event(|_| ()).build();
        let (log, recorder) = CallLog::new();
        let fails = move || {
            recorder.call(|| ());
            Err::<(), _>("no flour")
        };
        let again = OnFailure::Retry(Backoff::starting_at(SECOND).tries(1));
        let series = timers.series(Every::rate(9 * SECOND)).on_failure(again);
        let series = series.first_after(Duration::ZERO).start(fails).unwrap();
        let clock = mover(&hand, 1);
        let shutter = spawn({
            let timers = timers.clone();
            move || timers.shutdown()
        });
        join_all(vec![clock, shutter]);
        match series.join() {
            Err(TaskError::Failed(_)) => assert!((1..=2).contains(&log.calls())),
            said => cancelled(said, &[CancelReason::ShutDown]),
        }
        ends(&timers, &hand);
        log.assert_closed();
    });
}
