//! What panics in a scope, and what is dropped in it.

use crate::executor_kit::{PerTask, Shelf, forget, gate, quiet_panic, signal};
use millpond::executor::{DirectExecutor, Executor, ExecutorExt, Rejected, Scope};
use millpond::task::Task;
use millpond_testkit::DropCount;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};

fn panic_of<R>(scope: impl FnOnce() -> R) -> &'static str {
    match catch_unwind(AssertUnwindSafe(scope)) {
        Ok(_) => "none",
        Err(payload) => *payload.downcast::<&'static str>().expect("a text"),
    }
}

/// Panics when it is dropped.
struct Grenade;

impl Drop for Grenade {
    fn drop(&mut self) {
        quiet_panic("a destructor");
    }
}

#[test]
fn a_panic_that_is_joined_stays_with_the_handle() {
    let text = panic_of(|| {
        DirectExecutor::new().scope(|s| {
            let handle = s.submit(|| -> u32 { quiet_panic("one") }).unwrap();
            assert_eq!(
                handle.join().unwrap_err().to_string(),
                "the task panicked: one"
            );
        });
    });
    assert_eq!(text, "none");
}

#[test]
fn a_panic_that_was_not_joined_is_resumed_when_everything_has_ended() {
    let per_task = PerTask::of(2);
    let (started, start) = signal();
    let (open, opened) = gate();
    let opened = Mutex::new(Some(opened));
    let ended = AtomicBool::new(false);
    let text = panic_of(|| {
        per_task.0.scope(|s| {
            let slow = s.execute(|| {
                started.send(()).unwrap();
                opened.lock().unwrap().take().unwrap()();
                ended.store(true, SeqCst);
            });
            slow.unwrap();
            start.wait();
            s.execute(|| {
                open.send(()).unwrap();
                quiet_panic("one")
            })
            .unwrap();
            "a value that nobody gets"
        })
    });
    assert_eq!(text, "one");
    assert!(ended.into_inner());
}

#[test]
fn a_handle_that_is_dropped_or_forgotten_leaves_its_panic_to_the_scope() {
    fn leave<T>(handle: T, forgets: bool) {
        if forgets {
            forget(handle)
        } else {
            drop(handle)
        }
    }

    // Before the handle is gone, and after.
    for executor in [
        &DirectExecutor::new() as &dyn Executor,
        &*Shelf::with_room(9),
    ] {
        for forgets in [false, true] {
            let scope = || {
                executor.scope(|s| leave(s.submit(|| quiet_panic("one")).unwrap(), forgets));
            };
            assert_eq!(panic_of(scope), "one");
        }
    }
}

#[test]
fn the_closures_own_panic_wins() {
    let text = panic_of(|| {
        DirectExecutor::new().scope(|s| {
            s.execute(|| quiet_panic("the task")).unwrap();
            quiet_panic("the closure")
        })
    });
    assert_eq!(text, "the closure");
}

#[test]
fn of_several_panics_the_first_is_resumed() {
    let shelf = Shelf::with_room(3);
    let text = panic_of(|| {
        shelf.scope(|s| {
            for text in ["one", "two", "three"] {
                s.execute(move || quiet_panic(text)).unwrap();
            }
        });
    });
    assert_eq!(text, "one");
}

#[test]
fn the_panic_of_a_cancelled_task_is_not_resumed() {
    let per_task = PerTask::of(1);
    let (started, start) = signal();
    let (open, opened) = gate();
    let opened = Mutex::new(Some(opened));
    let text = panic_of(|| {
        per_task.0.scope(|s| {
            let handle = s.submit(|| {
                started.send(()).unwrap();
                opened.lock().unwrap().take().unwrap()();
                quiet_panic("too late")
            });
            let handle: millpond::executor::ScopedHandle<'_, ()> = handle.unwrap();
            start.wait();
            handle.cancel();
            open.send(()).unwrap();
        });
    });
    assert_eq!(text, "none");
}

#[test]
fn a_closure_that_panics_waits_for_its_tasks() {
    let per_task = PerTask::of(1);
    let (started, start) = signal();
    let (open, opened) = gate();
    let opened = Mutex::new(Some(opened));
    let ended = AtomicBool::new(false);
    let text = panic_of(|| {
        per_task.0.scope(|s| {
            let slow = s.execute(|| {
                started.send(()).unwrap();
                opened.lock().unwrap().take().unwrap()();
                ended.store(true, SeqCst);
            });
            slow.unwrap();
            start.wait();
            open.send(()).unwrap();
            quiet_panic("the closure")
        })
    });
    assert_eq!(text, "the closure");
    assert!(ended.into_inner());
}

#[test]
fn a_value_that_was_not_joined_is_dropped_before_the_scope_returns() {
    let drops = DropCount::new();
    for executor in [
        &DirectExecutor::new() as &dyn Executor,
        &*Shelf::with_room(9),
    ] {
        let before = drops.dropped();
        executor.scope(|s| {
            let kept = s.submit(|| drops.token()).unwrap();
            forget(s.submit(|| drops.token()).unwrap());
            drop(s.submit(|| drops.token()).unwrap());
            s.execute(|| drops.token()).unwrap();
            drop(kept);
        });
        assert_eq!(drops.dropped() - before, 4);
    }
}

#[test]
fn a_destructor_of_a_value_may_spawn_a_task() {
    struct Submits<'scope, 'env> {
        scope: &'scope Scope<'scope, 'env>,
        ran: &'env AtomicUsize,
        more: usize,
    }

    impl Drop for Submits<'_, '_> {
        fn drop(&mut self) {
            let Submits { scope, ran, more } = *self;
            if more > 0 {
                let next = move || {
                    ran.fetch_add(1, SeqCst);
                    Submits {
                        scope,
                        ran,
                        more: more - 1,
                    }
                };
                forget(scope.submit(next).unwrap());
            }
        }
    }

    for executor in [
        &DirectExecutor::new() as &dyn Executor,
        &*Shelf::with_room(9),
    ] {
        let ran = AtomicUsize::new(0);
        executor.scope(|scope| {
            let first = scope.submit(|| Submits {
                scope,
                ran: &ran,
                more: 3,
            });
            forget(first.unwrap());
        });
        assert_eq!(ran.into_inner(), 3);
    }
}

#[test]
fn destructors_that_panic_cost_nothing_but_themselves() {
    let shelf = Shelf::with_room(9);
    let ran = AtomicBool::new(false);
    let text = panic_of(|| {
        shelf.scope(|s| {
            // Closures that are dropped unrun, values that are never taken.
            let grenade = Grenade;
            s.submit(move || drop(grenade)).unwrap().cancel();
            s.execute(|| Grenade).unwrap();
            forget(s.submit(|| Grenade).unwrap());
            s.execute(|| ran.store(true, SeqCst)).unwrap();
        });
    });
    assert_eq!(text, "none");
    assert!(ran.into_inner());
}

#[test]
fn an_executor_that_panics_has_not_accepted_the_task() {
    #[derive(Debug)]
    struct Panics;

    impl Executor for Panics {
        fn execute_task(&self, _: Task) -> Result<(), Rejected<Task>> {
            quiet_panic("the executor")
        }
    }

    let (ran, drops) = (AtomicBool::new(false), DropCount::new());
    let text = panic_of(|| {
        Panics.scope(|s| {
            let token = drops.token();
            let _ = s.execute(|| {
                ran.store(true, SeqCst);
                drop(token);
            });
        })
    });
    assert_eq!(
        (text, drops.dropped(), ran.into_inner()),
        ("the executor", 1, false)
    );
}
