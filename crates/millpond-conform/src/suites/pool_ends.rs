//! How a pool ends: by a call, from within, by being forgotten.

use super::pond::{Make, Pond, fresh_name};
use crate::kit::{Actor, DropCount, DropToken, Factory, Gate, Latch, Start, delays, until};
use millpond::executor::{ExecutorExt, Lifecycle, Rejected};
use millpond::interrupt;
use millpond::manage::RunState;
use millpond::pool::{Hooks, RejectionContext, RejectionHandler, RejectionPolicy, ThreadPool};
use millpond::task::Task;
use millpond::thread::{Body, JoinHandle, ThreadFactory, Threads};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// Tests of the end of a pool that is described by a [`Make`].
#[macro_export]
macro_rules! pool_ends_suite {
    ($make:expr) => {
        $crate::bodies! { pool_ends, ($make as $crate::suites::pond::Make);
            it_says_where_it_is_in_its_life
            a_task_may_shut_its_own_pool_down
            a_task_may_stop_its_own_pool_and_is_asked_to_stop_itself
            a_stop_reaches_everyone_who_runs_and_wakes_everyone_who_waits
            a_cancelled_task_that_goes_on_keeps_its_pool_alive
            a_worker_that_has_not_begun_gives_its_task_back_to_a_stop
            after_an_orderly_shutdown_a_worker_that_has_not_begun_still_runs_its_task
            a_forgotten_pool_ends_without_workers_with_idle_ones_and_with_busy_ones
            the_last_handle_may_go_in_a_worker
            nothing_is_left_of_a_pool_that_is_over
            no_task_is_kept_by_a_worker_that_has_run_it
            idle_workers_leave_when_it_is_shut_down
        }
    };
}

/// Holds: ThreadPoolExecutorTest.testIsTerminating
/// Holds: ThreadPoolExecutorSubclassTest.testIsShutdown
/// Holds: ThreadPoolExecutorSubclassTest.testIsTerminated
/// Holds: ThreadPoolExecutorSubclassTest.testIsTerminating
pub fn it_says_where_it_is_in_its_life(make: &Make) {
    let pond = Pond::new(make, 1, |pool| pool.core(1).max(1));
    let said = || {
        (
            pond.is_shutdown(),
            pond.is_terminating(),
            pond.is_terminated(),
            pond.snapshot().state,
        )
    };
    assert_eq!(said(), (false, false, false, RunState::Running));
    let held = pond.hold(1);
    assert_eq!(said(), (false, false, false, RunState::Running));
    pond.shutdown();
    assert_eq!(said(), (true, true, false, RunState::ShutDown));
    assert_eq!(pond.await_termination_timeout(Duration::ZERO), Ok(false));
    held.release();
    pond.await_termination().unwrap();
    assert_eq!(said(), (true, false, true, RunState::Terminated));
    drop(pond.shutdown_now());
    assert_eq!(said(), (true, false, true, RunState::Terminated));
}

/// It is not waited for, so nothing can hang.
pub fn a_task_may_shut_its_own_pool_down(make: &Make) {
    let pond = Pond::new(make, 1, |pool| pool.core(1).max(1));
    let own = pond.pool();
    let body = move || {
        own.shutdown();
        let rejected = own.submit(|| ()).unwrap_err();
        let seen = (own.is_shutdown(), own.is_terminated());
        assert!(rejected.reason.is_shut_down() && !interrupt::is_interrupted());
        seen
    };
    assert_eq!(pond.submit(body).unwrap().join().unwrap(), (true, false));
    pond.await_end();
}

/// Its own token is set like all others.
pub fn a_task_may_stop_its_own_pool_and_is_asked_to_stop_itself(make: &Make) {
    let pond = Pond::new(make, 1, |pool| pool.core(1).max(1));
    let own = pond.pool();
    let body = move || (own.shutdown_now().len(), interrupt::check().is_err());
    assert_eq!(pond.submit(body).unwrap().join().unwrap(), (0, true));
    pond.await_end();
}

/// Tasks that sleep, and callers that wait for the end.
pub fn a_stop_reaches_everyone_who_runs_and_wakes_everyone_who_waits(make: &Make) {
    let pond = Pond::new(make, 1, |pool| pool.core(3).max(3));
    let handles = pond.occupy(3);
    let waiters: Vec<_> = (0..3)
        .map(|number| {
            let own = pond.pool();
            Actor::start("waiter", move || match number {
                0 => own.await_termination().map(|()| true),
                1 => own.await_termination_timeout(delays::longer()),
                _ => own.await_termination_timeout(Duration::MAX),
            })
        })
        .collect();
    for waiter in &waiters {
        waiter.await_parked("pool.await_termination");
    }
    assert!(pond.shutdown_now().is_empty());
    for waiter in waiters {
        assert_eq!(waiter.finish(), Ok(true));
    }
    for handle in handles {
        assert!(handle.join().unwrap(), "it was interrupted");
    }
    assert_eq!(pond.snapshot().completed, 3);
}

/// What counts is the body, not the handle.
pub fn a_cancelled_task_that_goes_on_keeps_its_pool_alive(make: &Make) {
    let pond = Pond::new(make, 1, |pool| pool.core(1).max(1));
    let (started, gate) = (Latch::new(1), Gate::new());
    let (arrived, held) = (started.clone(), gate.clone());
    let body = move || {
        arrived.arrive();
        held.wait();
    };
    let handle = pond.submit(body).unwrap();
    started.wait();
    assert!(handle.cancel() && handle.is_finished());
    pond.shutdown();
    let now = pond.snapshot();
    assert_eq!((now.active, now.workers, now.completed), (1, 1, 0));
    assert_eq!(pond.await_termination_timeout(delays::timeout()), Ok(false));
    gate.open();
    pond.await_end();
    assert_eq!(pond.snapshot().completed, 1);
}

/// Between the start of a thread and its first step.
pub fn a_worker_that_has_not_begun_gives_its_task_back_to_a_stop(make: &Make) {
    let gate = Gate::new();
    let at = gate.clone();
    let pond = Pond::new(make, 1, |pool| {
        let name = fresh_name();
        pool.core(1)
            .max(1)
            .threads(Factory::new(name, move |_| Start::At(at.clone())))
    });
    let mut handle = pond.submit(|| 7).unwrap();
    let mut unstarted = pond.shutdown_now();
    assert_eq!(unstarted.len(), 1);
    assert!(!pond.is_terminated(), "the thread is still to end");
    assert_eq!(pond.snapshot().active, 0, "it has nothing to run");
    assert!(
        handle.try_join().is_none(),
        "it is unrun, and not cancelled"
    );
    gate.open();
    pond.await_end();
    unstarted.pop().unwrap().run();
    assert_eq!(handle.join().unwrap(), 7);
    let now = pond.snapshot();
    assert_eq!((now.completed, now.handed_back, now.active), (0, 1, 0));
}

/// What has been taken is run.
pub fn after_an_orderly_shutdown_a_worker_that_has_not_begun_still_runs_its_task(make: &Make) {
    let gate = Gate::new();
    let at = gate.clone();
    let pond = Pond::new(make, 1, |pool| {
        let name = fresh_name();
        pool.core(1)
            .max(1)
            .threads(Factory::new(name, move |_| Start::At(at.clone())))
    });
    let handle = pond.submit(interrupt::is_interrupted).unwrap();
    pond.shutdown();
    assert!(!pond.is_terminated());
    gate.open();
    assert!(!handle.join().unwrap(), "it is not interrupted");
    pond.await_end();
}

/// Says when it has ended.
struct AtEnd(Gate);

impl Hooks for AtEnd {
    fn terminated(&self) {
        self.0.open();
    }
}

/// Holds: jtreg FutureTask/Executors/ECS.Executors/AutoShutdown.testNoWorker
/// Holds: jtreg FutureTask/Executors/ECS.Executors/AutoShutdown.testActiveWorker
pub fn a_forgotten_pool_ends_without_workers_with_idle_ones_and_with_busy_ones(make: &Make) {
    let pool = |over: &Gate| -> ThreadPool {
        let pool = make(fresh_name(), 4).core(1).max(1);
        pool.hooks(AtEnd(over.clone())).build().unwrap()
    };
    let over = Gate::new();
    drop(pool(&over));
    assert!(over.is_open(), "without workers it ends at once");

    let (over, idle) = (Gate::new(), Gate::new());
    let own = pool(&over);
    own.submit(|| ()).unwrap().join().unwrap();
    until("its worker is idle", || super::pond::idle(own.name()) == 1);
    drop(own.clone());
    assert!(!own.is_shutdown(), "one handle is left");
    drop((own, idle));
    over.wait();

    let (over, gate) = (Gate::new(), Gate::new());
    let own = pool(&over);
    let ran = Arc::new(AtomicUsize::new(0));
    let mut accepted = 0;
    for _ in 0..4 {
        let (gate, ran) = (gate.clone(), Arc::clone(&ran));
        let body = move || {
            gate.wait();
            assert!(!interrupt::is_interrupted());
            ran.fetch_add(1, Ordering::SeqCst);
        };
        // Where no task can wait, only one is taken.
        accepted += usize::from(own.execute(body).is_ok());
    }
    assert!(accepted > 0);
    drop(own);
    assert!(!over.is_open(), "dropping does not wait");
    gate.open();
    over.wait();
    assert_eq!(
        ran.load(Ordering::SeqCst),
        accepted,
        "what it had still ran"
    );
}

/// As the captured value of a closure, in its body, and after it.
pub fn the_last_handle_may_go_in_a_worker(make: &Make) {
    for within in [false, true] {
        let (over, gate) = (Gate::new(), Gate::new());
        let pool = make(fresh_name(), 1).core(1).max(1);
        let pool = pool.hooks(AtEnd(over.clone())).build().unwrap();
        let (own, held) = (pool.clone(), gate.clone());
        let body = move || {
            held.wait();
            if within {
                drop(own);
            } else {
                assert!(!own.is_shutdown());
            }
        };
        pool.execute(body).unwrap();
        drop(pool);
        gate.open();
        over.wait();
    }
}

/// A part of a pool whose life is counted.
#[derive(Debug)]
struct Counted(
    #[allow(dead_code, reason = "it is there to be dropped")] DropToken,
    Threads,
);

impl ThreadFactory for Counted {
    fn start(&self, body: Body) -> std::io::Result<JoinHandle<()>> {
        self.1.start(body)
    }
}

impl Hooks for Counted {}

impl RejectionHandler for Counted {
    fn reject(&self, task: Task, context: RejectionContext<'_>) -> Result<(), Rejected<Task>> {
        context.give_back(task)
    }
}

/// Pool after pool, shut down or forgotten.
///
/// Holds: jtreg FutureTask/Executors/ECS.Executors/UnreferencedExecutor
/// Holds: jtreg FutureTask/Executors/ECS.Executors/AutoShutdown.testShutdownUnlinksCleaner
pub fn nothing_is_left_of_a_pool_that_is_over(make: &Make) {
    let count = DropCount::new();
    for number in 0..30 {
        let name = fresh_name();
        let part = || Counted(count.token(), Threads::named(name.clone()));
        let pool = make(name.clone(), 4).core(2).max(2).hooks(part());
        let pool = pool.threads(part());
        let pool = pool.rejection(RejectionPolicy::Custom(Arc::new(part())));
        let pool = pool.build().unwrap();
        for _ in 0..2 {
            let token = count.token();
            pool.execute(move || drop(token)).unwrap();
        }
        match number % 4 {
            0 => {}
            1 => pool.shutdown(),
            2 => drop(pool.shutdown_now()),
            _ => pool.close().unwrap(),
        }
    }
    until("all parts of all pools are dropped", || count.alive() == 0);
}

/// While it waits for the next one, nothing of the last is there.
pub fn no_task_is_kept_by_a_worker_that_has_run_it(make: &Make) {
    let count = DropCount::new();
    let pond = Pond::new(make, 4, |pool| pool.core(1).max(1));
    for _ in 0..3 {
        let (captured, returned) = (count.token(), count.token());
        let body = move || {
            drop(captured);
            returned
        };
        let handle = pond.submit(body).unwrap();
        drop(handle.join().unwrap());
        pond.await_idle(1);
        count.assert_alive(0);
    }
}

/// Also those that nothing ever would have woken.
pub fn idle_workers_leave_when_it_is_shut_down(make: &Make) {
    for now in [false, true] {
        let pond = Pond::new(make, 4, |pool| pool.core(3).max(3));
        pond.prestart_all_core().unwrap();
        pond.await_idle(3);
        if now {
            assert!(pond.shutdown_now().is_empty());
        } else {
            pond.shutdown();
        }
        pond.await_end();
        assert_eq!(pond.snapshot().workers, 0);
    }
}
