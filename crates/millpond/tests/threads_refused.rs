//! A pool that is refused threads asks for them again, but not for each task.

#![cfg(not(any(millpond_loom, millpond_shuttle)))]
#![allow(
    clippy::disallowed_types,
    clippy::disallowed_methods,
    reason = "a test stands outside: it uses std's threads and channels beside what it tests"
)]

use millpond::executor::{ExecutorExt, Lifecycle, RejectReason};
use millpond::pool::{Queue, RejectionPolicy, ThreadPool};
use millpond::queue::FifoQueue;
use millpond::schedule::ScheduledPool;
use millpond::thread::{Body, JoinHandle, ThreadFactory, Threads};
use millpond::time::{Clock, ManualClock};
use millpond_testkit::watch;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::sync_channel;
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

/// How often a pool may ask in so long a time.
fn most_in(time: Duration) -> usize {
    FREE + 1 + time.as_micros() as usize / PAUSE.as_micros() as usize
}

#[test]
fn a_pool_without_workers_rejects_each_task_and_does_not_try_to_start_a_thread_for_each() {
    let _watch = watch();
    let threads = Few::default();
    let pool = pool(1, &threads, Clock::system());
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
    assert_eq!(pool.health().failed_starts_in_a_row, asked as u64);
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
fn a_queue_of_the_users_own_makes_no_more_requests_for_threads() {
    let _watch = watch();
    let threads = Few::default();
    threads.allow(1);
    let mill = ThreadPool::builder("mill").core(4).max(4);
    let mill = mill
        .queue(Queue::own(FifoQueue::unbounded()))
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

#[test]
fn a_pool_with_a_worker_takes_every_task_and_asks_for_more_workers_now_and_then() {
    let _watch = watch();
    let threads = Few::default();
    threads.allow(1);
    let pool = pool(4, &threads, Clock::system());
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
fn a_few_failures_are_followed_by_another_try_at_once() {
    let _watch = watch();
    let threads = Few::default();
    let pool = pool(1, &threads, Clock::system());
    for _ in 1..FREE {
        assert!(pool.submit(|| ()).is_err());
    }
    threads.allow(1);
    assert_eq!(pool.submit(|| 7).unwrap().join().unwrap(), 7);
    pool.close().unwrap();
}

#[test]
fn by_a_clock_that_stands_still_there_is_no_pause() {
    let _watch = watch();
    let (threads, hand) = (Few::default(), ManualClock::new());
    let pool = pool(1, &threads, hand.clock());
    for _ in 0..100 {
        assert!(pool.submit(|| ()).is_err());
    }
    assert_eq!(threads.asked(), 100);
    threads.allow(1);
    assert_eq!(pool.submit(|| 7).unwrap().join().unwrap(), 7);
    pool.close().unwrap();
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
        pool.snapshot().blocked == 8 && start.elapsed() > Duration::from_millis(250)
    });
    let most = 1 + most_in(start.elapsed());
    assert!(threads.asked() <= most, "{} of {most}", threads.asked());
    drop(go);
    for submitter in submitters {
        assert_eq!(submitter.join().unwrap(), 7);
    }
    pool.close().unwrap();
}
