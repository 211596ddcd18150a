//! Leaving a scope early: cancelling the rest, failing, being interrupted.

use crate::executor_kit::{LONG, PerTask, Shelf, gate, interrupted_before, quiet_panic, signal};
use millpond::executor::{
    DirectExecutor, ExecutorExt, Lifecycle, RejectReason, ScopeError, ScopeOptions,
};
use millpond::interrupt::{self, Interrupted};
use millpond::task::{CancelReason, TaskError};
use millpond_testkit::{DropCount, interrupt_at};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::sync::mpsc::{self, Sender};
use std::thread;

/// A body that says that it runs, and then blocks until it is interrupted.
fn until_interrupted(started: &Sender<()>) -> Result<(), Interrupted> {
    started.send(()).unwrap();
    interrupt::sleep(LONG)
}

fn panic_of(scope: impl FnOnce()) -> &'static str {
    let payload = catch_unwind(AssertUnwindSafe(scope)).unwrap_err();
    *payload.downcast::<&'static str>().expect("a text")
}

#[test]
fn cancelling_a_task_that_has_not_started_drops_its_closure_at_once() {
    let (shelf, drops) = (Shelf::with_room(1), DropCount::new());
    shelf.scope(|s| {
        let token = drops.token();
        let handle = s.submit(|| drop(token)).unwrap();
        assert!(handle.cancel());
        assert_eq!(drops.dropped(), 1);
        assert!(!handle.cancel());
        assert!(shelf.take().iter().all(|task| task.is_gone()));
        let error = handle.join().unwrap_err();
        assert!(matches!(
            error,
            TaskError::Cancelled(CancelReason::Requested)
        ));
    });
}

#[test]
fn cancelling_a_running_task_finishes_its_handle_and_the_scope_waits() {
    let per_task = PerTask::of(1);
    let (started, start) = signal();
    let (open, opened) = gate();
    let opened = Mutex::new(Some(opened));
    let ended = AtomicBool::new(false);
    per_task.0.scope(|s| {
        let handle = s.submit(|| {
            started.send(()).unwrap();
            opened.lock().unwrap().take().unwrap()();
            assert!(!interrupt::is_interrupted(), "it is not asked to stop");
            ended.store(true, SeqCst);
        });
        let handle = handle.unwrap();
        start.wait();
        assert!(handle.cancel());
        assert!(handle.join().unwrap_err().is_cancelled());
        assert!(!ended.load(SeqCst));
        open.send(()).unwrap();
    });
    assert!(ended.into_inner());
}

#[test]
fn interrupting_a_running_task_reaches_it() {
    let per_task = PerTask::of(1);
    let (started, start) = signal();
    let result = Mutex::new(None);
    per_task.0.scope(|s| {
        let body = || *result.lock().unwrap() = Some(until_interrupted(&started));
        let handle = s.submit(body).unwrap();
        start.wait();
        assert!(handle.interrupt());
    });
    assert_eq!(result.into_inner().unwrap(), Some(Err(Interrupted)));
}

#[test]
fn a_cancelled_task_that_still_runs_can_be_interrupted() {
    let per_task = PerTask::of(1);
    let (started, start) = signal();
    per_task.0.scope(|s| {
        let handle = s.submit(|| until_interrupted(&started)).unwrap();
        start.wait();
        assert!(handle.cancel());
        assert!(!handle.interrupt(), "it was cancelled before");
    });
}

#[test]
fn cancelling_the_rest_drops_queued_tasks_and_interrupts_running_ones() {
    let per_task = PerTask::of(1);
    let shelf = Shelf::with_room(2);
    let (drops, (started, start)) = (DropCount::new(), signal());
    per_task.0.scope(|runs| {
        shelf.scope(|waits| {
            let running = runs.submit(|| until_interrupted(&started)).unwrap();
            let tokens = [drops.token(), drops.token()];
            let waiting = tokens.map(|token| waits.submit(|| drop(token)).unwrap());
            start.wait();
            waits.cancel_rest();
            assert_eq!(drops.dropped(), 2);
            assert!(waiting.iter().all(|handle| handle.is_cancelled()));
            assert!(!running.is_finished() && !runs.is_cancelled());
            runs.cancel_rest();
            assert!(running.is_cancelled());
        });
    });
}

#[test]
fn a_cancelled_scope_takes_no_more_tasks() {
    DirectExecutor::new().scope(|s| {
        s.cancel_rest();
        assert!(s.is_cancelled());
        let rejected = s.submit(|| 7).unwrap_err();
        assert!(matches!(rejected.reason, RejectReason::Cancelled));
        assert_eq!((rejected.task)(), 7);
    });
}

#[test]
fn the_task_that_cancels_the_rest_is_not_cancelled() {
    let per_task = PerTask::of(2);
    let (started, start) = mpsc::channel();
    let start = Mutex::new(start);
    per_task.0.scope(|s| {
        let slow = s.submit(|| until_interrupted(&started)).unwrap();
        let found = s
            .submit(|| {
                start.lock().unwrap().recv_timeout(LONG).unwrap();
                s.cancel_rest();
                assert!(!interrupt::is_interrupted());
                "needle"
            })
            .unwrap();
        // Neither may be run here: this thread would wait for what the other one sends.
        while !found.is_started() || !slow.is_started() {
            thread::yield_now();
        }
        assert_eq!(found.join().unwrap(), "needle");
        assert!(slow.join().unwrap_err().is_cancelled());
    });
}

#[test]
fn an_inlined_task_that_cancels_the_rest_is_not_cancelled() {
    let shelf = Shelf::with_room(2);
    let ran = AtomicUsize::new(0);
    shelf.scope(|s| {
        let other = s.submit(|| ran.fetch_add(1, SeqCst)).unwrap();
        let found = s.submit(|| {
            s.cancel_rest();
            "needle"
        });
        assert_eq!(found.unwrap().join().unwrap(), "needle");
        assert!(other.join().unwrap_err().is_cancelled());
    });
    assert_eq!(ran.into_inner(), 0);
}

#[test]
fn without_being_asked_a_panic_cancels_nothing() {
    let shelf = Shelf::with_room(3);
    let ran = AtomicUsize::new(0);
    let text = panic_of(|| {
        shelf.scope(|s| {
            s.execute(|| quiet_panic("one")).unwrap();
            s.execute(|| ran.fetch_add(1, SeqCst)).unwrap();
            s.execute(|| ran.fetch_add(1, SeqCst)).unwrap();
        });
    });
    assert_eq!((text, ran.into_inner()), ("one", 2));
}

#[test]
fn if_asked_the_first_panic_cancels_the_rest() {
    let per_task = PerTask::of(2);
    let (started, start) = mpsc::channel();
    let start = Mutex::new(start);
    let slow = Mutex::new(None);
    let text = panic_of(|| {
        per_task
            .0
            .scope_with(ScopeOptions::new().cancel_on_failure(), |s| {
                let body = || *slow.lock().unwrap() = Some(until_interrupted(&started));
                s.execute(body).unwrap();
                let failing = s.submit(|| {
                    start.lock().unwrap().recv_timeout(LONG).unwrap();
                    quiet_panic("the dam broke")
                });
                let failing: millpond::executor::ScopedHandle<'_, ()> = failing.unwrap();
                while !failing.is_finished() {
                    thread::yield_now();
                }
                let rejected = s.execute(|| ()).unwrap_err();
                assert!(matches!(rejected.reason, RejectReason::Cancelled));
            });
    });
    assert_eq!(text, "the dam broke");
    assert_eq!(slow.into_inner().unwrap(), Some(Err(Interrupted)));
}

#[test]
fn a_panic_that_is_joined_cancels_the_rest_too_and_stays_with_the_handle() {
    let shelf = Shelf::with_room(2);
    let ran = AtomicBool::new(false);
    shelf.scope_with(ScopeOptions::new().cancel_on_failure(), |s| {
        let failing = s
            .submit(|| -> u32 { quiet_panic("the dam broke") })
            .unwrap();
        s.execute(|| ran.store(true, SeqCst)).unwrap();
        assert!(failing.join().unwrap_err().is_panicked());
        assert!(s.is_cancelled());
    });
    assert!(!ran.into_inner());
}

#[test]
fn a_panic_of_the_closure_cancels_the_rest_if_asked_and_else_does_not() {
    for (options, expected) in [
        (ScopeOptions::new(), 1),
        (ScopeOptions::new().cancel_on_failure(), 0),
    ] {
        let shelf = Shelf::with_room(1);
        let ran = AtomicUsize::new(0);
        let text = panic_of(|| {
            shelf.scope_with(options, |s| {
                s.execute(|| ran.fetch_add(1, SeqCst)).unwrap();
                quiet_panic("the closure")
            })
        });
        assert_eq!((text, ran.into_inner()), ("the closure", expected));
    }
}

#[test]
fn an_error_of_a_fallible_scope_cancels_the_rest_and_a_value_does_not() {
    for (result, expected) in [(Ok("flour"), 1), (Err("no water"), 0)] {
        let shelf = Shelf::with_room(1);
        let ran = AtomicUsize::new(0);
        let returned = shelf.try_scope(|s| {
            s.execute(|| ran.fetch_add(1, SeqCst)).unwrap();
            result
        });
        assert_eq!((returned, ran.into_inner()), (result, expected));
    }
}

#[test]
fn a_fallible_scope_ends_at_the_first_join_that_fails() {
    let per_task = PerTask::of(2);
    let (started, start) = signal();
    let error = per_task.0.try_scope(|s| {
        let slow = s.submit(|| until_interrupted(&started))?;
        start.wait();
        s.submit(|| quiet_panic("the dam broke"))?.join()?;
        drop(slow);
        Ok::<(), ScopeError>(())
    });
    let error = error.unwrap_err();
    assert!(matches!(error, ScopeError::Task(error) if error.is_panicked()));
}

#[test]
fn an_interrupted_caller_stops_its_tasks_waits_for_them_and_is_still_interrupted() {
    let still = interrupt_at("scope-owner", "scope.end", || {
        let per_task = PerTask::of(1);
        let ended = AtomicBool::new(false);
        per_task.0.scope(|s| {
            let handle = s.submit(|| {
                let slept = interrupt::sleep(LONG);
                ended.store(slept == Err(Interrupted), SeqCst);
            });
            let handle = handle.unwrap();
            // It runs elsewhere, so the end of the scope waits.
            while !handle.is_started() {
                thread::yield_now();
            }
        });
        (
            ended.into_inner(),
            interrupt::is_interrupted(),
            interrupt::check(),
        )
    });
    assert_eq!(still, (true, true, Err(Interrupted)));
}

#[test]
fn an_interrupt_of_the_caller_reaches_the_task_that_it_runs_inline() {
    let still = interrupt_at("scope-in-place", "interrupt.sleep", || {
        let shelf = Shelf::with_room(2);
        let (slept, ran) = (Mutex::new(None), AtomicBool::new(false));
        shelf.scope(|s| {
            s.execute(|| *slept.lock().unwrap() = Some(interrupt::sleep(LONG)))
                .unwrap();
            s.execute(|| ran.store(true, SeqCst)).unwrap();
        });
        (
            slept.into_inner().unwrap(),
            ran.into_inner(),
            interrupt::is_interrupted(),
        )
    });
    assert_eq!(still, (Some(Err(Interrupted)), false, true));
}

#[test]
fn a_caller_that_is_interrupted_before_the_end_starts_nothing_more() {
    let (ran, still) = interrupted_before(|| {
        let shelf = Shelf::with_room(1);
        let ran = AtomicBool::new(false);
        shelf.scope(|s| s.execute(|| ran.store(true, SeqCst)).unwrap());
        (ran.into_inner(), interrupt::is_interrupted())
    });
    assert_eq!((ran, still), (false, true));
}

#[test]
fn a_join_that_is_interrupted_says_so_and_the_scope_waits() {
    let (joined, ended) = interrupt_at("scope-joiner", "scope.join", || {
        let per_task = PerTask::of(1);
        let (open, opened) = gate();
        let opened = Mutex::new(Some(opened));
        let ended = AtomicBool::new(false);
        let joined = per_task.0.scope(|s| {
            let handle = s.submit(|| {
                opened.lock().unwrap().take().unwrap()();
                ended.store(true, SeqCst);
            });
            let handle = handle.unwrap();
            while !handle.is_started() {
                thread::yield_now();
            }
            let joined = handle.join();
            open.send(()).unwrap();
            joined
        });
        (joined, ended.into_inner())
    });
    assert!(matches!(joined, Err(TaskError::Interrupted)));
    assert!(ended);
}

#[test]
fn stopping_the_executor_reaches_the_running_tasks_of_a_scope() {
    let per_task = PerTask::of(1);
    let (started, start) = signal();
    let slept = per_task.0.scope(|s| {
        let mut handle = s.submit(|| until_interrupted(&started)).unwrap();
        start.wait();
        assert!(per_task.0.shutdown_now().is_empty());
        handle.join_timeout(LONG)
    });
    assert_eq!(slept.unwrap(), Err(Interrupted));
}
