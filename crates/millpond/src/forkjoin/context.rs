//! The worker on its own thread: what it runs, when it publishes a job, and what it does when a job was taken.
//!
//! # When a job is published
//!
//! Publishing is cheap and waking is not: 5 µs for the thread that wakes, and much longer until the sleeper runs. So:
//!
//! - At the *first* join of a computation ([`FIRST`]) its job is published: whoever searches now or later finds it, also
//!   while this worker computes for long without another join.
//! - If a worker *searches*, or one waits for a job that this worker runs ([`URGENT`]), the oldest private job is published
//!   at the next join.
//! - If all others *sleep*, or have not been started ([`PATIENT`]), somebody must be woken for a published job. Unless the
//!   last [`SHORT_IN_A_ROW`] computations of this worker were *short* ([`SHORT`]), that is done at the first join. After
//!   short ones the worker first computes for as long as a wake-up costs ([`MIN_PATIENCE`]): a burst that is over before
//!   is not worth one. So the total is at most twice what it would have been with the better choice, provided that
//!   another join follows: a single join of two long halves after many short computations may run them one after the
//!   other. A wake-up in vain, after which the worker had to run the job itself, doubles the patience, up to
//!   [`MAX_PATIENCE`]; a job that was taken resets it.
//!
//! While it is patient the worker reads the clock at the 1st, 2nd, 4th, .. and then each [`MAX_SKIP`]th join.
//!
//! # Orderings
//!
//! `[S-ask]` and `[S-help]` are explained in [`super::slot`], where their other ends are.

use super::blocking::WaitState;
use super::deque::{Inner, Item, ScopeTag};
use super::engine::ForkJoinEngine;
use super::run_stop::{self, RunStop};
use super::slot::{FIRST, PATIENT, Slot, URGENT};
use super::worker::Worker;
use crate::executor::RunOutcome;
use crate::task;
use millpond_raw::forkjoin::{Awaited, Host, JobRef, Local};
use millpond_raw::sync::atomic::{Ordering, fence};
use millpond_raw::sync::spins;
use millpond_raw::timestamp::{self, Timestamp};
use std::any::Any;
use std::cell::Cell;
use std::sync::Arc;

/// The patience of a worker before it wakes another one, in nanoseconds.
const MIN_PATIENCE: u64 = 5_000;

/// The patience after many wake-ups in vain.
const MAX_PATIENCE: u64 = 1_000_000;

/// A computation that ends so soon after its first join is short: two wake-ups take longer. In nanoseconds.
const SHORT: u64 = 10_000;

/// After so many short computations in a row the next one is expected to be short.
const SHORT_IN_A_ROW: u32 = 4;

/// The most joins between two looks at the clock.
const MAX_SKIP: u32 = 64;

/// A worker on its own thread.
pub(super) struct Context {
    pub(super) engine: Arc<ForkJoinEngine>,
    pub(super) worker: Arc<Worker>,
    pub(super) index: u32,
    /// The stolen job inside of which it runs; 0 outside of any.
    root: Cell<usize>,
    /// When its patience began.
    since: Cell<Option<Timestamp>>,
    /// When the first join of this computation found that others sleep.
    first_join: Cell<Option<Timestamp>>,
    /// Short computations in a row.
    short: Cell<u32>,
    patience: Cell<u64>,
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
        Context {
            engine,
            worker,
            index,
            root: Cell::new(0),
            since: Cell::new(None),
            first_join: Cell::new(None),
            short: Cell::new(0),
            patience: Cell::new(MIN_PATIENCE),
            skip: Cell::new(1),
            has_woken: Cell::new(false),
            home: Cell::new(index as usize),
            trimmed_at: Cell::new(0),
            waits: WaitState::default(),
            run_stop: RunStop::default(),
        }
    }

    /// Calls `f` with the worker that the current thread is, if it is one.
    #[inline]
    pub(super) fn with_current<R>(f: impl FnOnce(Option<&Context>) -> R) -> R {
        millpond_raw::forkjoin::with_current(|local| {
            f(local.and_then(|local| local.host().downcast_ref::<Context>()))
        })
    }

    pub(super) fn slot(&self) -> &Slot {
        self.engine.slots.get(self.index)
    }

    /// Something new begins, with no join around it.
    pub(super) fn begin_root(&self, local: &Local<'_>) {
        let demand = &self.slot().demand;
        let (bits, idle) = (demand.get(), self.engine.sleep.read());
        if bits & URGENT != 0 && idle.searching() == 0 {
            demand.word().fetch_and(!URGENT, Ordering::Relaxed);
        }
        if bits & PATIENT == 0 && self.engine.has_room(idle) {
            demand.word().fetch_or(PATIENT, Ordering::Relaxed);
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

    /// What began last is over. Only a computation that had a reason to wake somebody is judged.
    #[inline]
    pub(super) fn end_root(&self) {
        if let Some(first) = self.first_join.take() {
            let now = timestamp::now();
            let is_short = now >= first && now.nanos_since(first) < SHORT;
            let short = if is_short { self.short.get() + 1 } else { 0 };
            self.short.set(short.min(SHORT_IN_A_ROW));
        }
    }

    /// Takes note of the first join of a computation; whether that is expected to be long.
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

    /// Publishes the oldest private job. Workers that sleep are woken for it if `wakes`; helpers always are.
    fn publish(&self, local: &Local<'_>, wakes: bool) {
        let Some(job) = local.publish_oldest() else {
            return;
        };
        self.push_published(job);
        self.has_woken.set(self.signal_job(wakes));
    }

    /// Pushes a job that was private. The caller tells others.
    pub(super) fn push_published(&self, mut job: JobRef) {
        run_stop::surround(&mut job, Some(self));
        self.slot().deque.push_job(job, self.root.get(), None);
        self.worker.forks.published.add(1);
    }

    /// A job was pushed on the worker's own deque. Returns whether a worker was woken or started for it. Without `wakes`
    /// a worker that searches finds it, one that sleeps does not, and its owner runs it in the end.
    pub(super) fn signal_job(&self, wakes: bool) -> bool {
        let engine = &self.engine;
        let needed = engine.sleep.needs_wake();
        // [S-help]: the fence is that of `needs_wake`
        let coming = self.wake_helpers();
        match needed {
            None => false,
            Some(_) if !wakes => false,
            // An error is no harm: this worker runs the job itself.
            Some(_) => engine.rouse(coming).unwrap_or(false),
        }
    }

    /// Wakes those that sleep until this worker publishes a job, and returns how many they are.
    pub(super) fn wake_helpers(&self) -> usize {
        let helpers = self.slot().helpers();
        for helper in &helpers {
            self.engine.slots.get(*helper).wake();
        }
        helpers.len()
    }

    /// The stolen job inside of which it runs; 0 outside of any.
    pub(super) fn root(&self) -> usize {
        self.root.get()
    }

    /// Pushes a job of that scope.
    pub(super) fn spawn(&self, mut job: JobRef, scope: ScopeTag) {
        run_stop::surround(&mut job, Some(self));
        let deque = &self.slot().deque;
        deque.push_job(job, self.root.get(), Some(scope));
        let _ = self.signal_job(true);
    }

    /// Takes back the request of sleepers, if there is none any more.
    fn forget_sleepers(&self) {
        let word = self.slot().demand.word();
        word.fetch_and(!PATIENT, Ordering::Relaxed);
        // [S-ask]
        fence(Ordering::SeqCst);
        if self.engine.has_room(self.engine.sleep.read()) {
            word.fetch_or(PATIENT, Ordering::Relaxed);
        }
    }

    /// Looks at the clock: the worker has computed for long enough to wake another one, or else so many joins may pass
    /// before the next look.
    fn check_patience(&self) -> Result<(), u32> {
        if spins() == 0 {
            // Models measure nothing.
            return Ok(());
        }
        let now = timestamp::now();
        match self.since.get() {
            // The counter may have gone back.
            Some(since) if now >= since => {
                if now.nanos_since(since) >= self.patience.get() {
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

    /// A task of this pool has been claimed, and will run inline. If it was the newest of the worker's own deque, it leaves
    /// that now, and with it older tombstones that had to stay. Otherwise a computation that forks and joins tasks would
    /// leave one for each of them until its root is over.
    pub(super) fn clear_tombstones(&self) {
        while let Some(gone) = self.slot().deque.pop_gone() {
            let fate = RunOutcome::of(gone.tombstone());
            self.worker.stats.count_inside(fate);
        }
    }

    /// Takes anything of its own, or else that is queued elsewhere.
    pub(super) fn pop_any(&self) -> Option<Item> {
        let own = self.slot().deque.pop(self.engine.config.is_fifo);
        own.or_else(|| self.steal_any())
    }

    /// Takes anything that is queued elsewhere.
    pub(super) fn steal_any(&self) -> Option<Item> {
        let item = self.engine.steal(self.index, self.home.get())?;
        self.worker.forks.steals.add(1);
        Some(item)
    }
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

    fn on_demand(&self, local: &Local<'_>) -> u32 {
        let (engine, slot) = (&self.engine, self.slot());
        let bits = slot
            .demand
            .word()
            .fetch_and(!(URGENT | FIRST), Ordering::Relaxed);
        let idle = engine.sleep.read();
        let is_urgent = bits & URGENT != 0 || idle.searching() > 0;
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
        match self.check_patience() {
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
        // Nobody is woken: an inner task is often short.
        while !local.is_empty() {
            self.publish(local, false);
        }
    }

    fn reclaim(&self, id: usize) -> Option<JobRef> {
        let found = self.slot().deque.take_job(id)?;
        if self.has_woken.replace(false) {
            self.patience
                .set((self.patience.get() * 2).min(MAX_PATIENCE));
        }
        Some(found)
    }

    fn wait(&self, local: &Local<'_>, job: &Awaited<'_>) {
        let _ = local;
        self.patience.set(MIN_PATIENCE);
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
    /// Asks the worker in that slot for a job, and registers as one that sleeps until then.
    pub(super) fn ask_thief(&self, thief: u32) {
        let slot = self.engine.slots.get(thief);
        slot.add_helper(self.index);
        slot.ask(URGENT);
        // [S-help]
        fence(Ordering::SeqCst);
    }
}
