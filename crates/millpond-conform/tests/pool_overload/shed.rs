//! Who is shed, why, and what a refusal says.

use crate::mill::{Mill, SHED, TOO_LONG, ms, why, whys};
use millpond::executor::{ExecutorExt, Lifecycle};
use millpond::manage::{CoDel, Invalid, OverloadOrder, Patch};
use millpond::pool::{Queue, ThreadPool};
use millpond::queue::{FifoQueue, PriorityQueue};
use millpond::task::{CancelReason, Task, TaskSpec};
use millpond::thread::{Body, JoinHandle, ThreadFactory, Threads};
use millpond::time::ManualClock;
use millpond_conform::kit::{Gate, Latch, OwnQueue, case, until};
use millpond_conform::suites::pond::{Pond, fresh_name};
use std::io;
use std::time::Duration;

#[test]
fn what_has_waited_for_too_long_is_dropped_and_says_so() {
    case("too long", || {
        let mill = Mill::new(|pool| pool.max_queue_wait(ms(100)));
        let held = mill.pond.hold(1);
        let early = mill.bring(1, 0);
        mill.hand.advance(ms(1));
        let in_time = mill.bring(2, 0);
        mill.hand.advance(ms(100));
        held.release();
        let error = early.join().unwrap_err();
        assert_eq!(
            error.to_string(),
            "the task was cancelled: it had waited in the queue for longer than its executor allows"
        );
        assert_eq!(why(in_time), None, "it has waited for as long as it may");
        let last = mill.await_rest();
        assert_eq!((last.completed, last.shed, last.expired), (2, 1, 0));
    });
}

/// The stamp of a task has 48 bits: as many nanoseconds are three days, and half of that is 39 hours.
#[test]
fn what_has_waited_for_days_by_a_manual_clock_has_waited_for_too_long() {
    case("days", || {
        const HOUR: u64 = 3_600_000;
        for hours in [2, 40, 79, 24 * 365] {
            let mill = Mill::new(|pool| pool.max_queue_wait(ms(HOUR)));
            let held = mill.pond.hold(1);
            let early = mill.bring(1, 0);
            mill.hand.advance(ms(hours * HOUR));
            let in_time = mill.bring(2, 0);
            held.release();
            assert_eq!(
                whys(vec![early, in_time]),
                [TOO_LONG, None],
                "{hours} hours"
            );
        }
    });
}

#[test]
fn how_long_tasks_may_wait_changes_for_those_that_wait_already() {
    case("live", || {
        let mill = Mill::new(|pool| pool);
        let held = mill.pond.hold(1);
        let all = mill.bring_all(0..3, 40);
        mill.hand.advance(ms(50));
        mill.pond.set_max_queue_wait(ms(99)).unwrap();
        assert_eq!(mill.pond.max_queue_wait(), Some(ms(99)));
        assert_eq!(mill.pond.snapshot().max_queue_wait, Some(ms(99)));
        held.release();
        // They wait for 50, 90 and 130 ms.
        assert_eq!(whys(all), [None, None, TOO_LONG]);
        mill.pond.set_max_queue_wait(None).unwrap();
        let held = mill.pond.hold(1);
        let patient = mill.bring(9, 0);
        mill.hand.advance(ms(1_000_000));
        held.release();
        assert_eq!(why(patient), None);
    });
}

/// A factory whose threads take an hour to start.
#[derive(Debug)]
struct Slow(ManualClock, Threads);

impl ThreadFactory for Slow {
    fn start(&self, body: Body) -> io::Result<JoinHandle<()>> {
        self.0.advance(Duration::from_secs(3600));
        self.1.start(body)
    }
}

#[test]
fn a_task_that_starts_a_worker_is_not_shed_however_long_that_takes() {
    case("first", || {
        let hand = ManualClock::new();
        let threads = Slow(hand.clone(), Threads::named(fresh_name()));
        let pool = ThreadPool::builder(fresh_name()).core(2).max(2);
        let pond = Pond::of(
            pool.clock(hand.clock())
                .max_queue_wait(ms(1))
                .shedding(CoDel::default())
                .threads(threads),
        );
        for _ in 0..2 {
            pond.submit(|| ()).unwrap().join().unwrap();
        }
        assert_eq!(pond.snapshot().shed, 0);
    });
}

#[test]
fn a_deadline_that_has_passed_is_the_reason_before_all_others() {
    case("reasons", || {
        let mill = Mill::new(|pool| pool.max_queue_wait(ms(10)));
        let held = mill.pond.hold(1);
        let spec = |timeout| {
            let clock = mill.hand.clock();
            TaskSpec::new()
                .deadline(clock.deadline(timeout))
                .clock(clock)
        };
        let expired = mill.pond.submit_with(spec(ms(20)), || 1).unwrap();
        let waited = mill.pond.submit_with(spec(ms(21)), || 2).unwrap();
        mill.hand.advance(ms(20));
        held.release();
        assert_eq!(why(expired), Some(CancelReason::Expired));
        assert_eq!(why(waited), TOO_LONG);
        let last = mill.await_rest();
        assert_eq!((last.expired, last.shed, last.completed), (1, 1, 1));
    });
}

/// The first hundred milliseconds have a short wait in them, the next hundred have none.
#[test]
fn a_queue_that_stands_is_shed_and_a_burst_is_not() {
    case("codel", || {
        let mill = Mill::new(|pool| pool.shedding(CoDel::default()));
        let held = mill.pond.hold(1);
        let all = mill.bring_all(0..50, 10);
        held.release();
        let mut expected = vec![None; 20];
        expected.resize(50, SHED);
        assert_eq!(whys(all), expected);
        let last = mill.await_rest();
        assert_eq!((last.completed, last.shed), (21, 30));
        until("it is calm", || !mill.pond.snapshot().is_overloaded);
        // It has been empty: what comes now is a burst again.
        let held = mill.pond.hold(1);
        let all = mill.bring_all(0..20, 10);
        held.release();
        assert_eq!(whys(all), [None; 20]);
    });
}

/// At twice the load that it can take, half of the tasks are served, and served at once.
#[test]
fn an_overloaded_pool_serves_those_that_have_not_waited_long() {
    case("goodput", || {
        let mill = Mill::new(|pool| pool.shedding(CoDel::default()));
        let (mut waits, mut all) = (Vec::new(), Vec::new());
        let held = mill.pond.hold(1);
        let gates: Vec<_> = (0..300).map(|_| (Latch::new(1), Gate::new())).collect();
        // Every 5 ms two tasks come, each of which takes 5 ms.
        let bring = |number: usize| {
            let (hand, came) = (mill.hand.clone(), mill.hand.clock().now());
            let (started, gate) = gates[number].clone();
            let body = move || {
                let waited = hand.clock().now() - came;
                started.arrive();
                gate.wait();
                waited.as_millis() as u64
            };
            mill.pond.submit(body).unwrap()
        };
        all.extend((0..2).map(bring));
        held.release();
        for step in 1..150 {
            // The one that runs now, whoever it is.
            let runs = || {
                let mut open = gates.iter().filter(|(_, gate)| !gate.is_open());
                open.find(|(started, _)| started.missing() == 0)
            };
            until("one runs", || runs().is_some());
            let running = runs().unwrap().1.clone();
            mill.hand.advance(ms(5));
            all.extend((2 * step..2 * step + 2).map(bring));
            running.open();
        }
        gates.iter().for_each(|(_, gate)| gate.open());
        for handle in all {
            if let Ok(waited) = handle.join() {
                waits.push(waited);
            }
        }
        let last = mill.await_rest();
        assert_eq!(last.completed - 1 + last.shed, 300);
        assert!(last.shed > 100, "{last:?}");
        // Once it has begun to shed nobody waits for more than twice the target.
        let (first, later) = waits.split_at(60);
        assert!(first.iter().any(|waited| *waited > 50), "it was overloaded");
        assert!(later.iter().all(|waited| *waited <= 10), "{later:?}");
    });
}

#[test]
fn shedding_is_switched_on_and_off_while_tasks_wait() {
    case("on and off", || {
        let mill = Mill::new(|pool| pool);
        let held = mill.pond.hold(1);
        let all = mill.bring_all(0..100, 10);
        mill.pond
            .apply(&Patch::new().shedding(CoDel::default()))
            .unwrap();
        let off = {
            let pool = mill.pond.pool();
            // 20 run, and here the rest would be shed.
            let body = move || pool.set_shedding(None).unwrap();
            mill.pond.submit(body).unwrap()
        };
        held.release();
        assert_eq!(whys(all)[19..21], [None, SHED]);
        assert!(off.join().unwrap_err().is_cancelled());
        assert_eq!(mill.pond.shedding(), Some(CoDel::default()));
        let held = mill.pond.hold(1);
        let all = mill.bring_all(0..100, 10);
        mill.pond.set_shedding(None).unwrap();
        held.release();
        assert_eq!(whys(all), [None; 100]);
    });
}

#[test]
fn a_refusal_says_how_long_the_queue_needs_to_the_millisecond() {
    case("drains in", || {
        let mill = Mill::new(|pool| pool.core(2).max(2).queue(Queue::bounded(6)));
        let refusal = || {
            let refused = mill.pond.submit(|| ()).unwrap_err();
            (refused.reason.drains_in(), refused.to_string())
        };
        let held = mill.pond.hold(2);
        let all = mill.bring_all(0..6, 0);
        assert_eq!(refusal().0, None, "no task is over yet");
        assert_eq!(mill.pond.snapshot().drains_in, None);
        // Two tasks that took 40 ms each, and six that took none.
        mill.hand.advance(ms(40));
        held.release();
        whys(all);
        mill.await_rest();
        mill.hand.advance(Duration::from_secs(3600));
        let held = mill.pond.hold(2);
        let all = mill.bring_all(0..6, 0);
        // 80 ms for 8 tasks; six wait for two workers.
        let (time, text) = refusal();
        assert_eq!(time, Some(ms(30)));
        assert!(
            text.contains("; it drains in about 30 ms: try again"),
            "{text}"
        );
        assert_eq!(mill.pond.snapshot().drains_in, Some(ms(30)));
        // The answer is good for ten milliseconds, and follows the length of the queue at once.
        mill.pond.set_capacity(12).unwrap();
        let more = mill.bring_all(0..6, 0);
        assert_eq!(refusal().0, Some(ms(60)));
        mill.hand.advance(ms(9));
        held.release();
        whys(all.into_iter().chain(more).collect());
        mill.await_rest();
        assert_eq!(mill.pond.snapshot().drains_in, Some(ms(0)));
    });
}

#[test]
fn a_pool_without_figures_does_not_guess() {
    case("no figures", || {
        let mill = Mill::new(|pool| pool.queue(Queue::bounded(1)).without_metrics());
        mill.bring(0, 40).join().unwrap();
        let held = mill.pond.hold(1);
        let waits = mill.bring(1, 0);
        let refused = mill.pond.submit(|| ()).unwrap_err();
        assert_eq!(refused.reason.drains_in(), None);
        held.release();
        waits.join().unwrap();
    });
}

#[test]
fn every_wrong_parameter_is_named_and_changes_nothing() {
    let built = ThreadPool::builder("mill")
        .max_queue_wait(Duration::ZERO)
        .shedding(CoDel::new(ms(0), ms(1)))
        .queue(Queue::hand_off())
        .overload_order(OverloadOrder::NewestFirst)
        .build();
    let error = built.unwrap_err();
    let fields: Vec<_> = error.problems().iter().map(Invalid::parameter).collect();
    assert_eq!(
        fields,
        ["max_queue_wait", "shedding_target", "overload_order"]
    );

    let own = [
        Queue::custom(FifoQueue::bounded(4).unwrap()),
        Queue::custom(PriorityQueue::by(|_: &Task, _: &Task| {
            std::cmp::Ordering::Equal
        })),
    ];
    for queue in own {
        let pool = ThreadPool::builder("mill").max(1).queue(queue);
        let pool = pool.max_queue_wait(ms(5)).build().unwrap();
        let wrong = Patch::new()
            .core(0)
            .shedding(CoDel::default())
            .overload_order(OverloadOrder::NewestFirst);
        let error = pool.apply(&wrong).unwrap_err();
        assert_eq!(error.problems(), [Invalid::OrderOfCustomQueue]);
        assert_eq!((pool.core(), pool.shedding()), (1, None));
    }

    let pool = ThreadPool::builder("mill").max(1).build().unwrap();
    let error = pool.set_overload_order(OverloadOrder::NewestFirst);
    assert_eq!(error.unwrap_err().problems(), [Invalid::NeverOverloaded]);
    pool.set_shedding(CoDel::default()).unwrap();
    pool.set_overload_order(OverloadOrder::NewestFirst).unwrap();
    pool.set_shedding(None).unwrap_err();
    let both = Patch::new()
        .shedding(None)
        .overload_order(OverloadOrder::Unchanged);
    pool.apply(&both).unwrap();
    assert_eq!(pool.snapshot().shedding, None);
}

#[test]
fn queues_of_the_users_shed_too() {
    for own in [true, false] {
        case("own queues", || {
            let mill = Mill::new(|pool| {
                let pool = pool.max_queue_wait(ms(100)).shedding(CoDel::default());
                match own {
                    true => pool.queue(Queue::custom(OwnQueue::bounded(100))),
                    false => pool.queue(Queue::custom(FifoQueue::bounded(100).unwrap())),
                }
            });
            let held = mill.pond.hold(1);
            let all = mill.bring_all(0..20, 10);
            held.release();
            let mut expected = vec![None; 11];
            expected.resize(20, TOO_LONG);
            assert_eq!(whys(all), expected);
        });
    }
}

#[test]
fn those_who_wait_for_too_long_are_shed_after_a_shutdown_too() {
    case("shutdown", || {
        let mill = Mill::new(|pool| pool.max_queue_wait(ms(20)));
        let held = mill.pond.hold(1);
        let all = mill.bring_all(0..4, 10);
        mill.pond.shutdown();
        held.release();
        assert_eq!(whys(all), [None, None, None, TOO_LONG]);
        mill.pond.await_end();
        let last = mill.pond.snapshot();
        assert_eq!((last.completed, last.shed), (4, 1));
    });
}
