//! Batches on executors that let the submitter wait for room: the deadline and the interrupt of the caller hold
//! there, too.

use crate::executor_kit::{LONG, signal};
use millpond::executor::{
    Executor, ExecutorExt, InvokeAllError, InvokeAnyError, Lifecycle, SaturationPolicy,
    SerialExecutor, ThreadPerTask,
};
use millpond::pool::{Queue, RejectionPolicy, ThreadPool};
use millpond::schedule::ScheduledPool;
use millpond::task::{CancelReason, TaskError};
use millpond::time::ManualClock;
use millpond_raw::park::probe;
use millpond_testkit::{interrupt_at, watch};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{self, Sender};
use std::sync::{Arc, Mutex};
use std::time::Duration;

const SECOND: Duration = Duration::from_secs(1);

type Closing = Box<dyn FnOnce()>;

/// An executor with one thread, which is busy: submitting more tasks than there is room for waits.
struct Full {
    kind: &'static str,
    executor: Arc<dyn Executor>,
    /// The site where the submitter waits.
    site: &'static str,
    hand: ManualClock,
    /// Dropping it ends the task that keeps the thread busy.
    open: Sender<()>,
    close: Closing,
}

fn full(
    kind: &'static str,
    executor: Arc<dyn Executor>,
    site: &'static str,
    hand: ManualClock,
    close: impl FnOnce() + 'static,
) -> Full {
    let (open, opened) = mpsc::channel::<()>();
    let (started, start) = signal();
    let busy = move || {
        started.send(()).unwrap();
        let _ = opened.recv();
    };
    executor.execute(busy).unwrap();
    start.wait();
    let close = Box::new(close);
    Full {
        kind,
        executor,
        site,
        hand,
        open,
        close,
    }
}

/// A pool with one worker and room for one task.
fn small_pool(hand: &ManualClock, timeout: Duration) -> ThreadPool {
    ThreadPool::builder("full")
        .core(1)
        .max(1)
        .queue(Queue::bounded(1))
        .rejection(RejectionPolicy::Block(timeout))
        .clock(hand.clock())
        .build()
        .unwrap()
}

fn one_thread(hand: &ManualClock, at_bound: SaturationPolicy) -> Arc<ThreadPerTask> {
    let threads = ThreadPerTask::builder("full", 1).at_bound(at_bound);
    Arc::new(threads.clock(hand.clock()).build().unwrap())
}

fn a_pool() -> Full {
    let hand = ManualClock::new();
    let pool = small_pool(&hand, Duration::MAX);
    let own = pool.clone();
    full("pool", Arc::new(pool), "pool.room", hand, move || {
        own.close().unwrap()
    })
}

fn a_scheduled_pool() -> Full {
    let hand = ManualClock::new();
    let timers = ScheduledPool::owning(small_pool(&hand, Duration::MAX)).build();
    let own = timers.clone();
    full(
        "scheduled",
        Arc::new(timers),
        "pool.room",
        hand,
        move || own.close().unwrap(),
    )
}

fn a_thread_per_task(at_bound: SaturationPolicy) -> Full {
    let hand = ManualClock::new();
    let threads = one_thread(&hand, at_bound);
    let (own, site) = (Arc::clone(&threads), "thread_per_task.execute");
    full("thread per task", threads, site, hand, move || {
        own.close().unwrap()
    })
}

fn a_serial_key() -> Full {
    let hand = ManualClock::new();
    let threads = one_thread(&hand, SaturationPolicy::Block);
    let (own, site) = (Arc::clone(&threads), "thread_per_task.execute");
    let serial = SerialExecutor::new(threads);
    let (busy, key) = (serial.key("busy"), serial.key("free"));
    let busy = full("serial", Arc::new(busy), site, hand, move || {
        own.close().unwrap()
    });
    // Its tasks are behind no other of their key, but there is no thread for them.
    let executor = Arc::new(key);
    Full { executor, ..busy }
}

fn all_kinds() -> [Full; 5] {
    [
        a_pool(),
        a_scheduled_pool(),
        a_thread_per_task(SaturationPolicy::Block),
        a_thread_per_task(SaturationPolicy::BlockFor(60 * SECOND)),
        a_serial_key(),
    ]
}

/// Three tasks that count themselves if they run.
fn three<T>(ran: &Arc<AtomicUsize>, value: T) -> Vec<impl FnOnce() -> T + Send + use<T>>
where
    T: Copy + Send + 'static,
{
    let task = |_| {
        let ran = Arc::clone(ran);
        move || {
            ran.fetch_add(1, Ordering::SeqCst);
            value
        }
    };
    (0..3).map(task).collect()
}

/// Calls it on a thread of this name, advances the clock by a second when it waits for room, and returns
/// the result.
fn when_a_second_passes<T: Send + 'static>(
    full: &Full,
    name: &'static str,
    call: impl FnOnce(&dyn Executor) -> T + Send + 'static,
) -> T {
    let (send, receive) = mpsc::channel();
    let executor = Arc::clone(&full.executor);
    let thread = std::thread::Builder::new().name(name.into());
    thread
        .spawn(move || send.send(call(&executor)).unwrap())
        .unwrap();
    probe::await_wait(LONG, |wait| {
        wait.name.as_deref() == Some(name) && wait.site.name() == full.site
    })
    .expect("it waits for room");
    full.hand.advance(SECOND);
    let result = receive.recv_timeout(LONG);
    result.unwrap_or_else(|_| panic!("{}: it still waits, past its deadline", full.kind))
}

impl Full {
    /// Lets the thread go and waits for the end.
    fn end(self) {
        drop(self.open);
        (self.close)();
    }
}

#[test]
fn all_of_a_batch_that_waits_for_room_is_abandoned_at_the_deadline() {
    let _watch = watch();
    for full in all_kinds() {
        let (kind, ran) = (full.kind, Arc::new(AtomicUsize::new(0)));
        let tasks = three(&ran, 7);
        let results = when_a_second_passes(&full, "all-in-time", move |executor| {
            executor.invoke_all_timeout(tasks, SECOND)
        });
        let results = results.unwrap();
        assert_eq!(results.len(), 3, "{kind}");
        for result in results {
            let error = result.unwrap_err();
            let is_abandoned = matches!(error, TaskError::Cancelled(CancelReason::Abandoned));
            assert!(is_abandoned, "{kind}: {error:?}");
        }
        full.end();
        assert_eq!(ran.load(Ordering::SeqCst), 0, "{kind}");
    }
}

#[test]
fn any_of_a_batch_that_waits_for_room_times_out_at_the_deadline() {
    let _watch = watch();
    for full in all_kinds() {
        let (kind, ran) = (full.kind, Arc::new(AtomicUsize::new(0)));
        let tasks = three(&ran, Ok::<_, ()>(7));
        let result = when_a_second_passes(&full, "any-in-time", move |executor| {
            executor.invoke_any_timeout(tasks, SECOND)
        });
        let error = result.unwrap_err();
        assert!(
            matches!(error, InvokeAnyError::TimedOut),
            "{kind}: {error:?}"
        );
        full.end();
        assert_eq!(ran.load(Ordering::SeqCst), 0, "{kind}");
    }
}

#[test]
fn an_interrupt_while_all_of_a_batch_wait_for_room_is_an_interrupt_and_no_rejection() {
    let _watch = watch();
    for full in all_kinds() {
        let (kind, ran) = (full.kind, Arc::new(AtomicUsize::new(0)));
        let (executor, tasks) = (Arc::clone(&full.executor), three(&ran, 7));
        let result = interrupt_at("all-interrupted", full.site, move || {
            executor.invoke_all(tasks)
        });
        let error = result.unwrap_err();
        let is_interrupted = matches!(error, InvokeAllError::Interrupted);
        assert!(is_interrupted, "{kind}: {error:?}");
        full.end();
        assert_eq!(ran.load(Ordering::SeqCst), 0, "{kind}");
    }
}

#[test]
fn an_interrupt_while_any_of_a_batch_waits_for_room_ends_the_wait() {
    let _watch = watch();
    for full in all_kinds() {
        let (kind, ran) = (full.kind, Arc::new(AtomicUsize::new(0)));
        let (executor, tasks) = (Arc::clone(&full.executor), three(&ran, Ok::<_, ()>(7)));
        let result = interrupt_at("any-interrupted", full.site, move || {
            executor.invoke_any(tasks)
        });
        let error = result.unwrap_err();
        let is_interrupted = matches!(error, InvokeAnyError::Interrupted);
        assert!(is_interrupted, "{kind}: {error:?}");
        full.end();
        assert_eq!(ran.load(Ordering::SeqCst), 0, "{kind}");
    }
}

/// A pool with a blocking timeout of a second, and a caller with more time.
#[test]
fn a_batch_with_a_longer_timeout_than_the_executor_is_rejected_when_that_of_the_executor_ends() {
    let _watch = watch();
    let hand = ManualClock::new();
    let pool = small_pool(&hand, SECOND);
    let own = pool.clone();
    let full = full("pool", Arc::new(pool), "pool.room", hand, move || {
        own.close().unwrap()
    });
    let ran = Arc::new(AtomicUsize::new(0));
    let tasks = three(&ran, 7);
    let result = when_a_second_passes(&full, "impatient-pool", move |executor| {
        executor.invoke_all_timeout(tasks, 60 * SECOND)
    });
    let error = result.unwrap_err();
    let is_full = matches!(&error, InvokeAllError::Rejected(reason) if reason.is_saturated());
    assert!(is_full, "{error:?}");
    full.end();
    assert_eq!(ran.load(Ordering::SeqCst), 0);
}

/// The value of the first has come while the second waits for room that others took.
#[test]
fn a_value_that_is_there_at_the_deadline_wins_though_another_waited_for_room() {
    let _watch = watch();
    let hand = ManualClock::new();
    let late = Late {
        hand: hand.clone(),
        first: Mutex::default(),
    };
    let tasks = ["rye", "oats"].map(|grain| move || Ok::<_, ()>(grain));
    assert_eq!(late.invoke_any_timeout(tasks, SECOND).unwrap(), "rye");
}

/// Keeps the first task, and runs it when the second has waited for room until the deadline.
#[derive(Debug)]
struct Late {
    hand: ManualClock,
    first: Mutex<Option<millpond::task::Task>>,
}

impl Executor for Late {
    fn execute_task(
        &self,
        task: millpond::task::Task,
    ) -> Result<(), millpond::executor::Rejected<millpond::task::Task>> {
        let Some(first) = self.first.lock().unwrap().take() else {
            *self.first.lock().unwrap() = Some(task);
            return Ok(());
        };
        let _ = first.run();
        self.hand.advance(SECOND);
        let reason = millpond::executor::RejectReason::saturated(1, 1, 1);
        Err(millpond::executor::Rejected::new(task, reason))
    }

    fn clock(&self) -> millpond::time::Clock {
        self.hand.clock()
    }
}
