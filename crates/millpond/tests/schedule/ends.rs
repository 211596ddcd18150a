//! Shutdowns, and what becomes of what waits.

use crate::kit::{Bench, HOUR, InPlace, SECOND};
use millpond::executor::{
    Executor, ExecutorExt, Lifecycle, Rejected, TerminationError, TryExecuteError,
};
use millpond::schedule::{Every, Scheduled, ScheduledPool};
use millpond::task::{CancelReason, Task, TaskError};
use millpond::time::Deadline;
use millpond_testkit::watch;
use std::future::Future;
use std::panic::resume_unwind;
use std::pin::Pin;
use std::sync::{Arc, Mutex, Weak};
use std::task::{Context, Wake, Waker};
use std::time::Duration;

fn is_shut_down(error: &TaskError) -> bool {
    matches!(error, TaskError::Cancelled(CancelReason::ShutDown))
}

#[test]
fn a_shutdown_lets_delayed_tasks_run_and_ends_series() {
    let bench = Bench::new();
    let task = bench.timers.schedule(5 * SECOND, || 7).unwrap();
    let series = bench
        .timers
        .schedule_at_fixed_rate(SECOND, SECOND, || ())
        .unwrap();
    bench.pass(2);
    bench.timers.shutdown();
    assert!(is_shut_down(&series.join().unwrap_err()));
    assert!(bench.timers.is_shutdown() && bench.timers.is_terminating());
    assert_eq!(bench.timers.snapshot().pending, 1);
    bench.pass(3);
    assert!(bench.timers.is_terminated() && !bench.timers.is_terminating());
    assert_eq!(task.join().unwrap(), 7);
    bench.timers.await_termination().unwrap();
}

#[test]
fn both_can_be_changed_before_and_after() {
    let bench = Bench::new();
    let (delayed, series) = (&bench.timers, &bench.timers);
    assert!(delayed.runs_delayed_after_shutdown() && !series.runs_series_after_shutdown());
    series.set_run_series_after_shutdown(true);
    let task = bench.timers.schedule(HOUR, || ()).unwrap();
    let diary = bench.diary.clone();
    let beat = bench
        .timers
        .schedule_at_fixed_rate(SECOND, SECOND, move || diary.note("beat"));
    let beat = beat.unwrap();
    bench.timers.shutdown();
    bench.pass(3);
    assert_eq!(bench.diary.times("beat"), [1, 2, 3]);
    delayed.set_run_delayed_after_shutdown(false);
    assert!(is_shut_down(&task.join().unwrap_err()));
    assert!(!bench.timers.is_terminated());
    series.set_run_series_after_shutdown(false);
    assert!(is_shut_down(&beat.join().unwrap_err()));
    assert!(bench.timers.is_terminated());
}

/// A run schedules tasks, which are not handed over before it has ended, and shuts the pool down.
#[test]
fn what_is_due_at_a_shutdown_runs_though_delayed_tasks_may_not() {
    let bench = Bench::new();
    bench.timers.set_run_delayed_after_shutdown(false);
    let (timers, clock) = (bench.timers.clone(), bench.manual.clock());
    let outer = bench.timers.schedule(SECOND, move || {
        let past = clock.now() - SECOND / 2;
        let handles = [
            timers.schedule(Duration::ZERO, || 1).unwrap(),
            timers.schedule_at(past, || 2).unwrap(),
            timers.schedule(Duration::from_nanos(1), || 3).unwrap(),
        ];
        timers.shutdown();
        handles
    });
    bench.pass(1);
    let [due, past, later] = outer.unwrap().join().unwrap();
    assert_eq!((due.join().unwrap(), past.join().unwrap()), (1, 2));
    assert!(is_shut_down(&later.join().unwrap_err()));
    assert!(bench.timers.is_terminated());
    assert_eq!(bench.timers.snapshot().cancelled, 1);
}

/// The same when the policy is changed after the shutdown.
#[test]
fn what_is_due_when_delayed_tasks_are_switched_off_still_runs() {
    let bench = Bench::new();
    let timers = bench.timers.clone();
    let outer = bench.timers.schedule(SECOND, move || {
        let due = timers.schedule(Duration::ZERO, || 1).unwrap();
        let later = timers.schedule(SECOND, || 2).unwrap();
        timers.shutdown();
        timers.set_run_delayed_after_shutdown(false);
        (due, later)
    });
    bench.pass(1);
    let (due, later) = outer.unwrap().join().unwrap();
    assert_eq!(due.join().unwrap(), 1);
    assert!(is_shut_down(&later.join().unwrap_err()));
    assert!(bench.timers.is_terminated());
}

#[test]
fn nothing_is_taken_after_a_shutdown_and_everything_comes_back() {
    let bench = Bench::new();
    bench.timers.shutdown();
    let text = String::from("water");
    let rejected = bench.timers.schedule(SECOND, move || text).unwrap_err();
    assert!(rejected.reason.is_shut_down());
    assert_eq!((rejected.task)(), "water");
    let rejected = bench
        .timers
        .schedule_at_fixed_rate(SECOND, SECOND, || ())
        .unwrap_err();
    assert!(rejected.reason.is_shut_down());
    assert!(
        bench
            .timers
            .submit(|| ())
            .unwrap_err()
            .reason
            .is_shut_down()
    );
    assert!(bench.timers.is_terminated());
}

#[test]
fn shutdown_now_hands_back_what_has_not_begun() {
    let bench = Bench::new();
    let task = bench.timers.schedule(HOUR, || 7).unwrap();
    let gone = bench.timers.schedule(HOUR, || 8).unwrap();
    gone.cancel();
    let diary = bench.diary.clone();
    let series = bench.timers.series(Every::rate(HOUR)).name("beat");
    let series = series.start(move || diary.note("beat")).unwrap();
    let mut back = bench.timers.shutdown_now();
    assert_eq!(back.len(), 2);
    assert!(!task.is_finished() && !series.is_finished(), "as in Java");
    assert_eq!(bench.timers.snapshot().pending, 0);
    let beat = back.iter().position(|task| task.name() == Some("beat"));
    let beat = back.remove(beat.expect("the series has a name"));
    beat.run();
    assert_eq!(bench.diary.times("beat").len(), 1, "one last run");
    assert!(is_shut_down(&series.join().unwrap_err()));
    drop(back);
    let error = task.join().unwrap_err();
    assert!(matches!(error, TaskError::Cancelled(CancelReason::Dropped)));
    assert!(bench.timers.is_terminated());
}

#[test]
fn dropping_what_was_handed_back_of_a_series_ends_it() {
    let bench = Bench::new();
    let owned = Arc::new(());
    let held = Arc::clone(&owned);
    let series = bench.timers.schedule_at_fixed_rate(HOUR, HOUR, move || {
        let _held = &held;
    });
    let series = series.unwrap();
    drop(bench.timers.shutdown_now());
    assert!(is_shut_down(&series.join().unwrap_err()));
    assert_eq!(Arc::strong_count(&owned), 1);
    assert!(bench.timers.is_terminated());
}

#[test]
fn a_pool_with_nothing_to_do_is_over_at_once_and_one_with_a_task_for_never_is_not() {
    let bench = Bench::new();
    let never = bench.timers.schedule(Duration::MAX, || ()).unwrap();
    bench.timers.shutdown();
    assert!(!bench.timers.is_terminated());
    assert!(never.cancel());
    assert!(bench.timers.is_terminated());
}

#[test]
fn a_pool_is_over_when_the_last_task_is_gone_however_each_of_them_went() {
    let bench = Bench::new();
    let after = |seconds: u32, panics: bool| {
        let body = move || assert!(!panics, "as it should");
        bench.timers.schedule(seconds * SECOND, body).unwrap()
    };
    let early = [after(1, false), after(1, true)];
    let cancelled_before = after(9, false);
    assert!(cancelled_before.cancel());
    bench.pass(1);
    assert!(early.iter().all(|task| task.is_finished()));
    let (ran, panicked, cancelled) = (after(1, false), after(2, true), after(9, false));
    let last = after(3, false);
    bench.timers.shutdown();
    for seconds in 0..3 {
        assert!(!bench.timers.is_terminated(), "after {seconds} s");
        bench.pass(1);
        if seconds == 0 {
            assert!(cancelled.cancel());
        }
    }
    assert!(bench.timers.is_terminated());
    let all = [ran, panicked, cancelled, last];
    assert!(all.iter().all(|task| task.is_finished()));
    assert_eq!(bench.timers.snapshot().cancelled, 2);

    // And if the last one is cancelled.
    let bench = Bench::new();
    let task = bench.timers.schedule(HOUR, || ()).unwrap();
    bench.timers.shutdown();
    assert!(!bench.timers.is_terminated());
    assert!(task.cancel());
    assert!(bench.timers.is_terminated());
}

#[test]
fn a_task_that_schedules_another_one_after_the_shutdown_hears_that_it_is_too_late() {
    let bench = Bench::new();
    let timers = bench.timers.clone();
    let task = bench
        .timers
        .schedule(SECOND, move || timers.schedule(SECOND, || ()).is_err());
    bench.timers.shutdown();
    bench.pass(1);
    assert!(task.unwrap().join().unwrap());
    assert!(bench.timers.is_terminated());
}

#[test]
fn an_end_can_be_waited_for_with_patience() {
    let bench = Bench::new();
    bench.timers.schedule(HOUR, || ()).unwrap();
    bench.timers.shutdown();
    let clock = bench.manual.clock();
    assert!(
        !bench
            .timers
            .await_termination_until(clock.deadline(Duration::ZERO))
            .unwrap()
    );
    bench.manual.advance(HOUR);
    assert!(
        bench
            .timers
            .await_termination_timeout(Duration::ZERO)
            .unwrap()
    );
}

/// Looks whether the pool is over when it is woken, or dropped.
struct Looks {
    timers: Weak<ScheduledPool<InPlace>>,
    found_it_over: Arc<Mutex<Option<bool>>>,
}

impl Looks {
    fn look(&self) {
        let is_over = self.timers.upgrade().unwrap().is_terminated();
        *self.found_it_over.lock().unwrap() = Some(is_over);
    }
}

impl Wake for Looks {
    fn wake(self: Arc<Self>) {
        self.look();
    }
}

/// In a value.
struct LooksWhenDropped(Looks);

impl Drop for LooksWhenDropped {
    fn drop(&mut self) {
        self.0.look();
    }
}

/// The pool of a bench, and what looks at it.
fn observed() -> (Bench, Arc<ScheduledPool<InPlace>>, Looks) {
    let bench = Bench::new();
    let timers = Arc::new(bench.timers.clone());
    let looks = Looks {
        timers: Arc::downgrade(&timers),
        found_it_over: Arc::default(),
    };
    (bench, timers, looks)
}

#[test]
fn a_pool_on_a_shared_executor_does_not_terminate_before_waiters_for_its_last_task_are_woken() {
    let (bench, timers, looks) = observed();
    let found = Arc::clone(&looks.found_it_over);
    let waker = Waker::from(Arc::new(looks));
    let mut task = bench.timers.schedule(SECOND, || 7).unwrap();
    let polled = Pin::new(&mut task).poll(&mut Context::from_waker(&waker));
    assert!(polled.is_pending());
    bench.timers.shutdown();
    bench.pass(1);
    assert_eq!(*found.lock().unwrap(), Some(false));
    assert!(timers.is_terminated());
    assert_eq!(task.join().unwrap(), 7);
}

#[test]
fn a_pool_on_a_shared_executor_does_not_terminate_before_unwanted_values_are_dropped() {
    let (bench, timers, looks) = observed();
    let found = Arc::clone(&looks.found_it_over);
    let own = Arc::new(Mutex::new(None::<Scheduled<LooksWhenDropped>>));
    let cell = Arc::clone(&own);
    let task = bench.timers.schedule(SECOND, move || {
        cell.lock().unwrap().take().unwrap().cancel();
        LooksWhenDropped(looks)
    });
    *own.lock().unwrap() = Some(task.unwrap());
    bench.timers.shutdown();
    bench.pass(1);
    assert_eq!(*found.lock().unwrap(), Some(false));
    assert!(timers.is_terminated());
}

/// Its handle was dropped, and the pool, which might have to stop it, does not keep its value either.
#[test]
fn a_pool_on_a_shared_executor_keeps_no_value_after_termination() {
    let (bench, timers, looks) = observed();
    let found = Arc::clone(&looks.found_it_over);
    let task = bench
        .timers
        .schedule(SECOND, move || LooksWhenDropped(looks));
    drop(task.unwrap());
    bench.timers.shutdown();
    bench.pass(1);
    assert_eq!(*found.lock().unwrap(), Some(false));
    assert!(timers.is_terminated());
}

/// Otherwise it would wait for itself.
#[test]
fn who_is_woken_by_the_last_task_of_a_pool_hears_that_it_cannot_wait_for_the_end() {
    struct Waits(
        ScheduledPool<InPlace>,
        Mutex<Option<Result<(), TerminationError>>>,
    );

    impl Wake for Waits {
        fn wake(self: Arc<Self>) {
            *self.1.lock().unwrap() = Some(self.0.await_termination());
        }
    }

    let bench = Bench::new();
    let waits = Arc::new(Waits(bench.timers.clone(), Mutex::new(None)));
    let mut task = bench.timers.schedule(SECOND, || 7).unwrap();
    let waker = Waker::from(Arc::clone(&waits));
    assert!(
        Pin::new(&mut task)
            .poll(&mut Context::from_waker(&waker))
            .is_pending()
    );
    bench.timers.shutdown();
    bench.pass(1);
    assert_eq!(
        *waits.1.lock().unwrap(),
        Some(Err(TerminationError::OwnTask))
    );
    bench.timers.await_termination().unwrap();
}

/// An executor of the user's that cannot be shut down, and what it was brought.
#[derive(Clone, Debug, Default)]
struct Stubborn(Arc<Mutex<Vec<Task>>>);

impl Executor for Stubborn {
    fn execute_task(&self, task: Task) -> Result<(), Rejected<Task>> {
        self.0.lock().unwrap().push(task);
        Ok(())
    }

    fn try_execute_task(&self, task: Task) -> Result<(), TryExecuteError> {
        self.execute_task(task).map_err(TryExecuteError::Rejected)
    }
}

impl Lifecycle for Stubborn {
    fn shutdown(&self) {
        resume_unwind(Box::new("no"))
    }

    fn shutdown_now(&self) -> Vec<Task> {
        resume_unwind(Box::new("no"))
    }

    fn is_shutdown(&self) -> bool {
        true
    }

    fn is_terminated(&self) -> bool {
        true
    }

    fn await_termination_until(&self, _: Deadline) -> Result<bool, TerminationError> {
        Ok(true)
    }

    fn await_termination_timeout(&self, _: Duration) -> Result<bool, TerminationError> {
        Ok(true)
    }
}

#[test]
fn a_pool_ends_although_its_own_executor_panics_when_it_is_shut_down() {
    let _watch = watch();
    let idle = ScheduledPool::owning(Stubborn::default()).build();
    idle.close().unwrap();

    let below = Stubborn::default();
    let timers = ScheduledPool::owning(below.clone()).build();
    let panics = || -> () { resume_unwind(Box::new("dry")) };
    let task = timers.schedule(Duration::ZERO, panics).unwrap();
    let brought = loop {
        if let Some(task) = below.0.lock().unwrap().pop() {
            break task;
        }
        millpond_raw::sync::thread::yield_now();
    };
    timers.shutdown();
    assert!(!timers.is_terminated(), "a task has not run yet");
    let _ = brought.run();
    assert!(task.join().unwrap_err().is_panicked());
    timers.await_termination().unwrap();

    let stopped = ScheduledPool::owning(Stubborn::default()).build();
    drop(stopped.schedule(HOUR, || ()).unwrap());
    assert_eq!(stopped.shutdown_now().len(), 1);
    stopped.await_termination().unwrap();
}
