//! A worker on its own thread: what it runs, when it publishes a job, and what it does if another worker has taken a job.
//!
//! # When a job is published
//!
//! Publishing is cheap. A wake-up is not: it costs the waking thread 5 µs, and the sleeper runs much later. So:
//!
//! - The *first* join of a computation ([`FIRST`]) publishes its job. A worker that searches now or later finds it, also
//!   while this worker computes for long without another join.
//! - If a worker *searches*, or waits for a job that this worker runs ([`PUBLISH_NOW`]), the next join publishes the oldest
//!   private job.
//! - If all others *sleep*, or have not been started ([`PUBLISH_LATER`]), a published job needs a wake-up. Usually the first
//!   join of a computation does that. After [`SHORT_IN_A_ROW`] *short* computations in a row ([`SHORT`]) the worker first
//!   computes for as long as a wake-up costs, its *wake delay* ([`MIN_WAKE_DELAY`]), because a burst that ends sooner does
//!   not pay for a wake-up. So the total is at most twice that of the better choice, if another join follows. A single
//!   join of two long halves after many short computations may run them one after the other.
//! - A wake-up is *wasted* if this worker had to run the job itself all the same. That doubles the wake delay, up to
//!   [`MAX_WAKE_DELAY`]. A job that another worker has taken resets it.
//!
//! During its wake delay the worker reads the clock at the 1st, 2nd, 4th, .. join, and then at each [`MAX_SKIP`]th.
//!
//! # Orderings
//!
//! `[S-ask]` and `[S-help]` are explained in [`super::slot`], where their other ends are.

use super::blocking::WaitState;
use super::deque::{Inner, Item, ScopeTag};
use super::engine::ForkJoinEngine;
use super::run_stop::{self, RunStop};
use super::slot::{FIRST, PUBLISH_LATER, PUBLISH_NOW, Slot};
use super::worker::Worker;
use crate::executor::TaskOutcome;
use crate::task::{self, Task};
use millpond_raw::forkjoin::{Awaited, Host, JobRef, Local};
use millpond_raw::sync::atomic::{Ordering, fence};
use millpond_raw::sync::{BiasKey, spins};
use millpond_raw::timestamp::{self, Timestamp};
use std::any::Any;
use std::cell::Cell;
use std::io;
use std::sync::Arc;

/// How long a worker first computes before it wakes another one, in nanoseconds.
const MIN_WAKE_DELAY: u64 = 5_000;

/// The wake delay after many wasted wake-ups, in nanoseconds.
const MAX_WAKE_DELAY: u64 = 1_000_000;

/// A computation is short if it ends within this time after its first join, in nanoseconds: two wake-ups take longer.
const SHORT: u64 = 10_000;

/// After this many short computations in a row the next one is expected to be short.
const SHORT_IN_A_ROW: u32 = 4;

/// The most joins between two looks at the clock.
const MAX_SKIP: u32 = 64;

/// A worker on its own thread.
pub(super) struct Context {
    pub(super) engine: Arc<ForkJoinEngine>,
    pub(super) worker: Arc<Worker>,
    pub(super) index: u32,
    /// Makes it the keeper of its deque.
    key: BiasKey,
    /// The stolen job that it runs in; 0 if none.
    root: Cell<usize>,
    /// When its wake delay began.
    since: Cell<Option<Timestamp>>,
    /// When the first join of this computation found that others sleep.
    first_join: Cell<Option<Timestamp>>,
    /// Short computations in a row.
    short: Cell<u32>,
    wake_delay: Cell<u64>,
    skip: Cell<u32>,
    /// Whether it has woken or started a worker for its last publication.
    has_woken: Cell<bool>,
    /// The stripe of the queue from outside with which it begins (OUTSIDE-4).
    pub(super) home: Cell<usize>,
    /// How many tasks it had run when it gave memory back.
    pub(super) trimmed_at: Cell<u64>,
    pub(super) waits: WaitState,
    /// Interrupts what it runs, if that takes too long.
    pub(super) run_stop: RunStop,
}

impl Context {
    pub(super) fn new(engine: Arc<ForkJoinEngine>, worker: Arc<Worker>, index: u32) -> Self {
        // SLOT-2
        let key = engine.slots.get(index).deque.keep();
        Context {
            engine,
            worker,
            index,
            key: key.expect("the last worker of the slot has given its key up"),
            root: Cell::new(0),
            since: Cell::new(None),
            first_join: Cell::new(None),
            short: Cell::new(0),
            wake_delay: Cell::new(MIN_WAKE_DELAY),
            skip: Cell::new(1),
            has_woken: Cell::new(false),
            home: Cell::new(index as usize),
            trimmed_at: Cell::new(0),
            waits: WaitState::default(),
            run_stop: RunStop::default(),
        }
    }

    /// Calls `f` with the current thread's worker, if the thread is a worker.
    #[inline]
    pub(super) fn with_current<R>(f: impl FnOnce(Option<&Context>) -> R) -> R {
        millpond_raw::forkjoin::with_current(|local| {
            f(local.and_then(|local| local.host().downcast_ref::<Context>()))
        })
    }

    pub(super) fn slot(&self) -> &Slot {
        self.engine.slots.get(self.index)
    }

    /// A computation begins, with no join around it.
    pub(super) fn begin_root(&self, local: &Local<'_>) {
        let demand = &self.slot().demand;
        let (bits, idle) = (demand.get(), self.engine.sleep.read());
        if bits & PUBLISH_NOW != 0 && idle.searching() == 0 {
            demand.word().fetch_and(!PUBLISH_NOW, Ordering::Relaxed);
        }
        if bits & PUBLISH_LATER == 0 && self.engine.has_room(idle) {
            demand.word().fetch_or(PUBLISH_LATER, Ordering::Relaxed);
        }
        self.since.set(None);
        self.first_join.set(None);
        self.offer_first(local);
    }

    /// Lets the next join publish its job.
    pub(super) fn offer_first(&self, local: &Local<'_>) {
        // Relaxed: the worker's own bit. A task without a join leaves it set.
        let demand = &self.slot().demand;
        if demand.get() & FIRST == 0 {
            demand.word().fetch_or(FIRST, Ordering::Relaxed);
        }
        local.reset_skip();
    }

    /// The computation that began last is over. It is judged only if it had a reason to wake another worker.
    #[inline]
    pub(super) fn end_root(&self) {
        if let Some(first) = self.first_join.take() {
            let now = timestamp::now();
            let is_short = now >= first && now.nanos_since(first) < SHORT;
            let short = if is_short { self.short.get() + 1 } else { 0 };
            self.short.set(short.min(SHORT_IN_A_ROW));
        }
    }

    /// Records the first join of a computation. Returns whether the computation is expected to be long.
    fn note_first_join(&self) -> bool {
        if spins() == 0 {
            // Models measure nothing.
            return true;
        }
        if self.first_join.get().is_none() {
            self.first_join.set(Some(timestamp::now()));
        }
        self.short.get() < SHORT_IN_A_ROW
    }

    /// Runs a job that this worker did not wait for.
    pub(super) fn run_job(&self, job: JobRef) {
        let outer = self.root.replace(job.id());
        self.with_run_stop(None, || run_in_own_context(job));
        self.root.set(outer);
    }

    /// Publishes the oldest private job. `wakes` says whether to wake a sleeping worker for it; helpers are always woken.
    fn publish(&self, local: &Local<'_>, wakes: bool) {
        let Some(job) = local.publish_oldest() else {
            return;
        };
        self.push_published(job);
        self.has_woken.set(self.signal_job(wakes));
    }

    /// Pushes a job that was private. The caller signals it to others.
    pub(super) fn push_published(&self, mut job: JobRef) {
        run_stop::surround(&mut job, Some(self));
        self.slot()
            .deque
            .push_job(&self.key, job, self.root.get(), None);
        self.worker.forks.published.add(1);
    }

    /// A job was pushed on the worker's own deque. Returns whether a worker was woken or started for it. Without `wakes`
    /// only a searching worker finds it; if none does, its owner runs it in the end.
    pub(super) fn signal_job(&self, wakes: bool) -> bool {
        let engine = &self.engine;
        // [S-word] [S-help]
        self.slot().deque.order(&self.key);
        let needed = engine.sleep.lacks_searcher();
        let coming = self.wake_helpers();
        match needed {
            None => false,
            Some(_) if !wakes => false,
            // An error is no harm: this worker runs the job itself.
            Some(_) => engine.rouse(coming).unwrap_or(false),
        }
    }

    /// Wakes the workers that sleep until this one publishes a job. Returns how many they are.
    pub(super) fn wake_helpers(&self) -> usize {
        let helpers = self.slot().helpers();
        for helper in &helpers {
            self.engine.slots.get(*helper).wake();
        }
        helpers.len()
    }

    /// Adds a task to its own deque, unless `is_open` says no.
    #[inline]
    pub(super) fn push_task(&self, task: Task, is_open: impl FnOnce() -> bool) -> Result<(), Task> {
        self.slot().deque.push_task(&self.key, task, is_open)
    }

    /// As [`ForkJoinEngine::signal`], for a task that was pushed on its own deque.
    #[inline]
    pub(super) fn signal_task(&self) -> io::Result<()> {
        // [S-word]
        self.slot().deque.order(&self.key);
        match self.engine.sleep.lacks_searcher() {
            None => Ok(()),
            Some(_) => self.engine.rouse(0).map(drop),
        }
    }

    /// Takes the youngest job of its own deque that is inside of what it waits for. If there is none, it gives its share of
    /// a scope back (JOB-10).
    pub(super) fn pop_inner(&self, inner: Inner) -> Option<JobRef> {
        let job = self.slot().deque.pop_inner(&self.key, inner);
        if job.is_none() {
            give_share_back();
        }
        job
    }

    /// Whether there is such a job.
    pub(super) fn has_inner(&self, inner: Inner) -> bool {
        self.slot().deque.has_inner(&self.key, inner)
    }

    /// The stolen job that it runs in; 0 if none.
    pub(super) fn root(&self) -> usize {
        self.root.get()
    }

    /// Pushes a job of that scope.
    pub(super) fn spawn(&self, mut job: JobRef, scope: ScopeTag) {
        run_stop::surround(&mut job, Some(self));
        let deque = &self.slot().deque;
        deque.push_job(&self.key, job, self.root.get(), Some(scope));
        let _ = self.signal_job(true);
    }

    /// Pushes a job that was published inside of that root.
    #[cfg(millpond_loom)]
    pub(super) fn push_marked(&self, job: JobRef, root: usize) {
        self.slot().deque.push_job(&self.key, job, root, None);
    }

    /// Withdraws the request of sleepers, if there are none any more.
    fn forget_sleepers(&self) {
        let word = self.slot().demand.word();
        word.fetch_and(!PUBLISH_LATER, Ordering::Relaxed);
        // [S-ask]
        fence(Ordering::SeqCst);
        if self.engine.has_room(self.engine.sleep.read()) {
            word.fetch_or(PUBLISH_LATER, Ordering::Relaxed);
        }
    }

    /// Reads the clock. `Ok` if the worker has computed for long enough to wake another one. Otherwise returns how many joins
    /// may pass before the next reading.
    fn check_wake_delay(&self) -> Result<(), u32> {
        if spins() == 0 {
            // Models measure nothing.
            return Ok(());
        }
        let now = timestamp::now();
        match self.since.get() {
            // The counter may have gone back.
            Some(since) if now >= since => {
                if now.nanos_since(since) >= self.wake_delay.get() {
                    self.since.set(Some(now));
                    self.skip.set(1);
                    return Ok(());
                }
                let skip = self.skip.get();
                self.skip.set((skip * 2).min(MAX_SKIP));
                Err(skip)
            }
            _ => {
                self.since.set(Some(now));
                self.skip.set(1);
                Err(0)
            }
        }
    }

    /// A task of this pool has been claimed and will run inline. If its tombstone is the newest entry of the worker's own
    /// deque, it is removed now, together with older tombstones below it. Otherwise a computation that forks and joins
    /// tasks would leave a tombstone for each of them until its root is over.
    pub(super) fn clear_tombstones(&self) {
        while let Some(gone) = self.slot().deque.pop_gone(&self.key) {
            let outcome = TaskOutcome::of(gone.tombstone());
            self.worker.stats.count_inside(outcome);
        }
    }

    /// Takes anything from its own deque, or else from elsewhere.
    pub(super) fn pop_any(&self) -> Option<Item> {
        self.pop_own().or_else(|| self.steal_any())
    }

    /// Takes anything from its own deque. If that is no job, it gives its share of a scope back (JOB-10).
    #[inline]
    pub(super) fn pop_own(&self) -> Option<Item> {
        let is_fifo = self.engine.config.is_fifo;
        let item = self.slot().deque.pop(&self.key, is_fifo);
        if !matches!(item, Some(Item::Job(_))) {
            give_share_back();
        }
        item
    }

    /// Takes anything that is queued elsewhere.
    pub(super) fn steal_any(&self) -> Option<Item> {
        let item = self.engine.steal(self.index, self.home.get())?;
        self.worker.forks.steals.add(1);
        Some(item)
    }
}

/// JOB-10
#[inline]
pub(super) fn give_share_back() {
    millpond_raw::forkjoin::with_current(|local| local.map(Local::give_share_back));
}

/// Runs a job in the context in which it was forked or spawned, and not in that of the calling task.
pub(super) fn run_in_own_context(job: JobRef) {
    if job.is_surrounded() {
        job.run();
    } else {
        task::outside(|| job.run());
    }
}

impl Host for Context {
    fn as_any(&self) -> &dyn Any {
        self
    }

    fn holds_shares(&self) -> bool {
        true
    }

    fn on_demand(&self, local: &Local<'_>) -> u32 {
        let (engine, slot) = (&self.engine, self.slot());
        let bits = slot
            .demand
            .word()
            .fetch_and(!(PUBLISH_NOW | FIRST), Ordering::Relaxed);
        let idle = engine.sleep.read();
        let is_urgent = bits & PUBLISH_NOW != 0 || idle.searching() > 0;
        if is_urgent || bits & FIRST != 0 {
            if slot.deque.jobs() == 0 {
                let wakes = self.note_first_join() || is_urgent;
                self.publish(local, wakes);
                return 0;
            }
            if is_urgent {
                return MAX_SKIP;
            }
        }
        if !engine.has_room(idle) {
            self.forget_sleepers();
            return 0;
        }
        let is_published = slot.deque.jobs() > 0;
        if is_published && self.has_woken.get() {
            // A worker is on its way.
            return MAX_SKIP;
        }
        match self.check_wake_delay() {
            Ok(()) if is_published => {
                self.has_woken.set(self.signal_job(true));
                MAX_SKIP
            }
            Ok(()) => {
                self.publish(local, true);
                MAX_SKIP
            }
            Err(skip) => skip,
        }
    }

    fn on_context_change(&self, local: &Local<'_>) {
        // No worker is woken: an inner task is often short.
        while !local.is_empty() {
            self.publish(local, false);
        }
    }

    fn reclaim(&self, id: usize) -> Option<JobRef> {
        let found = self.slot().deque.take_job(&self.key, id)?;
        if self.has_woken.replace(false) {
            self.wake_delay
                .set((self.wake_delay.get() * 2).min(MAX_WAKE_DELAY));
        }
        Some(found)
    }

    fn wait(&self, local: &Local<'_>, job: &Awaited<'_>) {
        let _ = local;
        self.wake_delay.set(MIN_WAKE_DELAY);
        self.has_woken.set(false);
        let id = job.id();
        let thief = || job.runner().map(|runner| (runner, id));
        self.wait_until(
            Inner::Join(id),
            &|| job.is_over(),
            &|waker| job.register(waker),
            &thief,
        );
    }
}

impl Context {
    /// Requests a job from the worker in that slot, and registers as a helper that sleeps until it publishes one.
    pub(super) fn ask_thief(&self, thief: u32) {
        let slot = self.engine.slots.get(thief);
        slot.add_helper(self.index);
        slot.ask(PUBLISH_NOW);
        // [S-help]
        fence(Ordering::SeqCst);
        slot.deque.settle();
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        // SLOT-2
        let deque = &self.engine.slots.get(self.index).deque;
        deque.give_up(&mut self.key);
    }
}
