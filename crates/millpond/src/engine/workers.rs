//! The registry of an engine's workers, by number: which there are, how to reach them, how far each has started.
//!
//! - **WORKERS-1** A worker is registered before its thread is started, under the lock under which a stop walks the
//!   registry, and after a look at the run state. So a stop finds every worker that will ever run a task, or the
//!   worker finds the stop.
//! - **WORKERS-2** A worker's first task is in its slot until the worker takes it, or a stop does. So it is run, or
//!   handed back, and not lost when the thread cannot be started.
//! - **WORKERS-3** A thread may die before its first step, whatever its factory answered. The thread that started the
//!   worker looks after the first task until the factory has answered; after that the dying thread does. Exactly one
//!   of them does it: they agree under a lock ([`StartState`]).
//! - **WORKERS-4** Extra threads, which an engine starts beside its workers, are registered likewise. They are no
//!   workers, and are not counted in the control word.

use crate::stack::ThreadRef;
use millpond_raw::cpu_time;
use millpond_raw::once_box::OnceBox;
use millpond_raw::sync::Mutex;
use millpond_raw::sync::atomic::{AtomicBool, Ordering};
use millpond_raw::task::Stop;
use millpond_raw::timestamp::Timestamp;
use std::collections::BTreeMap;
use std::ops::Deref;
use std::sync::Arc;
use std::task::Waker;
use std::thread;

/// What an engine keeps for each of its workers.
pub(crate) trait WorkerPart: Send + Sync + 'static {
    /// What a worker may be started with.
    type Task: Send;
    /// Totals of workers that have exited.
    type Totals: Default + Send;

    /// Adds what an exiting worker has counted.
    fn add_to(&self, totals: &mut Self::Totals);
}

/// How far a worker has started (WORKERS-3).
#[derive(Clone, Copy, PartialEq, Eq)]
enum StartState {
    /// The factory has not answered yet.
    Starting,
    /// The factory has answered, and the thread that asked it has gone on.
    Detached,
    Started,
    /// The thread has died before its first step, or there never was one.
    Dead,
}

/// One thread of an engine, as other threads see it. What its engine keeps for it is reached by dereferencing.
pub(crate) struct Worker<P: WorkerPart> {
    number: u64,
    first: Mutex<Option<P::Task>>,
    start: Mutex<StartState>,
    /// Ends its wait for a task.
    waker: Mutex<Option<Waker>>,
    /// Interrupts what it runs, and what it will run.
    pub(crate) stop: Stop,
    /// Whether it has nothing to do, for the watchdog. A worker whose thread has not started yet is not idle.
    is_idle: AtomicBool,
    /// Its thread, once that has started.
    thread: OnceBox<ThreadInfo>,
    part: P,
}

/// The thread of a worker.
pub(crate) struct ThreadInfo {
    pub(crate) name: Option<String>,
    pub(crate) tid: Option<u32>,
    pub(crate) started: Timestamp,
    /// For stack dumps.
    pub(crate) thread_ref: ThreadRef,
}

impl<P: WorkerPart> Worker<P> {
    pub(crate) fn new(number: u64, first: Option<P::Task>, part: P) -> Self {
        Worker {
            number,
            first: Mutex::new(first),
            start: Mutex::new(StartState::Starting),
            waker: Mutex::new(None),
            stop: Stop::new(),
            is_idle: AtomicBool::new(false),
            thread: OnceBox::new(),
            part,
        }
    }

    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    /// Takes its first task, if no other thread has (WORKERS-2).
    pub(crate) fn take_first(&self) -> Option<P::Task> {
        self.first.lock().take()
    }

    /// Whether its first task still waits for it, and is accepted: the factory has answered. Until then the task may be
    /// given back to its submitter.
    pub(crate) fn has_accepted_first(&self) -> bool {
        let start = *self.start.lock();
        matches!(start, StartState::Detached | StartState::Started) && self.first.lock().is_some()
    }

    /// Its thread, once that has started.
    pub(crate) fn thread(&self) -> Option<&ThreadInfo> {
        self.thread.get()
    }

    pub(crate) fn is_idle(&self) -> bool {
        self.is_idle.load(Ordering::Relaxed)
    }

    /// For the watchdog, if there is one.
    pub(crate) fn set_idle(&self, is_idle: bool) {
        self.is_idle.store(is_idle, Ordering::Relaxed);
    }

    /// Records that the present thread, which is the worker's, takes its first step.
    pub(crate) fn record_started(&self, now: Timestamp) {
        *self.start.lock() = StartState::Started;
        self.thread.get_or_init(|| ThreadInfo {
            name: thread::current().name().map(String::from),
            tid: cpu_time::tid(),
            started: now,
            thread_ref: ThreadRef::current(),
        });
    }

    pub(crate) fn has_started(&self) -> bool {
        *self.start.lock() == StartState::Started
    }

    /// Records that the factory has answered. Returns false if it has dropped the body, whatever it answered.
    pub(crate) fn detach(&self) -> bool {
        let mut start = self.start.lock();
        if *start == StartState::Starting {
            *start = StartState::Detached;
        }
        *start != StartState::Dead
    }

    /// Records that what its thread holds is dropped. Returns true if the thread never started and no other thread looks
    /// after its first task.
    pub(crate) fn mark_dead(&self) -> bool {
        let mut start = self.start.lock();
        match *start {
            StartState::Started => false,
            before => {
                *start = StartState::Dead;
                before == StartState::Detached
            }
        }
    }

    pub(crate) fn set_waker(&self, waker: Waker) {
        let former = self.waker.lock().replace(waker);
        // A waker may be the user's, as ways to park may: it is dropped under no lock.
        drop(former);
    }

    /// Lets it look again, if it waits.
    pub(crate) fn wake(&self) {
        let waker = self.waker.lock().clone();
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

impl<P: WorkerPart> Deref for Worker<P> {
    type Target = P;

    #[inline]
    fn deref(&self) -> &P {
        &self.part
    }
}

/// All workers and extra threads of an engine.
pub(crate) struct Workers<P: WorkerPart> {
    next: u64,
    workers: BTreeMap<u64, Arc<Worker<P>>>,
    extras: BTreeMap<u64, Arc<Worker<P>>>,
    /// Threads that keep the engine from its end (END-4).
    holds: usize,
    largest: usize,
    exited: P::Totals,
}

impl<P: WorkerPart> Default for Workers<P> {
    fn default() -> Self {
        Workers {
            next: 0,
            workers: BTreeMap::new(),
            extras: BTreeMap::new(),
            holds: 0,
            largest: 0,
            exited: P::Totals::default(),
        }
    }
}

impl<P: WorkerPart> Workers<P> {
    pub(crate) fn next_number(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    pub(crate) fn add(&mut self, worker: &Arc<Worker<P>>) {
        self.workers.insert(worker.number, Arc::clone(worker));
    }

    /// Records that a thread has started for the worker that raised the count to `count`. The registry may be longer:
    /// a leaving worker is in it for a while after its place in the count has been taken.
    pub(crate) fn record_started(&mut self, count: usize) {
        self.largest = self.largest.max(count);
    }

    /// Removes a worker, and keeps what it has counted.
    pub(crate) fn remove(&mut self, worker: &Worker<P>) -> Option<Arc<Worker<P>>> {
        let removed = self.workers.remove(&worker.number);
        if removed.is_some() {
            worker.part.add_to(&mut self.exited);
        }
        removed
    }

    pub(crate) fn add_extra(&mut self, extra: &Arc<Worker<P>>) {
        self.extras.insert(extra.number, Arc::clone(extra));
    }

    pub(crate) fn remove_extra(&mut self, extra: &Worker<P>) -> Option<Arc<Worker<P>>> {
        self.extras.remove(&extra.number)
    }

    pub(crate) fn extras(&self) -> usize {
        self.extras.len()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Arc<Worker<P>>> {
        self.workers.values()
    }

    pub(crate) fn iter_extras(&self) -> impl Iterator<Item = &Arc<Worker<P>>> {
        self.extras.values()
    }

    /// Copies the list, for callers that do more than the registry's lock allows.
    pub(crate) fn list(&self) -> Vec<Arc<Worker<P>>> {
        self.iter().cloned().collect()
    }

    /// The same, extra threads included.
    pub(crate) fn list_all(&self) -> Vec<Arc<Worker<P>>> {
        self.iter().chain(self.extras.values()).cloned().collect()
    }

    /// END-4. Each call needs one of [`release`](Workers::release).
    pub(super) fn hold(&mut self) {
        self.holds += 1;
    }

    pub(super) fn release(&mut self) {
        self.holds -= 1;
    }

    /// Whether no worker and no extra thread is left, and no thread keeps the engine from its end.
    pub(crate) fn is_empty(&self) -> bool {
        self.workers.is_empty() && self.extras.is_empty() && self.holds == 0
    }

    /// The largest number of workers that there has been.
    pub(crate) fn largest(&self) -> usize {
        self.largest
    }

    /// Totals of workers that have exited.
    pub(crate) fn exited(&self) -> &P::Totals {
        &self.exited
    }
}
