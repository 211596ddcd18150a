//! The thread pool in many shapes, and the suites that each must pass.
//!
//! `pool_*` are pools of plain make; `extended_*` are what a user makes of one: hooks, a queue and a
//! thread factory of its own.

#![allow(
    clippy::disallowed_types,
    reason = "a test stands outside: it uses std's locks beside what it tests"
)]

use millpond::executor::{Executor, ExecutorExt};
use millpond::manage::{CoDel, Growth, Invalid, OverloadOrder, Patch};
use millpond::pool::{Ended, Hooks, PoolBuilder, Queue, TaskInfo, ThreadPool};
use millpond::preset::java;
use millpond::queue::{
    BlockingDeque, DelayQueue, FifoQueue, HandOffQueue, PriorityQueue, TransferQueue, WeightedQueue,
};
use millpond::task::Task;
use millpond_conform::ask;
use millpond_conform::kit::{Factory, OwnQueue, Start};
use millpond_conform::suites::pond::fresh_name;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

fn pool(name: String, queue: Queue) -> PoolBuilder {
    ThreadPool::builder(name).queue(queue)
}

/// Hooks that are called for everything and do nothing.
struct Listener;

impl Hooks for Listener {
    fn before(&self, task: &TaskInfo) {
        assert!(!task.location().file().is_empty());
    }

    fn after(&self, _: &TaskInfo, _: Ended) {}

    fn terminated(&self) {}
}

fn extended(name: String, queue: Queue) -> PoolBuilder {
    let threads = Factory::new(name.clone(), |_| Start::Well);
    pool(name, queue).hooks(Listener).threads(threads)
}

fn by_name(one: &Task, other: &Task) -> std::cmp::Ordering {
    let _ = (one.name(), other.name());
    std::cmp::Ordering::Equal
}

ask! { pool_bounded, |name, places| pool(name, Queue::bounded(places)),
pool_sizes_suite pool_idle_suite pool_factory_suite pool_hooks_suite pool_ends_suite pool_races_suite
pool_waiting_suite pool_counts_suite pool_live_suite
pool_full_suite pool_refusal_suite pool_block_suite pool_extra_suite }

ask! { pool_unbounded, |name, _| pool(name, Queue::unbounded()),
pool_sizes_suite pool_idle_suite pool_factory_suite pool_hooks_suite pool_ends_suite pool_races_suite
pool_waiting_suite pool_counts_suite pool_live_suite }

ask! { pool_hand_off, |name, _| pool(name, Queue::hand_off()),
pool_sizes_suite pool_idle_suite pool_factory_suite pool_hooks_suite pool_ends_suite pool_races_suite }

ask! { extended_own_queue, |name, places| extended(name, Queue::custom(OwnQueue::bounded(places))),
pool_sizes_suite pool_idle_suite pool_factory_suite pool_hooks_suite pool_ends_suite pool_races_suite
pool_waiting_suite pool_counts_suite pool_live_suite
pool_full_suite pool_refusal_suite pool_block_suite pool_extra_suite }

ask! { extended_by_priority, |name, places| {
    extended(name, Queue::custom(PriorityQueue::by(by_name).with_bound(places).unwrap()))
},
pool_sizes_suite pool_idle_suite pool_factory_suite pool_hooks_suite pool_ends_suite pool_races_suite
pool_waiting_suite pool_counts_suite pool_live_suite
pool_full_suite pool_refusal_suite pool_block_suite pool_extra_suite }

ask! { extended_fair_hand_off, |name, _| extended(name, Queue::custom(HandOffQueue::fair())),
pool_sizes_suite pool_idle_suite pool_factory_suite pool_hooks_suite pool_ends_suite pool_races_suite }

ask! { pool_own_fifo, |name, places| pool(name, Queue::custom(FifoQueue::bounded(places).unwrap())),
pool_ends_suite pool_races_suite pool_waiting_suite pool_live_suite pool_full_suite pool_block_suite }

ask! { pool_delayed, |name, places| {
    pool(name, Queue::custom(DelayQueue::new().with_bound(places).unwrap()))
},
pool_idle_suite pool_ends_suite pool_races_suite
pool_waiting_suite pool_counts_suite pool_full_suite pool_refusal_suite pool_block_suite }

ask! { pool_weighed, |name, places| {
    pool(name, Queue::custom(WeightedQueue::bounded(places as u64, |_: &Task| 1).unwrap()))
},
pool_idle_suite pool_ends_suite pool_races_suite
pool_waiting_suite pool_counts_suite pool_full_suite pool_refusal_suite pool_block_suite }

ask! { pool_by_priority, |name, places| {
    pool(name, Queue::by_priority(places, Duration::from_millis(10)))
},
pool_sizes_suite pool_idle_suite pool_factory_suite pool_hooks_suite pool_ends_suite pool_races_suite
pool_waiting_suite pool_counts_suite pool_live_suite
pool_full_suite pool_refusal_suite pool_block_suite pool_extra_suite }

/// Everything that can be shed is, but only what has waited for an hour.
fn guarded(name: String, queue: Queue) -> PoolBuilder {
    pool(name, queue)
        .max_queue_wait(Duration::from_secs(3600))
        .shedding(CoDel::new(
            Duration::from_secs(3600),
            Duration::from_secs(3600),
        ))
        .overload_order(OverloadOrder::NewestFirst)
}

ask! { pool_guarded, |name, places| guarded(name, Queue::bounded(places)),
pool_idle_suite pool_hooks_suite pool_ends_suite pool_races_suite
pool_waiting_suite pool_counts_suite pool_live_suite pool_full_suite pool_block_suite }

ask! { pool_transfer, |name, _| pool(name, Queue::custom(TransferQueue::unbounded())),
pool_idle_suite pool_factory_suite pool_ends_suite pool_races_suite
pool_waiting_suite pool_counts_suite pool_live_suite }

ask! { pool_deque, |name, places| pool(name, Queue::custom(BlockingDeque::bounded(places).unwrap())),
pool_idle_suite pool_ends_suite pool_races_suite
pool_waiting_suite pool_counts_suite pool_full_suite pool_refusal_suite pool_block_suite }

/// Always four workers.
fn fixed() -> ThreadPool {
    let pool = ThreadPool::builder(fresh_name()).core(4).max(4);
    pool.queue(Queue::bounded(64)).build().unwrap()
}

/// As many workers as it takes, up to 16; idle ones leave soon.
fn cached() -> ThreadPool {
    let pool = ThreadPool::builder(fresh_name()).core(0).max(16);
    let pool = pool.keep_alive(Duration::from_millis(5));
    pool.queue(Queue::hand_off()).build().unwrap()
}

/// One worker after another.
fn single() -> ThreadPool {
    let pool = ThreadPool::builder(fresh_name()).core(1).max(1);
    pool.build().unwrap()
}

/// No worker stays.
fn fleeting() -> ThreadPool {
    let pool = ThreadPool::builder(fresh_name()).core(4).max(4);
    let pool = pool.keep_alive(Duration::from_nanos(1));
    pool.core_may_time_out(true).build().unwrap()
}

/// No worker is kept, and threads are started before tasks are queued.
fn eager() -> ThreadPool {
    let pool = ThreadPool::builder(fresh_name()).core(0).max(8);
    let pool = pool.keep_alive(Duration::from_millis(5));
    pool.growth(Growth::ThreadsFirst).build().unwrap()
}

fn own() -> ThreadPool {
    let pool = extended(fresh_name(), Queue::custom(OwnQueue::bounded(64)));
    pool.core(4).max(6).build().unwrap()
}

ask! { pool_fixed, || Arc::new(fixed()), executor_suite beside_suite completion_suite }
ask! { pool_fixed_ends, || Arc::new(fixed()), lifecycle_suite }
ask! { pool_cached, || Arc::new(cached()), executor_suite beside_suite completion_suite }
ask! { pool_cached_ends, || Arc::new(cached()), lifecycle_suite }
ask! { pool_single, || Arc::new(single()), executor_suite completion_suite }
ask! { pool_fleeting, || Arc::new(fleeting()), executor_suite beside_suite completion_suite }
ask! { pool_fleeting_ends, || Arc::new(fleeting()), lifecycle_suite }
ask! { pool_eager, || Arc::new(eager()), executor_suite beside_suite completion_suite }
ask! { pool_eager_ends, || Arc::new(eager()), lifecycle_suite }
ask! { extended_service, || Arc::new(own()), executor_suite beside_suite completion_suite }
ask! { extended_service_ends, || Arc::new(own()), lifecycle_suite }

static FIXED: LazyLock<ThreadPool> = LazyLock::new(fixed);
static CACHED: LazyLock<ThreadPool> = LazyLock::new(|| {
    let pool = ThreadPool::builder("cached").core(0).max(256);
    pool.queue(Queue::hand_off()).build().unwrap()
});
static EAGER: LazyLock<ThreadPool> = LazyLock::new(|| {
    let pool = ThreadPool::builder("eager").core(0).max(256);
    pool.growth(Growth::ThreadsFirst).build().unwrap()
});
static EXTENDED: LazyLock<ThreadPool> = LazyLock::new(own);

ask! { pool_fixed_tasks, |task| FIXED.execute_task(task).unwrap(), task_suite }
ask! { pool_cached_tasks, |task| CACHED.execute_task(task).unwrap(), task_suite }
ask! { pool_eager_tasks, |task| EAGER.execute_task(task).unwrap(), task_suite }
ask! { extended_tasks, |task| EXTENDED.execute_task(task).unwrap(), task_suite }

/// Holds: ExecutorsTest.testUnconfigurableExecutorService
#[test]
fn a_facade_without_parameters_still_runs_tasks() {
    let facade: Box<dyn millpond_conform::suites::lifecycle::Service> = Box::new(fixed());
    assert_eq!(facade.submit(|| 7).unwrap().join().unwrap(), 7);
    facade.close().unwrap();
    assert!(facade.is_terminated());
}

#[test]
fn everything_that_is_wrong_with_a_patch_is_named() {
    let named = |pool: ThreadPool, capacity| {
        let wrong = Patch::new().max(0).capacity(capacity);
        let error = pool.apply(&wrong).unwrap_err();
        let fields: Vec<&str> = error.problems().iter().map(Invalid::parameter).collect();
        fields.join(" ")
    };
    assert_eq!(named(fixed(), 0), "max capacity");
    assert_eq!(named(cached(), 7), "max capacity");
    assert_eq!(
        named(java::fixed("many", 2).build().unwrap(), 0),
        "max capacity"
    );
}
