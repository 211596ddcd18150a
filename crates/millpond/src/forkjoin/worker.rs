//! The life of a worker: it takes tasks and jobs and runs them, searches and sleeps while there are none, and leaves when
//! it is not needed.
//!
//! | state | it leaves when |
//! |---|---|
//! | running | there are more workers than the parallelism and spares, or it has slept for the keep-alive |
//! | shut down | nothing is queued and no worker runs anything |
//! | stopped | at once |
//!
//! In each case it has nothing of its own to run any more (FORKJOIN-4).

use super::blocking::{Parks, WorkerBlock};
use super::context::{Context, give_share_back};
use super::deque::Item;
use super::engine::ForkJoinEngine;
use super::health::WaitFlags;
use super::slot::{PUBLISH_LATER, PUBLISH_NOW};
use crate::engine::dropped::DropSource;
use crate::engine::metrics::{
    Counts, LabelSums, LiveRecorder, NoRecorder, Recorder, WorkerMetrics, WorkerStats,
};
use crate::engine::watchdog::{InterruptTarget, Supervised};
use crate::engine::{self, InlineHost, WorkerEngine, WorkerGuard, WorkerPart};
use crate::interrupt::Search;
use crate::manage::RunState;
use crate::meter::Count;
use crate::task::Task;
use crate::time::Deadline;
use millpond_raw::cache_padded::CachePadded;
use millpond_raw::forkjoin::{self, Local};
use millpond_raw::park::{self, Site, Woken};
use millpond_raw::sync::Mutex;
use millpond_raw::sync::chaos;
use millpond_raw::user_code;
use std::sync::Arc;
use std::time::Duration;

/// After so many tasks a worker looks into the queue from outside first, so that what waits there is not starved by
/// tasks that make tasks, and begins there with the next stripe (OUTSIDE-4). A prime number.
const OUTSIDE_EVERY: u32 = 61;

/// So long after a burst an idle pool gives memory back.
const TRIM_AFTER: Duration = Duration::from_secs(1);

/// A worker that has run fewer tasks since it gave memory back does not do so again.
const TRIM_EVERY: u64 = 1024;

pub(super) type Worker = engine::Worker<WorkerRecord>;
pub(super) type Workers = engine::Workers<WorkerRecord>;

/// What a pool keeps for each worker: what it counts and measures.
pub(super) struct WorkerRecord {
    pub(super) stats: CachePadded<WorkerStats>,
    pub(super) metrics: CachePadded<WorkerMetrics>,
    pub(super) forks: CachePadded<ForkStats>,
    pub(super) waits: WaitFlags,
    /// Interrupts the task that it runs, and no other.
    pub(super) interrupt_target: Mutex<InterruptTarget>,
}

/// What a worker counts of jobs. Only the worker writes.
#[derive(Debug, Default)]
pub(super) struct ForkStats {
    /// Private jobs that it made visible to others.
    pub(super) published: Count,
    /// Tasks and jobs that it took from others, or from the queue outside.
    pub(super) steals: Count,
    /// Jobs that it took from the worker that it waited for.
    pub(super) leaps: Count,
    /// How often it parked, without work or in a join.
    pub(super) parks: Count,
    /// The most jobs that it ran inside of each other, because it helped while it waited.
    pub(super) max_help_depth: Count,
}

/// Sums of [`ForkStats`].
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ForkCounts {
    pub(super) published: u64,
    pub(super) steals: u64,
    pub(super) leaps: u64,
    pub(super) parks: u64,
    /// The largest, not the sum.
    pub(super) max_help_depth: u64,
}

impl ForkCounts {
    fn add(&mut self, stats: &ForkStats) {
        self.published += stats.published.get();
        self.steals += stats.steals.get();
        self.leaps += stats.leaps.get();
        self.parks += stats.parks.get();
        self.max_help_depth = self.max_help_depth.max(stats.max_help_depth.get());
    }
}

/// Totals of workers that have exited.
#[derive(Default)]
pub(super) struct Totals {
    counts: Counts,
    metrics: LabelSums,
    forks: ForkCounts,
}

impl WorkerRecord {
    pub(super) fn new(labels: usize) -> Self {
        WorkerRecord {
            stats: CachePadded::new(WorkerStats::default()),
            metrics: CachePadded::new(WorkerMetrics::new(labels)),
            forks: CachePadded::new(ForkStats::default()),
            waits: WaitFlags::default(),
            interrupt_target: Mutex::new(InterruptTarget::new()),
        }
    }
}

impl WorkerPart for WorkerRecord {
    type Task = Task;
    type Totals = Totals;

    fn add_to(&self, totals: &mut Totals) {
        totals.counts.add(self.stats.counts());
        self.metrics.add_to(&mut totals.metrics);
        totals.forks.add(&self.forks);
    }
}

impl Workers {
    pub(super) fn counts(&self) -> Counts {
        let mut counts = self.exited().counts;
        for worker in self.iter() {
            counts.add(worker.stats.counts());
        }
        counts
    }

    /// How many run a task.
    pub(super) fn busy(&self) -> usize {
        self.iter().filter(|worker| worker.stats.is_busy()).count()
    }

    pub(super) fn forks(&self) -> ForkCounts {
        let mut forks = self.exited().forks;
        for worker in self.iter() {
            forks.add(&worker.forks);
        }
        forks
    }

    /// What all have measured, by the ids of their labels.
    pub(super) fn metrics(&self) -> LabelSums {
        let mut sums = self.exited().metrics.clone();
        for worker in self.iter() {
            worker.metrics.add_to(&mut sums);
        }
        sums
    }
}

/// The life of a worker. All its waits go through a block that knows of it.
pub(super) fn run(guard: WorkerGuard<ForkJoinEngine>) {
    park::with_block(Arc::new(WorkerBlock::new()), || live(guard));
}

fn live(guard: WorkerGuard<ForkJoinEngine>) {
    let (engine, worker) = (Arc::clone(&guard.engine), Arc::clone(&guard.worker));
    guard.record_started(engine.timestamps.now());
    let index = engine.slots.claim(park::current().waker());
    let _slot = SlotGuard(&engine, index);
    let context = Context::new(Arc::clone(&engine), Arc::clone(&worker), index);
    let demand = &context.slot().demand;
    let work = || match &engine.labels {
        None => context.run_all(&guard, &NoRecorder),
        Some(labels) => {
            let recorder = LiveRecorder::new(&worker.metrics, labels, &engine.timestamps);
            context.run_all(&guard, &recorder);
        }
    };
    InlineHost::enter(&engine, &worker, || {
        worker
            .stop
            .enter(|| forkjoin::enter(demand, &context, work));
    });
}

struct SlotGuard<'a>(&'a ForkJoinEngine, u32);

impl Drop for SlotGuard<'_> {
    fn drop(&mut self) {
        self.0.slots.release(self.1);
    }
}

impl Context {
    fn run_all(&self, guard: &WorkerGuard<ForkJoinEngine>, recorder: &impl Recorder) {
        forkjoin::with_current(|local| {
            let local = local.expect("the worker has entered");
            let mut turn = 0;
            while let Some(item) = self.next_item(guard, recorder, turn) {
                turn = (turn + 1) % OUTSIDE_EVERY;
                self.run_item(item, local, recorder);
            }
        });
    }

    #[inline]
    fn run_item(&self, item: Item, local: &Local<'_>, recorder: &impl Recorder) {
        self.begin_root(local);
        match item {
            Item::Job(job) => self.run_job(job),
            Item::Task(task) => self.run_task(task, recorder),
        }
        self.end_root();
    }

    #[inline]
    fn run_task(&self, task: Task, recorder: &impl Recorder) {
        let (engine, worker) = (&self.engine, &self.worker);
        give_share_back();
        if !engine.is_watchdog_armed() {
            engine.arm_watchdog();
        }
        worker.stats.begin();
        worker.metrics.begin_turn();
        let start = recorder.start_task(&task);
        let outcome = if engine.watchdog.interrupts() {
            self.run_interruptible(task)
        } else {
            let on_drop = |dropped| engine.report_dropped(dropped);
            engine.runner.run_with(task, on_drop, |_| ())
        };
        worker.stats.end(outcome, recorder.end_task(start, outcome));
    }

    /// What to run next; `None` if it is time to leave, and then the worker is uncounted already.
    #[inline]
    fn next_item(
        &self,
        guard: &WorkerGuard<ForkJoinEngine>,
        recorder: &impl Recorder,
        turn: u32,
    ) -> Option<Item> {
        let engine = &self.engine;
        // A surplus worker looks, too, as long as it has something of its own: when the parallelism is lowered while all
        // have tasks that make tasks, all of them are surplus, and nobody else would look.
        if turn == 0 {
            self.home.set(self.home.get().wrapping_add(1));
            if !self.is_surplus() || !self.slot().deque.is_empty() {
                if let Some(item) = engine.outside.steal(self.index, self.home.get()) {
                    return Some(item);
                }
            }
        }
        if let Some(item) = self.pop_own() {
            return Some(item);
        }
        if engine.ctl().read().runs_queued_tasks() && !self.is_surplus() {
            if let Some(item) = self.steal_any() {
                return Some(item);
            }
        }
        recorder.note_gap();
        self.next_item_slow(guard, recorder)
    }

    #[cold]
    fn next_item_slow(
        &self,
        guard: &WorkerGuard<ForkJoinEngine>,
        recorder: &impl Recorder,
    ) -> Option<Item> {
        let engine = &self.engine;
        if let Some(group) = engine.cache_groups.current() {
            self.slot().set_cache_group(group);
        }
        engine.sleep.begin_search();
        self.worker.set_idle(true);
        let mut has_timed_out = false;
        loop {
            if let Some(item) = self.search() {
                self.worker.set_idle(false);
                self.end_search();
                return Some(item);
            }
            match self.judge(guard, has_timed_out) {
                Judged::Leave => return None,
                Judged::Again => {
                    has_timed_out = false;
                    continue;
                }
                Judged::Sleep => {}
            }
            recorder.flush();
            self.count_searches();
            let slept = self.sleep();
            has_timed_out = slept == Slept::TimedOut;
            if slept != Slept::Needed && self.is_surplus() {
                continue;
            }
            if let Some(item) = self.steal_any() {
                Search::record_wakeup();
                self.worker.set_idle(false);
                self.end_search();
                return Some(item);
            }
        }
    }

    /// Whether too many workers run, because the parallelism was lowered or one has come back from a block: then the
    /// worker sleeps or leaves as soon as its own deque is empty. After a shutdown all stay until nothing is queued.
    #[inline]
    fn is_surplus(&self) -> bool {
        self.engine.has_surplus(self.engine.ctl().read())
    }

    /// Searches for a moment.
    fn search(&self) -> Option<Item> {
        let engine = &self.engine;
        if !engine.ctl().read().runs_queued_tasks() || self.is_surplus() {
            return None;
        }
        engine.ask_others(self.index, PUBLISH_NOW);
        let search = Search::begin()?;
        let queued = || {
            let inside: usize = engine.slots.iter().map(|slot| slot.deque.len()).sum();
            engine.outside.len() + inside
        };
        user_code::while_searching(|| {
            search.run(|| engine.has_visible_work(), || self.steal_any(), queued)
        })
    }

    /// Counts what it has spun and yielded for in vain, before it sleeps.
    fn count_searches(&self) {
        let (searches, rare) = (Search::take_counts(), &self.engine.rare);
        if searches.futile_spins > 0 {
            rare.futile_spins.add(searches.futile_spins as usize);
        }
        if searches.preempted_yields > 0 {
            rare.preempted_yields
                .add(searches.preempted_yields as usize);
        }
    }

    /// The worker has found something (SLEEP-4).
    pub(super) fn end_search(&self) {
        let engine = &self.engine;
        if engine.sleep.end_search() && engine.finds_work() {
            let _ = engine.rouse(0);
        }
    }

    /// Whether the worker, which searches, is to leave.
    fn judge(&self, guard: &WorkerGuard<ForkJoinEngine>, has_timed_out: bool) -> Judged {
        let engine = &self.engine;
        let ctl = engine.ctl().read();
        match ctl.state() {
            RunState::Running => {}
            RunState::ShutDown => {
                if engine.has_visible_work() {
                    return Judged::Again;
                }
                if engine.active() > 0 {
                    return Judged::Sleep;
                }
                guard.uncount();
                engine.sleep.end_search();
                engine.wake_all();
                return Judged::Leave;
            }
            _ => {
                guard.uncount();
                engine.sleep.end_search();
                return Judged::Leave;
            }
        }
        if ctl.workers() <= engine.places_to_stay() && !has_timed_out {
            return Judged::Sleep;
        }
        if !guard.try_uncount(ctl) {
            return Judged::Again;
        }
        // FORKJOIN-2
        engine.sleep.end_search();
        engine.forget_spare();
        chaos::point("forkjoin.leaving");
        loop {
            let ctl = engine.ctl().read();
            let is_needed = engine.finds_work()
                && ctl.runs_queued_tasks()
                && engine.lacks_runners()
                && !engine.wake_one()
                && ctl.workers() < engine.places(engine.sleep.read());
            if !is_needed {
                return Judged::Leave;
            }
            if guard.try_recount(ctl) {
                engine.sleep.begin_search();
                return Judged::Again;
            }
        }
    }

    /// Sleeps until it is woken. The worker searches before and afterwards.
    fn sleep(&self) -> Slept {
        let engine = &self.engine;
        engine.sleep.begin_sleep(self.index);
        engine.ask_others(self.index, PUBLISH_LATER);
        engine.quiescence.wake_all();
        let mut slept = Slept::Woken;
        // SLEEP-4
        let ctl = engine.ctl().read();
        let stays = ctl.is_running() && ctl.workers() <= engine.places_to_stay()
            || ctl.state() == RunState::ShutDown && engine.active() > 0;
        // SPARE-2. After a shutdown no worker is surplus.
        let is_needed = || !ctl.is_running() || engine.lacks_runners();
        if stays && engine.finds_work() && is_needed() {
            slept = Slept::Needed;
        } else if stays {
            let deadline = if ctl.is_running() {
                engine.clock.deadline(engine.config.keep_alive())
            } else {
                Deadline::NEVER
            };
            self.worker.forks.parks.add(1);
            if self.park_idle(deadline) == Woken::TimedOut {
                slept = Slept::TimedOut;
            }
        }
        let is_woken = engine.sleep.end_sleep(self.index);
        match slept {
            Slept::TimedOut if is_woken => Slept::Woken,
            slept => slept,
        }
    }
}

impl Context {
    /// Parks without work. If the whole pool is idle for a while after a burst, memory is given back.
    fn park_idle(&self, deadline: Deadline) -> Woken {
        let clock = &self.engine.clock;
        let site = Site::new("forkjoin.idle").on(self.worker.as_ref());
        let park = |until| {
            let park = || clock.park_until(&park::current(), site, until);
            self.with_parks(Parks::Idle, park)
        };
        if self.may_trim() {
            let soon = clock.deadline(TRIM_AFTER);
            if soon < deadline {
                let woken = park(soon);
                if woken != Woken::TimedOut {
                    return woken;
                }
            }
            self.trimmed_at.set(self.done());
            self.engine.trim();
        }
        park(deadline)
    }

    /// Whether this worker is the last to fall asleep, and has run so many tasks that there may be memory to give back.
    /// How much is known later: handles keep the memory of their tasks until they are joined.
    fn may_trim(&self) -> bool {
        self.done() - self.trimmed_at.get() >= TRIM_EVERY && self.engine.awake() == 0
    }

    fn done(&self) -> u64 {
        self.worker.stats.counts().done()
    }
}

/// How a sleep has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Slept {
    /// Work is there and too few workers run. It did not sleep at all.
    Needed,
    /// It was woken, or has to look again.
    Woken,
    /// The keep-alive is over.
    TimedOut,
}

/// What becomes of a worker that has found nothing.
enum Judged {
    Sleep,
    Leave,
    /// Something has changed: search again.
    Again,
}
