//! What a transfer queue does besides being a queue: producers may wait for their consumers.

use super::item::{Item, item};
use crate::kit::{Actor, DropCount, Stopwatch, delays};
use millpond::queue::{BlockingQueue, OfferError, QueueExt, Reason, TransferQueue};
use std::sync::Arc;

/// Makes a transfer queue.
pub type Transfers = fn() -> TransferQueue<Item>;

/// Tests of a transfer queue.
#[macro_export]
macro_rules! transfer_suite {
    ($make:expr) => {
        $crate::bodies! { transfer, ($make as $crate::suites::transfer::Transfers);
            waiting_consumers_are_counted
            a_transfer_waits_until_its_element_is_taken
            each_transfer_returns_by_its_own_take
            an_element_put_behind_a_transfer_comes_after_it
            a_transfer_gives_up_when_it_is_interrupted
            try_transfer_without_a_consumer_leaves_nothing
            try_transfer_meets_a_waiting_consumer
            a_timed_transfer_waits_for_its_whole_timeout_and_leaves_nothing
            a_timed_transfer_waits_behind_earlier_elements
            a_timed_transfer_that_fails_leaves_the_others
            removing_a_transferred_element_counts_as_receiving_it
            transfers_that_give_up_leave_nothing_behind
        }
    };
}

type Sent = Actor<Result<(), OfferError<Item>>>;

/// A transfer that waits for its consumer.
fn waiting_transfer(queue: &Arc<TransferQueue<Item>>, element: Item) -> Sent {
    let own = Arc::clone(queue);
    let sender = Actor::start("sender", move || own.transfer(element));
    sender.await_parked("queue.put");
    sender
}

/// Holds: LinkedTransferQueueTest.testWaitingConsumer
pub fn waiting_consumers_are_counted(make: &Transfers) {
    let queue = Arc::new(make());
    assert!(!queue.has_waiting_consumer());
    let consumers: Vec<_> = (0..2)
        .map(|number| {
            let own = Arc::clone(&queue);
            let consumer = Actor::start("consumer", move || match number {
                0 => own.take().unwrap(),
                _ => own.poll_timeout(delays::longer()).unwrap().unwrap(),
            });
            consumer.await_parked("queue.take");
            assert_eq!(queue.waiting_consumers(), number + 1);
            consumer
        })
        .collect();
    assert!(queue.has_waiting_consumer());
    for (left, consumer) in [1, 0].into_iter().zip(consumers) {
        queue.offer(item(7)).unwrap();
        assert_eq!(queue.waiting_consumers(), left);
        assert_eq!(consumer.finish(), item(7));
    }
    assert!(!queue.has_waiting_consumer());
}

/// Holds: LinkedTransferQueueTest.testTransfer5
pub fn a_transfer_waits_until_its_element_is_taken(make: &Transfers) {
    let queue = Arc::new(make());
    let sender = waiting_transfer(&queue, item(1));
    assert_eq!(queue.len(), 1, "meanwhile it is in the queue");
    assert_eq!(queue.peek(), Some(item(1)));
    assert!(!sender.has_ended());
    assert_eq!(queue.take(), Ok(item(1)));
    sender.finish().unwrap();
    assert!(queue.is_empty());
}

/// Holds: LinkedTransferQueueTest.testTransfer3
pub fn each_transfer_returns_by_its_own_take(make: &Transfers) {
    let queue = Arc::new(make());
    let first = waiting_transfer(&queue, item(1));
    let second = waiting_transfer(&queue, item(2));
    assert_eq!(queue.poll(), Some(item(1)));
    first.finish().unwrap();
    second.await_parked("queue.put");
    assert_eq!(queue.len(), 1);
    assert_eq!(queue.poll(), Some(item(2)));
    second.finish().unwrap();
}

/// Holds: LinkedTransferQueueTest.testTransfer4
pub fn an_element_put_behind_a_transfer_comes_after_it(make: &Transfers) {
    let queue = Arc::new(make());
    let sender = waiting_transfer(&queue, item(9));
    queue.offer(item(1)).unwrap();
    assert_eq!(queue.len(), 2);
    assert_eq!(queue.poll(), Some(item(9)));
    sender.finish().unwrap();
    assert_eq!(queue.poll(), Some(item(1)));
}

/// The element comes back, and what stands behind it moves up.
pub fn a_transfer_gives_up_when_it_is_interrupted(make: &Transfers) {
    let queue = Arc::new(make());
    let sender = waiting_transfer(&queue, item(9));
    queue.put(item(1)).unwrap();
    sender.interrupt();
    let rejected = sender.finish().unwrap_err();
    assert_eq!(
        (rejected.element, rejected.reason),
        (item(9), Reason::Interrupted)
    );
    assert_eq!(queue.snapshot(), [item(1)]);
}

/// Holds: LinkedTransferQueueTest.testTryTransfer2
pub fn try_transfer_without_a_consumer_leaves_nothing(make: &Transfers) {
    let queue = make();
    let rejected = queue.try_transfer(item(1)).unwrap_err();
    assert_eq!((rejected.element, rejected.reason), (item(1), Reason::Full));
    assert!(queue.is_empty());
    assert_eq!(queue.poll(), None);
}

/// Holds: LinkedTransferQueueTest.testTryTransfer3, LinkedTransferQueueTest.testTryTransfer4
pub fn try_transfer_meets_a_waiting_consumer(make: &Transfers) {
    for timed in [false, true] {
        let queue = Arc::new(make());
        let own = Arc::clone(&queue);
        let consumer = Actor::start("consumer", move || {
            if timed {
                own.poll_timeout(delays::longer()).unwrap().unwrap()
            } else {
                own.take().unwrap()
            }
        });
        consumer.await_parked("queue.take");
        queue.try_transfer(item(1)).unwrap();
        assert_eq!(consumer.finish(), item(1));
        assert!(queue.is_empty());
    }
}

/// Holds: LinkedTransferQueueTest.testTryTransfer6
pub fn a_timed_transfer_waits_for_its_whole_timeout_and_leaves_nothing(make: &Transfers) {
    let queue = make();
    let watch = Stopwatch::start();
    let rejected = queue
        .transfer_timeout(item(1), delays::timeout())
        .unwrap_err();
    watch.assert_at_least(delays::timeout());
    assert_eq!(
        (rejected.element, rejected.reason),
        (item(1), Reason::TimedOut)
    );
    assert!(queue.is_empty());
    for timeout in delays::instants() {
        let rejected = queue.transfer_timeout(item(1), timeout).unwrap_err();
        assert_eq!(rejected.reason, Reason::TimedOut);
    }
    assert!(queue.is_empty());
}

/// Holds: LinkedTransferQueueTest.testTryTransfer7
pub fn a_timed_transfer_waits_behind_earlier_elements(make: &Transfers) {
    for timeout in delays::eternities() {
        let queue = Arc::new(make());
        queue.offer(item(1)).unwrap();
        let own = Arc::clone(&queue);
        let sender = Actor::start("sender", move || own.transfer_timeout(item(2), timeout));
        sender.await_parked("queue.put");
        assert_eq!(queue.len(), 2);
        assert_eq!(queue.poll(), Some(item(1)));
        assert_eq!(queue.poll(), Some(item(2)));
        sender.finish().unwrap();
    }
}

/// Holds: LinkedTransferQueueTest.testTryTransfer8
pub fn a_timed_transfer_that_fails_leaves_the_others(make: &Transfers) {
    let queue = make();
    queue.offer(item(1)).unwrap();
    let watch = Stopwatch::start();
    assert!(queue.transfer_timeout(item(2), delays::timeout()).is_err());
    watch.assert_at_least(delays::timeout());
    assert_eq!(queue.snapshot(), [item(1)]);
    assert_eq!(queue.poll(), Some(item(1)));
    assert_eq!(queue.poll(), None);
}

/// Taking an element out by any way is taking it.
pub fn removing_a_transferred_element_counts_as_receiving_it(make: &Transfers) {
    for way in 0..3 {
        let queue = Arc::new(make());
        let sender = waiting_transfer(&queue, item(1));
        match way {
            0 => assert!(queue.remove(&item(1))),
            1 => queue.clear(),
            _ => assert_eq!(queue.drain_into(&mut Vec::new()), 1),
        }
        sender.finish().unwrap();
        assert!(queue.is_empty());
    }
}

/// Holds: jtreg queues.LinkedTransferQueue/WhiteBox, jtreg queues.ConcurrentQueues/GCRetention
pub fn transfers_that_give_up_leave_nothing_behind(make: &Transfers) {
    let count = DropCount::new();
    let queue = Arc::new(make());
    // Hundreds give up in the midst of elements that stay.
    for rank in 0..200 {
        queue.put(item(rank).counted(&count)).unwrap();
        let given_up = queue.transfer_timeout(item(rank).counted(&count), delays::instants()[1]);
        drop(given_up.unwrap_err().element);
    }
    count.assert_alive(200);
    assert_eq!(queue.len(), 200);
    let watch = Stopwatch::start();
    for rank in 0..200 {
        assert_eq!(queue.poll(), Some(item(rank)));
        count.assert_alive(199 - i64::from(rank));
    }
    watch.assert_prompt();
}
