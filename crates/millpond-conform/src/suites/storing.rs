//! What queues that hold elements do under pressure, beyond what all queues do.

use super::item::{Make, item};
use super::stress::{Traffic, assert_each_once};
use crate::kit::{Actor, DropCount, Stress};
use millpond::queue::QueueExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Stress tests of queues that hold elements, made by a [`Make`].
#[macro_export]
macro_rules! storing_suite {
    ($make:expr) => {
        $crate::bodies! { storing, ($make as $crate::suites::item::Make);
            a_thread_that_offers_first_never_polls_in_vain
            offers_race_with_removals_and_lose_nothing
            visits_race_with_changes_and_see_only_elements_that_were_there
            drains_race_with_puts_and_lose_nothing
        }
    };
}

/// Holds: jtreg queues.BlockingQueue/MissedPoll
pub fn a_thread_that_offers_first_never_polls_in_vain(make: &Make) {
    Stress::new("missed_poll").one_in(4).run(|round| {
        let queue = make(4).unwrap();
        let actors: Vec<_> = (0..3)
            .map(|rank| {
                let queue = Arc::clone(&queue);
                round.actor("both", move |rng| {
                    for _ in 0..10 {
                        queue.offer(item(rank)).expect("there is room for each");
                        rng.jitter();
                        assert!(queue.peek().is_some(), "one of ours is there to see");
                        assert!(queue.poll().is_some(), "one of ours is there to take");
                    }
                })
            })
            .collect();
        actors.into_iter().for_each(Actor::finish);
        assert!(queue.is_empty());
    });
}

/// Holds: jtreg queues.ConcurrentQueues/OfferRemoveLoops
pub fn offers_race_with_removals_and_lose_nothing(make: &Make) {
    Stress::new("offer_remove").one_in(10).run(|round| {
        let count = Arc::new(DropCount::new());
        let queue = make(4).unwrap();
        let (own, counted) = (Arc::clone(&queue), Arc::clone(&count));
        let offering = round.actor("offering", move |rng| {
            for rank in 0..20 {
                rng.jitter();
                own.put(item(rank).counted(&counted)).unwrap();
            }
        });
        let mut removed = 0;
        let mut rank = 0;
        while removed < 20 {
            if queue.remove(&item(rank % 20)) {
                removed += 1;
            }
            rank += 1;
            if rank % 20 == 0 {
                std::thread::yield_now();
            }
        }
        offering.finish();
        assert!(queue.is_empty());
        count.assert_alive(0);
    });
}

/// Holds: Collection8Test.testStreamForEachConcurrentStressTest
/// Holds: jtreg queues.LinkedTransferQueue/SpliteratorTraverseAddRemoveTest
pub fn visits_race_with_changes_and_see_only_elements_that_were_there(make: &Make) {
    Stress::new("looks").one_in(20).run(|round| {
        let count = Arc::new(DropCount::new());
        let queue = make(4).unwrap();
        let traffic = Traffic::start(round, &queue, &count, (1, 1, 30));
        let ended = Arc::new(AtomicBool::new(false));
        let (own, end) = (Arc::clone(&queue), Arc::clone(&ended));
        let looker = round.actor("looker", move |rng| {
            while !end.load(Ordering::SeqCst) {
                let seen: Vec<u32> = own.snapshot().iter().map(|item| item.rank).collect();
                assert!(seen.is_sorted_by(|a, b| a < b), "seen twice: {seen:?}");
                assert!(seen.iter().all(|rank| *rank < 30));
                rng.jitter();
                std::thread::yield_now();
            }
        });
        assert_each_once(&traffic.finish(), 30);
        ended.store(true, Ordering::SeqCst);
        looker.finish();
        count.assert_alive(0);
    });
}

/// Holds: DelayQueueTest.testDrainToWithActivePut, LinkedTransferQueueTest.testDrainToWithActivePut
pub fn drains_race_with_puts_and_lose_nothing(make: &Make) {
    Stress::new("drains").one_in(10).run(|round| {
        let queue = make(3).unwrap();
        let own = Arc::clone(&queue);
        let producer = round.actor("producer", move |rng| {
            for rank in 0..20 {
                rng.jitter();
                own.put(item(rank)).unwrap();
            }
        });
        let mut drained = Vec::new();
        while drained.len() < 20 {
            let max = round.rng.below(5);
            queue.drain_to(max, &mut |item| drained.push(item.rank));
            if queue.is_empty() {
                std::thread::yield_now();
            }
        }
        producer.finish();
        assert_each_once(&[drained], 20);
    });
}
