//! The guarantees of a task's handle, wherever the task runs.

use crate::kit::{
    Actor, CountingWaker, DropCount, FailureSink, Gate, Latch, Stopwatch, Stress, delays, until,
};
use millpond::interrupt;
use millpond::task::{self, CancelReason, Task, TaskError, TaskSpec};
use std::panic::{self, AssertUnwindSafe};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

/// Has a task run, at once or soon, here or elsewhere; it must not wait for its end.
pub type Start = fn(Task);

/// Tests of task handles, for tasks that are run by the given [`Start`].
#[macro_export]
macro_rules! task_suite {
    ($start:expr) => {
        $crate::bodies! { task, ($start as $crate::suites::task::Start);
            a_finished_task_keeps_its_value_whatever_is_done_to_it
            a_task_is_not_finished_before_it_has_run
            a_unit_value_is_a_value
            a_panic_is_the_outcome_and_is_delivered_once
            a_timed_join_delivers_a_panic_too
            a_task_cancelled_before_its_start_never_runs
            a_task_interrupted_before_its_start_never_runs
            cancelling_a_finished_task_fails
            interrupting_a_finished_task_fails_and_reaches_no_thread
            an_interrupt_stops_the_body_and_finishes_the_handle_at_once
            a_cancel_lets_the_body_go_on_and_drops_its_value
            a_cancelled_task_has_no_value_for_any_waiter
            a_join_with_timeout_zero_times_out_at_once
            a_timed_join_waits_for_its_whole_timeout
            a_join_with_the_largest_timeout_waits_for_the_value
            a_waiter_is_interrupted_and_the_task_goes_on
            done_means_done
            every_waiter_gets_the_outcome
            writes_of_the_task_are_visible_after_the_join
            an_awaiting_future_is_woken_once
            debug_text_shows_the_state
            tasks_and_values_are_dropped_once
            joins_race_with_runs_and_cancels_and_lose_nothing
        }
    };
}

/// A task that is started and waits at a gate, its handle, and the gate.
fn held_back(start: Start) -> (task::TaskHandle<u32>, Gate) {
    let (started, gate) = (Latch::new(1), Gate::new());
    let (arrived, closed) = (started.clone(), gate.clone());
    let (task, handle) = task::new(move || {
        arrived.arrive();
        closed.wait();
        7
    });
    run_beside(start, task);
    started.wait();
    (handle, gate)
}

/// Has a task run that blocks, also if the starter runs it on the spot.
fn run_beside(start: Start, task: Task) {
    std::thread::spawn(move || start(task));
}

/// Holds: FutureTaskTest.testIsDone
pub fn a_finished_task_keeps_its_value_whatever_is_done_to_it(start: &Start) {
    let runs = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&runs);
    let (task, mut handle) = task::new(move || counted.fetch_add(1, Ordering::SeqCst) + 7);
    start(task);
    handle.wait().unwrap();
    assert!(handle.is_finished() && handle.is_started() && !handle.is_cancelled());
    assert!(!handle.cancel() && !handle.interrupt());
    assert!(handle.is_finished() && !handle.is_cancelled());
    assert_eq!(handle.join().unwrap(), 7);
    assert_eq!(runs.load(Ordering::SeqCst), 1);
}

/// Holds: Future/DefaultMethods.testRunningTask
pub fn a_task_is_not_finished_before_it_has_run(start: &Start) {
    let (mut handle, gate) = held_back(*start);
    assert!(handle.is_started() && !handle.is_finished() && !handle.is_cancelled());
    assert!(handle.try_join().is_none());
    gate.open();
    assert_eq!(handle.join().unwrap(), 7);
}

/// Holds: Future/DefaultMethods.testCompletedTask1, Future/DefaultMethods.testCompletedTask2
pub fn a_unit_value_is_a_value(start: &Start) {
    let (task, mut handle) = task::new(|| ());
    start(task);
    handle.wait().unwrap();
    assert!(matches!(handle.try_join(), Some(Ok(()))));
    assert!(handle.try_join().is_none(), "a value is taken once");
}

/// Holds: Future/DefaultMethods.testFailedTask
pub fn a_panic_is_the_outcome_and_is_delivered_once(start: &Start) {
    let (task, mut handle) = task::new(|| -> u32 { panic::panic_any(String::from("no grain")) });
    start(task);
    handle.wait().unwrap();
    assert!(handle.is_finished() && !handle.is_cancelled());
    assert!(!handle.cancel());
    let error = handle.try_join().unwrap().unwrap_err();
    assert_eq!(error.into_panic().unwrap().message(), Some("no grain"));
    assert!(handle.try_join().is_none());
}

/// Holds: FutureTaskTest.testTimedGet_ExecutionException2
pub fn a_timed_join_delivers_a_panic_too(start: &Start) {
    let (task, mut handle) = task::new(|| -> u32 { panic::panic_any("no grain") });
    start(task);
    let error = handle.join_timeout(delays::long()).unwrap_err();
    assert_eq!(error.into_panic().unwrap().message(), Some("no grain"));
}

/// Holds: Future/DefaultMethods.testCancelledTask1
pub fn a_task_cancelled_before_its_start_never_runs(start: &Start) {
    let sink = FailureSink::new();
    let (task, mut handle) = task::new(sink.checked(|| panic!("it ran")));
    assert!(handle.cancel());
    start(task);
    assert!(handle.is_finished() && handle.is_cancelled());
    assert!(!handle.cancel(), "one cancels once");
    assert!(matches!(
        handle.try_join(),
        Some(Err(TaskError::Cancelled(CancelReason::Requested)))
    ));
}

/// Holds: FutureTaskTest.testCancelBeforeRun2, Future/DefaultMethods.testCancelledTask2
pub fn a_task_interrupted_before_its_start_never_runs(start: &Start) {
    let sink = FailureSink::new();
    let (task, handle) = task::new(sink.checked(|| panic!("it ran")));
    assert!(handle.interrupt());
    start(task);
    assert!(!handle.interrupt());
    assert!(handle.is_finished() && handle.is_cancelled());
    assert!(handle.join().unwrap_err().is_cancelled());
}

/// A plain cancel of a finished task changes nothing.
pub fn cancelling_a_finished_task_fails(start: &Start) {
    let (task, mut handle) = task::new(|| 7);
    start(task);
    handle.wait().unwrap();
    assert!(!handle.cancel());
    assert_eq!(handle.join().unwrap(), 7);
}

/// Holds: FutureTaskTest.testCancelAfterRun2
pub fn interrupting_a_finished_task_fails_and_reaches_no_thread(start: &Start) {
    let (first, mut handle) = task::new(|| 7);
    start(first);
    handle.wait().unwrap();
    assert!(!handle.interrupt());
    let (next, reached) = task::new(interrupt::is_interrupted);
    start(next);
    assert!(!reached.join().unwrap(), "an interrupt hits one task only");
    assert_eq!(handle.join().unwrap(), 7);
}

/// Holds: FutureTaskTest.testCancelInterrupt
pub fn an_interrupt_stops_the_body_and_finishes_the_handle_at_once(start: &Start) {
    let sink = FailureSink::new();
    let (started, stopped) = (Latch::new(1), Gate::new());
    let (may_end, ended) = (Gate::new(), Latch::new(1));
    let body = {
        let (started, stopped, may_end) = (started.clone(), stopped.clone(), may_end.clone());
        let end = ended.clone();
        sink.checked(move || {
            started.arrive();
            assert!(interrupt::sleep(Duration::MAX).is_err());
            stopped.open();
            may_end.wait();
            assert!(!interrupt::is_interrupted(), "what is reported is cleared");
            end.arrive();
            7
        })
    };
    let (task, handle) = task::new(body);
    run_beside(*start, task);
    started.wait();
    assert!(handle.interrupt());
    assert!(handle.is_finished() && handle.is_cancelled());
    stopped.wait();
    let error = handle.join().unwrap_err();
    assert!(
        error.is_cancelled(),
        "the body still runs, its value is dropped"
    );
    may_end.open();
    ended.wait();
}

/// Holds: FutureTaskTest.testCancelNoInterrupt
pub fn a_cancel_lets_the_body_go_on_and_drops_its_value(start: &Start) {
    let (sink, count) = (FailureSink::new(), DropCount::new());
    let (started, gate, ended) = (Latch::new(1), Gate::new(), Latch::new(1));
    let value = count.token();
    let body = {
        let (started, gate) = (started.clone(), gate.clone());
        sink.checked(move || {
            started.arrive();
            gate.wait();
            assert!(!interrupt::is_interrupted());
            value
        })
    };
    let (task, handle) = task::new(body);
    let (runner, end) = (*start, ended.clone());
    std::thread::spawn(move || {
        runner(task);
        end.arrive();
    });
    started.wait();
    assert!(handle.cancel());
    assert!(handle.is_finished() && handle.is_cancelled());
    assert!(handle.join().unwrap_err().is_cancelled());
    gate.open();
    ended.wait();
    until("the late value is dropped", || count.alive() == 0);
}

/// A waiting thread learns of a cancel, whether it waits with a deadline or without.
pub fn a_cancelled_task_has_no_value_for_any_waiter(start: &Start) {
    let (handle, gate) = held_back(*start);
    let handle = handle.shared();
    let waiters = [None, Some(delays::longer())].map(|timeout| {
        let handle = handle.clone();
        Actor::start("waiter", move || {
            let joined = match timeout {
                None => handle.join().copied(),
                Some(timeout) => handle.join_timeout(timeout).copied(),
            };
            joined.unwrap_err().is_cancelled()
        })
    });
    for waiter in &waiters {
        waiter.await_parked("task.join");
    }
    assert!(handle.cancel());
    for waiter in waiters {
        assert!(waiter.finish());
    }
    gate.open();
}

/// Holds: FutureTaskTest.testGet_NegativeInfinityTimeout
/// Holds: jtreg FutureTask/Executors/ECS.FutureTask/NegativeTimeout
pub fn a_join_with_timeout_zero_times_out_at_once(start: &Start) {
    let (mut handle, gate) = held_back(*start);
    let watch = Stopwatch::start();
    for timeout in delays::instants() {
        assert!(handle.join_timeout(timeout).unwrap_err().is_timed_out());
    }
    watch.assert_prompt();
    gate.open();
    assert_eq!(handle.join().unwrap(), 7);
}

/// Holds: FutureTaskTest.testGet_TimeoutException
pub fn a_timed_join_waits_for_its_whole_timeout(start: &Start) {
    let (mut handle, gate) = held_back(*start);
    let watch = Stopwatch::start();
    let error = handle.join_timeout(delays::timeout()).unwrap_err();
    assert!(error.is_timed_out());
    watch.assert_at_least(delays::timeout());
    gate.open();
    assert_eq!(handle.join().unwrap(), 7, "the handle is as good as new");
}

/// The largest patiences mean for ever, and do not wrap around into the past.
pub fn a_join_with_the_largest_timeout_waits_for_the_value(start: &Start) {
    for timeout in delays::eternities() {
        let (mut handle, gate) = held_back(*start);
        let waiter = Actor::start("waiter", move || handle.join_timeout(timeout).unwrap());
        waiter.await_parked("task.join");
        gate.open();
        assert_eq!(waiter.finish(), 7);
    }
}

/// Holds: AbstractExecutorServiceTest.testInterruptedSubmit
/// Holds: ThreadPoolExecutorTest.testInterruptedSubmit
pub fn a_waiter_is_interrupted_and_the_task_goes_on(start: &Start) {
    let (mut handle, gate) = held_back(*start);
    let waiter = Actor::start("waiter", move || {
        assert!(handle.wait().is_err());
        handle
    });
    waiter.interrupt_at("task.join");
    let handle = waiter.finish();
    assert!(!handle.is_finished());
    gate.open();
    assert_eq!(handle.join().unwrap(), 7);
}

/// Holds: jtreg FutureTask/Executors/ECS.FutureTask/DoneMeansDone
/// Holds: jtreg FutureTask/Executors/ECS.FutureTask/DoneTimedGetLoops
pub fn done_means_done(start: &Start) {
    let start = *start;
    Stress::new("done_means_done").one_in(10).run(|round| {
        let (task, mut handle) = task::new(|| 7);
        let runner = round.actor("runner", move |rng| {
            rng.jitter();
            start(task);
        });
        let waiter = Actor::start_interrupted("waiter", move || {
            while !handle.is_finished() {
                std::thread::yield_now();
            }
            assert_eq!(handle.join_timeout(Duration::ZERO).unwrap(), 7);
            assert!(interrupt::check().is_err(), "success leaves the token set");
        });
        waiter.finish();
        runner.finish();
    });
}

/// Any number may wait for one task, in threads, with and without a deadline.
pub fn every_waiter_gets_the_outcome(start: &Start) {
    let (handle, gate) = held_back(*start);
    let handle = handle.shared();
    let waiters: Vec<_> = (0..4)
        .map(|number| {
            let handle = handle.clone();
            Actor::start("waiter", move || match number % 2 {
                0 => *handle.join().unwrap(),
                _ => *handle.join_timeout(delays::longer()).unwrap(),
            })
        })
        .collect();
    for waiter in &waiters {
        waiter.await_parked("task.join");
    }
    gate.open();
    for waiter in waiters {
        assert_eq!(waiter.finish(), 7);
    }
}

/// Earlier writes of the submitter are visible in the task, and the task's writes after the join.
pub fn writes_of_the_task_are_visible_after_the_join(start: &Start) {
    let start = *start;
    Stress::new("visible").one_in(10).run(|_| {
        let cell = Arc::new(AtomicUsize::new(0));
        cell.store(1, Ordering::Relaxed);
        let inside = Arc::clone(&cell);
        let (task, handle) = task::new(move || {
            assert_eq!(inside.load(Ordering::Relaxed), 1);
            inside.store(2, Ordering::Relaxed);
        });
        run_beside(start, task);
        handle.join().unwrap();
        assert_eq!(cell.load(Ordering::Relaxed), 2);
    });
}

/// A future that is polled twice is woken once, and not before there is something to see.
pub fn an_awaiting_future_is_woken_once(start: &Start) {
    let (handle, gate) = held_back(*start);
    let (bell, waker) = CountingWaker::new();
    let mut context = Context::from_waker(&waker);
    let mut future = pin!(handle);
    for _ in 0..2 {
        assert!(future.as_mut().poll(&mut context).is_pending());
    }
    assert_eq!(bell.count(), 0);
    gate.open();
    until("the bell rings", || bell.count() > 0);
    assert!(matches!(
        future.as_mut().poll(&mut context),
        Poll::Ready(Ok(7))
    ));
    assert_eq!(bell.count(), 1);
}

/// Holds: FutureTaskTest.testToString_incomplete, FutureTaskTest.testToString_normal
/// Holds: FutureTaskTest.testToString_exception, FutureTaskTest.testToString_cancelled
pub fn debug_text_shows_the_state(start: &Start) {
    let (task, mut handle) = TaskSpec::new().name("grind").build(|| 7);
    let text = format!("{handle:?}");
    assert!(text.contains("grind") && text.contains("queued"), "{text}");
    start(task);
    handle.wait().unwrap();
    let text = format!("{handle:?}");
    assert!(text.contains("completed"), "{text}");

    let (task, mut handle) = task::new(|| panic::panic_any("no grain"));
    start(task);
    handle.wait().unwrap();
    let text = format!("{handle:?}");
    assert!(text.contains("panicked"), "{text}");
    let error = handle.join().unwrap_err().to_string();
    assert_eq!(error, "the task panicked: no grain");

    for interrupts in [false, true] {
        let (_task, handle) = task::new(|| ());
        let _ = if interrupts {
            handle.interrupt()
        } else {
            handle.cancel()
        };
        let text = format!("{handle:?}");
        assert!(text.contains("cancelled"), "{text}");
    }
}

/// Closures, values and payloads are dropped once each, however the task ends.
pub fn tasks_and_values_are_dropped_once(start: &Start) {
    let count = DropCount::new();
    // Joined, not joined, panicked, cancelled, never started.
    for end in 0..5 {
        let (token, value) = (count.token(), count.token());
        let (task, mut handle) = task::new(move || {
            let _token = token;
            if end == 2 {
                panic::panic_any(value);
            }
            value
        });
        match end {
            3 => assert!(handle.cancel()),
            4 => {}
            _ => {}
        }
        if end == 4 {
            drop(task);
        } else {
            start(task);
        }
        handle.wait().unwrap();
        if end == 0 {
            drop(handle.join().unwrap());
        }
    }
    until("everything is dropped", || count.alive() == 0);
}

/// Every interleaving of run, join, cancel and timeout ends in exactly one outcome.
pub fn joins_race_with_runs_and_cancels_and_lose_nothing(start: &Start) {
    let start = *start;
    let count = Arc::new(DropCount::new());
    Stress::new("task race").one_in(4).run(|round| {
        let value = count.token();
        let (task, handle) = task::new(move || value);
        let handle = handle.shared();
        let canceller = handle.clone();
        let timeout = round.rng.timeout();
        let cancels = round.rng.once_in(2);
        let runner = round.actor("runner", move |rng| {
            rng.jitter();
            start(task);
        });
        let canceller = round.actor("canceller", move |rng| {
            rng.jitter();
            cancels && canceller.cancel()
        });
        if let Err(error) = handle.join_timeout(timeout) {
            assert!(error.is_timed_out() || error.is_cancelled());
        }
        let cancelled = canceller.finish();
        let joined = panic::catch_unwind(AssertUnwindSafe(|| handle.join().is_ok())).unwrap();
        assert_eq!(joined, !cancelled, "a cancel that succeeds is the outcome");
        runner.finish();
    });
    until("everything is dropped", || count.alive() == 0);
}
