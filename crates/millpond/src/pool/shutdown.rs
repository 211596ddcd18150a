//! Shutdown and stop of a pool, and what becomes of tasks that are taken out of its queue.

use super::engine::PoolEngine;
use super::worker::Worker;
use crate::engine::{Hold, RemovedTasks, RemovesTasks, Terminates, Termination, termination};
use crate::manage::RunState;
use crate::task::{CancelReason, Task};
use millpond_raw::catch_panic;
use millpond_raw::park::Site;
use std::sync::Arc;

impl Terminates for PoolEngine {
    const AWAIT_SITE: Site = Site::new("pool.await_termination");

    fn shut_down(self: &Arc<Self>) {
        if self.is_forked() {
            self.ctl().advance_to(RunState::ShutDown);
            return;
        }
        // SEAL-1: sealed first.
        self.queue.seal();
        if self.ctl().advance_to(RunState::ShutDown) {
            self.wake_idle_workers();
            self.room_waiters.wake_all();
            self.try_terminate();
        }
    }

    fn is_forked(&self) -> bool {
        PoolEngine::is_forked(self)
    }

    fn is_over(&self) -> bool {
        self.ctl().read().state() == RunState::Terminated
    }

    fn termination(&self) -> &Termination {
        &self.termination
    }
}

impl PoolEngine {
    /// The state that users see.
    pub(super) fn shown(&self) -> RunState {
        self.shown_state(|| self.ctl().read().state())
    }

    pub(super) fn is_shut_down(&self) -> bool {
        !self.ctl().read().is_running()
    }

    pub(super) fn try_terminate(&self) {
        termination::try_terminate(self);
    }

    /// Takes no more tasks, interrupts what runs, and hands back what has not started.
    pub(super) fn stop(&self) -> Vec<Task> {
        if !self.is_forked() {
            // SEAL-1: sealed first.
            self.queue.seal();
        }
        self.stop_workers()
    }

    /// Takes tombstones out of the queue, and returns how many they were.
    pub(super) fn purge(&self) -> usize {
        let mut purged = 0;
        self.take_and_cancel(CancelReason::Dropped, |hold| {
            let tombstones = self.take_tombstones(hold);
            purged = tombstones.len();
            tombstones
        });
        purged
    }

    /// Takes tombstones out of the queue, to be [given up](RemovesTasks::give_up) under no lock.
    pub(super) fn take_tombstones(&self, _: &Hold<'_, Self>) -> Vec<Task> {
        self.queue
            .remove_where(usize::MAX, &mut |task| task.is_gone())
    }
}

impl RemovesTasks for PoolEngine {
    fn removed(&self) -> &RemovedTasks {
        &self.removed
    }

    /// A queue of the user's that panics keeps its tasks.
    fn take_where(&self, _: &Hold<'_, Self>, wanted: &mut dyn FnMut(&Task) -> bool) -> Vec<Task> {
        let take = || self.queue.remove_where(usize::MAX, wanted);
        catch_panic::call(take).unwrap_or_default()
    }

    fn take_unstarted(&self, hold: &Hold<'_, Self>, workers: &[Arc<Worker>]) -> Vec<Task> {
        let firsts = workers.iter().filter_map(|worker| worker.hand_back_first());
        let mut unstarted: Vec<Task> = firsts.collect();
        unstarted.extend(self.take_where(hold, &mut |_| true));
        unstarted
    }

    /// Workers may wait for the last of them as well.
    fn tasks_removed(&self) {
        if self.is_shut_down() {
            self.wake_idle_workers();
            self.try_terminate();
        } else if self.queue.is_foreign() {
            self.wake_staying_workers();
        }
    }

    fn wake_for_stop(&self) {
        self.wake_idle_workers();
        self.room_waiters.wake_all();
    }
}

#[cfg(all(test, not(any(millpond_loom, millpond_shuttle))))]
#[allow(
    clippy::disallowed_types,
    clippy::disallowed_methods,
    reason = "a test stands outside: it uses std's threads and channels beside what it tests"
)]
mod tests {
    use crate::engine::RemovesTasks;
    use crate::executor::{ExecutorExt, Lifecycle};
    use crate::manage::Managed;
    use crate::pool::ThreadPool;
    use crate::task::TaskLocal;
    use std::sync::mpsc::{Receiver, Sender, channel};
    use std::sync::{Arc, Mutex};
    use std::thread;
    use std::time::Duration;

    struct SlowToDrop(Sender<()>, Mutex<Receiver<()>>);

    impl Drop for SlowToDrop {
        fn drop(&mut self) {
            self.0.send(()).unwrap();
            self.1.get_mut().unwrap().recv().ok();
        }
    }

    static CARRIED: TaskLocal<Arc<SlowToDrop>> = TaskLocal::new();

    /// END-4
    #[test]
    fn a_pool_ends_when_what_was_taken_back_from_it_is_counted() {
        let pool = ThreadPool::builder("mill").core(1).max(1).build().unwrap();
        let (hold, held) = channel::<()>();
        let busy = pool.submit(move || held.recv().is_err()).unwrap();
        while !busy.is_started() {
            thread::yield_now();
        }
        let ((begin, begun), (let_go, go_on)) = (channel(), channel::<()>());
        let slow = Arc::new(SlowToDrop(begin, Mutex::new(go_on)));
        let carries = CARRIED.scope(slow, || pool.submit(|| ()).unwrap());
        pool.execute(|| ()).unwrap();
        carries.cancel();
        drop(carries);
        thread::scope(|threads| {
            let let_go = let_go;
            let taken = threads.spawn(|| pool.engine.take_back_where(&mut |_| true));
            begun.recv().unwrap();
            pool.shutdown();
            drop(hold);
            assert!(busy.join().unwrap());
            let soon = pool.await_termination_timeout(Duration::from_millis(20));
            assert!(!soon.unwrap(), "{}", pool.engine_snapshot());
            let_go.send(()).unwrap();
            assert_eq!(taken.join().unwrap().len(), 1);
            pool.await_termination().unwrap();
            let end = pool.engine_snapshot();
            assert_eq!((end.submitted, end.completed, end.cancelled), (3, 1, 2));
        });
    }
}
