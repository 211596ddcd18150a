//! Behaviours under concurrent use: no accepted task is lost.

use super::scheduled::{Make, SECOND, Timers, keeping};
use crate::kit::{DropCount, Gate, Stress, until};
use millpond::executor::Lifecycle;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// Tests of a scheduled pool that is described by a [`Make`], under pressure.
#[macro_export]
macro_rules! scheduled_races_suite {
    ($make:expr) => {
        $crate::bodies! { scheduled_races, ($make as $crate::suites::scheduled::Make);
            a_task_that_races_with_a_shutdown_is_rejected_or_run
            a_task_that_races_with_a_stop_is_rejected_handed_back_run_or_cancelled
            series_that_race_with_the_end_end_once
            many_who_schedule_while_the_hand_moves_are_all_served
        }
    };
}

/// Lesson 28: in Java there was a moment in which a task was accepted and then lost. What is due
/// runs, whatever the policies are.
pub fn a_task_that_races_with_a_shutdown_is_rejected_or_run(make: &Make) {
    let make = *make;
    Stress::new("scheduled shutdown").one_in(10).run(|round| {
        let (timers, count) = (Timers::plain(&make, 2), DropCount::new());
        let runs_delayed = round.rng.once_in(2);
        timers.set_run_delayed_after_shutdown(runs_delayed);
        let ran = Arc::new(AtomicUsize::new(0));
        let schedulers: Vec<_> = (0..2)
            .map(|_| {
                let (own, ran) = (timers.share(), Arc::clone(&ran));
                let tokens: Vec<_> = (0..6).map(|_| count.token()).collect();
                round.actor("scheduler", move |rng| {
                    let mut accepted = Vec::new();
                    for token in tokens {
                        let ran = Arc::clone(&ran);
                        let body = move || {
                            ran.fetch_add(1, Ordering::SeqCst);
                            drop(token);
                        };
                        let delay = SECOND * u32::from(rng.once_in(2));
                        let handle = own.schedule(delay, body).ok();
                        accepted.extend(handle.map(|handle| (delay.is_zero(), handle)));
                        rng.jitter();
                    }
                    accepted
                })
            })
            .collect();
        round.rng.jitter();
        timers.shutdown();
        let accepted: Vec<_> = schedulers
            .into_iter()
            .flat_map(|one| one.finish())
            .collect();
        timers.manual.advance(SECOND);
        timers.await_end();
        assert!(accepted.iter().all(|(_, handle)| handle.is_finished()));
        let cancelled = accepted.iter().filter(|(_, one)| one.is_cancelled());
        assert!(cancelled.clone().all(|(is_due, _)| !is_due), "it was due");
        let cancelled = cancelled.count();
        assert_eq!(ran.load(Ordering::SeqCst) + cancelled, accepted.len());
        assert!(cancelled == 0 || !runs_delayed, "all were to run");
        count.assert_alive(0);
    });
}

/// The books: accepted = run + handed back + cancelled, each once.
pub fn a_task_that_races_with_a_stop_is_rejected_handed_back_run_or_cancelled(make: &Make) {
    let make = *make;
    Stress::new("scheduled stop").one_in(10).run(|round| {
        let (timers, count) = (Timers::plain(&make, 1), DropCount::new());
        let ran = Arc::new(AtomicUsize::new(0));
        let own = (timers.share(), Arc::clone(&ran));
        let tokens: Vec<_> = (0..10).map(|_| count.token()).collect();
        let scheduler = round.actor("scheduler", move |rng| {
            let mut accepted = Vec::new();
            for token in tokens {
                let ran = Arc::clone(&own.1);
                let body = move || {
                    ran.fetch_add(1, Ordering::SeqCst);
                    drop(token);
                };
                let delay = SECOND * u32::from(rng.once_in(2));
                accepted.extend(own.0.schedule(delay, body).ok());
                rng.jitter();
            }
            accepted
        });
        let manual = timers.manual.clone();
        let mover = round.actor("mover", move |rng| {
            for _ in 0..4 {
                rng.jitter();
                manual.advance(SECOND / 2);
            }
        });
        round.rng.jitter();
        let back = timers.shutdown_now();
        let accepted = scheduler.finish();
        mover.finish();
        let handed_back = back.len();
        drop(back);
        timers.await_end();
        assert!(accepted.iter().all(|handle| handle.is_finished()));
        let cancelled = accepted.iter().filter(|one| one.is_cancelled()).count();
        assert!(handed_back <= cancelled);
        assert_eq!(ran.load(Ordering::SeqCst) + cancelled, accepted.len());
        count.assert_alive(0);
    });
}

/// Cancels, shutdowns, stops and runs at the same time.
pub fn series_that_race_with_the_end_end_once(make: &Make) {
    let make = *make;
    Stress::new("series end").one_in(10).run(|round| {
        let (timers, count) = (Timers::plain(&make, 2), DropCount::new());
        timers.set_run_series_after_shutdown(round.rng.once_in(3));
        let series: Vec<_> = (1..=4_u32)
            .map(|number| {
                let run = keeping(count.token());
                let period = Duration::from_millis(100) * number;
                match number % 2 {
                    0 => timers.schedule_at_fixed_rate(period, period, run).unwrap(),
                    _ => timers
                        .schedule_with_fixed_delay(period, period, run)
                        .unwrap(),
                }
            })
            .collect();
        let (manual, over) = (timers.manual.clone(), Gate::new());
        let stop = over.clone();
        let mover = round.actor("mover", move |rng| {
            while !stop.is_open() {
                manual.advance(Duration::from_millis(50));
                rng.jitter();
            }
        });
        let series = Arc::new(series);
        let own = Arc::clone(&series);
        let canceller = round.actor("canceller", move |rng| {
            for series in own.iter() {
                rng.jitter();
                match rng.below(4) {
                    0 => drop(series.cancel()),
                    1 => drop(series.interrupt()),
                    _ => {}
                }
            }
        });
        round.rng.jitter();
        if round.rng.once_in(2) {
            timers.shutdown()
        } else {
            drop(timers.shutdown_now())
        }
        canceller.finish();
        timers.set_run_series_after_shutdown(false);
        timers.await_end();
        over.open();
        mover.finish();
        assert!(series.iter().all(|series| series.is_cancelled()));
        until("all closures are dropped", || count.alive() == 0);
        let now = millpond::schedule::ScheduledPool::snapshot(&timers);
        assert_eq!((now.series, now.pending), (0, 0));
    });
}

/// Lesson 34 under pressure: each becomes the first, or does not, while the alarm is being set.
pub fn many_who_schedule_while_the_hand_moves_are_all_served(make: &Make) {
    let make = *make;
    Stress::new("alarm").one_in(10).run(|round| {
        let timers = Timers::plain(&make, 2);
        let schedulers: Vec<_> = (0..3)
            .map(|_| {
                let own = timers.share();
                round.actor("scheduler", move |rng| {
                    let delays = (0..10).map(|_| Duration::from_micros(rng.any() % 2000));
                    let delays: Vec<_> = delays.collect();
                    delays
                        .into_iter()
                        .map(|delay| {
                            rng.jitter();
                            own.schedule(delay, || ()).unwrap()
                        })
                        .collect::<Vec<_>>()
                })
            })
            .collect();
        for _ in 0..20 {
            timers.manual.advance(Duration::from_micros(100));
            round.rng.jitter();
        }
        let handles: Vec<_> = schedulers
            .into_iter()
            .flat_map(|one| one.finish())
            .collect();
        timers.manual.advance(Duration::from_millis(2));
        assert_eq!(timers.pending(), 0, "all were due");
        for handle in handles {
            handle.join().unwrap();
        }
    });
}
