//! Shared by the models of the pool: the books, and devices that block as tasks do.
//!
//! Every task of a model has a number and a page in the [`Books`]. When the model ends the books
//! must balance: each task was run, returned, rejected or cancelled, exactly one of them, and its
//! closure was dropped once. The books are std's, so that the checker does not branch on them.

#![allow(
    dead_code,
    clippy::disallowed_types,
    reason = "each test program is a crate of its own and takes what it needs; the books are std's"
)]

use super::shuttle_drive;
use millpond::executor::{
    Executor, ExecutorExt, Lifecycle, RejectReason, Rejected, SaturationPolicy, ThreadPerTask,
};
use millpond::manage::RunState;
use millpond::pool::{PoolBuilder, PoolSnapshot, Queue, ThreadPool};
use millpond::task::{CancelReason, Task, TaskError, TaskHandle, TaskSpec};
use millpond::thread::{Body, JoinHandle, ThreadFactory, Threads};
use millpond::time::ManualClock;
use millpond_raw::park::{self, Site};
use millpond_raw::sync::atomic::{AtomicBool, Ordering};
use millpond_raw::sync::thread;
use millpond_raw::task::current;
use millpond_raw::wait_queue::WaitQueue;
use std::io;
use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Runs the scenario under 500 schedules for each depth.
pub(crate) fn pct(scenario: fn()) {
    shuttle_drive::pct(500, scenario);
}

/// How long idle workers of the models stay. Time passes when a model moves the clock.
pub(crate) const KEEP_ALIVE: Duration = Duration::from_secs(60);

/// A pool by a clock that a model moves.
pub(crate) fn pool(core: usize, max: usize, queue: Queue) -> (PoolBuilder, ManualClock) {
    let hand = ManualClock::new();
    let builder = ThreadPool::builder("model")
        .core(core)
        .max(max)
        .queue(queue)
        .keep_alive(KEEP_ALIVE)
        .clock(hand.clock());
    (builder, hand)
}

/// An executor with a thread for each task. At so many threads a submitter waits.
pub(crate) fn threads(count: usize) -> ThreadPerTask {
    ThreadPerTask::builder("model", count)
        .at_bound(SaturationPolicy::Block)
        .build()
        .unwrap()
}

/// The result of the call that submitted a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Brought {
    NotYet,
    Taken,
    /// Its closure came back, for this reason.
    Refused(Why),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Why {
    Saturated,
    ShutDown,
    NoThread,
    Interrupted,
}

impl Why {
    fn of(reason: &RejectReason) -> Self {
        match reason {
            RejectReason::Saturated { .. } => Why::Saturated,
            RejectReason::ShutDown => Why::ShutDown,
            RejectReason::SpawnFailed(_) => Why::NoThread,
            _ => Why::Interrupted,
        }
    }
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Page {
    pub(crate) brought: Brought,
    pub(crate) runs: usize,
    pub(crate) hand_backs: usize,
    pub(crate) drops: usize,
    /// The outcome of the handle; none for a task without a handle, or one that was not joined.
    pub(crate) cancelled: Option<CancelReason>,
}

/// One page for each task of a model.
#[derive(Clone)]
pub(crate) struct Books {
    pages: Arc<[Mutex<Page>]>,
}

/// A task's own copy of its page number, dropped with the closure.
struct Mark {
    books: Books,
    number: usize,
}

impl Drop for Mark {
    fn drop(&mut self) {
        self.books.write(self.number, |page| page.drops += 1);
    }
}

impl Books {
    pub(crate) fn new(tasks: usize) -> Self {
        let blank = || {
            Mutex::new(Page {
                brought: Brought::NotYet,
                runs: 0,
                hand_backs: 0,
                drops: 0,
                cancelled: None,
            })
        };
        Books {
            pages: (0..tasks).map(|_| blank()).collect(),
        }
    }

    fn write(&self, number: usize, change: impl FnOnce(&mut Page)) {
        let page = &self.pages[number];
        change(&mut page.lock().unwrap_or_else(PoisonError::into_inner));
    }

    pub(crate) fn page(&self, number: usize) -> Page {
        let page = &self.pages[number];
        *page.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn closure(
        &self,
        number: usize,
        body: impl FnOnce() + Send + 'static,
    ) -> impl FnOnce() + Send + 'static {
        let (books, mark) = (
            self.clone(),
            Mark {
                books: self.clone(),
                number,
            },
        );
        move || {
            let _mark = mark;
            books.write(number, |page| page.runs += 1);
            body();
        }
    }

    pub(crate) fn note<F>(&self, number: usize, brought: &Result<(), Rejected<F>>) {
        let brought = match brought {
            Ok(()) => Brought::Taken,
            Err(refused) => Brought::Refused(Why::of(&refused.reason)),
        };
        self.write(number, |page| page.brought = brought);
    }

    /// Submits task `number`, which does nothing.
    pub(crate) fn bring(&self, pool: &ThreadPool, number: usize) -> Option<TaskHandle<()>> {
        self.bring_doing(pool, number, || ())
    }

    /// Submits task `number`, which does this.
    pub(crate) fn bring_doing(
        &self,
        pool: &ThreadPool,
        number: usize,
        body: impl FnOnce() + Send + 'static,
    ) -> Option<TaskHandle<()>> {
        let spec = TaskSpec::new().name(number.to_string());
        let (handle, brought) = match pool.submit_with(spec, self.closure(number, body)) {
            Ok(handle) => (Some(handle), Ok(())),
            Err(refused) => (None, Err(refused)),
        };
        self.note(number, &brought);
        handle
    }

    /// Submits task `number` without a handle.
    pub(crate) fn throw(&self, pool: &ThreadPool, number: usize) {
        self.note(number, &pool.execute(self.closure(number, || ())));
    }

    /// Submits task `number` and waits for its outcome.
    pub(crate) fn bring_and_join(&self, pool: &ThreadPool, number: usize) {
        self.join(number, self.bring(pool, number));
    }

    /// Waits for what becomes of a task.
    pub(crate) fn join(&self, number: usize, handle: Option<TaskHandle<()>>) {
        if let Some(handle) = handle {
            self.heard(number, handle.join());
        }
    }

    /// Notes what a handle said.
    pub(crate) fn heard(&self, number: usize, said: Result<(), TaskError>) {
        match said {
            Ok(()) => {}
            Err(TaskError::Cancelled(reason)) => {
                self.write(number, |page| page.cancelled = Some(reason));
            }
            Err(other) => panic!("task {number}: {other}"),
        }
    }

    /// Notes the tasks that a stop returned, and drops them. A task that has been inlined or cancelled
    /// meanwhile is no longer among them.
    pub(crate) fn handed_back(&self, tasks: Vec<Task>) {
        for task in tasks {
            let number = task.name().and_then(|name| name.parse().ok());
            let number: usize = number.expect("every task of a model is named by its number");
            if task.cancel(CancelReason::Dropped) {
                self.write(number, |page| page.hand_backs += 1);
            }
        }
    }

    /// Demands that the pool has terminated and that the books balance. A task was cancelled for
    /// one of `reasons`.
    pub(crate) fn balance(&self, pool: &ThreadPool, reasons: &[CancelReason]) -> Sums {
        pool.await_termination().unwrap();
        let last = pool.snapshot();
        assert_ended(&last);
        let sums = self.add_up(reasons);
        let known = (last.completed + last.cancelled) as usize;
        assert_eq!(known, sums.taken, "{last:?} {sums:?}");
        sums
    }

    /// The books alone, for pools whose figures leave something out.
    pub(crate) fn add_up(&self, reasons: &[CancelReason]) -> Sums {
        let mut sums = Sums::default();
        for number in 0..self.pages.len() {
            let page = self.page(number);
            assert_eq!(page.drops, 1, "task {number}: {page:?}");
            let heard = page.cancelled.filter(|_| page.hand_backs == 0);
            let cancelled = heard.is_some() && page.runs == 0;
            let refused = matches!(page.brought, Brought::Refused(_));
            let fates = page.runs + page.hand_backs + usize::from(cancelled) + usize::from(refused);
            assert_eq!(fates, 1, "task {number}: {page:?}");
            if let Some(reason) = heard {
                assert!(reasons.contains(&reason), "task {number}: {page:?}");
            }
            sums.taken += usize::from(!refused);
            sums.run += page.runs;
            sums.handed_back += page.hand_backs;
            sums.cancelled += usize::from(cancelled);
            sums.refused += usize::from(refused);
        }
        sums
    }
}

fn assert_ended(last: &PoolSnapshot) {
    assert_eq!(last.state, RunState::Terminated);
    let left = (last.workers, last.active, last.extra_threads, last.queued);
    assert_eq!(left, (0, 0, 0, 0), "{last:?}");
}

/// The totals of the books.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Sums {
    pub(crate) taken: usize,
    pub(crate) run: usize,
    pub(crate) handed_back: usize,
    pub(crate) cancelled: usize,
    pub(crate) refused: usize,
}

/// Starts one submitter for each of these tasks; each waits for the outcome of its own.
pub(crate) fn bringers(
    books: &Books,
    pool: &ThreadPool,
    tasks: impl IntoIterator<Item = usize>,
) -> Vec<thread::JoinHandle<()>> {
    let bring = |number| {
        let (books, pool) = (books.clone(), pool.clone());
        thread::spawn(move || books.bring_and_join(&pool, number))
    };
    tasks.into_iter().map(bring).collect()
}

pub(crate) fn join_all(threads: Vec<thread::JoinHandle<()>>) {
    for thread in threads {
        thread.join().unwrap();
    }
}

/// Somewhere bodies wait until the model lets them go.
#[derive(Clone)]
pub(crate) struct Gate(Arc<(AtomicBool, WaitQueue)>);

impl Gate {
    pub(crate) fn new() -> Self {
        Gate(Arc::new((AtomicBool::new(false), WaitQueue::new())))
    }

    pub(crate) fn open(&self) {
        self.0.0.store(true, Ordering::SeqCst);
        self.0.1.wake_all();
    }

    pub(crate) fn wait(&self) {
        let (open, waits) = &*self.0;
        let here = park::current();
        while let Some(ticket) = waits.register(&here.waker(), || !open.load(Ordering::SeqCst)) {
            here.park(Site::new("model.gate"));
            waits.unregister(ticket);
        }
    }
}

/// Blocks until the running task is interrupted.
pub(crate) fn until_interrupted() {
    let here = park::current();
    current::with_interrupt_waker(&here.waker(), || {
        while !current::is_set() {
            here.park(Site::new("model.body"));
        }
    });
}

/// A factory that fails by plan: the first bit of `plan` is the first thread, and a bit that is set
/// is a thread that cannot be had.
#[derive(Debug)]
pub(crate) struct Moody {
    plan: u32,
    asked: AtomicUsize,
    threads: Threads,
}

impl Moody {
    pub(crate) fn new(plan: u32) -> Self {
        Moody {
            plan,
            asked: AtomicUsize::new(0),
            threads: Threads::named("model"),
        }
    }
}

impl ThreadFactory for Moody {
    fn start(&self, body: Body) -> io::Result<JoinHandle<()>> {
        let turn = self
            .asked
            .fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        if turn < 32 && self.plan >> turn & 1 == 1 {
            Err(io::ErrorKind::WouldBlock.into())
        } else {
            self.threads.start(body)
        }
    }
}

/// A factory whose threads die before their first step.
#[derive(Debug)]
pub(crate) struct Stillborn;

impl ThreadFactory for Stillborn {
    fn start(&self, body: Body) -> io::Result<JoinHandle<()>> {
        Threads::named("stillborn").start(Box::new(move || drop(body)))
    }
}

/// What a task owns whose thread dies before its first step while the pool is shut down: whoever has waited for the end
/// finds it dropped (END-4).
pub(crate) fn end_while_threads_die<P>(pool: &P)
where
    P: Executor + Lifecycle + Clone + Send + 'static,
{
    struct Owned(Arc<AtomicBool>);
    impl Drop for Owned {
        fn drop(&mut self) {
            self.0.store(true, Ordering::SeqCst);
        }
    }
    let other = pool.clone();
    let thread = thread::spawn(move || {
        other.shutdown();
        other.await_termination().unwrap();
    });
    let is_dropped = Arc::new(AtomicBool::new(false));
    let owned = Owned(Arc::clone(&is_dropped));
    let handle = pool.submit(move || drop(owned));
    pool.await_termination().unwrap();
    if let Ok(handle) = handle {
        assert!(is_dropped.load(Ordering::SeqCst) && handle.is_finished());
    }
    thread.join().unwrap();
}
