//! Batches: all, any, in time or not, and callers that are interrupted.

use crate::executor_kit::{
    LONG, PerTask, Rejecting, Shelf, gate, interrupted_before, quiet_panic, signal,
};
use millpond::executor::{
    DirectExecutor, ExecutorExt, Failure, InvokeAllError, InvokeAnyError, Lifecycle, ThreadPerTask,
};
use millpond::interrupt::{self, Interrupted};
use millpond::task::{CancelReason, TaskError, TaskSpec};
use millpond::time::ManualClock;
use millpond_testkit::{DropCount, interrupt_at, watch};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::time::Duration;

type Closure<T> = Box<dyn FnOnce() -> T + Send>;

fn is_abandoned<T>(result: &Result<T, TaskError>) -> bool {
    matches!(result, Err(TaskError::Cancelled(CancelReason::Abandoned)))
}

#[test]
fn all_values_come_in_the_order_of_their_tasks() {
    let _watch = watch();
    let per_task = PerTask::of(8);
    let results = per_task
        .0
        .invoke_all((0..8).map(|n| move || n * n))
        .unwrap();
    let values: Vec<_> = results.into_iter().map(Result::unwrap).collect();
    assert_eq!(values, [0, 1, 4, 9, 16, 25, 36, 49]);
}

#[test]
fn all_of_nothing_is_nothing_whatever_the_timeout() {
    let _watch = watch();
    let none: [fn() -> u8; 0] = [];
    assert!(Rejecting.invoke_all(none).unwrap().is_empty());
    for timeout in [Duration::ZERO, Duration::MAX] {
        let results = Rejecting.invoke_all_timeout(none, timeout).unwrap();
        assert!(results.is_empty());
    }
}

#[test]
fn a_panic_is_in_its_own_slot_only() {
    let _watch = watch();
    let per_task = PerTask::of(3);
    let tasks: [Closure<u8>; 3] = [
        Box::new(|| 1),
        Box::new(|| quiet_panic("two")),
        Box::new(|| 3),
    ];
    let results = per_task.0.invoke_all_timeout(tasks, LONG).unwrap();
    assert!(matches!(results[0], Ok(1)));
    assert!(
        matches!(&results[1], Err(TaskError::Panicked(panic)) if panic.message() == Some("two"))
    );
    assert!(matches!(results[2], Ok(3)));
}

/// The result of `invoke` for two tasks that sleep, whose deadline comes when both have started. Demands that both
/// were interrupted.
fn at_the_deadline<T: Clone + Send + 'static, R>(
    value: T,
    invoke: impl FnOnce(&ThreadPerTask, [Closure<T>; 2], Duration) -> R,
) -> R {
    let hand = ManualClock::new();
    let threads = ThreadPerTask::builder("timed", 2)
        .clock(hand.clock())
        .build()
        .unwrap();
    let (told, tell) = mpsc::channel();
    let (started, start) = signal();
    let tasks = [(); 2].map(|()| {
        let (told, started, value) = (told.clone(), started.clone(), value.clone());
        let body = move || {
            started.send(()).unwrap();
            told.send(interrupt::sleep(LONG)).unwrap();
            value
        };
        Box::new(body) as Closure<T>
    });
    let mover = std::thread::spawn({
        let hand = hand.clone();
        move || {
            start.wait();
            start.wait();
            while hand.sleepers() == 0 {
                std::thread::yield_now();
            }
            hand.advance(Duration::from_secs(1));
        }
    });
    let result = invoke(&threads, tasks, Duration::from_secs(1));
    mover.join().unwrap();
    for _ in 0..2 {
        assert_eq!(tell.recv_timeout(LONG).unwrap(), Err(Interrupted));
    }
    threads.close().unwrap();
    result
}

#[test]
fn at_the_deadline_running_tasks_are_interrupted() {
    let _watch = watch();
    let results = at_the_deadline(7, |threads, tasks, timeout| {
        threads.invoke_all_timeout(tasks, timeout).unwrap()
    });
    assert_eq!(results.len(), 2);
    assert!(results.iter().all(is_abandoned));
}

#[test]
fn a_task_that_finished_in_time_keeps_its_value_though_another_did_not() {
    let _watch = watch();
    let hand = ManualClock::new();
    let shelf = Shelf::with_room(1);
    let (ready, is_ready) = signal();
    #[derive(Debug)]
    struct First(Arc<Shelf>, ManualClock, AtomicUsize);
    impl millpond::executor::Executor for First {
        fn execute_task(
            &self,
            task: millpond::task::Task,
        ) -> Result<(), millpond::executor::Rejected<millpond::task::Task>> {
            match self.2.fetch_add(1, Ordering::SeqCst) {
                0 => DirectExecutor::new().execute_task(task),
                _ => self.0.execute_task(task),
            }
        }

        fn clock(&self) -> millpond::time::Clock {
            self.1.clock()
        }
    }
    let executor = First(shelf, hand.clone(), AtomicUsize::new(0));
    let mover = std::thread::spawn(move || {
        is_ready.wait();
        while hand.sleepers() == 0 {
            std::thread::yield_now();
        }
        hand.advance(Duration::from_secs(1));
    });
    let tasks: [Closure<u8>; 2] = [
        Box::new(move || {
            ready.send(()).unwrap();
            1
        }),
        Box::new(|| 2),
    ];
    let results = executor
        .invoke_all_timeout(tasks, Duration::from_secs(1))
        .unwrap();
    mover.join().unwrap();
    assert!(matches!(results[0], Ok(1)));
    assert!(is_abandoned(&results[1]));
}

#[test]
fn after_the_deadline_nothing_more_is_submitted() {
    let _watch = watch();
    let hand = ManualClock::new();
    let ran = Arc::new(AtomicUsize::new(0));
    let executor = DirectExecutor::new().clock(hand.clock());
    let tasks = (0..4).map(|n| {
        let (ran, hand) = (Arc::clone(&ran), hand.clone());
        move || {
            ran.fetch_add(1, Ordering::SeqCst);
            if n == 1 {
                hand.advance(Duration::from_secs(1));
            }
            n
        }
    });
    let results = executor
        .invoke_all_timeout(tasks, Duration::from_secs(1))
        .unwrap();
    assert_eq!(ran.load(Ordering::SeqCst), 2);
    assert!(matches!(results[..2], [Ok(0), Ok(1)]));
    assert!(results[2..].iter().all(is_abandoned));
}

#[test]
fn a_rejection_in_the_middle_cancels_the_others() {
    let _watch = watch();
    let shelf = Shelf::with_room(2);
    let drops = DropCount::new();
    let tasks = (0..3).map(|_| {
        let token = drops.token();
        move || drop(token)
    });
    let error = shelf.invoke_all(tasks).unwrap_err();
    assert!(matches!(error, InvokeAllError::Rejected(reason) if reason.is_saturated()));
    assert_eq!(drops.dropped(), 3);
    assert!(shelf.take().iter().all(|task| task.is_gone()));
}

#[test]
fn an_iterator_that_panics_cancels_what_it_gave() {
    let _watch = watch();
    let shelf = Shelf::with_room(9);
    let tasks = (0..3).map(|n| {
        if n == 2 {
            quiet_panic("no more");
        }
        move || n
    });
    let panicked =
        std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| shelf.invoke_all(tasks)));
    assert!(panicked.is_err());
    let left = shelf.take();
    assert_eq!(left.len(), 2);
    assert!(left.iter().all(|task| task.is_gone()));
}

#[test]
fn after_a_shutdown_batches_are_rejected() {
    let _watch = watch();
    let per_task = PerTask::of(1);
    per_task.0.shutdown();
    let all = per_task.0.invoke_all([|| 1]).unwrap_err();
    assert!(matches!(all, InvokeAllError::Rejected(reason) if reason.is_shut_down()));
    let any = per_task.0.invoke_any([|| Ok::<_, ()>(1)]).unwrap_err();
    assert!(matches!(any, InvokeAnyError::Rejected(reason) if reason.is_shut_down()));
}

#[test]
fn an_interrupted_caller_of_all_interrupts_running_tasks() {
    let _watch = watch();
    for timed in [false, true] {
        let per_task = PerTask::of(2);
        let (told, tell) = mpsc::channel();
        let tasks: Vec<_> = (0..2)
            .map(|_| {
                let told = told.clone();
                move || told.send(interrupt::sleep(LONG)).unwrap()
            })
            .collect();
        let executor = Arc::clone(&per_task.0);
        let name = if timed { "all-timed" } else { "all-untimed" };
        let (error, still) = interrupt_at(name, "task.join", move || {
            let error = if timed {
                executor.invoke_all_timeout(tasks, LONG).unwrap_err()
            } else {
                executor.invoke_all(tasks).unwrap_err()
            };
            (error, interrupt::is_interrupted())
        });
        assert!(matches!(error, InvokeAllError::Interrupted));
        assert!(!still, "reporting it clears it");
        drop(told);
        // One that had not begun to sleep never does; what slept is woken.
        for slept in tell.iter() {
            assert_eq!(slept, Err(Interrupted));
        }
    }
}

#[test]
fn a_caller_that_is_already_interrupted_submits_nothing() {
    let _watch = watch();
    let shelf = Shelf::with_room(9);
    let (all, still) = interrupted_before({
        let shelf = Arc::clone(&shelf);
        move || {
            let all = shelf.invoke_all([|| 1]);
            (all, interrupt::is_interrupted())
        }
    });
    assert!(matches!(all, Err(InvokeAllError::Interrupted)));
    assert!(!still, "reporting it clears it");
    assert!(shelf.take().is_empty());
    let any = interrupted_before(move || shelf.invoke_any([|| Ok::<_, ()>(1)]));
    assert!(matches!(any, Err(InvokeAnyError::Interrupted)));
}

#[test]
fn any_of_nothing_is_an_error_and_no_hang() {
    let _watch = watch();
    let none: [fn() -> Result<u8, ()>; 0] = [];
    assert!(matches!(
        DirectExecutor::new().invoke_any(none),
        Err(InvokeAnyError::Empty)
    ));
    assert!(matches!(
        DirectExecutor::new().invoke_any_timeout(none, LONG),
        Err(InvokeAnyError::Empty)
    ));
}

#[test]
fn any_returns_a_success_though_others_fail() {
    let _watch = watch();
    let per_task = PerTask::of(4);
    let tasks: [Closure<Result<u8, &str>>; 4] = [
        Box::new(|| Err("one")),
        Box::new(|| quiet_panic("two")),
        Box::new(|| Ok(3)),
        Box::new(|| Err("four")),
    ];
    assert_eq!(per_task.0.invoke_any(tasks).unwrap(), 3);
}

#[test]
fn any_waits_for_the_only_success_though_it_comes_last() {
    let _watch = watch();
    let per_task = PerTask::of(2);
    let (open, wait) = gate();
    let tasks: [Closure<Result<u8, &str>>; 2] = [
        Box::new(move || {
            wait();
            Ok(1)
        }),
        Box::new(move || {
            open.send(()).unwrap();
            Err("at once")
        }),
    ];
    assert_eq!(per_task.0.invoke_any_timeout(tasks, LONG).unwrap(), 1);
}

#[test]
fn any_reports_every_failure_if_all_fail() {
    let _watch = watch();
    let tasks: [Closure<Result<u8, &str>>; 3] = [
        Box::new(|| Err("one")),
        Box::new(|| quiet_panic("two")),
        Box::new(|| Err("three")),
    ];
    let error = DirectExecutor::new()
        .invoke_any_timeout(tasks, LONG)
        .unwrap_err();
    assert_eq!(error.to_string(), "all 3 tasks failed, the last one: three");
    let InvokeAnyError::AllFailed(failures) = error else {
        panic!("{error}");
    };
    assert!(matches!(failures[0], Failure::Returned("one")));
    assert!(matches!(
        &failures[1],
        Failure::Task(TaskError::Panicked(_))
    ));
    assert!(matches!(failures[2], Failure::Returned("three")));
}

#[test]
fn any_submits_no_more_after_a_success() {
    let _watch = watch();
    let submitted = AtomicUsize::new(0);
    let tasks = (0..9).map(|n| {
        submitted.fetch_add(1, Ordering::SeqCst);
        move || if n == 1 { Ok(n) } else { Err(n) }
    });
    assert_eq!(DirectExecutor::new().invoke_any(tasks).unwrap(), 1);
    assert_eq!(submitted.load(Ordering::SeqCst), 2);
}

#[test]
fn the_first_success_stops_the_others() {
    let _watch = watch();
    let per_task = PerTask::of(2);
    let (told, tell) = mpsc::channel();
    let (started, start) = signal();
    let tasks: [Closure<Result<u8, ()>>; 2] = [
        Box::new(move || {
            started.send(()).unwrap();
            told.send(interrupt::sleep(LONG)).unwrap();
            Err(())
        }),
        Box::new(move || {
            start.wait();
            Ok(2)
        }),
    ];
    assert_eq!(per_task.0.invoke_any(tasks).unwrap(), 2);
    assert_eq!(tell.recv_timeout(LONG).unwrap(), Err(Interrupted));
}

#[test]
fn any_out_of_time_cancels_all() {
    let _watch = watch();
    let error = at_the_deadline(Err::<u8, ()>(()), |threads, tasks, timeout| {
        threads.invoke_any_timeout(tasks, timeout).unwrap_err()
    });
    assert!(matches!(error, InvokeAnyError::TimedOut));
}

#[test]
fn an_interrupted_caller_of_any_interrupts_running_tasks() {
    let _watch = watch();
    let per_task = PerTask::of(1);
    let (told, tell) = mpsc::channel();
    let executor = Arc::clone(&per_task.0);
    let error = interrupt_at("any-caller", "executor.invoke_any", move || {
        executor
            .invoke_any([move || {
                told.send(interrupt::sleep(LONG)).unwrap();
                Err::<u8, _>(())
            }])
            .unwrap_err()
    });
    assert!(matches!(error, InvokeAnyError::Interrupted));
    if let Ok(slept) = tell.recv_timeout(LONG) {
        assert_eq!(slept, Err(Interrupted));
    }
}

#[test]
fn a_rejected_candidate_does_not_cancel_the_others() {
    let _watch = watch();
    let per_task = PerTask::of(1);
    let (open, wait) = gate();
    let tasks: [Closure<Result<u8, ()>>; 2] = [
        Box::new(move || {
            wait();
            Ok(1)
        }),
        Box::new(|| Ok(2)),
    ];
    let opener = std::thread::spawn(move || open.send(()).unwrap());
    // The second finds the one thread taken, or free again; either way there is a success.
    assert!(per_task.0.invoke_any(tasks).is_ok());
    opener.join().unwrap();
}

#[test]
fn a_stop_releases_the_callers_of_batches() {
    let _watch = watch();
    for _ in 0..100 {
        let threads = Arc::new(ThreadPerTask::builder("stop", 8).build().unwrap());
        let callers = [
            std::thread::spawn({
                let threads = Arc::clone(&threads);
                move || {
                    let tasks = (0..3).map(|_| || interrupt::sleep(LONG));
                    match threads.invoke_all(tasks) {
                        Err(InvokeAllError::Rejected(reason)) => assert!(reason.is_shut_down()),
                        Err(other) => panic!("{other}"),
                        Ok(results) => assert_eq!(results.len(), 3),
                    }
                }
            }),
            std::thread::spawn({
                let threads = Arc::clone(&threads);
                move || {
                    let tasks = (0..3).map(|_| || interrupt::sleep(LONG));
                    threads.invoke_any(tasks).unwrap_err();
                }
            }),
        ];
        drop(threads.shutdown_now());
        for caller in callers {
            caller.join().unwrap();
        }
        assert_eq!(threads.await_termination_timeout(LONG), Ok(true));
    }
}

/// The candidates have the deadline of the task around them.
#[test]
fn a_candidate_that_runs_past_the_deadline_of_its_caller_succeeds_and_an_expired_one_is_not_run() {
    let _watch = watch();
    let hand = ManualClock::new();
    let threads = ThreadPerTask::builder("mill", 2).clock(hand.clock());
    let threads = threads.build().unwrap();
    let spec = TaskSpec::new().clock(hand.clock());
    let spec = spec.deadline(hand.clock().deadline(Duration::from_secs(5)));
    let (task, handle) = spec.build(move || {
        let own = hand.clone();
        let slow = move || {
            own.advance(Duration::from_secs(6));
            Ok::<_, String>("bread")
        };
        let bread = threads.invoke_any([slow]);
        (bread, threads.invoke_any([|| Ok::<_, String>("stale")]))
    });
    task.run();
    let (bread, stale) = handle.join().unwrap();
    assert_eq!(bread.unwrap(), "bread");
    let Err(InvokeAnyError::AllFailed(failures)) = stale else {
        panic!("{stale:?}");
    };
    assert!(
        matches!(&failures[..], [Failure::Task(error)] if error.is_cancelled()),
        "{failures:?}"
    );
}
