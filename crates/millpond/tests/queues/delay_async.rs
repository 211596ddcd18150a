//! A delay queue in async code: a future is woken by an element that comes and by a time that comes.

use millpond::queue::{AsyncQueue, DelayQueue};
use millpond::time::ManualClock;
use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::sync::mpsc;
use std::task::{Context, Poll, Wake, Waker};
use std::time::{Duration, Instant};

const LONG: Duration = Duration::from_secs(20);

struct Bell(mpsc::Sender<()>);

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        let _ = self.0.send(());
    }
}

fn bell() -> (Waker, mpsc::Receiver<()>) {
    let (ring, rung) = mpsc::channel();
    (Waker::from(Arc::new(Bell(ring))), rung)
}

/// Polls whenever the waker is called, until the future is ready.
fn block_on<R>(future: impl Future<Output = R>) -> R {
    let (waker, rung) = bell();
    let mut future = pin!(future);
    loop {
        if let Poll::Ready(ready) = future.as_mut().poll(&mut Context::from_waker(&waker)) {
            return ready;
        }
        rung.recv_timeout(LONG).expect("somebody rings");
    }
}

#[test]
fn a_future_is_woken_when_a_manual_clock_reaches_the_time() {
    let hand = ManualClock::new();
    let queue = DelayQueue::new().with_clock(hand.clock());
    queue
        .offer_after("bread", Duration::from_secs(3600))
        .unwrap();
    let (waker, rung) = bell();
    let mut context = Context::from_waker(&waker);
    let mut receiving = pin!(queue.recv());
    assert!(receiving.as_mut().poll(&mut context).is_pending());
    hand.advance(Duration::from_secs(3599));
    assert!(receiving.as_mut().poll(&mut context).is_pending());
    hand.advance(Duration::from_secs(1));
    rung.recv_timeout(LONG).expect("the time has come");
    assert_eq!(receiving.poll(&mut context), Poll::Ready("bread"));
    assert_eq!(hand.sleepers(), 0, "nothing is left behind");
}

#[test]
fn futures_on_the_systems_clock_get_what_is_due_in_order_and_not_early() {
    let queue = DelayQueue::new();
    let start = Instant::now();
    for (name, delay) in [("third", 30), ("first", 10), ("second", 20)] {
        let delay = Duration::from_millis(delay);
        queue.offer_after((name, start + delay), delay).unwrap();
    }
    for expected in ["first", "second", "third"] {
        let (name, due) = block_on(queue.recv());
        assert_eq!(name, expected);
        assert!(Instant::now() >= due, "{name} came early");
    }
}

#[test]
fn an_element_that_is_due_sooner_wakes_a_future_that_waits_for_a_later_one() {
    let queue = Arc::new(DelayQueue::new());
    queue
        .offer_after("late", Duration::from_secs(3600))
        .unwrap();
    let (waker, rung) = bell();
    let mut receiving = pin!(queue.recv());
    assert!(
        receiving
            .as_mut()
            .poll(&mut Context::from_waker(&waker))
            .is_pending()
    );
    queue.offer_after("soon", Duration::ZERO).unwrap();
    rung.recv_timeout(LONG).expect("there is something to take");
    let polled = receiving.poll(&mut Context::from_waker(&waker));
    assert_eq!(polled, Poll::Ready("soon"));
}

#[test]
fn a_future_that_is_dropped_takes_its_alarm_along_and_another_takes_over() {
    let hand = ManualClock::new();
    let queue = DelayQueue::new().with_clock(hand.clock());
    queue.offer_after("bread", Duration::from_secs(1)).unwrap();
    let ((first, _), (second, rung)) = (bell(), bell());
    let mut leader = Box::pin(queue.recv());
    let mut follower = pin!(queue.recv());
    assert!(
        leader
            .as_mut()
            .poll(&mut Context::from_waker(&first))
            .is_pending()
    );
    assert!(
        follower
            .as_mut()
            .poll(&mut Context::from_waker(&second))
            .is_pending()
    );
    assert_eq!(hand.sleepers(), 1, "one watches the time for all");
    drop(leader);
    rung.recv_timeout(LONG)
        .expect("somebody must take over the watch");
    assert!(
        follower
            .as_mut()
            .poll(&mut Context::from_waker(&second))
            .is_pending()
    );
    assert_eq!(hand.sleepers(), 1);
    hand.advance(Duration::from_secs(1));
    rung.recv_timeout(LONG).expect("the time has come");
    let polled = follower.poll(&mut Context::from_waker(&second));
    assert_eq!(polled, Poll::Ready("bread"));
}
