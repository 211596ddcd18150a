//! A pool whose queue holds tasks back until they are due.

use millpond::executor::{ExecutorExt, Lifecycle};
use millpond::pool::{PoolBuilder, Queue, ThreadPool};
use millpond::queue::DelayQueue;
use millpond::task::{Task, TaskHandle, TaskSpec};
use millpond::time::ManualClock;
use millpond_conform::kit::{case, until};
use millpond_conform::suites::pond::{Pond, fresh_name};
use std::time::Duration;

const SECOND: Duration = Duration::from_secs(1);

struct Delayed {
    hand: ManualClock,
    pond: Pond,
}

impl Delayed {
    /// A pool whose tasks are due as many seconds after the start as their names say.
    fn new(shape: impl FnOnce(PoolBuilder) -> PoolBuilder) -> Self {
        let hand = ManualClock::new();
        let start = hand.clock().now();
        let due = move |task: &Task| {
            let seconds = task.name().map_or(0, |name| name.parse().unwrap());
            start + SECOND * seconds
        };
        let queue = DelayQueue::due_by(due).with_clock(hand.clock());
        let pool = ThreadPool::builder(fresh_name()).clock(hand.clock());
        let pond = Pond::of(shape(pool.queue(Queue::custom(queue))));
        Delayed { hand, pond }
    }

    fn after(&self, seconds: u32) -> TaskHandle<u32> {
        let spec = TaskSpec::new().name(seconds.to_string());
        self.pond.submit_with(spec, move || seconds).unwrap()
    }

    /// Waits until the one worker is parked, and looks at the clock or does not.
    fn await_rest(&self, by_the_clock: usize) {
        until("the worker rests", || {
            self.pond.idle() == 1 && self.hand.sleepers() == by_the_clock
        });
    }
}

#[test]
fn a_pool_without_a_core_runs_a_task_that_is_due_later() {
    case("later", || {
        let here = Delayed::new(|pool| pool.core(0).max(1));
        let handle = here.after(3600);
        here.await_rest(1);
        assert_eq!(here.pond.snapshot().queued, 1);
        here.hand.advance(SECOND * 3599);
        here.await_rest(1);
        assert!(!handle.is_finished());
        here.hand.advance(SECOND);
        assert_eq!(handle.join().unwrap(), 3600);
    });
}

#[test]
fn tasks_come_when_they_are_due_and_in_that_order() {
    case("order", || {
        let here = Delayed::new(|pool| pool.core(0).max(1));
        let handles: Vec<_> = [3, 1, 2].map(|seconds| here.after(seconds)).into();
        for seconds in 1..=3_u64 {
            here.await_rest(1);
            here.hand.advance(SECOND);
            until("it has run", || here.pond.snapshot().completed == seconds);
        }
        for (handle, seconds) in handles.into_iter().zip([3, 1, 2]) {
            assert_eq!(handle.join().unwrap(), seconds);
        }
    });
}

/// A thread that may not leave, because one task is far away, neither leaves nor spins.
///
/// Holds: jtreg ThreadPoolExecutor.ThreadRestarts
#[test]
fn one_thread_waits_for_a_task_that_is_far_away_and_is_not_started_again_and_again() {
    for (core, may_time_out) in [(0, false), (1, true), (1, false)] {
        case("far away", || {
            let here = Delayed::new(|pool| {
                let pool = pool.core(core).max(2).core_may_time_out(may_time_out);
                pool.keep_alive(Duration::from_secs(3600))
            });
            // A task that starts a worker goes to it at once; this one is to wait.
            here.pond.prestart_all_core().unwrap();
            let far = here.after(1_000_000);
            here.pond.set_keep_alive(Duration::from_millis(1)).unwrap();
            for _ in 0..50 {
                here.hand.advance(SECOND);
                here.await_rest(1);
            }
            let now = here.pond.snapshot();
            assert_eq!((now.workers, now.threads_started), (1, 1), "core {core}");
            assert_eq!(now.queued, 1);
            assert_eq!(here.after(0).join().unwrap(), 0);
            here.hand.advance(SECOND);
            here.await_rest(1);
            assert_eq!(here.pond.snapshot().threads_started, 1);
            let back = here.pond.shutdown_now();
            assert_eq!(back.len(), 1);
            assert!(!far.is_finished());
            here.pond.await_end();
        });
    }
}

#[test]
fn workers_of_the_core_stay_for_a_task_that_is_far_away_and_leave_when_it_is_gone() {
    for goes in ["removed", "purged", "due"] {
        case(goes, || {
            let here = Delayed::new(|pool| {
                let pool = pool.core(3).max(3).core_may_time_out(true);
                pool.keep_alive(SECOND)
            });
            here.pond.prestart_all_core().unwrap();
            let far = here.after(100);
            for _ in 0..3 {
                here.hand.advance(SECOND);
                here.pond.await_idle(3);
            }
            // One waits for the time of the task, and nobody for its own.
            until("they stay", || here.hand.sleepers() == 1);
            match goes {
                "removed" => assert!(here.pond.remove(&far)),
                "purged" => {
                    far.cancel();
                    assert_eq!(here.pond.purge(), 1);
                }
                _ => here.hand.advance(SECOND * 100),
            }
            // Their time runs anew when there is nothing to stay for.
            until("they leave when their time is up", || {
                here.hand.advance(SECOND);
                here.pond.snapshot().workers == 0
            });
            assert_eq!(here.pond.snapshot().threads_started, 3);
        });
    }
}

#[test]
fn a_shutdown_waits_for_what_is_due_later_and_a_stop_does_not() {
    case("shutdown", || {
        let here = Delayed::new(|pool| pool.core(0).max(1));
        let handle = here.after(10);
        here.pond.shutdown();
        here.await_rest(1);
        assert!(!here.pond.is_terminated());
        here.hand.advance(SECOND * 10);
        assert_eq!(handle.join().unwrap(), 10);
        here.pond.await_end();
    });
    case("stop", || {
        let here = Delayed::new(|pool| pool.core(0).max(1));
        let handle = here.after(10);
        drop(here.pond.shutdown_now());
        here.pond.await_end();
        assert!(handle.join().unwrap_err().is_cancelled());
    });
}

#[test]
fn removing_the_last_one_that_is_due_later_ends_a_pool_that_was_shut_down() {
    for cancels in [false, true] {
        case("removed", || {
            let here = Delayed::new(|pool| pool.core(0).max(1));
            let handle = here.after(10);
            here.pond.shutdown();
            here.await_rest(1);
            match cancels {
                false => assert!(here.pond.remove(&handle)),
                true => {
                    handle.cancel();
                    assert_eq!(here.pond.purge(), 1);
                }
            }
            here.pond.await_end();
        });
    }
}
