//! The number of workers of a pool: its parameters, its counters, and invalid values.

use super::pond::{Make, Pond, fresh_name};
use crate::kit::{Factory, Start};
use millpond::executor::{ExecutorExt, Lifecycle};
use millpond::pool::{PoolBuilder, RejectionPolicy, ThreadPool};
use std::time::Duration;

/// Tests of the sizes of a pool that is described by a [`Make`].
#[macro_export]
macro_rules! pool_sizes_suite {
    ($make:expr) => {
        $crate::bodies! { pool_sizes, ($make as $crate::suites::pond::Make);
            it_reports_what_it_was_told
            parameters_that_are_not_given_are_as_documented
            below_the_core_every_task_starts_a_worker_even_beside_idle_ones
            one_core_worker_is_started_ahead_of_its_tasks
            all_core_workers_are_started_ahead_of_their_tasks
            workers_are_counted_while_they_live
            the_largest_number_of_workers_never_shrinks
            sizes_that_do_not_fit_are_rejected_before_it_is_built
            sizes_that_do_not_fit_are_rejected_while_it_runs
        }
    };
}

/// Holds: ThreadPoolExecutorTest.testGetCorePoolSize, ThreadPoolExecutorTest.testGetMaximumPoolSize
/// Holds: ThreadPoolExecutorSubclassTest.testGetCorePoolSize
/// Holds: ThreadPoolExecutorSubclassTest.testGetKeepAliveTime
pub fn it_reports_what_it_was_told(make: &Make) {
    let keep_alive = Duration::from_millis(1500);
    let pond = Pond::new(make, 3, |pool| pool.core(2).max(7).keep_alive(keep_alive));
    assert_eq!((pond.core(), pond.max()), (2, 7));
    assert_eq!(pond.keep_alive(), keep_alive);
    let told = pond.snapshot();
    assert_eq!((told.core, told.max, told.keep_alive), (2, 7, keep_alive));
    assert_eq!(
        (told.core_may_time_out, told.growth),
        (pond.core_may_time_out(), pond.growth())
    );
    assert_eq!((told.capacity, &*told.name), (pond.capacity(), pond.name()));
    pond.set_core(5).unwrap();
    pond.set_max(9).unwrap();
    pond.set_keep_alive(Duration::MAX).unwrap();
    let told = pond.snapshot();
    assert_eq!(
        (told.core, told.max, told.keep_alive),
        (5, 9, Duration::MAX)
    );
    let text = format!("{:?}", pond.pool());
    assert!(
        text.contains("core 5, max 9") && text.contains(pond.name()),
        "{text}"
    );
}

/// Holds: ThreadPoolExecutorTest.testAllowsCoreThreadTimeOut
/// Holds: ThreadPoolExecutorSubclassTest.testAllowsCoreThreadTimeOut
/// Holds: ThreadPoolExecutorTest.testDefaultRejectedExecutionHandler
pub fn parameters_that_are_not_given_are_as_documented(make: &Make) {
    let pond = Pond::new(make, 1, |pool| pool);
    assert!(!pond.core_may_time_out());
    assert!(matches!(pond.rejection(), RejectionPolicy::Abort));
    assert_eq!(pond.keep_alive(), Duration::from_secs(60));
    assert!(pond.core() >= 1 && pond.core() == pond.max());
    let max_only = Pond::new(make, 1, |pool| pool.max(3));
    assert_eq!((max_only.core(), max_only.max()), (3, 3));
    let core_only = Pond::new(make, 1, |pool| pool.core(0));
    assert_eq!((core_only.core(), core_only.max()), (0, 1));
}

/// Core workers come one by one, one for each task, until there are enough.
pub fn below_the_core_every_task_starts_a_worker_even_beside_idle_ones(make: &Make) {
    let pond = Pond::new(make, 4, |pool| pool.core(3).max(3));
    for workers in [1, 2, 3, 3, 3] {
        pond.submit(|| ()).unwrap().join().unwrap();
        assert_eq!(pond.snapshot().workers, workers);
        pond.await_idle(workers);
    }
    assert_eq!(pond.snapshot().threads_started, 3);
}

/// Holds: ThreadPoolExecutorTest.testPrestartCoreThread
/// Holds: ThreadPoolExecutorSubclassTest.testPrestartCoreThread
pub fn one_core_worker_is_started_ahead_of_its_tasks(make: &Make) {
    let pond = Pond::new(make, 4, |pool| pool.core(2).max(6));
    for (workers, started) in [(1, true), (2, true), (2, false), (2, false)] {
        assert_eq!(pond.prestart_core().unwrap(), started);
        assert_eq!(pond.snapshot().workers, workers);
        pond.await_idle(workers);
    }
    pond.set_core(4).unwrap();
    for (workers, started) in [(3, true), (4, true), (4, false)] {
        assert_eq!(pond.prestart_core().unwrap(), started);
        assert_eq!(pond.snapshot().workers, workers);
    }
}

/// Holds: ThreadPoolExecutorTest.testPrestartAllCoreThreads
/// Holds: ThreadPoolExecutorSubclassTest.testPrestartAllCoreThreads
pub fn all_core_workers_are_started_ahead_of_their_tasks(make: &Make) {
    let pond = Pond::new(make, 4, |pool| pool.core(2).max(6));
    assert_eq!(pond.prestart_all_core().unwrap(), 2);
    assert_eq!(pond.snapshot().workers, 2);
    assert_eq!(pond.prestart_all_core().unwrap(), 0);
    pond.set_core(4).unwrap();
    assert!(pond.prestart_core().unwrap());
    assert_eq!(pond.prestart_all_core().unwrap(), 1, "only what is missing");
    assert_eq!(pond.snapshot().workers, 4);
    pond.await_idle(4);
    let core_none = Pond::new(make, 4, |pool| pool.core(0).max(2));
    assert_eq!(core_none.prestart_all_core().unwrap(), 0);
    assert!(!core_none.prestart_core().unwrap());
}

/// Holds: ThreadPoolExecutorSubclassTest.testGetPoolSize
pub fn workers_are_counted_while_they_live(make: &Make) {
    let pond = Pond::new(make, 1, |pool| pool.core(1).max(1));
    assert_eq!(pond.snapshot().workers, 0);
    let held = pond.hold(1);
    assert_eq!(pond.snapshot().workers, 1);
    pond.shutdown();
    assert_eq!(pond.snapshot().workers, 1);
    held.release();
    pond.await_end();
    assert_eq!(pond.snapshot().workers, 0);
}

/// Holds: ThreadPoolExecutorTest.testGetLargestPoolSize
/// Holds: ThreadPoolExecutorSubclassTest.testGetLargestPoolSize
pub fn the_largest_number_of_workers_never_shrinks(make: &Make) {
    let pond = Pond::new(make, 4, |pool| pool.core(3).max(3));
    assert_eq!(pond.snapshot().largest, 0);
    for largest in 1..=3 {
        let held = pond.hold(1);
        assert_eq!(pond.snapshot().largest, largest);
        held.release();
        pond.await_idle(largest);
    }
    pond.set_core(1).unwrap();
    pond.set_max(1).unwrap();
    pond.await_workers(1);
    assert_eq!(pond.snapshot().largest, 3);
    pond.close().unwrap();
    assert_eq!(pond.snapshot().largest, 3);
}

/// Every way to describe a pool: with a factory and without, with a handler and without.
fn forms(make: &Make) -> [PoolBuilder; 4] {
    let form = || make(fresh_name(), 1);
    let factory = || Factory::new("never", |_| Start::Well);
    let handler = || RejectionPolicy::custom(|task, context| context.give_back(task));
    [
        form(),
        form().threads(factory()),
        form().rejection(handler()),
        form().threads(factory()).rejection(handler()),
    ]
}

/// Holds: ThreadPoolExecutorTest.testConstructor3, ThreadPoolExecutorTest.testConstructor5
/// Holds: ThreadPoolExecutorTest.testConstructor8, ThreadPoolExecutorTest.testConstructor10
/// Holds: ThreadPoolExecutorTest.testConstructor13, ThreadPoolExecutorTest.testConstructor15
/// Holds: ThreadPoolExecutorTest.testConstructor20
/// Holds: ThreadPoolExecutorSubclassTest.testConstructor3
/// Holds: ThreadPoolExecutorSubclassTest.testConstructor5
/// Holds: ThreadPoolExecutorSubclassTest.testConstructor8
/// Holds: ThreadPoolExecutorSubclassTest.testConstructor10
/// Holds: ThreadPoolExecutorSubclassTest.testConstructor13
/// Holds: ThreadPoolExecutorSubclassTest.testConstructor18
/// Holds: ThreadPoolExecutorSubclassTest.testConstructor20
/// Holds: jtreg FutureTask/Executors/ECS.Executors/Throws
pub fn sizes_that_do_not_fit_are_rejected_before_it_is_built(make: &Make) {
    let wrong = |builder: PoolBuilder| {
        let error = builder.build().expect_err("it does not fit");
        let problems = error.problems().iter();
        let fields: Vec<&str> = problems.map(|problem| problem.parameter()).collect();
        (fields.join(" "), error.to_string())
    };
    for form in forms(make) {
        let (fields, text) = wrong(form.core(0).max(0));
        assert_eq!(fields, "max");
        assert!(text.contains("write an integer from 1"), "{text}");
    }
    for form in forms(make) {
        let (fields, text) = wrong(form.core(3).max(2));
        assert_eq!(fields, "core");
        assert!(text.contains("core 3 is above max 2"), "{text}");
    }
    for form in forms(make) {
        assert_eq!(
            wrong(form.core(0).max(ThreadPool::MAX_WORKERS + 1)).0,
            "max"
        );
    }
    for form in forms(make) {
        let idle = form.keep_alive(Duration::ZERO).core_may_time_out(true);
        assert_eq!(wrong(idle.core(2).max(1)).0, "core keep_alive");
    }
    for form in forms(make) {
        assert!(form.core(0).max(ThreadPool::MAX_WORKERS).build().is_ok());
    }
}

/// Holds: ThreadPoolExecutorTest.testMaximumPoolSizeIllegalArgumentException
/// Holds: ThreadPoolExecutorTest.testPoolSizeInvariants
/// Holds: ThreadPoolExecutorSubclassTest.testMaximumPoolSizeIllegalArgumentException
pub fn sizes_that_do_not_fit_are_rejected_while_it_runs(make: &Make) {
    let pond = Pond::new(make, 1, |pool| pool.core(1).max(1));
    for size in 1..5 {
        pond.set_max(size).unwrap();
        pond.set_core(size).unwrap();
        for (change, field) in [
            (
                pond.set_max(size - 1),
                if size == 1 { "max" } else { "core" },
            ),
            (pond.set_core(size + 1), "core"),
            (pond.set_max(0), "max"),
            (pond.set_max(ThreadPool::MAX_WORKERS + 1), "max"),
        ] {
            let error = change.unwrap_err();
            assert_eq!(error.problems()[0].parameter(), field);
            assert_eq!((pond.core(), pond.max()), (size, size), "nothing changes");
        }
    }
    assert_eq!(pond.submit(|| 7).unwrap().join().unwrap(), 7);
}
