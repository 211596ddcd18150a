//! What a queue of delayed elements does besides.

use super::item::{Item, item};
use crate::kit::{Actor, Stopwatch, Stress, delays, until};
use millpond::queue::{BlockingQueue, DelayQueue, QueueExt};
use millpond::time::{Deadline, ManualClock};
use std::sync::Arc;
use std::time::Duration;

/// Makes a delay queue.
pub type Delays = fn() -> DelayQueue<Item>;

const HOUR: Duration = Duration::from_secs(3600);

/// Tests of a delay queue.
#[macro_export]
macro_rules! delay_suite {
    ($make:expr) => {
        $crate::bodies! { delay, ($make as $crate::suites::delay::Delays);
            nothing_comes_out_before_its_time
            elements_come_out_in_the_order_of_their_times
            an_element_that_is_not_due_can_be_peeked
            an_element_that_is_not_due_is_neither_polled_nor_drained
            an_element_that_is_not_due_can_be_removed
            removing_any_element_keeps_the_order_of_the_others
            a_consumer_sleeps_until_the_first_is_due
            a_new_first_element_is_not_missed
            a_leader_that_gives_up_is_replaced
            a_time_that_never_comes_never_comes
            a_real_delay_is_waited_out
            consumers_get_everything_as_it_falls_due
        }
    };
}

/// A delay queue on a manual clock.
fn by_hand(make: &Delays) -> (Arc<DelayQueue<Item>>, ManualClock) {
    let hand = ManualClock::new();
    (Arc::new(make().with_clock(hand.clock())), hand)
}

/// Holds: DelayQueueTest.testDelay
pub fn nothing_comes_out_before_its_time(make: &Delays) {
    let (queue, hand) = by_hand(make);
    for rank in [3, 1, 2] {
        queue.offer_after(item(rank), HOUR * rank).unwrap();
    }
    for rank in 1..=3 {
        hand.advance(HOUR - Duration::from_nanos(1));
        assert_eq!(queue.poll(), None, "one nanosecond too early");
        hand.advance(Duration::from_nanos(1));
        assert_eq!(queue.poll(), Some(item(rank)));
        assert_eq!(queue.poll(), None);
    }
}

/// Due at the same time, they come in the order of their arrival.
pub fn elements_come_out_in_the_order_of_their_times(make: &Delays) {
    let (queue, hand) = by_hand(make);
    for (mark, rank) in [(0, 2), (1, 1), (2, 2), (3, 1)] {
        queue
            .offer_after(item(rank).marked(mark), HOUR * rank)
            .unwrap();
    }
    hand.advance(HOUR * 3);
    let marks: Vec<u32> = std::iter::from_fn(|| queue.poll())
        .map(|item| item.mark)
        .collect();
    assert_eq!(marks, [1, 3, 0, 2]);
}

/// Holds: DelayQueueTest.testPeekDelayed
pub fn an_element_that_is_not_due_can_be_peeked(make: &Delays) {
    let (queue, hand) = by_hand(make);
    assert_eq!(queue.next_due(), Deadline::NEVER);
    let due = hand.clock().deadline(HOUR);
    queue.offer_after(item(2), HOUR * 2).unwrap();
    queue.offer_after(item(1), HOUR).unwrap();
    assert_eq!(queue.peek(), Some(item(1)));
    assert_eq!(queue.next_due(), due);
    assert_eq!(queue.len(), 2);
    assert!(queue.contains(&item(2)));
    assert_eq!(queue.snapshot(), [item(1), item(2)]);
}

/// Holds: DelayQueueTest.testPollDelayed, DelayQueueTest.testRemoveDelayed
pub fn an_element_that_is_not_due_is_neither_polled_nor_drained(make: &Delays) {
    let (queue, hand) = by_hand(make);
    queue.offer_after(item(1), HOUR).unwrap();
    queue.offer_after(item(2), HOUR * 2).unwrap();
    assert_eq!(queue.poll(), None);
    assert_eq!(queue.poll_timeout(Duration::ZERO), Ok(None));
    assert_eq!(queue.drain_into(&mut Vec::new()), 0);
    assert!(!queue.is_empty());
    hand.advance(HOUR);
    let mut sink = Vec::new();
    assert_eq!(queue.drain_into(&mut sink), 1);
    assert_eq!(sink, [item(1)]);
}

/// Holds: DelayQueueTest.testRemoveObject
pub fn an_element_that_is_not_due_can_be_removed(make: &Delays) {
    let (queue, _hand) = by_hand(make);
    queue.offer_after(item(1), HOUR).unwrap();
    queue.offer_after(item(2), HOUR * 2).unwrap();
    assert!(queue.remove(&item(2)));
    assert!(!queue.remove(&item(2)));
    assert_eq!(queue.len(), 1);
    queue.clear();
    assert!(queue.is_empty());
}

/// Holds: jtreg queues.DelayScheduler/AscendingOrderAfterReplace
pub fn removing_any_element_keeps_the_order_of_the_others(make: &Delays) {
    // The ranks are such that what takes the place of a removed one may have to go up or down.
    let ranks = [0, 10, 1, 20, 11, 2, 3, 21, 22, 12, 13, 4];
    for gone in ranks {
        let (queue, hand) = by_hand(make);
        for rank in ranks {
            queue.offer_after(item(rank), HOUR * rank).unwrap();
        }
        assert!(queue.remove(&item(gone)));
        hand.advance(HOUR * 30);
        let out: Vec<u32> = std::iter::from_fn(|| queue.poll())
            .map(|item| item.rank)
            .collect();
        let mut expected = ranks.to_vec();
        expected.retain(|rank| *rank != gone);
        expected.sort_unstable();
        assert_eq!(out, expected);
    }
}

/// The wait has a deadline, and ends when the element is due.
pub fn a_consumer_sleeps_until_the_first_is_due(make: &Delays) {
    let (queue, hand) = by_hand(make);
    queue.offer_after(item(1), HOUR).unwrap();
    let own = Arc::clone(&queue);
    let consumer = Actor::start("consumer", move || own.take());
    consumer.await_parked("queue.take");
    until("it waits by the clock", || hand.sleepers() == 1);
    hand.advance(HOUR);
    assert_eq!(consumer.finish(), Ok(item(1)));
}

/// A consumer that sleeps until a later time checks again when an earlier element comes.
pub fn a_new_first_element_is_not_missed(make: &Delays) {
    let (queue, hand) = by_hand(make);
    queue.offer_after(item(9), HOUR * 9).unwrap();
    let own = Arc::clone(&queue);
    let consumer = Actor::start("consumer", move || own.take());
    consumer.await_parked("queue.take");
    queue.offer_after(item(1), HOUR).unwrap();
    hand.advance(HOUR);
    assert_eq!(consumer.finish(), Ok(item(1)));
}

/// One watches the time for all; if that one goes, another one takes over.
pub fn a_leader_that_gives_up_is_replaced(make: &Delays) {
    let (queue, hand) = by_hand(make);
    queue.offer_after(item(1), HOUR).unwrap();
    let consumers: Vec<_> = (0..2)
        .map(|_| {
            let own = Arc::clone(&queue);
            let consumer = Actor::start("consumer", move || own.take());
            consumer.await_parked("queue.take");
            consumer
        })
        .collect();
    for leaves in consumers.iter().take(1) {
        leaves.interrupt();
    }
    let mut consumers = consumers.into_iter();
    assert!(consumers.next().unwrap().finish().is_err());
    hand.advance(HOUR);
    assert_eq!(consumers.next().unwrap().finish(), Ok(item(1)));
}

/// A due time beyond all telling is no due time in the past.
pub fn a_time_that_never_comes_never_comes(make: &Delays) {
    let (queue, hand) = by_hand(make);
    for delay in delays::eternities() {
        queue.offer_after(item(9), delay).unwrap();
    }
    queue.offer_after(item(1), Duration::ZERO).unwrap();
    assert_eq!(queue.poll(), Some(item(1)));
    hand.advance(HOUR);
    assert_eq!(queue.poll(), None);
    assert_eq!(queue.len(), 4);
}

/// By the system's clock, too.
pub fn a_real_delay_is_waited_out(make: &Delays) {
    let queue = make();
    let watch = Stopwatch::start();
    queue.offer_after(item(1), delays::timeout()).unwrap();
    assert_eq!(queue.take(), Ok(item(1)));
    watch.assert_at_least(delays::timeout());
    watch.assert_prompt();
    queue.offer_after(item(2), delays::timeout()).unwrap();
    assert_eq!(queue.poll_timeout(delays::long()), Ok(Some(item(2))));
}

/// Holds: jtreg queues.DelayQueue/Stress
pub fn consumers_get_everything_as_it_falls_due(make: &Delays) {
    let make = *make;
    Stress::new("falling due").one_in(5).run(|round| {
        let queue = Arc::new(make());
        let consumers: Vec<_> = (0..3)
            .map(|_| {
                let own = Arc::clone(&queue);
                round.actor("consumer", move |_| (own.take(), own.take()))
            })
            .collect();
        for rank in 0..6 {
            let delay = Duration::from_micros(round.rng.any() % 300);
            queue.offer_after(item(rank), delay).unwrap();
            round.rng.jitter();
        }
        let mut got: Vec<u32> = consumers
            .into_iter()
            .map(Actor::finish)
            .flat_map(|(one, two)| [one.unwrap().rank, two.unwrap().rank])
            .collect();
        got.sort_unstable();
        assert_eq!(got, [0, 1, 2, 3, 4, 5]);
    });
}
