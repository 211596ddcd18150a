//! The events of a pool, and the factory that starts its threads.

#![cfg(not(any(millpond_loom, millpond_shuttle)))]
#![allow(
    clippy::disallowed_types,
    clippy::disallowed_methods,
    reason = "a test stands outside: it uses std's threads and channels beside what it tests"
)]

use millpond::executor::{Executor, ExecutorExt, Lifecycle, SerialExecutor};
use millpond::pool::{PoolEvent, Queue, RejectionPolicy, ThreadPool};
use millpond::schedule::ScheduledPool;
use millpond::task::{CancelReason, TaskSpec};
use millpond::thread::{Body, JoinHandle, ThreadFactory, Threads};
use millpond::time::ManualClock;
use millpond_testkit::watch;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, mpsc};
use std::time::Duration;

const REFUSALS: u64 = 1_000;

/// A thread for each event that a slow listener has not heard would be a thousand threads.
#[test]
fn one_thread_tells_what_a_pool_has_to_tell_and_what_is_too_much_is_counted() {
    let _watch = watch();
    let (go, may_go) = mpsc::channel::<()>();
    let (tell, told) = mpsc::channel();
    let at_once = Arc::new(AtomicUsize::new(0));
    let most = Arc::new(AtomicUsize::new(0));
    let (now, highest, gate) = (
        Arc::clone(&at_once),
        Arc::clone(&most),
        Mutex::new(Some(may_go)),
    );
    let listener = move |event: &PoolEvent| {
        highest.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
        // The first waits until all have come.
        let may_go = gate.lock().unwrap().take();
        if let Some(may_go) = may_go {
            let _ = may_go.recv();
        }
        now.fetch_sub(1, Ordering::SeqCst);
        let count = match event {
            PoolEvent::Rejected(_) => (1, 0),
            PoolEvent::Dropped { events, pool } => {
                assert_eq!(pool, "mill");
                (0, *events)
            }
            other => panic!("nothing else has happened: {other}"),
        };
        let _ = tell.send(count);
    };
    let at_most_every = Duration::ZERO;
    let mill = ThreadPool::builder("mill").core(1).max(1);
    let mill = mill.queue(Queue::hand_off()).on_event(listener);
    let mill = mill.rejection(RejectionPolicy::Report { at_most_every });
    let pool = mill.build().unwrap();
    let (end, busy) = mpsc::channel::<()>();
    pool.execute(move || while busy.recv().is_ok() {}).unwrap();
    for _ in 0..REFUSALS {
        assert!(pool.execute(|| ()).is_err());
    }
    drop(go);
    let (mut heard, mut dropped) = (0, 0);
    while heard + dropped < REFUSALS {
        let (one, others) = told.recv().unwrap();
        (heard, dropped) = (heard + one, dropped + others);
    }
    assert_eq!(heard + dropped, REFUSALS);
    assert!(heard <= 66, "{heard} waited to be heard");
    assert_eq!(most.load(Ordering::SeqCst), 1);
    // And it goes on: the next one is heard.
    assert!(pool.execute(|| ()).is_err());
    assert_eq!(told.recv().unwrap(), (1, 0));
    drop(end);
}

#[test]
fn the_thread_factory_that_a_pool_reports_is_the_very_one_that_it_was_given() {
    let _watch = watch();
    let given: Arc<dyn ThreadFactory> = Arc::new(Threads::named("mill"));
    let pool = ThreadPool::builder("mill").threads(Arc::clone(&given));
    let pool = pool.build().unwrap();
    assert!(Arc::ptr_eq(&pool.thread_factory(), &given));
    // Of a type that is known, too.
    let given = Arc::new(Threads::named("mill"));
    let pool = ThreadPool::builder("mill").threads(Arc::clone(&given));
    let pool = pool.build().unwrap();
    let given: Arc<dyn ThreadFactory> = given;
    assert!(Arc::ptr_eq(&pool.thread_factory(), &given));
}

/// Keeps the only worker of a pool busy until the sender is dropped.
fn hold(pool: &ThreadPool) -> mpsc::Sender<()> {
    let (go, may_go) = mpsc::channel::<()>();
    let busy = pool.submit(move || may_go.recv().is_err()).unwrap();
    while !busy.is_started() {
        std::thread::yield_now();
    }
    go
}

const SECOND: Duration = Duration::from_secs(1);
const DROPPED: u64 = 28;

/// A pool by a manual clock, and the number of dropped tasks in each of its events.
fn telling(hand: &ManualClock) -> (ThreadPool, mpsc::Receiver<u64>) {
    let (tell, told) = mpsc::channel();
    let pool = ThreadPool::builder("mill").core(1).max(1);
    let pool = pool.clock(hand.clock()).on_event(move |event| {
        let PoolEvent::DroppedDetached(report) = event else {
            panic!("nothing else has happened: {event}");
        };
        let _ = tell.send(report.dropped);
    });
    (pool.build().unwrap(), told)
}

/// Lets so many tasks without a handle expire, and waits until the worker has met them.
fn drop_some(executor: &impl Executor, pool: &ThreadPool, hand: &ManualClock) {
    let go = hold(pool);
    let soon = hand.clock().deadline(SECOND);
    for _ in 0..DROPPED {
        let hint = TaskSpec::new().name("hint").deadline(soon);
        executor.execute_with(hint, || unreachable!()).unwrap();
    }
    hand.advance(SECOND);
    drop(go);
    executor.submit(|| ()).unwrap().join().unwrap();
}

#[test]
fn of_many_that_are_dropped_one_is_told_at_once_and_the_rest_when_the_pause_is_over() {
    let _watch = watch();
    let hand = ManualClock::new();
    let (pool, told) = telling(&hand);
    drop_some(&pool, &pool, &hand);
    assert_eq!(told.try_iter().collect::<Vec<_>>(), [1]);
    hand.advance(10 * SECOND);
    assert_eq!(told.try_iter().collect::<Vec<_>>(), [DROPPED - 1]);
    // And once more: the alarm is set anew.
    drop_some(&pool, &pool, &hand);
    hand.advance(10 * SECOND);
    assert_eq!(told.try_iter().sum::<u64>(), DROPPED);
    assert_eq!(pool.snapshot().dropped_detached, 2 * DROPPED);
    pool.close().unwrap();
    assert_eq!(told.try_iter().count(), 0);
}

#[test]
fn what_is_not_told_yet_is_told_when_the_pool_terminates() {
    let _watch = watch();
    let hand = ManualClock::new();
    let (pool, told) = telling(&hand);
    drop_some(&pool, &pool, &hand);
    pool.close().unwrap();
    assert_eq!(told.try_iter().collect::<Vec<_>>(), [1, DROPPED - 1]);
    assert_eq!(pool.snapshot().dropped_detached, DROPPED);
}

#[test]
fn what_a_serial_executor_drops_is_counted_and_told_by_the_pool_below() {
    let _watch = watch();
    let hand = ManualClock::new();
    let (pool, told) = telling(&hand);
    // Through all that may stand in between.
    let timers = Arc::new(ScheduledPool::on(pool.clone()).build());
    let serial = SerialExecutor::new(timers.clone());
    drop_some(&Box::new(serial.key("alice")), &pool, &hand);
    timers.close().unwrap();
    pool.close().unwrap();
    assert_eq!(pool.snapshot().dropped_detached, DROPPED);
    assert_eq!(told.try_iter().sum::<u64>(), DROPPED);
}

/// Accepts every thread, and lets it die before its first step, when the sender is dropped.
#[derive(Debug)]
struct Stillborn(Arc<Mutex<mpsc::Receiver<()>>>);

impl ThreadFactory for Stillborn {
    fn start(&self, body: Body) -> std::io::Result<JoinHandle<()>> {
        let may_die = Arc::clone(&self.0);
        Threads::named("stillborn").start(Box::new(move || {
            let _ = may_die.lock().unwrap().recv();
            drop(body);
        }))
    }
}

/// The pool had said yes to it, so it is not enough to cancel it.
#[test]
fn a_task_that_is_cancelled_because_its_thread_has_died_is_told() {
    let _watch = watch();
    let (tell, told) = mpsc::channel();
    let (die, may_die) = mpsc::channel();
    let pool = ThreadPool::builder("mill").core(1).max(1);
    let pool = pool.threads(Stillborn(Arc::new(Mutex::new(may_die))));
    let pool = pool.on_event(move |event| drop(tell.send(event.clone())));
    let pool = pool.build().unwrap();
    pool.execute(|| unreachable!()).unwrap();
    drop(die);
    let timeout = Duration::from_secs(60);
    let PoolEvent::DroppedDetached(report) = told.recv_timeout(timeout).unwrap() else {
        panic!("nothing else has happened");
    };
    assert_eq!((report.reason, report.dropped), (CancelReason::Rejected, 1));
    let snapshot = pool.snapshot();
    assert_eq!((snapshot.dropped_detached, snapshot.cancelled), (1, 1));
}

/// Each event causes the next one.
#[test]
fn a_listener_that_causes_events_by_a_manual_clock_is_not_called_inside_itself() {
    let _watch = watch();
    let own: Arc<OnceLock<ThreadPool>> = Arc::default();
    let depth = Arc::new(AtomicUsize::new(0));
    let deepest = Arc::new(AtomicUsize::new(0));
    let heard = Arc::new(AtomicUsize::new(0));
    let (inner, most, count) = (own.clone(), deepest.clone(), heard.clone());
    let listener = move |_: &PoolEvent| {
        count.fetch_add(1, Ordering::SeqCst);
        let here = depth.fetch_add(1, Ordering::SeqCst) + 1;
        most.fetch_max(here, Ordering::SeqCst);
        if here < 8 {
            assert!(inner.get().unwrap().execute(|| ()).is_err());
        }
        depth.fetch_sub(1, Ordering::SeqCst);
    };
    let (hand, at_most_every) = (ManualClock::new(), Duration::ZERO);
    let mill = ThreadPool::builder("mill").core(1).max(1);
    let mill = mill.queue(Queue::hand_off()).clock(hand.clock());
    let mill = mill.rejection(RejectionPolicy::Report { at_most_every });
    let pool = mill.on_event(listener).build().unwrap();
    assert!(own.set(pool.clone()).is_ok());
    let go = hold(&pool);
    assert!(pool.execute(|| ()).is_err());
    assert_eq!(deepest.load(Ordering::SeqCst), 1);
    // The submitter has told many, and comes back all the same; the rest is told when time goes on.
    let so_far = heard.load(Ordering::SeqCst);
    assert!(so_far > 1, "the nested one is told afterwards");
    hand.advance(SECOND);
    assert!(heard.load(Ordering::SeqCst) > so_far);
    drop(go);
}
