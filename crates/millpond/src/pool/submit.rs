//! How a task comes into the pool: Java's `execute`.
//!
//! ```text
//!   admit --> admit_slow: decide, then start a worker or enqueue; again if that did not work out
//!     |           |
//!     +-----------+--> enqueued --> fewer workers than relied on? --> recheck (POOL-1)
//! ```
//!
//! With threads first a submitter may rely on a free worker: that protocol is in [`super::free_workers`].
//!
//! # Orderings
//!
//! `[E-queue]` is explained in [`super::task_queue`], where its other end is.

use super::admission::{Situation, Step, decide};
use super::engine::PoolEngine;
use super::free_workers::{Claim, Entry};
use super::task_queue::TaskQueue;
use crate::engine::watchdog::Supervised;
use crate::engine::{Ctl, Hold, Identity, NotAdded, RemovesTasks, Spawn};
use crate::executor::{RejectReason, Rejected};
use crate::manage::Growth;
use crate::queue::BlockingQueue;
use crate::task::{CancelReason, Task};
use crate::time::{Owner, Work, run_off_timer};
use millpond_raw::catch_panic;
use millpond_raw::sync::atomic::{Ordering, fence};
use millpond_raw::sync::chaos;
use std::io;
use std::sync::Arc;

/// There was no room; the numbers are added later, if they are needed.
const NO_ROOM: RejectReason = RejectReason::saturated(0, 0, 0);

impl PoolEngine {
    /// Accepts the task, without asking the rejection policy. If there is no room it says just that, without numbers:
    /// [`with_numbers`](PoolEngine::with_numbers) finds them, for callers that want them.
    #[inline]
    pub(super) fn admit(self: &Arc<Self>, task: Task) -> Result<(), Rejected<Task>> {
        if !self.is_watched().load(Ordering::Relaxed) {
            self.arm_watchdog();
        }
        let (ctl, limits) = (self.ctl().read(), self.config().limits());
        let usual = ctl.is_running()
            && ctl.workers() >= limits.core().max(1)
            && limits.growth() == Growth::QueueFirst;
        let queue = match &self.queue {
            TaskQueue::Plain(queue) if usual => queue,
            _ => return self.admit_slow(task, true),
        };
        // The fast path of what `decide` says of this situation, and of what `enqueue` does then.
        if queue.is_full() && self.is_saturated() {
            return Err(Rejected::new(task, NO_ROOM));
        }
        let identity = Identity::give(&task, Some(self.tombstones.tag()), &self.timestamps);
        if let Err(rejected) = queue.offer(task) {
            return self.admit_slow(rejected.element, self.clear_tombstones());
        }
        chaos::point("pool.enqueued");
        if self.has_lost_workers(ctl) {
            return self.recheck(identity);
        }
        Ok(())
    }

    /// Accepts the task on the timer's thread, if that runs no user code: no queue of the user's, no thread factory, and
    /// no destructor of a rejected task. Otherwise another thread has to submit it.
    #[cold]
    pub(super) fn admit_from_timer(self: &Arc<Self>, task: Task) -> Result<(), Task> {
        let (ctl, limits) = (self.ctl().read(), self.config().limits());
        let usual = ctl.is_running()
            && ctl.workers() >= limits.core().max(1)
            && limits.growth() == Growth::QueueFirst;
        let queue = match &self.queue {
            TaskQueue::Plain(queue) if usual && !queue.is_full() => queue,
            _ => return Err(task),
        };
        if !self.is_watched().load(Ordering::Relaxed) {
            self.arm_watchdog();
        }
        let identity = Identity::give(&task, Some(self.tombstones.tag()), &self.timestamps);
        if let Err(rejected) = queue.offer(task) {
            rejected.element.detach();
            return Err(rejected.element);
        }
        chaos::point("pool.enqueued");
        if self.has_lost_workers(ctl) {
            // It may take a thread.
            let engine = Arc::clone(self);
            run_off_timer(Owner::of(&**self, Work::StartThread), move || {
                // END-4: before the task leaves the queue.
                let _hold = Hold::unless_over(&*engine);
                if let Err(rejected) = engine.recheck(identity) {
                    // Its submitter has heard that it was accepted.
                    engine.give_up(vec![rejected.task], CancelReason::Rejected);
                }
            });
        }
        Ok(())
    }

    /// Whether a task that has just found the queue full is rejected. Rejections come in bursts, so this is a fast path
    /// of what `decide` says of that situation.
    #[inline]
    pub(super) fn is_saturated(&self) -> bool {
        let (ctl, limits) = (self.ctl().read(), self.config().limits());
        ctl.is_running() && ctl.workers() >= limits.max() && !self.tombstones.has_new()
    }

    /// Judges, tries, and judges again.
    #[cold]
    fn admit_slow(
        self: &Arc<Self>,
        mut task: Task,
        mut has_room: bool,
    ) -> Result<(), Rejected<Task>> {
        loop {
            let (ctl, limits) = (self.ctl().read(), self.config().limits());
            // A claim matters only where threads come first and there is a choice.
            let wants_claim = limits.growth() == Growth::ThreadsFirst
                && ctl.is_running()
                && has_room
                && (limits.core()..limits.max()).contains(&ctl.workers());
            let claim = if wants_claim {
                self.claim_free_worker()
            } else {
                None
            };
            let now = Situation {
                is_running: ctl.is_running(),
                workers: ctl.workers(),
                core: limits.core(),
                max: limits.max(),
                growth: limits.growth(),
                one_is_free: claim.is_some(),
                has_room,
            };
            match decide(&now) {
                Step::ShutDown => return Err(Rejected::new(task, RejectReason::ShutDown)),
                Step::Reject => return Err(Rejected::new(task, NO_ROOM)),
                Step::Enqueue => match self.enqueue(task, ctl, claim) {
                    Ok(taken) => return taken,
                    Err(back) => (task, has_room) = (back, self.clear_tombstones()),
                },
                Step::Start { below } => {
                    drop(claim);
                    if let Some(error) = self.start_pause() {
                        return self.enqueue_without_thread(task, error, has_room);
                    }
                    Identity::give(&task, None, &self.timestamps);
                    match self.add_worker(Some(task), below) {
                        // Without an error, a worker has the task; without a task, a stop.
                        Ok(()) | Err((None, _)) => return Ok(()),
                        Err((Some(back), NotAdded::Judge)) => (task, has_room) = (back, true),
                        Err((Some(back), NotAdded::Failed(error))) => {
                            return self.enqueue_without_thread(back, error, has_room);
                        }
                    }
                }
            }
        }
    }

    /// The queue is full, perhaps of tombstones: takes them out. Returns whether there may be room now.
    fn clear_tombstones(&self) -> bool {
        if !self.tombstones.has_new() {
            return false;
        }
        let is_foreign = self.queue.is_foreign();
        self.take_and_cancel(CancelReason::Dropped, |hold| {
            self.tombstones
                .clear(is_foreign, || self.take_tombstones(hold))
        });
        true
    }

    /// A thread could not be started: the task is left to a worker that is there, if one is.
    fn enqueue_without_thread(
        self: &Arc<Self>,
        mut task: Task,
        error: io::Error,
        mut has_room: bool,
    ) -> Result<(), Rejected<Task>> {
        while has_room {
            let ctl = self.ctl().read();
            if ctl.workers() == 0 {
                break;
            }
            match self.enqueue(task, ctl, self.enter_without_claim()) {
                Ok(taken) => return taken,
                Err(back) => (task, has_room) = (back, self.clear_tombstones()),
            }
        }
        self.recover_failed_spawn();
        Err(Rejected::new(task, RejectReason::SpawnFailed(error)))
    }

    /// A rejection, with the numbers that its reader wants to see.
    pub(super) fn with_numbers(&self, rejected: Rejected<Task>) -> Rejected<Task> {
        if rejected.reason.is_saturated() {
            Rejected::new(rejected.task, self.saturation())
        } else {
            rejected
        }
    }

    /// Why a task is rejected now that has found no room.
    pub(super) fn saturation(&self) -> RejectReason {
        let ctl = self.ctl().read();
        if !ctl.is_running() || self.queue.is_sealed() {
            return RejectReason::ShutDown;
        }
        let (queued, workers) = (self.queue.len(), ctl.workers());
        RejectReason::Saturated {
            queued,
            capacity: self.queue.capacity().unwrap_or(usize::MAX),
            workers,
            drains_in: self.drains_in(queued, workers),
        }
    }

    /// Enqueues the task, and makes sure that the workers are there that were relied on when it was judged (POOL-1): as
    /// many, or, with a claim, one that is free. The outer error is the task, if there is no room.
    fn enqueue(
        self: &Arc<Self>,
        task: Task,
        judged: Ctl,
        entry: Option<Entry<'_>>,
    ) -> Result<Result<(), Rejected<Task>>, Task> {
        let identity = Identity::give(&task, Some(self.tombstones.tag()), &self.timestamps);
        let is_foreign = self.queue.is_foreign();
        // UNDECIDED-1
        let undecided = (judged.workers() == 0).then(|| self.rare.undecided.enter());
        if is_foreign {
            self.offer_to_foreign(task)?;
        } else {
            self.queue.offer(task)?;
        }
        // POOL-4: a thread may be started now.
        let claim = entry.map_or(Claim::None, Entry::end);
        chaos::point("pool.enqueued");
        let rechecks = match claim {
            Claim::Stood => self.ctl().read().workers() == 0,
            Claim::Lost => true,
            Claim::None => is_foreign || self.has_lost_workers(judged),
        };
        let taken = if rechecks {
            self.recheck_claim(identity, claim)
        } else {
            self.take_back_if_late(&identity).unwrap_or(Ok(()))
        };
        drop(undecided);
        Ok(taken)
    }

    /// Whether there are fewer workers than a task was judged by, or none.
    #[inline]
    fn has_lost_workers(&self, judged: Ctl) -> bool {
        let workers = self.ctl().read().workers();
        workers == 0 || workers < judged.workers()
    }

    /// A queue of the user's may panic when the task is in already. The panic is the submitter's, and the second look of
    /// POOL-1 must not be left out for it.
    #[cold]
    fn offer_to_foreign(self: &Arc<Self>, task: Task) -> Result<(), Task> {
        struct OnPanic<'a>(&'a Arc<PoolEngine>);

        impl Drop for OnPanic<'_> {
            fn drop(&mut self) {
                let engine = self.0;
                let _ = catch_panic::call(|| {
                    let eager = engine.config().limits().eager();
                    if !engine.check_staffed(eager, Claim::None) {
                        let _ = engine.add_worker(None, eager);
                    }
                    engine.recover_failed_spawn();
                });
            }
        }

        let on_panic = OnPanic(self);
        let offered = self.queue.offer(task);
        std::mem::forget(on_panic);
        offered
    }

    /// The second look of POOL-1, after a task was enqueued without a claim: it may be too late, or workers are missing.
    #[cold]
    pub(super) fn recheck(self: &Arc<Self>, identity: Identity) -> Result<(), Rejected<Task>> {
        self.recheck_claim(identity, Claim::None)
    }

    #[cold]
    fn recheck_claim(
        self: &Arc<Self>,
        identity: Identity,
        claim: Claim,
    ) -> Result<(), Rejected<Task>> {
        if let Some(late) = self.take_back_if_late(&identity) {
            return late;
        }
        let eager = self.config().limits().eager();
        if self.check_staffed(eager, claim) {
            return Ok(());
        }
        let added = match self.start_pause() {
            Some(error) => Err(NotAdded::Failed(error)),
            None => self.add_worker(None, eager).map_err(|(_, why)| why),
        };
        match added {
            Ok(()) | Err(NotAdded::Judge) => Ok(()),
            // It waits for the workers that are there.
            Err(NotAdded::Failed(_)) if self.ctl().read().workers() > 0 => Ok(()),
            Err(NotAdded::Failed(error)) => {
                let own = self.take_back(&identity);
                self.recover_failed_spawn();
                match own {
                    Some(task) => Err(Rejected::new(task, RejectReason::SpawnFailed(error))),
                    None => Ok(()),
                }
            }
        }
    }

    /// Checks whether there are `eager` workers, or enough for what is queued. Without a claim a shortage is recorded
    /// (FREE-4).
    fn check_staffed(&self, eager: usize, claim: Claim) -> bool {
        let workers = self.ctl().read().workers();
        if workers >= eager {
            return true;
        }
        if claim == Claim::None {
            self.free_workers.record_loss();
        }
        workers > 0 && self.is_served()
    }

    /// Takes a task back that has slipped into a queue of the user's too late (SEAL-3). `None` if it was in time.
    fn take_back_if_late(&self, identity: &Identity) -> Option<Result<(), Rejected<Task>>> {
        if !self.queue.is_foreign() {
            return None;
        }
        // [E-queue]
        fence(Ordering::SeqCst);
        if self.ctl().read().is_running() {
            return None;
        }
        Some(match self.take_back(identity) {
            Some(task) => Err(Rejected::new(task, RejectReason::ShutDown)),
            None => Ok(()),
        })
    }

    /// Takes that very task out of the queue again, if no other thread has.
    fn take_back(&self, identity: &Identity) -> Option<Task> {
        let mut found = self.queue.remove_where(1, &mut |task| identity.is(task));
        if !found.is_empty() {
            self.tasks_removed();
        }
        found.pop()
    }
}
