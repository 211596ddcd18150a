//! Who comes first: the newest under overload, the urgent always, and nobody never.

use crate::mill::{Mill, SHED, TOO_LONG, ms, whys};
use millpond::executor::ExecutorExt;
use millpond::manage::{CoDel, OverloadOrder};
use millpond::pool::{Queue, ThreadPool};
use millpond::task::{Priority, TaskSpec};
use millpond::time::ManualClock;
use millpond_conform::kit::{case, until};
use std::sync::{Arc, Mutex};

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
            mill.pond.submit_with(spec, body).unwrap()
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
    pool.execute(body).unwrap();
}
