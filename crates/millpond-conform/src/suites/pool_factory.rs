//! The thread factory of a pool, and what happens when it fails.

use super::pond::{Make, Pond};
use crate::kit::{DropCount, Factory, Rng, Start, until};
use millpond::executor::{ExecutorExt, Lifecycle, RejectReason};
use millpond::pool::PoolBuilder;
use millpond::task::TaskHandle;
use millpond::thread::{ThreadFactory, Threads};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

/// Tests of the threads of a pool that is described by a [`Make`].
#[macro_export]
macro_rules! pool_factory_suite {
    ($make:expr) => {
        $crate::bodies! { pool_factory, ($make as $crate::suites::pond::Make);
            threads_come_from_the_factory_that_it_reports
            another_factory_makes_the_threads_from_then_on
            a_factory_that_gives_nothing_costs_the_submitter_nothing
            a_factory_that_gives_nothing_ever_leaves_no_worker_behind
            with_the_workers_that_there_are_it_goes_on
            a_factory_that_fails_now_and_then_costs_no_task
            a_body_that_is_dropped_leaves_no_task_waiting
            a_body_that_is_kept_and_dropped_leaves_no_task_waiting
            a_thread_that_was_started_all_the_same_runs_nothing_twice
            a_worker_that_cannot_be_started_ahead_is_an_error
        }
    };
}

/// A pool of one worker or none, with this factory.
fn with_factory(make: &Make, core: usize, factory: &Arc<Factory>) -> Pond {
    let factory = Arc::clone(factory);
    Pond::new(make, 8, |pool: PoolBuilder| {
        pool.core(core).max(1).threads(factory)
    })
}

fn factory(decide: impl Fn(u64) -> Start + Send + Sync + 'static) -> Arc<Factory> {
    Arc::new(Factory::new("own", decide))
}

fn name() -> Option<String> {
    std::thread::current().name().map(str::to_owned)
}

/// Holds: ThreadPoolExecutorTest.testGetThreadFactory
/// Holds: ThreadPoolExecutorSubclassTest.testGetThreadFactory
pub fn threads_come_from_the_factory_that_it_reports(make: &Make) {
    let own = factory(|_| Start::Well);
    let pond = with_factory(make, 1, &own);
    let ran_in = pond.submit(name).unwrap().join().unwrap();
    assert_eq!(ran_in.as_deref(), Some("own-1"));
    assert_eq!(own.asked(), 1);
    let reported = pond.thread_factory();
    reported.start(Box::new(|| ())).unwrap().join().unwrap();
    assert_eq!(own.asked(), 2, "it reports the one that it was given");
}

/// Holds: ThreadPoolExecutorTest.testSetThreadFactory
/// Holds: ThreadPoolExecutorSubclassTest.testSetThreadFactory
pub fn another_factory_makes_the_threads_from_then_on(make: &Make) {
    let pond = Pond::new(make, 4, |pool| pool.core(2).max(2));
    pond.prestart_core().unwrap();
    let other: Arc<dyn ThreadFactory> = Arc::new(Threads::named("other"));
    pond.set_thread_factory(Arc::clone(&other));
    assert!(Arc::ptr_eq(&pond.thread_factory(), &other));
    let ran_in = pond.submit(name).unwrap().join().unwrap();
    assert_eq!(ran_in.as_deref(), Some("other-1"));
    assert_eq!(pond.snapshot().threads_started, 2);
}

/// In whatever way it fails, and whether or not the task would have waited in the queue.
///
/// Holds: jtreg ThreadPoolExecutor.FlakyThreadFactory
pub fn a_factory_that_gives_nothing_costs_the_submitter_nothing(make: &Make) {
    for vice in [Start::Refuse, Start::Panic] {
        for core in [0, 1] {
            let count = DropCount::new();
            let (decided, panics) = (vice.clone(), matches!(vice, Start::Panic));
            let own = factory(move |_| decided.clone());
            let pond = with_factory(make, core, &own);
            for failures in 1..=3 {
                let token = count.token();
                let rejected = pond.submit(move || token).unwrap_err();
                match &rejected.reason {
                    RejectReason::SpawnFailed(error) => {
                        assert_eq!(error.to_string().contains("panicked"), panics);
                    }
                    other => panic!("{other:?}"),
                }
                count.assert_alive(1);
                drop((rejected.task)());
                let now = pond.snapshot();
                assert_eq!((now.workers, now.queued, now.active), (0, 0, 0));
                assert_eq!((now.thread_failures, now.threads_started), (failures, 0));
                assert_eq!(now.left_to_policy, failures);
            }
            pond.shutdown();
            assert!(pond.is_terminated(), "there is no worker to wait for");
        }
    }
}

/// No phantom keeps it from its end.
pub fn a_factory_that_gives_nothing_ever_leaves_no_worker_behind(make: &Make) {
    let own = factory(|_| Start::Refuse);
    let pond = Pond::new(make, 8, |pool| {
        pool.core(3).max(3).threads(Arc::clone(&own))
    });
    for _ in 0..10 {
        assert!(pond.execute(|| panic!("it ran")).is_err());
    }
    assert_eq!(pond.snapshot().largest, 0, "no worker ever started");
    assert!(pond.shutdown_now().is_empty());
    assert!(pond.is_terminated());
}

/// Holds: ThreadPoolExecutorSubclassTest.testFailingThreadFactory
pub fn with_the_workers_that_there_are_it_goes_on(make: &Make) {
    let own = factory(|number| match number {
        1 => Start::Well,
        _ => Start::Refuse,
    });
    let pond = Pond::new(make, 100, |pool| {
        pool.core(5).max(9).threads(Arc::clone(&own))
    });
    let held = pond.hold(1);
    let ran = Arc::new(AtomicUsize::new(0));
    let mut accepted = 0;
    for _ in 0..50 {
        let ran = Arc::clone(&ran);
        let body = move || {
            ran.fetch_add(1, Ordering::SeqCst);
        };
        // A queue that holds takes it; where there is no place to wait, it comes back.
        match pond.execute(body) {
            Ok(()) => accepted += 1,
            Err(rejected) => {
                assert!(matches!(rejected.reason, RejectReason::SpawnFailed(_)));
                assert_eq!(pond.capacity(), Some(0));
            }
        }
    }
    assert!(own.asked() > 1, "it was tried again");
    held.release();
    pond.await_completed(accepted + 1);
    assert_eq!(ran.load(Ordering::SeqCst) as u64, accepted);
    assert_eq!(pond.snapshot().workers, 1);
}

/// At random, in every way: what is accepted is run, and what is not comes back.
///
/// Holds: ThreadPoolExecutorSubclassTest.testFailingThreadFactory
/// Holds: jtreg ThreadPoolExecutor.FlakyThreadFactory
pub fn a_factory_that_fails_now_and_then_costs_no_task(make: &Make) {
    for seed in 0..20 {
        let rng = Mutex::new(Rng::new(seed));
        let own = factory(move |_| match rng.lock().unwrap().below(6) {
            0 => Start::Refuse,
            1 => Start::Panic,
            2 => Start::StartAndRefuse,
            3 => Start::StartAndPanic,
            _ => Start::Well,
        });
        let pond = Pond::new(make, 1000, |pool| {
            pool.core(2).max(6).threads(Arc::clone(&own))
        });
        let runs: Arc<Vec<AtomicUsize>> = Arc::new((0..60).map(|_| AtomicUsize::new(0)).collect());
        let mut accepted = vec![false; 60];
        for (number, accepted) in accepted.iter_mut().enumerate() {
            let own = Arc::clone(&runs);
            let body = move || {
                own[number].fetch_add(1, Ordering::SeqCst);
            };
            *accepted = pond.execute(body).is_ok();
        }
        pond.close().unwrap();
        for (number, accepted) in accepted.into_iter().enumerate() {
            let ran = runs[number].load(Ordering::SeqCst);
            assert_eq!(ran, usize::from(accepted), "task {number}, seed {seed}");
        }
    }
}

/// A task is run, or comes back, or its handle says that it never will be.
fn assert_settled(outcomes: Vec<Option<TaskHandle<u32>>>) {
    for handle in outcomes.into_iter().flatten() {
        until("it is settled", || handle.is_finished());
        assert!(handle.join().unwrap_err().is_cancelled());
    }
}

/// The factory says yes and does nothing.
///
/// Holds: jtreg ThreadPoolExecutor.FlakyThreadFactory
pub fn a_body_that_is_dropped_leaves_no_task_waiting(make: &Make) {
    for core in [0, 1] {
        let own = factory(|_| Start::DropBody);
        let pond = with_factory(make, core, &own);
        let outcomes = (0..3).map(|number| pond.submit(move || number).ok());
        let outcomes: Vec<_> = outcomes.collect();
        assert_eq!(pond.snapshot().workers, 0);
        assert_settled(outcomes);
        pond.shutdown();
        pond.await_end();
    }
}

/// The factory says yes, does nothing, and gives up later: each thread costs one task, and the
/// others get a try of their own.
pub fn a_body_that_is_kept_and_dropped_leaves_no_task_waiting(make: &Make) {
    for core in [0, 1] {
        for ends_first in [false, true] {
            let own = factory(|_| Start::KeepBody);
            let pond = with_factory(make, core, &own);
            let outcomes = (0..3).map(|number| pond.submit(move || number).ok());
            let outcomes: Vec<_> = outcomes.collect();
            assert_eq!(pond.snapshot().workers, 1);
            if ends_first {
                pond.shutdown();
            }
            while own.drop_kept() > 0 {}
            let now = pond.snapshot();
            assert_eq!((now.workers, now.queued), (0, 0));
            let accepted = outcomes.iter().flatten().count() as u64;
            assert_eq!((now.cancelled, own.asked()), (accepted, accepted));
            assert_settled(outcomes);
            pond.shutdown();
            pond.await_end();
        }
    }
}

/// The factory starts the thread and says that it has not.
pub fn a_thread_that_was_started_all_the_same_runs_nothing_twice(make: &Make) {
    for vice in [Start::StartAndRefuse, Start::StartAndPanic] {
        for core in [0, 1] {
            let decided = vice.clone();
            let own = factory(move |_| decided.clone());
            let pond = with_factory(make, core, &own);
            let ran = Arc::new(AtomicUsize::new(0));
            let mut accepted = 0;
            for _ in 0..20 {
                let ran = Arc::clone(&ran);
                let body = move || ran.fetch_add(1, Ordering::SeqCst);
                match pond.submit(body) {
                    Ok(handle) => {
                        handle.join().unwrap();
                        accepted += 1;
                    }
                    Err(rejected) => assert!(!rejected.reason.is_shut_down()),
                }
            }
            pond.close().unwrap();
            assert_eq!(ran.load(Ordering::SeqCst), accepted);
        }
    }
}

/// Those that could be started stay.
pub fn a_worker_that_cannot_be_started_ahead_is_an_error(make: &Make) {
    let own = factory(|number| match number {
        1 | 2 => Start::Well,
        _ => Start::Refuse,
    });
    let pond = Pond::new(make, 4, |pool| {
        pool.core(4).max(4).threads(Arc::clone(&own))
    });
    assert!(pond.prestart_core().unwrap());
    assert!(pond.prestart_all_core().is_err());
    assert!(pond.prestart_core().is_err());
    assert_eq!(pond.snapshot().workers, 2);
    // Where no task can wait, a worker must be there to take it from the hand.
    until("they run tasks", || {
        let brought = pond.submit(|| 7);
        brought.is_ok_and(|handle| handle.join().is_ok())
    });
}
