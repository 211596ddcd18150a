//! What every executor does, also one that runs everything in its caller.

use crate::kit::{Actor, DropCount, Stopwatch, delays, until};
use millpond::executor::{Executor, ExecutorExt, Failure, InvokeAllError, InvokeAnyError};
use millpond::interrupt;
use millpond::task::TaskError;
use std::panic::panic_any;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// Makes an executor.
pub type Make = fn() -> Arc<dyn Executor>;

/// Tests of an executor, made by a [`Make`].
#[macro_export]
macro_rules! executor_suite {
    ($make:expr) => {
        $crate::bodies! { executor, ($make as $crate::suites::executor::Make);
            an_action_is_run_once
            a_value_goes_to_the_thread_that_joins
            an_action_is_done_when_it_has_run
            an_action_with_a_preset_value_gives_that_value
            a_panic_is_found_on_the_handle
            a_panic_costs_the_executor_nothing
            all_of_nothing_is_nothing
            all_come_back_finished_in_the_order_of_the_tasks
            one_that_fails_among_all_fails_alone
            any_of_nothing_is_an_error
            any_is_one_that_succeeds
            any_fails_when_all_fail_and_says_why
            a_timed_any_that_fails_reports_failures_and_not_a_timeout
            batches_end_at_once_for_an_interrupted_caller
            closures_are_dropped_once
        }
    };
}

/// Every timeout that there is: none, nearly none, and for ever.
fn patiences() -> impl Iterator<Item = Duration> {
    delays::instants().into_iter().chain(delays::eternities())
}

/// Holds: AbstractExecutorServiceTest.testExecuteRunnable, ExecutorService/SubmitTest.testExecute
/// Holds: ThreadPoolExecutorTest.testExecute, ThreadPoolExecutorSubclassTest.testExecute
pub fn an_action_is_run_once(make: &Make) {
    let executor = make();
    let runs = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&runs);
    executor
        .execute(move || {
            counted.fetch_add(1, Ordering::SeqCst);
        })
        .unwrap();
    until("it has run", || runs.load(Ordering::SeqCst) > 0);
    executor.submit(|| ()).unwrap().join().unwrap();
    assert_eq!(runs.load(Ordering::SeqCst), 1);
}

/// Holds: AbstractExecutorServiceTest.testSubmitCallable
/// Holds: ExecutorService/SubmitTest.testSubmitCallable
/// Holds: ThreadPoolExecutorTest.testSubmitCallable
/// Holds: ThreadPoolExecutorSubclassTest.testSubmitCallable
/// Holds: ScheduledExecutorTest.testSubmitCallable, ScheduledExecutorSubclassTest.testSubmitCallable
pub fn a_value_goes_to_the_thread_that_joins(make: &Make) {
    let handle = make().submit(|| "flour").unwrap();
    assert_eq!(handle.join().unwrap(), "flour");
}

/// Holds: AbstractExecutorServiceTest.testSubmitRunnable
/// Holds: ExecutorService/SubmitTest.testSubmitRunnable
/// Holds: ThreadPoolExecutorTest.testSubmitRunnable
/// Holds: ThreadPoolExecutorSubclassTest.testSubmitRunnable
/// Holds: ScheduledExecutorTest.testSubmitRunnable, ScheduledExecutorSubclassTest.testSubmitRunnable
pub fn an_action_is_done_when_it_has_run(make: &Make) {
    let mut handle = make().submit(|| ()).unwrap();
    handle.wait().unwrap();
    assert!(handle.is_finished() && !handle.is_cancelled());
    handle.join().unwrap();
}

/// Holds: AbstractExecutorServiceTest.testSubmitRunnable2, ExecutorsTest.testCallable2
/// Holds: ThreadPoolExecutorSubclassTest.testSubmitRunnable2
/// Holds: ScheduledExecutorTest.testSubmitRunnable2, ScheduledExecutorSubclassTest.testSubmitRunnable2
pub fn an_action_with_a_preset_value_gives_that_value(make: &Make) {
    let action = || drop(String::from("grain"));
    let handle = make()
        .submit(move || {
            action();
            "preset"
        })
        .unwrap();
    assert_eq!(handle.join().unwrap(), "preset");
}

/// Holds: AbstractExecutorServiceTest.testSubmitEE
pub fn a_panic_is_found_on_the_handle(make: &Make) {
    let handle = make().submit(|| panic_any("no grain")).unwrap();
    let panic = handle.join().unwrap_err().into_panic().unwrap();
    assert_eq!(panic.message(), Some("no grain"));
}

/// Ten tasks that panic, and the eleventh runs.
pub fn a_panic_costs_the_executor_nothing(make: &Make) {
    let executor = make();
    for _ in 0..10 {
        let _ = executor.submit(|| panic_any("no grain")).unwrap().join();
    }
    let detached = executor.execute(|| panic_any("nobody waits"));
    assert!(detached.is_ok());
    // One that is busy with the panic may have to end first.
    let joined = loop {
        match executor.submit(|| 11) {
            Ok(handle) => break handle.join().unwrap(),
            Err(rejected) => assert!(rejected.reason.is_saturated()),
        }
    };
    assert_eq!(joined, 11);
}

/// Holds: AbstractExecutorServiceTest.testInvokeAll2, AbstractExecutorServiceTest.testTimedInvokeAll2
/// Holds: ExecutorService/InvokeTest.testInvokeAllEmpty1
/// Holds: ThreadPoolExecutorTest.testTimedInvokeAll2
/// Holds: ThreadPoolExecutorSubclassTest.testInvokeAll2, ThreadPoolExecutorSubclassTest.testTimedInvokeAll2
/// Holds: ScheduledExecutorTest.testInvokeAll2, ScheduledExecutorSubclassTest.testInvokeAll2
/// Holds: ScheduledExecutorTest.testTimedInvokeAll2, ScheduledExecutorSubclassTest.testTimedInvokeAll2
pub fn all_of_nothing_is_nothing(make: &Make) {
    let executor = make();
    let nothing: [fn(); 0] = [];
    assert!(executor.invoke_all(nothing).unwrap().is_empty());
    for timeout in patiences() {
        let results = executor.invoke_all_timeout(nothing, timeout).unwrap();
        assert!(results.is_empty());
    }
}

/// Holds: AbstractExecutorServiceTest.testInvokeAll5, AbstractExecutorServiceTest.testTimedInvokeAll5
/// Holds: ExecutorService/InvokeTest.testInvokeAll1, ExecutorService/InvokeTest.testInvokeAll3
/// Holds: ThreadPoolExecutorSubclassTest.testInvokeAll5, ThreadPoolExecutorSubclassTest.testTimedInvokeAll5
/// Holds: ScheduledExecutorTest.testTimedInvokeAll5
pub fn all_come_back_finished_in_the_order_of_the_tasks(make: &Make) {
    let executor = make();
    let tasks = || (0..3).map(|number| move || number * number);
    let squares = executor.invoke_all(tasks()).unwrap();
    let squares: Vec<i32> = squares.into_iter().map(Result::unwrap).collect();
    assert_eq!(squares, [0, 1, 4]);
    for timeout in [delays::long(), Duration::MAX] {
        let timed = make().invoke_all_timeout(tasks(), timeout).unwrap();
        let timed: Vec<i32> = timed.into_iter().map(Result::unwrap).collect();
        assert_eq!(timed, squares);
    }
}

/// Holds: AbstractExecutorServiceTest.testInvokeAll4, AbstractExecutorServiceTest.testTimedInvokeAll4
/// Holds: ExecutorService/InvokeTest.testInvokeAll2
/// Holds: ThreadPoolExecutorTest.testInvokeAll4, ThreadPoolExecutorSubclassTest.testTimedInvokeAll4
/// Holds: ScheduledExecutorTest.testInvokeAll4, ScheduledExecutorSubclassTest.testInvokeAll4
/// Holds: ScheduledExecutorTest.testTimedInvokeAll4, ScheduledExecutorSubclassTest.testTimedInvokeAll4
pub fn one_that_fails_among_all_fails_alone(make: &Make) {
    for timeout in [Duration::MAX, delays::long()] {
        let tasks = (0..3).map(|number| {
            move || {
                if number != 1 {
                    panic_any(format!("task {number}"));
                }
                number
            }
        });
        let results = make().invoke_all_timeout(tasks, timeout).unwrap();
        let told: Vec<String> = results
            .into_iter()
            .map(|result| match result {
                Ok(value) => value.to_string(),
                Err(error) => error.into_panic().unwrap().message().unwrap().to_owned(),
            })
            .collect();
        assert_eq!(told, ["task 0", "1", "task 2"]);
    }
}

/// Holds: AbstractExecutorServiceTest.testInvokeAny2, AbstractExecutorServiceTest.testTimedInvokeAny2
/// Holds: ExecutorService/InvokeTest.testInvokeAnyEmpty1
/// Holds: ExecutorService/InvokeTest.testInvokeAnyEmpty2
/// Holds: ThreadPoolExecutorTest.testInvokeAny2, ThreadPoolExecutorTest.testTimedInvokeAny2
/// Holds: ThreadPoolExecutorSubclassTest.testInvokeAny2, ThreadPoolExecutorSubclassTest.testTimedInvokeAny2
/// Holds: ScheduledExecutorTest.testInvokeAny2, ScheduledExecutorSubclassTest.testInvokeAny2
/// Holds: ScheduledExecutorTest.testTimedInvokeAny2, ScheduledExecutorSubclassTest.testTimedInvokeAny2
pub fn any_of_nothing_is_an_error(make: &Make) {
    let executor = make();
    let nothing: [fn() -> Result<(), &'static str>; 0] = [];
    let error = executor.invoke_any(nothing).unwrap_err();
    assert!(matches!(error, InvokeAnyError::Empty));
    assert!(error.to_string().contains("give at least one"));
    for timeout in patiences() {
        let error = executor.invoke_any_timeout(nothing, timeout).unwrap_err();
        assert!(matches!(error, InvokeAnyError::Empty));
    }
}

/// Holds: AbstractExecutorServiceTest.testInvokeAny5, AbstractExecutorServiceTest.testTimedInvokeAny5
/// Holds: ExecutorService/InvokeTest.testInvokeAny1, ExecutorService/InvokeTest.testInvokeAny5
/// Holds: ExecutorService/InvokeTest.testInvokeAnyWithTimeout1
/// Holds: ThreadPoolExecutorTest.testTimedInvokeAny5, ThreadPoolExecutorSubclassTest.testInvokeAny5
/// Holds: ScheduledExecutorTest.testInvokeAny5
/// Holds: ScheduledExecutorTest.testTimedInvokeAny5, ScheduledExecutorSubclassTest.testTimedInvokeAny5
pub fn any_is_one_that_succeeds(make: &Make) {
    let tasks = || {
        (0..3).map(|number| {
            move || match number {
                0 => Err("returned"),
                1 => panic_any("panicked"),
                _ => Ok("flour"),
            }
        })
    };
    assert_eq!(make().invoke_any(tasks()).unwrap(), "flour");
    let watch = Stopwatch::start();
    let timed = make().invoke_any_timeout(tasks(), delays::longer());
    assert_eq!(timed.unwrap(), "flour");
    watch.assert_prompt();
    let all_good = (0..3).map(|number| move || Ok::<_, &str>(number));
    assert!((0..3).contains(&make().invoke_any(all_good).unwrap()));
}

/// Holds: AbstractExecutorServiceTest.testInvokeAny4, ExecutorService/InvokeTest.testInvokeAny3
/// Holds: ThreadPoolExecutorTest.testInvokeAny4, ThreadPoolExecutorSubclassTest.testInvokeAny4
/// Holds: ScheduledExecutorTest.testInvokeAny4
pub fn any_fails_when_all_fail_and_says_why(make: &Make) {
    let tasks = (0..3).map(|number| {
        move || match number {
            0 => panic_any("panicked"),
            _ => Err::<(), _>(number),
        }
    });
    let InvokeAnyError::AllFailed(failures) = make().invoke_any(tasks).unwrap_err() else {
        panic!("they all failed");
    };
    let mut told: Vec<String> = failures
        .iter()
        .map(|failure| match failure {
            Failure::Returned(number) => format!("returned {number}"),
            Failure::Task(TaskError::Panicked(panic)) => panic.message().unwrap().to_owned(),
            other => panic!("{other:?}"),
        })
        .collect();
    told.sort();
    assert_eq!(told, ["panicked", "returned 1", "returned 2"]);
}

/// Holds: AbstractExecutorServiceTest.testTimedInvokeAny4
/// Holds: ScheduledExecutorTest.testTimedInvokeAny4, ScheduledExecutorSubclassTest.testTimedInvokeAny4
pub fn a_timed_any_that_fails_reports_failures_and_not_a_timeout(make: &Make) {
    let watch = Stopwatch::start();
    let tasks = [|| Err::<(), _>("no grain")];
    let error = make()
        .invoke_any_timeout(tasks, delays::longer())
        .unwrap_err();
    watch.assert_prompt();
    assert!(matches!(error, InvokeAnyError::AllFailed(failures) if failures.len() == 1));
}

/// Holds: ExecutorService/InvokeTest.testInvokeAnyWithInterruptSet
/// Holds: ExecutorService/InvokeTest.testInvokeAllInterrupt1
pub fn batches_end_at_once_for_an_interrupted_caller(make: &Make) {
    let make = *make;
    let caller = Actor::start_interrupted("caller", move || {
        let error = make().invoke_all([|| ()]).unwrap_err();
        assert!(matches!(error, InvokeAllError::Interrupted));
        interrupt::is_interrupted()
    });
    assert!(!caller.finish(), "what is reported is cleared");
    let caller = Actor::start_interrupted("caller", move || {
        let error = make().invoke_any([|| Ok::<_, ()>(())]).unwrap_err();
        assert!(matches!(error, InvokeAnyError::Interrupted));
        interrupt::is_interrupted()
    });
    assert!(!caller.finish(), "what is reported is cleared");
}

/// Closures and values, run or rejected, joined or not.
pub fn closures_are_dropped_once(make: &Make) {
    let count = DropCount::new();
    let executor = make();
    for _ in 0..10 {
        let token = count.token();
        match executor.submit(move || token) {
            Ok(mut handle) => handle.wait().unwrap(),
            Err(rejected) => drop(rejected.task),
        }
    }
    drop(executor);
    until("all are dropped", || count.alive() == 0);
}
