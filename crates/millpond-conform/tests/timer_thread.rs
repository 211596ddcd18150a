//! No user code runs on the timer's thread, so no timer waits for the code of another.

#![cfg(not(any(millpond_loom, millpond_shuttle)))]
#![allow(
    clippy::disallowed_types,
    clippy::disallowed_methods,
    reason = "a test stands outside: it uses std's threads and channels beside what it tests"
)]

use millpond::executor::{CompletionService, DirectExecutor, ExecutorExt, Lifecycle, SpawnFuture};
use millpond::pool::{Queue, RejectionPolicy, RunWarning, ThreadPool};
use millpond::queue::{AsyncQueue, DelayQueue};
use millpond::schedule::ScheduledPool;
use millpond::task::{CancelReason, TaskError, TaskSpec};
use millpond::thread::{Body, JoinHandle, ThreadFactory, Threads};
use millpond::time::Clock;
use millpond_conform::kit::{OwnQueue, Step};
use std::io;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, channel, sync_channel};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

const LONG: Duration = Duration::from_secs(30);
const SOON: Duration = Duration::from_millis(3);

/// Whether this is the thread of a timer: the process's, or one of these tests.
fn is_timer() -> bool {
    let here = thread::current();
    here.name().is_some_and(|name| name.contains("-timer-"))
}

/// Whether this is a thread of no pool: the timer, or a thread that acts for it.
fn is_ours() -> bool {
    let here = thread::current();
    here.name()
        .is_some_and(|name| name.starts_with("millpond-"))
}

/// Notes whether it is dropped on the thread of a timer.
struct Dropped(Arc<AtomicUsize>, Arc<AtomicBool>);

impl Dropped {
    fn new() -> (Self, Arc<AtomicUsize>, Arc<AtomicBool>) {
        let (count, on_timer) = (Arc::new(AtomicUsize::new(0)), Arc::default());
        let own = Dropped(Arc::clone(&count), Arc::clone(&on_timer));
        (own, count, on_timer)
    }
}

impl Drop for Dropped {
    fn drop(&mut self) {
        self.1.fetch_or(is_timer(), Ordering::SeqCst);
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

/// A pool with a queue of the user's that looks for long runs every few milliseconds, with a task that runs
/// until the sender is dropped.
fn watched(
    steps: impl Fn(Step) + Send + Sync + 'static,
) -> (
    ThreadPool,
    std::sync::mpsc::SyncSender<()>,
    Receiver<String>,
) {
    let queue = OwnQueue::bounded(9).watched(steps);
    let (tell, told) = channel();
    let tell = Mutex::new(tell);
    let pool = ThreadPool::builder("mill")
        .core(1)
        .max(1)
        .queue(Queue::custom(queue))
        .run_warning(RunWarning::after(Duration::from_millis(10)))
        .on_event(move |notice| {
            assert!(!is_timer());
            let _ = tell.lock().unwrap().send(notice.to_string());
        })
        .build()
        .unwrap();
    let (meet, wait) = sync_channel::<()>(0);
    pool.execute(move || for () in wait {}).unwrap();
    meet.send(()).unwrap();
    (pool, meet, told)
}

#[test]
fn a_slow_queue_of_one_pool_does_not_delay_the_timers_of_others() {
    let (came, come) = channel();
    let (came, is_open) = (Mutex::new(came), Arc::new(AtomicBool::new(false)));
    let (open, on_timer) = (Arc::clone(&is_open), Arc::new(AtomicBool::new(false)));
    let seen = Arc::clone(&on_timer);
    let (pool, meet, _told) = watched(move |step| {
        if step != Step::Len || !is_ours() {
            return;
        }
        seen.fetch_or(is_timer(), Ordering::SeqCst);
        let _ = came.lock().unwrap().send(());
        while !open.load(Ordering::SeqCst) {
            thread::park_timeout(Duration::from_millis(1));
        }
    });
    // The watch is in the queue, and does not come back.
    come.recv_timeout(LONG).unwrap();
    // Timers of other pools go on.
    let bread = DelayQueue::new();
    bread.offer_after("bread", SOON).unwrap();
    let baked = DirectExecutor::new().spawn_future(async move { bread.recv().await });
    let mut baked = baked.unwrap();
    let in_time = baked.join_timeout(LONG);
    is_open.store(true, Ordering::SeqCst);
    assert_eq!(in_time.unwrap(), "bread");
    assert!(!on_timer.load(Ordering::SeqCst));
    drop(meet);
    pool.close().unwrap();
}

#[test]
fn a_queue_that_panics_does_not_end_the_watchdog_of_its_pool() {
    let panics = Arc::new(AtomicUsize::new(0));
    let seen = Arc::clone(&panics);
    let (pool, meet, told) = watched(move |step| {
        if step == Step::Len && is_ours() && seen.fetch_add(1, Ordering::SeqCst) < 3 {
            std::panic::resume_unwind(Box::new("the queue is broken"));
        }
    });
    // The first task may be reported before the queue is called for the first time.
    let _ = told.recv_timeout(LONG).unwrap();
    while panics.load(Ordering::SeqCst) < 4 {
        thread::park_timeout(Duration::from_millis(1));
    }
    drop(meet);
    let (meet, wait) = sync_channel::<()>(0);
    pool.execute(move || for () in wait {}).unwrap();
    meet.send(()).unwrap();
    // The watchdog still checks.
    told.recv_timeout(LONG).unwrap();
    drop(meet);
    pool.close().unwrap();
}

#[test]
fn an_expired_task_is_dropped_by_the_thread_that_waits_for_it() {
    let clock = Clock::system();
    let idle = ThreadPool::builder("mill").core(1).max(1).build().unwrap();
    let (meet, wait) = sync_channel::<()>(0);
    idle.execute(move || for () in wait {}).unwrap();
    meet.send(()).unwrap();
    let results = CompletionService::new(idle.clone());
    let (dropped, count, on_timer) = Dropped::new();
    let spec = TaskSpec::new().deadline(clock.deadline(SOON));
    results
        .submit_with(spec.clone(), move || drop(dropped))
        .unwrap();
    let arrived = results.poll_timeout(LONG).unwrap().unwrap();
    let is_expired = |error| matches!(error, TaskError::Cancelled(CancelReason::Expired));
    assert!(is_expired(arrived.result.unwrap_err()));
    assert_eq!(count.load(Ordering::SeqCst), 1);
    assert!(!on_timer.load(Ordering::SeqCst));
    // The same for a future on an executor that runs tasks in the submitting thread: not on the timer's.
    let (dropped, count, on_timer) = Dropped::new();
    let handle = idle.submit_with(spec, move || drop(dropped)).unwrap();
    let polled = Arc::new(AtomicBool::new(false));
    let seen = Arc::clone(&polled);
    let future = DirectExecutor::new().spawn_future(async move {
        let result = handle.await;
        seen.fetch_or(is_timer(), Ordering::SeqCst);
        result
    });
    assert!(is_expired(future.unwrap().join().unwrap().unwrap_err()));
    assert_eq!(count.load(Ordering::SeqCst), 1);
    assert!(!on_timer.load(Ordering::SeqCst) && !polled.load(Ordering::SeqCst));
    drop(meet);
    idle.close().unwrap();
}

/// Notes whether it is asked on the thread of a timer.
#[derive(Clone, Debug, Default)]
struct Asked(Arc<AtomicUsize>, Arc<AtomicBool>);

impl ThreadFactory for Asked {
    fn start(&self, body: Body) -> io::Result<JoinHandle<()>> {
        self.0.fetch_add(1, Ordering::SeqCst);
        self.1.fetch_or(is_timer(), Ordering::SeqCst);
        Threads::named("asked").start(body)
    }
}

#[test]
fn a_due_task_runs_neither_a_thread_factory_nor_a_destructor_on_the_timer_thread() {
    let asked = Asked::default();
    let pool = ThreadPool::builder("mill").core(1).max(1);
    let pool = pool.queue(Queue::bounded(1)).threads(asked.clone());
    let pool = pool.rejection(RejectionPolicy::Abort).build().unwrap();
    let clock = Clock::system().with_timer(Threads::named("own-timer"));
    let timers = ScheduledPool::on(pool.clone()).clock(clock).build();
    let (begin, begun) = channel();
    let (meet, wait) = sync_channel::<()>(0);
    let first = timers.schedule(SOON, move || {
        begin.send(()).unwrap();
        for () in wait {}
    });
    let first = first.unwrap();
    begun.recv_timeout(LONG).unwrap();
    assert_eq!(asked.0.load(Ordering::SeqCst), 1, "a worker was started");
    assert!(!asked.1.load(Ordering::SeqCst));
    // The queue is full, so the next due task is rejected, and dropped.
    let queued = pool.submit(|| ()).unwrap();
    let (dropped, count, on_timer) = Dropped::new();
    let rejected = timers.schedule(SOON, move || drop(dropped)).unwrap();
    let error = rejected.join().unwrap_err();
    assert!(
        matches!(error, TaskError::Cancelled(CancelReason::Rejected)),
        "{error}"
    );
    while count.load(Ordering::SeqCst) == 0 {
        thread::yield_now();
    }
    assert!(!on_timer.load(Ordering::SeqCst));
    drop(meet);
    first.join().unwrap();
    queued.join().unwrap();
    timers.close().unwrap();
    pool.close().unwrap();
}
