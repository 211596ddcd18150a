//! What a queue does that is bounded by weight. An item weighs its rank.

use super::item::{Item, item};
use crate::kit::{Actor, Stopwatch, Stress, delays};
use millpond::queue::{BlockingQueue, CapacityError, QueueExt, Reason, WeightedQueue};
use std::sync::Arc;

/// Makes a queue that is bounded by this weight, in which an item weighs its rank.
pub type Scales = fn(u64) -> Result<WeightedQueue<Item>, CapacityError>;

/// Tests of a queue that is bounded by weight.
#[macro_export]
macro_rules! weighed_suite {
    ($make:expr) => {
        $crate::bodies! { weighed, ($make as $crate::suites::weighed::Scales);
            weight_counts_and_not_the_number
            a_bound_of_zero_is_an_error
            an_element_that_is_too_heavy_is_returned_at_once_by_every_form
            an_element_of_weight_zero_always_fits
            a_heavy_element_waits_for_as_much_room_as_it_needs
            a_light_element_does_not_wait_behind_a_heavy_one
            one_heavy_element_makes_room_for_many
            a_higher_bound_wakes_waiting_producers
            a_lower_bound_keeps_the_elements_and_returns_those_that_can_never_fit
            the_bound_holds_at_every_moment
        }
    };
}

fn scales(make: &Scales, bound: u64) -> Arc<WeightedQueue<Item>> {
    Arc::new(make(bound).expect("a bound that it can have"))
}

type Put = Actor<Result<(), millpond::queue::OfferError<Item>>>;

fn waiting_producer(queue: &Arc<WeightedQueue<Item>>, rank: u32) -> Put {
    let own = Arc::clone(queue);
    let producer = Actor::start("producer", move || own.put(item(rank)));
    producer.await_parked("queue.put");
    producer
}

/// Ten of one are as much as one of ten.
pub fn weight_counts_and_not_the_number(make: &Scales) {
    let queue = scales(make, 10);
    queue.offer(item(7)).unwrap();
    queue.offer(item(3)).unwrap();
    assert_eq!((queue.len(), queue.weight(), queue.bound()), (2, 10, 10));
    assert_eq!(queue.remaining_capacity(), 0);
    assert_eq!(queue.offer(item(1)).unwrap_err().reason, Reason::Full);
    assert_eq!(queue.poll(), Some(item(7)));
    for _ in 0..7 {
        queue.offer(item(1)).unwrap();
    }
    assert_eq!((queue.len(), queue.weight()), (8, 10));
    queue.clear();
    assert_eq!((queue.weight(), queue.remaining_capacity()), (0, 10));
}

/// Nothing could ever be in it.
pub fn a_bound_of_zero_is_an_error(make: &Scales) {
    assert!(matches!(make(0), Err(CapacityError::Zero)));
    let queue = scales(make, 5);
    assert_eq!(queue.set_bound(0), Err(CapacityError::Zero));
    assert_eq!(queue.bound(), 5);
}

/// Waiting would not help, so no producer waits.
pub fn an_element_that_is_too_heavy_is_returned_at_once_by_every_form(make: &Scales) {
    let queue = scales(make, 5);
    let too_heavy = Reason::TooHeavy {
        weight: 6,
        bound: 5,
    };
    let watch = Stopwatch::start();
    for rejected in [
        queue.offer(item(6)),
        queue.put(item(6)),
        queue.offer_timeout(item(6), delays::longer()),
    ] {
        let rejected = rejected.unwrap_err();
        assert_eq!((rejected.element, rejected.reason), (item(6), too_heavy));
    }
    watch.assert_prompt();
    assert!(too_heavy.to_string().contains("raise the bound"));
    queue
        .offer(item(5))
        .expect("what weighs as much as the bound fits");
}

/// Also when it is full.
pub fn an_element_of_weight_zero_always_fits(make: &Scales) {
    let queue = scales(make, 2);
    queue.offer(item(2)).unwrap();
    queue.offer(item(0)).unwrap();
    queue.put(item(0)).unwrap();
    assert_eq!((queue.len(), queue.weight()), (3, 2));
}

/// A little room is not enough.
pub fn a_heavy_element_waits_for_as_much_room_as_it_needs(make: &Scales) {
    let queue = scales(make, 6);
    for rank in [2, 2, 2] {
        queue.offer(item(rank)).unwrap();
    }
    let producer = waiting_producer(&queue, 4);
    assert_eq!(queue.poll(), Some(item(2)));
    producer.await_parked("queue.put");
    assert_eq!(queue.len(), 2);
    assert_eq!(queue.poll(), Some(item(2)));
    producer.finish().unwrap();
    assert_eq!(queue.weight(), 6);
}

/// Elements that fit are accepted.
pub fn a_light_element_does_not_wait_behind_a_heavy_one(make: &Scales) {
    let queue = scales(make, 6);
    queue.offer(item(5)).unwrap();
    let heavy = waiting_producer(&queue, 6);
    queue.put(item(1)).unwrap();
    assert_eq!(queue.weight(), 6);
    heavy.interrupt();
    assert_eq!(heavy.finish().unwrap_err().reason, Reason::Interrupted);
}

/// All producers that fit into the new room are woken, not only one.
pub fn one_heavy_element_makes_room_for_many(make: &Scales) {
    let queue = scales(make, 6);
    queue.offer(item(6)).unwrap();
    let producers: Vec<_> = [1, 2, 3].map(|rank| waiting_producer(&queue, rank)).into();
    assert_eq!(queue.poll(), Some(item(6)));
    for producer in producers {
        producer.finish().unwrap();
    }
    assert_eq!((queue.len(), queue.weight()), (3, 6));
}

/// A higher bound is room for waiting producers.
pub fn a_higher_bound_wakes_waiting_producers(make: &Scales) {
    let queue = scales(make, 2);
    queue.offer(item(2)).unwrap();
    let producers: Vec<_> = [1, 2].map(|rank| waiting_producer(&queue, rank)).into();
    queue.set_bound(5).unwrap();
    for producer in producers {
        producer.finish().unwrap();
    }
    assert_eq!((queue.weight(), queue.bound()), (5, 5));
}

/// A producer that waits with an element that can never fit any more gets it back.
pub fn a_lower_bound_keeps_the_elements_and_returns_those_that_can_never_fit(make: &Scales) {
    let queue = scales(make, 6);
    queue.offer(item(6)).unwrap();
    let heavy = waiting_producer(&queue, 5);
    queue.set_bound(3).unwrap();
    let rejected = heavy.finish().unwrap_err();
    let too_heavy = Reason::TooHeavy {
        weight: 5,
        bound: 3,
    };
    assert_eq!((rejected.element, rejected.reason), (item(5), too_heavy));
    assert_eq!(queue.snapshot(), [item(6)]);
    assert_eq!(queue.remaining_capacity(), 0);
    assert_eq!(queue.poll(), Some(item(6)));
    queue.offer(item(3)).unwrap();
}

/// At every moment: never more than the bound.
pub fn the_bound_holds_at_every_moment(make: &Scales) {
    let make = *make;
    Stress::new("the bound holds").one_in(10).run(|round| {
        let queue = Arc::new(make(5).unwrap());
        let producers: Vec<_> = (0..2)
            .map(|_| {
                let own = Arc::clone(&queue);
                round.actor("producer", move |rng| {
                    let mut total = 0;
                    for _ in 0..10 {
                        let weight = rng.below(6) as u32;
                        own.put(item(weight)).unwrap();
                        total += weight;
                    }
                    total
                })
            })
            .collect();
        let mut taken = 0;
        for _ in 0..20 {
            let weight = queue.weight();
            assert!(weight <= 5, "{weight} in a queue bounded by 5");
            taken += queue.take().unwrap().rank;
        }
        let put: u32 = producers.into_iter().map(Actor::finish).sum();
        assert_eq!(taken, put);
        assert_eq!((queue.len(), queue.weight()), (0, 0));
    });
}
