//! A closure that its caller runs is a task among tasks: its context, and what it inherits of that.

use super::{Full, Way};
use crate::executor_kit::{LONG, signal};
use millpond::executor::{Executor, ExecutorExt, Lifecycle};
use millpond::interrupt::{self, Interrupted};
use millpond::pool::ThreadPool;
use millpond::task::{self, TaskError, TaskHandle, TaskLocal, TaskSpec};
use millpond::time::ManualClock;
use millpond_raw::task::current;
use millpond_testkit::{DropCount, watch};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::time::Duration;

#[test]
fn its_caller_runs_it_as_a_task_with_a_token_of_its_own() {
    let _watch = watch();
    let full = Full::new();
    for way in Way::BOTH {
        let seen = way.ask(&full.pool, || {
            let before = interrupt::check();
            assert!(current::set(), "there is a task to interrupt");
            let twice = (interrupt::sleep(LONG), interrupt::check());
            assert!(current::set());
            (before, twice, interrupt::is_interrupted())
        });
        assert_eq!(seen, (Ok(()), (Err(Interrupted), Ok(())), true), "{way:?}");
        assert!(!current::set(), "{way:?}: no task is left here");
    }
}

#[test]
fn an_interrupt_of_the_task_around_it_stays_there() {
    let _watch = watch();
    for way in Way::BOTH {
        let full = Full::new();
        let ((give, own), (send, receive)) = (mpsc::channel(), mpsc::channel());
        let (task, handle) = task::new(move || {
            let own: TaskHandle<()> = own.recv_timeout(LONG).unwrap();
            let inside = way.ask(&full.pool, move || {
                assert!(own.interrupt());
                interrupt::check()
            });
            send.send((inside, interrupt::check())).unwrap();
        });
        give.send(handle).unwrap();
        task.run();
        let seen = receive.try_recv().unwrap();
        assert_eq!(seen, (Ok(()), Err(Interrupted)), "{way:?}");
    }
}

#[test]
fn the_stop_of_the_executor_around_it_reaches_it() {
    let _watch = watch();
    for way in Way::BOTH {
        let full = Full::new();
        let outer = ThreadPool::builder("outer").core(1).max(1).build().unwrap();
        let (say, hear) = signal();
        let pool = full.pool.clone();
        let handle = outer.submit(move || {
            way.ask(&pool, move || {
                say.send(()).unwrap();
                interrupt::sleep(LONG)
            })
        });
        hear.wait();
        outer.shutdown_now();
        assert_eq!(handle.unwrap().join().unwrap(), Err(Interrupted), "{way:?}");
        outer.await_termination().unwrap();
    }
}

#[test]
fn a_cycle_of_joins_through_it_is_detected() {
    let _watch = watch();
    for way in Way::BOTH {
        let full = Full::new();
        let (send, receive) = mpsc::channel();
        let (task, handle) = task::new(move || {
            let own: TaskHandle<()> = receive.recv_timeout(LONG).unwrap();
            let joined = way.ask(&full.pool, move || own.join());
            assert!(matches!(joined, Err(TaskError::Deadlock(_))), "{way:?}");
        });
        send.send(handle).unwrap();
        assert!(matches!(task.run(), task::Ran::Completed), "{way:?}");
    }
}

#[test]
fn inside_a_named_task_it_is_counted_under_the_name() {
    let _watch = watch();
    for way in Way::BOTH {
        let full = Full::new();
        let pool = full.pool.clone();
        let body = move || way.submit(&pool, || ());
        let (task, handle) = TaskSpec::new().name("order").build(body);
        task.run();
        handle.join().unwrap();
        let all = full.pool.metrics_by_name();
        let order = all.iter().find(|one| one.label.to_string() == "order");
        assert_eq!(order.map(|one| one.metrics.rejected), Some(1), "{all:?}");
    }
}

#[test]
fn it_sees_task_locals_and_leaves_them_unchanged() {
    static REQUEST: TaskLocal<u32> = TaskLocal::new();
    let _watch = watch();
    let full = Full::new();
    let request = || REQUEST.get().map(|request| *request);
    for way in Way::BOTH {
        let seen = REQUEST.scope(1, || {
            let pool = full.pool.clone();
            let inside = way.ask(&full.pool, move || {
                let deeper = REQUEST.scope(2, || way.ask(&pool, request));
                (request(), deeper)
            });
            (inside, request())
        });
        assert_eq!(seen, ((Some(1), Some(2)), Some(1)), "{way:?}");
        let plain = way.ask(&full.pool, move || {
            (request(), REQUEST.scope(3, request), request())
        });
        assert_eq!(plain, (None, Some(3), None), "{way:?}");
    }
}

#[test]
fn it_runs_after_the_deadline_of_the_task_around_it_unless_it_is_to_inherit_that() {
    let _watch = watch();
    let each = |way| [(way, false), (way, true)];
    for (way, inherits) in Way::BOTH.into_iter().flat_map(each) {
        let hand = ManualClock::new();
        let clock = hand.clock();
        let full = Full::with(|pool| pool.clock(clock.clone()));
        let (drops, ran) = (DropCount::new(), Arc::new(AtomicBool::new(false)));
        let (pool, token, own) = (full.pool.clone(), drops.token(), Arc::clone(&ran));
        let deadline = clock.deadline(Duration::from_secs(1));
        let spec = TaskSpec::new().clock(clock).deadline(deadline);
        let (task, handle) = spec.build(move || {
            hand.advance(Duration::from_secs(2));
            let late = move || {
                drop(token);
                own.store(true, Ordering::SeqCst);
            };
            let spec = if inherits {
                TaskSpec::new().inherit_deadline()
            } else {
                TaskSpec::new()
            };
            match way {
                Way::Closure if !inherits => pool.execute(late).unwrap(),
                Way::Closure => pool.execute_with(spec, late).unwrap(),
                Way::Task => {
                    let spec = spec.clock(hand.clock());
                    pool.execute_task(spec.build_detached(late)).unwrap();
                }
            }
        });
        task.run();
        // Its effects stay, late or not.
        drop(handle);
        assert_eq!(ran.load(Ordering::SeqCst), !inherits, "{way:?}");
        assert_eq!(drops.dropped(), 1, "{way:?}");
        let (ran, expired) = (u64::from(!inherits), u64::from(inherits));
        assert_eq!(full.counts(), (1, ran, 0), "{way:?}");
        assert_eq!(full.pool.snapshot().expired, expired, "{way:?}");
    }
}
