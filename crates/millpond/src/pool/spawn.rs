//! What the start protocol of workers needs to know of a pool ([`crate::engine`]); starting workers ahead, and for new
//! limits; waking idle ones.
//!
//! # Orderings
//!
//! `[E-epoch]` and `[E-stay]` are explained in [`super::engine`].

use super::engine::PoolEngine;
use super::worker::{WorkerRecord, Workers};
use crate::engine::events::EventSource;
use crate::engine::{
    AtomicCtl, ForkGuard, Hold, NotAdded, RemovesTasks, Spawn, Starts, WorkerEngine, WorkerGuard,
};
use crate::executor::ReportDrops;
use crate::task::{CancelReason, Task};
use crate::thread::ThreadFactory;
use crate::time::TimestampClock;
use millpond_raw::catch_panic;
use millpond_raw::sync::atomic::{Ordering, fence};
use millpond_raw::user_code::{self, Kind};
use std::io;
use std::sync::Arc;

impl WorkerEngine for PoolEngine {
    type Part = WorkerRecord;

    #[inline]
    fn ctl(&self) -> &AtomicCtl {
        PoolEngine::ctl(self)
    }

    fn with_workers<R>(&self, f: impl FnOnce(&mut Workers) -> R) -> R {
        PoolEngine::with_workers(self, f)
    }

    fn new_part(&self, has_first: bool) -> WorkerRecord {
        WorkerRecord::new(has_first, self.max_labels())
    }

    fn thread_factory(&self) -> Arc<dyn ThreadFactory> {
        Arc::clone(&self.config().lock().factory)
    }

    fn starts(&self) -> &Starts {
        &self.starts
    }

    fn timestamps(&self) -> &TimestampClock {
        &self.timestamps
    }

    fn eager_workers(&self) -> usize {
        self.config().limits().eager()
    }

    fn has_queued_tasks(&self) -> bool {
        !self.queue.is_empty()
    }

    fn take_queued(&self, _: &Hold<'_, Self>) -> Vec<Task> {
        self.queue.remove_where(1, &mut |_| true)
    }

    fn cancel_accepted(&self, tasks: Vec<Task>) {
        self.give_up(tasks, CancelReason::Rejected);
    }

    fn run_worker(guard: WorkerGuard<Self>) {
        guard.run_worker();
    }

    fn worker_uncounted(&self) {
        // FREE-3
        self.free_workers.record_loss();
    }

    fn worker_exited(&self) {
        // A submitter that waits for room, or for a free worker, may start one now.
        self.room_waiters.wake_all();
    }

    fn before_terminated(&self) {
        if let Some(hooks) = &self.hooks {
            user_code::check(Kind::Hook);
            let _ = catch_panic::call(|| hooks.terminated());
        }
        self.watchdog.release_timer();
        self.report_rest();
        self.end_events();
    }
}

impl PoolEngine {
    /// Starts one core worker, if one is missing.
    pub(super) fn prestart(self: &Arc<Self>) -> io::Result<bool> {
        if self.is_forked() {
            return Err(ForkGuard::error());
        }
        match self.add_worker(None, self.config().limits().core()) {
            Ok(()) => Ok(true),
            Err((_, NotAdded::Judge)) => Ok(false),
            Err((_, NotAdded::Failed(error))) => {
                self.recover_failed_spawn();
                Err(error)
            }
        }
    }

    /// The limits have changed: idle workers look again; and queued tasks that would get a worker of their own if they
    /// came now get one, as far as the new limits allow more than the old ones. A failed start does no harm: the next
    /// task asks again.
    pub(super) fn limits_changed(self: &Arc<Self>, eager_before: usize) {
        self.wake_idle_workers();
        self.room_waiters.wake_all();
        let eager = self.config().limits().eager();
        let more = eager.saturating_sub(eager_before);
        if more > 0 {
            // No worker is started for a tombstone.
            self.purge();
        }
        for _ in 0..more.min(self.queue.len()) {
            if self.add_worker(None, eager).is_err() || self.queue.is_empty() {
                self.recover_failed_spawn();
                break;
            }
        }
    }

    /// Lets every idle worker look again at the state and the limits. Java's `interruptIdleWorkers`.
    ///
    /// First the epoch advances, then the workers are woken; a worker reads the epoch, judges, and reads the epoch again
    /// each time before it parks. So it sees the new epoch, or finds the wake.
    pub(super) fn wake_idle_workers(&self) {
        // [E-epoch]
        self.idle.epoch.fetch_add(1, Ordering::SeqCst);
        for worker in self.with_workers(|workers| workers.list()) {
            worker.wake();
        }
    }

    /// A task has left a queue of the user's. If it was the last, workers that stay for it (it may not be due yet) are
    /// told that there is nothing to stay for.
    pub(super) fn wake_staying_workers(&self) {
        // [E-stay]
        fence(Ordering::SeqCst);
        if self.idle.staying.load(Ordering::Relaxed) > 0 && self.queue.is_empty() {
            self.wake_idle_workers();
        }
    }
}
