//! What a pool does when more comes than it can do: who is shed, who comes first, and what is said.
//!
//! One worker, and time by hand: a task takes as long as it moves the clock, so whole overloads are
//! played to the millisecond.

#![allow(
    clippy::disallowed_types,
    clippy::disallowed_methods,
    reason = "a test stands outside: it uses std's locks beside what it tests"
)]

use millpond::executor::{ExecutorExt, Lifecycle, SerialExecutor, SpawnFuture};
use millpond::manage::{CoDel, Invalid, OverloadOrder, Patch, PoolSnapshot};
use millpond::pool::{Ended, Hooks, PoolBuilder, Queue, TaskInfo, ThreadPool};
use millpond::queue::{ArrayQueue, PriorityQueue};
use millpond::task::{CancelReason, Priority, Task, TaskError, TaskHandle, TaskSpec};
use millpond::thread::{Body, JoinHandle, ThreadFactory, Threads};
use millpond::time::ManualClock;
use millpond_conform::kit::{Gate, Latch, OwnQueue, case, until};
use millpond_conform::suites::pond::{Pond, fresh_name};
use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

fn ms(count: u64) -> Duration {
    Duration::from_millis(count)
}

/// A pool of one worker, by a manual clock.
struct Mill {
    hand: ManualClock,
    pond: Pond,
    ran: Arc<Mutex<Vec<u64>>>,
}

impl Mill {
    fn new(shape: impl FnOnce(PoolBuilder) -> PoolBuilder) -> Self {
        let hand = ManualClock::new();
        let pool = ThreadPool::builder(fresh_name()).core(1).max(1);
        let pool = pool.queue(Queue::bounded(1000)).clock(hand.clock());
        Mill {
            pond: Pond::of(shape(pool)),
            hand,
            ran: Arc::default(),
        }
    }

    /// Brings a task of this number that takes so many milliseconds.
    fn bring(&self, number: u64, takes: u64) -> TaskHandle<u64> {
        let (hand, ran) = (self.hand.clone(), Arc::clone(&self.ran));
        let body = move || {
            ran.lock().unwrap().push(number);
            hand.advance(ms(takes));
            number
        };
        self.pond.submit(body).unwrap()
    }

    fn bring_all(&self, numbers: std::ops::Range<u64>, takes: u64) -> Vec<TaskHandle<u64>> {
        numbers.map(|number| self.bring(number, takes)).collect()
    }

    /// Which tasks have run, in order.
    fn ran(&self) -> Vec<u64> {
        self.ran.lock().unwrap().clone()
    }

    fn await_rest(&self) -> PoolSnapshot {
        until("all is done", || {
            let now = self.pond.snapshot();
            now.queued == 0 && now.active == 0
        });
        self.pond.snapshot()
    }
}

/// Why there is no value; `None` if there is one.
fn why(handle: TaskHandle<u64>) -> Option<CancelReason> {
    match handle.join() {
        Ok(_) => None,
        Err(TaskError::Cancelled(reason)) => Some(reason),
        Err(other) => panic!("neither a value nor cancelled: {other}"),
    }
}

fn whys(handles: Vec<TaskHandle<u64>>) -> Vec<Option<CancelReason>> {
    handles.into_iter().map(why).collect()
}

const TOO_LONG: Option<CancelReason> = Some(CancelReason::WaitedTooLong);
const SHED: Option<CancelReason> = Some(CancelReason::Shed);

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
            "task cancelled: it had waited in the queue for longer than its executor allows"
        );
        assert_eq!(why(in_time), None, "it has waited for as long as it may");
        let last = mill.await_rest();
        assert_eq!((last.completed, last.shed, last.expired), (2, 1, 0));
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
        let spec = |patience| {
            let clock = mill.hand.clock();
            TaskSpec::new()
                .deadline(clock.deadline(patience))
                .clock(clock)
        };
        let expired = mill.pond.submit_spec(spec(ms(20)), || 1).unwrap();
        let waited = mill.pond.submit_spec(spec(ms(21)), || 2).unwrap();
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
fn the_newest_come_first_while_the_oldest_have_waited_for_half_of_what_they_may() {
    case("newest first", || {
        let newest = OverloadOrder::NewestFirst;
        let mill = Mill::new(|pool| pool.max_queue_wait(ms(100)).overload_order(newest));
        assert_eq!(mill.pond.overload_order(), newest);
        let held = mill.pond.hold(1);
        let all = mill.bring_all(0..10, 10);
        mill.hand.advance(ms(60));
        held.release();
        let reasons = whys(all);
        // The first look finds that it is late; after 40 ms more the oldest have waited too long.
        assert_eq!(mill.ran(), [0, 9, 8, 7, 6]);
        assert_eq!(reasons[1..6], [TOO_LONG; 5]);
        assert_eq!(mill.await_rest().shed, 5);
    });
}

#[test]
fn when_overload_is_over_the_oldest_come_first_again() {
    case("back to order", || {
        let codel = CoDel::new(ms(20), ms(100));
        let newest = OverloadOrder::NewestFirst;
        let mill = Mill::new(|pool| pool.shedding(codel).overload_order(newest));
        let held = mill.pond.hold(1);
        // 10 that bring the overload about, the oldest for 100 ms and more.
        let first = mill.bring_all(0..10, 15);
        mill.hand.advance(ms(30));
        held.release();
        whys(first);
        // Waits of 30, 45, ... 120: at the eighth the interval is over, and all waits were too long.
        assert_eq!(mill.ran(), [0, 1, 2, 3, 4, 5, 6]);
        assert_eq!(mill.await_rest().shed, 3);
        mill.ran.lock().unwrap().clear();
        // Now it is empty: first in, first out.
        let held = mill.pond.hold(1);
        let second = mill.bring_all(0..4, 1);
        held.release();
        whys(second);
        assert_eq!(mill.ran(), [0, 1, 2, 3]);
    });
}

/// When those are gone that have waited for long, those that are left go in order, although the queue
/// has never been empty.
#[test]
fn what_has_hardly_waited_goes_in_order_as_soon_as_the_old_ones_are_gone() {
    case("in order", || {
        let newest = OverloadOrder::NewestFirst;
        let mill = Mill::new(|pool| pool.max_queue_wait(ms(100)).overload_order(newest));
        let (hand, ran, pool) = (mill.hand.clone(), Arc::clone(&mill.ran), mill.pond.pool());
        let held = mill.pond.hold(1);
        let brings = mill.pond.submit(move || {
            hand.advance(ms(50));
            let later = |number: u64| {
                let ran = Arc::clone(&ran);
                let body = move || {
                    ran.lock().unwrap().push(number);
                    number
                };
                pool.submit(body).unwrap()
            };
            [10, 11, 12].map(later)
        });
        let old = mill.bring_all(1..3, 0);
        mill.hand.advance(ms(60));
        held.release();
        assert_eq!(whys(old), [TOO_LONG; 2]);
        let young = brings.unwrap().join().unwrap();
        assert_eq!(whys(young.into()), [None; 3]);
        assert_eq!(mill.ran(), [10, 11, 12]);
    });
}

/// A queue that stands for good: the newest run, and the oldest are let go one by one.
#[test]
fn newest_first_with_shedding_serves_the_new_and_frees_the_places_of_the_old() {
    case("newest and shed", || {
        let codel = CoDel::new(ms(20), ms(40));
        let newest = OverloadOrder::NewestFirst;
        let mill = Mill::new(|pool| pool.shedding(codel).overload_order(newest));
        let (hand, pool) = (mill.hand.clone(), mill.pond.pool());
        let held = mill.pond.hold(1);
        let mut all = mill.bring_all(0..6, 10);
        hand.advance(ms(21));
        // While this one runs, three more come.
        let (ran, more) = (Arc::clone(&mill.ran), Arc::new(Mutex::new(Vec::new())));
        let later = Arc::clone(&more);
        let brings = move || {
            ran.lock().unwrap().push(100);
            for number in 101..104 {
                let (hand, ran) = (hand.clone(), Arc::clone(&ran));
                let body = move || {
                    ran.lock().unwrap().push(number);
                    hand.advance(ms(10));
                    number
                };
                later.lock().unwrap().push(pool.submit(body).unwrap());
            }
            hand.advance(ms(30));
            100
        };
        all.push(mill.pond.submit(brings).unwrap());
        held.release();
        let reasons = whys(all);
        // Seen: 21, 31, 41, 51 (the oldest's waits at 0, 10, 20, 30); at 61 and 40 ms it is overload.
        // The fifth has waited for 61 by then and is shed, and so is the sixth. The last is new.
        assert_eq!(reasons, [None, None, None, None, SHED, SHED, None]);
        let more = std::mem::take(&mut *more.lock().unwrap());
        // They have waited for 30, 40 and 50 ms when the oldest of them is looked at.
        assert_eq!(whys(more), [SHED, None, None]);
        assert_eq!(mill.ran(), [0, 1, 2, 3, 100, 103, 102]);
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
            text.contains("; it drains in about 30 ms): try again"),
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
        let mill = Mill::new(|pool| pool.queue(Queue::bounded(1)).without_figures());
        mill.bring(0, 40).join().unwrap();
        let held = mill.pond.hold(1);
        let waits = mill.bring(1, 0);
        let refused = mill.pond.submit(|| ()).unwrap_err();
        assert_eq!(refused.reason.drains_in(), None);
        held.release();
        waits.join().unwrap();
    });
}

/// Urgent tasks come without end, one each time the worker is free, and a low one waits all the while.
#[test]
fn low_tasks_are_delayed_for_as_long_as_promised_and_then_it_is_their_turn() {
    case("priorities", || {
        let mill = Mill::new(|pool| pool.queue(Queue::by_priority(50, ms(100))));
        let bring = |number: u64, priority: Priority| {
            let (hand, ran) = (mill.hand.clone(), Arc::clone(&mill.ran));
            let pool = mill.pond.pool();
            let body = move || {
                ran.lock().unwrap().push(number);
                // What an urgent task brings is urgent, too.
                if (1..40).contains(&number) {
                    let (hand, own) = (hand.clone(), Arc::clone(&ran));
                    urgent(&pool, hand, own, number + 1);
                }
                hand.advance(ms(10));
                number
            };
            let spec = TaskSpec::new().priority(priority);
            mill.pond.submit_spec(spec, body).unwrap()
        };
        let held = mill.pond.hold(1);
        let low = bring(100, Priority::Low);
        let normal = bring(200, Priority::Normal);
        let _high = bring(1, Priority::High);
        held.release();
        low.join().unwrap();
        normal.join().unwrap();
        until("all have run", || mill.ran().len() == 42);
        let ran = mill.ran();
        let place = |number| ran.iter().position(|one| *one == number).unwrap();
        // Who comes at the very moment comes after it: number 12 is made at 100 ms, number 21 at 200.
        assert_eq!((place(200), place(12)), (11, 12), "{ran:?}");
        assert_eq!((place(100), place(21)), (21, 22), "{ran:?}");
        mill.await_rest();
    });
}

/// Each brings the next, in the name of the one that runs.
fn urgent(pool: &ThreadPool, hand: ManualClock, ran: Arc<Mutex<Vec<u64>>>, number: u64) {
    let next = pool.clone();
    let body = move || {
        ran.lock().unwrap().push(number);
        if number < 40 {
            urgent(&next, hand.clone(), ran, number + 1);
        }
        hand.advance(ms(10));
    };
    pool.run(body).unwrap();
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
    let fields: Vec<_> = error.problems().iter().map(Invalid::field).collect();
    assert_eq!(fields, ["max_queue_wait", "shedding", "overload_order"]);

    let own = [
        Queue::own(ArrayQueue::bounded(4).unwrap()),
        Queue::own(PriorityQueue::by(|_: &Task, _: &Task| {
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
        assert_eq!(error.problems(), [Invalid::OrderOfItsOwn]);
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
                    true => pool.queue(Queue::own(OwnQueue::bounded(100))),
                    false => pool.queue(Queue::own(ArrayQueue::bounded(100).unwrap())),
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

#[derive(Default)]
struct Ears {
    before: AtomicUsize,
    gone: AtomicUsize,
}

impl Hooks for Ears {
    fn before(&self, _: &TaskInfo) {
        self.before.fetch_add(1, Ordering::SeqCst);
    }

    fn after(&self, _: &TaskInfo, ended: Ended) {
        let gone = usize::from(ended == Ended::Gone);
        self.gone.fetch_add(gone, Ordering::SeqCst);
    }
}

#[test]
fn hooks_hear_of_what_is_shed_as_of_all_that_is_gone() {
    case("hooks", || {
        let ears = Arc::new(Ears::default());
        let own = Arc::clone(&ears);
        let mill = Mill::new(|pool| pool.max_queue_wait(ms(20)).hooks(own));
        let held = mill.pond.hold(1);
        let all = mill.bring_all(0..2, 30);
        held.release();
        assert_eq!(whys(all), [None, TOO_LONG]);
        mill.await_rest();
        assert_eq!(ears.before.load(Ordering::SeqCst), 3);
        assert_eq!(ears.gone.load(Ordering::SeqCst), 1);
    });
}

/// A drain of a serial executor works for others, and they have deadlines of their own.
#[test]
fn the_machinery_of_other_executors_is_not_shed() {
    case("kept", || {
        let mill = Mill::new(|pool| pool.max_queue_wait(ms(20)));
        let serial = SerialExecutor::new(mill.pond.pool());
        let held = mill.pond.hold(1);
        let in_order = serial.key("one").submit(|| 7).unwrap();
        mill.hand.advance(ms(30));
        held.release();
        assert_eq!(in_order.join().unwrap(), 7);
        assert_eq!(mill.await_rest().shed, 0);
    });
}

/// What has begun is polled to its end; what has not is shed, and its handle says so.
#[test]
fn a_future_is_shed_before_it_begins_and_never_afterwards() {
    case("futures", || {
        let mill = Mill::new(|pool| pool.max_queue_wait(ms(20)));
        let (wake, woken) = (Arc::new(Mutex::new(None)), Arc::new(AtomicUsize::new(0)));
        let (kept, polls) = (Arc::clone(&wake), Arc::clone(&woken));
        let begun = mill
            .pond
            .pool()
            .spawn_future(std::future::poll_fn(move |context| {
                match polls.fetch_add(1, Ordering::SeqCst) {
                    0 => {
                        *kept.lock().unwrap() = Some(context.waker().clone());
                        std::task::Poll::Pending
                    }
                    _ => std::task::Poll::Ready(7),
                }
            }));
        until("it has been polled", || wake.lock().unwrap().is_some());
        let held = mill.pond.hold(1);
        wake.lock().unwrap().take().unwrap().wake();
        let fresh = mill.pond.pool().spawn_future(async { 8 }).unwrap();
        mill.hand.advance(ms(30));
        held.release();
        assert_eq!(begun.unwrap().join().unwrap(), 7);
        let error = fresh.join().unwrap_err();
        assert!(
            matches!(error, TaskError::Cancelled(CancelReason::WaitedTooLong)),
            "{error}"
        );
    });
}

/// Whoever opened the scope runs what the pool let go.
#[test]
fn a_job_of_a_scope_runs_even_if_the_pool_sheds_it() {
    case("scope", || {
        let mill = Mill::new(|pool| pool.max_queue_wait(ms(20)));
        let held = mill.pond.hold(1);
        let ran = AtomicUsize::new(0);
        let sheds = mill.pond.scope(|s| {
            for _ in 0..3 {
                s.submit(|| ran.fetch_add(1, Ordering::SeqCst)).unwrap();
            }
            mill.hand.advance(ms(30));
            held.release();
            until("they are shed", || mill.pond.snapshot().queued == 0);
            mill.pond.snapshot().shed
        });
        assert_eq!(ran.load(Ordering::SeqCst), 3);
        assert!(sheds > 0);
    });
}

/// Real time, many threads, and an order that changes all the time: each task has exactly one end.
#[test]
fn stress_nothing_is_lost_or_run_twice_in_whatever_order() {
    case("stress", || {
        let shape = |pool: PoolBuilder| {
            pool.core(2)
                .max(2)
                .queue(Queue::bounded(64))
                .max_queue_wait(Duration::from_micros(400))
                .overload_order(OverloadOrder::NewestFirst)
        };
        let pond = Pond::of(shape(ThreadPool::builder(fresh_name())));
        let runs: Arc<Vec<AtomicUsize>> =
            Arc::new((0..8000).map(|_| AtomicUsize::new(0)).collect());
        let (mut taken, mut values, mut shed) = (0, 0, 0);
        std::thread::scope(|s| {
            let producers: Vec<_> = (0..4)
                .map(|part| {
                    let (pool, runs) = (pond.pool(), &runs);
                    s.spawn(move || {
                        let mut handles = Vec::new();
                        for number in part * 2000..(part + 1) * 2000 {
                            let runs = Arc::clone(runs);
                            let body = move || {
                                (0..200).for_each(|_| std::hint::spin_loop());
                                runs[number].fetch_add(1, Ordering::Relaxed)
                            };
                            handles.extend(pool.submit(body).map(|handle| (number, handle)));
                            if number % 97 == 0 {
                                std::thread::yield_now();
                            }
                        }
                        handles
                    })
                })
                .collect();
            for producer in producers {
                for (number, handle) in producer.join().unwrap() {
                    taken += 1;
                    let ran = match handle.join() {
                        Ok(before) => {
                            assert_eq!(before, 0);
                            values += 1;
                            1
                        }
                        Err(TaskError::Cancelled(CancelReason::WaitedTooLong)) => {
                            shed += 1;
                            0
                        }
                        Err(other) => panic!("{other}"),
                    };
                    assert_eq!(runs[number].load(Ordering::Relaxed), ran);
                }
            }
        });
        pond.close();
        let last = pond.snapshot();
        assert_eq!((last.completed, last.shed), (values, shed));
        assert_eq!(values + shed, taken);
    });
}
