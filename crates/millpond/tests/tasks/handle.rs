//! What a task's handle promises, on real threads and a manual clock.

use millpond::interrupt;
use millpond::task::{self, CancelReason, TaskError, TaskSpec};
use millpond::time::ManualClock;
use millpond_testkit::watch;
use std::future::Future;
use std::pin::pin;
use std::sync::mpsc;
use std::sync::{Arc, Weak};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

/// A thread that runs the task, once it may.
fn run_when_told(task: task::Task) -> (mpsc::Sender<()>, std::thread::JoinHandle<()>) {
    let (tell, told) = mpsc::channel();
    let runner = std::thread::spawn(move || {
        let _ = told.recv();
        drop(task.run());
    });
    (tell, runner)
}

#[test]
fn a_value_is_joined_from_another_thread() {
    let _watch = watch();
    let (task, handle) = task::new(|| vec![1, 2, 3]);
    let (tell, runner) = run_when_told(task);
    tell.send(()).unwrap();
    assert_eq!(handle.join().unwrap(), [1, 2, 3]);
    runner.join().unwrap();
}

#[test]
fn joining_an_unfinished_task_with_timeout_zero_times_out_at_once() {
    let _watch = watch();
    let (_task, mut handle) = task::new(|| ());
    assert!(
        handle
            .join_timeout(Duration::ZERO)
            .unwrap_err()
            .is_timed_out()
    );
    assert!(handle.try_join().is_none());
}

#[test]
fn a_time_out_leaves_the_handle_as_good_as_new() {
    let _watch = watch();
    let hand = ManualClock::new();
    let (task, mut handle) = TaskSpec::new().clock(hand.clock()).build(|| 7);
    let deadline = hand.clock().deadline(Duration::from_secs(1));
    let mover = std::thread::spawn(move || {
        while hand.sleepers() == 0 {
            std::thread::yield_now();
        }
        hand.advance(Duration::from_secs(1));
    });
    assert!(handle.join_until(deadline).unwrap_err().is_timed_out());
    mover.join().unwrap();
    task.run();
    assert_eq!(handle.join().unwrap(), 7);
}

#[test]
fn the_largest_timeout_means_for_ever_and_not_the_past() {
    let _watch = watch();
    let (task, mut handle) = task::new(|| 7);
    let (tell, runner) = run_when_told(task);
    tell.send(()).unwrap();
    assert_eq!(handle.join_timeout(Duration::MAX).unwrap(), 7);
    runner.join().unwrap();
}

#[test]
fn done_means_done_even_for_an_interrupted_caller_out_of_time() {
    let _watch = watch();
    let (inner, mut finished) = task::new(|| 7);
    inner.run();
    let (told, tell) = mpsc::channel();
    let (outer, handle) = task::new(move || {
        while !interrupt::is_interrupted() {
            std::thread::yield_now();
        }
        let joined = finished.join_timeout(Duration::ZERO).unwrap();
        told.send((joined, interrupt::is_interrupted())).unwrap();
    });
    let runner = std::thread::spawn(move || outer.run());
    while !handle.is_started() {
        std::thread::yield_now();
    }
    handle.interrupt();
    assert_eq!(
        tell.recv().unwrap(),
        (7, true),
        "a call that succeeds leaves the token set"
    );
    runner.join().unwrap();
}

#[test]
fn cancelling_before_the_start_drops_the_closure_at_once() {
    let _watch = watch();
    let captured = Arc::new(());
    let alive: Weak<()> = Arc::downgrade(&captured);
    let (task, handle) = task::new(move || drop(captured));
    assert!(handle.cancel());
    assert!(
        alive.upgrade().is_none(),
        "the closure is gone before anybody runs the task"
    );
    assert!(!handle.cancel(), "one cancels once");
    assert!(matches!(task.run(), task::Ran::Gone(_)));
    assert!(matches!(
        handle.join(),
        Err(TaskError::Cancelled(CancelReason::Requested))
    ));
}

#[test]
fn cancelling_a_finished_task_changes_nothing() {
    let _watch = watch();
    let (task, handle) = task::new(|| 7);
    task.run();
    assert!(!handle.cancel());
    assert!(!handle.interrupt());
    assert_eq!(handle.join().unwrap(), 7);
}

#[test]
fn a_cancelled_task_that_runs_finishes_its_handle_at_once_and_its_value_is_dropped() {
    let _watch = watch();
    let value = Arc::new(());
    let alive = Arc::downgrade(&value);
    let (started, has_started) = mpsc::channel();
    let (go_on, may_go_on) = mpsc::channel::<()>();
    let (task, handle) = task::new(move || {
        started.send(()).unwrap();
        let _ = may_go_on.recv();
        assert!(
            !interrupt::is_interrupted(),
            "a plain cancel leaves the token alone"
        );
        value
    });
    let runner = std::thread::spawn(move || task.run());
    has_started.recv().unwrap();
    assert!(handle.cancel());
    assert!(handle.is_finished() && handle.is_cancelled());
    assert!(handle.join().unwrap_err().is_cancelled());
    go_on.send(()).unwrap();
    assert!(matches!(runner.join().unwrap(), task::Ran::Unwanted));
    assert!(alive.upgrade().is_none());
}

#[test]
fn an_interrupt_wakes_a_task_out_of_its_sleep() {
    let _watch = watch();
    let (started, has_started) = mpsc::channel();
    let (told, tell) = mpsc::channel();
    let (task, handle) = task::new(move || {
        started.send(()).unwrap();
        told.send(interrupt::sleep(Duration::MAX)).unwrap();
        told.send(interrupt::check()).unwrap();
    });
    let runner = std::thread::spawn(move || task.run());
    has_started.recv().unwrap();
    assert!(handle.interrupt());
    assert_eq!(tell.recv().unwrap(), Err(interrupt::Interrupted));
    assert_eq!(
        tell.recv().unwrap(),
        Ok(()),
        "reporting an interrupt clears it"
    );
    runner.join().unwrap();
}

#[test]
fn an_interrupt_wakes_a_task_out_of_a_join() {
    let _watch = watch();
    let (never_run, inner) = task::new(|| ());
    let (started, has_started) = mpsc::channel();
    let (told, tell) = mpsc::channel();
    let (task, handle) = task::new(move || {
        started.send(()).unwrap();
        told.send(inner.join().unwrap_err().is_interrupted())
            .unwrap();
    });
    let runner = std::thread::spawn(move || task.run());
    has_started.recv().unwrap();
    handle.interrupt();
    assert!(tell.recv().unwrap());
    runner.join().unwrap();
    drop(never_run);
}

#[test]
fn a_task_may_be_interrupted_after_it_was_cancelled() {
    let _watch = watch();
    let (started, has_started) = mpsc::channel();
    let (task, handle) = task::new(move || {
        started.send(()).unwrap();
        let _ = interrupt::sleep(Duration::MAX);
    });
    let runner = std::thread::spawn(move || task.run());
    has_started.recv().unwrap();
    assert!(handle.cancel());
    assert!(!handle.interrupt(), "it was cancelled before");
    runner.join().unwrap();
}

#[test]
fn an_uninterruptible_section_is_not_interrupted_and_the_interrupt_is_kept() {
    let _watch = watch();
    let (started, has_started) = mpsc::channel();
    let (interrupted, was_interrupted) = mpsc::channel::<()>();
    let (told, tell) = mpsc::channel();
    let (task, handle) = task::new(move || {
        started.send(()).unwrap();
        let _ = was_interrupted.recv();
        let inside = interrupt::uninterruptible(|| interrupt::sleep(Duration::ZERO));
        told.send((inside, interrupt::check())).unwrap();
    });
    let runner = std::thread::spawn(move || task.run());
    has_started.recv().unwrap();
    handle.interrupt();
    interrupted.send(()).unwrap();
    assert_eq!(tell.recv().unwrap(), (Ok(()), Err(interrupt::Interrupted)));
    runner.join().unwrap();
}

#[test]
fn code_outside_any_task_is_never_interrupted() {
    let _watch = watch();
    assert!(!interrupt::is_interrupted());
    assert_eq!(interrupt::check(), Ok(()));
    assert_eq!(interrupt::sleep(Duration::from_nanos(1)), Ok(()));
}

#[test]
fn a_panic_is_delivered_with_its_payload() {
    let _watch = watch();
    let (task, handle) = task::new(|| std::panic::panic_any(7_u8));
    assert!(matches!(task.run(), task::Ran::Panicked(None)));
    let panic = handle.join().unwrap_err().into_panic().unwrap();
    assert_eq!(panic.message(), None);
    assert_eq!(*panic.into_payload().downcast::<u8>().unwrap(), 7);
}

#[test]
fn a_panic_without_a_handle_is_returned_to_the_runner() {
    let _watch = watch();
    let task = TaskSpec::new().build_detached(|| panic!("the dam broke"));
    match task.run() {
        task::Ran::Panicked(Some(panic)) => assert_eq!(panic.message(), Some("the dam broke")),
        other => panic!("{other:?}"),
    }
}

#[test]
fn destructors_that_panic_cost_nothing_but_themselves() {
    let _watch = watch();
    struct Grenade;
    impl Drop for Grenade {
        fn drop(&mut self) {
            std::panic::resume_unwind(Box::new("the pin was out"));
        }
    }
    // In a closure that never runs, in one that is cancelled, in a value that is never taken, in a payload.
    let grenade = Grenade;
    drop(task::new(move || drop(grenade)));
    let grenade = Grenade;
    let (task, handle) = task::new(move || drop(grenade));
    assert!(handle.cancel());
    drop(task);
    let (task, handle) = task::new(|| Grenade);
    task.run();
    drop(handle);
    let (task, handle) = task::new(|| std::panic::resume_unwind(Box::new(Grenade)));
    task.run();
    drop(handle);
}

#[test]
fn a_dropped_task_says_why_there_is_no_value() {
    let _watch = watch();
    let (task, handle) = task::new(|| 7);
    drop(task);
    assert_eq!(
        handle.join().unwrap_err().to_string(),
        "the task was cancelled: it was dropped before it ran"
    );
}

struct Bell(mpsc::Sender<()>);

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        let _ = self.0.send(());
    }
}

#[test]
fn awaiting_is_woken_once_and_gets_the_value() {
    let _watch = watch();
    let (ring, rung) = mpsc::channel();
    let waker = Waker::from(Arc::new(Bell(ring)));
    let (task, handle) = task::new(|| 7);
    let mut future = pin!(handle);
    let mut context = Context::from_waker(&waker);
    assert!(future.as_mut().poll(&mut context).is_pending());
    assert!(future.as_mut().poll(&mut context).is_pending());
    task.run();
    rung.recv().unwrap();
    assert!(rung.try_recv().is_err(), "polling twice registers once");
    assert!(matches!(future.poll(&mut context), Poll::Ready(Ok(7))));
}

#[test]
fn any_number_may_wait_for_a_shared_task() {
    let _watch = watch();
    let (task, handle) = task::new(|| String::from("flour"));
    let handle = handle.shared();
    let waiters: Vec<_> = (0..4)
        .map(|_| {
            let handle = handle.clone();
            std::thread::spawn(move || handle.join().map(String::len).unwrap())
        })
        .collect();
    task.run();
    for waiter in waiters {
        assert_eq!(waiter.join().unwrap(), 5);
    }
    let mut future = pin!(handle);
    let mut context = Context::from_waker(Waker::noop());
    assert!(matches!(future.as_mut().poll(&mut context), Poll::Ready(Ok(text)) if text == "flour"));
}

#[test]
fn a_shared_panic_shows_its_text_to_everyone() {
    let _watch = watch();
    let (task, handle) = task::new(|| -> u8 { panic!("the dam broke") });
    let one = handle.shared();
    let two = one.clone();
    task.run();
    for handle in [one, two] {
        assert_eq!(
            handle.join().unwrap_err().to_string(),
            "the task panicked: the dam broke"
        );
    }
}

#[test]
fn a_handle_that_aborts_on_drop_cancels_its_task() {
    let _watch = watch();
    let (task, handle) = task::new(|| 7);
    drop(handle.abort_on_drop());
    assert!(task.is_gone());

    let (task, handle) = task::new(|| 7);
    let kept = handle.abort_on_drop().disarm();
    task.run();
    assert_eq!(kept.join().unwrap(), 7);
}

#[test]
fn a_task_run_inline_needs_no_worker() {
    let _watch = watch();
    let here = std::thread::current().id();
    let (queued, handle) = task::new(move || std::thread::current().id() == here);
    assert!(handle.run_or_join().unwrap());
    assert!(matches!(queued.run(), task::Ran::Gone(_)));
}

#[test]
fn debug_texts_of_handles_say_kind_and_state() {
    let _watch = watch();
    let (task, handle) = TaskSpec::new().name("thumbnail").build(|| ());
    let text = format!("{handle:?}");
    assert!(
        text.contains("thumbnail") && text.contains("queued"),
        "{text}"
    );
    assert!(text.contains("handle.rs"), "{text}");
    task.run();
    assert!(format!("{handle:?}").contains("completed"));

    let (task, handle) = task::new(|| panic!("no"));
    task.run();
    assert!(format!("{handle:?}").contains("panicked"));

    let (_task, handle) = task::new(|| ());
    handle.cancel();
    assert!(format!("{handle:?}").contains("cancelled (a handle requested it)"));
}

#[test]
fn handles_may_go_anywhere() {
    let _watch = watch();
    fn anywhere<T: Send + Sync + Unpin + std::panic::UnwindSafe + 'static>() {}
    anywhere::<task::Task>();
    anywhere::<task::TaskHandle<String>>();
    anywhere::<task::SharedHandle<String>>();
    anywhere::<TaskError>();
}
