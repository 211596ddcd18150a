//! The state of a scheduled pool, under one lock, and the slot that it lives in.
//!
//! A handle that cancels its task, or joins it inside its own executor, needs the state of the pool. If handles kept
//! the pool alive for that, each task would count it up and down, and a count that all threads share costs
//! as much as a lock. So slots live for ever: a handle has a `&'static` to the slot. A pool returns its slot when it
//! is dropped, and the next pool that is built takes it. There are never more slots than there were pools at a
//! time, and a free slot has a few hundred bytes. The [guard](super::liveness::Guard) in a closure reaches the
//! state in the same way.
//!
//! # Invariants
//!
//! - **STATESLOT-1** A slot belongs to one pool at a time: from when that is built until its engine is dropped. So a
//!   guard that is not dropped finds the state of its own pool: it holds the engine.
//! - **STATESLOT-2** A key of the queue fits no entry of a later pool (WHEEL-5 of the wheel). So a key removes its own
//!   entry or nothing.
//! - **STATESLOT-3** A handle that asks a slot for anything that needs no key, such as what its due time means, may be
//!   answered for a later pool. That happens only when the body of its own task is gone. Then nothing is left to decide:
//!   whatever the answer is, the handle finds the task finished, or waits until it is.
//! - **STATESLOT-4** A slot belongs to one process. In a forked child the locks of the parent's slots may be held by no
//!   thread, so no pool takes them.

use super::alarm::AlarmState;
use super::dispatch::Turn;
use super::engine::Parts;
use super::leader::LeaderState;
use super::liveness::Guards;
use super::pending::{Due, Entry, PendingQueue};
use crate::executor::{Executor, RejectReason};
use crate::manage::RunState;
use crate::time::{Alarm, Deadline, Key, ReservedEntry, ThreadHold, Wheel};
use millpond_raw::fork;
use millpond_raw::sync::{Mutex, MutexGuard, global};
use std::sync::Arc;
use std::time::Instant;

/// What is pending, and where the pool is in its life: one lock (SCHEDULE-1).
pub(super) struct PoolState {
    pub(super) run_state: RunState,
    /// All guards are gone, or it was stopped and nothing is active: see [`super::liveness`].
    pub(super) is_terminated: bool,
    pub(super) guards: Guards,
    pub(super) pending: PendingQueue,
    pub(super) alarm: AlarmState,
    pub(super) leader: LeaderState,
    pub(super) turn: Turn,
    /// The engine's executor, for handles, which have no engine.
    executor: Option<Arc<dyn Executor>>,
    /// Whether delayed tasks, and series, go on after a shutdown.
    pub(super) runs_delayed: bool,
    pub(super) runs_periodic: bool,
    /// Tasks that were accepted, and runs of series that were planned (BOOKS-1).
    pub(super) submitted: u64,
    /// Those of them that will never run (BOOKS-3).
    pub(super) cancelled: u64,
}

/// What was left in the state of a pool that is gone, to be dropped without its lock.
struct Remains {
    _pending: (Wheel<Entry>, Vec<Due>),
    _executor: Option<Arc<dyn Executor>>,
    _alarm: (Option<Alarm>, Option<ThreadHold>),
}

impl PoolState {
    fn new(former: Option<&mut Self>, parts: &Parts, now: Instant) -> Self {
        let former = former.map(|former| &mut former.pending);
        PoolState {
            run_state: RunState::Running,
            is_terminated: false,
            guards: Guards::new(),
            pending: PendingQueue::new(former, now, parts.max_pending),
            alarm: AlarmState::new(),
            leader: LeaderState::default(),
            turn: Turn::default(),
            executor: Some(Arc::clone(&parts.executor)),
            runs_delayed: parts.runs_delayed,
            runs_periodic: parts.runs_periodic,
            submitted: 0,
            cancelled: 0,
        }
    }

    /// Why nothing more is accepted, if so; `queued` is how many tasks the dispatcher has.
    pub(super) fn reject_reason(&self, queued: usize) -> Option<RejectReason> {
        if !self.guards.is_open() {
            return Some(RejectReason::ShutDown);
        }
        let (pending, most) = (self.pending.len() + queued, self.pending.max?);
        (pending >= most).then_some(RejectReason::ScheduleFull { pending, most })
    }

    /// Inserts an entry. Returns whether the caller must [dispatch](super::engine::ScheduleEngine::dispatch_due) because of it.
    pub(super) fn insert(&mut self, due: Deadline, entry: Entry) -> (Key, bool) {
        let key = self.pending.insert(due, entry);
        (key, self.alarm.is_after(due))
    }

    /// The same at a place that was [reserved](PendingQueue::reserve); `nanos` is the due time once more.
    #[inline]
    pub(super) fn fill(
        &mut self,
        place: ReservedEntry,
        due: Deadline,
        nanos: u64,
        entry: Entry,
    ) -> bool {
        self.pending.fill(place, nanos, entry);
        self.alarm.is_after(due)
    }

    /// Whether series may go on.
    pub(super) fn lets_series_run(&self) -> bool {
        match self.run_state {
            RunState::Running => true,
            RunState::ShutDown => self.runs_periodic,
            _ => false,
        }
    }

    /// The engine is being dropped.
    fn close(&mut self) -> Remains {
        Remains {
            _pending: self.pending.close(),
            _executor: self.executor.take(),
            _alarm: self.alarm.close(),
        }
    }
}

global! {
    static FREE: Mutex<Vec<&'static StateSlot>> = Mutex::new(Vec::new());
}

pub(super) struct StateSlot {
    state: Mutex<PoolState>,
    /// STATESLOT-4: the fork generation of its process.
    generation: u32,
}

impl StateSlot {
    /// A slot for a pool that is being built.
    pub(super) fn acquire(parts: &Parts, now: Instant) -> &'static Self {
        let generation = watched_generation();
        let mut free = FREE.lock();
        let found = free.iter().rposition(|slot| slot.generation == generation);
        let found = found.map(|index| free.swap_remove(index));
        drop(free);
        let Some(slot) = found else {
            let state = Mutex::new(PoolState::new(None, parts, now));
            return Box::leak(Box::new(StateSlot { state, generation }));
        };
        let mut state = slot.state.lock();
        let fresh = PoolState::new(Some(&mut state), parts, now);
        let former = std::mem::replace(&mut *state, fresh);
        drop(state);
        drop(former);
        slot
    }

    /// The engine is being dropped (STATESLOT-1).
    pub(super) fn release(&'static self) {
        if self.is_forked() {
            return;
        }
        let remains = self.state.lock().close();
        // SCHEDULE-3: the destructor of an executor may do anything.
        drop(remains);
        FREE.lock().push(self);
    }

    /// Not for a forked process, where the lock may be held by no thread.
    #[inline]
    pub(super) fn lock(&'static self) -> MutexGuard<'static, PoolState> {
        self.state.lock()
    }

    /// The state, unless its lock is held. For a forked process, to read.
    pub(super) fn try_lock(&'static self) -> Option<MutexGuard<'static, PoolState>> {
        self.state.try_lock()
    }

    #[inline]
    pub(super) fn is_forked(&self) -> bool {
        self.generation != fork::generation()
    }

    /// The due time of a task, if the caller is a worker of the executor that due tasks go to (STATESLOT-3).
    pub(super) fn due_on_worker_thread(&self, nanos: u64) -> Option<Deadline> {
        if self.is_forked() {
            return None;
        }
        let state = self.state.lock();
        let due = state.pending.deadline(nanos);
        let executor = state.executor.as_ref().map(Arc::clone);
        drop(state);
        executor?.on_worker_thread().then_some(due)
    }

    /// The due time of a task that is not started (STATESLOT-3); never in a forked process, where none runs.
    pub(super) fn deadline(&self, nanos: u64) -> Deadline {
        if self.is_forked() {
            return Deadline::NEVER;
        }
        self.state.lock().pending.deadline(nanos)
    }

    /// Removes an entry, if it is still pending.
    pub(super) fn remove(&self, key: Key) -> Option<Entry> {
        if self.is_forked() {
            None
        } else {
            self.state.lock().pending.remove(key)
        }
    }
}

/// The fork generation of this process; from now on forks are noticed.
fn watched_generation() -> u32 {
    fork::install_handlers();
    #[cfg(not(any(millpond_loom, millpond_shuttle)))]
    fork::register_lock(&FREE);
    fork::generation()
}

#[cfg(all(test, not(any(millpond_loom, millpond_shuttle))))]
mod tests {
    use super::*;
    use crate::executor::{DirectExecutor, Lifecycle};
    use crate::schedule::ScheduledPool;
    use crate::task;
    use crate::time::{Deadline, ManualClock};
    use std::time::Duration;

    const HOUR: Duration = Duration::from_secs(3600);

    fn pool() -> ScheduledPool<DirectExecutor> {
        let hand = ManualClock::new();
        ScheduledPool::on(DirectExecutor::new())
            .clock(hand.clock())
            .build()
    }

    /// An entry in the queue of a pool, without a task of the pool's.
    fn insert(pool: &ScheduledPool<DirectExecutor>) -> Key {
        let (task, _handle) = task::new(|| ());
        pool.engine
            .state()
            .insert(Deadline::NEVER, Entry::Once(task))
            .0
    }

    /// The next pool, if it is in this slot: other tests may have taken it meanwhile.
    fn next_in(slot: &'static StateSlot) -> Option<ScheduledPool<DirectExecutor>> {
        let next = pool();
        std::ptr::eq(next.engine.slot, slot).then_some(next)
    }

    #[test]
    fn a_pool_takes_the_slot_of_one_that_is_gone_and_old_keys_and_handles_touch_nothing_there() {
        for _ in 0..1000 {
            let first = pool();
            let slot = first.engine.slot;
            let key = insert(&first);
            let handle = first.schedule(HOUR, || 7).unwrap();
            let idle = first.schedule(HOUR, || 8).unwrap();
            assert!(idle.cancel());
            drop(first.shutdown_now());
            drop(first);
            let Some(second) = next_in(slot) else {
                continue;
            };
            assert!(!second.is_shutdown());
            let own = insert(&second);
            let task = second.schedule(HOUR, || 9).unwrap();
            assert!(slot.remove(key).is_none(), "STATESLOT-2");
            assert!(!handle.cancel() && !handle.interrupt() && !idle.cancel());
            assert_eq!(handle.next_run(), Deadline::NEVER);
            assert!(handle.join().unwrap_err().is_cancelled());
            let now = second.snapshot();
            assert_eq!((now.pending, now.cancelled), (2, 0));
            assert!(slot.remove(own).is_some());
            assert!(task.cancel());
            return;
        }
        panic!("no pool came into the slot of the one before, in a thousand tries");
    }

    #[test]
    fn a_slot_that_is_released_keeps_nothing_of_its_pool() {
        let first = pool();
        let slot = first.engine.slot;
        let executor = Arc::downgrade(&first.executor);
        let engine = Arc::downgrade(&first.engine);
        insert(&first);
        // Some of what keeps the engine alive is in the state now (LIVENESS-6).
        let tasks: Vec<_> = (0..100).map(|_| first.schedule(HOUR, || ())).collect();
        let handles: Vec<_> = tasks.into_iter().map(Result::unwrap).collect();
        assert!(handles[1..].iter().all(|handle| handle.cancel()));
        let spare = slot.lock().guards.spare_len();
        assert_eq!(spare, 99);
        drop(first.shutdown_now());
        assert!(first.is_terminated());
        drop(first);
        assert!(engine.upgrade().is_none() && executor.upgrade().is_none());
        assert!(handles.iter().all(|handle| handle.is_cancelled()));
    }
}
