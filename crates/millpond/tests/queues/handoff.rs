//! What a hand-off queue promises, on real threads, with tasks, futures and a manual clock.

use crate::handoff_kit::{ParkedTask, TIMEOUT, all, await_parked, hand_offs, parked};
use millpond::interrupt::Interrupted;
use millpond::queue::{
    AsyncQueue, BlockingQueue, CapacityError, HandOffQueue, OfferError, QueueExt, Reason,
};
use millpond::time::ManualClock;
use millpond_testkit::{CountingWaker, poll_once, watch};
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

fn refusal<T>(result: Result<(), OfferError<T>>) -> Option<(T, Reason)> {
    result
        .err()
        .map(|rejected| (rejected.element, rejected.reason))
}

#[test]
fn it_is_both_empty_and_full() {
    let _watch = watch();
    for queue in hand_offs::<i32>() {
        assert_eq!((queue.len(), queue.capacity()), (0, Some(0)));
        assert!(queue.is_empty());
        assert_eq!(queue.remaining_capacity(), 0);
        assert_eq!(refusal(queue.offer(1)), Some((1, Reason::Full)));
        assert_eq!(queue.poll(), None);
    }
}

#[test]
fn its_capacity_cannot_be_changed() {
    let _watch = watch();
    for queue in hand_offs::<i32>() {
        for capacity in [0, 1, usize::MAX] {
            assert_eq!(queue.set_capacity(capacity), Err(CapacityError::Fixed));
        }
        assert_eq!(queue.capacity(), Some(0));
    }
}

#[test]
fn nothing_of_a_waiting_producer_is_seen_searched_or_removed() {
    let _watch = watch();
    for queue in hand_offs::<i32>() {
        let mut sending = queue.send(7);
        assert!(poll_once(&mut sending).is_pending());
        assert_eq!(queue.peek(), None);
        assert_eq!(queue.snapshot(), [0; 0]);
        assert!(!queue.contains(&7));
        assert!(!queue.remove(&7));
        assert_eq!(queue.remove_where(usize::MAX, &mut |_| true), [0; 0]);
        queue.clear();
        assert_eq!((queue.len(), queue.waiting_producers()), (0, 1));
        assert_eq!(queue.poll(), Some(7));
    }
}

#[test]
fn a_put_waits_for_the_take_of_its_element() {
    let _watch = watch();
    for queue in hand_offs() {
        let producer = Arc::clone(&queue);
        let producer = parked(move || producer.put("sack"));
        assert_eq!(queue.take(), Ok("sack"));
        producer.join().unwrap().unwrap();
        assert_eq!(queue.waiting_producers(), 0);
    }
}

#[test]
fn an_offer_reaches_a_waiting_consumer() {
    let _watch = watch();
    for queue in all() {
        let hands = Arc::clone(&queue);
        let consumer = parked(move || hands.take());
        queue.offer("sack").unwrap();
        assert_eq!(consumer.join().unwrap(), Ok("sack"));
    }
}

#[test]
fn an_offer_reaches_a_consumer_that_waits_with_a_timeout() {
    let _watch = watch();
    for queue in all() {
        let hands = Arc::clone(&queue);
        let consumer = parked(move || hands.poll_timeout(TIMEOUT));
        queue.offer("sack").unwrap();
        assert_eq!(consumer.join().unwrap(), Ok(Some("sack")));
    }
}

#[test]
fn a_poll_takes_from_a_waiting_producer() {
    let _watch = watch();
    for queue in hand_offs() {
        let producer = Arc::clone(&queue);
        let producer = parked(move || producer.offer_timeout("sack", Duration::MAX));
        assert_eq!(queue.poll(), Some("sack"));
        producer.join().unwrap().unwrap();
    }
}

#[test]
fn a_timeout_of_zero_tries_once() {
    let _watch = watch();
    for queue in hand_offs() {
        assert_eq!(
            refusal(queue.offer_timeout("sack", Duration::ZERO)),
            Some(("sack", Reason::TimedOut))
        );
        assert_eq!(queue.poll_timeout(Duration::ZERO), Ok(None));
        assert_eq!(
            (queue.waiting_producers(), queue.waiting_consumers()),
            (0, 0)
        );

        let mut sending = queue.send("flour");
        assert!(poll_once(&mut sending).is_pending());
        assert_eq!(queue.poll_timeout(Duration::ZERO), Ok(Some("flour")));
        let mut receiving = queue.recv();
        assert!(poll_once(&mut receiving).is_pending());
        queue.offer_timeout("bran", Duration::ZERO).unwrap();
        assert_eq!(poll_once(&mut receiving), Poll::Ready("bran"));
    }
}

#[test]
fn the_largest_timeout_is_for_ever() {
    let _watch = watch();
    for queue in all() {
        let hands = Arc::clone(&queue);
        let consumer = parked(move || hands.poll_timeout(Duration::MAX));
        queue.offer_timeout("sack", Duration::MAX).unwrap();
        assert_eq!(consumer.join().unwrap(), Ok(Some("sack")));
    }
}

#[test]
fn a_producer_that_times_out_gets_its_element_back() {
    let _watch = watch();
    for queue in [HandOffQueue::fair(), HandOffQueue::unfair()] {
        let hand = ManualClock::new();
        let queue = Arc::new(queue.with_clock(hand.clock()));
        let producer = Arc::clone(&queue);
        let producer = parked(move || producer.offer_timeout("sack", Duration::from_secs(5)));
        hand.advance(Duration::from_secs(4));
        await_parked(producer.thread());
        assert_eq!(queue.waiting_producers(), 1, "there is a second left");
        hand.advance(Duration::from_secs(1));
        assert_eq!(
            refusal(producer.join().unwrap()),
            Some(("sack", Reason::TimedOut))
        );
        assert_eq!(queue.poll(), None, "nothing is left behind");
    }
}

#[test]
fn a_consumer_that_times_out_gets_nothing_and_leaves_nothing() {
    let _watch = watch();
    for queue in [HandOffQueue::fair(), HandOffQueue::unfair()] {
        let hand = ManualClock::new();
        let queue = Arc::new(queue.with_clock(hand.clock()));
        let hands = Arc::clone(&queue);
        let consumer = parked(move || hands.poll_timeout(Duration::from_secs(5)));
        hand.advance(Duration::from_secs(5));
        assert_eq!(consumer.join().unwrap(), Ok(None));
        assert_eq!(refusal(queue.offer("sack")), Some(("sack", Reason::Full)));
    }
}

#[test]
fn an_interrupted_producer_gets_its_element_back() {
    let _watch = watch();
    for queue in hand_offs() {
        let producer = Arc::clone(&queue);
        let producer = ParkedTask::new(move || producer.put("sack"));
        assert_eq!(
            refusal(producer.interrupt()),
            Some(("sack", Reason::Interrupted))
        );
        assert_eq!(queue.poll(), None);
    }
}

#[test]
fn a_second_put_waits_again_and_can_be_interrupted_too() {
    let _watch = watch();
    for queue in hand_offs() {
        let producer = Arc::clone(&queue);
        let producer = ParkedTask::new(move || {
            producer.put(1).unwrap();
            producer.put(2)
        });
        assert_eq!(queue.take(), Ok(1));
        while queue.waiting_producers() == 0 {
            std::thread::yield_now();
        }
        assert_eq!(
            refusal(producer.interrupt()),
            Some((2, Reason::Interrupted))
        );
        assert_eq!(queue.poll(), None);
    }
}

#[test]
fn an_interrupted_consumer_leaves_nothing() {
    let _watch = watch();
    for queue in hand_offs::<i32>() {
        let hands = Arc::clone(&queue);
        let consumer = ParkedTask::new(move || hands.take());
        assert_eq!(consumer.interrupt(), Err(Interrupted));
        let hands = Arc::clone(&queue);
        let consumer = ParkedTask::new(move || hands.poll_timeout(TIMEOUT));
        assert_eq!(consumer.interrupt(), Err(Interrupted));
        assert_eq!(refusal(queue.offer(1)), Some((1, Reason::Full)));
    }
}

#[test]
fn an_interrupt_that_comes_before_the_call_stops_it_even_if_it_need_not_wait() {
    let _watch = watch();
    for queue in hand_offs() {
        let both = Arc::clone(&queue);
        let gate = Arc::new(HandOffQueue::<()>::fair());
        let shut = Arc::clone(&gate);
        let task = ParkedTask::new(move || {
            // Success at the gate leaves the interrupt pending.
            millpond::interrupt::uninterruptible(|| shut.take()).unwrap();
            let mut sending = both.send("sack");
            assert!(poll_once(&mut sending).is_pending());
            (both.take(), both.take())
        });
        task.handle.interrupt();
        gate.put(()).unwrap();
        assert_eq!(task.result(), (Err(Interrupted), Ok("sack")));
    }
}

#[test]
fn a_fair_queue_serves_producers_in_the_order_they_came_and_an_unfair_one_backwards() {
    let _watch = watch();
    for queue in hand_offs() {
        let producers: Vec<_> = (0..5)
            .map(|number| {
                let producer = Arc::clone(&queue);
                parked(move || producer.put(number))
            })
            .collect();
        let taken: Vec<_> = (0..5).map(|_| queue.take().unwrap()).collect();
        if queue.is_fair() {
            assert_eq!(taken, [0, 1, 2, 3, 4])
        } else {
            assert_eq!(taken, [4, 3, 2, 1, 0])
        }
        producers
            .into_iter()
            .for_each(|producer| producer.join().unwrap().unwrap());
    }
}

#[test]
fn a_fair_queue_serves_consumers_in_the_order_they_came_and_an_unfair_one_backwards() {
    let _watch = watch();
    for queue in hand_offs() {
        let consumers: Vec<_> = (0..5)
            .map(|_| {
                let hands = Arc::clone(&queue);
                parked(move || hands.take().unwrap())
            })
            .collect();
        (0..5).for_each(|number| queue.offer(number).unwrap());
        let taken: Vec<_> = consumers
            .into_iter()
            .map(|consumer| consumer.join().unwrap())
            .collect();
        if queue.is_fair() {
            assert_eq!(taken, [0, 1, 2, 3, 4])
        } else {
            assert_eq!(taken, [4, 3, 2, 1, 0])
        }
    }
}

#[test]
fn the_order_holds_when_some_of_the_waiting_time_out_or_are_interrupted() {
    let _watch = watch();
    for queue in [HandOffQueue::fair(), HandOffQueue::unfair()] {
        let hand = ManualClock::new();
        let queue = Arc::new(queue.with_clock(hand.clock()));
        let put = |number: i32, timeout: Duration| {
            let producer = Arc::clone(&queue);
            ParkedTask::new(move || producer.offer_timeout(number, timeout))
        };
        let stays: [_; 2] = [put(0, Duration::MAX), put(1, Duration::MAX)];
        let times_out = put(2, Duration::from_secs(1));
        let also_stays = put(3, Duration::MAX);
        let is_interrupted = put(4, Duration::MAX);
        let last = put(5, Duration::MAX);

        assert_eq!(
            refusal(is_interrupted.interrupt()),
            Some((4, Reason::Interrupted))
        );
        hand.advance(Duration::from_secs(1));
        assert_eq!(refusal(times_out.result()), Some((2, Reason::TimedOut)));
        let taken: Vec<_> = std::iter::from_fn(|| queue.poll()).collect();
        if queue.is_fair() {
            assert_eq!(taken, [0, 1, 3, 5])
        } else {
            assert_eq!(taken, [5, 3, 1, 0])
        }
        for producer in stays.into_iter().chain([also_stays, last]) {
            producer.result().unwrap();
        }
    }
}

#[test]
fn a_drain_takes_from_waiting_producers_and_wakes_them() {
    let _watch = watch();
    for queue in hand_offs() {
        let mut drained = Vec::new();
        assert_eq!(queue.drain_into(&mut drained), 0);
        let producers: Vec<_> = (0..3)
            .map(|number| {
                let producer = Arc::clone(&queue);
                parked(move || producer.put(number))
            })
            .collect();
        assert_eq!(queue.drain_to(2, &mut |element| drained.push(element)), 2);
        assert_eq!(queue.waiting_producers(), 1);
        assert_eq!(queue.drain_into(&mut drained), 1);
        producers
            .into_iter()
            .for_each(|producer| producer.join().unwrap().unwrap());
        drained.sort_unstable();
        assert_eq!(drained, [0, 1, 2]);
    }
}

#[test]
fn a_sink_that_panics_costs_one_element() {
    let _watch = watch();
    let queue = HandOffQueue::fair();
    let mut sends: Vec<_> = (0..3).map(|number| queue.send(number)).collect();
    sends
        .iter_mut()
        .for_each(|sending| assert!(poll_once(sending).is_pending()));
    let failed = catch_unwind(AssertUnwindSafe(|| {
        queue.drain_to(usize::MAX, &mut |element| {
            if element == 1 {
                std::panic::resume_unwind(Box::new(()));
            }
        })
    }));
    assert!(failed.is_err());
    assert_eq!(queue.poll(), Some(2));
    assert_eq!(queue.poll(), None);
}

#[test]
fn threads_and_futures_meet_in_one_queue() {
    let _watch = watch();
    for queue in hand_offs() {
        let hands = Arc::clone(&queue);
        let consumer = parked(move || hands.take());
        assert!(matches!(
            poll_once(&mut queue.send("sack")),
            Poll::Ready(Ok(()))
        ));
        assert_eq!(consumer.join().unwrap(), Ok("sack"));

        let mut receiving = queue.recv();
        assert!(poll_once(&mut receiving).is_pending());
        queue.put("flour").unwrap();
        assert_eq!(poll_once(&mut receiving), Poll::Ready("flour"));
    }
}

#[test]
fn a_future_that_sends_and_is_dropped_leaves_nothing_behind() {
    let _watch = watch();
    for queue in hand_offs() {
        let sack = Arc::new(());
        let mut sending = queue.send(Arc::clone(&sack));
        assert!(poll_once(&mut sending).is_pending());
        assert_eq!(Arc::strong_count(&sack), 2);
        drop(sending);
        assert_eq!(Arc::strong_count(&sack), 1);
        assert!(queue.poll().is_none());

        let mut sending = queue.send(Arc::clone(&sack));
        assert!(poll_once(&mut sending).is_pending());
        assert!(Arc::ptr_eq(&sending.into_element().unwrap(), &sack));

        let mut sending = queue.send(Arc::clone(&sack));
        assert!(poll_once(&mut sending).is_pending());
        assert!(queue.poll().is_some());
        assert!(sending.into_element().is_none(), "it has been taken");
        assert_eq!(Arc::strong_count(&sack), 1);
    }
}

#[test]
fn a_future_that_receives_and_is_dropped_makes_way_for_the_next() {
    let _watch = watch();
    for queue in hand_offs() {
        let mut receiving = queue.recv();
        assert!(poll_once(&mut receiving).is_pending());
        drop(receiving);
        assert_eq!(refusal(queue.offer("sack")), Some(("sack", Reason::Full)));
    }
}

#[test]
fn an_element_handed_to_a_dropped_future_goes_to_the_next_waiting_consumer() {
    let _watch = watch();
    for queue in hand_offs() {
        let mut first = queue.recv();
        assert!(poll_once(&mut first).is_pending());
        queue.offer("sack").unwrap();
        let mut second = queue.recv();
        assert!(poll_once(&mut second).is_pending());
        drop(first);
        assert_eq!(poll_once(&mut second), Poll::Ready("sack"));
    }
}

#[test]
fn an_element_put_back_is_the_first_to_be_taken() {
    let _watch = watch();
    for queue in hand_offs() {
        let mut sends: Vec<_> = (0..2).map(|number| queue.send(number)).collect();
        sends
            .iter_mut()
            .for_each(|sending| assert!(poll_once(sending).is_pending()));
        queue.put_back(8);
        queue.put_back(9);
        assert_eq!(queue.len(), 0);
        let order: Vec<_> = std::iter::from_fn(|| queue.poll()).collect();
        if queue.is_fair() {
            assert_eq!(order, [9, 8, 0, 1])
        } else {
            assert_eq!(order, [9, 8, 1, 0])
        }
        sends
            .iter_mut()
            .for_each(|sending| assert!(poll_once(sending).is_ready()));
    }
}

#[test]
fn only_the_matched_are_woken_and_only_by_their_latest_waker() {
    let _watch = watch();
    for queue in hand_offs() {
        let bells: [_; 3] = std::array::from_fn(|_| CountingWaker::new());
        let mut waits = [queue.recv(), queue.recv()];
        let poll = |future: &mut millpond::queue::RecvFuture<'_, _, _>, bell: usize| {
            Pin::new(future).poll(&mut Context::from_waker(&bells[bell].1))
        };
        // The first polled is the first in line; an unfair queue serves the other.
        let [first, last] = &mut waits;
        let (served, other) = if queue.is_fair() {
            assert!(poll(first, 0).is_pending());
            assert!(poll(last, 2).is_pending());
            (first, last)
        } else {
            assert!(poll(first, 2).is_pending());
            assert!(poll(last, 0).is_pending());
            (last, first)
        };
        assert!(poll(served, 1).is_pending(), "it moves to another task");
        queue.offer("sack").unwrap();
        assert_eq!(
            bells.each_ref().map(|(bell, _)| bell.count()),
            [0, 1, 0],
            "fair: {}",
            queue.is_fair()
        );
        assert_eq!(poll(served, 1), Poll::Ready("sack"));
        assert!(poll(other, 2).is_pending());
    }
}

#[test]
fn after_the_hand_over_the_queue_keeps_neither_elements_nor_wakers() {
    let _watch = watch();
    for queue in hand_offs() {
        let (bell, waker) = CountingWaker::new();
        let sack = Arc::new(());
        for _ in 0..100 {
            let mut receiving = queue.recv();
            let polled = Pin::new(&mut receiving).poll(&mut Context::from_waker(&waker));
            assert!(polled.is_pending());
            queue.offer(Arc::clone(&sack)).unwrap();
            drop(poll_once(&mut receiving));
            let mut sending = queue.send(Arc::clone(&sack));
            let polled = Pin::new(&mut sending).poll(&mut Context::from_waker(&waker));
            assert!(polled.is_pending());
            drop(queue.poll());
            // The queue still has both futures to itself, and nothing of what went through.
            assert_eq!(Arc::strong_count(&sack), 1);
            assert_eq!(Arc::strong_count(&bell), 2);
        }
        assert_eq!(bell.count(), 200);
    }
}

#[test]
fn a_queue_that_is_dropped_drops_the_elements_left_in_it() {
    let _watch = watch();
    let sack = Arc::new(());
    for queue in [HandOffQueue::fair(), HandOffQueue::unfair()] {
        queue.put_back(Arc::clone(&sack));
        queue.put_back(Arc::clone(&sack));
        assert_eq!(Arc::strong_count(&sack), 3);
        drop(queue);
        assert_eq!(Arc::strong_count(&sack), 1);
    }
}

#[test]
fn an_element_that_borrows_can_be_handed_over() {
    let _watch = watch();
    let text = String::from("sack");
    let queue = HandOffQueue::fair();
    let taken = std::thread::scope(|scope| {
        let consumer = scope.spawn(|| queue.take());
        await_parked(consumer.thread());
        queue.put(text.as_str()).unwrap();
        consumer.join().unwrap()
    });
    assert_eq!(taken, Ok("sack"));
}

#[test]
fn a_waker_that_panics_costs_only_itself() {
    let _watch = watch();
    struct Grenade;
    impl std::task::Wake for Grenade {
        fn wake(self: Arc<Self>) {
            std::panic::resume_unwind(Box::new(()));
        }
    }
    let waker = std::task::Waker::from(Arc::new(Grenade));
    for queue in hand_offs() {
        let mut receiving = queue.recv();
        let polled = Pin::new(&mut receiving).poll(&mut Context::from_waker(&waker));
        assert!(polled.is_pending());
        queue.offer("sack").unwrap();
        assert_eq!(poll_once(&mut receiving), Poll::Ready("sack"));
    }
}

#[test]
fn its_debug_text_counts_the_waiters() {
    let _watch = watch();
    let queue = HandOffQueue::<u8>::unfair();
    let mut receiving = queue.recv();
    assert!(poll_once(&mut receiving).is_pending());
    assert_eq!(
        format!("{queue:?}"),
        "HandOffQueue { fair: false, waiting_producers: 0, waiting_consumers: 1, .. }"
    );
}

#[test]
fn an_element_handed_to_a_future_that_is_dropped_is_not_lost() {
    let _watch = watch();
    let queue = HandOffQueue::fair();
    let mut receiving = Box::pin(queue.recv());
    let mut context = Context::from_waker(Waker::noop());
    assert!(receiving.as_mut().poll(&mut context).is_pending());
    queue.offer("sack").expect("somebody waits for it");
    drop(receiving);
    assert_eq!(
        queue.poll(),
        Some("sack"),
        "its producer was told that it is taken"
    );
}
