//! Tasks that run once.

use crate::kit::{Bench, HOUR, SECOND};
use millpond::executor::Lifecycle;
use millpond::schedule::Scheduled;
use millpond::task::{CancelReason, TaskError, TaskLocal, TaskSpec};
use millpond::time::Deadline;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

#[test]
fn a_task_runs_when_it_is_due_and_not_before() {
    let bench = Bench::new();
    let mut bread = bench.timers.schedule(3 * SECOND, || "bread").unwrap();
    bench.pass(2);
    assert!(!bread.is_finished());
    assert_eq!((bread.runs(), bread.lateness()), (0, None));
    bench.pass(1);
    assert_eq!((bread.runs(), bread.lateness()), (1, Some(Duration::ZERO)));
    assert_eq!(bread.next_run(), Deadline::NEVER);
    assert_eq!(bread.join().unwrap(), "bread");
}

#[test]
fn a_task_that_is_cancelled_while_it_runs_has_begun_once_and_one_that_waits_has_not() {
    let bench = Bench::new();
    let (send, receive) = std::sync::mpsc::channel::<Scheduled<()>>();
    let (tell, told) = std::sync::mpsc::channel();
    let body = move || {
        let own = receive.recv().unwrap();
        let before = own.runs();
        assert!(own.cancel());
        tell.send((before, own.runs(), own)).unwrap();
    };
    let runs = bench.timers.schedule(SECOND, body).unwrap();
    send.send(runs).unwrap();
    let waits = bench.timers.schedule(HOUR, || ()).unwrap();
    assert!(waits.cancel());
    bench.pass(1);
    let (before, then, own) = told.recv().unwrap();
    assert_eq!((before, then, own.runs()), (1, 1, 1));
    assert_eq!((bench.timers.snapshot().runs, waits.runs()), (1, 0));
    assert!(own.is_cancelled() && waits.is_cancelled());
}

#[test]
fn what_is_due_comes_in_the_order_of_its_time_and_then_of_its_coming() {
    let bench = Bench::new();
    for (name, seconds) in [("e", 9), ("b", 5), ("c", 5), ("a", 2), ("d", 5)] {
        let diary = bench.diary.clone();
        let note = move || diary.note(name);
        bench.timers.schedule(seconds * SECOND, note).unwrap();
    }
    bench.manual.advance(HOUR);
    assert_eq!(bench.diary.words(), ["a", "b", "c", "d", "e"]);
}

#[test]
fn a_flood_that_is_due_at_once_comes_whole_and_in_order() {
    let bench = Bench::new();
    let numbers: Vec<String> = (0..5_000).map(|number| format!("{number}")).collect();
    for number in numbers.clone() {
        let diary = bench.diary.clone();
        bench
            .timers
            .schedule(SECOND, move || diary.note(&number))
            .unwrap();
    }
    bench.pass(1);
    assert_eq!(bench.diary.words(), numbers);
}

#[test]
fn a_task_without_delay_runs_at_once() {
    let bench = Bench::new();
    let now = bench.timers.schedule(Duration::ZERO, || 7).unwrap();
    assert!(now.is_finished());
    let past = bench.manual.clock().now() - HOUR;
    let mut late = bench.timers.schedule_at(past, || 8).unwrap();
    assert!(late.is_finished());
    assert!(late.lateness().is_some());
    assert_eq!((now.join().unwrap(), late.join().unwrap()), (7, 8));
}

#[test]
fn what_is_cancelled_leaves_at_once_and_frees_its_closure() {
    let bench = Bench::new();
    let owned = Arc::new(());
    let held = Arc::clone(&owned);
    let task = bench.timers.schedule(HOUR, move || drop(held)).unwrap();
    assert_eq!(bench.timers.snapshot().pending, 1);
    assert!(task.cancel());
    assert_eq!(Arc::strong_count(&owned), 1);
    let now = bench.timers.snapshot();
    assert_eq!((now.pending, now.cancelled, now.runs), (0, 1, 0));
    assert!(!task.cancel(), "it was cancelled before");
    assert!(task.join().unwrap_err().is_cancelled());
}

#[test]
fn what_expires_before_its_time_leaves_when_a_waiter_finds_out() {
    let bench = Bench::new();
    let at = |seconds| bench.manual.clock().deadline(seconds * SECOND);
    let sentinel = Arc::new(());
    let inside = Arc::clone(&sentinel);
    let spec = TaskSpec::new().deadline(at(3));
    let late = bench
        .timers
        .schedule_with(spec, at(5), move || drop(inside));
    let mut late = late.unwrap();
    bench.pass(4);
    assert_eq!(bench.timers.snapshot().pending, 1);
    let error = late.join_timeout(SECOND).unwrap_err();
    assert!(matches!(error, TaskError::Cancelled(CancelReason::Expired)));
    let now = bench.timers.snapshot();
    assert_eq!((now.pending, now.cancelled, now.runs), (0, 1, 0));
    assert_eq!(Arc::strong_count(&sentinel), 1);
}

#[test]
fn a_time_that_cannot_be_told_never_comes() {
    let bench = Bench::new();
    let never = bench.timers.schedule(Duration::MAX, || ()).unwrap();
    let soon = bench.timers.schedule(SECOND, || 1).unwrap();
    bench.manual.advance(Duration::from_secs(3_000_000_000));
    assert_eq!(soon.join().unwrap(), 1);
    assert!(!never.is_finished());
    assert_eq!(never.next_run(), Deadline::NEVER);
    assert!(never.cancel());
    assert_eq!(bench.timers.snapshot().pending, 0);
}

#[test]
fn a_list_of_what_is_to_come_is_in_order_and_names_things() {
    let bench = Bench::new();
    let at = |seconds| bench.manual.clock().deadline(seconds * SECOND);
    for (name, seconds) in [("later", 20), ("soon", 10)] {
        let spec = TaskSpec::new().name(name);
        bench
            .timers
            .schedule_with(spec, at(seconds), || ())
            .unwrap();
    }
    let beat = bench
        .timers
        .schedule_at_fixed_rate(15 * SECOND, 5 * SECOND, || ());
    let upcoming = bench.timers.upcoming(10);
    let labels: Vec<_> = upcoming.iter().map(|next| next.label.as_str()).collect();
    assert_eq!((labels[0], labels[2]), ("soon", "later"));
    assert!(labels[1].contains("once.rs"), "{labels:?}");
    assert_eq!(upcoming[1].repeats, "every 5s");
    assert_eq!(upcoming[0].due, at(10));
    assert_eq!(bench.timers.upcoming(2).len(), 2);
    assert_eq!(bench.timers.snapshot().upcoming, upcoming);
    assert!(beat.unwrap().cancel());
    drop(bench.timers.shutdown_now());
}

#[test]
fn a_schedule_that_is_full_gives_the_closure_back_and_says_so() {
    let bench = Bench::new();
    bench.timers.set_max_pending(2);
    let first = bench.timers.schedule(HOUR, || 1).unwrap();
    bench.timers.schedule(HOUR, || 2).unwrap();
    let rejected = bench.timers.schedule(HOUR, || 3).unwrap_err();
    assert!(rejected.reason.is_saturated());
    assert_eq!(
        rejected.to_string(),
        "the task was rejected: the schedule is full (2 wait for their time, 2 may): cancel what is no \
         longer needed, or allow more with max_pending"
    );
    assert_eq!((rejected.task)(), 3);
    first.cancel();
    bench.timers.schedule(HOUR, || 4).unwrap();
    // A pending task would wait for ever by a clock that is not advanced any more.
    drop(bench.timers.shutdown_now());
}

#[test]
fn a_panic_belongs_to_the_handle() {
    let bench = Bench::new();
    let broken = bench
        .timers
        .schedule(SECOND, || -> u32 { panic!("the dam broke") });
    let broken = broken.unwrap();
    bench.pass(1);
    assert_eq!(
        broken.join().unwrap_err().to_string(),
        "the task panicked: the dam broke"
    );
}

#[test]
fn a_handle_can_be_awaited() {
    let bench = Bench::new();
    let task = bench.timers.schedule(SECOND, || 7).unwrap();
    let mut task = Box::pin(task);
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    assert!(task.as_mut().poll(&mut context).is_pending());
    bench.pass(1);
    let std::task::Poll::Ready(value) = task.as_mut().poll(&mut context) else {
        panic!("it has run");
    };
    assert_eq!(value.unwrap(), 7);
}

#[test]
fn task_local_values_are_inherited_and_the_deadline_of_the_caller_is_not() {
    static ORDER: TaskLocal<u32> = TaskLocal::new();
    let bench = Bench::new();
    let timers = bench.timers.clone();
    let soon = bench.manual.clock().deadline(SECOND);
    let clock = bench.manual.clock();
    let (request, handle) = ORDER.scope(42, || {
        let spec = TaskSpec::new().deadline(soon).clock(clock);
        spec.build(move || timers.schedule(HOUR, || ORDER.get().map(|order| *order)))
    });
    request.run();
    let later = handle.join().unwrap().unwrap();
    bench.manual.advance(HOUR);
    assert_eq!(later.join().unwrap(), Some(42));
}

#[test]
fn how_late_tasks_begin_is_measured() {
    let bench = Bench::new();
    let mut late = bench.timers.schedule(SECOND, || ()).unwrap();
    bench.manual.advance(3 * SECOND);
    assert_eq!(late.lateness(), Some(2 * SECOND));
    let lateness = bench.timers.snapshot().lateness;
    assert_eq!((lateness.count(), lateness.total()), (1, 2 * SECOND));
}

#[test]
fn an_instant_that_a_caller_computes_is_kept_to_the_nanosecond() {
    let bench = Bench::new();
    let due = bench.manual.clock().now() + Duration::from_nanos(1_234_567_891);
    let task = bench.timers.schedule_at(due, || ()).unwrap();
    bench.manual.advance(Duration::from_nanos(1_234_567_890));
    assert!(!task.is_finished());
    assert_eq!(task.next_run(), Deadline::at(due));
    bench.manual.advance(Duration::from_nanos(1));
    assert!(task.is_finished());
}

#[test]
fn a_clone_is_the_same_pool_and_the_last_one_to_go_shuts_it_down() {
    let bench = Bench::new();
    let other = bench.timers.clone();
    let task = bench.timers.schedule(SECOND, || 7).unwrap();
    let Bench { timers, manual, .. } = bench;
    drop(timers);
    assert!(!other.is_shutdown());
    drop(other);
    manual.advance(SECOND);
    assert_eq!(task.join().unwrap(), 7, "what was accepted still runs");
}
