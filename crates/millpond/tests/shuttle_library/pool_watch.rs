//! PCT schedules of a pool and its watch: the watch, its alarms and the timer's thread take part, by a clock that
//! the schedule moves.
//!
//! Each scenario runs under 250 schedules for each depth.

use crate::alarm::Moody;
use millpond::executor::{ExecutorExt, Lifecycle};
use millpond::interrupt;
use millpond::pool::{Queue, RunWarning, ThreadPool};
use millpond::time::ManualClock;
use millpond_raw::sync::thread;
use std::time::Duration;

const LIMIT: Duration = Duration::from_secs(10);
const STEP: Duration = Duration::from_secs(6);

fn pct(scenario: impl Fn() + Send + Sync + 'static) {
    crate::shuttle_drive::pct(250, scenario);
}

/// A pool of one worker that interrupts what runs for longer than the limit.
fn watched(hand: &ManualClock, threads: Option<&Moody>) -> ThreadPool {
    let clock = match threads {
        Some(threads) => hand.clock().with_timer(threads.clone()),
        None => hand.clock(),
    };
    let pool = ThreadPool::builder("model").core(1).max(1).clock(clock);
    let pool = pool.queue(Queue::bounded(4)).on_event(|_| ());
    let warning = RunWarning::after(LIMIT).interrupts();
    pool.run_warning(warning).build().unwrap()
}

/// Whoever rings: the thread of a timer, or who moves the hand.
#[test]
fn a_task_that_runs_too_long_is_interrupted_and_the_next_one_is_not() {
    for has_timer in [true, false] {
        pct(move || {
            let (hand, threads) = (ManualClock::new(), Moody::default());
            let pool = watched(&hand, has_timer.then_some(&threads));
            let long = pool.submit(|| interrupt::sleep(Duration::MAX).is_err());
            let next = pool.submit(interrupt::is_interrupted);
            let long = long.unwrap();
            while !long.is_finished() {
                hand.advance(STEP);
                thread::yield_now();
            }
            assert!(long.join().unwrap(), "it was told");
            // It has run for one step at most.
            assert!(!next.unwrap().join().unwrap(), "it was meant for the other");
            assert_eq!(pool.health().long_runs, 1);
            pool.close().unwrap();
            drop(pool);
            // Without a timer the last alarm goes with the last thread that has the pool.
            if has_timer {
                threads.end(&hand);
            }
        });
    }
}

#[test]
fn a_pool_whose_watch_gets_no_timer_runs_its_tasks() {
    pct(|| {
        let (hand, threads) = (ManualClock::new(), Moody::refusing(usize::MAX));
        let pool = watched(&hand, Some(&threads));
        let bringer = thread::spawn({
            let pool = pool.clone();
            move || pool.submit(|| 1).unwrap().join().unwrap()
        });
        hand.advance(STEP);
        assert_eq!(pool.submit(|| 2).unwrap().join().unwrap(), 2);
        assert_eq!(bringer.join().unwrap(), 1);
        assert!(threads.asked() > 0 && pool.health().thread_failures > 0);
        pool.close().unwrap();
        drop(pool);
        threads.end(&hand);
    });
}
