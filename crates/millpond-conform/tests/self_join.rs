//! A worker that joins a task of its own pool's queue runs it inline.

#![allow(
    clippy::disallowed_types,
    clippy::disallowed_methods,
    reason = "a test stands outside: it uses std's threads and locks beside what it tests"
)]

use millpond::executor::{CompletionService, ExecutorExt, Lifecycle};
use millpond::interrupt;
use millpond::pool::{Ended, Hooks, PoolSnapshot, Queue, TaskInfo, ThreadPool};
use millpond::queue::DelayQueue;
use millpond::task::{CancelReason, Task, TaskHandle, TaskSpec};
use millpond::thread::Threads;
use millpond::time::ManualClock;
use millpond_conform::kit::{Gate, Latch, case, until};
use millpond_conform::suites::pond::{Pond, fresh_name};
use millpond_raw::park::probe;
use millpond_raw::sync::exhaust::Exhaustion;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

/// A pool with so many workers.
fn pond(workers: usize) -> Pond {
    let pool = ThreadPool::builder(fresh_name()).core(workers).max(workers);
    Pond::of(pool.queue(Queue::unbounded()))
}

/// All that was accepted is in one place.
#[track_caller]
fn assert_balanced(now: &PoolSnapshot, accepted: u64) {
    let over = now.completed + now.cancelled;
    let under_way = now.queued + now.active + now.running_inline;
    assert_eq!(over + under_way as u64, accepted, "{now:?}");
}

fn thread_name() -> String {
    thread::current().name().unwrap_or_default().to_owned()
}

/// The result of `wait` for a child that is queued behind its parent, on a pool with one worker: the value,
/// and that it ran on the parent's own thread.
#[track_caller]
fn on_one_worker(wait: fn(&ThreadPool, TaskHandle<thread::ThreadId>) -> thread::ThreadId) {
    case("one worker", move || {
        let pond = pond(1);
        let pool = pond.pool();
        let parent = pond.submit(move || {
            let child = pool.submit(|| thread::current().id()).unwrap();
            wait(&pool, child) == thread::current().id()
        });
        assert!(parent.unwrap().join().unwrap(), "it ran in place");
        pond.await_idle(1);
        let now = pond.snapshot();
        assert_eq!((now.completed, now.self_joined), (2, 1));
        assert_eq!((now.cancelled, now.ran_elsewhere, now.queued), (0, 0, 0));
        assert_balanced(&now, 2);
    });
}

#[test]
fn a_join_on_the_only_worker_runs_the_joined_task() {
    on_one_worker(|_, child| child.join().unwrap());
}

#[test]
fn so_does_a_join_with_a_timeout() {
    on_one_worker(|_, mut child| child.join_timeout(Duration::from_secs(3600)).unwrap());
}

#[test]
fn so_does_a_wait_that_leaves_the_value() {
    on_one_worker(|_, mut child| {
        child.wait().unwrap();
        child.try_join().unwrap().unwrap()
    });
}

#[test]
fn so_does_one_of_many_handles() {
    on_one_worker(|_, child| *child.shared().join().unwrap());
}

#[test]
fn so_does_a_shared_join_with_a_timeout() {
    on_one_worker(|_, child| *child.shared().join_timeout(Duration::MAX).unwrap());
}

#[test]
fn so_does_an_explicit_run_or_join() {
    on_one_worker(|_, child| child.run_or_join().unwrap());
}

#[test]
fn all_of_a_batch_and_any_of_it_come_on_the_only_worker() {
    case("batches", || {
        let pond = pond(1);
        let pool = pond.pool();
        let parent = pond.submit(move || {
            let all = pool.invoke_all((1..=4).map(|n| move || n * n)).unwrap();
            let all: Vec<u32> = all.into_iter().map(Result::unwrap).collect();
            let mirrors = ["down", "down", "up", "never asked"];
            let any = pool.invoke_any(mirrors.map(|mirror| {
                move || match mirror {
                    "up" => Ok(mirror),
                    "down" => Err(mirror),
                    other => panic!("{other}"),
                }
            }));
            (all, any.unwrap())
        });
        assert_eq!(parent.unwrap().join().unwrap(), (vec![1, 4, 9, 16], "up"));
        pond.await_idle(1);
        let now = pond.snapshot();
        assert_eq!((now.self_joined, now.cancelled), (7, 1));
        assert_balanced(&now, 9);
    });
}

#[test]
fn a_completion_service_delivers_on_the_only_worker_oldest_first() {
    case("completion", || {
        let pond = pond(1);
        let pool = pond.pool();
        let parent = pond.submit(move || {
            let service = CompletionService::new(pool);
            for number in 0..3 {
                service.submit(move || number).unwrap();
            }
            let next = || service.take().unwrap().result.unwrap();
            [next(), next(), next()]
        });
        assert_eq!(parent.unwrap().join().unwrap(), [0, 1, 2]);
    });
}

#[test]
fn only_the_joined_task_is_run_inline() {
    case("only that one", || {
        let pond = pond(1);
        let (pool, order) = (pond.pool(), Arc::new(Mutex::new(Vec::new())));
        let note = |what: &'static str| {
            let order = Arc::clone(&order);
            move || order.lock().unwrap().push(what)
        };
        let (first, second, third) = (note("first"), note("second"), note("third"));
        let end = note("parent");
        let parent = pond.submit(move || {
            let others = [pool.submit(first).unwrap(), pool.submit(second).unwrap()];
            pool.submit(third).unwrap().join().unwrap();
            end();
            others
        });
        for other in parent.unwrap().join().unwrap() {
            other.join().unwrap();
        }
        assert_eq!(
            *order.lock().unwrap(),
            ["third", "parent", "first", "second"]
        );
    });
}

#[test]
fn metrics_add_up_while_a_task_runs_inline_and_after_a_worker_has_popped_its_tombstone() {
    case("books", || {
        let pond = pond(2);
        let held = pond.hold(1);
        let (gate, inside) = (Gate::new(), Latch::new(1));
        let (pool, shut, arrived) = (pond.pool(), gate.clone(), inside.clone());
        let parent = pond.submit(move || {
            let child = pool.submit(move || {
                arrived.arrive();
                shut.wait();
            });
            child.unwrap().join().unwrap();
        });
        inside.wait();
        let now = pond.snapshot();
        assert_eq!((now.active, now.running_inline, now.queued), (2, 1, 0));
        assert_eq!(now.task_count(), 3);
        assert_balanced(&now, 3);
        // The other worker becomes free and finds the tombstone.
        held.release();
        pond.await_idle(1);
        let now = pond.snapshot();
        assert_eq!((now.active, now.running_inline, now.queued), (1, 1, 0));
        assert_eq!((now.completed, now.cancelled), (1, 0));
        assert_balanced(&now, 3);
        gate.open();
        parent.unwrap().join().unwrap();
        pond.await_idle(2);
        let now = pond.snapshot();
        assert_eq!((now.completed, now.self_joined), (3, 1));
        assert_balanced(&now, 3);
    });
}

#[test]
fn a_tombstone_that_is_purged_or_stopped_is_not_counted_again() {
    for stop in [false, true] {
        case("purged", move || {
            let pond = pond(1);
            let (gate, joined) = (Gate::new(), Latch::new(1));
            let (pool, shut, arrived) = (pond.pool(), gate.clone(), joined.clone());
            let parent = pond.submit(move || {
                pool.submit(|| ()).unwrap().join().unwrap();
                arrived.arrive();
                shut.wait();
            });
            joined.wait();
            assert_balanced(&pond.snapshot(), 2);
            if stop {
                assert!(pond.shutdown_now().is_empty())
            } else {
                assert_eq!(pond.purge(), 1)
            }
            assert_balanced(&pond.snapshot(), 2);
            gate.open();
            parent.unwrap().join().unwrap();
            pond.close().unwrap();
            let now = pond.snapshot();
            assert_eq!((now.completed, now.cancelled), (2, 0));
            assert_eq!((now.handed_back, now.self_joined), (0, 1));
        });
    }
}

#[test]
fn a_panic_of_an_inlined_task_is_the_childs_and_is_counted_once() {
    case("panic", || {
        let pond = pond(1);
        let pool = pond.pool();
        let parent = pond.submit(move || {
            let child = pool.submit(|| std::panic::resume_unwind(Box::new("the dam broke")));
            let panicked: Result<(), _> = child.unwrap().join();
            panicked.unwrap_err().into_panic().unwrap().message() == Some("the dam broke")
        });
        assert!(parent.unwrap().join().unwrap());
        pond.await_idle(1);
        let now = pond.snapshot();
        assert_eq!((now.completed, now.panicked, now.cancelled), (2, 1, 0));
    });
}

#[test]
fn tasks_run_by_foreign_threads_are_counted_separately() {
    case("elsewhere", || {
        let pond = pond(1);
        let held = pond.hold(1);
        let queued = pond.submit(thread_name).unwrap();
        assert_eq!(queued.run_or_join().unwrap(), thread_name());
        let now = pond.snapshot();
        assert_eq!((now.queued, now.ran_elsewhere), (1, 0), "its shell waits");
        assert_balanced(&now, 2);
        held.release();
        pond.await_idle(1);
        let now = pond.snapshot();
        assert_eq!((now.completed, now.ran_elsewhere, now.cancelled), (2, 1, 0));
        assert_balanced(&now, 2);
    });
}

#[test]
fn a_task_in_another_pools_queue_waits_for_its_own_worker() {
    case("another pool", || {
        let (here, there) = (pond(1), pond(1));
        let held = there.hold(1);
        let child = there.submit(thread_name).unwrap();
        let parent = here.submit(move || child.join().unwrap()).unwrap();
        until("the parent waits", || here.waits_at("task.join") == 1);
        held.release();
        assert!(parent.join().unwrap().starts_with(there.name()));
        assert_eq!(here.snapshot().self_joined, 0);
    });
}

#[test]
fn an_expired_task_is_not_run_inline() {
    case("expired", || {
        let hand = ManualClock::new();
        let pool = ThreadPool::builder(fresh_name()).core(1).max(1);
        let pond = Pond::of(pool.clock(hand.clock()));
        let (pool, clock) = (pond.pool(), hand.clock());
        let own_hand = hand.clone();
        let parent = pond.submit(move || {
            let deadline = clock.deadline(Duration::from_secs(1));
            let spec = TaskSpec::new().clock(clock).deadline(deadline);
            let child = pool.submit_with(spec, || panic!("nobody runs it")).unwrap();
            own_hand.advance(Duration::from_secs(2));
            let late: Result<(), _> = child.join();
            late.unwrap_err().to_string()
        });
        let error = parent.unwrap().join().unwrap();
        assert_eq!(
            error,
            "the task was cancelled: its deadline passed before it ran"
        );
        pond.await_idle(1);
        let now = pond.snapshot();
        assert_eq!((now.completed, now.expired, now.cancelled), (1, 1, 1));
        assert_balanced(&now, 2);
    });
}

#[test]
fn a_joiner_that_is_interrupted_or_out_of_time_runs_nothing() {
    case("no time", || {
        let pond = pond(1);
        let pool = pond.pool();
        let parent = pond.submit(move || {
            let mut child = pool.submit(|| 7).unwrap();
            let at_once = child.join_timeout(Duration::ZERO).unwrap_err();
            assert!(at_once.is_timed_out() && !child.is_started());
            assert!(millpond_raw::task::current::set());
            let interrupted = child.join_timeout(Duration::MAX).unwrap_err();
            assert!(interrupted.is_interrupted() && !child.is_started());
            child.join().unwrap()
        });
        assert_eq!(parent.unwrap().join().unwrap(), 7);
    });
}

#[test]
fn hooks_are_called_for_an_inlined_task_as_for_any_other() {
    struct Log(Arc<Mutex<Vec<String>>>);

    impl Hooks for Log {
        fn before(&self, task: &TaskInfo) {
            let name = task.name().unwrap_or("?");
            self.0.lock().unwrap().push(format!("before {name}"));
        }

        fn after(&self, task: &TaskInfo, ended: Ended) {
            let name = task.name().unwrap_or("?");
            self.0.lock().unwrap().push(format!("{name} {ended:?}"));
            panic!("a hook's panic costs nothing but itself");
        }
    }

    case("hooks", || {
        let log = Arc::new(Mutex::new(Vec::new()));
        let pool = ThreadPool::builder(fresh_name()).core(1).max(1);
        let pond = Pond::of(pool.hooks(Log(Arc::clone(&log))));
        let pool = pond.pool();
        let parent = pond.submit_with(TaskSpec::new().name("parent"), move || {
            let spec = TaskSpec::new().name("child");
            pool.submit_with(spec, || ()).unwrap().join().unwrap();
            let broken = TaskSpec::new().name("broken");
            let broken = pool.submit_with(broken, || panic!("the dam broke"));
            assert!(broken.unwrap().join().unwrap_err().is_panicked());
        });
        parent.unwrap().join().unwrap();
        pond.close().unwrap();
        let heard = log.lock().unwrap();
        assert_eq!(
            *heard,
            [
                "before parent",
                "before child",
                "child Completed",
                "before broken",
                "broken Panicked { message: Some(\"the dam broke\") }",
                "parent Completed",
                "before child",
                "child Gone",
                "before broken",
                "broken Gone"
            ]
        );
        let last = pond.snapshot();
        assert_eq!((last.completed, last.panicked), (3, 1));
    });
}

#[test]
fn a_long_chain_of_joins_ends_on_the_only_worker() {
    fn link(pool: ThreadPool, left: usize) -> usize {
        if left == 0 {
            return 1;
        }
        let next = {
            let pool = pool.clone();
            pool.clone().submit(move || link(pool, left - 1))
        };
        next.unwrap().join().unwrap() + 1
    }

    case("chain", || {
        // Each link runs inside the one before it, and half of the stack stays free: of a tiny one that
        // is not enough for many.
        let is_tiny = Exhaustion::of_this_process().stack.is_some();
        let links = if is_tiny { 5 } else { 100 };
        let pond = pond(1);
        let pool = pond.pool();
        let chain = pond.submit(move || link(pool, links)).unwrap();
        assert_eq!(chain.join().unwrap(), links + 1);
        let all = links as u64 + 1;
        until("it has been counted", || pond.snapshot().completed == all);
    });
}

/// An inlined task has half a stack at least. Where there is less, the join waits.
#[test]
fn nothing_is_run_inline_near_the_end_of_the_stack() {
    /// Larger than any other here, so that it is not one that another thread has left behind.
    const STACK: usize = 16 << 20;

    /// Joins when five eighths of the stack are used.
    fn far_from(start: usize, join: &mut dyn FnMut()) {
        let ballast = std::hint::black_box([0_u8; 10_000]);
        if start - ballast.as_ptr().addr() > STACK / 8 * 5 {
            join()
        } else {
            far_from(start, join)
        }
        std::hint::black_box(&ballast);
    }

    case("stack", || {
        let threads = Threads::named("deep").stack_size(STACK);
        let pool = ThreadPool::builder(fresh_name()).core(2).max(2);
        let pond = Pond::of(pool.threads(threads));
        let held = pond.hold(1);
        let (pool, joins) = (pond.pool(), Latch::new(1));
        let arrived = joins.clone();
        let parent = pond.submit(move || {
            let mut child = Some(pool.submit(|| thread::current().id()).unwrap());
            let mut ran = None;
            let start = 0_u8;
            far_from((&raw const start).addr(), &mut || {
                arrived.arrive();
                ran = child.take().map(|child| child.join().unwrap());
            });
            ran != Some(thread::current().id())
        });
        joins.wait();
        let waits = || probe::waits().into_iter();
        let is_deep = |wait: &probe::Wait| wait.name.as_deref().is_some_and(|n| n.contains("deep"));
        until("the parent waits", || {
            waits().any(|wait| wait.site.name() == "task.join" && is_deep(&wait))
        });
        held.release();
        assert!(parent.unwrap().join().unwrap(), "another worker has run it");
    });
}

#[test]
fn an_inline_join_does_not_bypass_a_queue_that_holds_tasks_back() {
    case("delayed", || {
        let hand = ManualClock::new();
        let start = hand.clock().now();
        let due = move |task: &Task| match task.name() {
            Some("tomorrow") => start + Duration::from_secs(86_400),
            _ => start,
        };
        let queue = DelayQueue::due_by(due).with_clock(hand.clock());
        let pool = ThreadPool::builder(fresh_name()).core(2).max(2);
        let pond = Pond::of(pool.clock(hand.clock()).queue(Queue::custom(queue)));
        pond.prestart_all_core().unwrap();
        let (pool, started) = (pond.pool(), Latch::new(1));
        let arrived = started.clone();
        let parent = pond.submit(move || {
            let child = pool.submit_with(TaskSpec::new().name("tomorrow"), || 7);
            arrived.arrive();
            child.unwrap().join().unwrap()
        });
        started.wait();
        until("the parent waits", || pond.waits_at("task.join") == 1);
        assert_eq!(pond.snapshot().queued, 1);
        until("a worker waits for the day", || hand.sleepers() == 1);
        hand.advance(Duration::from_secs(86_400));
        assert_eq!(parent.unwrap().join().unwrap(), 7);
    });
}

#[test]
fn an_inlined_task_is_interrupted_through_its_own_handle_and_by_a_stop() {
    case("interrupt", || {
        let pond = pond(1);
        let (pool, inside) = (pond.pool(), Latch::new(1));
        let arrived = inside.clone();
        let parent = pond.submit(move || {
            let child = pool.submit(move || {
                arrived.arrive();
                interrupt::sleep(Duration::MAX).is_err()
            });
            child.unwrap().join()
        });
        inside.wait();
        assert!(pond.shutdown_now().is_empty());
        let child = parent.unwrap().join().unwrap();
        assert!(child.unwrap(), "the stop reaches what runs in place");
    });
}

#[test]
fn a_task_that_was_handed_back_is_not_run_inline() {
    case("handed back", || {
        let pond = pond(1);
        let (pool, ready, gate) = (pond.pool(), Latch::new(1), Gate::new());
        let (arrived, shut) = (ready.clone(), gate.clone());
        let parent = pond.submit(move || {
            let child = pool.submit(|| 7).unwrap();
            arrived.arrive();
            shut.wait();
            assert!(interrupt::check().is_err(), "it was stopped");
            child.join()
        });
        ready.wait();
        let back = pond.shutdown_now();
        assert_eq!(back.len(), 1);
        gate.open();
        until("the parent waits", || pond.waits_at("task.join") == 1);
        drop(back);
        let error = parent.unwrap().join().unwrap().unwrap_err();
        assert!(matches!(
            error,
            millpond::task::TaskError::Cancelled(CancelReason::Dropped)
        ));
        pond.close().unwrap();
        assert_balanced(&pond.snapshot(), 2);
    });
}
