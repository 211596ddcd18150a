//! Executors that let their bringers wait.

use crate::kit::{HOUR, SECOND};
use millpond::executor::{DirectExecutor, ExecutorExt, Lifecycle};
use millpond::pool::{Queue, Rejection, ThreadPool};
use millpond::schedule::{Every, RunOutcome, ScheduledPool};
use millpond::thread::{Body, JoinHandle, ThreadFactory, Threads};
use millpond::time::ManualClock;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{channel, sync_channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// A pool of one worker, which is busy until something is sent, and with one place in its queue.
fn busy(hand: &ManualClock, rejection: Rejection) -> (ThreadPool, std::sync::mpsc::SyncSender<()>) {
    let pool = ThreadPool::builder("busy")
        .max(1)
        .queue(Queue::bounded(1))
        .rejection(rejection)
        .clock(hand.clock())
        .build()
        .unwrap();
    let (go, wait) = sync_channel(0);
    let (begun, begins) = channel();
    pool.run(move || {
        begun.send(()).unwrap();
        let _ = wait.recv();
    })
    .unwrap();
    begins.recv().unwrap();
    (pool, go)
}

#[test]
fn what_is_due_waits_for_room_and_keeps_its_order() {
    let hand = ManualClock::new();
    let (pool, go) = busy(&hand, Rejection::Block(Duration::MAX));
    let timers = ScheduledPool::owning(pool).build();
    let order = Arc::new(Mutex::new(Vec::new()));
    let tasks: Vec<_> = (0..20_u64)
        .map(|number| {
            let order = Arc::clone(&order);
            let delay = Duration::from_millis(number);
            timers
                .schedule(delay, move || order.lock().unwrap().push(number))
                .unwrap()
        })
        .collect();
    hand.advance(SECOND);
    assert!(timers.snapshot().pending > 0, "they wait for the executor");
    assert!(tasks.iter().all(|task| !task.is_finished()));
    go.send(()).unwrap();
    for task in tasks {
        task.join().unwrap();
    }
    assert_eq!(*order.lock().unwrap(), (0..20).collect::<Vec<_>>());
    timers.close().unwrap();
}

#[test]
fn an_executor_that_refuses_cancels_the_task_and_says_so() {
    let hand = ManualClock::new();
    let (pool, go) = busy(&hand, Rejection::Abort);
    let (tell, told) = channel();
    let tell = Mutex::new(tell);
    let timers = ScheduledPool::owning(pool)
        .name("strict")
        .on_notice(move |notice| tell.lock().unwrap().send(notice.clone()).unwrap())
        .build();
    let first = timers.schedule(SECOND, || 1).unwrap();
    let second = timers.schedule(SECOND, || 2).unwrap();
    hand.advance(SECOND);
    let error = second.join().unwrap_err();
    assert_eq!(error.to_string(), "task cancelled: its executor refused it");
    let notice = told.recv().unwrap();
    assert_eq!((notice.outcome, notice.runs), (RunOutcome::Refused, 0));
    assert_eq!(timers.snapshot().refused, 1);
    go.send(()).unwrap();
    assert_eq!(first.join().unwrap(), 1);
    timers.close().unwrap();
}

#[test]
fn a_series_goes_on_when_a_run_was_refused() {
    let hand = ManualClock::new();
    let (pool, go) = busy(&hand, Rejection::Abort);
    pool.run(|| ()).unwrap();
    let (tell, told) = channel();
    let tell = Mutex::new(tell);
    let timers = ScheduledPool::owning(pool)
        .name("mill")
        .on_notice(move |notice| tell.lock().unwrap().send(notice.to_string()).unwrap())
        .build();
    let (ran, runs) = channel();
    let series = timers
        .series(Every::rate(SECOND))
        .name("beat")
        .start(move || ran.send(()).unwrap())
        .unwrap();
    hand.advance(SECOND);
    hand.advance(SECOND);
    assert_eq!((series.refused(), series.runs()), (2, 0));
    assert_eq!(series.last_outcome(), Some(RunOutcome::Refused));
    let text = "mill: a run of beat refused by the executor, or dropped by it; the series goes on";
    assert_eq!(told.recv().unwrap(), text);
    go.send(()).unwrap();
    while timers.executor().snapshot().queued > 0 {
        millpond_raw::sync::thread::yield_now();
    }
    hand.advance(SECOND);
    runs.recv().unwrap();
    assert_eq!(timers.snapshot().refused, 2);
    timers.close().unwrap();
}

#[test]
fn a_series_ends_when_its_executor_does() {
    let hand = ManualClock::new();
    let pool = ThreadPool::builder("mill")
        .max(1)
        .clock(hand.clock())
        .build()
        .unwrap();
    let timers = ScheduledPool::on(pool.clone()).on_notice(|_| ()).build();
    let series = timers.series(Every::rate(SECOND)).start(|| ()).unwrap();
    pool.close().unwrap();
    hand.advance(SECOND);
    assert!(series.join().unwrap_err().is_cancelled());
}

#[test]
fn callers_that_must_run_tasks_are_never_the_timer() {
    let hand = ManualClock::new();
    let (pool, go) = busy(&hand, Rejection::CallerRuns);
    pool.run(|| ()).unwrap();
    let timers = ScheduledPool::owning(pool).name("mill").build();
    let names = || std::thread::current().name().map(str::to_owned);
    let task = timers.schedule(SECOND, names).unwrap();
    hand.advance(SECOND);
    assert_eq!(task.join().unwrap().as_deref(), Some("mill-courier-1"));
    go.send(()).unwrap();
    timers.close().unwrap();
}

#[test]
fn with_an_executor_that_runs_in_place_the_courier_is_the_one_thread() {
    let hand = ManualClock::new();
    let timers = ScheduledPool::on(DirectExecutor::new())
        .clock(hand.clock())
        .build();
    let order = Arc::new(Mutex::new(Vec::new()));
    let tasks: Vec<_> = [3_u32, 1, 2]
        .map(|number| {
            let order = Arc::clone(&order);
            timers
                .schedule(number * SECOND, move || order.lock().unwrap().push(number))
                .unwrap()
        })
        .into();
    hand.advance(HOUR);
    tasks.into_iter().for_each(|task| task.join().unwrap());
    assert_eq!(*order.lock().unwrap(), [1, 2, 3]);
    timers.close().unwrap();
}

/// Refuses the first few threads.
#[derive(Debug)]
struct Reluctant {
    refusals: AtomicUsize,
    panics: AtomicBool,
    threads: Threads,
}

impl ThreadFactory for Reluctant {
    fn start(&self, body: Body) -> io::Result<JoinHandle<()>> {
        let left = self.refusals.load(Ordering::SeqCst);
        if left > 0 {
            self.refusals.store(left - 1, Ordering::SeqCst);
            assert!(!self.panics.load(Ordering::SeqCst), "no threads today");
            return Err(io::ErrorKind::WouldBlock.into());
        }
        self.threads.start(body)
    }
}

#[test]
fn a_courier_that_cannot_be_started_is_asked_for_again_and_nothing_is_lost() {
    for panics in [false, true] {
        let hand = ManualClock::new();
        let factory = Arc::new(Reluctant {
            refusals: AtomicUsize::new(3),
            panics: AtomicBool::new(panics),
            threads: Threads::named("late"),
        });
        let timers = ScheduledPool::on(DirectExecutor::new())
            .clock(hand.clock())
            .courier_threads(Arc::clone(&factory))
            .build();
        let task = timers.schedule(SECOND, || 7).unwrap();
        hand.advance(SECOND);
        assert_eq!(factory.refusals.load(Ordering::SeqCst), 2);
        assert_eq!(timers.snapshot().pending, 1, "it waits for a courier");
        for _ in 0..3 {
            hand.advance(Duration::from_millis(100));
        }
        assert_eq!(task.join().unwrap(), 7);
        timers.close().unwrap();
    }
}

#[test]
fn stopping_hands_back_what_the_courier_has_not_brought() {
    let hand = ManualClock::new();
    let (pool, go) = busy(&hand, Rejection::Block(Duration::MAX));
    let timers = ScheduledPool::owning(pool).build();
    let tasks: Vec<_> = (0..5)
        .map(|n| timers.schedule(SECOND, move || n).unwrap())
        .collect();
    hand.advance(SECOND);
    let back = timers.shutdown_now();
    drop(go);
    let handed_back = back.len();
    drop(back);
    timers.await_termination().unwrap();
    let ended = tasks.into_iter().map(|task| task.join());
    let cancelled = ended.filter(Result::is_err).count();
    // The one that the courier was on its way with was refused.
    assert!(
        cancelled == 5 && handed_back >= 4,
        "{handed_back} of {cancelled}"
    );
}

#[test]
fn so_does_stopping_on_an_executor_of_others() {
    let hand = ManualClock::new();
    let (pool, go) = busy(&hand, Rejection::Block(Duration::MAX));
    let timers = ScheduledPool::on(pool.clone()).build();
    let tasks: Vec<_> = (0..5)
        .map(|n| timers.schedule(SECOND, move || n).unwrap())
        .collect();
    hand.advance(SECOND);
    let back = timers.shutdown_now();
    // One is in the queue of the pool, and the courier is on its way with another, or was.
    assert!(back.len() >= 3, "{}", back.len());
    back.into_iter().for_each(|task| drop(task.run()));
    let ran = tasks.into_iter().filter_map(|task| task.join().ok());
    assert!(ran.count() >= 3);
    drop(go);
    timers.await_termination().unwrap();
    pool.close().unwrap();
}
