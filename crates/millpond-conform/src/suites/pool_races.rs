//! Behaviours under concurrent use: no task is lost, none runs twice, and the pool always terminates.

use super::pond::{Make, Pond, fresh_name};
use crate::kit::{DropCount, FailureSink, Gate, Latch, Stress, until};
use millpond::executor::{ExecutorExt, Lifecycle, RejectReason};
use millpond::interrupt;
use millpond::manage::Growth;
use millpond::pool::Hooks;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// Tests of a pool that is described by a [`Make`], under pressure.
#[macro_export]
macro_rules! pool_races_suite {
    ($make:expr) => {
        $crate::bodies! { pool_races, ($make as $crate::suites::pond::Make);
            a_task_that_races_with_a_stop_is_rejected_handed_back_or_interrupted
            a_task_that_races_with_a_shutdown_is_rejected_or_run
            a_task_that_races_with_leaving_workers_is_run
            a_batch_that_races_with_a_stop_ends
            cancels_removals_and_runs_settle_each_task_once
            an_interrupt_reaches_its_own_task_and_no_other
            there_are_never_more_workers_than_the_maximum
            handles_that_are_dropped_at_once_end_it_once
            ends_of_all_kinds_at_once_are_one_end
        }
    };
}

/// Widens the window of the race: see `pool.counted` and `pool.enqueued` in the chaos build.
///
/// Holds: jtreg ThreadPoolExecutor.ShutdownNowExecuteRace
pub fn a_task_that_races_with_a_stop_is_rejected_handed_back_or_interrupted(make: &Make) {
    let make = *make;
    Stress::new("stop").one_in(5).run(|round| {
        let pond = Pond::new(&make, 2, |pool| pool.core(round.number % 3).max(3));
        let (ran, stopped) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let submitters: Vec<_> = (0..2)
            .map(|_| {
                let (own, ran, stopped) = (pond.pool(), Arc::clone(&ran), Arc::clone(&stopped));
                round.actor("submitter", move |rng| {
                    let mut accepted = Vec::new();
                    for _ in 0..4 {
                        let (ran, stopped) = (Arc::clone(&ran), Arc::clone(&stopped));
                        // It ends only when it is interrupted.
                        let body = move || {
                            ran.fetch_add(1, Ordering::SeqCst);
                            if interrupt::sleep(Duration::MAX).is_err() {
                                stopped.fetch_add(1, Ordering::SeqCst);
                            }
                        };
                        rng.jitter();
                        accepted.extend(own.submit(body).ok());
                    }
                    accepted
                })
            })
            .collect();
        round.rng.jitter();
        let back = pond.shutdown_now();
        let accepted: Vec<_> = submitters
            .into_iter()
            .flat_map(|one| one.finish())
            .collect();
        pond.await_end();
        let ran = ran.load(Ordering::SeqCst);
        assert_eq!(ran, stopped.load(Ordering::SeqCst), "all were interrupted");
        assert_eq!(ran + back.len(), accepted.len());
        drop(back);
        assert!(accepted.iter().all(|handle| handle.is_finished()));
    });
}

/// Accepted is accepted.
pub fn a_task_that_races_with_a_shutdown_is_rejected_or_run(make: &Make) {
    let make = *make;
    Stress::new("shutdown").one_in(5).run(|round| {
        let pond = Pond::new(&make, 3, |pool| pool.core(round.number % 2).max(2));
        let ran = Arc::new(AtomicUsize::new(0));
        let submitters: Vec<_> = (0..2)
            .map(|_| {
                let (own, ran) = (pond.pool(), Arc::clone(&ran));
                round.actor("submitter", move |rng| {
                    let mut accepted = 0;
                    for _ in 0..5 {
                        let ran = Arc::clone(&ran);
                        let body = move || {
                            ran.fetch_add(1, Ordering::SeqCst);
                        };
                        rng.jitter();
                        accepted += usize::from(own.execute(body).is_ok());
                    }
                    accepted
                })
            })
            .collect();
        round.rng.jitter();
        pond.shutdown();
        let accepted: usize = submitters.into_iter().map(|one| one.finish()).sum();
        pond.await_end();
        assert_eq!(ran.load(Ordering::SeqCst), accepted);
        assert_eq!(pond.snapshot().completed, accepted as u64);
    });
}

/// Between the last look of a worker at the queue and its end.
pub fn a_task_that_races_with_leaving_workers_is_run(make: &Make) {
    let make = *make;
    Stress::new("leaving").one_in(20).run(|round| {
        let pond = Pond::new(&make, 4, |pool| match round.number % 3 {
            0 => pool.core(0).max(1).keep_alive(Duration::ZERO),
            1 => pool.core(0).max(2).keep_alive(Duration::from_nanos(1)),
            _ => pool
                .core(1)
                .max(2)
                .keep_alive(Duration::from_nanos(1))
                .core_may_time_out(true),
        });
        for number in 0..40 {
            let handle = loop {
                match pond.submit(move || number) {
                    Ok(handle) => break handle,
                    // A worker that is about to leave, or to begin, cannot be handed anything.
                    Err(rejected) => assert!(rejected.reason.is_saturated()),
                }
            };
            assert_eq!(handle.join().unwrap(), number);
            round.rng.jitter();
        }
        pond.await_workers(0);
        let end = pond.snapshot();
        assert_eq!((end.queued, end.completed), (0, 40));
    });
}

/// A worker that owns a task runs it, or a stop hands it back: no caller waits for ever.
pub fn a_batch_that_races_with_a_stop_ends(make: &Make) {
    let make = *make;
    Stress::new("batch").one_in(10).run(|round| {
        let pond = Pond::new(&make, 64, |pool| pool.core(2).max(4));
        let started = Latch::new(1);
        let (own, begun) = (pond.pool(), started.clone());
        // Where no task can wait, only so many are taken as there are workers.
        let many = match pond.capacity() {
            Some(0) => 2,
            _ => 20,
        };
        let caller = round.actor("caller", move |_| {
            let bodies = (0..many).map(|number| {
                let begun = begun.clone();
                move || {
                    begun.arrive();
                    let _ = interrupt::check();
                    number
                }
            });
            own.invoke_all(bodies).map(|results| results.len())
        });
        started.wait();
        round.rng.jitter();
        drop(pond.shutdown_now());
        match caller.finish() {
            Ok(count) => assert_eq!(count, many),
            Err(error) => assert!(!error.to_string().is_empty()),
        }
        pond.await_end();
    });
}

/// Closures are dropped once, whoever drops them.
pub fn cancels_removals_and_runs_settle_each_task_once(make: &Make) {
    let make = *make;
    Stress::new("settle").one_in(20).run(|round| {
        let count = DropCount::new();
        let pond = Pond::new(&make, 16, |pool| pool.core(1).max(3));
        let ran = Arc::new(AtomicUsize::new(0));
        let mut handles = Vec::new();
        for _ in 0..30 {
            let (token, ran) = (count.token(), Arc::clone(&ran));
            let body = move || {
                ran.fetch_add(1, Ordering::SeqCst);
                drop(token);
            };
            handles.extend(pond.submit(body).ok());
        }
        let handles = Arc::new(handles);
        let actors: Vec<_> = (0..2)
            .map(|which| {
                let (own, handles) = (pond.pool(), Arc::clone(&handles));
                round.actor("meddler", move |rng| {
                    let mut taken = 0;
                    for handle in handles.iter() {
                        taken += match (which, rng.below(4)) {
                            (0, 0) => usize::from(handle.cancel()),
                            (0, 1) => usize::from(own.remove(handle)),
                            (1, 0) => usize::from(handle.interrupt()),
                            (1, 1) => {
                                own.purge();
                                0
                            }
                            _ => 0,
                        };
                        rng.jitter();
                    }
                    taken
                })
            })
            .collect();
        let taken: usize = actors.into_iter().map(|one| one.finish()).sum();
        pond.close().unwrap();
        let ran = ran.load(Ordering::SeqCst);
        assert!(
            ran + taken >= handles.len(),
            "a running one may be cancelled"
        );
        assert!(ran <= handles.len());
        let done = handles.iter().filter(|one| !one.is_cancelled()).count();
        assert_eq!(done, handles.len() - taken, "each is settled once");
        assert!(handles.iter().all(|one| one.is_finished()));
        drop(handles);
        until("all are dropped", || count.alive() == 0);
    });
}

/// Also one that comes as its task ends and the next one begins on the same worker.
pub fn an_interrupt_reaches_its_own_task_and_no_other(make: &Make) {
    let make = *make;
    Stress::new("stale").one_in(20).run(|round| {
        let pond = Pond::new(&make, 4, |pool| pool.core(1).max(1));
        let sink = FailureSink::new();
        for _ in 0..10 {
            let started = Latch::new(1);
            let arrived = started.clone();
            let Ok(victim) = pond.submit(move || arrived.arrive()) else {
                continue;
            };
            let innocent = sink.checked(|| assert!(!interrupt::is_interrupted()));
            // Where no task can wait, it comes when the victim has gone.
            let innocent = pond.submit(innocent);
            let interrupter = round.actor("interrupter", move |rng| {
                started.wait();
                rng.jitter();
                victim.interrupt();
            });
            if let Ok(innocent) = innocent {
                innocent.join().unwrap();
            }
            interrupter.finish();
            pond.await_idle(1);
        }
        pond.close().unwrap();
    });
}

/// By their own count, not by the pool's.
pub fn there_are_never_more_workers_than_the_maximum(make: &Make) {
    let make = *make;
    Stress::new("maximum").one_in(50).run(|round| {
        let growth = match round.number % 2 {
            0 => Growth::QueueFirst,
            _ => Growth::ThreadsFirst,
        };
        let pond = Pond::new(&make, 3, |pool| {
            let pool = pool.core(1).max(3).growth(growth);
            pool.keep_alive(Duration::from_micros(round.rng.any() % 30))
        });
        let (now, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let submitters: Vec<_> = (0..3)
            .map(|_| {
                let (own, now, most) = (pond.pool(), Arc::clone(&now), Arc::clone(&most));
                round.actor("submitter", move |rng| {
                    for _ in 0..30 {
                        let (now, most) = (Arc::clone(&now), Arc::clone(&most));
                        let body = move || {
                            most.fetch_max(
                                now.fetch_add(1, Ordering::SeqCst) + 1,
                                Ordering::SeqCst,
                            );
                            std::thread::yield_now();
                            now.fetch_sub(1, Ordering::SeqCst);
                        };
                        if let Err(rejected) = own.execute(body) {
                            assert!(matches!(rejected.reason, RejectReason::Saturated { .. }));
                        }
                        rng.jitter();
                    }
                })
            })
            .collect();
        for submitter in submitters {
            submitter.finish();
        }
        pond.close().unwrap();
        assert!(most.load(Ordering::SeqCst) <= 3);
        assert!(pond.snapshot().largest <= 3);
    });
}

/// Counts its ends.
struct Ends(Arc<AtomicUsize>, Gate);

impl Hooks for Ends {
    fn terminated(&self) {
        self.0.fetch_add(1, Ordering::SeqCst);
        self.1.open();
    }
}

/// The last one does it.
pub fn handles_that_are_dropped_at_once_end_it_once(make: &Make) {
    let make = *make;
    Stress::new("drops").one_in(20).run(|round| {
        let (ends, over) = (Arc::new(AtomicUsize::new(0)), Gate::new());
        let pool = make(fresh_name(), 4).core(1).max(2);
        let pool = pool.hooks(Ends(Arc::clone(&ends), over.clone()));
        let pool = pool.build().unwrap();
        let ran = Arc::new(AtomicUsize::new(0));
        let droppers: Vec<_> = (0..3)
            .map(|_| {
                let (own, ran) = (pool.clone(), Arc::clone(&ran));
                round.actor("dropper", move |rng| {
                    let inside = own.clone();
                    let body = move || {
                        ran.fetch_add(1, Ordering::SeqCst);
                        drop(inside);
                    };
                    let accepted = own.execute(body).is_ok();
                    rng.jitter();
                    drop(own);
                    usize::from(accepted)
                })
            })
            .collect();
        drop(pool);
        let accepted: usize = droppers.into_iter().map(|one| one.finish()).sum();
        over.wait();
        assert_eq!(ran.load(Ordering::SeqCst), accepted);
        assert_eq!(ends.load(Ordering::SeqCst), 1);
    });
}

/// Shutdowns, stops, closes and waits.
pub fn ends_of_all_kinds_at_once_are_one_end(make: &Make) {
    let make = *make;
    Stress::new("ends").one_in(20).run(|round| {
        let (ends, over) = (Arc::new(AtomicUsize::new(0)), Gate::new());
        let hooks = Ends(Arc::clone(&ends), over);
        let pond = Pond::new(&make, 8, |pool| pool.core(2).max(3).hooks(hooks));
        for _ in 0..4 {
            let _ = pond.execute(|| ());
        }
        let actors: Vec<_> = (0..4)
            .map(|which| {
                let own = pond.pool();
                round.actor("ender", move |rng| {
                    rng.jitter();
                    match which {
                        0 => own.shutdown(),
                        1 => drop(own.shutdown_now()),
                        2 => own.close().unwrap(),
                        _ => {
                            let _ = own.prestart_all_core();
                        }
                    }
                    own.await_termination().unwrap();
                })
            })
            .collect();
        for actor in actors {
            actor.finish();
        }
        assert!(pond.is_terminated());
        assert_eq!(ends.load(Ordering::SeqCst), 1);
        assert_eq!(pond.snapshot().workers, 0);
    });
}
