//! The pool itself, without the handles of its users: its parts, and the protocol between submitters and workers.
//!
//! ```text
//!   execute, install from outside --> [ outside queue: some stripes ]
//!                                            |
//!   worker 1:  private list --publish--> [ deque ] <--- steal --- worker 2, 3, ..
//!              join                      execute, spawn from inside
//! ```
//!
//! # Invariants
//!
//! - **FORKJOIN-1** A thread that has pushed something reads the state of the idle workers and the worker count
//!   *afterwards* ([`ForkJoinEngine::signal`]): it wakes a sleeper, starts a worker, or relies on one that searches, or
//!   on those that run, if there are enough of them (SPARE-1).
//! - **FORKJOIN-2** A leaving worker decrements the worker count and stops searching first, then looks for work. If there is
//!   some and too few workers run, it wakes a sleeper, also where it may not stay itself: a submitter may have relied on
//!   it. Only if there is nobody to wake, and a place, it counts itself in again and stays.
//! - **FORKJOIN-3** Tasks are rejected by the state of the control word, read under the lock under which they would be
//!   pushed (DEQUE-2); a shutdown takes each lock once after it has changed the state.
//! - **FORKJOIN-4** A worker exits with an empty deque and an empty private list: it runs what it has published and spawned,
//!   also after a stop. Only tasks are handed back by a stop.
//! - **FORKJOIN-5** No user code (a factory, listener, closure or destructor) runs under a lock of the pool.
//! - **FORKJOIN-6** A worker that was counted and could not start, or that died, is missed by those that relied on it: a
//!   worker that left because enough ran, and those that sleep after a shutdown until no worker is active. So one sleeper
//!   is woken if there is work, and after a shutdown all are.
//!
//! Beside it: SLEEP in [`super::sleep`], SPARE in [`super::spares`], DEQUE in [`super::deque`], OUTSIDE in
//! [`super::outside`], HELP in [`super::wait`], JOB in [`millpond_raw::forkjoin`], and CTL, WORKERS, SPAWN and END in
//! [`crate::engine`].
//!
//! # Orderings
//!
//! `[S-ask]` is explained in [`super::slot`].

use super::cache_groups::CacheGroups;
use super::config::LiveConfig;
use super::deque::Item;
use super::events::ForkJoinEvent;
use super::outside::Outside;
use super::quiescence::QuietWorkers;
use super::sleep::Sleep;
use super::slot::{PUBLISH_LATER, Slots};
use super::spares::{MAX_SPARES, Spares};
use super::worker::{Worker, WorkerRecord, Workers};
use crate::engine::dropped::Drops;
use crate::engine::events::{EventSource, Events};
use crate::engine::metrics::{Counter, LabelTable};
use crate::engine::stacks::LongRuns;
use crate::engine::watchdog::Watchdog;
use crate::engine::{
    AtomicCtl, CommonBuilder, ForkGuard, Hold, NotAdded, RemovedTasks, RemovesTasks, Spawn, Starts,
    Termination, Tombstones, WorkerBuilder, WorkerEngine, WorkerGuard,
};
use crate::executor::{ReportDrops, Runner};
use crate::task::{CancelReason, QueueOwner, Task};
use crate::thread::ThreadFactory;
use crate::time::{Clock, TimestampClock};
use millpond_raw::recycle;
use millpond_raw::sync::Mutex;
use millpond_raw::sync::atomic::{AtomicBool, Ordering, fence};
use millpond_raw::wait_queue::WaitQueue;
use std::borrow::Cow;
use std::io;
use std::sync::Arc;

/// The most workers that a pool can have, without spares.
pub(super) const MAX_PARALLELISM: usize = 1024;

/// What the handles of a pool and its workers share.
pub(super) struct ForkJoinEngine {
    pub(super) name: Cow<'static, str>,
    ctl: AtomicCtl,
    /// True while the watchdog is armed. Beside what every submit reads.
    pub(super) is_watched: AtomicBool,
    fork_guard: ForkGuard,
    /// Tasks and jobs from outside.
    pub(super) outside: Outside,
    pub(super) slots: Slots,
    pub(super) cache_groups: Arc<CacheGroups>,
    /// To be dropped after the queues (TAG-2), so it stands behind them.
    pub(super) tombstones: Tombstones,
    pub(super) sleep: Sleep,
    pub(super) spares: Spares,
    workers: Mutex<Workers>,
    pub(super) config: LiveConfig,
    pub(super) termination: Termination,
    /// Threads that wait until nothing is queued and nothing runs.
    pub(super) quiescence: WaitQueue,
    pub(super) quiet: Mutex<QuietWorkers>,
    pub(super) starts: Starts,
    pub(super) removed: RemovedTasks,
    pub(super) rare: RareStats,
    pub(super) runner: Runner,
    pub(super) clock: Clock,
    pub(super) timestamps: TimestampClock,
    /// The labels of its metrics; `None` if it keeps none.
    pub(super) labels: Option<LabelTable>,
    pub(super) watchdog: Watchdog,
    pub(super) long_runs: LongRuns<Worker>,
    pub(super) events: Events<ForkJoinEngine>,
    pub(super) dropped: Drops,
    /// It is the common pool, which is never shut down.
    pub(super) is_common: bool,
}

/// Events that are counted at once by whichever thread sees them.
#[derive(Debug, Default)]
pub(super) struct RareStats {
    /// Accepted tasks that their queue did not count, because there was no worker when they came.
    pub(super) submitted: Counter,
    /// Counted tasks that were taken back, because there was no thread to run them any more.
    pub(super) taken_back: Counter,
    pub(super) rejected: Counter,
    pub(super) installed: Counter,
    pub(super) wakes: Counter,
    pub(super) futile_spins: Counter,
    pub(super) preempted_yields: Counter,
}

/// What a pool is made of.
pub(super) struct Parts {
    pub(super) common: CommonBuilder<ForkJoinEvent>,
    pub(super) workers: WorkerBuilder,
    pub(super) config: LiveConfig,
    pub(super) is_common: bool,
    pub(super) cache_groups: Arc<CacheGroups>,
}

impl ForkJoinEngine {
    pub(super) fn new(parts: Parts) -> Arc<Self> {
        let common = parts.common;
        let of_workers = parts.workers.into_parts(&common.clock);
        Arc::new_cyclic(|own| ForkJoinEngine {
            name: common.name,
            ctl: AtomicCtl::new(),
            is_watched: AtomicBool::new(false),
            fork_guard: ForkGuard::new(),
            outside: Outside::new(parts.config.parallelism()),
            slots: Slots::new(MAX_PARALLELISM + MAX_SPARES),
            cache_groups: parts.cache_groups,
            tombstones: Tombstones::new(QueueOwner::Engine),
            sleep: Sleep::default(),
            spares: Spares::default(),
            workers: Mutex::new(Workers::default()),
            config: parts.config,
            termination: Termination::new(),
            quiescence: WaitQueue::new(),
            quiet: Mutex::new(QuietWorkers::default()),
            starts: Starts::default(),
            removed: RemovedTasks::default(),
            rare: RareStats::default(),
            runner: of_workers.runner,
            clock: common.clock,
            timestamps: of_workers.timestamps,
            labels: of_workers.labels,
            watchdog: of_workers.watchdog,
            long_runs: LongRuns::default(),
            events: Events::new(own, common.listener),
            dropped: Drops::new(),
            is_common: parts.is_common,
        })
    }

    #[inline]
    pub(super) fn is_forked(&self) -> bool {
        self.fork_guard.is_forked()
    }

    /// Reads the registry of workers. In a forked process `None` if its lock is not free: no thread will release it.
    pub(super) fn read_workers<R>(&self, f: impl FnOnce(&mut Workers) -> R) -> Option<R> {
        if self.is_forked() {
            self.workers.try_lock().map(|mut workers| f(&mut workers))
        } else {
            Some(f(&mut self.workers.lock()))
        }
    }

    /// How many workers compute at a time.
    #[inline]
    pub(super) fn parallelism(&self) -> usize {
        self.config.parallelism()
    }

    /// Whether anything is queued that any worker may take.
    pub(super) fn has_visible_work(&self) -> bool {
        !self.outside.is_empty() || self.slots.iter().any(|slot| !slot.deque.is_empty())
    }

    /// The same for a thread that has changed the state of the idle workers, the number of workers or the parallelism, with
    /// a fence behind that: it sees whatever was pushed by a worker that did not see the change (`[S-word]`).
    pub(super) fn finds_work(&self) -> bool {
        self.settle();
        self.has_visible_work()
    }

    /// What workers have pushed is seen behind this and a fence of the caller before it.
    fn settle(&self) {
        self.slots.iter().for_each(|slot| slot.deque.settle());
    }

    /// How many workers run something, or are about to.
    pub(super) fn active(&self) -> usize {
        let idle = self.sleep.read().count();
        self.ctl.read().workers().saturating_sub(idle)
    }

    /// How many workers do not sleep. They may have something in hand, also those that search.
    pub(super) fn awake(&self) -> usize {
        let workers = self.ctl.read().workers();
        workers.saturating_sub(self.sleep.read().sleeping())
    }

    /// Something was pushed from outside (FORKJOIN-1). An error says that there is no worker, and none could be started.
    #[inline]
    pub(super) fn signal(self: &Arc<Self>) -> io::Result<()> {
        match self.sleep.needs_wake() {
            None => Ok(()),
            Some(_) => self.rouse(0).map(drop),
        }
    }

    /// Whether a task that comes now may make it start a worker.
    pub(super) fn may_start_worker(&self) -> bool {
        let idle = self.sleep.read();
        idle.count() == 0 && self.has_room(idle)
    }

    /// Starts a worker, if one is missing. An error says that none could be started and there is none.
    #[cold]
    pub(super) fn start_worker(self: &Arc<Self>) -> io::Result<()> {
        let added = match self.start_pause() {
            Some(error) => Err(error),
            None => {
                let places = self.places(self.sleep.read());
                self.keep_spares(places);
                match self.add_worker(None, places) {
                    Ok(()) | Err((_, NotAdded::Judge)) => Ok(()),
                    Err((_, NotAdded::Failed(error))) => Err(error),
                }
            }
        };
        match added {
            Err(error) if self.ctl.read().workers() == 0 => Err(error),
            _ => Ok(()),
        }
    }

    /// Wakes a sleeper. False if there was none.
    pub(super) fn wake_one(&self) -> bool {
        match self.sleep.take_sleeper() {
            None => false,
            Some(slot) => {
                self.rare.wakes.add(1);
                self.slots.get(slot).wake();
                true
            }
        }
    }

    /// Lets every sleeper look again at the state and the limits.
    pub(super) fn wake_all(&self) {
        for slot in self.sleep.take_all() {
            self.slots.get(slot).wake();
        }
    }

    /// Asks all workers but the one in this slot for work.
    pub(super) fn ask_others(&self, own: u32, bit: u32) {
        for (index, slot) in self.slots.iter_from(0) {
            if index != own && slot.is_taken() {
                slot.ask(bit);
            }
        }
    }

    /// More workers may be started: workers that run something are asked to make work for them.
    pub(super) fn ask_for_new_workers(&self) {
        // [S-ask]
        fence(Ordering::SeqCst);
        self.ask_others(u32::MAX, PUBLISH_LATER);
    }

    /// More workers may be started: one for each thing that is queued. Sleepers are woken by the caller.
    pub(super) fn start_workers_for_queued(&self) {
        let Some(own) = self.this().upgrade() else {
            return;
        };
        // The fence is that of `ask_for_new_workers`.
        self.settle();
        let inside: usize = self.slots.iter().map(|slot| slot.deque.len()).sum();
        let queued = self.outside.len() + inside;
        let places = self.places(self.sleep.read());
        let missing = places.saturating_sub(self.ctl.read().workers());
        for _ in 0..queued.min(missing) {
            // A thread that is refused is counted, and tried again with the next submit, or by the watchdog.
            if own.start_worker().is_err() {
                return;
            }
        }
    }

    /// Takes something that is queued, from outside or from any worker, for the worker in this slot. It begins with the
    /// stripe `first` of what is outside.
    pub(super) fn steal(&self, own: u32, first: usize) -> Option<Item> {
        if let Some(item) = self.outside.steal(own, first) {
            return Some(item);
        }
        let others = self.slots.iter_from(own + 1);
        let others = others.filter(|(index, _)| *index != own);
        let group = self.slots.get(own).cache_group();
        self.cache_groups
            .near_first(group, others, |(_, slot)| slot.cache_group())
            .find_map(|(_, slot)| slot.deque.steal(own))
    }

    /// How many tasks were accepted.
    pub(super) fn submitted(&self) -> u64 {
        let taken_back = self.rare.taken_back.get();
        let inside: u64 = self.slots.iter().map(|slot| slot.deque.pushed()).sum();
        let counted = self.outside.pushed() + inside;
        (counted + self.rare.submitted.get()).saturating_sub(taken_back)
    }

    /// Gives memory back to the system that a burst of tasks took, and that is not needed now (DEPOT-3).
    pub(super) fn trim(&self) {
        self.outside.trim();
        self.slots.iter().for_each(|slot| slot.deque.trim());
        recycle::trim();
    }

    /// Takes tasks out of all queues.
    pub(super) fn remove_tasks(
        &self,
        most: usize,
        wanted: &mut dyn FnMut(&Task) -> bool,
    ) -> Vec<Task> {
        let mut found = self.outside.remove_tasks(most, wanted);
        for slot in self.slots.iter() {
            if found.len() < most {
                found.extend(slot.deque.remove_tasks(most - found.len(), wanted));
            }
        }
        found
    }
}

impl WorkerEngine for ForkJoinEngine {
    type Part = WorkerRecord;

    #[inline]
    fn ctl(&self) -> &AtomicCtl {
        &self.ctl
    }

    fn with_workers<R>(&self, f: impl FnOnce(&mut Workers) -> R) -> R {
        f(&mut self.workers.lock())
    }

    fn new_part(&self, _has_first: bool) -> WorkerRecord {
        WorkerRecord::new(self.labels.as_ref().map_or(0, LabelTable::len))
    }

    fn thread_factory(&self) -> Arc<dyn ThreadFactory> {
        Arc::clone(&self.config.factory)
    }

    fn starts(&self) -> &Starts {
        &self.starts
    }

    fn timestamps(&self) -> &TimestampClock {
        &self.timestamps
    }

    fn eager_workers(&self) -> usize {
        self.places(self.sleep.read())
    }

    fn has_queued_tasks(&self) -> bool {
        self.has_visible_work()
    }

    fn take_queued(&self, _: &Hold<'_, Self>) -> Vec<Task> {
        // Jobs from outside go back to their callers, which run them.
        drop(self.outside.take_jobs());
        self.remove_tasks(1, &mut |_| true)
    }

    fn cancel_accepted(&self, tasks: Vec<Task>) {
        self.give_up(tasks, CancelReason::Rejected);
    }

    fn run_worker(guard: WorkerGuard<Self>) {
        super::worker::run(guard);
    }

    /// FORKJOIN-6
    fn worker_uncounted(&self) {
        if self.is_shut_down() {
            self.wake_all();
        } else if self.sleep.needs_wake().is_some() && self.finds_work() && self.lacks_runners() {
            self.wake_one();
        }
    }

    fn worker_exited(&self) {
        self.quiescence.wake_all();
    }

    fn before_terminated(&self) {
        self.watchdog.release_timer();
        self.report_rest();
        self.end_events();
        self.trim();
    }
}
