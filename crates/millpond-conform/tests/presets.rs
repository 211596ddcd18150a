//! Pools for the usual needs.

#![allow(
    clippy::disallowed_types,
    reason = "a test stands outside: it uses std's locks beside what it tests"
)]

use millpond::executor::{Executor, ExecutorExt, Lifecycle};
use millpond::manage::Growth;
use millpond::pool::{PoolBuilder, RejectionPolicy, ThreadPool};
use millpond::preset::{self, java};
use millpond::schedule::ScheduledPool;
use millpond::time::ManualClock;
use millpond_conform::kit::{Factory, Gate, Latch, Start, Stopwatch, delays, until};
use millpond_conform::suites::pond::{Pond, fresh_name};
use std::sync::Arc;
use std::time::Duration;

fn name_of_thread() -> Option<String> {
    std::thread::current().name().map(str::to_owned)
}

/// Runs tasks, in threads of its own and in those of a given factory.
fn works(preset: impl Fn(String) -> PoolBuilder) {
    let own = Pond::of(preset(fresh_name()));
    let ran_in = own.submit(name_of_thread).unwrap().join().unwrap();
    assert_eq!(ran_in, Some(format!("{}-1", own.name())));
    let factory = Arc::new(Factory::new("given", |_| Start::Well));
    let given = Pond::of(preset(fresh_name()).threads(Arc::clone(&factory)));
    let ran_in = given.submit(name_of_thread).unwrap().join().unwrap();
    assert_eq!(ran_in.as_deref(), Some("given-1"));
    assert_eq!(factory.asked(), 1);
    own.close().unwrap();
    given.close().unwrap();
}

/// Holds: ExecutorsTest.testNewCachedThreadPool1, ExecutorsTest.testNewCachedThreadPool2
#[test]
fn a_cached_pool_has_a_worker_for_each_task_up_to_its_most_and_lets_idle_ones_go() {
    works(|name| preset::cached(name, 4));
    works(java::cached);
    let hand = ManualClock::new();
    let pond = Pond::of(preset::cached(fresh_name(), 3).clock(hand.clock()));
    assert_eq!((pond.core(), pond.max()), (0, 3));
    assert_eq!(pond.capacity(), Some(0));
    let held = pond.hold(3);
    assert!(pond.submit(|| ()).unwrap_err().reason.is_saturated());
    held.release();
    until("all wait by the clock", || hand.sleepers() == 3);
    pond.await_idle(3);
    pond.hold(3).release();
    assert_eq!(
        pond.snapshot().threads_started,
        3,
        "idle ones are used again"
    );
    until("all wait by the clock", || hand.sleepers() == 3);
    hand.advance(Duration::from_secs(60));
    pond.await_workers(0);
    let java = Pond::of(java::cached(fresh_name()));
    let held = java.hold(20);
    assert_eq!(java.snapshot().workers, 20);
    held.release();
}

/// Holds: ExecutorsTest.testNewSingleThreadExecutor1, ExecutorsTest.testNewSingleThreadExecutor2
#[test]
fn a_single_worker_runs_everything_in_order() {
    works(preset::single);
    works(java::single);
    for (builder, capacity) in [
        (preset::single(fresh_name()), Some(1024)),
        (java::single(fresh_name()), None),
    ] {
        let pond = Pond::of(builder);
        assert_eq!((pond.core(), pond.max()), (1, 1));
        assert_eq!(pond.capacity(), capacity);
        let order = Arc::new(std::sync::Mutex::new(Vec::new()));
        for number in 0..500 {
            let own = Arc::clone(&order);
            pond.execute(move || own.lock().unwrap().push(number))
                .unwrap();
        }
        pond.close().unwrap();
        assert!(order.lock().unwrap().iter().copied().eq(0..500));
    }
}

/// Holds: ExecutorsTest.testNewFixedThreadPool1, ExecutorsTest.testNewFixedThreadPool2
#[test]
fn a_fixed_pool_has_so_many_workers_and_keeps_them() {
    works(|name| preset::fixed(name, 2));
    works(|name| java::fixed(name, 2));
    for (builder, capacity) in [
        (preset::fixed(fresh_name(), 3), Some(1024)),
        (java::fixed(fresh_name(), 3), None),
    ] {
        let hand = ManualClock::new();
        let pond = Pond::of(builder.clock(hand.clock()));
        assert_eq!((pond.core(), pond.max()), (3, 3));
        assert_eq!(pond.capacity(), capacity);
        assert!(matches!(pond.rejection(), RejectionPolicy::Abort));
        assert_eq!(pond.growth(), Growth::QueueFirst);
        pond.hold(3).release();
        pond.await_idle(3);
        hand.advance(Duration::from_secs(3600));
        assert_eq!(
            (pond.idle(), hand.sleepers()),
            (3, 0),
            "nobody looks at the clock"
        );
    }
}

/// Holds: ExecutorsTest.testNewFixedThreadPool4
#[test]
fn a_pool_without_workers_is_an_error_with_advice() {
    for builder in [
        preset::fixed("none", 0),
        preset::cached("none", 0),
        java::fixed("none", 0),
    ] {
        let error = builder.build().unwrap_err();
        assert!(
            error.to_string().contains("write an integer from 1"),
            "{error}"
        );
    }
}

/// Holds: ExecutorsTest.testNewSingleThreadScheduledExecutor
/// Holds: ExecutorsTest.testNewScheduledThreadPool
#[test]
fn a_scheduled_pool_runs_a_task_when_its_delay_is_over() {
    for workers in [1, 3] {
        let timers = preset::scheduled(fresh_name(), workers).unwrap();
        assert_eq!(timers.executor().core(), workers);
        let watch = Stopwatch::start();
        let ran_in = timers.schedule(delays::short(), name_of_thread).unwrap();
        let ran_in = ran_in.join().unwrap();
        watch.assert_at_least(delays::short());
        assert_eq!(ran_in, Some(format!("{}-1", timers.name())));
        timers.close().unwrap();
    }
    let error = preset::scheduled("none", 0).unwrap_err();
    assert!(error.to_string().contains("write an integer from 1"));
}

/// A caller with this facade cannot reach the parameters of the pool behind it.
///
/// Holds: ExecutorsTest.testUnconfigurableScheduledExecutorService
#[test]
fn a_scheduled_pool_over_a_facade_runs_delayed_tasks() {
    let below: Arc<dyn Executor> = Arc::new(preset::fixed(fresh_name(), 1).build().unwrap());
    let timers: ScheduledPool<Arc<dyn Executor>> = ScheduledPool::on(below).build();
    let watch = Stopwatch::start();
    let handle = timers.schedule(delays::short(), || 7).unwrap();
    assert_eq!(handle.join().unwrap(), 7);
    watch.assert_at_least(delays::short());
    timers.close().unwrap();
}

#[test]
fn a_bounded_pool_rejects_where_an_unbounded_one_accepts_everything() {
    let fill = |pool: ThreadPool| {
        let (gate, started) = (Gate::new(), Latch::new(1));
        let (held, begun) = (gate.clone(), started.clone());
        let first = move || {
            begun.arrive();
            held.wait();
        };
        pool.execute(first).unwrap();
        started.wait();
        let accepted = (0..3000)
            .take_while(|_| pool.execute(|| ()).is_ok())
            .count();
        gate.open();
        pool.close().unwrap();
        accepted
    };
    assert_eq!(fill(preset::single(fresh_name()).build().unwrap()), 1024);
    assert_eq!(fill(java::single(fresh_name()).build().unwrap()), 3000);
}

#[test]
fn a_preset_can_still_be_changed_before_it_is_built() {
    let builder = preset::fixed(fresh_name(), 4).core(1).max(2);
    let pond = Pond::of(builder.rejection(RejectionPolicy::Discard));
    assert_eq!((pond.core(), pond.max()), (1, 2));
    assert!(matches!(pond.rejection(), RejectionPolicy::Discard));
}

#[test]
fn sizes_for_computing_and_for_waiting_can_be_had() {
    let compute = preset::cpu_bound_workers();
    assert!(compute >= 1);
    assert!(preset::blocking_workers(0.0) <= compute.max(1));
    assert!(preset::blocking_workers(9.0) >= preset::blocking_workers(1.0));
    for nonsense in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -1.0] {
        assert_eq!(
            preset::blocking_workers(nonsense),
            preset::blocking_workers(0.0)
        );
    }
    let pond = Pond::of(preset::fixed(fresh_name(), preset::blocking_workers(3.0)));
    assert_eq!(pond.submit(|| 7).unwrap().join().unwrap(), 7);
    assert!(
        preset::fixed("huge", preset::blocking_workers(1e300))
            .build()
            .is_err()
    );
}
