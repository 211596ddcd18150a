//! The rejection policy that runs tasks on threads outside the pool.

use super::pond::{Make, Pond, fresh_name};
use crate::kit::{DropCount, Factory, Gate, Latch, Start, until};
use millpond::executor::{ExecutorExt, Lifecycle, RejectReason};
use millpond::interrupt;
use millpond::pool::RejectionPolicy;
use std::panic::panic_any;
use std::time::Duration;

/// Tests of the extra threads of a pool that is described by a [`Make`], with a queue that has a
/// bound.
#[macro_export]
macro_rules! pool_extra_suite {
    ($make:expr) => {
        $crate::bodies! { pool_extra, ($make as $crate::suites::pond::Make);
            what_is_too_much_runs_in_threads_outside_as_many_as_are_allowed
            the_end_waits_for_extra_threads_and_a_stop_reaches_them
            an_extra_thread_that_has_not_begun_gives_its_task_back_to_a_stop
            an_extra_thread_that_does_not_come_costs_no_task
            a_panic_in_an_extra_thread_is_told
        }
    };
}

fn full(make: &Make, at_most: usize) -> (Pond, super::pond::Held) {
    let pond = Pond::new(make, 1, |pool| {
        let pool = pool.core(1).max(1);
        pool.rejection(RejectionPolicy::NewThread { at_most })
    });
    let held = pond.hold(1);
    pond.queue_up(1);
    (pond, held)
}

/// And when one has ended there is room for another.
pub fn what_is_too_much_runs_in_threads_outside_as_many_as_are_allowed(make: &Make) {
    let (pond, held) = full(make, 2);
    for _ in 0..3 {
        let more = pond.hold(2);
        let now = pond.snapshot();
        assert_eq!((now.extra_threads, now.workers, now.queued), (2, 1, 1));
        assert_eq!((now.active, now.largest), (1, 1), "they are no workers");
        assert!(pond.submit(|| 7).unwrap_err().reason.is_saturated());
        more.release();
        until("they have gone", || pond.snapshot().extra_threads == 0);
    }
    held.release();
    pond.await_completed(8);
    let now = pond.snapshot();
    assert_eq!((now.threads_started, now.left_to_policy), (7, 9));
    assert_eq!((now.extra_ran, now.completed_by_workers()), (6, 2));
}

/// They are part of the pool's life.
pub fn the_end_waits_for_extra_threads_and_a_stop_reaches_them(make: &Make) {
    for stops in [false, true] {
        let pond = Pond::new(make, 1, |pool| {
            let pool = pool.core(1).max(1);
            pool.rejection(RejectionPolicy::NewThread { at_most: 1 })
        });
        let (started, gate) = (Latch::new(2), Gate::new());
        let _open = gate.open_at_end();
        let body = || {
            let (started, gate) = (started.clone(), gate.clone());
            move || {
                started.arrive();
                if stops {
                    assert!(interrupt::sleep(Duration::MAX).is_err());
                } else {
                    gate.wait();
                }
                interrupt::is_interrupted()
            }
        };
        let worker = pond.submit(body()).unwrap();
        until("it runs", || pond.snapshot().active == 1);
        pond.queue_up(1);
        let extra = pond.submit(body()).unwrap();
        started.wait();
        if stops {
            assert_eq!(pond.shutdown_now().len(), 1);
        } else {
            pond.shutdown();
            assert!(!pond.is_terminated());
            gate.open();
        }
        assert!(!worker.join().unwrap() && !extra.join().unwrap());
        pond.await_end();
        assert_eq!(pond.snapshot().extra_threads, 0);
    }
}

/// As a worker does.
pub fn an_extra_thread_that_has_not_begun_gives_its_task_back_to_a_stop(make: &Make) {
    let gate = Gate::new();
    let at = gate.clone();
    let pond = Pond::new(make, 1, |pool| {
        let threads = Factory::new(fresh_name(), move |number| match number {
            1 => Start::Well,
            _ => Start::At(at.clone()),
        });
        let pool = pool.core(1).max(1).threads(threads);
        pool.rejection(RejectionPolicy::NewThread { at_most: 1 })
    });
    let running = pond.occupy(1);
    pond.queue_up(1);
    let extra = pond.submit(|| 7).unwrap();
    let unstarted = pond.shutdown_now();
    assert_eq!(unstarted.len(), 2);
    assert!(running.into_iter().all(|one| one.join().unwrap()));
    assert!(!pond.is_terminated(), "the thread is still to end");
    gate.open();
    pond.await_end();
    drop(unstarted);
    assert!(extra.join().unwrap_err().is_cancelled());
}

/// It comes back, or its handle says that it never will run.
pub fn an_extra_thread_that_does_not_come_costs_no_task(make: &Make) {
    for vice in [Start::Refuse, Start::Panic, Start::DropBody] {
        let (count, decided) = (DropCount::new(), vice.clone());
        let pond = Pond::new(make, 1, |pool| {
            let threads = Factory::new(fresh_name(), move |number| match number {
                1 => Start::Well,
                _ => decided.clone(),
            });
            let pool = pool.core(1).max(1).threads(threads);
            pool.rejection(RejectionPolicy::NewThread { at_most: 1 })
        });
        let held = pond.hold(1);
        pond.queue_up(1);
        for _ in 0..3 {
            let token = count.token();
            match pond.submit(move || token) {
                Ok(handle) => drop(handle.join().unwrap_err()),
                Err(rejected) => {
                    assert!(matches!(rejected.reason, RejectReason::SpawnFailed(_)));
                    count.assert_alive(1);
                }
            }
            count.assert_alive(0);
            assert_eq!(pond.snapshot().extra_threads, 0);
        }
        held.release();
    }
}

/// As that of any other task.
pub fn a_panic_in_an_extra_thread_is_told(make: &Make) {
    let told = Latch::new(1);
    let tell = told.clone();
    let pond = Pond::new(make, 1, |pool| {
        let pool = pool.core(1).max(1).on_panic(move |_| tell.arrive());
        pool.rejection(RejectionPolicy::NewThread { at_most: 1 })
    });
    let held = pond.hold(1);
    pond.queue_up(1);
    pond.execute(|| panic_any("no grain")).unwrap();
    told.wait();
    until("it has gone", || pond.snapshot().extra_threads == 0);
    held.release();
}
