//! Applying the rejection policy.
//!
//! # Waiting for room while threads are refused
//!
//! Below max, a submitter that finds the queue full starts a worker. If that fails, a worker that is alive will take
//! a task and make room, so the submitter waits for that as it does at max ([`FailedStart`]). It tries again to start a
//! worker only after a pause, [`START_RETRY`], or if no worker is left; other wake-ups only let it check the queue.
//! So it neither spins nor wakes other waiting submitters, as the end of each failed start does. Without a worker
//! nothing would make room: then the task is rejected, with the error of the failed start.

use super::counters::Resolution;
use super::handler_scope::{Entry, HandlerScope};
use super::policy::{RejectionContext, RejectionPolicy};
use crate::engine::dropped::DropSource;
use crate::engine::metrics::LabelId;
use crate::engine::watchdog::Supervised;
use crate::engine::{Hold, Identity, RemovesTasks, Spawn};
use crate::executor::{CallerRun, Inside, RejectReason, Rejected, TaskOutcome, WaiterRegistration};
use crate::interrupt::{self, Look, WaitError};
use crate::manage::RunState;
use crate::pool::ThreadPool;
use crate::pool::engine::PoolEngine;
use crate::pool::worker::{Worker, WorkerRecord};
use crate::queue::{Offered, WaitSlot, end_push_for_self};
use crate::task::{self, CancelReason, Task};
use crate::time::Deadline;
use millpond_raw::catch_panic;
use millpond_raw::park::Site;
use millpond_raw::user_code::{self, Kind};
use std::panic::Location;
use std::sync::Arc;
use std::time::Duration;

/// When a submitter that waits for room tries again to start a worker.
pub(super) const START_RETRY: Duration = Duration::from_millis(100);

impl ThreadPool {
    /// Applies the policy to a task that was not admitted.
    #[cold]
    pub(in crate::pool) fn reject(&self, rejected: Rejected<Task>) -> Result<(), Rejected<Task>> {
        self.reject_until(rejected, Deadline::NEVER)
    }

    /// The same for a caller that blocks no longer than `until`, if the policy blocks.
    #[cold]
    pub(in crate::pool) fn reject_until(
        &self,
        rejected: Rejected<Task>,
        until: Deadline,
    ) -> Result<(), Rejected<Task>> {
        let engine = &self.engine;
        // FIFO-9: a leader may be dispatching, and a policy may run user code.
        end_push_for_self();
        rejected.task.detach();
        let policy = engine.config().rejection();
        match policy {
            RejectionPolicy::Block(_) => engine.rare.waited_for_room.add(1),
            RejectionPolicy::CallerRuns if !engine.is_shut_down() => {
                engine.run_in_caller(rejected.task);
                return Ok(());
            }
            // The handler itself may have submitted it; see below.
            RejectionPolicy::Custom(_) => {}
            RejectionPolicy::Discard
            | RejectionPolicy::DiscardOldest
            | RejectionPolicy::NewThread { .. } => {
                engine.count_rejection(&rejected.task, Resolution::Taken);
            }
            _ => engine.count_rejection(&rejected.task, Resolution::GivenBack),
        }
        let count_returned = |rejected: &Rejected<Task>| {
            engine.count_rejection(&rejected.task, Resolution::Returned);
        };
        let Rejected { task, reason, .. } = engine.with_numbers(rejected);
        match policy {
            RejectionPolicy::Abort => Err(Rejected::new(task, reason)),
            // It is shut down, or its caller would have run it.
            RejectionPolicy::CallerRuns => Err(Rejected::new(task, RejectReason::ShutDown)),
            RejectionPolicy::Discard => {
                engine.discard(task);
                Ok(())
            }
            RejectionPolicy::DiscardOldest => engine
                .discard_oldest(Rejected::new(task, reason))
                .inspect_err(|rejected| {
                    rejected.task.detach();
                    count_returned(rejected);
                }),
            RejectionPolicy::Block(timeout) => {
                let deadline = engine.clock.deadline(timeout).min(until);
                engine
                    .block_for_room(Rejected::new(task, reason), deadline)
                    .inspect_err(|rejected| {
                        rejected.task.detach();
                        engine.count_rejection(&rejected.task, Resolution::GivenBack);
                    })
            }
            RejectionPolicy::NewThread { at_most } => engine
                .run_in_extra_thread(Rejected::new(task, reason), at_most)
                .inspect_err(count_returned),
            RejectionPolicy::Report { at_most_every } => {
                let label = || engine.label_of(&task).to_string();
                engine.report_refusal(&reason, &label, at_most_every);
                Err(Rejected::new(task, reason))
            }
            RejectionPolicy::Custom(handler) => match HandlerScope::enter(engine, &task) {
                Entry::Entered(_scope) => {
                    engine.count_rejection(&task, Resolution::Taken);
                    let pool = self;
                    user_code::check(Kind::Handler);
                    let handled = handler.reject(task, RejectionContext { reason, pool });
                    handled.inspect_err(count_returned)
                }
                Entry::Inside { is_same_task } => {
                    if !is_same_task {
                        engine.count_rejection(&task, Resolution::GivenBack);
                    }
                    Err(Rejected::new(task, reason))
                }
            },
        }
    }
}

impl PoolEngine {
    /// Whether a task would be rejected now and its caller had to run it. Rejections of this kind come in bursts and cost
    /// the caller's time, so this is asked first, and takes no more than a few loads.
    #[inline]
    pub(in crate::pool) fn should_caller_run(&self) -> bool {
        self.config().caller_runs()
            && self.queue.is_full()
            && self.is_saturated()
            && self.is_watchdog_armed()
    }

    /// Runs a rejected task in its caller.
    #[inline(never)]
    pub(in crate::pool) fn run_in_caller(self: &Arc<Self>, task: Task) {
        task.detach();
        let is_useless = task.is_expired() || task.is_gone();
        let resolution = if is_useless {
            Resolution::Taken
        } else {
            Resolution::CallerRan
        };
        self.count_rejection(&task, resolution);
        let on_drop = |dropped| self.report_dropped(dropped);
        match self.runner.run_with(task, on_drop, |_| ()) {
            TaskOutcome::Panicked => self.rare.panicked_outside.add(1),
            outcome if is_useless => self.count_useless(outcome),
            _ => {}
        }
    }

    /// Counts an accepted task that was never queued, and of which nothing was left to run.
    #[cold]
    fn count_useless(&self, outcome: TaskOutcome) {
        let counter = match outcome {
            TaskOutcome::Expired | TaskOutcome::TooLate => &self.removed.expired,
            TaskOutcome::RanElsewhere | TaskOutcome::RanByOwnWorker => &self.removed.elsewhere,
            _ => &self.removed.cancelled,
        };
        counter.add(1);
    }

    /// As [`run_in_caller`](PoolEngine::run_in_caller), for a closure of which no task was made.
    ///
    /// A shutdown that comes after [`should_caller_run`](PoolEngine::should_caller_run) comes too late for it, as
    /// for a task: the closure was rejected while the pool ran, and its run is none of the pool's.
    #[inline(never)]
    pub(in crate::pool) fn try_caller_run(
        &self,
        location: &'static Location<'static>,
    ) -> Option<CallerRun<'_>> {
        if self.is_forked() || !self.should_caller_run() || !task::inherits_nothing() {
            return None;
        }
        let labels = self.labels.as_ref();
        let label = labels.map_or(LabelId::OTHERS, |labels| {
            labels.id_of_rejected_place(location)
        });
        self.rejections.count(label, Resolution::CallerRan);
        Some(CallerRun::new(
            &self.runner,
            location,
            self.rare.panicked_outside.as_atomic(),
        ))
    }

    #[inline]
    pub(super) fn count_rejection(&self, task: &Task, resolution: Resolution) {
        let labels = self.labels.as_ref();
        let label = labels.map_or(LabelId::OTHERS, |labels| labels.id_of_rejected(task));
        self.rejections.count(label, resolution);
    }

    /// Drops a task for good; its handle hears why.
    fn discard(&self, task: Task) {
        let reason = if self.is_shut_down() {
            CancelReason::ShutDown
        } else {
            CancelReason::Discarded
        };
        match task.cancel_or_tombstone(reason) {
            None => self.rare.discarded.add(1),
            // It was a tombstone.
            Some(tombstone) => self.removed.count_tombstone(tombstone),
        }
    }

    fn discard_oldest(self: &Arc<Self>, rejected: Rejected<Task>) -> Result<(), Rejected<Task>> {
        let mut rejected = rejected;
        loop {
            // A sealed queue refuses while the pool still runs: its tasks stay.
            if self.is_shut_down() || rejected.reason.is_shut_down() {
                self.discard(rejected.task);
                return Ok(());
            }
            let found = self.discard_next();
            let admitted = self.admit(rejected.task);
            rejected = match admitted.map_err(|rejected| self.with_numbers(rejected)) {
                Ok(()) => return Ok(()),
                Err(rejected) if found || self.may_try_again(&rejected.reason) => rejected,
                Err(rejected) => return Err(rejected),
            };
        }
    }

    /// Discards the task that would be taken next. Returns whether there was one.
    fn discard_next(&self) -> bool {
        // END-4: before the task leaves the queue.
        let hold = Hold::unless_over(self);
        let next = hold.as_ref().and_then(|_| self.queue.poll());
        let Some(next) = next else { return false };
        self.discard(next);
        self.tasks_removed();
        true
    }

    /// Whether to try again after a rejection although there was nothing to discard: the pool has been shut down
    /// meanwhile; or a queue of ours was full and then empty, so other threads make progress.
    fn may_try_again(&self, reason: &RejectReason) -> bool {
        reason.is_shut_down() || reason.is_saturated() && self.queue.is_sealable()
    }

    /// Blocks the caller until there is room.
    fn block_for_room(
        self: &Arc<Self>,
        rejected: Rejected<Task>,
        deadline: Deadline,
    ) -> Result<(), Rejected<Task>> {
        let mut rejected = rejected;
        loop {
            if !self.may_find_room(&rejected.reason) {
                // The last worker may have left because of a shutdown.
                if self.is_shut_down() {
                    rejected.reason = RejectReason::ShutDown;
                }
                return Err(rejected);
            }
            let failed_start = (!rejected.reason.is_saturated()).then(|| FailedStart {
                retry_at: self.clock.deadline(START_RETRY),
            });
            if interrupt::check().is_err() {
                return Err(Rejected::new(rejected.task, RejectReason::Interrupted));
            }
            let identity = Identity::give(
                &rejected.task,
                Some(self.tombstones.tag()),
                &self.timestamps,
            );
            let mut task = Some(rejected.task);
            if self.spin_for_room(&mut task) {
                return self.recheck(identity);
            }
            if let Some(task) = &task {
                let instead = "use `submit_when_room(..).await`";
                interrupt::check_runtime("RejectionPolicy::Block", task.location(), instead);
            }
            let waited = self.wait_for_room(&mut task, deadline, failed_start);
            let Some(task) = task else {
                interrupt::restore(waited.map(drop));
                return self.recheck(identity);
            };
            rejected = match waited {
                Ok(Room::Maybe) => match self.admit(task) {
                    Ok(()) => return Ok(()),
                    Err(rejected) => self.with_numbers(rejected),
                },
                Ok(Room::Never) => return Err(Rejected::new(task, rejected.reason)),
                Err(WaitError::Interrupted) => {
                    return Err(Rejected::new(task, RejectReason::Interrupted));
                }
                Err(WaitError::TimedOut) => return Err(Rejected::new(task, self.saturation())),
            };
        }
    }

    /// Whether waiting for room helps a task that was rejected for this reason: there was none, or another worker could
    /// not be started but one is alive. Waiting is no help against a shutdown.
    #[cold]
    pub(in crate::pool) fn may_find_room(&self, reason: &RejectReason) -> bool {
        match reason {
            RejectReason::SpawnFailed(_) => self.ctl().read().workers() > 0,
            reason => reason.is_saturated(),
        }
    }

    /// Looks for room for a moment, before it is worth to park. Returns whether the queue has the task.
    fn spin_for_room(&self, task: &mut Option<Task>) -> bool {
        let has_room = || self.queue.hint().is_some_and(|hint| hint.has_room);
        let put = || match self.queue.offer(task.take()?) {
            Ok(()) => Some(()),
            Err(back) => {
                *task = Some(back);
                None
            }
        };
        self.queue.hint().is_some() && interrupt::backoff(has_room, put).is_some()
    }

    /// Waits for room, as a putter of the queue. `task` is empty afterwards if the queue has it.
    fn wait_for_room(
        &self,
        task: &mut Option<Task>,
        deadline: Deadline,
        failed_start: Option<FailedStart>,
    ) -> Result<Room, WaitError> {
        let mut registration = WaiterRegistration::new(&self.room_waiters);
        let mut putter = PutterGuard {
            engine: self,
            task,
            place: WaitSlot::default(),
        };
        let mut room = Room::Maybe;
        let site = Site::new("pool.room").on(self);
        let waited = interrupt::wait(site, &self.clock, deadline, |waker| {
            // Registered before the state and the limits are read: a change after that wakes us (POOL-2).
            registration.register(waker);
            let word = self.ctl().read();
            let is_below_max = word.workers() < self.config().limits().max();
            let failed_start = failed_start.filter(|_| is_below_max && word.workers() > 0);
            let retry_at = failed_start.map(|failed_start| failed_start.retry_at);
            let may_start =
                is_below_max && retry_at.is_none_or(|at| at.has_passed(self.clock.now()));
            if !word.is_running() || may_start {
                return Look::Done;
            }
            let PutterGuard { task, place, .. } = &mut putter;
            match self.queue.poll_offer(task, place, waker) {
                Offered::In => Look::Done,
                Offered::Wait => Look::RecheckAt(retry_at.unwrap_or(Deadline::NEVER)),
                Offered::Never(_) => {
                    room = Room::Never;
                    Look::Done
                }
            }
        });
        drop(putter);
        waited.map(|()| room)
    }

    /// Runs the task in an extra thread, if there are fewer than `at_most`.
    fn run_in_extra_thread(
        self: &Arc<Self>,
        rejected: Rejected<Task>,
        at_most: usize,
    ) -> Result<(), Rejected<Task>> {
        let Rejected { task, reason, .. } = rejected;
        let mut task = Some(task);
        let extra = self.with_workers(|workers| {
            // WORKERS-1: under the lock that a stop takes.
            let may = self.ctl().read().state() == RunState::Running && workers.extras() < at_most;
            may.then(|| {
                let extra = Arc::new(Worker::new(
                    workers.next_number(),
                    task.take(),
                    WorkerRecord::new(true, 0),
                ));
                workers.add_extra(&extra);
                extra
            })
        });
        let Some(extra) = extra else {
            let task = task.expect("it is only taken for an extra thread");
            return Err(Rejected::new(task, reason));
        };
        let guard = ExtraGuard {
            engine: Arc::clone(self),
            extra: Arc::clone(&extra),
        };
        match self.start_thread(&extra, Box::new(move || guard.run())) {
            Ok(()) => Ok(()),
            Err(error) => match extra.take_first() {
                Some(task) => Err(Rejected::new(task, RejectReason::SpawnFailed(error))),
                // A stop has handed it back.
                None => Ok(()),
            },
        }
    }
}

/// A worker that could not be started for a task that waits for room.
#[derive(Clone, Copy)]
struct FailedStart {
    /// When to try again.
    retry_at: Deadline,
}

/// How a wait for room ended.
#[derive(Clone, Copy)]
enum Room {
    Maybe,
    /// It will never fit.
    Never,
}

/// A place among the putters of the queue. However the wait ends, the queue has the task or it is back.
struct PutterGuard<'a> {
    engine: &'a PoolEngine,
    task: &'a mut Option<Task>,
    place: WaitSlot,
}

impl Drop for PutterGuard<'_> {
    fn drop(&mut self) {
        // The queue may be the user's, and this a panic of it already.
        let _ = catch_panic::call(|| self.engine.queue.leave_offer(self.task, &mut self.place));
    }
}

/// What an extra thread holds. Dropping it removes it from the registry (WORKERS-4).
struct ExtraGuard {
    engine: Arc<PoolEngine>,
    extra: Arc<Worker>,
}

impl ExtraGuard {
    fn run(self) {
        let _inside = Inside::of(&*self.engine);
        self.extra.record_started(self.engine.timestamps.now());
        if let Some(task) = self.extra.take_first() {
            let engine = &self.engine;
            let on_drop = |dropped| engine.report_dropped(dropped);
            let rare = &engine.rare;
            rare.extra_begun.add(1);
            let run = || engine.runner.run_with(task, on_drop, |_| ());
            let counter = match self.extra.stop.enter(run) {
                TaskOutcome::Completed | TaskOutcome::Unwanted => &rare.extra_ran,
                TaskOutcome::Panicked => {
                    rare.panicked_outside.add(1);
                    &rare.extra_ran
                }
                TaskOutcome::Expired | TaskOutcome::TooLate => &rare.extra_expired,
                TaskOutcome::RanElsewhere | TaskOutcome::RanByOwnWorker => &rare.extra_elsewhere,
                TaskOutcome::Cancelled | TaskOutcome::Shed => &rare.extra_cancelled,
            };
            counter.add(1);
        }
    }
}

impl Drop for ExtraGuard {
    fn drop(&mut self) {
        // If it never started, the thread that started it gives its task back, or has gone on: then the task is lost.
        if self.extra.mark_dead() {
            let lost = self.extra.take_first();
            self.engine
                .give_up(lost.into_iter().collect(), CancelReason::Rejected);
        }
        let removed = self
            .engine
            .with_workers(|workers| workers.remove_extra(&self.extra));
        drop(removed);
        self.engine.try_terminate();
    }
}
