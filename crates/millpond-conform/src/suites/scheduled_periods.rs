//! How series repeat.

use super::scheduled::{Make, NOW, SECOND, Timers};
use crate::kit::{Gate, Latch, until};
use millpond::manage::Patch;
use millpond::pool::ThreadPool;
use millpond::schedule::{
    Every, NextRun, OnFailure, RunOutcome, ScheduleEvent, Scheduled, ScheduledPool,
};
use std::panic::panic_any;
use std::sync::{Arc, Mutex};

/// Tests of the series of a scheduled pool that is described by a [`Make`].
#[macro_export]
macro_rules! scheduled_periods_suite {
    ($make:expr) => {
        $crate::bodies! { scheduled_periods, ($make as $crate::suites::scheduled::Make);
            a_fixed_rate_does_not_drift_however_late_its_runs_are
            a_fixed_delay_counts_from_the_end_of_each_run
            after_a_pause_a_fixed_rate_catches_up_and_keeps_its_beat
            the_decorator_is_around_every_run_and_not_only_the_first
            between_its_runs_a_series_is_not_finished
            runs_of_a_series_never_overlap_whoever_has_time_for_them
            a_series_that_fails_ends_and_tells
            a_series_may_cancel_itself_and_start_anew_with_another_period
            workers_come_and_go_while_series_wait
        }
    };
}

/// Holds: ScheduledExecutorTest.testFixedRateSequence
/// Holds: ScheduledExecutorSubclassTest.testFixedRateSequence
pub fn a_fixed_rate_does_not_drift_however_late_its_runs_are(make: &Make) {
    let timers = Timers::plain(make, 1);
    let diary = timers.diary();
    let series = timers.schedule_at_fixed_rate(4 * SECOND, 4 * SECOND, diary.run());
    let mut series = series.unwrap();
    let mut latest = NOW;
    // The clock advances by 3: due at 4, 8, 12 and so on, seen at 6, 9, 12 and so on.
    for _ in 0..32 {
        timers.manual.advance(3 * SECOND);
        timers.await_rest();
        latest = latest.max(series.lateness().unwrap_or_default());
    }
    let expected: Vec<u64> = (1..=24_u64).map(|n| (4 * n).div_ceil(3) * 3).collect();
    assert_eq!(diary.seconds(), expected, "24 runs in 24 periods");
    assert_eq!(latest, 2 * SECOND);
    assert_eq!(
        series.next_run(),
        timers.manual.clock().deadline(4 * SECOND)
    );
}

/// Holds: ScheduledExecutorTest.testFixedDelaySequence
pub fn a_fixed_delay_counts_from_the_end_of_each_run(make: &Make) {
    let timers = Timers::plain(make, 1);
    let diary = timers.diary();
    let (own, manual, mut takes) = (diary.clone(), timers.manual.clone(), 0);
    let run = move || {
        own.note();
        manual.advance(takes * SECOND);
        takes += 1;
    };
    timers
        .schedule_with_fixed_delay(SECOND, 2 * SECOND, run)
        .unwrap();
    for _ in 0..12 {
        timers.manual.advance(SECOND);
        timers.await_rest();
    }
    // They take 0, 1, 2, 3 seconds: each comes 2 after the end of the one before.
    assert_eq!(diary.seconds()[..5], [1, 3, 6, 10, 15]);
}

/// Lesson 32: the next one is due a period after the last was due, and not after now.
pub fn after_a_pause_a_fixed_rate_catches_up_and_keeps_its_beat(make: &Make) {
    let timers = Timers::plain(make, 1);
    let diary = timers.diary();
    timers
        .schedule_at_fixed_rate(5 * SECOND, 5 * SECOND, diary.run())
        .unwrap();
    timers.pass(6);
    timers.manual.advance(17 * SECOND);
    timers.await_rest();
    timers.pass(8);
    assert_eq!(diary.seconds(), [5, 23, 23, 23, 25, 30]);
}

/// Lesson 27. Adapted: Java decorates the task object, once; here it is each call of the closure.
///
/// Holds: jtreg ScheduledThreadPoolExecutor.DecorateTask
pub fn the_decorator_is_around_every_run_and_not_only_the_first(make: &Make) {
    let told = Arc::new(Mutex::new(Vec::new()));
    let log = Arc::clone(&told);
    let timers = Timers::new(make, 1, |timers| {
        timers.decorator(move |info, run| {
            let name = info.name.clone().unwrap_or_default();
            let note = |what: &str| {
                log.lock()
                    .unwrap()
                    .push(format!("{what} {name} {}", info.number))
            };
            note("before");
            run();
            note("after");
        })
    });
    let inside = Arc::clone(&told);
    let run = move || inside.lock().unwrap().push("run".to_owned());
    let series = timers.series(Every::rate(SECOND)).name("beat").start(run);
    timers.pass(3);
    series.unwrap().cancel();
    let expected: Vec<String> = (1..=3)
        .flat_map(|n| {
            [
                format!("before beat {n}"),
                "run".to_owned(),
                format!("after beat {n}"),
            ]
        })
        .collect();
    assert_eq!(*told.lock().unwrap(), expected);
    told.lock().unwrap().clear();
    let once = timers.schedule(SECOND, || 7).unwrap();
    timers.pass(1);
    assert_eq!(once.join().unwrap(), 7);
    assert_eq!(*told.lock().unwrap(), ["before  1", "after  1"]);
}

/// Adapted: Java runs one future again and again and resets it; here every run is a task of its own, and
/// what waits for the series is finished when the series is.
///
/// Holds: FutureTaskTest.testRunAndReset
pub fn between_its_runs_a_series_is_not_finished(make: &Make) {
    let timers = Timers::plain(make, 1);
    let diary = timers.diary();
    let mut series = timers
        .schedule_at_fixed_rate(SECOND, SECOND, diary.run())
        .unwrap();
    for runs in 1..=3 {
        timers.pass(1);
        assert_eq!(series.runs(), runs);
        assert!(!series.is_finished() && series.try_join().is_none());
        assert_eq!(series.last_outcome(), Some(RunOutcome::Completed));
    }
    assert!(series.cancel() && series.is_finished());
}

/// Two workers, and a run that is still going when the next ones are due.
pub fn runs_of_a_series_never_overlap_whoever_has_time_for_them(make: &Make) {
    let timers = Timers::plain(make, 2);
    let (started, gate) = (Latch::new(1), Gate::new());
    let (begun, held, diary) = (started.clone(), gate.clone(), timers.diary());
    let own = diary.clone();
    let run = move || {
        own.note();
        begun.arrive();
        held.wait();
    };
    let series = timers.schedule_at_fixed_rate(SECOND, SECOND, run).unwrap();
    timers.manual.advance(SECOND);
    started.wait();
    timers.manual.advance(3 * SECOND);
    let other = timers.schedule(NOW, || 7).unwrap();
    assert_eq!(other.join().unwrap(), 7, "a worker was free");
    assert_eq!(series.runs(), 1, "and did not begin a second run");
    gate.open();
    timers.await_rest();
    assert_eq!(diary.seconds(), [1, 4, 4, 4]);
}

/// Lesson 31.
pub fn a_series_that_fails_ends_and_tells(make: &Make) {
    let heard = Arc::new(Mutex::new(Vec::new()));
    let own = Arc::clone(&heard);
    let timers = Timers::new(make, 1, |timers| {
        timers.on_event(move |event| own.lock().unwrap().push(event.clone()))
    });
    let mut runs = 0;
    let broken = move || {
        runs += 1;
        if runs == 2 {
            panic_any("no grain");
        }
    };
    let stops = timers
        .series(Every::rate(SECOND))
        .name("stops")
        .start(broken);
    timers.pass(5);
    let stops = stops.unwrap();
    assert_eq!((stops.runs(), stops.failures()), (2, 1));
    let panic = stops.join().unwrap_err().into_panic().unwrap();
    assert_eq!(panic.message(), Some("no grain"));
    let goes_on = timers
        .series(Every::delay(SECOND))
        .on_failure(OnFailure::Continue)
        .start(|| Err::<(), _>("wet grain"))
        .unwrap();
    timers.pass(3);
    assert_eq!((goes_on.runs(), goes_on.failures()), (3, 3));
    goes_on.cancel();
    let heard = heard.lock().unwrap();
    let reports = heard.iter().filter_map(|event| match event {
        ScheduleEvent::Failed(report) => Some(report),
        _ => None,
    });
    let heard: Vec<_> = reports.collect();
    assert_eq!((heard[0].label.as_str(), heard[0].runs), ("stops", 2));
    assert_eq!(heard[0].outcome, RunOutcome::Panicked("no grain".into()));
    assert_eq!(heard[0].next, NextRun::Never);
    let rest = &heard[1..];
    assert!(rest.len() == 3 && rest.iter().all(|report| report.next == NextRun::AsPlanned));
}

/// Runs every `period` seconds, three times, and then begins anew with the next period.
fn tickle(timers: &ScheduledPool<ThreadPool>, period: u32, notes: Arc<Mutex<Vec<u32>>>) {
    let own = timers.clone();
    let (place, mut runs) = (Arc::new(Mutex::new(None)), 0);
    let handle = Arc::clone(&place);
    let run = move || {
        runs += 1;
        notes.lock().unwrap().push(period);
        if runs == 3 {
            let handle: Option<Scheduled<_>> = handle.lock().unwrap().take();
            assert!(handle.is_some_and(|handle| handle.cancel()));
            if period < 3 {
                tickle(&own, period + 1, Arc::clone(&notes));
            }
        }
    };
    let series = timers.schedule_at_fixed_rate(period * SECOND, period * SECOND, run);
    *place.lock().unwrap() = Some(series.unwrap());
}

/// With the decorator of its kind, if it has one. Cancelling is leaving: there is nothing to remove.
///
/// Holds: jtreg ThreadPoolExecutor.ScheduledTickleService
pub fn a_series_may_cancel_itself_and_start_anew_with_another_period(make: &Make) {
    let timers = Timers::plain(make, 1);
    let notes = Arc::default();
    tickle(&timers.share(), 1, Arc::clone(&notes));
    timers.pass(3 + 6 + 9 + 5);
    assert_eq!(*notes.lock().unwrap(), [1, 1, 1, 2, 2, 2, 3, 3, 3]);
    let now = ScheduledPool::snapshot(&timers);
    assert_eq!((now.pending, now.series, now.runs), (0, 0, 9));
}

/// Adapted: what waits for its time is not in the queue of the pool, so it keeps no worker; what is due
/// finds one in any case.
///
/// Holds: jtreg ThreadPoolExecutor.ModifyCorePoolSize
pub fn workers_come_and_go_while_series_wait(make: &Make) {
    let timers = Timers::plain(make, 4);
    let below = timers.below();
    let series: Vec<_> = (0..4)
        .map(|_| {
            timers
                .schedule_at_fixed_rate(SECOND, SECOND, || ())
                .unwrap()
        })
        .collect();
    below.prestart_all_core().unwrap();
    for size in [4, 1, 3, 0, 2, 4] {
        let patch = Patch::new().core(size).max(size.max(1));
        below.apply(&patch).unwrap();
        below.prestart_all_core().unwrap();
        until("the pool has its new size", || {
            let now = below.snapshot().workers;
            now == size || (size == 0 && now <= 1)
        });
        let before = series[3].runs();
        timers.pass(2);
        assert_eq!(series[3].runs(), before + 2, "core {size}");
        assert!(below.snapshot().workers <= size.max(1));
    }
}
