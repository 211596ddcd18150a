//! Destructors of what users give to a pool: they may panic, and they may use the pool.

#![allow(
    clippy::disallowed_types,
    reason = "a test stands outside: it uses std's locks beside what it tests"
)]

use millpond::executor::{Executor, ExecutorExt, Lifecycle};
use millpond::pool::{
    PoolBuilder, Queue, RejectionContext, RejectionHandler, RejectionPolicy, ThreadPool,
};
use millpond::task::{Task, TaskSpec};
use millpond::thread::{Body, JoinHandle, ThreadFactory, Threads};
use millpond::time::{Clock, Deadline};
use millpond_conform::kit::{DropCount, DropToken, OwnQueue, case, until};
use millpond_conform::suites::pond::{Pond, fresh_name};
use std::panic::panic_any;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

/// What runs when a value is dropped.
struct OnDrop<F: FnMut()>(F, #[allow(dead_code, reason = "it is dropped")] DropToken);

impl<F: FnMut()> Drop for OnDrop<F> {
    fn drop(&mut self) {
        (self.0)();
    }
}

/// Loses a task that carries `load`, in every way in which a pool can lose one.
fn lose<L: Send + 'static>(queue: fn() -> Queue, load: impl Fn(&ThreadPool) -> L) {
    let one = |shape: fn(PoolBuilder) -> PoolBuilder| {
        let builder = ThreadPool::builder(fresh_name()).core(1).max(1);
        Pond::of(shape(builder.queue(queue())))
    };
    let carries = |pool: &ThreadPool| {
        let load = load(pool);
        move || drop(load)
    };
    // Cancelled, removed and purged while it waits.
    let pond = one(|pool| pool);
    let held = pond.hold(1);
    pond.submit(carries(&pond)).unwrap().cancel();
    let removed = pond.submit(carries(&pond)).unwrap();
    assert!(pond.remove(&removed));
    drop(removed);
    pond.submit(carries(&pond)).unwrap().interrupt();
    pond.purge();
    // Too late when its turn comes.
    let late = TaskSpec::new().deadline(Deadline::at(Clock::system().now()));
    let late = pond.submit_with(late, carries(&pond)).unwrap();
    held.release();
    assert!(late.join().unwrap_err().is_cancelled());
    pond.close().unwrap();
    // Thrown away: the new one, and the old one.
    let pond = one(|pool| pool.rejection(RejectionPolicy::Discard));
    let held = pond.hold(1);
    while pond.snapshot().discarded < 2 {
        drop(pond.submit(carries(&pond)).unwrap());
    }
    pond.set_rejection(RejectionPolicy::DiscardOldest);
    while pond.snapshot().discarded < 4 {
        drop(pond.submit(carries(&pond)).unwrap());
    }
    // Thrown away by a handler, and given back to be dropped by the caller's callee.
    pond.set_rejection(RejectionPolicy::custom(|task, _| {
        drop(task);
        Ok(())
    }));
    drop(pond.submit(carries(&pond)).unwrap());
    held.release();
    pond.close().unwrap();
    // Handed back by a stop, and dropped.
    let pond = one(|pool| pool);
    pond.occupy(1);
    drop(pond.submit(carries(&pond)).unwrap());
    drop(pond.shutdown_now());
    pond.await_end();
    // As the value that nobody takes: of a handle that was let go, and of a cancelled task.
    let pond = one(|pool| pool);
    let value = load(&pond);
    drop(pond.submit(move || value).unwrap());
    let value = load(&pond);
    let cancelled = pond.submit(move || value).unwrap();
    cancelled.cancel();
    pond.close().unwrap();
}

const QUEUES: [fn() -> Queue; 2] = [
    || Queue::bounded(4),
    || Queue::custom(OwnQueue::<Task>::bounded(4)),
];

#[test]
fn destructors_that_panic_cost_nothing_but_themselves() {
    for queue in QUEUES {
        case("panics", || {
            let count = DropCount::new();
            lose(queue, |_| {
                let boom = || panic_any("do not drop me");
                OnDrop(boom, count.token())
            });
            until("all are dropped", || count.alive() == 0);
        });
    }
}

#[test]
fn destructors_may_use_the_pool() {
    for queue in QUEUES {
        case("uses", || {
            let (count, uses) = (DropCount::new(), Arc::new(AtomicUsize::new(0)));
            lose(queue, |pool| {
                let (pool, uses) = (pool.clone(), Arc::clone(&uses));
                let use_it = move || {
                    let (core, max) = (pool.core(), pool.max());
                    let _ = (pool.snapshot(), pool.queued_tasks(), pool.purge());
                    let _ = (pool.set_core(core), pool.set_max(max));
                    pool.set_rejection(pool.rejection());
                    pool.set_thread_factory(pool.thread_factory());
                    let _ = (pool.prestart_core(), format!("{pool:?}"));
                    uses.fetch_add(1, Ordering::SeqCst);
                };
                OnDrop(use_it, count.token())
            });
            until("all are dropped", || count.alive() == 0);
            assert!(uses.load(Ordering::SeqCst) > 10);
        });
    }
}

#[test]
fn a_payload_that_panics_when_it_is_dropped_costs_nothing() {
    case("payload", || {
        let count = DropCount::new();
        let pond = Pond::of(ThreadPool::builder(fresh_name()).core(1).max(1));
        for _ in 0..3 {
            let token = count.token();
            let boom = || panic_any("do not drop me");
            let body = move || panic_any(Payload(Some(token), boom));
            pond.execute(body).unwrap();
        }
        pond.close().unwrap();
        assert_eq!(pond.snapshot().panicked, 3);
        assert_eq!(pond.snapshot().threads_started, 1);
        until("all are dropped", || count.alive() == 0);
    });
}

struct Payload(Option<DropToken>, fn());

impl Drop for Payload {
    fn drop(&mut self) {
        drop(self.0.take());
        (self.1)();
    }
}

/// A part of a pool that uses it when it is replaced and dropped.
struct Part {
    pool: Mutex<Option<ThreadPool>>,
    threads: Threads,
    used: Arc<AtomicUsize>,
}

impl Drop for Part {
    fn drop(&mut self) {
        let pool = self.pool.lock().unwrap().take().unwrap();
        let _ = (pool.rejection(), pool.thread_factory(), pool.snapshot());
        pool.set_max(pool.max()).unwrap();
        self.used.fetch_add(1, Ordering::SeqCst);
    }
}

impl std::fmt::Debug for Part {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("a part")
    }
}

impl ThreadFactory for Part {
    fn start(&self, body: Body) -> std::io::Result<JoinHandle<()>> {
        self.threads.start(body)
    }
}

impl RejectionHandler for Part {
    fn reject(
        &self,
        task: Task,
        refusal: RejectionContext<'_>,
    ) -> Result<(), millpond::executor::Rejected<Task>> {
        refusal.give_back(task)
    }
}

#[test]
fn a_part_that_is_replaced_is_dropped_outside_the_locks_of_the_pool() {
    case("part", || {
        let pond = Pond::of(ThreadPool::builder(fresh_name()).core(1).max(1));
        let used = Arc::new(AtomicUsize::new(0));
        let part = || {
            Arc::new(Part {
                pool: Mutex::new(Some(pond.pool())),
                threads: Threads::named("part"),
                used: Arc::clone(&used),
            })
        };
        pond.set_thread_factory(part());
        pond.set_rejection(RejectionPolicy::Custom(part()));
        assert_eq!(pond.submit(|| 7).unwrap().join().unwrap(), 7);
        pond.set_thread_factory(Arc::new(Threads::named("plain")));
        pond.set_rejection(RejectionPolicy::Abort);
        assert_eq!(used.load(Ordering::SeqCst), 2);
    });
}

#[test]
fn a_task_that_is_given_back_is_the_callers_to_drop() {
    let count = DropCount::new();
    let pond = Pond::of(ThreadPool::builder(fresh_name()).core(1).max(1));
    pond.shutdown();
    let token = count.token();
    let task = TaskSpec::new().build_detached(move || drop(token));
    let refused = pond.execute_task(task).unwrap_err();
    count.assert_alive(1);
    drop(refused);
    count.assert_alive(0);
}
