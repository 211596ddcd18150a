//! The start protocol of workers: counted, registered, started; or never started, and recovered from.
//!
//! ```text
//!   add_worker:   count (CAS on the control word) -> register (under the lock) -> ask the thread factory
//!                   |                                  |                            |
//!                   |                                  | stopped meanwhile          | error, panic, or the body
//!                   |                                  v                            v  was dropped unrun
//!                   |                            the guard is dropped: uncounted, unregistered, queue re-checked
//!                   v
//!   run_worker -> the guard is dropped when the worker exits, or dies of a panic
//! ```
//!
//! - **SPAWN-1** Other threads rely on a worker that is counted: they have enqueued their tasks and gone. So if it
//!   cannot start, the thread that counted it takes the look into the queue that the worker would have taken
//!   ([`Spawn::recover_failed_spawn`]).
//! - **SPAWN-2** The [`WorkerGuard`] exists from the count on. Dropping it, in whatever way, uncounts the worker if that
//!   has not been done, then removes it from the registry. So each is done once, whether the thread ran or not.
//! - **SPAWN-3** A worker that dies of a panic looks into the queue after it was uncounted, as a leaving one does. It
//!   cannot stay, so it starts another worker ([`Spawn::replace_dead_worker`]).
//! - **SPAWN-4** If a thread dies before its first step although its factory has accepted it, the task that it was
//!   started for is cancelled with it, before the engine can end (END-4). Each task that relied on the worker gets an
//!   attempt of its own. So a factory whose threads all die costs as many threads as tasks, and no more
//!   ([`Spawn::worker_never_started`]).

use super::ctl::{AtomicCtl, Ctl};
use super::starts::Starts;
use super::termination::{self, Hold, Terminates};
use super::workers::{Worker, WorkerPart, Workers};
use crate::executor::Inside;
use crate::manage::RunState;
use crate::queue::end_push_for_self;
use crate::thread::{Body, ThreadFactory};
use crate::time::TimestampClock;
use millpond_raw::sync::chaos;
use millpond_raw::timestamp::Timestamp;
use millpond_raw::user_code::{self, Kind};
use millpond_raw::{catch_panic, park};
use std::cell::Cell;
use std::io;
use std::sync::Arc;

const UNRUN: &str = "the thread factory returned Ok but dropped the thread's body";

/// The task that a worker of this engine may be started with.
type TaskOf<E> = <<E as WorkerEngine>::Part as WorkerPart>::Task;

/// An engine whose workers are counted in a control word, as the start protocol needs it.
pub(crate) trait WorkerEngine: Terminates {
    /// What the engine keeps for a worker.
    type Part: WorkerPart;

    /// The control word: run state and worker count.
    fn ctl(&self) -> &AtomicCtl;

    /// Reads the registry, or changes it, under its lock.
    fn with_workers<R>(&self, f: impl FnOnce(&mut Workers<Self::Part>) -> R) -> R;

    /// Makes the engine's part of a new worker. `has_first` says whether it starts with a task. Called under the lock of
    /// the registry.
    fn new_part(&self, has_first: bool) -> Self::Part;

    /// Starts the threads of the workers. It may be the user's.
    fn thread_factory(&self) -> Arc<dyn ThreadFactory>;

    /// Attempts to start threads.
    fn starts(&self) -> &Starts;

    /// The clock of start times and of the pause after failed starts.
    fn timestamps(&self) -> &TimestampClock;

    /// Up to this many workers a queued task gets one of its own, if none is free.
    fn eager_workers(&self) -> usize;

    /// Whether a task is queued that a new worker could take.
    fn has_queued_tasks(&self) -> bool;

    /// Takes one task out of the queue; none if other threads have taken them, or a queue of the user's keeps it.
    fn take_queued(&self, hold: &Hold<'_, Self>) -> Vec<TaskOf<Self>>;

    /// Cancels tasks that had been accepted, and that no thread can be had for.
    fn cancel_accepted(&self, tasks: Vec<TaskOf<Self>>);

    /// The life of a worker, on its own thread.
    ///
    /// Every normal exit calls `uncount` first, or succeeds with `try_uncount`. A guard that is dropped while the
    /// worker is still counted means that the worker has died of a panic: another one may be started for it.
    fn run_worker(guard: WorkerGuard<Self>);

    /// A worker that died or never started was uncounted. Called before the queue is checked.
    fn worker_uncounted(&self);

    /// A worker is neither counted nor registered any more.
    fn worker_exited(&self);

    /// The last worker is gone: calls the user's hook, and lets go of what is held until the end.
    fn before_terminated(&self);
}

/// Why there is no new worker.
pub(crate) enum NotAdded {
    /// There are enough by now, or the engine is ending: judge again.
    Judge,
    Failed(io::Error),
}

/// The start protocol.
pub(crate) trait Spawn: WorkerEngine {
    /// Starts a worker with a first task or none, if there are fewer than `below`.
    ///
    /// The error gives the task back, unless a stop has taken it.
    fn add_worker(
        self: &Arc<Self>,
        first: Option<TaskOf<Self>>,
        below: usize,
    ) -> Result<(), (Option<TaskOf<Self>>, NotAdded)> {
        let count = loop {
            let ctl = self.ctl().read();
            let is_too_late = match ctl.state() {
                RunState::Running => false,
                // Queued tasks must still be run.
                RunState::ShutDown => first.is_some() || !self.has_queued_tasks(),
                _ => true,
            };
            if is_too_late || ctl.workers() >= below {
                return Err((first, NotAdded::Judge));
            }
            if self.ctl().try_increment_workers(ctl) {
                break ctl.workers() + 1;
            }
        };
        chaos::point("pool.counted");
        let (worker, is_registered) = self.with_workers(|workers| {
            let part = self.new_part(first.is_some());
            let worker = Arc::new(Worker::new(workers.next_number(), first, part));
            // WORKERS-1. A shutdown since the count is no reason to turn back: the task came before it, and other
            // threads have seen this worker counted (SPAWN-1).
            let may_run = self.ctl().read().runs_queued_tasks();
            if may_run {
                workers.add(&worker);
            }
            (worker, may_run)
        });
        let guard = WorkerGuard::new(Arc::clone(self), Arc::clone(&worker), count);
        if !is_registered {
            drop(guard);
            return Err((worker.take_first(), NotAdded::Judge));
        }
        match self.start_thread(&worker, Box::new(move || Self::run_worker(guard))) {
            Ok(()) => {
                self.with_workers(|workers| workers.record_started(count));
                Ok(())
            }
            // The body was dropped, and the guard with it (SPAWN-2).
            Err(error) => Err((worker.take_first(), NotAdded::Failed(error))),
        }
    }

    /// The error of the last attempt to start a thread, if it is too early for another one.
    fn start_pause(&self) -> Option<io::Error> {
        self.starts().pause(self.timestamps())
    }

    /// Starts the thread of a worker, or an extra one. Fails if its body was dropped unrun, whatever the factory says.
    fn start_thread(&self, worker: &Worker<Self::Part>, body: Body) -> io::Result<()> {
        let factory = self.thread_factory();
        // FIFO-9: a leader may be dispatching.
        end_push_for_self();
        // The factory is the user's: its panic is a failed start.
        user_code::check(Kind::Factory);
        // END-3: the end would wait for the thread that is to be started.
        let inside = Inside::of(self);
        let answer = catch_panic::call(|| factory.start(body));
        drop(inside);
        let answer = match answer {
            Some(answer) => answer.map(drop),
            None => Err(io::Error::other("the thread factory panicked")),
        };
        let started = if worker.detach() {
            answer
        } else {
            answer.and_then(|()| Err(io::Error::other(UNRUN)))
        };
        self.starts().record(&started, self.timestamps());
        started
    }

    /// A worker was counted and could not start (SPAWN-1). Each task that relied on it gets an attempt of its own, as if
    /// it came now, unless starts are paused. A task for which no thread can be had is cancelled.
    #[cold]
    fn recover_failed_spawn(self: &Arc<Self>) {
        loop {
            let ctl = self.ctl().read();
            if !ctl.runs_queued_tasks() || ctl.workers() > 0 || !self.has_queued_tasks() {
                return;
            }
            let refused = match self.start_pause() {
                None => self.add_worker(None, 1).map_err(|(_, why)| why),
                Some(error) => Err(NotAdded::Failed(error)),
            };
            if let Err(NotAdded::Failed(error)) = refused {
                // It may be the user's.
                catch_panic::drop(error);
                // END-4: before the task leaves the queue.
                let Some(hold) = Hold::unless_stopped(&**self) else {
                    return;
                };
                let tasks = self.take_queued(&hold);
                if tasks.is_empty() {
                    return;
                }
                self.cancel_accepted(tasks);
            }
        }
    }

    /// A worker has died of a panic, and is uncounted (SPAWN-3).
    #[cold]
    fn replace_dead_worker(self: &Arc<Self>) {
        let (ctl, eager) = (self.ctl().read(), self.eager_workers());
        if ctl.workers() < eager && self.has_queued_tasks() {
            let _ = self.add_worker(None, eager);
        }
        // If that failed.
        self.recover_failed_spawn();
    }

    /// A thread has died before its first step, after its factory had accepted it (SPAWN-4).
    #[cold]
    fn worker_never_started(self: &Arc<Self>, hold: &Hold<'_, Self>, worker: &Worker<Self::Part>) {
        let own = worker.take_first().map(|task| vec![task]);
        let lost = own.unwrap_or_else(|| match self.ctl().read().workers() {
            0 => self.take_queued(hold),
            _ => Vec::new(),
        });
        self.cancel_accepted(lost);
        self.recover_failed_spawn();
    }
}

impl<E: WorkerEngine> Spawn for E {}

/// What the thread of a worker holds, from before it starts until it ends (SPAWN-2).
pub(crate) struct WorkerGuard<E: WorkerEngine> {
    pub(crate) engine: Arc<E>,
    pub(crate) worker: Arc<Worker<E::Part>>,
    /// How many workers there were when this one was counted, itself included.
    count: usize,
    is_counted: Cell<bool>,
}

impl<E: WorkerEngine> WorkerGuard<E> {
    /// For a worker that has been counted.
    pub(crate) fn new(engine: Arc<E>, worker: Arc<Worker<E::Part>>, count: usize) -> Self {
        WorkerGuard {
            engine,
            worker,
            count,
            is_counted: Cell::new(true),
        }
    }

    /// Records the first step of the present thread, which is the worker's.
    pub(crate) fn record_started(&self, now: Timestamp) {
        self.worker.record_started(now);
        self.engine
            .with_workers(|workers| workers.record_started(self.count));
        self.worker.set_waker(park::current().waker());
    }

    /// Uncounts the worker, whatever else has changed.
    pub(crate) fn uncount(&self) {
        self.is_counted.set(false);
        self.engine.ctl().decrement_workers();
    }

    /// Uncounts the worker, if the control word is still the one that was judged.
    pub(crate) fn try_uncount(&self, judged: Ctl) -> bool {
        let is_done = self.engine.ctl().try_decrement_workers(judged);
        if is_done {
            self.is_counted.set(false);
        }
        is_done
    }

    /// Counts a worker in again that was uncounted and stays after all.
    pub(crate) fn try_recount(&self, judged: Ctl) -> bool {
        let is_done = self.engine.ctl().try_increment_workers(judged);
        if is_done {
            self.is_counted.set(true);
        }
        is_done
    }
}

impl<E: WorkerEngine> Drop for WorkerGuard<E> {
    /// Java's `processWorkerExit`.
    fn drop(&mut self) {
        let engine = &self.engine;
        let is_cut_short = self.is_counted.get();
        if is_cut_short {
            self.uncount();
            engine.worker_uncounted();
        }
        let removed = engine.with_workers(|workers| {
            // END-4: what relied on this worker may have to be cancelled.
            if is_cut_short {
                workers.hold();
            }
            workers.remove(&self.worker)
        });
        let hold = is_cut_short.then(|| Hold::of(&**engine));
        drop(removed);
        if self.worker.mark_dead() {
            // One that never started is still counted.
            if let Some(hold) = &hold {
                let _ = catch_panic::call(|| engine.worker_never_started(hold, &self.worker));
            }
        } else if is_cut_short && self.worker.has_started() {
            let _ = catch_panic::call(|| engine.replace_dead_worker());
        }
        engine.worker_exited();
        drop(hold);
        termination::try_terminate(&**engine);
    }
}
