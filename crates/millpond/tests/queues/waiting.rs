//! What blocks, and what ends it: timeouts, interrupts, dropped futures, panics, changed bounds.

use crate::handoff_kit::{ParkedTask, TIMEOUT, parked};
use millpond::interrupt::Interrupted;
use millpond::queue::{
    AsyncQueue, BlockingDeque, BlockingQueue, CapacityError, DelayQueue, FifoQueue, Offered,
    PriorityQueue, QueueExt, Reason, Taken, WaitSlot, WeightedQueue,
};
use millpond::task;
use millpond::time::{Clock, Deadline, ManualClock};
use millpond_testkit::{CountingWaker, watch};
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

/// Runs `body` as a task that is interrupted when it is parked in a queue.
fn interrupted<R: Send + 'static>(body: impl FnOnce() -> R + Send + 'static) -> R {
    ParkedTask::new(body).interrupt()
}

/// One of each flavor, for at most two elements, that gives back what is put in.
fn all(clock: &Clock) -> Vec<Arc<dyn BlockingQueue<u32>>> {
    let clock = || clock.clone();
    vec![
        Arc::new(FifoQueue::bounded(2).unwrap().with_clock(clock())),
        Arc::new(FifoQueue::bounded_growing(2).unwrap().with_clock(clock())),
        Arc::new(BlockingDeque::bounded(2).unwrap().with_clock(clock())),
        Arc::new(PriorityQueue::bounded(2).unwrap().with_clock(clock())),
        Arc::new(DelayQueue::new().with_bound(2).unwrap().with_clock(clock())),
        Arc::new(
            WeightedQueue::bounded(2, |_| 1)
                .unwrap()
                .with_clock(clock()),
        ),
    ]
}

fn fill(queue: &dyn BlockingQueue<u32>) {
    queue.offer(1).unwrap();
    queue.offer(2).unwrap();
}

#[test]
fn a_put_waits_for_a_take_and_a_take_for_a_put() {
    let _watch = watch();
    for queue in all(&Clock::system()) {
        fill(&*queue);
        let full = Arc::clone(&queue);
        let producer = parked(move || full.put(3));
        assert_eq!(queue.take(), Ok(1));
        producer.join().unwrap().unwrap();
        assert_eq!([queue.take(), queue.take()], [Ok(2), Ok(3)]);
        let empty = Arc::clone(&queue);
        let consumer = parked(move || empty.take());
        queue.put(4).unwrap();
        assert_eq!(consumer.join().unwrap(), Ok(4));
    }
}

#[test]
fn an_interrupt_ends_a_wait_and_gives_the_element_back() {
    let _watch = watch();
    for queue in all(&Clock::system()) {
        let empty = Arc::clone(&queue);
        assert_eq!(interrupted(move || empty.take()), Err(Interrupted));
        let timed = Arc::clone(&queue);
        assert_eq!(
            interrupted(move || timed.poll_timeout(TIMEOUT)),
            Err(Interrupted)
        );
        fill(&*queue);
        let full = Arc::clone(&queue);
        let rejected = interrupted(move || full.put(3)).unwrap_err();
        assert_eq!(
            (rejected.element, rejected.reason),
            (3, Reason::Interrupted)
        );
        let full = Arc::clone(&queue);
        let rejected = interrupted(move || full.offer_timeout(3, Duration::MAX)).unwrap_err();
        assert_eq!(
            (rejected.element, rejected.reason),
            (3, Reason::Interrupted)
        );
        assert_eq!(queue.snapshot(), [1, 2]);
    }
}

#[test]
fn a_pending_interrupt_is_reported_although_nothing_need_wait() {
    let _watch = watch();
    for queue in all(&Clock::system()) {
        queue.offer(1).unwrap();
        let (send, seen) = mpsc::channel();
        let (task, handle) = task::new(move || {
            while !millpond::interrupt::is_interrupted() {
                std::thread::yield_now();
            }
            let take = queue.take();
            // Reporting has cleared it.
            send.send((take, queue.take(), queue.put(5).is_ok()))
                .unwrap();
        });
        let thread = std::thread::spawn(move || drop(task.run()));
        while !handle.is_started() {
            std::thread::yield_now();
        }
        handle.interrupt();
        assert_eq!(seen.recv(), Ok((Err(Interrupted), Ok(1), true)));
        thread.join().unwrap();
    }
}

#[test]
fn a_timed_wait_ends_when_the_time_is_up_and_not_before() {
    let _watch = watch();
    let hand = ManualClock::new();
    for queue in all(&hand.clock()) {
        let empty = Arc::clone(&queue);
        let consumer = parked(move || empty.poll_timeout(Duration::from_secs(3)));
        hand.advance(Duration::from_secs(2));
        assert!(!consumer.is_finished());
        hand.advance(Duration::from_secs(1));
        assert_eq!(consumer.join().unwrap(), Ok(None));
        fill(&*queue);
        let full = Arc::clone(&queue);
        let producer = parked(move || full.offer_timeout(3, Duration::from_secs(3)));
        hand.advance(Duration::from_secs(3));
        let rejected = producer.join().unwrap().unwrap_err();
        assert_eq!((rejected.element, rejected.reason), (3, Reason::TimedOut));
    }
}

#[test]
fn zero_timeout_tries_once() {
    let _watch = watch();
    for queue in all(&Clock::system()) {
        assert_eq!(queue.poll_timeout(Duration::ZERO), Ok(None));
        queue.offer_timeout(1, Duration::ZERO).unwrap();
        queue.offer_timeout(2, Duration::ZERO).unwrap();
        let rejected = queue.offer_timeout(3, Duration::ZERO).unwrap_err();
        assert_eq!((rejected.element, rejected.reason), (3, Reason::TimedOut));
        assert_eq!(queue.poll_timeout(Duration::ZERO), Ok(Some(1)));
        assert_eq!(queue.poll_timeout(Duration::MAX), Ok(Some(2)));
    }
}

#[test]
fn capacity_zero_is_an_error_and_the_old_one_stays() {
    let _watch = watch();
    assert_eq!(
        FifoQueue::<u8>::bounded(0).unwrap_err(),
        CapacityError::Zero
    );
    assert_eq!(
        FifoQueue::<u8>::bounded_growing(0).unwrap_err(),
        CapacityError::Zero
    );
    assert_eq!(
        BlockingDeque::<u8>::bounded(0).unwrap_err(),
        CapacityError::Zero
    );
    assert_eq!(
        PriorityQueue::<u8>::bounded(0).unwrap_err(),
        CapacityError::Zero
    );
    assert_eq!(
        DelayQueue::<u8>::new().with_bound(0).unwrap_err(),
        CapacityError::Zero
    );
    assert_eq!(
        WeightedQueue::<u8>::bounded(0, |_| 1).unwrap_err(),
        CapacityError::Zero
    );
    for queue in all(&Clock::system()) {
        assert_eq!(queue.set_capacity(0), Err(CapacityError::Zero));
        assert_eq!(queue.capacity(), Some(2));
    }
}

#[test]
fn an_absurd_capacity_costs_nothing() {
    let _watch = watch();
    for queue in all(&Clock::system()) {
        queue.set_capacity(usize::MAX).unwrap();
        fill(&*queue);
        assert_eq!(queue.capacity(), Some(usize::MAX));
        assert_eq!(queue.remaining_capacity(), usize::MAX - 2);
    }
    let queue = FifoQueue::bounded(usize::MAX).unwrap();
    queue.offer([0_u8; 4096]).unwrap();
    assert_eq!(queue.len(), 1);
}

#[test]
fn a_higher_bound_lets_in_all_waiting_producers() {
    let _watch = watch();
    for queue in all(&Clock::system()) {
        fill(&*queue);
        let producers: Vec<_> = (3..=5)
            .map(|number| {
                let full = Arc::clone(&queue);
                parked(move || full.put(number))
            })
            .collect();
        queue.set_capacity(5).unwrap();
        for producer in producers {
            producer.join().unwrap().unwrap();
        }
        assert_eq!(queue.len(), 5);
    }
}

#[test]
fn a_lower_bound_keeps_what_is_there_and_takes_nothing_until_there_is_room() {
    let _watch = watch();
    for queue in all(&Clock::system()) {
        fill(&*queue);
        queue.set_capacity(1).unwrap();
        assert_eq!((queue.len(), queue.remaining_capacity()), (2, 0));
        let full = Arc::clone(&queue);
        let producer = parked(move || full.put(3));
        assert_eq!(queue.poll(), Some(1));
        assert!(queue.offer(9).is_err(), "still as many as may be");
        assert_eq!(queue.poll(), Some(2));
        producer.join().unwrap().unwrap();
        assert_eq!(queue.snapshot(), [3]);
    }
}

#[test]
fn a_sink_that_panics_loses_the_element_it_was_given_and_no_other() {
    let _watch = watch();
    for queue in all(&Clock::system()) {
        fill(&*queue);
        let full = Arc::clone(&queue);
        let producer = parked(move || full.put(3));
        let drained = catch_unwind(AssertUnwindSafe(|| {
            queue.drain_to(9, &mut |_| resume_unwind(Box::new("full")))
        }));
        assert!(drained.is_err());
        producer.join().unwrap().unwrap();
        assert_eq!(queue.snapshot(), [2, 3]);
    }
}

#[test]
fn a_predicate_that_panics_takes_nothing_out() {
    let _watch = watch();
    for queue in all(&Clock::system()) {
        fill(&*queue);
        let removed = catch_unwind(AssertUnwindSafe(|| {
            queue.remove_where(9, &mut |number| match number {
                1 => true,
                _ => resume_unwind(Box::new("no idea")),
            })
        }));
        assert!(removed.is_err());
        assert_eq!(queue.snapshot(), [1, 2]);
    }
}

/// A queue of numbers whose comparator panics while `grumpy` is set.
fn grumpy_queue() -> (Arc<PriorityQueue<u32>>, Arc<AtomicBool>) {
    let grumpy = Arc::new(AtomicBool::new(false));
    let mood = Arc::clone(&grumpy);
    let queue = PriorityQueue::by(move |one: &u32, other: &u32| {
        if mood.load(Ordering::SeqCst) {
            resume_unwind(Box::new("no idea"));
        }
        one.cmp(other)
    });
    (Arc::new(queue), grumpy)
}

#[test]
fn a_comparator_that_panics_leaves_the_queue_as_it_was() {
    let _watch = watch();
    let (queue, grumpy) = grumpy_queue();
    queue.offer_all([5, 3, 4, 1, 2]).unwrap();
    grumpy.store(true, Ordering::SeqCst);
    assert!(catch_unwind(AssertUnwindSafe(|| queue.offer(0))).is_err());
    assert!(catch_unwind(AssertUnwindSafe(|| queue.poll())).is_err());
    assert!(catch_unwind(AssertUnwindSafe(|| queue.put(0))).is_err());
    assert!(catch_unwind(AssertUnwindSafe(|| queue.take())).is_err());
    assert!(catch_unwind(AssertUnwindSafe(|| queue.snapshot())).is_err());
    assert!(catch_unwind(AssertUnwindSafe(|| queue.remove(&3))).is_err());
    grumpy.store(false, Ordering::SeqCst);
    assert_eq!(queue.snapshot(), [1, 2, 3, 4, 5]);
}

#[test]
fn a_consumer_whose_comparator_panics_passes_its_wake_up_on() {
    let _watch = watch();
    let (queue, grumpy) = grumpy_queue();
    let bells: [_; 4] = std::array::from_fn(|_| CountingWaker::new());
    let mut consumers: Vec<_> = bells.iter().map(|_| queue.recv()).collect();
    for (consumer, (_, waker)) in consumers.iter_mut().zip(&bells) {
        assert!(
            Pin::new(consumer)
                .poll(&mut Context::from_waker(waker))
                .is_pending()
        );
    }
    // A heap of three is the smallest that compares when one is taken out.
    queue.offer_all([1, 2, 3]).unwrap();
    assert_eq!(bells.each_ref().map(|(bell, _)| bell.count()), [1, 1, 1, 0]);
    grumpy.store(true, Ordering::SeqCst);
    let mut first = consumers.remove(0);
    let poll =
        AssertUnwindSafe(|| Pin::new(&mut first).poll(&mut Context::from_waker(&bells[0].1)));
    assert!(catch_unwind(poll).is_err());
    drop(first);
    assert_eq!(bells.each_ref().map(|(bell, _)| bell.count()), [1, 1, 1, 1]);
    grumpy.store(false, Ordering::SeqCst);
    assert_eq!(queue.snapshot(), [1, 2, 3]);
}

#[test]
fn among_equals_the_first_come_is_the_first_out() {
    let _watch = watch();
    let queue = PriorityQueue::by(|one: &(u8, u32), other: &(u8, u32)| one.0.cmp(&other.0));
    for number in 0..1000 {
        queue.offer(((number % 3) as u8, number)).unwrap();
    }
    let mut out = Vec::new();
    queue.drain_into(&mut out);
    assert!(out.is_sorted());
    assert_eq!(out.len(), 1000);
}

#[test]
fn an_aged_element_waits_only_for_what_comes_within_its_handicap() {
    let _watch = watch();
    let hand = ManualClock::new();
    let second = Duration::from_secs(1);
    let queue = PriorityQueue::new()
        .aging(second, |element: &(u32, u32)| element.0)
        .with_clock(hand.clock());
    queue.offer((10, 0)).unwrap();
    // A stream of urgent ones, one per second, each served at once.
    let mut served = 0;
    for number in 1.. {
        hand.advance(second);
        queue.offer((0, number)).unwrap();
        if queue.poll() == Some((10, 0)) {
            break;
        }
        served = number;
    }
    assert_eq!(
        served, 10,
        "the eleventh came more than its handicap after it"
    );
}

#[test]
fn a_lighter_producer_is_woken_when_the_heavy_one_that_was_woken_does_not_fit() {
    let _watch = watch();
    let queue = WeightedQueue::bounded(10, |weight: &u64| *weight).unwrap();
    queue.offer(10).unwrap();
    let ((heavy_bell, heavy_waker), (light_bell, light_waker)) =
        (CountingWaker::new(), CountingWaker::new());
    let (mut heavy, mut light) = (Some(8), Some(3));
    let (mut heavy_place, mut light_place) = (WaitSlot::default(), WaitSlot::default());
    let mut try_heavy = || queue.poll_offer(&mut heavy, &mut heavy_place, &heavy_waker);
    assert_eq!(try_heavy(), Offered::Wait);
    let waits = queue.poll_offer(&mut light, &mut light_place, &light_waker);
    assert_eq!(waits, Offered::Wait);
    assert_eq!(queue.poll(), Some(10));
    assert_eq!((heavy_bell.count(), light_bell.count()), (1, 0));
    queue.offer(5).unwrap();
    assert_eq!(try_heavy(), Offered::Wait);
    assert_eq!((heavy_bell.count(), light_bell.count()), (1, 1));
    queue.leave_offer(&mut None, &mut heavy_place);
    queue.leave_offer(&mut None, &mut light_place);
}

#[test]
fn an_element_of_weight_zero_is_accepted_beyond_a_lowered_bound() {
    let _watch = watch();
    let queue = WeightedQueue::bounded(2, |weight: &u64| *weight).unwrap();
    queue.offer_all([1, 1]).unwrap();
    queue.offer(0).unwrap();
    queue.set_bound(1).unwrap();
    let (bell, waker) = CountingWaker::new();
    let (mut place, mut heavy_place) = (WaitSlot::default(), WaitSlot::default());
    let (mut nothing, mut heavy) = (Some(0), Some(1));
    let waits = queue.poll_offer(&mut heavy, &mut heavy_place, &waker);
    assert_eq!(waits, Offered::Wait);
    // It overtakes the producer that waits.
    let is_in = queue.poll_offer(&mut nothing, &mut place, &waker);
    assert_eq!(is_in, Offered::In);
    assert_eq!(bell.count(), 0);
    queue.leave_offer(&mut heavy, &mut heavy_place);
}

#[test]
fn a_new_first_element_finds_a_leader_even_if_the_last_waiter_led() {
    let _watch = watch();
    let hand = ManualClock::new();
    let queue = DelayQueue::new().with_clock(hand.clock());
    let ((_, old_waker), (_, young_waker)) = (CountingWaker::new(), CountingWaker::new());
    let (mut old, mut young) = (WaitSlot::default(), WaitSlot::default());
    let _ = queue.poll_take(&mut old, &old_waker);
    let _ = queue.poll_take(&mut young, &young_waker);
    queue.offer_after("late", Duration::from_secs(9)).unwrap();
    let late = Taken::Wait(queue.next_due());
    // The young consumer happens to poll before the old one that was woken.
    assert_eq!(queue.poll_take(&mut young, &young_waker), late);
    assert_eq!(
        queue.poll_take(&mut old, &old_waker),
        Taken::Wait(Deadline::NEVER)
    );
    queue.offer_after("soon", Duration::from_secs(5)).unwrap();
    let soon = Taken::Wait(queue.next_due());
    assert_eq!(
        queue.poll_take(&mut old, &old_waker),
        soon,
        "it was called, and leads now"
    );
    queue.leave_take(&mut old);
    queue.leave_take(&mut young);
}

#[test]
fn an_element_that_is_never_due_is_kept_and_can_be_removed() {
    let _watch = watch();
    let queue = DelayQueue::new();
    queue.offer_after("never", Duration::MAX).unwrap();
    assert_eq!(queue.poll(), None);
    assert_eq!(queue.next_due(), Deadline::NEVER);
    assert_eq!(queue.peek(), Some("never"));
    assert!(queue.remove(&"never"));
}

#[test]
fn a_delayed_element_reaches_a_waiting_consumer() {
    let _watch = watch();
    let hand = ManualClock::new();
    let queue = Arc::new(DelayQueue::new().with_clock(hand.clock()));
    queue.offer_after("bread", Duration::from_secs(9)).unwrap();
    let hungry = Arc::clone(&queue);
    let consumer = parked(move || hungry.take());
    hand.advance(Duration::from_secs(8));
    assert!(!consumer.is_finished());
    hand.advance(Duration::from_secs(1));
    assert_eq!(consumer.join().unwrap(), Ok("bread"));
}

#[test]
fn a_dropped_receiver_passes_its_wake_up_on() {
    let _watch = watch();
    let queue = FifoQueue::bounded(1).unwrap();
    let ((first_bell, first), (second_bell, second)) = (CountingWaker::new(), CountingWaker::new());
    let mut one = queue.recv();
    let mut other = queue.recv();
    assert!(
        Pin::new(&mut one)
            .poll(&mut Context::from_waker(&first))
            .is_pending()
    );
    assert!(
        Pin::new(&mut other)
            .poll(&mut Context::from_waker(&second))
            .is_pending()
    );
    queue.offer("flour").unwrap();
    assert_eq!(
        (first_bell.count(), second_bell.count()),
        (1, 0),
        "one element, one call"
    );
    drop(one);
    assert_eq!((first_bell.count(), second_bell.count()), (1, 1));
    let got = Pin::new(&mut other).poll(&mut Context::from_waker(&second));
    assert_eq!(got, Poll::Ready("flour"));
}

#[test]
fn a_sender_that_gives_up_gets_its_element_back() {
    let _watch = watch();
    let queue = FifoQueue::bounded(1).unwrap();
    queue.offer("first").unwrap();
    let mut sending = queue.send("second");
    let poll = Pin::new(&mut sending).poll(&mut Context::from_waker(Waker::noop()));
    assert!(poll.is_pending());
    assert_eq!(queue.waiting_producers(), 1);
    assert_eq!(sending.into_element(), Some("second"));
    assert_eq!(queue.waiting_producers(), 0, "nothing is left behind");
}

#[test]
fn no_waiter_that_gave_up_is_left_in_the_wait_list() {
    let _watch = watch();
    let queue = FifoQueue::<u8>::unbounded();
    for _ in 0..1000 {
        assert_eq!(queue.poll_timeout(Duration::from_nanos(1)), Ok(None));
    }
    assert_eq!(queue.waiting_consumers(), 0);
}

#[test]
fn an_element_that_panics_when_dropped_leaves_the_queue_usable() {
    let _watch = watch();
    struct Grenade(bool);
    impl Drop for Grenade {
        fn drop(&mut self) {
            if self.0 {
                resume_unwind(Box::new("boom"));
            }
        }
    }
    let queue = FifoQueue::unbounded();
    for armed in [false, true, false] {
        queue.offer(Grenade(armed)).unwrap();
    }
    assert!(catch_unwind(AssertUnwindSafe(|| queue.clear())).is_err());
    assert_eq!(queue.len(), 0);
    queue.offer(Grenade(false)).unwrap();
    assert!(queue.poll().is_some());
}

#[test]
fn many_producers_and_consumers_agree_on_the_sum() {
    let _watch = watch();
    for queue in all(&Clock::system()) {
        let (producers, consumers, each) = (3, 3, 2_000_u32);
        std::thread::scope(|scope| {
            for _ in 0..producers {
                scope.spawn(|| (1..=each).for_each(|number| queue.put(number).unwrap()));
            }
            let sums: Vec<_> = (0..consumers)
                .map(|_| {
                    scope.spawn(|| {
                        (0..each)
                            .map(|_| u64::from(queue.take().unwrap()))
                            .sum::<u64>()
                    })
                })
                .collect();
            let sum: u64 = sums.into_iter().map(|sum| sum.join().unwrap()).sum();
            assert_eq!(sum, producers * u64::from(each) * u64::from(each + 1) / 2);
        });
        assert!(queue.is_empty());
    }
}

#[test]
fn offer_then_poll_never_comes_back_empty() {
    let _watch = watch();
    for queue in all(&Clock::system()) {
        queue.set_capacity(16).unwrap();
        std::thread::scope(|scope| {
            for number in 0..4 {
                let queue = &queue;
                scope.spawn(move || {
                    for _ in 0..2_000 {
                        queue.offer(number).unwrap();
                        assert!(queue.poll().is_some());
                    }
                });
            }
        });
    }
}
