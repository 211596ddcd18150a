//! What a queue by priority does besides.

use super::item::{Item, item};
use crate::kit::{DropCount, Stress};
use millpond::queue::{BlockingQueue, PriorityQueue, QueueExt};
use millpond::time::ManualClock;
use std::cmp::Ordering;
use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::sync::atomic::{self, AtomicUsize};
use std::time::Duration;

/// Makes a queue in the order of a comparator.
pub type By = fn(fn(&Item, &Item) -> Ordering) -> PriorityQueue<Item>;

/// Tests of a queue by priority.
#[macro_export]
macro_rules! priority_suite {
    ($make:expr) => {
        $crate::bodies! { priority, ($make as $crate::suites::priority::By);
            the_comparator_decides_the_order
            equals_come_out_in_the_order_of_arrival
            the_least_comes_first_whatever_comes_when
            a_visit_is_in_the_order_in_which_elements_come_out
            any_mix_of_steps_agrees_with_a_sorted_set
            a_comparator_that_panics_leaves_the_queue_whole
            an_element_that_has_aged_enough_is_not_overtaken_any_more
        }
    };
}

fn polled(queue: &PriorityQueue<Item>) -> Vec<u32> {
    std::iter::from_fn(|| queue.poll())
        .map(|item| item.rank)
        .collect()
}

/// Holds: PriorityBlockingQueueTest.testConstructor7
pub fn the_comparator_decides_the_order(make: &By) {
    let queue = make(|one, other| other.cmp(one));
    for rank in [3, 1, 4, 1, 5] {
        queue.offer(item(rank)).unwrap();
    }
    assert_eq!(polled(&queue), [5, 4, 3, 1, 1]);
}

/// Stable: equal elements come out in the order of arrival.
pub fn equals_come_out_in_the_order_of_arrival(make: &By) {
    let queue = make(Item::cmp);
    for mark in 0..50 {
        queue.offer(item(mark % 3).marked(mark)).unwrap();
    }
    let out: Vec<(u32, u32)> = std::iter::from_fn(|| queue.poll())
        .map(|item| (item.rank, item.mark))
        .collect();
    assert!(out.is_sorted(), "{out:?}");
    assert_eq!(out.len(), 50);
}

/// A newcomer that is less goes first; one that is greater waits.
pub fn the_least_comes_first_whatever_comes_when(make: &By) {
    let queue = make(Item::cmp);
    queue.offer(item(5)).unwrap();
    queue.offer(item(7)).unwrap();
    assert_eq!(queue.poll(), Some(item(5)));
    queue.offer(item(3)).unwrap();
    queue.offer(item(9)).unwrap();
    assert_eq!(queue.peek(), Some(item(3)));
    assert_eq!(polled(&queue), [3, 7, 9]);
}

/// A visit sees the elements in the order in which they come out.
pub fn a_visit_is_in_the_order_in_which_elements_come_out(make: &By) {
    let queue = make(Item::cmp);
    for rank in [3, 1, 4, 1, 5, 9, 2, 6] {
        queue.offer(item(rank)).unwrap();
    }
    let seen: Vec<u32> = queue.snapshot().iter().map(|item| item.rank).collect();
    assert_eq!(seen, polled(&queue));
    assert!(seen.is_sorted());
}

/// Holds: jtreg queues.PriorityBlockingQueue/WhiteBox
pub fn any_mix_of_steps_agrees_with_a_sorted_set(make: &By) {
    let make = *make;
    Stress::new("sorted set").one_in(5).run(|round| {
        let queue = make(Item::cmp);
        let mut model = BTreeSet::new();
        for mark in 0..60 {
            let rank = round.rng.below(12) as u32;
            match round.rng.below(5) {
                0 => {
                    let got = queue.poll().map(|item| (item.rank, item.mark));
                    assert_eq!(got, model.pop_first());
                }
                1 => {
                    let gone = queue.remove(&item(rank));
                    let first = model.iter().find(|(other, _)| *other == rank).copied();
                    assert_eq!(gone, first.is_some());
                    first.map(|entry| model.remove(&entry));
                }
                2 => {
                    let gone =
                        queue.remove_where(usize::MAX, &mut |item| item.rank % 4 == rank % 4);
                    let before = model.len();
                    model.retain(|(other, _)| other % 4 != rank % 4);
                    assert_eq!(gone.len(), before - model.len());
                }
                _ => {
                    queue.offer(item(rank).marked(mark)).unwrap();
                    model.insert((rank, mark));
                }
            }
            let seen: Vec<(u32, u32)> = queue
                .snapshot()
                .iter()
                .map(|item| (item.rank, item.mark))
                .collect();
            assert!(seen.iter().eq(model.iter()), "{seen:?} is not {model:?}");
        }
    });
}

/// Whatever it was asked to do, it has done nothing, and it goes on.
pub fn a_comparator_that_panics_leaves_the_queue_whole(_: &By) {
    let count = DropCount::new();
    let fuse = Arc::new(AtomicUsize::new(usize::MAX));
    let burning = Arc::clone(&fuse);
    let queue = PriorityQueue::by(move |one: &Item, other: &Item| {
        if burning.fetch_sub(1, atomic::Ordering::SeqCst) == 0 {
            resume_unwind(Box::new("incomparable"));
        }
        one.cmp(other)
    });
    for rank in [8, 3, 6, 1, 7, 2, 5, 4] {
        queue.offer(item(rank).counted(&count)).unwrap();
    }
    for steps in 0..12 {
        let before: Vec<u32> = queue.snapshot().iter().map(|item| item.rank).collect();
        for way in 0..2 {
            fuse.store(steps, atomic::Ordering::SeqCst);
            let caught = catch_unwind(AssertUnwindSafe(|| match way {
                0 => queue.offer(item(0).counted(&count)).is_ok(),
                _ => queue.poll().is_some(),
            }));
            fuse.store(usize::MAX, atomic::Ordering::SeqCst);
            if caught.is_err() {
                assert_eq!(queue.len(), before.len());
            } else if way == 0 {
                assert!(queue.remove(&item(0)), "what was let in is there");
            } else {
                queue.offer(item(before[0]).counted(&count)).unwrap();
            }
            let after: Vec<u32> = queue.snapshot().iter().map(|item| item.rank).collect();
            assert_eq!(after, before);
        }
    }
    assert_eq!(polled(&queue), [1, 2, 3, 4, 5, 6, 7, 8]);
}

/// Low priority is delayed, but never starved.
pub fn an_element_that_has_aged_enough_is_not_overtaken_any_more(make: &By) {
    let hand = ManualClock::new();
    let queue = make(Item::cmp)
        .aging(Duration::from_secs(1), |item| item.rank)
        .with_clock(hand.clock());
    queue.offer(item(5)).unwrap();
    let mut urgent_before = 0;
    for turn in 0..20 {
        queue.offer(item(0).marked(turn)).unwrap();
        hand.advance(Duration::from_secs(1));
        if queue.poll().expect("there is one").rank == 5 {
            break;
        }
        urgent_before += 1;
    }
    assert!(
        (5..=6).contains(&urgent_before),
        "{urgent_before} overtook it"
    );
}
