//! The workers of a pool, by number: who is there, how to reach them, what they have counted.
//!
//! - **W1** A worker is in the crew before its thread is started, and is put there under the lock
//!   under which a stop walks the crew, after a look at the state. So a stop finds every worker that
//!   will ever run a task, or the worker finds the stop.
//! - **W2** A worker's first task is in its slot until the worker takes it, or a stop does. So it is
//!   run, or handed back, and not lost when the thread cannot be started.
//! - **W3** A thread may die before its first step, whatever its factory said. Whoever started the
//!   worker sees to its task as long as it is there; after that the dying thread does. One of them
//!   does it: they agree under a lock ([`Birth`]).
//! - **W4** Extra threads ([`super::Rejection::NewThread`]) are listed likewise; they are no workers
//!   and are not counted in the control word.

use super::figures::{Ledger, Sums};
use super::stats::{Counts, WorkerStats};
use super::watch::Aim;
use crate::stack::Subject;
use crate::task::Task;
use millpond_raw::pad::Padded;
use millpond_raw::publish::Once;
use millpond_raw::sync::Mutex;
use millpond_raw::sync::atomic::{AtomicBool, Ordering};
use millpond_raw::task::Stop;
use millpond_raw::tick::Tick;
use millpond_raw::usage;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::task::Waker;
use std::thread;

/// How far a worker has come (W3).
#[derive(Clone, Copy, PartialEq, Eq)]
enum Birth {
    /// Whoever starts it has not heard from the factory yet.
    Awaited,
    /// The factory has answered, and nobody looks after it any more.
    Alone,
    Begun,
    /// Its thread has died before its first step, or there never was one.
    Dead,
}

/// One thread of a pool, as others see it.
pub(super) struct Worker {
    number: u64,
    first: Mutex<Option<Task>>,
    birth: Mutex<Birth>,
    /// Ends its wait for a task.
    waker: Mutex<Option<Waker>>,
    /// Interrupts what it runs, and what it will run.
    pub(super) stop: Stop,
    pub(super) stats: Padded<WorkerStats>,
    pub(super) ledger: Padded<Ledger>,
    /// Whether it has nothing to do, for the watch. One whose thread has not begun has.
    rests: AtomicBool,
    /// Its thread, as soon as that has begun.
    pub(super) face: Once<Face>,
    /// What interrupts the task that it runs, and no other.
    pub(super) aim: Mutex<Aim>,
}

/// What its thread is called.
pub(super) struct Face {
    pub(super) thread: Option<String>,
    pub(super) tid: Option<u32>,
    pub(super) began: Tick,
    /// Whose stack to ask for.
    pub(super) subject: Subject,
}

impl Worker {
    /// A worker with a first task is busy from the start: that task neither waits nor runs until
    /// the thread has begun, and must be in the figures all the same.
    pub(super) fn new(number: u64, first: Option<Task>, sheets: usize) -> Self {
        let stats = WorkerStats::default();
        if first.is_some() {
            stats.begin();
        }
        Worker {
            number,
            first: Mutex::new(first),
            birth: Mutex::new(Birth::Awaited),
            waker: Mutex::new(None),
            stop: Stop::new(),
            stats: Padded::new(stats),
            ledger: Padded::new(Ledger::new(sheets)),
            rests: AtomicBool::new(false),
            face: Once::new(),
            aim: Mutex::new(Aim::new()),
        }
    }

    /// Its first task, for whoever comes first (W2).
    pub(super) fn take_first(&self) -> Option<Task> {
        self.first.lock().take()
    }

    /// Its thread takes its first step.
    pub(super) fn begins(&self, now: Tick) {
        *self.birth.lock() = Birth::Begun;
        self.face.get_or_fill(|| Face {
            thread: thread::current().name().map(String::from),
            tid: usage::tid(),
            began: now,
            subject: Subject::here(),
        });
    }

    pub(super) fn number(&self) -> u64 {
        self.number
    }

    pub(super) fn rests(&self) -> bool {
        self.rests.load(Ordering::Relaxed)
    }

    /// For the watch, if there is one.
    pub(super) fn set_rests(&self, rests: bool) {
        self.rests.store(rests, Ordering::Relaxed);
    }

    /// The factory has answered. False if it has dropped the body, whatever it said.
    pub(super) fn is_left_alone(&self) -> bool {
        let mut birth = self.birth.lock();
        if *birth == Birth::Awaited {
            *birth = Birth::Alone;
        }
        *birth != Birth::Dead
    }

    pub(super) fn has_begun(&self) -> bool {
        *self.birth.lock() == Birth::Begun
    }

    /// What its thread holds is dropped. True if it has not begun, and nobody looks after its task.
    pub(super) fn dies_alone(&self) -> bool {
        let mut birth = self.birth.lock();
        match *birth {
            Birth::Begun => false,
            before => {
                *birth = Birth::Dead;
                before == Birth::Alone
            }
        }
    }

    /// Its first task, for a stop. It will not begin another one.
    pub(super) fn give_first_back(&self) -> Option<Task> {
        let first = self.take_first();
        if first.is_some() {
            self.stats.rest();
        }
        first
    }

    /// Says how to wake it.
    pub(super) fn is_woken_by(&self, waker: Waker) {
        let former = self.waker.lock().replace(waker);
        // E5: whoever brings a way to park of his own brings this, too.
        drop(former);
    }

    /// Lets it look again, if it waits.
    pub(super) fn wake(&self) {
        let waker = self.waker.lock().clone();
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

/// Everybody.
#[derive(Default)]
pub(super) struct Crew {
    next: u64,
    workers: BTreeMap<u64, Arc<Worker>>,
    extras: BTreeMap<u64, Arc<Worker>>,
    largest: usize,
    /// What those have counted who are gone.
    gone: Counts,
    gone_figures: Sums,
}

impl Crew {
    pub(super) fn number(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    /// Lists a worker.
    pub(super) fn add(&mut self, worker: &Arc<Worker>) {
        self.workers.insert(worker.number, Arc::clone(worker));
    }

    /// A thread has started for a worker that made it `count` workers. Not the length of the list:
    /// those who leave are on it for a while when their places have been taken.
    pub(super) fn has_started(&mut self, count: usize) {
        self.largest = self.largest.max(count);
    }

    /// Takes a worker out, and keeps what it has counted.
    pub(super) fn remove(&mut self, worker: &Worker) -> Option<Arc<Worker>> {
        let removed = self.workers.remove(&worker.number);
        if removed.is_some() {
            self.gone.add(worker.stats.counts());
            worker.ledger.add_to(&mut self.gone_figures);
        }
        removed
    }

    pub(super) fn add_extra(&mut self, extra: &Arc<Worker>) {
        self.extras.insert(extra.number, Arc::clone(extra));
    }

    pub(super) fn remove_extra(&mut self, extra: &Worker) -> Option<Arc<Worker>> {
        self.extras.remove(&extra.number)
    }

    pub(super) fn extras(&self) -> usize {
        self.extras.len()
    }

    pub(super) fn workers(&self) -> Vec<Arc<Worker>> {
        self.workers.values().cloned().collect()
    }

    /// Workers and extra threads.
    pub(super) fn everybody(&self) -> Vec<Arc<Worker>> {
        let all = self.workers.values().chain(self.extras.values());
        all.cloned().collect()
    }

    pub(super) fn len(&self) -> usize {
        self.workers.len()
    }

    pub(super) fn largest(&self) -> usize {
        self.largest
    }

    pub(super) fn active(&self) -> usize {
        let busy = self
            .workers
            .values()
            .filter(|worker| worker.stats.is_busy());
        busy.count()
    }

    /// What all have measured, by the ids of their labels.
    pub(super) fn figures(&self) -> Sums {
        let mut sums = self.gone_figures.clone();
        for worker in self.workers.values() {
            worker.ledger.add_to(&mut sums);
        }
        sums
    }

    pub(super) fn counts(&self) -> Counts {
        let mut counts = self.gone;
        for worker in self.workers.values() {
            counts.add(worker.stats.counts());
        }
        counts
    }
}
