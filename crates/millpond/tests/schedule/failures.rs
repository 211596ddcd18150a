//! Runs that fail, and what becomes of their series.

use crate::kit::{Bench, SECOND};
use millpond::executor::{Executor, Rejected, TryExecuteError};
use millpond::schedule::{Backoff, Catchup, Every, OnFailure, Overlap, RunOutcome, ScheduledPool};
use millpond::task::Task;
use millpond::time::{Clock, Deadline, ManualClock};
use std::io;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// A run that is noted, and fails or not, each in turn; the last one again and again.
fn failing(
    bench: &Bench,
    fails: &'static [bool],
) -> impl FnMut() -> Result<(), io::Error> + Send + 'static {
    let (diary, mut run) = (bench.diary.clone(), 0);
    move || {
        diary.note("run");
        let fails = fails[run.min(fails.len() - 1)];
        run += 1;
        if fails {
            Err(io::Error::other("no water"))
        } else {
            Ok(())
        }
    }
}

#[test]
fn a_failure_ends_the_series_and_everybody_hears_of_it() {
    let bench = Bench::new();
    let series = bench.timers.series(Every::rate(SECOND)).name("wheel");
    let series = series.start(failing(&bench, &[false, true])).unwrap();
    bench.pass(10);
    assert_eq!(bench.diary.times("run"), [1, 2]);
    assert_eq!((series.runs(), series.failures()), (2, 1));
    let failed = RunOutcome::Failed("no water".into());
    assert_eq!(series.last_outcome(), Some(failed));
    let told = "bench: run 2 of wheel failed: no water; the series has ended";
    assert_eq!(bench.events(), [told]);
    let error = series.join().unwrap_err();
    assert!(error.is_failed());
    assert_eq!(error.to_string(), "a run failed: no water");
    let now = bench.timers.snapshot();
    assert_eq!((now.failed, now.series, now.pending), (1, 0, 0));
}

#[test]
fn so_does_a_panic() {
    let bench = Bench::new();
    let series = bench.timers.series(Every::delay(SECOND)).name("wheel");
    let series = series.start(|| -> () { panic!("the dam broke") }).unwrap();
    bench.pass(3);
    let told = "bench: run 1 of wheel panicked: the dam broke; the series has ended";
    assert_eq!(bench.events(), [told]);
    let error = series.join().unwrap_err();
    assert_eq!(error.to_string(), "the task panicked: the dam broke");
}

#[test]
fn or_it_goes_on_as_if_nothing_had_happened() {
    let bench = Bench::new();
    let series = bench.timers.series(Every::rate(SECOND)).name("wheel");
    let series = series.on_failure(OnFailure::Continue);
    let series = series.start(failing(&bench, &[true, false, true])).unwrap();
    bench.pass(4);
    assert_eq!(bench.diary.times("run"), [1, 2, 3, 4]);
    assert_eq!((series.failures(), bench.events().len()), (3, 3));
    assert!(!series.is_finished());
    assert!(series.cancel());
}

#[test]
fn or_it_is_tried_again_after_pauses_that_grow() {
    let bench = Bench::new();
    let backoff = Backoff::starting_at(SECOND).at_most(3 * SECOND);
    let series = bench.timers.series(Every::rate(60 * SECOND)).name("wheel");
    let series = series.on_failure(OnFailure::Retry(backoff));
    let runs = failing(&bench, &[true, true, true, true, false]);
    let series = series.first_after(10 * SECOND).start(runs).unwrap();
    bench.pass(135);
    // Tried again after 1, 2, 3 and 3 seconds; then by plan.
    assert_eq!(bench.diary.times("run"), [10, 11, 13, 16, 19, 70, 130]);
    assert_eq!((series.runs(), series.failures()), (7, 4));
    assert!(bench.events()[0].ends_with("it is tried again in 1s"));
}

#[test]
fn and_when_it_has_been_tried_too_often_it_ends() {
    let bench = Bench::new();
    let backoff = Backoff::starting_at(SECOND).tries(2);
    let series = bench.timers.series(Every::delay(60 * SECOND));
    let series = series.on_failure(OnFailure::Retry(backoff));
    let series = series
        .first_after(SECOND)
        .start(failing(&bench, &[true]))
        .unwrap();
    bench.pass(100);
    assert_eq!(bench.diary.times("run"), [1, 2, 4]);
    assert!(series.join().unwrap_err().is_failed());
}

#[test]
fn a_run_that_succeeds_starts_the_count_of_tries_anew() {
    let bench = Bench::new();
    let backoff = Backoff::starting_at(SECOND).tries(1);
    let series = bench.timers.series(Every::delay(10 * SECOND));
    let series = series.on_failure(OnFailure::Retry(backoff));
    let runs = failing(&bench, &[true, false, true, false, true, true]);
    let series = series.first_after(SECOND).start(runs).unwrap();
    bench.pass(60);
    assert_eq!(bench.diary.times("run"), [1, 2, 12, 13, 23, 24]);
    assert!(series.is_finished());
}

#[test]
fn a_closure_may_end_its_series_with_a_value() {
    let bench = Bench::new();
    let mut left = 3;
    let owned = Arc::new(());
    let held = Arc::clone(&owned);
    let series = bench
        .timers
        .schedule_at_fixed_rate(SECOND, SECOND, move || {
            let _held = &held;
            left -= 1;
            match left {
                0 => Ok(ControlFlow::Break("full")),
                _ => Ok::<_, io::Error>(ControlFlow::Continue(())),
            }
        });
    let series = series.unwrap();
    bench.pass(2);
    assert!(!series.is_finished());
    bench.pass(5);
    assert_eq!(series.runs(), 3);
    assert_eq!(Arc::strong_count(&owned), 1, "the closure is gone");
    assert_eq!(series.join().unwrap(), "full");
    assert!(bench.events().is_empty());
    let now = bench.timers.snapshot();
    assert_eq!((now.series, now.pending, now.cancelled), (0, 0, 0));
}

#[test]
fn a_closure_that_cancels_its_own_series_runs_to_its_end() {
    let bench = Bench::new();
    let own = Arc::new(std::sync::OnceLock::<millpond::schedule::Scheduled<_>>::new());
    let (handle, diary) = (Arc::clone(&own), bench.diary.clone());
    let series = bench
        .timers
        .schedule_at_fixed_rate(SECOND, SECOND, move || {
            if let Some(handle) = handle.get() {
                handle.cancel();
            }
            diary.note("end");
        });
    own.set(series.unwrap()).unwrap();
    bench.pass(5);
    assert_eq!(bench.diary.times("end"), [1]);
    assert!(own.get().unwrap().is_cancelled());
    assert!(bench.events().is_empty());
}

#[test]
fn a_hook_for_notices_that_panics_costs_nothing() {
    let manual = millpond::time::ManualClock::new();
    let executor = millpond::executor::DirectExecutor::new();
    let timers = millpond::schedule::ScheduledPool::on(executor)
        .clock(manual.clock())
        .on_event(|_| panic!("nobody listens"))
        .build();
    let series = timers
        .series(Every::rate(SECOND))
        .on_failure(OnFailure::Continue);
    let mut runs = 0;
    let ends = series.start(move || {
        runs += 1;
        match runs {
            1 => Err("no water"),
            _ => Ok(ControlFlow::Break(runs)),
        }
    });
    let ends = ends.unwrap();
    // The dispatcher runs it: a direct executor runs tasks on the caller's thread.
    while !ends.is_finished() {
        manual.advance(SECOND);
        millpond_raw::sync::thread::yield_now();
    }
    assert_eq!(ends.join().unwrap(), 2);
}

/// Rejects tasks until it is told to run them.
#[derive(Clone, Debug)]
struct Rejecting {
    clock: Clock,
    takes: Arc<AtomicBool>,
    /// Whether the timer's thread submits its tasks, which is not to run them.
    is_timed: bool,
}

impl Executor for Rejecting {
    fn execute_task(&self, task: Task) -> Result<(), Rejected<Task>> {
        if self.takes.load(Ordering::SeqCst) {
            drop(task.run());
            return Ok(());
        }
        let reason = millpond::executor::RejectReason::saturated(1, 1, 1);
        Err(Rejected::new(task, reason))
    }

    fn try_execute_task(&self, task: Task) -> Result<(), TryExecuteError> {
        if self.is_timed && self.takes.load(Ordering::SeqCst) {
            Err(TryExecuteError::WouldBlock(task))
        } else {
            self.execute_task(task).map_err(TryExecuteError::Rejected)
        }
    }

    fn clock(&self) -> Clock {
        self.clock.clone()
    }
}

#[test]
fn with_a_rejected_run_the_missed_runs_are_skipped_and_the_next_is_in_time() {
    for overlap in [Overlap::Queue, Overlap::Skip] {
        let manual = ManualClock::new();
        let takes = Arc::new(AtomicBool::new(false));
        let executor = Rejecting {
            clock: manual.clock(),
            takes: Arc::clone(&takes),
            is_timed: false,
        };
        let timers = ScheduledPool::on(executor).on_event(|_| ()).build();
        let begun = manual.clock().now();
        let series = timers.series(Every::rate(SECOND)).overlap(overlap);
        let series = series.catchup(Catchup::All).start(|| ()).unwrap();
        manual.advance(3600 * SECOND + SECOND / 2);
        assert_eq!((series.rejected(), series.runs()), (1, 0), "{overlap}");
        assert_eq!(series.next_run(), Deadline::at(begun + 3601 * SECOND));
        takes.store(true, Ordering::SeqCst);
        manual.advance(SECOND / 2);
        manual.advance(SECOND);
        assert_eq!((series.rejected(), series.runs()), (1, 2), "{overlap}");
        series.cancel();
    }
}

/// By the system's clock: a rejection takes longer than the period.
#[test]
fn a_series_that_is_always_due_and_always_rejected_delays_no_other() {
    for overlap in [Overlap::Queue, Overlap::Skip, Overlap::Concurrent] {
        let takes = Arc::new(AtomicBool::new(false));
        let executor = Rejecting {
            clock: Clock::system(),
            takes: Arc::clone(&takes),
            is_timed: true,
        };
        let timers = ScheduledPool::on(executor).on_event(|_| ()).build();
        let (tell, told) = channel();
        let own = timers.clone();
        // Whoever starts it dispatches the first run.
        millpond_raw::sync::thread::spawn(move || {
            let every = Every::rate(Duration::from_nanos(100));
            let series = own.series(every).overlap(overlap);
            tell.send(series.first_after(Duration::ZERO).start_shared(|| ()))
                .unwrap();
        });
        let series = told.recv_timeout(Duration::from_secs(20));
        let series = series.unwrap_or_else(|_| panic!("{overlap}: it does not come back"));
        // It goes on.
        let series = series.unwrap();
        let before = series.rejected();
        while series.rejected() == before {
            millpond_raw::sync::thread::yield_now();
        }
        // And others have their turn.
        takes.store(true, Ordering::SeqCst);
        let other = timers.schedule(Duration::from_millis(1), || 7).unwrap();
        assert_eq!(other.join().unwrap(), 7);
        series.cancel();
    }
}

/// Keeps the runs that are called `held`, and runs all others on the caller's thread.
#[derive(Debug)]
struct Keeper(Clock, Arc<Mutex<Vec<Task>>>);

impl Executor for Keeper {
    fn execute_task(&self, task: Task) -> Result<(), Rejected<Task>> {
        match task.name() {
            Some("held") => self.1.lock().unwrap().push(task),
            _ => drop(task.run()),
        }
        Ok(())
    }

    fn try_execute_task(&self, task: Task) -> Result<(), TryExecuteError> {
        self.execute_task(task).map_err(TryExecuteError::Rejected)
    }

    fn clock(&self) -> Clock {
        self.0.clone()
    }
}

#[test]
fn a_run_that_fails_while_the_next_one_is_on_its_way_does_not_make_two_series_of_one() {
    let manual = ManualClock::new();
    let held = Arc::new(Mutex::new(Vec::new()));
    let keeper = Keeper(manual.clock(), Arc::clone(&held));
    let timers = ScheduledPool::on(keeper).on_event(|_| ()).build();
    // Due together with the second run, and before it.
    let runs = Arc::clone(&held);
    let between = timers.schedule(2 * SECOND, move || {
        let run: Task = runs.lock().unwrap().remove(0);
        drop(run.run());
    });
    let backoff = Backoff::starting_at(10 * SECOND);
    let series = timers.series(Every::rate(SECOND)).name("held");
    let series = series
        .overlap(Overlap::Skip)
        .on_failure(OnFailure::Retry(backoff))
        .start(|| Err::<(), _>("no water"))
        .unwrap();
    manual.advance(SECOND);
    assert_eq!(held.lock().unwrap().len(), 1, "it waits for a worker");
    manual.advance(SECOND);
    between.unwrap().join().unwrap();
    assert_eq!((series.failures(), held.lock().unwrap().len()), (1, 1));
    assert_eq!(timers.upcoming(9).len(), 1, "{:?}", timers.upcoming(9));
    series.cancel();
    assert_eq!(timers.snapshot().pending, 0);
}
