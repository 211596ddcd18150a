//! Every interleaving of a whole pool with one worker or two and one submitter, weak memory included.
//!
//! The pool is the real one: control word, queue, workers, clock. What keeps it small enough is
//! that a model has few steps between its threads: with up to two preemptions a scenario takes from
//! 300 to 20,000 interleavings. Two scenarios with three busy threads are walked with one preemption;
//! with two they have 130,000 and 220,000, which `LOOM_MAX_PREEMPTIONS=2` walks in some minutes.

use crate::model;
use millpond::executor::{ExecutorExt, Lifecycle};
use millpond::manage::{Growth, Patch};
use millpond::pool::{Hooks, PoolBuilder, Queue, RejectionPolicy, ThreadPool};
use millpond::queue::{
    BlockingQueue, CapacityError, FifoQueue, OfferError, Offered, Taken, WaitSlot,
};
use millpond::task::Task;
use millpond::thread::{Body, JoinHandle, ThreadFactory, Threads};
use millpond::time::{Clock, Deadline, ManualClock};
use millpond_raw::park::{self, Site};
use millpond_raw::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use millpond_raw::sync::thread::spawn;
use millpond_raw::wait_queue::WaitQueue;
use std::fmt;
use std::io;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::task::Waker;
use std::time::Duration;

const KEEP_ALIVE: Duration = Duration::from_secs(60);

fn pool(core: usize, max: usize, queue: Queue) -> (PoolBuilder, ManualClock) {
    let hand = ManualClock::new();
    let builder = ThreadPool::builder("model")
        .core(core)
        .max(max)
        .queue(queue)
        .keep_alive(KEEP_ALIVE)
        .clock(hand.clock());
    (builder, hand)
}

fn end(pool: &ThreadPool) {
    pool.shutdown();
    pool.await_termination().unwrap();
    assert_empty(pool);
}

fn assert_empty(pool: &ThreadPool) {
    let last = pool.snapshot();
    assert_eq!((last.workers, last.queued), (0, 0), "{last:?}");
}

/// POOL-1 against POOL-2: the last worker times out while a task is submitted.
fn retire_against_submit(queue: Queue) {
    let (builder, hand) = pool(0, 1, queue);
    let pool = builder.build().unwrap();
    pool.execute(|| ()).unwrap();
    let clock = spawn(move || hand.advance(KEEP_ALIVE));
    // Not saved by the shutdown: the value comes before it.
    assert_eq!(pool.submit(|| 7).unwrap().join().unwrap(), 7);
    clock.join().unwrap();
    end(&pool);
}

#[test]
fn a_task_meets_the_last_worker_leaving() {
    model(2, || retire_against_submit(Queue::bounded(2)));
}

#[test]
fn a_task_in_a_queue_without_order_meets_the_last_worker_leaving() {
    model(2, || retire_against_submit(Queue::custom(Loose::new())));
}

/// A thread that submits a task, which runs unless the pool was shut down before.
fn spawn_submitter(pool: &ThreadPool) -> JoinHandle<()> {
    let pool = pool.clone();
    spawn(move || match pool.submit(|| 7) {
        Ok(handle) => assert_eq!(handle.join().unwrap(), 7),
        Err(rejected) => assert!(rejected.reason.is_shut_down()),
    })
}

/// SEAL-1: the queue is sealed, then the control word moves on. A task enqueued before is run, a later one rejected.
#[test]
fn a_task_meets_a_shutdown() {
    model(2, || {
        let (builder, _hand) = pool(1, 1, Queue::bounded(1));
        let pool = builder.build().unwrap();
        pool.prestart_core().unwrap();
        let submitter = spawn_submitter(&pool);
        end(&pool);
        submitter.join().unwrap();
    });
}

/// The same for a task that starts its worker: the count is taken while the state moves on.
#[test]
fn a_task_that_starts_a_worker_meets_a_shutdown() {
    model(2, || {
        let (builder, _hand) = pool(1, 1, Queue::bounded(1));
        let pool = builder.build().unwrap();
        let submitter = spawn_submitter(&pool);
        end(&pool);
        submitter.join().unwrap();
    });
}

/// SEAL-3: a queue that cannot be sealed.
#[test]
fn a_task_in_a_queue_without_order_meets_a_shutdown() {
    model(2, || {
        let (builder, _hand) = pool(1, 1, Queue::custom(Loose::new()));
        let pool = builder.build().unwrap();
        pool.prestart_core().unwrap();
        let submitter = spawn_submitter(&pool);
        pool.close().unwrap();
        // A task that slipped in was returned to its submitter, or run.
        submitter.join().unwrap();
        assert_empty(&pool);
    });
}

/// WORKERS-1, WORKERS-2: a stop reaches the task in the queue, in a worker's slot, or in its hands.
#[test]
fn a_task_meets_a_stop() {
    model(2, || {
        let (builder, _hand) = pool(0, 1, Queue::bounded(1));
        let pool = builder.build().unwrap();
        let submitter = spawn({
            let pool = pool.clone();
            move || match pool.submit(|| 7) {
                Ok(handle) => matches!(handle.join(), Ok(7)) as usize,
                Err(rejected) => {
                    assert!(rejected.reason.is_shut_down());
                    2
                }
            }
        });
        let back = pool.shutdown_now().len();
        pool.await_termination().unwrap();
        // Run, returned or rejected, and exactly one of them.
        let ended = submitter.join().unwrap();
        assert_eq!(back, usize::from(ended == 0));
    });
}

/// A worker that notices a new epoch sees the new limits (`[E-epoch]`).
#[test]
fn an_idle_worker_notices_new_limits() {
    model(2, || {
        let (builder, _hand) = pool(1, 1, Queue::bounded(1));
        let end = Arc::new(Gate::default());
        let threads = Watched {
            threads: Threads::named("model"),
            end: Arc::clone(&end),
        };
        let pool = builder.keep_alive(Duration::ZERO).threads(threads).build();
        let pool = pool.unwrap();
        pool.prestart_core().unwrap();
        pool.set_core(0).unwrap();
        // It is beyond the core now and need not be idle for long: its thread ends.
        end.wait();
        assert_eq!(pool.snapshot().workers, 0);
    });
}

#[test]
fn new_limits_meet_a_task() {
    model(1, || {
        let (builder, _hand) = pool(1, 1, Queue::bounded(1));
        let pool = builder.keep_alive(Duration::ZERO).build().unwrap();
        pool.prestart_core().unwrap();
        let governor = spawn({
            let pool = pool.clone();
            move || pool.apply(&Patch::new().core(0)).unwrap()
        });
        assert_eq!(pool.submit(|| 7).unwrap().join().unwrap(), 7);
        governor.join().unwrap();
        end(&pool);
    });
}

/// A submitter that waits for a worker is on the wait list before it reads the limits.
#[test]
fn a_larger_maximum_meets_a_submitter_that_waits_for_a_worker() {
    model(1, || {
        let (builder, _hand) = pool(1, 1, Queue::hand_off());
        let pool = builder
            .rejection(RejectionPolicy::Block(Duration::MAX))
            .build();
        let pool = pool.unwrap();
        // The first holds the only worker until the second has been run by another.
        let gate = Arc::new(FifoQueue::unbounded());
        let held = Arc::clone(&gate);
        pool.execute(move || held.take().unwrap()).unwrap();
        let waits = spawn({
            let pool = pool.clone();
            move || pool.execute(move || gate.offer(()).unwrap()).unwrap()
        });
        pool.set_max(2).unwrap();
        waits.join().unwrap();
        end(&pool);
    });
}

/// `[E-free]`: a submitter that sees that the free worker has taken a task does not count on it. The
/// first task waits for the second, so each needs a worker.
#[test]
fn a_submitter_does_not_count_on_a_worker_that_was_free() {
    model(2, || {
        let (builder, _hand) = pool(1, 2, Queue::bounded(2));
        let pool = builder.growth(Growth::ThreadsFirst).build().unwrap();
        pool.prestart_core().unwrap();
        let gate = Arc::new(Gate::default());
        let waits = Arc::clone(&gate);
        pool.execute(move || waits.wait()).unwrap();
        pool.execute(move || gate.open()).unwrap();
        end(&pool);
    });
}

/// `[C-all]`: a thread that sees that the pool has terminated sees what a task and the last hook wrote,
/// without a lock between them. It checks once, on a thread of its own: loom shows no thread an old
/// value again after a yield.
#[test]
fn an_end_that_is_seen_shows_what_was_written_before() {
    model(2, || {
        let (builder, _hand) = pool(1, 1, Queue::bounded(1));
        let note = Arc::new(Note::default());
        let pool = builder.hooks(Last(Arc::clone(&note))).build().unwrap();
        let writes = Arc::clone(&note);
        pool.execute(move || writes.task.store(7, Ordering::Relaxed))
            .unwrap();
        let watcher = spawn({
            let pool = pool.clone();
            move || {
                if pool.is_terminated() {
                    let seen = [&note.task, &note.hook].map(|one| one.load(Ordering::Relaxed));
                    assert_eq!(seen, [7, 8]);
                }
            }
        });
        pool.shutdown();
        watcher.join().unwrap();
        pool.await_termination().unwrap();
    });
}

/// `[E-stay]`: a worker that stays for a task that is not yet due notices that it is gone.
#[test]
fn a_worker_that_stays_for_a_task_notices_that_it_is_gone() {
    model(2, || {
        let (builder, _hand) = pool(0, 1, Queue::custom(Loose::never_due()));
        let end = Arc::new(Gate::default());
        let threads = Watched {
            threads: Threads::named("model"),
            end: Arc::clone(&end),
        };
        let pool = builder.keep_alive(Duration::ZERO).threads(threads).build();
        let pool = pool.unwrap();
        let handle = pool.submit(|| ()).unwrap();
        assert!(pool.remove(&handle));
        // Nothing is left to stay for: its thread ends.
        end.wait();
        assert_eq!(pool.snapshot().workers, 0);
    });
}

/// The writes, by thread.
#[derive(Default)]
struct Note {
    task: AtomicUsize,
    hook: AtomicUsize,
}

/// Writes when the pool is about to end.
struct Last(Arc<Note>);

impl Hooks for Last {
    fn terminated(&self) {
        self.0.hook.store(8, Ordering::Relaxed);
    }
}

/// Somewhere a body waits until it is opened.
#[derive(Default)]
struct Gate {
    is_open: AtomicBool,
    waits: WaitQueue,
}

impl Gate {
    fn open(&self) {
        self.is_open.store(true, Ordering::SeqCst);
        self.waits.wake_all();
    }

    fn wait(&self) {
        let here = park::current();
        let shut = || !self.is_open.load(Ordering::SeqCst);
        while let Some(ticket) = self.waits.register(&here.waker(), shut) {
            here.park(Site::new("model.gate"));
            self.waits.unregister(ticket);
        }
    }
}

/// Tells when the thread that it has started ends.
struct Watched {
    threads: Threads,
    end: Arc<Gate>,
}

impl fmt::Debug for Watched {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Watched")
    }
}

impl ThreadFactory for Watched {
    fn start(&self, body: Body) -> io::Result<JoinHandle<()>> {
        let end = Arc::clone(&self.end);
        self.threads.start(Box::new(move || {
            body();
            end.open();
        }))
    }
}

/// A queue as a user might write it: its length is read without any ordering.
#[derive(Debug)]
struct Loose {
    queue: FifoQueue<Task>,
    count: AtomicUsize,
    /// Whether its elements may be taken.
    is_due: bool,
}

impl Loose {
    fn new() -> Self {
        Loose {
            queue: FifoQueue::unbounded(),
            count: AtomicUsize::new(0),
            is_due: true,
        }
    }

    fn never_due() -> Self {
        Loose {
            is_due: false,
            ..Loose::new()
        }
    }

    fn gone(&self, tasks: usize) {
        self.count.fetch_sub(tasks, Ordering::Relaxed);
    }
}

impl BlockingQueue<Task> for Loose {
    fn offer(&self, task: Task) -> Result<(), OfferError<Task>> {
        self.count.fetch_add(1, Ordering::Relaxed);
        self.queue.offer(task)
    }

    fn poll(&self) -> Option<Task> {
        if !self.is_due {
            return None;
        }
        self.queue.poll().inspect(|_| self.gone(1))
    }

    fn poll_offer(&self, task: &mut Option<Task>, _: &mut WaitSlot, _: &Waker) -> Offered {
        match task.take().map(|task| self.offer(task)) {
            Some(Err(_)) => unreachable!("it has no bound"),
            _ => Offered::In,
        }
    }

    fn poll_take(&self, place: &mut WaitSlot, waker: &Waker) -> Taken<Task> {
        if !self.is_due {
            return Taken::Wait(Deadline::NEVER);
        }
        let taken = self.queue.poll_take(place, waker);
        if matches!(taken, Taken::Got(_)) {
            self.gone(1);
        }
        taken
    }

    fn leave_offer(&self, _: &mut Option<Task>, _: &mut WaitSlot) {}

    fn leave_take(&self, place: &mut WaitSlot) -> Option<Task> {
        self.queue.leave_take(place)
    }

    fn len(&self) -> usize {
        self.count.load(Ordering::Relaxed)
    }

    fn capacity(&self) -> Option<usize> {
        None
    }

    fn set_capacity(&self, capacity: usize) -> Result<(), CapacityError> {
        self.queue.set_capacity(capacity)
    }

    fn visit(&self, see: &mut dyn FnMut(&Task) -> ControlFlow<()>) {
        self.queue.visit(see);
    }

    fn remove_where(&self, limit: usize, unwanted: &mut dyn FnMut(&Task) -> bool) -> Vec<Task> {
        let removed = self.queue.remove_where(limit, unwanted);
        self.gone(removed.len());
        removed
    }

    fn clock(&self) -> &Clock {
        self.queue.clock()
    }
}
