//! What every queue does under pressure: each element comes out once, and nothing is left behind.
//!
//! Rounds are short and many. In each, producers and consumers use every form there is, are
//! interrupted, run out of timeout, and meanwhile the capacity changes.

use super::item::{Item, Make, Queue, item};
use crate::kit::{Actor, DropCount, Gate, Rng, Round, Stress};
use millpond::interrupt;
use millpond::queue::Reason;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// Stress tests of any queue, made by a [`Make`].
#[macro_export]
macro_rules! stress_suite {
    ($make:expr) => {
        $crate::bodies! { stress, ($make as $crate::suites::item::Make);
            every_element_comes_out_once_whatever_happens
            many_producers_and_one_consumer_agree
            one_producer_is_seen_in_its_own_order
            interrupted_producers_and_consumers_end_at_once
            an_interrupt_of_a_consumer_is_reported_or_still_pending
            an_interrupt_of_a_producer_is_reported_or_still_pending
        }
    };
}

/// Puts an element, by any form, until it is accepted. A returned element is tried again.
fn put_somehow(queue: &Queue, mut element: Item, rng: &mut Rng) {
    loop {
        rng.jitter();
        let done = match rng.below(3) {
            0 => queue.offer(element),
            1 => queue.offer_timeout(element, rng.timeout()),
            _ => queue.put(element),
        };
        match done {
            Ok(()) => return,
            Err(rejected) => element = rejected.element,
        }
    }
}

/// Takes an element, by any form that comes back.
fn take_somehow(queue: &Queue, rng: &mut Rng) -> Option<Item> {
    rng.jitter();
    match rng.below(3) {
        0 => queue.poll(),
        1 => queue.poll_timeout(rng.timeout()).unwrap_or(None),
        _ => queue
            .poll_timeout(Duration::from_micros(100))
            .unwrap_or(None),
    }
}

/// Producers and consumers of one round, and what they do together.
pub(super) struct Traffic {
    producers: Vec<Actor<()>>,
    consumers: Vec<Actor<Vec<u32>>>,
}

impl Traffic {
    /// `each` elements from each producer, all counted; consumers stop when they have seen all.
    pub(super) fn start(
        round: &mut Round,
        queue: &Queue,
        count: &Arc<DropCount>,
        (producers, consumers, each): (usize, usize, usize),
    ) -> Self {
        let total = producers * each;
        let taken = Arc::new(AtomicUsize::new(0));
        let producers = (0..producers)
            .map(|number| {
                let (queue, count) = (Arc::clone(queue), Arc::clone(count));
                let first = u32::try_from(number * each).unwrap_or(0);
                round.actor("producer", move |rng| {
                    for rank in first..first + u32::try_from(each).unwrap_or(0) {
                        put_somehow(&queue, item(rank).counted(&count), rng);
                    }
                })
            })
            .collect();
        let consumers = (0..consumers)
            .map(|_| {
                let (queue, taken) = (Arc::clone(queue), Arc::clone(&taken));
                round.actor("consumer", move |rng| {
                    let mut got = Vec::new();
                    while taken.load(Ordering::SeqCst) < total {
                        if let Some(element) = take_somehow(&queue, rng) {
                            got.push(element.rank);
                            taken.fetch_add(1, Ordering::SeqCst);
                        }
                    }
                    got
                })
            })
            .collect();
        Traffic {
            producers,
            consumers,
        }
    }

    /// Interrupts one of them.
    fn disturb(&self, rng: &mut Rng) {
        let all = self.producers.len() + self.consumers.len();
        let chosen = rng.below(all);
        match self.producers.get(chosen) {
            Some(producer) => producer.interrupt(),
            None => self.consumers[chosen - self.producers.len()].interrupt(),
        }
    }

    /// Waits for all and returns the elements of each consumer, in its order.
    pub(super) fn finish(self) -> Vec<Vec<u32>> {
        self.producers.into_iter().for_each(Actor::finish);
        self.consumers.into_iter().map(Actor::finish).collect()
    }
}

#[track_caller]
pub(super) fn assert_each_once(got: &[Vec<u32>], total: usize) {
    let mut all: Vec<u32> = got.iter().flatten().copied().collect();
    all.sort_unstable();
    let expected: Vec<u32> = (0..u32::try_from(total).unwrap_or(0)).collect();
    assert_eq!(all, expected, "each element comes out once");
}

/// Holds: jtreg queues.BlockingQueue/ProducerConsumerLoops
/// Holds: jtreg queues.ConcurrentQueues/ConcurrentQueueLoops, Collection8Test.testDetectRaces
/// Holds: jtreg queues.DelayQueue/Stress
/// Holds: SynchronousQueue20Test.testFairDoesntLeak, SynchronousQueue20Test.testUnfairDoesntLeak
pub fn every_element_comes_out_once_whatever_happens(make: &Make) {
    Stress::new("every_element_once").run(|round| {
        let count = Arc::new(DropCount::new());
        let capacity = 1 + round.rng.below(4);
        let queue = make(capacity).unwrap();
        let shape = (1 + round.rng.below(2), 1 + round.rng.below(2), 4);
        let traffic = Traffic::start(round, &queue, &count, shape);
        for _ in 0..round.rng.below(4) {
            round.rng.jitter();
            traffic.disturb(&mut round.rng);
            // Flavors without a bound say so, and nothing changes.
            let _ = queue.set_capacity(1 + round.rng.below(4));
        }
        assert_each_once(&traffic.finish(), shape.0 * shape.2);
        assert!(queue.is_empty());
        count.assert_alive(0);
    });
}

/// Holds: jtreg queues.BlockingQueue/MultipleProducersSingleConsumerLoops
pub fn many_producers_and_one_consumer_agree(make: &Make) {
    Stress::new("many_to_one").one_in(10).run(|round| {
        let count = Arc::new(DropCount::new());
        let queue = make(2).unwrap();
        let traffic = Traffic::start(round, &queue, &count, (4, 1, 10));
        assert_each_once(&traffic.finish(), 40);
    });
}

/// Holds: jtreg queues.BlockingQueue/SingleProducerMultipleConsumerLoops
pub fn one_producer_is_seen_in_its_own_order(make: &Make) {
    Stress::new("one_to_many").one_in(10).run(|round| {
        let count = Arc::new(DropCount::new());
        let queue = make(3).unwrap();
        let traffic = Traffic::start(round, &queue, &count, (1, 3, 30));
        let got = traffic.finish();
        assert_each_once(&got, 30);
        for one in got {
            assert!(one.is_sorted(), "seen out of order: {one:?}");
        }
    });
}

/// Holds: jtreg queues.BlockingQueue/CancelledProducerConsumerLoops
pub fn interrupted_producers_and_consumers_end_at_once(make: &Make) {
    Stress::new("interrupted").one_in(10).run(|round| {
        let queue = make(2).unwrap();
        let producers: Vec<_> = (0..2)
            .map(|_| {
                let queue = Arc::clone(&queue);
                round.actor("producer", move |_| {
                    loop {
                        if let Err(rejected) = queue.put(item(1)) {
                            return rejected.reason;
                        }
                    }
                })
            })
            .collect();
        let own = Arc::clone(&queue);
        let consumer = round.actor("consumer", move |_| while own.take().is_ok() {});
        round.rng.jitter();
        for producer in &producers {
            producer.interrupt();
        }
        for producer in producers {
            assert_eq!(producer.finish(), Reason::Interrupted);
        }
        consumer.interrupt();
        consumer.finish();
    });
}

/// A take that succeeds at the last moment leaves the interrupt set: none is lost.
pub fn an_interrupt_of_a_consumer_is_reported_or_still_pending(make: &Make) {
    Stress::new("interrupted consumer").one_in(4).run(|round| {
        let queue = make(2).unwrap();
        let (own, sent) = (Arc::clone(&queue), Gate::new());
        let seen = sent.clone();
        let consumer = round.actor("consumer", move |_| {
            let taken = own.take().is_ok();
            seen.wait();
            (taken, interrupt::is_interrupted())
        });
        let own = Arc::clone(&queue);
        let producer = round.actor("producer", move |rng| {
            rng.jitter();
            own.put(item(1)).unwrap();
        });
        round.rng.jitter();
        consumer.interrupt();
        sent.open();
        let (taken, pending) = consumer.finish();
        assert_eq!(taken, pending, "success leaves it set, reporting clears it");
        if !taken {
            assert_eq!(queue.take(), Ok(item(1)));
        }
        producer.finish();
    });
}

/// A put that succeeds at the last moment leaves the interrupt set: none is lost.
pub fn an_interrupt_of_a_producer_is_reported_or_still_pending(make: &Make) {
    Stress::new("interrupted producer").one_in(4).run(|round| {
        let queue = make(1).unwrap();
        // Any room is taken, so that the producer waits.
        let _ = queue.offer(item(0));
        let (own, sent) = (Arc::clone(&queue), Gate::new());
        let seen = sent.clone();
        let producer = round.actor("producer", move |_| {
            let put = own.put(item(1)).is_ok();
            seen.wait();
            (put, interrupt::is_interrupted())
        });
        let own = Arc::clone(&queue);
        let consumer = round.actor("consumer", move |rng| {
            rng.jitter();
            own.poll_timeout(Duration::from_micros(200)).unwrap();
        });
        round.rng.jitter();
        producer.interrupt();
        sent.open();
        let (put, pending) = producer.finish();
        assert_eq!(put, pending, "success leaves it set, reporting clears it");
        consumer.finish();
    });
}
