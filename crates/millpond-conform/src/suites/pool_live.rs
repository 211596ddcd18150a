//! Parameters that change while a pool runs.

use super::pond::{Make, Pond, fresh_name};
use crate::kit::{Actor, FailureSink, Gate, Latch, Stress, until};
use millpond::executor::{ExecutorExt, Lifecycle};
use millpond::interrupt;
use millpond::manage::{Growth, Managed, Patch};
use millpond::thread::Threads;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// Tests of live changes of a pool that is described by a [`Make`], with a queue that holds.
#[macro_export]
macro_rules! pool_live_suite {
    ($make:expr) => {
        $crate::bodies! { pool_live, ($make as $crate::suites::pond::Make);
            a_greater_core_starts_workers_for_those_that_wait
            a_smaller_maximum_lets_idle_workers_go_at_once_and_busy_ones_after_their_tasks
            a_task_that_resizes_its_pool_interrupts_no_task
            a_patch_changes_everything_or_nothing
            a_patch_is_seen_whole
            changes_that_race_never_leave_a_core_above_the_maximum
            changes_at_random_under_load_lose_nothing_and_converge
            parameters_can_change_after_the_end
        }
    };
}

/// As many as there are tasks, and not more.
pub fn a_greater_core_starts_workers_for_those_that_wait(make: &Make) {
    let pond = Pond::new(make, 10, |pool| pool.core(1).max(10));
    let held = pond.hold(1);
    let (started, gate) = (Latch::new(3), Gate::new());
    let _open = gate.open_at_end();
    for _ in 0..3 {
        let (started, gate) = (started.clone(), gate.clone());
        let body = move || {
            started.arrive();
            gate.wait();
        };
        pond.execute(body).unwrap();
    }
    assert_eq!(pond.snapshot().workers, 1);
    pond.set_core(8).unwrap();
    started.wait();
    let now = pond.snapshot();
    assert!((4..=4).contains(&now.workers), "{now}");
    assert_eq!(now.queued, 0);
    gate.open();
    held.release();
    pond.set_core(10).unwrap();
    assert_eq!(pond.snapshot().workers, 4, "nothing waits");
}

/// Nobody is interrupted.
pub fn a_smaller_maximum_lets_idle_workers_go_at_once_and_busy_ones_after_their_tasks(make: &Make) {
    let pond = Pond::new(make, 10, |pool| pool.core(4).max(4));
    pond.prestart_all_core().unwrap();
    pond.await_idle(4);
    let held = pond.hold(2);
    pond.apply(&Patch::new().core(1).max(3)).unwrap();
    pond.await_workers(3);
    assert_eq!(pond.snapshot().active, 2);
    pond.set_max(1).unwrap();
    pond.await_workers(2);
    assert_eq!(pond.snapshot().active, 2, "both are busy");
    // One of them leaves although tasks wait: there must not be two.
    let (now, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let (started, gate) = (Latch::new(1), Gate::new());
    for _ in 0..4 {
        let (now, most) = (Arc::clone(&now), Arc::clone(&most));
        let (started, gate) = (started.clone(), gate.clone());
        let body = move || {
            most.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
            started.arrive();
            gate.wait();
            now.fetch_sub(1, Ordering::SeqCst);
        };
        pond.execute(body).unwrap();
    }
    held.release();
    pond.await_workers(1);
    started.wait();
    gate.open();
    pond.await_completed(6);
    assert_eq!(most.load(Ordering::SeqCst), 1);
    assert_eq!(pond.snapshot().threads_started, 4);
}

/// Holds: jtreg ThreadPoolExecutor.SelfInterrupt
pub fn a_task_that_resizes_its_pool_interrupts_no_task(make: &Make) {
    let pond = Pond::new(make, 200, |pool| {
        pool.core(4).max(8).keep_alive(Duration::from_millis(1))
    });
    let sink = FailureSink::new();
    for number in 0..100_usize {
        let own = pond.pool();
        let body = sink.checked(move || {
            let (core, max) = (number % 4, 4 + number % 5);
            own.apply(&Patch::new().core(core).max(max)).unwrap();
            own.set_keep_alive(Duration::from_millis(1 + number as u64 % 3))
                .unwrap();
            own.set_core_may_time_out(number % 2 == 0).unwrap();
            own.set_thread_factory(own.thread_factory());
            assert!(!interrupt::is_interrupted());
            assert!(interrupt::check().is_ok());
        });
        pond.execute(body).unwrap();
    }
    pond.close().unwrap();
    assert_eq!(pond.snapshot().completed, 100);
}

/// Through the trait that consoles use.
pub fn a_patch_changes_everything_or_nothing(make: &Make) {
    let pond = Pond::new(make, 4, |pool| pool.core(1).max(2));
    let engine: &dyn Managed = &*pond;
    let all = Patch::new()
        .core(3)
        .max(5)
        .keep_alive(Duration::from_secs(7))
        .core_may_time_out(true)
        .growth(Growth::ThreadsFirst);
    engine.apply(&all).unwrap();
    let now = pond.snapshot();
    assert_eq!((now.core, now.max), (3, 5));
    assert_eq!(now.keep_alive, Duration::from_secs(7));
    assert!(now.core_may_time_out);
    assert_eq!(now.growth, Growth::ThreadsFirst);
    for wrong in [
        Patch::new().core(6).keep_alive(Duration::from_secs(1)),
        Patch::new().max(2).growth(Growth::QueueFirst),
        Patch::new().core(1).keep_alive(Duration::ZERO),
        Patch::new().core(1).max(0).core_may_time_out(false),
    ] {
        let error = engine.apply(&wrong).unwrap_err();
        assert!(!error.to_string().is_empty());
        assert_eq!(pond.snapshot(), now, "{wrong:?}");
    }
    engine.apply(&Patch::new()).unwrap();
    assert_eq!(pond.snapshot(), now, "an empty patch changes nothing");
}

/// A reader never sees a part of one setting beside a part of another.
pub fn a_patch_is_seen_whole(make: &Make) {
    let pond = Pond::new(make, 4, |pool| pool.core(1).max(2));
    let settings = [
        (1, 2, Growth::QueueFirst),
        (5, 9, Growth::ThreadsFirst),
        (0, 1, Growth::ThreadsFirst),
    ];
    let over = Gate::new();
    let readers: Vec<_> = (0..2)
        .map(|_| {
            let (own, over) = (pond.pool(), over.clone());
            Actor::start("reader", move || {
                while !over.is_open() {
                    let now = own.snapshot();
                    let seen = (now.core, now.max, now.growth);
                    assert!(settings.contains(&seen), "{seen:?}");
                }
            })
        })
        .collect();
    for _ in 0..3000 {
        for (core, max, growth) in settings {
            let patch = Patch::new().core(core).max(max).growth(growth);
            pond.apply(&patch).unwrap();
        }
    }
    over.open();
    for reader in readers {
        reader.finish();
    }
}

/// Each is right by itself, and so they must be together.
pub fn changes_that_race_never_leave_a_core_above_the_maximum(make: &Make) {
    let pond = Pond::new(make, 4, |pool| pool.core(1).max(8));
    let over = Gate::new();
    let writers: Vec<_> = (0..2)
        .map(|which| {
            let own = pond.pool();
            Actor::start("writer", move || {
                let mut rejected = 0;
                for number in 0..2000 {
                    let size = 1 + number % 8;
                    let changed = match which {
                        0 => own.set_core(size),
                        _ => own.set_max(size),
                    };
                    rejected += usize::from(changed.is_err());
                }
                rejected
            })
        })
        .collect();
    let (own, stop) = (pond.pool(), over.clone());
    let reader = Actor::start("reader", move || {
        while !stop.is_open() {
            let now = own.snapshot();
            assert!(now.core <= now.max && now.max >= 1, "{now}");
        }
    });
    let rejected: usize = writers.into_iter().map(Actor::finish).sum();
    over.open();
    reader.finish();
    assert!(pond.core() <= pond.max());
    assert!(rejected < 4000, "some fit");
}

/// Holds: jtreg ThreadPoolExecutor.ConfigChanges
pub fn changes_at_random_under_load_lose_nothing_and_converge(make: &Make) {
    let make = *make;
    Stress::new("changes").one_in(50).run(|round| {
        let pond = Pond::new(&make, 500, |pool| pool.core(2).max(4));
        let sink = FailureSink::new();
        let ran = Arc::new(AtomicUsize::new(0));
        let over = Gate::new();
        let (own, stop) = (pond.pool(), over.clone());
        let changer = round.actor("changer", move |rng| {
            while !stop.is_open() {
                let max = 1 + rng.below(5);
                let core = rng.below(max + 1);
                own.apply(&Patch::new().core(core).max(max)).unwrap();
                match rng.below(5) {
                    0 => own
                        .set_keep_alive(Duration::from_micros(1 + rng.any() % 50))
                        .unwrap(),
                    1 => own.set_core_may_time_out(rng.once_in(2)).unwrap(),
                    2 => own.set_thread_factory(Arc::new(Threads::named(fresh_name()))),
                    3 => own.set_growth(match rng.below(2) {
                        0 => Growth::QueueFirst,
                        _ => Growth::ThreadsFirst,
                    }),
                    _ => {
                        own.prestart_core().unwrap();
                    }
                }
                rng.jitter();
            }
        });
        for _ in 0..200 {
            let ran = Arc::clone(&ran);
            let body = sink.checked(move || {
                assert!(!interrupt::is_interrupted());
                ran.fetch_add(1, Ordering::SeqCst);
            });
            pond.execute(body).unwrap();
            round.rng.jitter();
        }
        over.open();
        changer.finish();
        until("all have run", || ran.load(Ordering::SeqCst) == 200);
        let last = Patch::new().core(1).max(3).core_may_time_out(false);
        let last = last.keep_alive(Duration::from_nanos(1));
        pond.apply(&last.growth(Growth::QueueFirst)).unwrap();
        until("surplus workers leave", || pond.snapshot().workers <= 1);
        pond.close().unwrap();
        let end = pond.snapshot();
        assert_eq!((end.completed, end.workers, end.active), (200, 0, 0));
        assert!(end.largest <= 5 && end.left_to_policy == 0, "{end:?}");
    });
}

/// No worker is left to heed them, and nothing breaks.
pub fn parameters_can_change_after_the_end(make: &Make) {
    let pond = Pond::new(make, 4, |pool| pool.core(1).max(2));
    pond.submit(|| ()).unwrap().join().unwrap();
    pond.close().unwrap();
    pond.apply(&Patch::new().core(4).max(8)).unwrap();
    assert_eq!((pond.core(), pond.max()), (4, 8));
    assert!(!pond.prestart_core().unwrap());
    assert_eq!(pond.prestart_all_core().unwrap(), 0);
    assert_eq!(pond.snapshot().workers, 0);
    assert!(pond.submit(|| ()).unwrap_err().reason.is_shut_down());
}
