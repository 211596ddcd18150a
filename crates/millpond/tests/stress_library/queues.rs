//! Every flavor under load, with threads that order themselves by nothing but the queue: what a
//! thread sanitizer can judge, because std's locks and channels, which it cannot see, take no part.

use millpond::queue::{
    BlockingDeque, BlockingQueue, DelayQueue, FifoQueue, HandOffQueue, PriorityQueue,
    TransferQueue, WeightedQueue,
};
use millpond_raw::sync::thread::spawn;
use std::sync::Arc;

const PRODUCERS: u64 = 3;
const CONSUMERS: u64 = 3;
const EACH: u64 = 400;

/// Boxed, so that what one thread writes into the element another one reads.
type Element = Box<u64>;

/// Every element that is put in comes out once, whole; `shake` runs beside it.
fn every_element_comes_out_once(
    queue: Arc<dyn BlockingQueue<Element>>,
    shake: impl FnOnce(Arc<dyn BlockingQueue<Element>>) + Send + 'static,
) {
    let producers: Vec<_> = (0..PRODUCERS)
        .map(|producer| {
            let queue = Arc::clone(&queue);
            spawn(move || {
                for number in 1..=EACH {
                    queue
                        .put(Box::new(producer * EACH + number))
                        .expect("nobody interrupts");
                }
            })
        })
        .collect();
    let consumers: Vec<_> = (0..CONSUMERS)
        .map(|_| {
            let queue = Arc::clone(&queue);
            spawn(move || {
                let mut seen = Vec::new();
                loop {
                    match *queue.take().expect("nobody interrupts") {
                        0 => return seen,
                        number => seen.push(number),
                    }
                }
            })
        })
        .collect();
    let shaker = spawn({
        let queue = Arc::clone(&queue);
        move || shake(queue)
    });
    for producer in producers {
        producer.join().expect("it only puts");
    }
    shaker.join().expect("it only shakes");
    let mut all = Vec::new();
    // The ends go in one by one: a priority queue would let them overtake the elements.
    while !queue.is_empty() {
        millpond_raw::sync::thread::yield_now();
    }
    for _ in 0..CONSUMERS {
        queue.put(Box::new(0)).expect("nobody interrupts");
    }
    for consumer in consumers {
        all.extend(consumer.join().expect("it only takes"));
    }
    all.sort_unstable();
    assert!(all.into_iter().eq(1..=PRODUCERS * EACH));
}

/// Changes the capacity all the while, and leaves it at `last`.
fn resizing(last: usize) -> impl FnOnce(Arc<dyn BlockingQueue<Element>>) + Send {
    move |queue| {
        for round in 0..200 {
            queue.set_capacity(1 + round % 7).expect("it has a bound");
            millpond_raw::sync::thread::yield_now();
        }
        queue.set_capacity(last).expect("it has a bound");
    }
}

#[test]
fn a_preallocated_fifo_queue_of_one() {
    every_element_comes_out_once(Arc::new(FifoQueue::bounded(1).unwrap()), drop);
}

#[test]
fn a_preallocated_fifo_queue_that_is_resized() {
    every_element_comes_out_once(Arc::new(FifoQueue::bounded(64).unwrap()), resizing(64));
}

#[test]
fn an_unbounded_fifo_queue() {
    every_element_comes_out_once(Arc::new(FifoQueue::unbounded()), drop);
}

#[test]
fn a_growing_fifo_queue_that_other_threads_search() {
    every_element_comes_out_once(Arc::new(FifoQueue::bounded_growing(8).unwrap()), |queue| {
        for _ in 0..200 {
            assert!(
                queue
                    .remove_where(1, &mut |element| **element == u64::MAX)
                    .is_empty()
            );
            assert!(queue.len() <= 8);
        }
    });
}

#[test]
fn a_deque_a_priority_queue_and_a_delay_queue() {
    every_element_comes_out_once(Arc::new(BlockingDeque::bounded(4).unwrap()), resizing(4));
    every_element_comes_out_once(Arc::new(PriorityQueue::bounded(4).unwrap()), resizing(4));
    every_element_comes_out_once(Arc::new(DelayQueue::new()), drop);
}

#[test]
fn a_queue_bounded_by_weight() {
    let queue = WeightedQueue::bounded(16, |element: &Element| 1 + **element % 5).unwrap();
    every_element_comes_out_once(Arc::new(queue), drop);
}

#[test]
fn hand_off_and_transfer_queues() {
    every_element_comes_out_once(Arc::new(HandOffQueue::fair()), drop);
    every_element_comes_out_once(Arc::new(HandOffQueue::unfair()), drop);
    every_element_comes_out_once(Arc::new(TransferQueue::unbounded()), drop);
}
