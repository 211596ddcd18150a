//! Alarms on a clock with a timer of its own: the thread comes with the first alarm and goes when it
//! is idle; and if it cannot be had, futures are woken at once, as often as they ask.
//!
//! The races are in `shuttle_library/alarm.rs`.

use millpond::queue::{AsyncQueue, DelayQueue};
use millpond::thread::{Body, JoinHandle, ThreadFactory, Threads};
use millpond::time::{Clock, ManualClock};
use millpond_testkit::{CountingWaker, until};
use std::future::Future;
use std::io;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

const SECOND: Duration = Duration::from_secs(1);

/// The behaviour of a factory at the next request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Next {
    Start,
    Refuse,
    /// Says that it has started a thread, and has not.
    Lose,
    Panic,
}

#[derive(Debug)]
struct Moody {
    moods: Vec<Next>,
    asked: AtomicUsize,
    ended: Arc<AtomicUsize>,
}

impl Moody {
    /// In these moods first, and starts threads after that.
    fn new(moods: &[Next]) -> Arc<Self> {
        Arc::new(Moody {
            moods: moods.to_vec(),
            asked: AtomicUsize::new(0),
            ended: Arc::default(),
        })
    }

    fn asked(&self) -> usize {
        self.asked.load(Ordering::SeqCst)
    }

    fn ended(&self) -> usize {
        self.ended.load(Ordering::SeqCst)
    }
}

impl ThreadFactory for Moody {
    fn start(&self, body: Body) -> io::Result<JoinHandle<()>> {
        let turn = self.asked.fetch_add(1, Ordering::SeqCst);
        let threads = Threads::named("moody");
        match self.moods.get(turn).copied().unwrap_or(Next::Start) {
            Next::Start => {
                let ended = Arc::clone(&self.ended);
                threads.start(Box::new(move || {
                    body();
                    ended.fetch_add(1, Ordering::SeqCst);
                }))
            }
            Next::Refuse => Err(io::ErrorKind::WouldBlock.into()),
            Next::Lose => threads.start(Box::new(|| ())),
            Next::Panic => panic!("the factory is moody"),
        }
    }
}

fn poll<F: Future + Unpin>(future: &mut F, bell: &Arc<CountingWaker>) -> Poll<F::Output> {
    let waker = Waker::from(Arc::clone(bell));
    Pin::new(future).poll(&mut Context::from_waker(&waker))
}

/// A hand, and a queue by its clock with one element that is due in ten seconds.
fn bread(threads: &Arc<Moody>) -> (ManualClock, DelayQueue<&'static str>) {
    let hand = ManualClock::new();
    let clock = hand.clock().with_timer(Arc::clone(threads));
    let queue = DelayQueue::new().with_clock(clock);
    queue.offer_after("bread", 10 * SECOND).unwrap();
    (hand, queue)
}

#[test]
fn a_future_whose_timer_thread_is_refused_is_woken_at_once_and_asks_again_with_every_poll() {
    let threads = Moody::new(&[Next::Refuse; 9]);
    let (hand, queue) = bread(&threads);
    let bell = Arc::new(CountingWaker::default());
    let mut receiving = queue.recv();
    for look in 1..=3 {
        assert!(poll(&mut receiving, &bell).is_pending());
        assert_eq!(threads.asked(), look);
        assert_eq!(bell.count(), look, "one ring for each look");
    }
    hand.advance(10 * SECOND);
    assert_eq!(poll(&mut receiving, &bell), Poll::Ready("bread"));
    assert_eq!(threads.asked(), 3, "what is there needs no alarm");
}

#[test]
fn the_timer_recovers_from_a_factory_that_fails_loses_or_panics_once() {
    for mood in [Next::Refuse, Next::Lose, Next::Panic] {
        let threads = Moody::new(&[mood]);
        let (hand, queue) = bread(&threads);
        let bell = Arc::new(CountingWaker::default());
        let mut receiving = queue.recv();
        assert!(poll(&mut receiving, &bell).is_pending());
        assert_eq!(bell.count(), 1, "{mood:?}: it is woken at once");

        assert!(poll(&mut receiving, &bell).is_pending());
        assert_eq!(threads.asked(), 2, "{mood:?}: it asks again");
        until("the thread sleeps", || hand.sleepers() == 1);
        assert_eq!(bell.count(), 1, "{mood:?}: now somebody watches the time");
        hand.advance(10 * SECOND);
        until("it is woken", || bell.count() == 2);
        assert_eq!(poll(&mut receiving, &bell), Poll::Ready("bread"));
    }
}

#[test]
fn alarms_in_a_row_share_one_thread_which_ends_when_it_has_had_none_for_a_second() {
    let threads = Moody::new(&[]);
    let (hand, queue) = bread(&threads);
    let bell = Arc::new(CountingWaker::default());
    for meal in 1..=3 {
        let mut receiving = queue.recv();
        assert!(poll(&mut receiving, &bell).is_pending());
        until("the thread sleeps", || hand.sleepers() == 1);
        hand.advance(10 * SECOND);
        until("it is woken", || bell.count() == meal);
        assert_eq!(poll(&mut receiving, &bell), Poll::Ready("bread"));
        queue.offer_after("bread", 10 * SECOND).unwrap();
    }
    assert_eq!((threads.asked(), threads.ended()), (1, 0));

    until("the thread is idle", || hand.sleepers() == 1);
    hand.advance(SECOND);
    until("the thread has ended", || threads.ended() == 1);
    assert_eq!(hand.sleepers(), 0);
    let mut receiving = queue.recv();
    assert!(poll(&mut receiving, &bell).is_pending());
    assert_eq!(threads.asked(), 2, "another comes for the next alarm");
}

#[test]
fn alarms_for_the_same_instant_all_fire() {
    let threads = Moody::new(&[]);
    let hand = ManualClock::new();
    let clock = hand.clock().with_timer(Arc::clone(&threads));
    let queues = [(); 3].map(|()| DelayQueue::new().with_clock(clock.clone()));
    let bells = [(); 3].map(|()| Arc::new(CountingWaker::default()));
    let mut receiving = Vec::new();
    for (queue, bell) in queues.iter().zip(&bells) {
        queue.offer_after("bread", 10 * SECOND).unwrap();
        let mut one = queue.recv();
        assert!(poll(&mut one, bell).is_pending());
        receiving.push(one);
    }
    hand.advance(10 * SECOND);
    for bell in &bells {
        until("each is woken", || bell.count() == 1);
    }
    assert_eq!(threads.asked(), 1);
}

#[test]
fn a_cancelled_alarm_drops_its_waker_and_never_fires() {
    let threads = Moody::new(&[]);
    let (hand, queue) = bread(&threads);
    let bell = Arc::new(CountingWaker::default());
    let mut receiving = queue.recv();
    assert!(poll(&mut receiving, &bell).is_pending());
    assert!(poll(&mut receiving, &bell).is_pending());
    assert!(Arc::strong_count(&bell) > 1);
    drop(receiving);
    assert_eq!(Arc::strong_count(&bell), 1, "nobody holds the waker");
    until("the thread sleeps", || hand.sleepers() == 1);
    hand.advance(10 * SECOND);
    until("the thread has ended", || {
        hand.advance(SECOND);
        threads.ended() == 1
    });
    assert_eq!(bell.count(), 0);
}

#[test]
fn the_systems_clock_can_have_a_timer_of_its_own() {
    let threads = Moody::new(&[]);
    let clock = Clock::system().with_timer(Arc::clone(&threads));
    let queue = DelayQueue::new().with_clock(clock.clone());
    let start = clock.now();
    queue
        .offer_after("bread", Duration::from_millis(5))
        .unwrap();
    let bell = Arc::new(CountingWaker::default());
    let mut receiving = pin!(queue.recv());
    let mut polled = poll(&mut receiving, &bell);
    if polled.is_pending() {
        assert_eq!(threads.asked(), 1);
        until("it is woken", || bell.count() > 0);
        polled = poll(&mut receiving, &bell);
    }
    assert_eq!(polled, Poll::Ready("bread"));
    assert!(clock.now() >= start + Duration::from_millis(5));
}
