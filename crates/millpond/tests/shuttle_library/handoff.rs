//! PCT schedules of producers, consumers and waiters that give up, on hand-off and transfer queues.
//!
//! Each scenario runs under 500 schedules for each depth.

use millpond::queue::{
    BlockingQueue, HandOffQueue, Offered, Reason, Taken, TransferQueue, WaitSlot,
};
use millpond::task;
use millpond::time::ManualClock;
use millpond_raw::sync::Mutex;
use millpond_raw::sync::thread::{spawn, yield_now};
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

fn pct(scenario: impl Fn() + Send + Sync + 'static) {
    crate::shuttle_drive::pct(500, scenario);
}

type Queue = Arc<dyn BlockingQueue<u32>>;

/// The flavors by turns, so that each scenario is checked on each of them.
fn flavors() -> [fn() -> Queue; 3] {
    [
        || Arc::new(HandOffQueue::fair()),
        || Arc::new(HandOffQueue::unfair()),
        || Arc::new(TransferQueue::unbounded()),
    ]
}

/// Asserts that these are the numbers from 0, each once.
fn assert_each_once(mut seen: Vec<u32>, count: u32) {
    seen.sort_unstable();
    assert!(seen.iter().copied().eq(0..count), "{seen:?}");
}

#[test]
fn every_put_meets_one_take() {
    for make in flavors() {
        pct(move || {
            let queue = make();
            let producers: Vec<_> = (0..2)
                .map(|number| {
                    let queue = Arc::clone(&queue);
                    spawn(move || queue.put(number).unwrap())
                })
                .collect();
            let consumers: Vec<_> = (0..2)
                .map(|_| {
                    let queue = Arc::clone(&queue);
                    spawn(move || queue.take().unwrap())
                })
                .collect();
            for producer in producers {
                producer.join().unwrap();
            }
            let taken = consumers
                .into_iter()
                .map(|consumer| consumer.join().unwrap());
            assert_each_once(taken.collect(), 2);
            assert!(queue.poll().is_none());
        });
    }
}

/// Offers, and gives up at once. Returns what came back.
fn offer_and_leave(queue: &Queue, number: u32) -> Option<u32> {
    let mut element = Some(number);
    let mut place = WaitSlot::default();
    if queue.poll_offer(&mut element, &mut place, Waker::noop()) == Offered::Wait {
        queue.leave_offer(&mut element, &mut place);
    }
    element
}

/// Begins to take, and gives up at once. Returns an element if it got one all the same.
fn take_and_leave(queue: &Queue) -> Option<u32> {
    let mut place = WaitSlot::default();
    match queue.poll_take(&mut place, Waker::noop()) {
        Taken::Got(element) => Some(element),
        Taken::Wait(_) => queue.leave_take(&mut place),
    }
}

#[test]
fn an_element_of_a_producer_that_gives_up_is_in_one_place() {
    for make in flavors() {
        pct(move || {
            let queue = make();
            let producers: Vec<_> = (0..2)
                .map(|number| {
                    let queue = Arc::clone(&queue);
                    spawn(move || offer_and_leave(&queue, number))
                })
                .collect();
            let consumers: Vec<_> = (0..2)
                .map(|_| {
                    let queue = Arc::clone(&queue);
                    spawn(move || take_and_leave(&queue))
                })
                .collect();
            let ends = producers.into_iter().chain(consumers);
            let mut seen: Vec<u32> = ends.filter_map(|end| end.join().unwrap()).collect();
            seen.extend(std::iter::from_fn(|| queue.poll()));
            assert_each_once(seen, 2);
        });
    }
}

#[test]
fn a_put_is_done_though_consumers_and_polls_give_up_around_it() {
    for make in flavors() {
        pct(move || {
            let queue = make();
            let producer = {
                let queue = Arc::clone(&queue);
                spawn(move || queue.put(0).unwrap())
            };
            let quitter = {
                let queue = Arc::clone(&queue);
                spawn(move || take_and_leave(&queue))
            };
            let poller = {
                let queue = Arc::clone(&queue);
                spawn(move || queue.poll())
            };
            let got = [quitter.join().unwrap(), poller.join().unwrap()];
            if got == [None, None] {
                assert_eq!(queue.take(), Ok(0));
            } else {
                assert_each_once(got.into_iter().flatten().collect(), 1);
            }
            producer.join().unwrap();
        });
    }
}

#[test]
fn a_time_out_races_with_the_match_and_one_of_them_wins() {
    for unfair in [false, true] {
        pct(move || {
            let hand = ManualClock::new();
            let queue = if unfair {
                HandOffQueue::unfair()
            } else {
                HandOffQueue::fair()
            };
            let queue = Arc::new(queue.with_clock(hand.clock()));
            let running = Arc::new(());
            let producer = {
                let (queue, running) = (Arc::clone(&queue), Arc::clone(&running));
                spawn(move || {
                    let _running = running;
                    queue.offer_timeout(0_u32, Duration::from_secs(1))
                })
            };
            let consumer = {
                let (queue, running) = (Arc::clone(&queue), Arc::clone(&running));
                spawn(move || {
                    let _running = running;
                    queue.poll_timeout(Duration::from_secs(1)).unwrap()
                })
            };
            while Arc::strong_count(&running) > 1 {
                hand.advance(Duration::from_secs(1));
                yield_now();
            }
            let put = producer.join().unwrap();
            let taken = consumer.join().unwrap();
            match put {
                Ok(()) => assert_eq!(taken, Some(0)),
                Err(rejected) => {
                    assert_eq!((rejected.element, rejected.reason), (0, Reason::TimedOut));
                    assert_eq!(taken, None);
                }
            }
        });
    }
}

#[test]
fn an_interrupt_races_with_the_match_and_one_of_them_wins() {
    for make in flavors() {
        pct(move || {
            let queue = make();
            let hands = Arc::clone(&queue);
            let got = Arc::new(Mutex::new(None));
            let report = Arc::clone(&got);
            let (task, handle) = task::new(move || {
                if let Ok(number) = hands.take() {
                    *report.lock() = Some(number);
                }
            });
            let runner = spawn(move || drop(task.run()));
            let offered = {
                let queue = Arc::clone(&queue);
                spawn(move || queue.offer(0))
            };
            handle.interrupt();
            runner.join().unwrap();
            let back = offered
                .join()
                .unwrap()
                .err()
                .map(|rejected| rejected.element);
            let mut seen: Vec<u32> = got.lock().take().into_iter().chain(back).collect();
            seen.extend(queue.poll());
            assert_each_once(seen, 1);
        });
    }
}

#[test]
fn a_transfer_that_gives_up_takes_out_its_own_element_and_no_other() {
    pct(|| {
        let queue = Arc::new(TransferQueue::unbounded());
        queue.put(0).unwrap();
        let quitter = {
            let queue = Arc::clone(&queue);
            spawn(move || {
                let mut delivery = queue.deliver(1);
                let polled = Pin::new(&mut delivery).poll(&mut Context::from_waker(Waker::noop()));
                match polled {
                    Poll::Ready(sent) => sent.map(|()| None).unwrap(),
                    Poll::Pending => delivery.into_element(),
                }
            })
        };
        let waiting = {
            let queue = Arc::clone(&queue);
            spawn(move || queue.transfer(2).unwrap())
        };
        let consumer = {
            let queue = Arc::clone(&queue);
            spawn(move || [queue.take().unwrap(), queue.take().unwrap()])
        };
        let back = quitter.join().unwrap();
        let mut seen = Vec::from(consumer.join().unwrap());
        seen.push(back.unwrap_or_else(|| queue.take().unwrap()));
        waiting.join().unwrap();
        assert_each_once(seen, 3);
    });
}
