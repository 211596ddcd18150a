//! How futures wait in a bounded queue, beside threads.

use super::item::{Item, item};
use crate::kit::{Actor, CountingWaker, DropCount};
use millpond::queue::{AsyncQueue, QueueExt};
use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

/// Tests of how futures wait in a queue that is made by a function of its capacity.
#[macro_export]
macro_rules! asynchronous_suite {
    ($make:expr) => {
        $crate::bodies! { asynchronous, $make;
            a_future_that_need_not_wait_is_ready_at_once
            a_send_waits_for_room
            a_receive_waits_for_an_element
            a_send_that_gives_up_returns_its_element
            a_send_that_is_dropped_drops_its_element_and_passes_the_room_on
            a_receive_that_is_dropped_takes_nothing_and_passes_its_wake_up_on
            futures_and_threads_wait_together
        }
    };
}

/// Polls futures by hand and counts how often they are woken.
struct Poller {
    bell: Arc<CountingWaker>,
    waker: Waker,
}

impl Poller {
    fn new() -> Self {
        let (bell, waker) = CountingWaker::new();
        Poller { bell, waker }
    }

    fn poll<F: Future>(&self, future: Pin<&mut F>) -> Poll<F::Output> {
        future.poll(&mut Context::from_waker(&self.waker))
    }

    fn calls(&self) -> usize {
        self.bell.count()
    }
}

/// Room and an element that are there are taken without a wait.
pub fn a_future_that_need_not_wait_is_ready_at_once<Q: AsyncQueue<Item>>(
    make: &impl Fn(usize) -> Q,
) {
    let (queue, poller) = (make(1), Poller::new());
    assert!(matches!(
        poller.poll(pin!(queue.send(item(1)))),
        Poll::Ready(Ok(()))
    ));
    assert!(matches!(poller.poll(pin!(queue.recv())), Poll::Ready(got) if got == item(1)));
    assert_eq!(poller.calls(), 0);
}

/// It is woken when room comes, once.
pub fn a_send_waits_for_room<Q: AsyncQueue<Item>>(make: &impl Fn(usize) -> Q) {
    let (queue, poller) = (make(1), Poller::new());
    queue.offer(item(1)).unwrap();
    let mut sending = pin!(queue.send(item(2)));
    assert!(poller.poll(sending.as_mut()).is_pending());
    assert!(poller.poll(sending.as_mut()).is_pending());
    assert_eq!(queue.poll(), Some(item(1)));
    assert_eq!(poller.calls(), 1);
    assert!(matches!(poller.poll(sending.as_mut()), Poll::Ready(Ok(()))));
    assert_eq!(queue.snapshot(), [item(2)]);
}

/// It is woken when an element comes, once.
pub fn a_receive_waits_for_an_element<Q: AsyncQueue<Item>>(make: &impl Fn(usize) -> Q) {
    let (queue, poller) = (make(1), Poller::new());
    let mut receiving = pin!(queue.recv());
    assert!(poller.poll(receiving.as_mut()).is_pending());
    assert!(poller.poll(receiving.as_mut()).is_pending());
    queue.offer(item(1)).unwrap();
    assert_eq!(poller.calls(), 1);
    assert!(matches!(poller.poll(receiving.as_mut()), Poll::Ready(got) if got == item(1)));
}

/// The element is the caller's again.
pub fn a_send_that_gives_up_returns_its_element<Q: AsyncQueue<Item>>(make: &impl Fn(usize) -> Q) {
    let (queue, poller) = (make(1), Poller::new());
    queue.offer(item(1)).unwrap();
    let mut sending = queue.send(item(2));
    assert!(poller.poll(Pin::new(&mut sending)).is_pending());
    assert_eq!(sending.into_element(), Some(item(2)));
    assert_eq!(queue.snapshot(), [item(1)]);
}

/// A future that was woken and is dropped passes the room on.
pub fn a_send_that_is_dropped_drops_its_element_and_passes_the_room_on<Q: AsyncQueue<Item>>(
    make: &impl Fn(usize) -> Q,
) {
    let count = DropCount::new();
    let (queue, first, second) = (make(1), Poller::new(), Poller::new());
    queue.offer(item(1)).unwrap();
    let mut gone = Box::pin(queue.send(item(2).counted(&count)));
    let mut stays = pin!(queue.send(item(3)));
    assert!(first.poll(gone.as_mut()).is_pending());
    assert!(second.poll(stays.as_mut()).is_pending());
    assert_eq!(queue.poll(), Some(item(1)));
    assert_eq!(
        (first.calls(), second.calls()),
        (1, 0),
        "the oldest is called"
    );
    drop(gone);
    count.assert_alive(0);
    assert_eq!(second.calls(), 1, "the call is passed on");
    assert!(matches!(second.poll(stays.as_mut()), Poll::Ready(Ok(()))));
}

/// A future that was woken and is dropped passes the element on.
pub fn a_receive_that_is_dropped_takes_nothing_and_passes_its_wake_up_on<Q: AsyncQueue<Item>>(
    make: &impl Fn(usize) -> Q,
) {
    let (queue, first, second) = (make(1), Poller::new(), Poller::new());
    let mut gone = Box::pin(queue.recv());
    let mut stays = pin!(queue.recv());
    assert!(first.poll(gone.as_mut()).is_pending());
    assert!(second.poll(stays.as_mut()).is_pending());
    queue.offer(item(1)).unwrap();
    assert_eq!(
        (first.calls(), second.calls()),
        (1, 0),
        "the oldest is called"
    );
    drop(gone);
    assert_eq!(second.calls(), 1, "the call is passed on");
    assert!(matches!(second.poll(stays.as_mut()), Poll::Ready(got) if got == item(1)));
}

/// One line for both: a thread that puts wakes a future, and a future a thread.
pub fn futures_and_threads_wait_together<Q: AsyncQueue<Item> + 'static>(
    make: &impl Fn(usize) -> Q,
) {
    let (queue, poller) = (Arc::new(make(1)), Poller::new());
    let mut receiving = pin!(queue.recv());
    assert!(poller.poll(receiving.as_mut()).is_pending());
    let own = Arc::clone(&queue);
    Actor::start("producer", move || own.put(item(1)).unwrap()).finish();
    assert!(matches!(poller.poll(receiving.as_mut()), Poll::Ready(got) if got == item(1)));

    let own = Arc::clone(&queue);
    let consumer = Actor::start("consumer", move || own.take());
    consumer.await_parked("queue.take");
    assert!(matches!(
        poller.poll(pin!(queue.send(item(2)))),
        Poll::Ready(Ok(()))
    ));
    assert_eq!(consumer.finish(), Ok(item(2)));
}
