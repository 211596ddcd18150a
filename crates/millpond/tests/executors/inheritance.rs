//! Which deadline a task has that another one makes, and by which clock its own time runs.

use crate::executor_kit::Shelf;
use millpond::executor::{
    CompletionService, DirectExecutor, Executor, ExecutorExt, ScopeError, SerialExecutor,
    ThreadPerTask,
};
use millpond::pool::ThreadPool;
use millpond::schedule::ScheduledPool;
use millpond::task::{CancelReason, Task, TaskError, TaskSpec};
use millpond::time::{Clock, Deadline, ManualClock};
use millpond_testkit::watch;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::time::Duration;

const HOUR: Duration = Duration::from_secs(3600);

/// Runs `f` as the body of a task with this deadline.
fn inside_a_task(deadline: Deadline, f: impl FnOnce() + Send + 'static) {
    let spec = TaskSpec::new().name("request").deadline(deadline);
    let (task, handle) = spec.build(f);
    drop(task.run());
    handle.join().unwrap();
}

fn is_expired(error: &TaskError) -> bool {
    matches!(error, TaskError::Cancelled(CancelReason::Expired))
}

/// The deadlines of the tasks that `make` submits to an executor, inside a task that has a deadline.
fn deadlines_of(make: impl FnOnce(&Arc<Shelf>) + Send + 'static) -> (Deadline, Vec<Deadline>) {
    let deadline = Clock::system().deadline(HOUR);
    let shelf = Shelf::with_room(10);
    let own = Arc::clone(&shelf);
    inside_a_task(deadline, move || make(&own));
    let tasks = shelf.take();
    assert!(
        tasks.iter().all(|task| task.name() == Some("request")),
        "the name goes with what a task makes in any case"
    );
    (deadline, tasks.iter().map(Task::deadline).collect())
}

#[test]
fn a_task_without_a_handle_does_not_inherit_the_deadline_of_the_task_around_it() {
    let _watch = watch();
    let (_, deadlines) = deadlines_of(|shelf| {
        shelf.execute(|| ()).unwrap();
        shelf.execute_with(TaskSpec::new(), || ()).unwrap();
        shelf
            .execute_task(TaskSpec::new().build_detached(|| ()))
            .unwrap();
        let erased: Arc<dyn Executor> = Arc::clone(shelf) as Arc<dyn Executor>;
        erased.execute(|| ()).unwrap();
    });
    assert_eq!(deadlines, [Deadline::NEVER; 4]);
}

#[test]
fn a_task_with_a_handle_does_and_one_without_if_it_is_asked_to() {
    let _watch = watch();
    let (deadline, deadlines) = deadlines_of(|shelf| {
        drop(shelf.submit(|| ()).unwrap());
        drop(shelf.submit_with(TaskSpec::new(), || ()).unwrap());
        let asked = TaskSpec::new().inherit_deadline();
        shelf.execute_with(asked.clone(), || ()).unwrap();
        shelf.execute_task(asked.build_detached(|| ())).unwrap();
    });
    assert_eq!(deadlines, [deadline; 4]);
}

#[test]
fn a_task_without_a_handle_keeps_a_deadline_of_its_own() {
    let _watch = watch();
    let own = Clock::system().deadline(2 * HOUR);
    let (_, deadlines) = deadlines_of(move |shelf| {
        let spec = TaskSpec::new().deadline(own);
        shelf.execute_with(spec.clone(), || ()).unwrap();
        shelf.execute_task(spec.build_detached(|| ())).unwrap();
    });
    assert_eq!(deadlines, [own; 2]);
}

#[test]
fn what_a_task_without_a_handle_submits_has_no_deadline_either() {
    let _watch = watch();
    let deadline = Clock::system().deadline(HOUR);
    let (say, hear) = mpsc::channel();
    inside_a_task(deadline, move || {
        let inner = move || {
            let handle = DirectExecutor::new().submit(|| ()).unwrap();
            say.send(handle.deadline()).unwrap();
        };
        DirectExecutor::new().execute(inner).unwrap();
    });
    assert_eq!(hear.recv().unwrap(), Deadline::NEVER);
}

#[test]
fn the_unjoined_tasks_of_a_scope_run_after_the_deadline_of_the_task_around_it() {
    let _watch = watch();
    let hand = ManualClock::new();
    let (clock, deadline) = (hand.clock(), hand.clock().deadline(HOUR));
    let threads = ThreadPerTask::builder("scope", 8).clock(clock);
    let threads = threads.build().unwrap();
    let ran = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&ran);
    inside_a_task(deadline, move || {
        hand.advance(2 * HOUR);
        threads
            .scope(|s| {
                for _ in 0..3 {
                    s.execute(|| counted.fetch_add(1, Ordering::Relaxed))?;
                }
                let joined = s.submit(|| counted.fetch_add(1, Ordering::Relaxed))?;
                let late = joined.join().unwrap_err();
                assert!(is_expired(&late));
                Ok::<_, ScopeError>(())
            })
            .unwrap();
    });
    assert_eq!(ran.load(Ordering::Relaxed), 3);
}

#[test]
fn tasks_without_a_handle_that_a_serial_executor_has_accepted_run_after_the_deadline() {
    let _watch = watch();
    let (shelf, deadline) = (Shelf::with_room(10), Clock::system().deadline(HOUR));
    let serial = SerialExecutor::new(Arc::clone(&shelf)).key("audit");
    let own = serial.clone();
    let (say, hear) = mpsc::channel();
    inside_a_task(deadline, move || {
        own.execute(move || {
            let handle = DirectExecutor::new().submit(|| ()).unwrap();
            say.send(handle.deadline()).unwrap();
        })
        .unwrap();
    });
    shelf.run_all();
    assert_eq!(hear.recv().unwrap(), Deadline::NEVER);
}

/// Executors of each kind, by this clock. None of them runs the tasks of the test.
fn executors(clock: &Clock) -> Vec<(&'static str, Arc<dyn Executor>)> {
    let threads = ThreadPerTask::builder("clocks", 1).clock(clock.clone());
    let threads = Arc::new(threads.build().unwrap());
    let pool = || {
        let pool = ThreadPool::builder("clocks").max(1).clock(clock.clone());
        pool.build().unwrap()
    };
    let timed = ScheduledPool::owning(pool()).build();
    let serial = SerialExecutor::new(pool()).key(1);
    vec![
        ("threads", threads),
        ("pool", Arc::new(pool())),
        ("scheduled", Arc::new(timed)),
        ("serial", Arc::new(serial)),
    ]
}

#[test]
fn a_described_task_goes_by_the_clock_of_its_executor() {
    let _watch = watch();
    for at in 0..executors(&Clock::system()).len() {
        let hand = ManualClock::new();
        let (name, executor) = executors(&hand.clock()).remove(at);
        let (go, may_go) = mpsc::channel::<()>();
        let first = executor
            .submit(move || while may_go.recv().is_ok() {})
            .unwrap();
        let deadline = hand.clock().deadline(HOUR);
        let described = || TaskSpec::new().name("described").deadline(deadline);
        // No worker has started it when its deadline comes.
        let waits = name != "threads"; // there is no queue to wait in
        let handle = waits.then(|| executor.submit_with(described(), || 7).unwrap());
        let results = CompletionService::new(Arc::clone(&executor));
        if waits {
            results.submit_with(described(), || 8).unwrap();
        }
        hand.advance(2 * HOUR);
        if let Some(handle) = handle {
            let expired = handle.join().unwrap_err();
            assert!(is_expired(&expired), "{name}");
            let arrived = results.take().unwrap().result.unwrap_err();
            assert!(is_expired(&arrived), "{name}");
        }
        drop(go);
        first.join().unwrap();
    }
}

#[test]
fn the_timeouts_of_a_described_task_use_the_clock_of_its_executor() {
    let _watch = watch();
    let hand = ManualClock::new();
    for (name, executor) in executors(&hand.clock()) {
        let (go, may_go) = mpsc::channel::<()>();
        let spec = TaskSpec::new().name("described");
        let mut handle = executor
            .submit_with(spec, move || while may_go.recv().is_ok() {})
            .unwrap();
        // In real time nothing passes; by the manual clock a whole day.
        let tomorrow = hand.clock().deadline(24 * HOUR);
        hand.advance(24 * HOUR);
        let waited = handle.join_until(tomorrow);
        assert!(matches!(waited, Err(TaskError::TimedOut)), "{name}");
        drop(go);
        handle.join().unwrap();
    }
}

#[test]
fn a_described_task_of_a_scope_goes_by_the_clock_of_its_executor() {
    let _watch = watch();
    let hand = ManualClock::new();
    let shelf = ThreadPool::builder("scope").max(1).clock(hand.clock());
    let pool = shelf.build().unwrap();
    let deadline = hand.clock().deadline(HOUR);
    let (go, may_go) = mpsc::channel::<()>();
    pool.execute(move || while may_go.recv().is_ok() {})
        .unwrap();
    pool.scope(|s| {
        let spec = TaskSpec::new().name("described").deadline(deadline);
        let handle = s.submit_with(spec, || 7)?;
        hand.advance(2 * HOUR);
        let expired = handle.join().unwrap_err();
        assert!(is_expired(&expired));
        Ok::<_, ScopeError>(())
    })
    .unwrap();
    drop(go);
}

#[test]
fn a_described_task_without_a_handle_goes_by_the_clock_of_its_executor() {
    let _watch = watch();
    let hand = ManualClock::new();
    let pool = ThreadPool::builder("mill").max(1).clock(hand.clock());
    let pool = pool.build().unwrap();
    let ran = Arc::new(AtomicUsize::new(0));
    let (go, may_go) = mpsc::channel::<()>();
    pool.execute(move || while may_go.recv().is_ok() {})
        .unwrap();
    for hours in [1, 3] {
        let (ran, deadline) = (Arc::clone(&ran), hand.clock().deadline(hours * HOUR));
        let spec = TaskSpec::new().deadline(deadline);
        let count = move || {
            ran.fetch_add(1, Ordering::Relaxed);
        };
        pool.execute_with(spec, count).unwrap();
    }
    hand.advance(2 * HOUR);
    drop(go);
    millpond::executor::Lifecycle::close(&pool).unwrap();
    assert_eq!(ran.load(Ordering::Relaxed), 1);
    assert_eq!(pool.snapshot().expired, 1);
}

#[test]
fn a_clock_that_a_task_is_given_is_not_replaced_by_that_of_its_executor() {
    let _watch = watch();
    let (executors_hand, own_hand) = (ManualClock::new(), ManualClock::new());
    let threads = ThreadPerTask::builder("clocks", 1).clock(executors_hand.clock());
    let threads = threads.build().unwrap();
    for clock in [own_hand.clock(), Clock::system()] {
        let (go, may_go) = mpsc::channel::<()>();
        let spec = TaskSpec::new().clock(clock.clone());
        let mut handle = threads
            .submit_with(spec, move || while may_go.recv().is_ok() {})
            .unwrap();
        executors_hand.advance(HOUR);
        own_hand.advance(HOUR);
        let waited = handle.join_until(Deadline::at(clock.now()));
        assert!(matches!(waited, Err(TaskError::TimedOut)));
        drop(go);
        handle.join().unwrap();
    }
}
