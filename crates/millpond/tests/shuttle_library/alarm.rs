//! PCT schedules of alarms on a clock with a timer of its own: futures that set them, poll again and drop them,
//! while the clock advances, the timer's thread starts and ends, and threads are refused.
//!
//! The futures are those of delay queues, each with one element. The clock is advanced by a thread of the
//! model, so that time comes before, after or in the middle of every step. A future that is forgotten
//! shows as a deadlock, which shuttle reports: the thread that polls it sleeps until it is woken.
//!
//! Each scenario runs under 500 schedules for each depth.
#![allow(
    clippy::disallowed_types,
    reason = "what the test counts is std's, so that the checker does not branch on it"
)]

use millpond::queue::{AsyncQueue, DelayQueue};
use millpond::thread::{Body, JoinHandle, ThreadFactory};
use millpond::time::{Clock, ManualClock};
use millpond_raw::park::{self, Site};
use millpond_raw::sync::Mutex;
use millpond_raw::sync::thread::{self, spawn};
use std::future::Future;
use std::io;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

const SOON: Duration = Duration::from_secs(10);
const LATER: Duration = Duration::from_secs(20);

/// Longer than the thread stays without an alarm, and shorter than `SOON`.
const IDLE: Duration = Duration::from_secs(5);

fn pct(scenario: impl Fn() + Send + Sync + 'static) {
    crate::shuttle_drive::pct(500, scenario);
}

/// Counts the threads that it starts, and refuses a given number of them. What it does with the body
/// of one that it refuses differs: a thread may also start and die before it runs.
#[derive(Clone, Debug, Default)]
pub(crate) struct Moody(Arc<Counts>);

#[derive(Debug, Default)]
pub(crate) struct Counts {
    to_refuse: AtomicUsize,
    to_lose: AtomicUsize,
    asked: AtomicUsize,
    running: AtomicUsize,
    most_at_once: AtomicUsize,
}

impl Moody {
    pub(crate) fn refusing(count: usize) -> Self {
        let threads = Moody::default();
        threads.0.to_refuse.store(count, Ordering::SeqCst);
        threads
    }

    pub(crate) fn losing(count: usize) -> Self {
        let threads = Moody::default();
        threads.0.to_lose.store(count, Ordering::SeqCst);
        threads
    }

    fn one_less(count: &AtomicUsize) -> bool {
        count
            .fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| {
                left.checked_sub(1)
            })
            .is_ok()
    }

    pub(crate) fn asked(&self) -> usize {
        self.0.asked.load(Ordering::SeqCst)
    }

    /// Lets time pass until the last thread has ended, and checks that there were never two.
    pub(crate) fn end(&self, hand: &ManualClock) {
        while self.0.running.load(Ordering::SeqCst) > 0 {
            hand.advance(IDLE);
            thread::yield_now();
        }
        assert!(self.0.most_at_once.load(Ordering::SeqCst) <= 1, "two rang");
        assert_eq!(hand.sleepers(), 0, "somebody still waits for a time");
    }
}

impl ThreadFactory for Moody {
    fn start(&self, body: Body) -> io::Result<JoinHandle<()>> {
        self.0.asked.fetch_add(1, Ordering::SeqCst);
        // Others get in between the wish and the answer.
        thread::yield_now();
        if Self::one_less(&self.0.to_refuse) {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        if Self::one_less(&self.0.to_lose) {
            return Ok(spawn(move || drop(body)));
        }
        let counts = Arc::clone(&self.0);
        let before = counts.running.fetch_add(1, Ordering::SeqCst);
        counts.most_at_once.fetch_max(before + 1, Ordering::SeqCst);
        Ok(spawn(move || {
            body();
            counts.running.fetch_sub(1, Ordering::SeqCst);
        }))
    }
}

/// A queue with one element, which is due after `delay`.
fn due_after(delay: Duration, clock: &Clock) -> DelayQueue<u8> {
    let queue = DelayQueue::new().with_clock(clock.clone());
    queue.offer_after(1, delay).expect("there is room");
    queue
}

/// Polls whenever it is woken, until the future is ready. Returns how often it polled.
fn block_on<R>(future: impl Future<Output = R>) -> (R, usize) {
    let here = park::current();
    let waker = here.waker();
    let mut future = pin!(future);
    let mut polls = 0;
    loop {
        polls += 1;
        if let Poll::Ready(ready) = future.as_mut().poll(&mut Context::from_waker(&waker)) {
            return (ready, polls);
        }
        here.park(Site::new("test.block_on"));
        // As an executor does with a future that wakes itself.
        thread::yield_now();
    }
}

fn in_thread(delay: Duration, clock: &Clock) -> JoinHandle<()> {
    let queue = due_after(delay, clock);
    spawn(move || {
        block_on(queue.recv());
    })
}

/// Advances the clock, step by step.
fn mover(hand: &ManualClock, by: Duration) -> JoinHandle<()> {
    let hand = hand.clone();
    spawn(move || {
        for _ in 0..by.as_secs() / IDLE.as_secs() {
            hand.advance(IDLE);
        }
    })
}

/// Runs the scenario on a manual clock whose timer has its threads from `make`. In the end the timer
/// must have let them go.
fn with_timer(
    make: impl Fn() -> Moody + Send + Sync + 'static,
    scenario: impl Fn(&ManualClock, &Clock, &Moody) + Send + Sync + 'static,
) {
    pct(move || {
        let (hand, threads) = (ManualClock::new(), make());
        let clock = hand.clock().with_timer(threads.clone());
        scenario(&hand, &clock, &threads);
        threads.end(&hand);
    });
}

/// Two threads wait for different times.
fn two_wait(hand: &ManualClock, clock: &Clock, _: &Moody) {
    join_all([
        in_thread(LATER, clock),
        in_thread(SOON, clock),
        mover(hand, LATER),
    ]);
}

fn join_all(threads: impl IntoIterator<Item = JoinHandle<()>>) {
    for thread in threads {
        thread.join().expect("it does not panic");
    }
}

#[test]
fn a_thread_that_waits_for_a_time_is_woken_when_it_comes() {
    with_timer(Moody::default, two_wait);
}

#[test]
fn an_alarm_that_becomes_the_next_one_does_not_wait_for_the_other() {
    with_timer(Moody::default, |hand, clock, _| {
        let later = in_thread(LATER, clock);
        // The last step may come between the look that finds it early and the alarm. Then no step is
        // left that would wake the thread.
        join_all([in_thread(SOON, clock), mover(hand, SOON)]);
        join_all([later, mover(hand, SOON)]);
    });
}

#[test]
fn a_thread_that_ends_leaves_no_alarm_behind_and_another_comes_for_the_next() {
    with_timer(Moody::default, |hand, clock, _| {
        // Each alarm comes when the thread of the one before is about to end, or has.
        let done = Arc::new(AtomicBool::new(false));
        let says_so = Arc::clone(&done);
        let clock = clock.clone();
        let waits = spawn(move || {
            for _ in 0..3 {
                block_on(due_after(Duration::from_secs(1), &clock).recv());
            }
            says_so.store(true, Ordering::SeqCst);
        });
        while !done.load(Ordering::SeqCst) {
            hand.advance(IDLE);
            thread::yield_now();
        }
        join_all([waits]);
    });
}

#[test]
fn cancelling_an_alarm_cancels_no_other() {
    with_timer(Moody::default, |hand, clock, _| {
        let fickle = due_after(SOON, clock);
        let drops = spawn(move || {
            let here = park::current();
            let waker = here.waker();
            let mut receiving = Box::pin(fickle.recv());
            // A second look renews the alarm.
            for _ in 0..2 {
                let _ = receiving.as_mut().poll(&mut Context::from_waker(&waker));
            }
            drop(receiving);
        });
        join_all([drops, in_thread(LATER, clock), mover(hand, LATER)]);
    });
}

#[test]
fn the_waker_of_the_latest_poll_is_the_one_that_is_woken() {
    with_timer(Moody::default, |hand, clock, _| {
        let queue = due_after(SOON, clock);
        let waits = spawn(move || {
            let mut receiving = queue.recv();
            // A first poll, with a waker that does nothing.
            let mut context = Context::from_waker(Waker::noop());
            if Pin::new(&mut receiving).poll(&mut context).is_pending() {
                block_on(receiving);
            }
        });
        join_all([waits, mover(hand, LATER)]);
    });
}

#[test]
fn threads_that_are_refused_or_lost_leave_no_alarm_forgotten() {
    for make in [Moody::refusing as fn(usize) -> Moody, Moody::losing] {
        with_timer(move || make(2), two_wait);
    }
}

#[test]
fn without_any_thread_futures_poll_until_the_time_comes() {
    let refusing = || Moody::refusing(usize::MAX);
    with_timer(refusing, |hand, clock, threads| {
        let queue = due_after(SOON, clock);
        let asked = threads.clone();
        let waits = spawn(move || {
            let (_, polls) = block_on(queue.recv());
            // Every look that found it early asked for a thread once.
            assert_eq!(asked.asked(), polls - 1);
        });
        join_all([waits, mover(hand, LATER)]);
    });
}

/// A future that is polled by its own waker, on the thread that fires the alarm.
struct Inside {
    place: Mutex<Place>,
    is_done: AtomicBool,
    done: Waker,
}

/// The future while it is not being polled. It is polled under no lock.
struct Place {
    future: Option<Pin<Box<dyn Future<Output = ()> + Send>>>,
    /// Whether it was woken while it was being polled.
    is_woken: bool,
}

impl Wake for Inside {
    fn wake(self: Arc<Self>) {
        let waker = Waker::from(Arc::clone(&self));
        loop {
            let mut future = {
                let mut place = self.place.lock();
                place.is_woken = true;
                let Some(future) = place.future.take() else {
                    return;
                };
                place.is_woken = false;
                future
            };
            let polled = future.as_mut().poll(&mut Context::from_waker(&waker));
            if polled.is_ready() {
                drop(future);
                self.is_done.store(true, Ordering::SeqCst);
                self.done.wake_by_ref();
                return;
            }
            let mut place = self.place.lock();
            place.future = Some(future);
            if !place.is_woken {
                return;
            }
        }
    }
}

/// Sets the next alarm from inside the waker that the previous alarm wakes, three times; while another
/// thread sets earlier and later ones and cancels them.
#[test]
fn an_alarm_that_is_set_from_inside_a_waker_is_not_lost() {
    with_timer(Moody::default, |hand, clock, _| {
        let queue = due_after(IDLE, clock);
        queue.offer_after(2, SOON).expect("there is room");
        queue.offer_after(3, LATER).expect("there is room");
        let inside = Arc::new(Inside {
            place: Mutex::new(Place {
                future: Some(Box::pin(async move {
                    for element in 1..=3 {
                        assert_eq!(queue.recv().await, element);
                    }
                })),
                is_woken: false,
            }),
            is_done: AtomicBool::new(false),
            done: park::current().waker(),
        });
        let fickle = spawn({
            let clock = clock.clone();
            move || {
                for delay in [LATER, SOON, IDLE] {
                    let queue = due_after(delay, &clock);
                    let mut receiving = queue.recv();
                    let mut context = Context::from_waker(Waker::noop());
                    let _ = Pin::new(&mut receiving).poll(&mut context);
                    thread::yield_now();
                }
            }
        });
        let moves = mover(hand, LATER);
        Arc::clone(&inside).wake();
        join_all([fickle, moves]);
        // No step is left that would wake the thread: an alarm that is set too late must do it itself.
        while !inside.is_done.load(Ordering::SeqCst) {
            park::current().park(Site::new("test.inside"));
        }
    });
}
