//! The life of a worker: it takes tasks and runs them, waits while there are none, and leaves when it is not needed.
//!
//! ```text
//!   run_worker --> run(first) --> get_task --> run --> get_task --> run ...
//!                                    |
//!                                    +-- nothing queued: get_task_slow
//!                                          leave?    uncounted, then a last look into the queue (POOL-2)
//!                                          wait      search for a moment, then park in the queue
//!   the guard is dropped: WorkerGuard::drop, Java's processWorkerExit
//! ```
//!
//! # When it leaves
//!
//! | state | it leaves when |
//! |---|---|
//! | running | there are more workers than the maximum; or it has been idle for the keep-alive, and there are more than the core or the core may time out |
//! | shut down | the queue is empty |
//! | stopped | at once |
//!
//! No worker leaves for lack of work while a task is queued for which a worker would be started if it came now: the last
//! one never does, nor a core worker, nor, with threads first, one below the maximum. It waits for the task instead, and
//! when that is gone its keep-alive starts anew.
//!
//! No panic of the user's kills it: of a task, a hook, or the user's own queue. If it dies all the same, by a bug of ours,
//! another one takes its place (SPAWN-3).
//!
//! # Orderings
//!
//! `[E-epoch]` is explained in [`super::engine`], and `[E-free]` in [`super::free_workers`], where their other ends are.

use super::engine::PoolEngine;
use super::events::PoolEvent;
use super::finish::FinishRun;
use super::hooks::{Ended, TaskInfo};
use super::shed::Turn;
use super::task_queue::TaskQueue;
use crate::engine::dropped::DropSource;
use crate::engine::events::EventSource;
use crate::engine::metrics::{
    Counts, LabelSums, LiveRecorder, NoRecorder, Recorder, TaskStart, WorkerMetrics, WorkerStats,
};
use crate::engine::watchdog::{InterruptTarget, Supervised};
use crate::engine::{
    self, InlineHost, InlineJoins, InlineRun, Tombstones, WorkerGuard, WorkerPart,
};
use crate::executor::{DroppedTask, TaskOutcome};
use crate::interrupt::{self, Look, Search, WaitError};
use crate::manage::{Growth, RunState};
use crate::queue::{BlockingQueue, Taken, WaitSlot};
use crate::task::{CancelReason, Cycle, Name, Panic, Task, TaskView};
use crate::time::Deadline;
use millpond_raw::cache_padded::CachePadded;
use millpond_raw::catch_panic;
use millpond_raw::park::Site;
use millpond_raw::sync::Mutex;
use millpond_raw::sync::atomic::Ordering;
use millpond_raw::sync::chaos;
use millpond_raw::timestamp::Timestamp;
use millpond_raw::user_code::{self, Kind};
use std::cell::Cell;
use std::sync::Arc;
use std::time::Duration;

/// How long a worker pauses after a panic of the user's own queue, before it tries again.
const PAUSE_AFTER_PANIC: Duration = Duration::from_millis(10);

pub(super) type Worker = engine::Worker<WorkerRecord>;
pub(super) type Workers = engine::Workers<WorkerRecord>;

/// What a pool keeps for each worker: what it counts and measures, and how its task is interrupted.
pub(super) struct WorkerRecord {
    pub(super) stats: CachePadded<WorkerStats>,
    pub(super) metrics: CachePadded<WorkerMetrics>,
    /// Interrupts the task that it runs, and no other.
    pub(super) interrupt_target: Mutex<InterruptTarget>,
}

/// Totals of workers that have exited.
#[derive(Default)]
pub(super) struct Totals {
    counts: Counts,
    metrics: LabelSums,
}

impl WorkerRecord {
    /// A worker with a first task is busy from the start: that task is neither queued nor running until the thread has
    /// started, and must be counted all the same.
    pub(super) fn new(has_first: bool, labels: usize) -> Self {
        let stats = WorkerStats::default();
        if has_first {
            stats.begin();
        }
        WorkerRecord {
            stats: CachePadded::new(stats),
            metrics: CachePadded::new(WorkerMetrics::new(labels)),
            interrupt_target: Mutex::new(InterruptTarget::new()),
        }
    }

    fn counts(&self) -> Counts {
        // What has ended is read before what has begun, so it is never more.
        let counts = self.stats.counts();
        Counts {
            begun: self.metrics.turns_begun(),
            ..counts
        }
    }
}

impl WorkerPart for WorkerRecord {
    type Task = Task;
    type Totals = Totals;

    fn add_to(&self, totals: &mut Totals) {
        totals.counts.add(self.counts());
        self.metrics.add_to(&mut totals.metrics);
    }
}

impl Worker {
    /// Takes its first task, for a stop. The worker will run nothing.
    pub(super) fn hand_back_first(&self) -> Option<Task> {
        let first = self.take_first();
        if first.is_some() {
            self.stats.rest();
        }
        first
    }
}

impl Workers {
    /// How many workers run a task.
    pub(super) fn active(&self) -> usize {
        self.iter().filter(|worker| worker.stats.is_busy()).count()
    }

    /// What all have measured, by the ids of their labels.
    pub(super) fn metrics(&self) -> LabelSums {
        let mut sums = self.exited().metrics.clone();
        for worker in self.iter() {
            worker.metrics.add_to(&mut sums);
        }
        sums
    }

    pub(super) fn counts(&self) -> Counts {
        let mut counts = self.exited().counts;
        for worker in self.iter() {
            counts.add(worker.counts());
        }
        counts
    }

    /// How many accepted tasks wait for the thread that was started for them. Read after [`counts`](Self::counts),
    /// so that a task which begins meanwhile is not seen twice.
    pub(super) fn waiting_firsts(&self) -> usize {
        let all = self.iter().chain(self.iter_extras());
        all.filter(|worker| worker.has_accepted_first()).count()
    }
}

/// How a wait for a task ended.
enum Wait {
    Got(Task),
    TimedOut,
    /// Something has changed: judge again.
    Changed,
}

impl WorkerGuard<PoolEngine> {
    /// The life of a worker.
    pub(super) fn run_worker(self) {
        let worker = Arc::clone(&self.worker);
        self.record_started(self.engine.timestamps.now());
        let engine = &self.engine;
        let work = || match &engine.labels {
            None => self.run_tasks(&worker, &NoRecorder),
            Some(labels) => {
                let recorder = LiveRecorder::new(&worker.metrics, labels, &engine.timestamps);
                self.run_tasks(&worker, &recorder);
            }
        };
        InlineHost::enter(engine, &worker, || worker.stop.enter(work));
    }

    fn run_tasks(&self, worker: &Worker, recorder: &impl Recorder) {
        self.record_busy();
        if let Some(first) = worker.take_first() {
            self.run_first(first, recorder);
        }
        while let Some((task, turn)) = self.get_task(recorder) {
            self.run(task, Some(turn), recorder);
        }
    }

    #[cold]
    fn run_first(&self, first: Task, recorder: &impl Recorder) {
        self.run(first, None, recorder);
    }

    /// Runs the task, or drops it: a task that had to wait for its turn may have waited too long.
    #[inline(always)]
    fn run(&self, task: Task, turn: Option<Turn>, recorder: &impl Recorder) {
        let (engine, worker) = (&*self.engine, &*self.worker);
        worker.stats.begin();
        worker.metrics.begin_turn();
        let start = recorder.start_task(&task);
        let shed = turn.and_then(|turn| engine.shed(&task, turn, start));
        let has_hooks = engine.hooks.is_some() || engine.watchdog.interrupts();
        let is_usual = shed.is_none() && !has_hooks && !task.has_finish_by();
        let outcome = if is_usual {
            let on_drop = |dropped| self.report_dropped(dropped);
            engine.runner.run_with(task, on_drop, |_| ())
        } else {
            self.run_slow(task, shed, start)
        };
        worker.stats.end(outcome, recorder.end_task(start, outcome));
    }

    /// Runs the task with hooks around it, or so that it can be interrupted, or that ends in time; or sheds it.
    #[inline(never)]
    fn run_slow(
        &self,
        task: Task,
        shed: Option<CancelReason>,
        start: Option<TaskStart>,
    ) -> TaskOutcome {
        let engine = &*self.engine;
        let finish = FinishRun::of(engine, &task, start);
        let shed = shed.or_else(|| finish.as_ref()?.judge(engine, &task));
        let outcome = self.run_hooked(task, shed);
        if let Some(finish) = finish {
            finish.end(engine, &self.worker, outcome);
        }
        outcome
    }

    fn run_hooked(&self, task: Task, shed: Option<CancelReason>) -> TaskOutcome {
        let engine = &self.engine;
        let on_drop = |dropped| self.report_dropped(dropped);
        let run = |task: Task, panicked: &mut dyn FnMut(&Panic)| match shed {
            Some(reason) => engine.runner.shed(task, reason, on_drop),
            None if engine.watchdog.interrupts() => self.run_interruptible(task, panicked),
            None => engine.runner.run_with(task, on_drop, panicked),
        };
        let Some(hooks) = &engine.hooks else {
            return run(task, &mut |_| ());
        };
        let info = TaskInfo::of(&task);
        user_code::check(Kind::Hook);
        let _ = catch_panic::call(|| hooks.before(&info));
        let mut message = None;
        let outcome = run(task, &mut |panic| {
            message = panic.message().map(str::to_owned);
        });
        let ended = Ended::of(outcome, message);
        user_code::check(Kind::Hook);
        let _ = catch_panic::call(|| hooks.after(&info, ended));
        outcome
    }

    /// Runs a task so that the watchdog can interrupt it, and no other.
    #[cold]
    fn run_interruptible(&self, task: Task, panicked: impl FnOnce(&Panic)) -> TaskOutcome {
        let turn = self.worker.metrics.turn();
        let stop = InterruptTarget::begin(&self.worker.interrupt_target, turn);
        let runner = &self.engine.runner;
        let on_drop = |dropped| self.report_dropped(dropped);
        let outcome = stop.enter(|| runner.run_with(task, on_drop, panicked));
        InterruptTarget::clear(&self.worker.interrupt_target);
        outcome
    }

    /// A task without a handle was dropped instead of being run.
    #[cold]
    fn report_dropped(&self, task: DroppedTask) {
        self.engine.report_dropped(task);
    }

    /// The next task; `None` if it is time to leave, and then the worker is uncounted already.
    #[inline(always)]
    fn get_task(&self, recorder: &impl Recorder) -> Option<(Task, Turn)> {
        let engine = &*self.engine;
        let (ctl, limits) = (engine.ctl().read(), engine.config().limits());
        // After a shutdown, what a queue of ours still holds is run all the same. What waits at a hand-off, or slips
        // into a queue of the user's, may be too late: `get_task_slow` judges that.
        let runs = ctl.is_running() || ctl.runs_queued_tasks() && engine.queue.is_sealable();
        if runs && ctl.workers() <= limits.max() {
            let found = match &engine.queue {
                TaskQueue::Plain(queue) if !limits.is_newest_first() => {
                    queue.poll().map(|task| (task, Turn::Oldest))
                }
                _ => engine.poll_slow(limits.is_newest_first()),
            };
            if found.is_some() {
                return found;
            }
            if limits.sheds() {
                engine.shedder.ran_empty();
            }
        }
        recorder.note_gap();
        let task = self.get_task_slow(recorder)?;
        if engine.queue.is_foreign() {
            engine.wake_staying_workers();
        }
        Some((task, Turn::Oldest))
    }

    /// The worker starts, or has found a task after all. The watchdog may have gone to sleep meanwhile.
    fn record_busy(&self) {
        if self.engine.watchdog.is_enabled() {
            self.worker.set_idle(false);
        }
        if !self.engine.is_watchdog_armed() {
            self.engine.arm_watchdog();
        }
    }

    #[cold]
    fn get_task_slow(&self, recorder: &impl Recorder) -> Option<Task> {
        let engine = &*self.engine;
        let mut timed_out = false;
        if engine.watchdog.is_enabled() {
            self.worker.set_idle(true);
        }
        loop {
            // [E-epoch]
            let epoch = engine.idle.epoch.load(Ordering::SeqCst);
            let (ctl, limits) = (engine.ctl().read(), engine.config().limits());
            let is_shut_down = match ctl.state() {
                RunState::Running => false,
                RunState::ShutDown if !engine.queue.is_empty() => true,
                _ => {
                    self.uncount();
                    if engine.queue.is_foreign() {
                        // Others may wait in it for a task that was there, for instance one that is not due yet.
                        engine.wake_idle_workers();
                    }
                    return None;
                }
            };
            let may_time_out = engine.config().core_may_time_out() || ctl.workers() > limits.core();
            let is_surplus =
                ctl.workers() > limits.max() || may_time_out && timed_out && !is_shut_down;
            let stays = is_surplus && ctl.workers() <= limits.eager() && !engine.queue.is_empty();
            if is_surplus && !stays {
                if !self.try_uncount(ctl) {
                    continue;
                }
                if self.leave_unless_needed() {
                    return None;
                }
                timed_out = false;
                continue;
            }
            let deadline = if may_time_out && !timed_out && !is_shut_down {
                engine.clock.deadline(engine.config().keep_alive())
            } else {
                Deadline::NEVER
            };
            let counts_free = limits.growth() == Growth::ThreadsFirst;
            let drains = is_shut_down || stays;
            let _staying = stays.then(|| StayingGuard::new(engine));
            let parks = || recorder.flush();
            let wait = || engine.wait_for_task(epoch, deadline, drains, counts_free, parks);
            match catch_panic::call(wait) {
                Some(Wait::Got(task)) => {
                    self.record_busy();
                    return Some(task);
                }
                Some(Wait::TimedOut) => timed_out = true,
                Some(Wait::Changed) => timed_out = false,
                // The user's own queue has panicked. It may do so again and again.
                None => self.pause(),
            }
        }
    }

    /// The last look of a worker that is uncounted (POOL-2). If a task was enqueued meanwhile whose submitter relied on
    /// it, it counts itself in again and returns false.
    fn leave_unless_needed(&self) -> bool {
        let engine = &self.engine;
        // FREE-3
        engine.free_workers.record_loss();
        chaos::point("pool.leaving");
        loop {
            let ctl = engine.ctl().read();
            let is_needed = ctl.workers() < engine.config().limits().eager()
                && ctl.runs_queued_tasks()
                && !engine.queue.is_empty();
            if !is_needed {
                return true;
            }
            if self.try_recount(ctl) {
                return false;
            }
        }
    }

    fn pause(&self) {
        let clock = &self.engine.clock;
        let deadline = clock.deadline(PAUSE_AFTER_PANIC);
        let site = Site::new("pool.pause").on(&*self.engine);
        let _ = interrupt::wait(site, clock, deadline, |_| Look::done_if(false));
    }
}

impl PoolEngine {
    /// Polls a queue of another kind, or one of which the newest task may come first.
    #[cold]
    fn poll_slow(&self, is_newest_first: bool) -> Option<(Task, Turn)> {
        if self.queue.is_foreign() {
            let task = catch_panic::call(|| self.queue.poll()).flatten()?;
            self.wake_staying_workers();
            return Some((task, Turn::Oldest));
        }
        if is_newest_first {
            self.poll_by_turn()
        } else {
            self.queue.poll().map(|task| (task, Turn::Oldest))
        }
    }

    /// Waits for a task until `deadline`, or until the epoch changes. A worker that `drains` waits only while the queue
    /// is not empty. `parks` is called if no task is found within a moment.
    fn wait_for_task(
        &self,
        epoch: u64,
        deadline: Deadline,
        drains: bool,
        counts_free: bool,
        parks: impl FnOnce(),
    ) -> Wait {
        let free = FreeGuard::new(self, counts_free);
        free.set(true);
        if drains {
            // Nothing more comes, so there is nothing to search for: the queue has it, or is empty.
            parks();
            return self
                .park_in_queue(epoch, deadline, drains, &free, || false)
                .0;
        }
        let Some(leader) = self.lead_timer() else {
            if let Some(task) = self.queue.seek(|takes| free.set(!takes)) {
                return Wait::Got(task);
            }
            self.count_searches();
            parks();
            return self
                .park_in_queue(epoch, deadline, drains, &free, || false)
                .0;
        };
        let mut parks = Some(parks);
        loop {
            // A hint: it is read again before the worker parks.
            let has_changed = || self.idle.epoch.load(Ordering::Relaxed) != epoch;
            let until = match leader.seek(&self.queue, |takes| free.set(!takes), has_changed) {
                Ok(task) => return Wait::Got(task),
                Err(until) => until,
            };
            self.count_searches();
            if let Some(parks) = parks.take() {
                parks();
            }
            let is_called = || leader.is_called();
            match self.park_in_queue(epoch, deadline.min(until), drains, &free, is_called) {
                (Wait::TimedOut, Some(WaitError::TimedOut)) if until < deadline => {}
                (Wait::Changed, _) if is_called() && !has_changed() => {}
                (wait, _) => {
                    if matches!(wait, Wait::Changed) {
                        leader.set_returning();
                    }
                    return wait;
                }
            }
        }
    }

    /// Counts the futile spins and yields of the calling worker, before it parks.
    fn count_searches(&self) {
        let searches = Search::take_counts();
        if searches.futile_spins > 0 {
            self.rare.futile_spins.add(searches.futile_spins as usize);
        }
        if searches.preempted_yields > 0 {
            self.rare
                .preempted_yields
                .add(searches.preempted_yields as usize);
        }
    }

    /// Parks as a consumer of the queue. Also returns how the wait ended, if not with a task or a change.
    fn park_in_queue(
        &self,
        epoch: u64,
        deadline: Deadline,
        drains: bool,
        free: &FreeGuard<'_>,
        is_called: impl Fn() -> bool,
    ) -> (Wait, Option<WaitError>) {
        let queue = &self.queue;
        let mut consumer = ConsumerGuard {
            queue,
            place: WaitSlot::default(),
        };
        let mut got = None;
        let site = Site::new("pool.idle").on(self);
        let waited = interrupt::wait(site, &self.clock, deadline, |waker| {
            free.set(false);
            // [E-epoch] unmodelled: the wake, which comes second, carries the order (proof in `engine.rs`)
            let has_changed = self.idle.epoch.load(Ordering::SeqCst) != epoch;
            if has_changed || drains && queue.is_empty() || is_called() {
                return Look::Done;
            }
            match queue.poll_take(&mut consumer.place, waker) {
                Taken::Got(task) => {
                    got = Some(task);
                    Look::Done
                }
                // Another worker has taken the last task since the look above.
                Taken::Wait(_) if drains && queue.is_empty() => Look::Done,
                Taken::Wait(again) => {
                    free.set(true);
                    Look::RecheckAt(again)
                }
            }
        });
        free.set(false);
        let wait = match got.or_else(|| queue.leave_take(&mut consumer.place)) {
            Some(task) => {
                Search::record_wakeup();
                Wait::Got(task)
            }
            None if waited.is_err() => Wait::TimedOut,
            None => Wait::Changed,
        };
        (wait, waited.err())
    }
}

/// A place among the consumers of the queue. It is given up however the wait ends, also by a panic of the user's queue.
struct ConsumerGuard<'a> {
    queue: &'a TaskQueue,
    place: WaitSlot,
}

impl Drop for ConsumerGuard<'_> {
    fn drop(&mut self) {
        // The queue may be the user's and this a panic of it already. A second one would abort the process, or lose a
        // task that has been taken meanwhile.
        let _ = catch_panic::call(|| {
            if let Some(task) = self.queue.leave_take(&mut self.place) {
                // There is a task only after a panic: it goes back into the queue.
                self.queue.hand_back(task);
            }
        });
    }
}

/// A worker stays for a queued task although it is surplus, and is to be woken when that is gone.
struct StayingGuard<'a>(&'a PoolEngine);

impl<'a> StayingGuard<'a> {
    fn new(engine: &'a PoolEngine) -> Self {
        // The look into the queue that follows has a fence in front of it ([E-stay]).
        engine.idle.staying.fetch_add(1, Ordering::Relaxed);
        StayingGuard(engine)
    }
}

impl Drop for StayingGuard<'_> {
    fn drop(&mut self) {
        self.0.idle.staying.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Whether the worker counts among the free ones ([`super::free_workers`]).
struct FreeGuard<'a> {
    engine: &'a PoolEngine,
    counts_free: bool,
    is_free: Cell<bool>,
}

impl<'a> FreeGuard<'a> {
    fn new(engine: &'a PoolEngine, counts_free: bool) -> Self {
        FreeGuard {
            engine,
            counts_free,
            is_free: Cell::new(false),
        }
    }

    fn set(&self, is_free: bool) {
        if !self.counts_free || self.is_free.replace(is_free) == is_free {
            return;
        }
        let count = &self.engine.free_workers.count;
        if is_free {
            // [E-free] unmodelled: the queue's lock, taken next, orders the same (proof in `free_workers.rs`)
            count.fetch_add(1, Ordering::SeqCst);
        } else {
            // [E-free] unmodelled: the queue's lock, taken next, orders the same (proof in `free_workers.rs`)
            count.fetch_sub(1, Ordering::SeqCst);
        }
    }
}

impl Drop for FreeGuard<'_> {
    fn drop(&mut self) {
        self.set(false);
    }
}

impl InlineJoins for PoolEngine {
    fn tombstones(&self) -> &Tombstones {
        &self.tombstones
    }

    fn allows_inline(&self) -> bool {
        !self.queue.holds_back()
    }

    fn contains(&self, mark: usize) -> bool {
        let mut is_there = false;
        self.queue.visit_until(&mut |task| {
            is_there = task.mark() == mark;
            is_there
        });
        is_there
    }

    fn inline_started(&self, worker: &Worker, task: TaskView<'_>) {
        worker.stats.begin_inline();
        if let Some(hooks) = &self.hooks {
            let info = TaskInfo::about(task);
            user_code::check(Kind::Hook);
            let _ = catch_panic::call(|| hooks.before(&info));
        }
    }

    fn inline_ended(&self, worker: &Worker, task: TaskView<'_>, run: InlineRun) {
        let InlineRun {
            outcome,
            message,
            start,
        } = run;
        if let Some(hooks) = &self.hooks {
            let info = TaskInfo::about(task);
            let ended = Ended::of(outcome, message);
            user_code::check(Kind::Hook);
            let _ = catch_panic::call(|| hooks.after(&info, ended));
        }
        if let Some(start) = start {
            self.record_inline(worker, task, start, outcome);
        }
        worker.stats.end_inline(outcome);
    }

    fn deadlocked(self: &Arc<Self>, cycle: &Cycle) {
        let (pool, cycle) = (self.name.to_string(), cycle.clone());
        self.watchdog.deadlocks.add(1);
        self.emit(move |_| PoolEvent::Deadlock { pool, cycle });
    }
}

impl PoolEngine {
    /// The time of an inline run counts under the task's own name, and under that of the task that joins it.
    fn record_inline(
        &self,
        worker: &Worker,
        task: TaskView<'_>,
        start: Timestamp,
        outcome: TaskOutcome,
    ) {
        let Some(labels) = &self.labels else { return };
        let waited = task
            .queued_since()
            .map_or(0, |stamp| self.timestamps.nanos_from(stamp, start));
        let ran = self.timestamps.nanos(start, self.timestamps.now());
        let name = task.shared_name();
        let id = labels.id_of(name.as_ref().map(Name::as_str), task.location());
        worker.metrics.record_nested(id, outcome, waited, ran);
    }
}

#[cfg(all(test, not(any(millpond_loom, millpond_shuttle))))]
mod tests;
