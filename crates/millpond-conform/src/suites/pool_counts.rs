//! The figures of a pool, while it runs and at its end.

use super::pond::{Make, Pond, fresh_name};
use crate::kit::{Actor, Factory, FailureSink, Gate, Start, Stress, until};
use millpond::executor::{ExecutorExt, Lifecycle};
use millpond::pool::RejectionPolicy;
use millpond::task::TaskSpec;
use millpond::time::{Clock, Deadline};
use std::panic::panic_any;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Tests of the figures of a pool that is described by a [`Make`], with a queue that holds.
#[macro_export]
macro_rules! pool_counts_suite {
    ($make:expr) => {
        $crate::bodies! { pool_counts, ($make as $crate::suites::pond::Make);
            each_task_is_run_once_by_a_thread_of_the_pool
            a_worker_that_runs_a_task_is_active_and_no_other_is
            a_task_is_completed_when_its_body_has_ended_and_not_before
            the_count_of_tasks_is_what_ran_runs_and_waits
            a_task_whose_worker_has_not_begun_is_counted
            what_fails_is_completed_too
            no_figure_is_ever_too_high_and_none_goes_back
            at_the_end_the_books_balance
        }
    };
}

/// Holds: ThreadPoolExecutorTest.testExecute, ThreadPoolExecutorSubclassTest.testExecute
pub fn each_task_is_run_once_by_a_thread_of_the_pool(make: &Make) {
    let pond = Pond::new(make, 100, |pool| pool.core(2).max(2));
    let ran: Arc<Vec<AtomicU64>> = Arc::new((0..50).map(|_| AtomicU64::new(0)).collect());
    let (sink, prefix) = (FailureSink::new(), format!("{}-", pond.name()));
    for number in 0..50 {
        let (ran, prefix) = (Arc::clone(&ran), prefix.clone());
        let body = sink.checked(move || {
            let here = std::thread::current();
            assert!(here.name().is_some_and(|name| name.starts_with(&prefix)));
            ran[number].fetch_add(1, Ordering::SeqCst);
        });
        pond.execute(body).unwrap();
    }
    pond.close().unwrap();
    assert!(ran.iter().all(|times| times.load(Ordering::SeqCst) == 1));
}

/// Holds: ThreadPoolExecutorTest.testGetActiveCount
/// Holds: ThreadPoolExecutorSubclassTest.testGetActiveCount
pub fn a_worker_that_runs_a_task_is_active_and_no_other_is(make: &Make) {
    let pond = Pond::new(make, 4, |pool| pool.core(2).max(2));
    assert_eq!(pond.snapshot().active, 0);
    let (sink, own) = (FailureSink::new(), pond.pool());
    let look = sink.checked(move || assert_eq!(own.snapshot().active, 1));
    pond.submit(look).unwrap().join().unwrap();
    pond.await_idle(1);
    assert_eq!(pond.snapshot().active, 0);
    let held = pond.hold(1);
    assert_eq!(pond.snapshot().active, 1, "and one is idle");
    held.release();
    pond.await_idle(2);
    assert_eq!(pond.snapshot().active, 0);
    let held = pond.hold(2);
    assert_eq!(pond.snapshot().active, 2);
    held.release();
}

/// Holds: ThreadPoolExecutorTest.testGetCompletedTaskCount
/// Holds: ThreadPoolExecutorSubclassTest.testGetCompletedTaskCount
pub fn a_task_is_completed_when_its_body_has_ended_and_not_before(make: &Make) {
    let pond = Pond::new(make, 4, |pool| pool.core(2).max(2));
    assert_eq!(pond.snapshot().completed, 0);
    for done in 0..3 {
        let held = pond.hold(1);
        assert_eq!(pond.snapshot().completed, done);
        held.release();
        pond.await_completed(done + 1);
    }
    pond.close().unwrap();
    assert_eq!(pond.snapshot().completed, 3);
}

/// Holds: ThreadPoolExecutorTest.testGetTaskCount, ThreadPoolExecutorSubclassTest.testGetTaskCount
pub fn the_count_of_tasks_is_what_ran_runs_and_waits(make: &Make) {
    let pond = Pond::new(make, 8, |pool| pool.core(1).max(1));
    assert_eq!(pond.snapshot().task_count(), 0);
    let held = pond.hold(1);
    assert_eq!(pond.snapshot().task_count(), 1);
    for count in 2..=5 {
        pond.execute(|| ()).unwrap();
        assert_eq!(pond.snapshot().task_count(), count);
    }
    let now = pond.snapshot();
    assert_eq!((now.completed, now.active, now.queued), (0, 1, 4));
    held.release();
    pond.shutdown();
    pond.await_end();
    let end = pond.snapshot();
    assert_eq!((end.task_count(), end.completed), (5, 5));
}

/// It neither waits in the queue nor runs, and yet it has been accepted.
pub fn a_task_whose_worker_has_not_begun_is_counted(make: &Make) {
    let gate = Gate::new();
    let at = gate.clone();
    let threads = Factory::new(fresh_name(), move |_| Start::At(at.clone()));
    let pond = Pond::new(make, 4, |pool| pool.core(2).max(2).threads(threads));
    let first = pond.submit(|| ()).unwrap();
    let now = pond.snapshot();
    assert_eq!((now.task_count(), now.workers, now.queued), (1, 1, 0));
    assert!(pond.prestart_core().unwrap());
    assert_eq!(pond.snapshot().task_count(), 1, "this one has no task");
    gate.open();
    first.join().unwrap();
    until("no worker is active", || pond.snapshot().active == 0);
    assert_eq!(pond.snapshot().task_count(), 1);
}

/// A panic is an end like any other.
pub fn what_fails_is_completed_too(make: &Make) {
    let pond = Pond::new(make, 16, |pool| pool.core(2).max(2));
    for number in 0..10 {
        let body = move || match number % 2 {
            0 => (),
            _ => panic_any("no grain"),
        };
        pond.execute(body).unwrap();
    }
    pond.close().unwrap();
    let end = pond.snapshot();
    assert_eq!((end.completed, end.panicked), (10, 5));
    assert_eq!((end.cancelled, end.rejected), (0, 0));
}

/// Read while others work.
pub fn no_figure_is_ever_too_high_and_none_goes_back(make: &Make) {
    let make = *make;
    Stress::new("figures").one_in(50).run(|round| {
        let pond = Pond::new(&make, 400, |pool| pool.core(2).max(2));
        let (submitted, began) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
        let (own, over) = (pond.pool(), Gate::new());
        let (brought, ran, stop) = (Arc::clone(&submitted), Arc::clone(&began), over.clone());
        let reader = Actor::start("reader", move || {
            let mut last = own.snapshot();
            while !stop.is_open() {
                let now = own.snapshot();
                let (began, brought) = (ran.load(Ordering::SeqCst), brought.load(Ordering::SeqCst));
                assert!(now.completed <= began, "{} of {began}", now.completed);
                assert!(now.queued as u64 <= brought && now.active <= 2);
                assert!(now.workers <= 2 && now.largest <= 2);
                assert!(now.completed >= last.completed && now.largest >= last.largest);
                last = now;
                // Others need the processor, too: without this most of the time goes into reading.
                std::thread::yield_now();
            }
        });
        for _ in 0..200 {
            submitted.fetch_add(1, Ordering::SeqCst);
            let began = Arc::clone(&began);
            let body = move || {
                began.fetch_add(1, Ordering::SeqCst);
            };
            pond.execute(body).unwrap();
            round.rng.jitter();
        }
        pond.close().unwrap();
        over.open();
        reader.finish();
        assert_eq!(pond.snapshot().completed, 200);
    });
}

/// Whatever happens to a task, it is counted once.
pub fn at_the_end_the_books_balance(make: &Make) {
    let make = *make;
    Stress::new("books").one_in(20).run(|round| {
        let pond = Pond::new(&make, 8, |pool| {
            let pool = pool.core(1).max(2);
            pool.rejection(match round.rng.below(3) {
                0 => RejectionPolicy::Abort,
                1 => RejectionPolicy::Discard,
                _ => RejectionPolicy::CallerRuns,
            })
        });
        let late = Deadline::at(Clock::system().now());
        let (mut accepted, mut handles) = (0, Vec::new());
        for _ in 0..60 {
            let spec = if round.rng.once_in(8) {
                TaskSpec::new().deadline(late)
            } else {
                TaskSpec::new()
            };
            let panics = round.rng.once_in(8);
            let body = move || {
                if panics {
                    panic_any("no grain");
                }
            };
            if let Ok(handle) = pond.submit_with(spec, body) {
                accepted += 1;
                handles.push(handle);
            }
            let at = round.rng.below(handles.len());
            match round.rng.below(8) {
                0 if !handles.is_empty() => {
                    handles.swap_remove(at).cancel();
                }
                1 if !handles.is_empty() => {
                    pond.remove(&handles[at]);
                }
                2 => {
                    pond.purge();
                }
                _ => round.rng.jitter(),
            }
        }
        let back = match round.rng.below(2) {
            0 => Vec::new(),
            _ => pond.shutdown_now(),
        };
        pond.close().unwrap();
        let end = pond.snapshot();
        assert_eq!(back.len() as u64, end.handed_back);
        let settled = end.completed + end.cancelled;
        assert_eq!((settled, end.submitted), (accepted, accepted), "{end:?}");
        assert_eq!((end.active, end.queued, end.workers), (0, 0, 0));
    });
}
