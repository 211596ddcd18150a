//! Engines that are stopped, and the bodies that they run.

use super::{Probe, few_or_many, join_all, spawn_all};
use millpond_raw::park::{self, Site};
use millpond_raw::sync::Mutex;
use millpond_raw::sync::atomic::{AtomicUsize, Ordering};
use millpond_raw::sync::thread::spawn;
use millpond_raw::task::{self, CancelReason, Ran, Stop, Task, Token, current};
use std::sync::Arc;
use std::task::{Wake, Waker};

/// Blocks until the running task is interrupted, as every interruptible call does.
pub(crate) fn block_until_set() {
    block_until(current::is_set);
}

/// As above, and reports the interrupt.
fn block_until_taken() {
    block_until(current::take);
}

fn block_until(interrupted: fn() -> bool) {
    let here = park::current();
    current::with_interrupt_waker(&here.waker(), || {
        while !interrupted() {
            here.park(Site::new("scenario.body"));
        }
    });
}

/// A task that increments `ended` when its body has returned.
fn counted(ended: &Arc<AtomicUsize>, body: impl FnOnce() + Send + 'static) -> Task {
    let ended = Arc::clone(ended);
    task::detached(
        move || {
            body();
            ended.fetch_add(1, Ordering::Relaxed);
        },
        (),
    )
}

/// An engine of one thread that runs the bodies one after another, and is stopped meanwhile by `stoppers`
/// threads. All bodies must return.
fn stop_while_running(stoppers: usize, bodies: Vec<Box<dyn FnOnce() + Send>>) {
    let (stop, ended) = (Arc::new(Stop::new()), Arc::new(AtomicUsize::new(0)));
    let count = bodies.len();
    let engine = spawn({
        let (stop, ended) = (Arc::clone(&stop), Arc::clone(&ended));
        move || {
            stop.enter(|| {
                for body in bodies {
                    let ran = counted(&ended, body).run();
                    assert!(matches!(ran, Ran::Completed), "{ran:?}");
                    assert!(!current::is_set(), "the engine's own code is in no task");
                    assert!(!current::take());
                }
            });
        }
    });
    let others = spawn_all(stoppers - 1, {
        let stop = Arc::clone(&stop);
        move |_| stop.set()
    });
    stop.set();
    join_all(others);
    engine.join().unwrap();
    assert!(
        stop.is_set(),
        "a stop stays set, whichever bodies have reported it"
    );
    assert_eq!(ended.load(Ordering::Relaxed), count);
}

/// A stop reaches a body that blocks before it, and one that starts after it.
pub(crate) fn a_stop_reaches_the_body_that_blocks() {
    stop_while_running(few_or_many(1, 3), vec![Box::new(block_until_set)]);
}

/// A body that starts when its engine has been stopped starts interrupted.
pub(crate) fn a_stop_before_the_body_starts_is_seen_by_it() {
    let (stop, slot) = (Arc::new(Stop::new()), Arc::new(Mutex::new(None)));
    let engine = spawn({
        let (stop, slot) = (Arc::clone(&stop), Arc::clone(&slot));
        move || {
            stop.enter(|| {
                let next: Option<Task> = slot.lock().take();
                next.map(Task::run)
            })
        }
    });
    stop.set();
    let ended = Arc::new(AtomicUsize::new(0));
    *slot.lock() = Some(counted(&ended, || assert!(current::is_set())));
    let ran = engine.join().unwrap();
    let count = usize::from(matches!(ran, Some(Ran::Completed)));
    assert_eq!(
        (ended.load(Ordering::Relaxed), ran.is_some()),
        (count, count == 1)
    );
}

/// A stop that comes between two tasks of a thread, or during the first, reaches the second.
pub(crate) fn a_stop_between_two_tasks_reaches_the_second() {
    let first = || {
        let _ = current::take();
    };
    stop_while_running(1, vec![Box::new(first), Box::new(block_until_taken)]);
}

/// However often an engine is stopped, and whatever other bodies make of it, each body reports it once.
pub(crate) fn each_body_reports_a_stop_once() {
    let once = || {
        block_until_taken();
        assert!(!current::is_set(), "a reported interrupt is gone");
        assert!(!current::take());
    };
    stop_while_running(2, vec![Box::new(once), Box::new(once)]);
}

/// Masking covers stops as well as interrupts; they are noticed afterwards.
pub(crate) fn a_masked_stop_is_noticed_afterwards() {
    let masked = || {
        let inner = || {
            assert!(!current::is_set() && !current::take() && !current::is_stopped());
            let inline = task::detached(|| assert!(!current::take()), ());
            assert!(matches!(inline.run(), Ran::Completed));
        };
        current::masked(inner);
        block_until_taken();
        current::masked(inner);
        assert!(!current::take());
    };
    stop_while_running(1, vec![Box::new(masked)]);
}

/// A body that is run inline is stopped with the thread, and so is the enclosing body.
pub(crate) fn an_inline_body_and_the_enclosing_one_are_both_interrupted() {
    let enclosing = || {
        let inner = task::detached(block_until_taken, ());
        assert!(matches!(inner.run(), Ran::Completed));
        assert!(current::take(), "it has not reported the stop itself");
        assert!(!current::take());
    };
    stop_while_running(1, vec![Box::new(enclosing)]);
}

/// A body that has reported the stop may run another one inline undisturbed.
pub(crate) fn an_inline_body_does_not_report_what_the_enclosing_one_has() {
    let enclosing = || {
        block_until_taken();
        let inner = || assert!(!current::take() && !current::is_stopped());
        assert!(matches!(task::detached(inner, ()).run(), Ran::Completed));
        assert!(!current::take());
    };
    stop_while_running(1, vec![Box::new(enclosing)]);
}

/// A body that is run inline does not obey the token of the enclosing one.
pub(crate) fn an_inline_body_has_its_own_token() {
    let token = Arc::new(Token::new());
    let interrupter = spawn({
        let token = Arc::clone(&token);
        move || token.set()
    });
    token.enter(|| {
        let inner = task::detached(|| assert!(!current::is_set()), ());
        assert!(matches!(inner.run(), Ran::Completed));
        block_until_taken();
    });
    interrupter.join().unwrap();
    assert!(!token.is_set());
}

/// An engine that runs inside another one: the stop of either reaches the body.
pub(crate) fn a_stop_reaches_through_an_engine_inside() {
    for outer in [false, true] {
        let stops = Arc::new([Stop::new(), Stop::new()]);
        let engine = spawn({
            let stops = Arc::clone(&stops);
            move || {
                let body = || {
                    block_until_taken();
                    assert!(!current::take());
                };
                stops[0].enter(|| stops[1].enter(|| task::detached(body, ()).run()))
            }
        });
        stops[usize::from(!outer)].set();
        assert!(matches!(engine.join().unwrap(), Ran::Completed));
    }
}

/// A body that has reported one engine's stop reports that of the other one too.
pub(crate) fn a_second_engines_stop_is_reported_as_well() {
    let stops = Arc::new([Stop::new(), Stop::new()]);
    let engine = spawn({
        let stops = Arc::clone(&stops);
        move || {
            let body = {
                let stops = Arc::clone(&stops);
                move || {
                    block_until_taken();
                    stops[0].set();
                    assert!(current::take());
                    assert!(!current::take());
                }
            };
            stops[0].enter(|| stops[1].enter(|| task::detached(body, ()).run()))
        }
    });
    stops[1].set();
    assert!(matches!(engine.join().unwrap(), Ran::Completed));
}

/// An interrupt of the task and a stop of its engine: the body notices whichever is first, and what has come
/// together is one interrupt.
pub(crate) fn an_interrupt_and_a_stop_are_both_obeyed() {
    let stop = Arc::new(Stop::new());
    let (task, handle) = task::new(
        {
            let stop = Arc::clone(&stop);
            move || {
                block_until_taken();
                let again = current::take();
                assert!(
                    stop.is_set() || !again,
                    "the interrupt alone is reported once"
                );
            }
        },
        (),
    );
    let engine = spawn({
        let stop = Arc::clone(&stop);
        move || stop.enter(|| task.run())
    });
    let stopper = spawn(move || stop.set());
    let interrupted = handle.interrupt(CancelReason::Requested).is_some();
    stopper.join().unwrap();
    match engine.join().unwrap() {
        Ran::Completed => assert!(!interrupted, "it was finished before"),
        Ran::Unwanted => assert!(interrupted, "it was interrupted while it ran"),
        Ran::Gone(_) => assert!(interrupted, "it was interrupted before it started"),
        Ran::Panicked(panic) => panic!("{panic:?}"),
    }
    assert_eq!(handle.state().cancelled().is_some(), interrupted);
}

/// A body that is interrupted by a stop sees what was written before the stop.
pub(crate) fn an_interrupted_body_sees_what_the_stopper_wrote() {
    let (stop, note) = (Arc::new(Stop::new()), Arc::new(AtomicUsize::new(0)));
    let body = {
        let note = Arc::clone(&note);
        move || {
            if current::take() {
                assert_eq!(note.load(Ordering::Relaxed), 7);
            }
        }
    };
    let engine = spawn({
        let stop = Arc::clone(&stop);
        move || stop.enter(|| task::detached(body, ()).run())
    });
    note.store(7, Ordering::Relaxed);
    stop.set();
    assert!(matches!(engine.join().unwrap(), Ran::Completed));
}

/// A stop that comes while bodies end finds none of them, and none of their wakers.
pub(crate) fn a_stop_against_an_ending_body_leaves_nothing_behind() {
    struct Bell;
    impl Wake for Bell {
        fn wake(self: Arc<Self>) {}
    }
    let (probe, stop, bell) = (Probe::default(), Arc::new(Stop::new()), Arc::new(Bell));
    let body = || {
        let (probe, waker) = (probe.clone(), Waker::from(Arc::clone(&bell)));
        move || {
            current::with_interrupt_waker(&waker, current::is_set);
            probe
        }
    };
    let (task, handle) = task::new(body(), ());
    let alone = task::detached(
        {
            let body = body();
            move || drop(body())
        },
        (),
    );
    let engine = spawn({
        let stop = Arc::clone(&stop);
        move || stop.enter(|| (task.run(), alone.run()))
    });
    stop.set();
    drop(handle);
    assert!(matches!(
        engine.join().unwrap(),
        (Ran::Completed, Ran::Completed)
    ));
    assert_eq!(probe.others(), 0);
    assert_eq!(Arc::strong_count(&bell), 1, "no waker is left in a queue");
}
