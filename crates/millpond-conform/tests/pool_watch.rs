//! When the watch of a pool looks and when it does not, and what its figures make of a pause.

#![allow(
    clippy::disallowed_types,
    clippy::disallowed_methods,
    reason = "a test stands outside: it uses std's locks, and burns the time that it measures"
)]

use millpond::executor::ExecutorExt;
use millpond::interrupt;
use millpond::manage::{Managed, Patch};
use millpond::pool::{PoolBuilder, Queue, RunWarning, ThreadPool};
use millpond::task::{TaskHandle, TaskSpec};
use millpond::time::ManualClock;
use millpond_conform::kit::{
    Gate, Latch, OwnQueue, Step, Stopwatch, case, comes_true, delays, until,
};
use millpond_conform::suites::pond::{Pond, fresh_name};
use std::time::{Duration, Instant};

fn ms(count: u64) -> Duration {
    Duration::from_millis(count)
}

/// A pool by a manual clock, with one worker and without a word.
fn still(shape: impl FnOnce(PoolBuilder) -> PoolBuilder) -> (ManualClock, Pond) {
    let hand = ManualClock::new();
    let pool = ThreadPool::builder(fresh_name()).core(1).max(1);
    let pool = pool.clock(hand.clock()).on_event(|_| ());
    (hand, Pond::of(shape(pool)))
}

/// Has a task run until the gate opens or it is interrupted, and returns which.
fn hold(pond: &Pond) -> (Gate, TaskHandle<bool>) {
    let (gate, started) = (Gate::new(), Latch::new(1));
    let (inside, begun) = (gate.clone(), started.clone());
    let body = move || {
        begun.arrive();
        let so = || inside.is_open() || interrupt::is_interrupted();
        assert!(comes_true(delays::long(), so), "nobody lets it go");
        interrupt::check().is_err()
    };
    let handle = pond.submit(body).unwrap();
    started.wait();
    (gate, handle)
}

#[test]
fn a_limit_that_is_set_while_a_task_runs_counts_for_that_task() {
    case("set later", || {
        let (hand, pond) = still(|pool| pool.run_warning(RunWarning::after(ms(10_000))));
        let (gate, held) = hold(&pond);
        hand.advance(ms(500));
        assert_eq!(pond.health().long_runs, 0);
        pond.set_run_warning(Some(RunWarning::after(ms(100))));
        // Whoever waits by a manual clock looks whenever it moves, so that it is at once and not within a
        // second cannot be seen here.
        hand.advance(Duration::from_nanos(1));
        assert_eq!(pond.health().long_runs, 1);
        gate.open();
        assert!(!held.join().unwrap());
    });
}

#[test]
fn a_limit_that_interrupts_may_be_set_at_any_time() {
    case("interrupts later", || {
        let (hand, pond) = still(|pool| pool);
        pond.set_run_warning(Some(RunWarning::after(ms(100)).interrupts()));
        let (_gate, held) = hold(&pond);
        hand.advance(ms(100));
        assert!(held.join().unwrap(), "it was interrupted");
        // And taken back.
        pond.set_run_warning(Some(RunWarning::after(ms(100))));
        let (gate, held) = hold(&pond);
        hand.advance(ms(100));
        assert_eq!(pond.health().long_runs, 2);
        gate.open();
        assert!(!held.join().unwrap(), "it was not interrupted");
    });
}

#[test]
fn a_pool_that_rests_is_not_watched_and_the_next_task_changes_that() {
    case("rests", || {
        let (hand, pond) = still(|pool| pool.run_warning(RunWarning::after(ms(100))));
        let (gate, held) = hold(&pond);
        assert_eq!(hand.sleepers(), 1, "the alarm of the watch");
        hand.advance(ms(100));
        assert_eq!(hand.sleepers(), 1, "set anew");
        gate.open();
        held.join().unwrap();
        pond.await_idle(1);
        for _ in 0..3 {
            hand.advance(ms(1000));
        }
        assert_eq!(hand.sleepers(), 0, "it has been idle at three rings");
        let (gate, held) = hold(&pond);
        assert_eq!(hand.sleepers(), 1);
        hand.advance(ms(100));
        assert_eq!(pond.health().long_runs, 2);
        gate.open();
        held.join().unwrap();
    });
}

/// Between the look of its submit at the watch and its place in the queue.
#[test]
fn a_task_that_is_on_its_way_while_the_watch_ends_is_watched_all_the_same() {
    case("on its way", || {
        let hand = ManualClock::new();
        let own = hand.clone();
        let queue = OwnQueue::bounded(8).watched(move |step| {
            if step == Step::Offer {
                (0..5).for_each(|_| own.advance(ms(1000)));
            }
        });
        let pool = ThreadPool::builder(fresh_name()).core(1).max(1);
        let pool = pool.clock(hand.clock()).on_event(|_| ());
        let pool = pool.run_warning(RunWarning::after(ms(100)));
        let pond = Pond::of(pool.queue(Queue::custom(queue)));
        pond.submit(|| ()).unwrap().join().unwrap();
        pond.await_idle(1);
        let (gate, held) = hold(&pond);
        hand.advance(ms(100));
        assert_eq!(pond.health().long_runs, 1);
        gate.open();
        held.join().unwrap();
    });
}

#[test]
fn only_what_is_seen_twice_is_a_lost_wake_up() {
    case("twice", || {
        let queue = OwnQueue::bounded(10).that_forgets_a_wake_up();
        let pool = ThreadPool::builder(fresh_name()).core(1).on_event(|_| ());
        let pond = Pond::of(pool.queue(Queue::custom(queue)));
        assert!(pond.prestart_core().unwrap());
        pond.await_idle(1);
        let watch = Stopwatch::start();
        let task = pond.submit(|| ()).unwrap();
        // Not by the handle alone: without a thread for the timer nobody watches.
        until("its worker has been woken", || task.is_finished());
        task.join().unwrap();
        // It looks once in a second: a wake-up that is on its way at one look is none at the next.
        assert!(watch.read() >= ms(1900), "{:?}", watch.read());
        assert_eq!(pond.health().lost_wakeups, 1);
    });
}

/// A woken worker may wait for a CPU longer than a short limit.
#[test]
fn a_short_limit_does_not_make_lost_wake_ups_of_slow_ones() {
    case("short", || {
        let hand = ManualClock::new();
        let queue = OwnQueue::bounded(10).that_forgets_a_wake_up();
        let pool = ThreadPool::builder(fresh_name()).core(1).max(1);
        let pool = pool.clock(hand.clock()).on_event(|_| ());
        let pool = pool.run_warning(RunWarning::after(ms(50)));
        let pond = Pond::of(pool.queue(Queue::custom(queue)));
        assert!(pond.prestart_core().unwrap());
        pond.await_idle(1);
        let task = pond.submit(|| ()).unwrap();
        let look = || {
            hand.advance(ms(50));
            until("it has looked", || hand.sleepers() == 1);
        };
        (0..20).for_each(|_| look());
        assert_eq!(pond.health().lost_wakeups, 0, "first seen 950 ms ago");
        look();
        until("its worker has been woken", || task.is_finished());
        task.join().unwrap();
        assert_eq!(pond.health().lost_wakeups, 1);
    });
}

#[test]
fn a_long_run_is_a_fault_only_while_it_lasts() {
    case("lasts", || {
        let (hand, pond) = still(|pool| pool.run_warning(RunWarning::after(ms(100))));
        let (gate, held) = hold(&pond);
        hand.advance(ms(99));
        assert!(pond.health().is_healthy(), "{:?}", pond.health());
        hand.advance(ms(1));
        let health = pond.health();
        assert_eq!((health.long_running, health.long_runs), (1, 1));
        assert!(!health.is_healthy());
        let said = pond.engine_snapshot().warnings;
        assert_eq!(
            said,
            ["running tasks that have exceeded the limit of their run warning: 1"]
        );
        // A longer limit takes it back, a shorter one does not wait for the watchdog.
        pond.set_run_warning(Some(RunWarning::after(ms(200))));
        assert!(pond.health().is_healthy(), "{:?}", pond.health());
        pond.set_run_warning(Some(RunWarning::after(ms(50))));
        assert!(!pond.health().is_healthy());
        gate.open();
        held.join().unwrap();
        until("its worker has ended it", || {
            pond.health().long_running == 0
        });
        let health = pond.health();
        assert_eq!(health.long_runs, 1, "it is still counted");
        assert!(health.is_healthy(), "{health:?}");
        assert!(pond.engine_snapshot().is_healthy());
    });
}

#[test]
fn a_lost_wake_up_is_a_fault_for_a_minute() {
    case("a minute", || {
        let hand = ManualClock::new();
        let queue = OwnQueue::bounded(10).that_forgets_a_wake_up();
        let pool = ThreadPool::builder(fresh_name()).core(1).max(1);
        let pool = pool.clock(hand.clock()).on_event(|_| ());
        // By a manual clock a pool is watched only if it has a limit.
        let pool = pool.run_warning(RunWarning::after(ms(3_600_000)));
        let pond = Pond::of(pool.queue(Queue::custom(queue)));
        assert!(pond.prestart_core().unwrap());
        pond.await_idle(1);
        let task = pond.submit(|| ()).unwrap();
        for _ in 0..2 {
            hand.advance(ms(1000));
            // With such a queue it looks on another thread, and then sets its alarm anew.
            until("it has looked", || hand.sleepers() == 1);
        }
        until("its worker has been woken", || task.is_finished());
        task.join().unwrap();
        let health = pond.health();
        assert_eq!(health.lost_wakeups, 1);
        assert_eq!(health.since_lost_wakeup, Some(Duration::ZERO));
        hand.advance(ms(59_999));
        let health = pond.health();
        assert_eq!(health.since_lost_wakeup, Some(ms(59_999)));
        assert!(!health.is_healthy());
        hand.advance(ms(1));
        assert!(pond.health().is_healthy(), "{:?}", pond.health());
        assert_eq!(pond.health().lost_wakeups, 1, "it is still counted");
        assert!(pond.engine_snapshot().is_healthy());
    });
}

#[test]
fn workers_above_a_maximum_that_was_lowered_are_no_fault() {
    case("lowered", || {
        let (_hand, pond) = still(|pool| pool.core(2).max(2));
        let both = [hold(&pond), hold(&pond)];
        pond.apply(&Patch::new().core(1).max(1)).unwrap();
        let health = pond.health();
        assert_eq!(health.surplus_workers, 1);
        assert!(health.is_healthy(), "{health:?}");
        assert!(pond.engine_snapshot().is_healthy());
        for (gate, held) in both {
            gate.open();
            held.join().unwrap();
        }
    });
}

#[test]
fn a_pause_between_two_tasks_belongs_to_neither() {
    case("pause", || {
        let (hand, pond) = still(|pool| pool);
        for takes in [3, 5] {
            let inside = hand.clone();
            let spec = TaskSpec::new().name("grind");
            let body = move || inside.advance(ms(takes));
            pond.submit_with(spec, body).unwrap().join().unwrap();
            pond.await_idle(1);
            hand.advance(ms(1000));
        }
        let metrics = pond.metrics();
        assert_eq!(metrics.completed, 2);
        assert_eq!((metrics.wait.total(), metrics.run.total()), (ms(0), ms(8)));
    });
}

#[test]
fn a_short_task_is_sampled_when_its_worker_rests() {
    case("short", || {
        let pond = Pond::of(ThreadPool::builder(fresh_name()).core(1));
        let body = || {
            let start = Instant::now();
            while start.elapsed() < Duration::from_micros(50) {
                std::hint::spin_loop();
            }
        };
        pond.submit(body).unwrap().join().unwrap();
        until("it is sampled", || {
            !pond.metrics().usage.sampled().is_zero()
        });
    });
}
