//! What a transfer queue promises, on real threads, with tasks, futures and a manual clock.

use crate::handoff_kit::{ParkedTask, TIMEOUT, await_parked, parked};
use millpond::interrupt::Interrupted;
use millpond::queue::{AsyncQueue, BlockingQueue, CapacityError, QueueExt, Reason, TransferQueue};
use millpond::time::ManualClock;
use millpond_testkit::{poll_once, watch};
use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

/// A queue with the elements 0 to `count - 1`.
fn filled(count: i32) -> Arc<TransferQueue<i32>> {
    let queue = Arc::new(TransferQueue::unbounded());
    (0..count).for_each(|number| queue.put(number).unwrap());
    queue
}

#[test]
fn a_new_queue_is_empty_and_has_no_bound() {
    let _watch = watch();
    let queue = filled(0);
    assert_eq!((queue.len(), queue.capacity()), (0, None));
    assert!(queue.is_empty());
    assert_eq!(queue.remaining_capacity(), usize::MAX);
    assert_eq!(queue.poll(), None);
    assert_eq!(queue.peek(), None);
    assert_eq!(queue.set_capacity(8), Err(CapacityError::Fixed));
}

#[test]
fn elements_come_out_in_the_order_they_went_in() {
    let _watch = watch();
    let queue = filled(3);
    queue.offer(3).unwrap();
    queue.offer_timeout(4, Duration::ZERO).unwrap();
    assert_eq!(queue.len(), 5);
    assert_eq!(queue.poll(), Some(0));
    assert_eq!(queue.take(), Ok(1));
    assert_eq!(queue.poll_timeout(Duration::ZERO), Ok(Some(2)));
    assert_eq!(queue.poll_timeout(Duration::MAX), Ok(Some(3)));
    assert_eq!(queue.take(), Ok(4));
    assert_eq!(queue.poll_timeout(Duration::ZERO), Ok(None));
}

#[test]
fn an_offered_element_is_always_found_by_the_next_poll() {
    let _watch = watch();
    let queue = Arc::new(TransferQueue::unbounded());
    let rounds = 2_000;
    let threads: Vec<_> = (0..3)
        .map(|_| {
            let queue = Arc::clone(&queue);
            // As many polls as offers, and each after an offer: none of them can find it empty.
            std::thread::spawn(move || {
                (0..rounds).all(|round| {
                    queue.offer(round).unwrap();
                    queue.poll().is_some()
                })
            })
        })
        .collect();
    for thread in threads {
        assert!(thread.join().unwrap());
    }
    assert!(queue.is_empty());
}

#[test]
fn a_peek_shows_the_next_element_and_leaves_it() {
    let _watch = watch();
    let queue = filled(2);
    assert_eq!(queue.peek(), Some(0));
    assert_eq!(queue.poll(), Some(0));
    assert_eq!(queue.peek(), Some(1));
}

#[test]
fn elements_can_be_found_and_removed_by_value() {
    let _watch = watch();
    let queue = filled(4);
    assert!(queue.contains(&2) && !queue.contains(&9));
    assert!(queue.remove(&2) && !queue.remove(&2));
    assert_eq!(queue.snapshot(), [0, 1, 3]);
    queue.put(4).unwrap();
    assert_eq!(queue.remove_where(1, &mut |e| *e > 0), [1]);
    assert_eq!(queue.remove_where(usize::MAX, &mut |e| *e > 0), [3, 4]);
    assert_eq!(queue.remove_where(0, &mut |_| true), [0; 0]);
    assert_eq!(queue.snapshot(), [0]);
    queue.clear();
    assert!(queue.is_empty());
}

#[test]
fn a_visit_ends_when_it_has_seen_enough() {
    let _watch = watch();
    let queue = filled(5);
    let mut seen = Vec::new();
    queue.visit(&mut |element| {
        seen.push(*element);
        match *element {
            2 => ControlFlow::Break(()),
            _ => ControlFlow::Continue(()),
        }
    });
    assert_eq!(seen, [0, 1, 2]);
}

#[test]
fn predicates_that_panic_leave_the_queue_whole() {
    let _watch = watch();
    let queue = filled(3);
    let mut fail_at_2 = |element: &i32| {
        if *element == 2 {
            std::panic::resume_unwind(Box::new("predicate"));
        }
        true
    };
    let failed = catch_unwind(AssertUnwindSafe(|| {
        queue.remove_where(usize::MAX, &mut fail_at_2)
    }));
    assert!(failed.is_err());
    let failed = catch_unwind(AssertUnwindSafe(|| {
        queue.visit(&mut |element| {
            if fail_at_2(element) {
                ControlFlow::Continue(())
            } else {
                ControlFlow::Break(())
            }
        });
    }));
    assert!(failed.is_err());
    assert_eq!(queue.snapshot(), [0, 1, 2]);
}

#[test]
fn a_drain_moves_as_many_as_it_may_and_leaves_the_rest_in_order() {
    let _watch = watch();
    let queue = filled(5);
    let mut drained = Vec::new();
    assert_eq!(queue.drain_to(0, &mut |element| drained.push(element)), 0);
    assert_eq!(queue.drain_to(2, &mut |element| drained.push(element)), 2);
    assert_eq!(queue.snapshot(), [2, 3, 4]);
    assert_eq!(queue.drain_into(&mut drained), 3);
    assert_eq!(drained, [0, 1, 2, 3, 4]);
    assert_eq!(queue.drain_into(&mut drained), 0);
}

#[test]
fn a_transfer_waits_until_its_element_is_taken() {
    let _watch = watch();
    let queue = filled(0);
    let producer = Arc::clone(&queue);
    let transfer = parked(move || producer.transfer(7));
    assert_eq!((queue.len(), queue.peek()), (1, Some(7)));
    assert_eq!(queue.take(), Ok(7));
    transfer.join().unwrap().unwrap();
    assert!(queue.is_empty());
}

#[test]
fn transfers_and_plain_elements_are_in_one_queue() {
    let _watch = watch();
    let queue = filled(1);
    let transfers: Vec<_> = [1, 3]
        .map(|number| {
            let producer = Arc::clone(&queue);
            let transfer = parked(move || producer.transfer(number));
            queue.put(number + 1).unwrap();
            transfer
        })
        .into();
    assert_eq!(queue.snapshot(), [0, 1, 2, 3, 4]);
    assert_eq!([queue.take(), queue.take()], [Ok(0), Ok(1)]);
    let mut transfers = transfers.into_iter();
    transfers.next().unwrap().join().unwrap().unwrap();
    let second = transfers.next().unwrap();
    await_parked(second.thread());
    assert_eq!([queue.take(), queue.take()], [Ok(2), Ok(3)]);
    second.join().unwrap().unwrap();
    assert_eq!(queue.take(), Ok(4));
}

#[test]
fn a_transfer_to_a_waiting_consumer_does_not_wait() {
    let _watch = watch();
    let queue = filled(0);
    for timeout in [None, Some(Duration::ZERO), Some(Duration::MAX)] {
        let hands = Arc::clone(&queue);
        let consumer = parked(move || hands.take());
        match timeout {
            None => queue.transfer(7).unwrap(),
            Some(timeout) => queue.transfer_timeout(7, timeout).unwrap(),
        }
        assert_eq!(consumer.join().unwrap(), Ok(7));
    }
}

#[test]
fn try_transfer_needs_a_waiting_consumer() {
    let _watch = watch();
    let queue = filled(0);
    let rejected = queue.try_transfer(7).unwrap_err();
    assert_eq!((rejected.element, rejected.reason), (7, Reason::Full));
    assert!(queue.is_empty());

    let hands = Arc::clone(&queue);
    let in_take = parked(move || hands.take().map(Some));
    let hands = Arc::clone(&queue);
    let in_poll = parked(move || hands.poll_timeout(TIMEOUT));
    queue.try_transfer(8).unwrap();
    queue.try_transfer(9).unwrap();
    assert_eq!(in_take.join().unwrap(), Ok(Some(8)));
    assert_eq!(in_poll.join().unwrap(), Ok(Some(9)));
    assert!(queue.try_transfer(7).is_err());
}

#[test]
fn try_transfer_does_not_pass_queued_elements() {
    let _watch = watch();
    let queue = filled(1);
    assert_eq!(queue.try_transfer(7).unwrap_err().element, 7);
    assert_eq!(queue.snapshot(), [0]);
}

#[test]
fn waiting_consumers_are_counted_until_they_are_served_or_give_up() {
    let _watch = watch();
    let hand = ManualClock::new();
    let queue = Arc::new(TransferQueue::unbounded().with_clock(hand.clock()));
    assert!(!queue.has_waiting_consumer());
    let hands = Arc::clone(&queue);
    let in_take = parked(move || hands.take());
    assert_eq!(queue.waiting_consumers(), 1);
    let hands = Arc::clone(&queue);
    let in_poll = parked(move || hands.poll_timeout(Duration::from_secs(1)));
    assert_eq!(queue.waiting_consumers(), 2);
    queue.put(7).unwrap();
    assert_eq!(queue.waiting_consumers(), 1, "the first is served");
    assert_eq!(in_take.join().unwrap(), Ok(7));
    hand.advance(Duration::from_secs(1));
    assert_eq!(in_poll.join().unwrap(), Ok(None));
    assert!(!queue.has_waiting_consumer());
    queue.put(8).unwrap();
    assert_eq!(queue.len(), 1, "nobody is left to take it");
}

#[test]
fn a_transfer_that_times_out_removes_its_element_from_the_middle_of_the_queue() {
    let _watch = watch();
    let hand = ManualClock::new();
    let queue = Arc::new(TransferQueue::unbounded().with_clock(hand.clock()));
    queue.put(0).unwrap();
    let producer = Arc::clone(&queue);
    let transfer = parked(move || producer.transfer_timeout(1, Duration::from_secs(1)));
    queue.put(2).unwrap();
    assert_eq!(queue.snapshot(), [0, 1, 2]);
    hand.advance(Duration::from_secs(1));
    let rejected = transfer.join().unwrap().unwrap_err();
    assert_eq!((rejected.element, rejected.reason), (1, Reason::TimedOut));
    assert_eq!(queue.snapshot(), [0, 2]);
}

#[test]
fn a_transfer_behind_another_element_is_freed_by_the_second_take() {
    let _watch = watch();
    let queue = filled(1);
    let producer = Arc::clone(&queue);
    let transfer = parked(move || producer.transfer_timeout(1, TIMEOUT));
    assert_eq!(queue.take(), Ok(0));
    assert_eq!(queue.take(), Ok(1));
    transfer.join().unwrap().unwrap();
}

#[test]
fn an_interrupted_transfer_gets_its_element_back() {
    let _watch = watch();
    let queue = filled(1);
    let producer = Arc::clone(&queue);
    let transfer = ParkedTask::new(move || producer.transfer(1));
    let rejected = transfer.interrupt().unwrap_err();
    assert_eq!(
        (rejected.element, rejected.reason),
        (1, Reason::Interrupted)
    );
    assert_eq!(queue.snapshot(), [0]);
}

#[test]
fn an_interrupted_consumer_leaves_the_wait_list() {
    let _watch = watch();
    let queue = filled(0);
    let hands = Arc::clone(&queue);
    let consumer = ParkedTask::new(move || hands.take());
    assert_eq!(consumer.interrupt(), Err(Interrupted));
    assert!(!queue.has_waiting_consumer());
    assert!(queue.try_transfer(7).is_err());
}

#[test]
fn removing_the_element_of_a_transfer_counts_as_receiving_it() {
    let _watch = watch();
    let queue = filled(0);
    let producer = Arc::clone(&queue);
    let transfer = parked(move || producer.transfer(7));
    assert!(queue.remove(&7));
    transfer.join().unwrap().unwrap();
    assert!(queue.is_empty());

    let producer = Arc::clone(&queue);
    let transfer = parked(move || producer.transfer(8));
    let mut drained = Vec::new();
    assert_eq!(queue.drain_into(&mut drained), 1);
    transfer.join().unwrap().unwrap();
    assert_eq!(drained, [8]);
}

#[test]
fn a_delivery_is_ready_when_its_element_is_taken_and_can_be_given_up() {
    let _watch = watch();
    let queue = filled(1);
    let mut kept = queue.deliver(1);
    let mut dropped = queue.deliver(2);
    let mut given_up = queue.deliver(3);
    for delivery in [&mut kept, &mut dropped, &mut given_up] {
        assert!(poll_once(delivery).is_pending());
    }
    assert_eq!(queue.snapshot(), [0, 1, 2, 3]);
    drop(dropped);
    assert_eq!(given_up.into_element(), Some(3));
    assert_eq!(queue.snapshot(), [0, 1]);
    assert_eq!(queue.poll(), Some(0));
    assert!(poll_once(&mut kept).is_pending());
    assert_eq!(queue.poll(), Some(1));
    assert!(matches!(poll_once(&mut kept), Poll::Ready(Ok(()))));
}

#[test]
fn sending_never_waits_and_receiving_does() {
    let _watch = watch();
    let queue = filled(0);
    let mut receiving = queue.recv();
    assert!(poll_once(&mut receiving).is_pending());
    assert!(poll_once(&mut queue.send(7)).is_ready());
    assert!(poll_once(&mut queue.send(8)).is_ready());
    assert_eq!(poll_once(&mut receiving), Poll::Ready(7));
    assert_eq!(queue.poll(), Some(8));
}

#[test]
fn an_element_handed_to_a_dropped_future_is_not_lost() {
    let _watch = watch();
    let queue = filled(0);
    let mut receiving = queue.recv();
    assert!(poll_once(&mut receiving).is_pending());
    queue.put(7).unwrap();
    drop(receiving);
    assert_eq!(queue.poll(), Some(7));
}

#[test]
fn a_drain_while_another_thread_puts_loses_nothing() {
    let _watch = watch();
    let queue = filled(0);
    let producer = Arc::clone(&queue);
    let producer = std::thread::spawn(move || {
        (0..5_000).for_each(|number| producer.put(number).unwrap());
    });
    let mut drained = Vec::new();
    while drained.len() < 5_000 {
        queue.drain_into(&mut drained);
    }
    producer.join().unwrap();
    assert!(drained.into_iter().eq(0..5_000));
}

#[test]
fn a_long_queue_is_dropped_without_a_deep_stack_and_without_a_leak() {
    let _watch = watch();
    let sack = Arc::new(());
    let queue = TransferQueue::unbounded();
    (0..200_000).for_each(|_| queue.put(Arc::clone(&sack)).unwrap());
    (0..150_000).for_each(|_| drop(queue.poll()));
    assert_eq!(Arc::strong_count(&sack), 50_001);
    drop(queue);
    assert_eq!(Arc::strong_count(&sack), 1);
}

#[test]
fn destructors_of_elements_may_use_the_queue() {
    let _watch = watch();
    #[derive(Debug)]
    struct Echo(Option<Arc<TransferQueue<Echo>>>);
    impl Drop for Echo {
        fn drop(&mut self) {
            if let Some(queue) = self.0.take() {
                queue.put(Echo(None)).unwrap();
            }
        }
    }
    let queue = Arc::new(TransferQueue::unbounded());
    queue.put(Echo(Some(Arc::clone(&queue)))).unwrap();
    queue.clear();
    assert_eq!(queue.len(), 1);
    let mut delivery = queue.deliver(Echo(Some(Arc::clone(&queue))));
    assert!(poll_once(&mut delivery).is_pending());
    drop(delivery);
    assert_eq!(queue.len(), 2);
}

#[test]
fn its_debug_text_counts_the_elements_and_the_waiters() {
    let _watch = watch();
    let queue = filled(2);
    assert_eq!(
        format!("{queue:?}"),
        "TransferQueue { len: 2, waiting_consumers: 0, .. }"
    );
}
