//! A pool that is refused threads asks for them again, but not for each task.

#![cfg(not(any(millpond_loom, millpond_shuttle)))]
#![allow(
    clippy::disallowed_types,
    clippy::disallowed_methods,
    reason = "a test stands outside: it uses std's threads and channels beside what it tests"
)]

use millpond::executor::{Executor, ExecutorExt, Lifecycle, RejectReason};
use millpond::forkjoin::{ForkJoinPool, RunWarning, blocking};
use millpond::manage::{Managed, Measurement};
use millpond::pool::{Queue, RejectionPolicy, ThreadPool};
use millpond::queue::FifoQueue;
use millpond::schedule::ScheduledPool;
use millpond::thread::{Body, JoinHandle, ThreadFactory, Threads};
use millpond::time::{Clock, ManualClock};
use millpond_testkit::watch;
use std::fmt;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// So many may fail in a row before there are pauses.
const FREE: usize = 8;

/// A pause.
const PAUSE: Duration = Duration::from_millis(5);

/// Starts some threads, and refuses more.
#[derive(Clone, Debug, Default)]
struct Few {
    may_start: Arc<AtomicUsize>,
    asked: Arc<AtomicUsize>,
}

impl Few {
    fn allow(&self, threads: usize) {
        self.may_start.store(threads, Ordering::SeqCst);
    }

    fn asked(&self) -> usize {
        self.asked.load(Ordering::SeqCst)
    }
}

impl ThreadFactory for Few {
    fn start(&self, body: Body) -> io::Result<JoinHandle<()>> {
        self.asked.fetch_add(1, Ordering::SeqCst);
        let one_less = |left: usize| left.checked_sub(1);
        match self
            .may_start
            .fetch_update(Ordering::SeqCst, Ordering::SeqCst, one_less)
        {
            Ok(_) => Threads::named("few").start(body),
            Err(_) => Err(io::Error::from_raw_os_error(11)),
        }
    }
}

fn pool(workers: usize, threads: &Few, clock: Clock) -> ThreadPool {
    let mill = ThreadPool::builder("mill").core(workers).max(workers);
    let mill = mill.queue(Queue::bounded(100_000)).clock(clock);
    mill.threads(threads.clone()).build().unwrap()
}

fn fork_join_pool(workers: usize, threads: &Few, clock: Clock) -> ForkJoinPool {
    let mill = ForkJoinPool::builder("mill").parallelism(workers);
    let mill = mill.clock(clock).on_event(|_| ());
    mill.threads(threads.clone()).build().unwrap()
}

/// A worker is blocked by what waits for a spare, whose thread is refused. Nobody submits anything more.
#[test]
fn a_spare_that_was_refused_its_thread_is_started_later() {
    let _watch = watch();
    let (hand, few) = (ManualClock::new(), Few::default());
    few.allow(1);
    let mill = ForkJoinPool::builder("mill").parallelism(1).max_spares(1);
    // By a manual clock there is a watchdog only if there is a limit.
    let mill = mill.run_warning(RunWarning::after(Duration::from_secs(3600)));
    let mill = mill.clock(hand.clock()).threads(few.clone());
    let pool = mill.build().unwrap();
    let (give, given) = sync_channel(1);
    let waits = pool.submit(move || blocking(|| given.recv().is_ok()));
    let waits = waits.unwrap();
    while pool.snapshot().blocked == 0 {
        std::thread::yield_now();
    }
    pool.execute(move || give.send(()).unwrap()).unwrap();
    assert_eq!((few.asked(), pool.snapshot().queued_outside), (2, 1));
    few.allow(1);
    while !waits.is_finished() {
        hand.advance(Duration::from_secs(1));
        std::thread::yield_now();
    }
    assert!(waits.join().unwrap());
    assert_eq!((few.asked(), pool.snapshot().thread_failures), (3, 1));
}

/// How often a pool may ask in so long a time.
fn most_in(time: Duration) -> usize {
    FREE + 1 + time.as_micros() as usize / PAUSE.as_micros() as usize
}

/// `failures` tells how many starts have failed in a row.
fn rejects_each_task<P: Executor + Lifecycle>(
    build: impl FnOnce(usize, &Few, Clock) -> P,
    failures: impl FnOnce(&P) -> u64,
) {
    let _watch = watch();
    let threads = Few::default();
    let pool = build(1, &threads, Clock::system());
    let start = Instant::now();
    for _ in 0..10_000 {
        let refused = pool.submit(|| ()).unwrap_err();
        let RejectReason::SpawnFailed(why) = &refused.reason else {
            panic!("{}", refused.reason);
        };
        assert_eq!(why.raw_os_error(), Some(11));
    }
    let (asked, most) = (threads.asked(), most_in(start.elapsed()));
    assert!((FREE..=most).contains(&asked), "{asked}, of {most} at most");
    assert_eq!(failures(&pool), asked as u64);
    // A recovered system is noticed after a pause.
    threads.allow(1);
    let start = Instant::now();
    let handle = loop {
        match pool.submit(|| 7) {
            Ok(handle) => break handle,
            Err(_) => assert!(start.elapsed() < Duration::from_secs(30)),
        }
    };
    assert_eq!(handle.join().unwrap(), 7);
    assert_eq!(
        threads.asked(),
        asked + 1,
        "the first it asked for was granted"
    );
    pool.close().unwrap();
}

#[test]
fn a_pool_without_workers_rejects_each_task_and_does_not_try_to_start_a_thread_for_each() {
    rejects_each_task(pool, |pool| pool.health().failed_starts_in_a_row);
}

#[test]
fn a_fork_join_pool_without_workers_rejects_each_task_and_does_not_try_a_thread_for_each() {
    rejects_each_task(fork_join_pool, |pool| pool.health().failed_starts_in_a_row);
}

#[test]
fn a_queue_of_the_users_own_makes_no_more_requests_for_threads() {
    let _watch = watch();
    let threads = Few::default();
    threads.allow(1);
    let mill = ThreadPool::builder("mill").core(4).max(4);
    let mill = mill
        .queue(Queue::custom(FifoQueue::unbounded()))
        .threads(threads.clone());
    let pool = mill.build().unwrap();
    let start = Instant::now();
    for _ in 0..10_000 {
        pool.execute(|| ()).unwrap();
    }
    let most = 1 + most_in(start.elapsed());
    assert!(threads.asked() <= most, "{} of {most}", threads.asked());
    pool.close().unwrap();
}

fn takes_every_task<P: Executor + Lifecycle>(build: impl FnOnce(usize, &Few, Clock) -> P) {
    let _watch = watch();
    let threads = Few::default();
    threads.allow(1);
    let pool = build(4, &threads, Clock::system());
    let start = Instant::now();
    let tasks: Vec<_> = (0..10_000).map(|i| pool.submit(move || i)).collect();
    let most = 1 + most_in(start.elapsed());
    assert!(threads.asked() <= most, "{} of {most}", threads.asked());
    for (i, task) in tasks.into_iter().enumerate() {
        assert_eq!(task.unwrap().join().unwrap(), i);
    }
    pool.close().unwrap();
}

#[test]
fn a_pool_with_a_worker_takes_every_task_and_asks_for_more_workers_now_and_then() {
    takes_every_task(pool);
}

#[test]
fn a_fork_join_pool_with_a_worker_takes_every_task_and_asks_for_more_workers_now_and_then() {
    takes_every_task(fork_join_pool);
}

fn tries_again_at_once<P: Executor + Lifecycle>(build: impl FnOnce(usize, &Few, Clock) -> P) {
    let _watch = watch();
    let threads = Few::default();
    let pool = build(1, &threads, Clock::system());
    for _ in 1..FREE {
        assert!(pool.submit(|| ()).is_err());
    }
    threads.allow(1);
    assert_eq!(pool.submit(|| 7).unwrap().join().unwrap(), 7);
    pool.close().unwrap();
}

#[test]
fn a_few_failures_are_followed_by_another_try_at_once() {
    tries_again_at_once(pool);
}

#[test]
fn a_few_failures_of_a_fork_join_pool_are_followed_by_another_try_at_once() {
    tries_again_at_once(fork_join_pool);
}

fn makes_no_pause<P: Executor + Lifecycle>(build: impl FnOnce(usize, &Few, Clock) -> P) {
    let _watch = watch();
    let (threads, hand) = (Few::default(), ManualClock::new());
    let pool = build(1, &threads, hand.clock());
    for _ in 0..100 {
        assert!(pool.submit(|| ()).is_err());
    }
    assert_eq!(threads.asked(), 100);
    threads.allow(1);
    assert_eq!(pool.submit(|| 7).unwrap().join().unwrap(), 7);
    pool.close().unwrap();
}

#[test]
fn by_a_clock_that_stands_still_there_is_no_pause() {
    makes_no_pause(pool);
}

#[test]
fn by_a_clock_that_stands_still_there_is_no_pause_in_a_fork_join_pool() {
    makes_no_pause(fork_join_pool);
}

/// A pool with room for one task beside its one worker, which is busy until the sender is dropped. A second worker
/// cannot be started, and submitters wait for room.
fn full(threads: &Few) -> (ThreadPool, std::sync::mpsc::SyncSender<()>) {
    threads.allow(1);
    let mill = ThreadPool::builder("mill").core(1).max(2);
    let mill = mill.queue(Queue::bounded(1)).threads(threads.clone());
    let wait = RejectionPolicy::Block(Duration::from_secs(60));
    let pool = mill.rejection(wait).build().unwrap();
    let (go, may_go) = sync_channel::<()>(0);
    pool.execute(move || for () in may_go {}).unwrap();
    pool.execute(|| ()).unwrap();
    (pool, go)
}

#[test]
fn a_scheduled_pool_keeps_due_tasks_until_there_is_room_although_another_worker_is_refused() {
    let _watch = watch();
    let threads = Few::default();
    let (below, go) = full(&threads);
    let timers = ScheduledPool::on(below.clone()).build();
    let task = |i| timers.schedule(Duration::ZERO, move || i).unwrap();
    let tasks: Vec<_> = (0..20).map(task).collect();
    drop(go);
    for (i, task) in tasks.into_iter().enumerate() {
        assert_eq!(task.join().unwrap(), i);
    }
    timers.close().unwrap();
    below.close().unwrap();
}

#[test]
fn submitters_that_wait_for_room_request_another_worker_now_and_then() {
    let _watch = watch();
    let threads = Few::default();
    let (pool, go) = full(&threads);
    let start = Instant::now();
    let submitters: Vec<_> = (0..8)
        .map(|_| {
            let pool = pool.clone();
            std::thread::spawn(move || pool.submit(|| 7).unwrap().join().unwrap())
        })
        .collect();
    millpond_testkit::until("all wait, for two pauses at least", || {
        pool.snapshot().waited_for_room == 8 && start.elapsed() > Duration::from_millis(250)
    });
    let most = 1 + most_in(start.elapsed());
    assert!(threads.asked() <= most, "{} of {most}", threads.asked());
    drop(go);
    for submitter in submitters {
        assert_eq!(submitter.join().unwrap(), 7);
    }
    pool.close().unwrap();
}

/// Its threads die before their first step, when they are told to.
#[derive(Debug)]
struct Stillborn(Mutex<Option<Receiver<()>>>);

impl ThreadFactory for Stillborn {
    fn start(&self, body: Body) -> io::Result<JoinHandle<()>> {
        let told = self.0.lock().unwrap().take();
        Threads::named("stillborn").start(Box::new(move || {
            if let Some(told) = told {
                told.recv().unwrap();
            }
            drop(body);
        }))
    }
}

/// Says when its destructor begins, and waits there.
struct SlowToDrop {
    began: SyncSender<()>,
    go_on: Receiver<()>,
    is_over: Arc<AtomicBool>,
}

impl Drop for SlowToDrop {
    fn drop(&mut self) {
        self.began.send(()).unwrap();
        self.go_on.recv().unwrap();
        self.is_over.store(true, Ordering::SeqCst);
    }
}

/// END-4
fn ends_after_the_task_whose_thread_died<P>(build: impl FnOnce(Stillborn, Arc<AtomicUsize>) -> P)
where
    P: Executor + Lifecycle + Managed,
{
    let _watch = watch();
    let (die, told) = sync_channel(1);
    let (began, has_begun) = sync_channel(1);
    let (let_go, go_on) = sync_channel(1);
    let (is_over, events) = <(Arc<AtomicBool>, Arc<AtomicUsize>)>::default();
    let pool = build(Stillborn(Mutex::new(Some(told))), Arc::clone(&events));
    let slow = SlowToDrop {
        began,
        go_on,
        is_over: Arc::clone(&is_over),
    };
    pool.execute(move || drop(slow)).unwrap();
    die.send(()).unwrap();
    has_begun.recv().unwrap();
    pool.shutdown();
    let soon = pool.await_termination_timeout(Duration::from_millis(20));
    assert!(!soon.unwrap(), "the closure is still being dropped");
    assert!(!pool.is_terminated());
    let_go.send(()).unwrap();
    pool.await_termination().unwrap();
    assert!(is_over.load(Ordering::SeqCst));
    let books = pool.engine_snapshot();
    assert_eq!((books.submitted, books.cancelled), (1, 1), "{books}");
    let told = |each: &Measurement| each.to_string() == "dropped_detached 1";
    assert!(books.measurements().iter().any(told));
    assert_eq!(events.load(Ordering::SeqCst), 1, "a dropped task is told");
}

#[test]
fn a_pool_ends_after_the_task_whose_thread_died_before_its_first_step() {
    ends_after_the_task_whose_thread_died(|threads, events| {
        let mill = ThreadPool::builder("mill").core(1).max(1).threads(threads);
        let mill = mill.on_event(move |_| _ = events.fetch_add(1, Ordering::SeqCst));
        mill.build().unwrap()
    });
}

#[test]
fn a_fork_join_pool_ends_after_the_task_whose_thread_died_before_its_first_step() {
    ends_after_the_task_whose_thread_died(|threads, events| {
        let mill = ForkJoinPool::builder("mill").parallelism(1);
        let mill = mill.on_event(move |_| _ = events.fetch_add(1, Ordering::SeqCst));
        mill.threads(threads).build().unwrap()
    });
}

/// Refuses every thread, the first one when it is told to.
#[derive(Debug)]
struct RefusesLater {
    asked: SyncSender<()>,
    told: Mutex<Receiver<()>>,
    error: fn() -> io::Error,
}

impl ThreadFactory for RefusesLater {
    fn start(&self, body: Body) -> io::Result<JoinHandle<()>> {
        self.asked.try_send(()).ok();
        self.told.lock().unwrap().recv().ok();
        drop(body);
        Err((self.error)())
    }
}

/// The factory, what it says when it is asked for the first thread, and what tells it to refuse that when it is dropped.
fn refuses_later(error: fn() -> io::Error) -> (RefusesLater, Receiver<()>, SyncSender<()>) {
    let ((asked, is_asked), (refuse, told)) = (sync_channel(1), sync_channel(1));
    let told = Mutex::new(told);
    let factory = RefusesLater { asked, told, error };
    (factory, is_asked, refuse)
}

/// UNDECIDED-1
#[test]
fn a_task_that_is_rejected_in_the_end_was_never_submitted_whoever_looks_meanwhile() {
    let _watch = watch();
    for core in [0, 1] {
        let (threads, is_asked, refuse) = refuses_later(|| io::ErrorKind::WouldBlock.into());
        let mill = ThreadPool::builder("mill").core(core).max(1);
        let mill = mill.threads(threads).on_event(|_| ());
        let pool = mill.build().unwrap();
        std::thread::scope(|threads| {
            let submitted = threads.spawn(|| pool.submit(|| ()));
            is_asked.recv().unwrap();
            assert_eq!(pool.engine_snapshot().submitted, 0);
            drop(refuse);
            assert!(submitted.join().unwrap().is_err());
        });
        pool.close().unwrap();
        let books = pool.engine_snapshot();
        assert_eq!((books.submitted, books.rejected), (0, 1), "core {core}");
    }
}

#[derive(Debug)]
struct Unreadable;

impl fmt::Display for Unreadable {
    fn fmt(&self, _: &mut fmt::Formatter<'_>) -> fmt::Result {
        panic!("this error has no text")
    }
}

impl std::error::Error for Unreadable {}

/// While the factory is asked for the thread of one task, another task comes and relies on that thread (SPAWN-1).
fn loses_no_task_to_an_error_without_a_text<P: Executor + Lifecycle>(
    build: impl FnOnce(RefusesLater) -> P,
) {
    let _watch = watch();
    let (threads, is_asked, refuse) = refuses_later(|| io::Error::other(Unreadable));
    let pool = build(threads);
    std::thread::scope(|threads| {
        let first = threads.spawn(|| pool.submit(|| ()).map(drop).map_err(|why| why.reason));
        is_asked.recv().unwrap();
        let second = pool.submit(|| ()).unwrap();
        drop(refuse);
        let first = first.join().unwrap();
        assert!(matches!(first, Err(RejectReason::SpawnFailed(_))));
        assert!(second.join().unwrap_err().is_cancelled());
    });
    pool.close().unwrap();
}

#[test]
fn no_task_waits_for_a_thread_that_is_refused_with_an_error_whose_display_panics() {
    loses_no_task_to_an_error_without_a_text(|threads| {
        let mill = ThreadPool::builder("mill").core(0).max(1);
        mill.threads(threads).on_event(|_| ()).build().unwrap()
    });
    loses_no_task_to_an_error_without_a_text(|threads| {
        let mill = ForkJoinPool::builder("mill").parallelism(1);
        mill.threads(threads).on_event(|_| ()).build().unwrap()
    });
}
