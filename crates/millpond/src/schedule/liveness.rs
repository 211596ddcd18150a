//! Liveness: the guards that keep a scheduled pool from terminating.
//!
//! A pool has terminated when it is shut down and nothing of it is left. One type decides that, [`Guard`]. It is
//! held by every task inside its closure, by every series, by every run of a series, and by a caller inside
//! [`execute`](super::ScheduledPool). However a closure goes (run, panicked, cancelled, rejected, dropped by an
//! executor, handed back by a stop and thrown away), its guard goes with it, so no path can forget to count.
//!
//! # Protocol
//!
//! ```text
//!   step            lock    counts                      when
//!   issue           state   issued + 1                  schedule, series, a due run, execute
//!   drop, not run   state   issued - 1, the entry       cancel, a rejected or dropped task, the end of a series
//!                           leaves the queue
//!   begin           runs    active + 1, the lateness    the first step of a body
//!   body ends       runs    completed + 1               the last step of a body (BOOKS-2)
//!   drop, run       runs    active - 1, ended + 1       the outcome of the task is delivered
//!
//!   take in hand    runs    active + 1                  dispatch and the dispatcher's thread, from when they take
//!   put down        runs    active - 1                  a task out of a queue until an executor has it
//!
//!   terminated:     issued = ended,  or  stopped and active = 0
//! ```
//!
//! The pool itself counts as one issued guard until it is shut down, so `issued > ended` as long as it is open.
//!
//! A stop hands tasks back to its caller, with their guards inside, and the caller may keep them for ever. So
//! after a stop only bodies that run and tasks in hand are waited for.
//!
//! # Why two locks
//!
//! One guard, but two locks, each of which is taken at this moment for another reason: the pool's state, to
//! put an entry into the queue of pending tasks or to take it out; and the runs, to record the lateness. So
//! a task that is scheduled and cancelled costs one lock for each of the two, and nothing is counted
//! atomically. With all counts under the state's lock every run would take that lock twice more, and compete for it
//! with all threads that schedule. With a counter of its own, or an `Arc`, each task would pay two more locked
//! instructions on a cache line that all threads share.
//!
//! # Invariants
//!
//! - **LIVENESS-1** A guard is issued under the state's lock, while the pool is open or another guard is held. So
//!   the count never rises again from `issued = ended`.
//! - **LIVENESS-2** A guard is given up exactly once, on one side: under the state's lock if its body never began,
//!   under the runs' lock if it did. A guard of a task whose executor is not the pool's own is given up
//!   when the outcome is delivered: the handle has it, waiters are woken, an unwanted value is dropped. The pool's own
//!   executor terminates with the pool, and has delivered all outcomes by then. A series tells its handle inside
//!   its last run.
//! - **LIVENESS-3** Where both locks are held the state's is taken first.
//! - **LIVENESS-4** The thread that gives up a guard checks afterwards whether any is left, under both locks, unless
//!   the pool is open. On the runs' side `is_closing` says so; it is set by the shutdown before the pool's own guard
//!   goes. So the last one to leave sees it. Two may see it.
//! - **LIVENESS-5** Tasks are taken in hand under the lock of the queue that they are taken from. So a stop finds a
//!   task in a queue, or waits for the one that has it. (Of an executor that is not the pool's own, a task that is
//!   claimed and has not made its first step is not seen.)
//! - **LIVENESS-6** A guard holds the engine. Some of these references are kept in the state while the pool is
//!   open, so that in the steady state nobody counts them up or down. The shutdown takes them out.

use super::engine::ScheduleEngine;
use super::pending::Entry;
use super::state::PoolState;
use crate::executor::{self, Inside};
use crate::meter::Distribution;
use crate::task::{CancelReason, Delivered, Task, when_delivered};
use crate::time::{Deadline, Key, Owner, Work, is_timer_thread, run_off_timer};
use millpond_raw::sync::Mutex;
use std::sync::Arc;
use std::time::Duration;

/// LIVENESS-6: at most so many references are kept, 8 KiB.
const MAX_SPARE: usize = 1024;

/// Keeps a pool from terminating, until it is dropped.
///
/// In the closure of a task it stands behind what is the user's, so it is dropped last.
pub(super) struct Guard {
    /// `None` when the body has begun.
    engine: Option<Arc<ScheduleEngine>>,
    /// The entry of a task that runs once; [`Key::NONE`] for all others.
    key: Key,
}

/// The state's side of the counts.
pub(super) struct Guards {
    is_open: bool,
    /// Guards that were issued and not given up on this side; the pool's own is one of them.
    issued: u64,
    /// LIVENESS-6.
    spare: Vec<Arc<ScheduleEngine>>,
}

/// What a shutdown has to drop when it is done, without a lock.
pub(super) struct Closed {
    _pool: Option<Guard>,
    _spare: Vec<Arc<ScheduleEngine>>,
}

impl Guards {
    pub(super) fn new() -> Self {
        Guards {
            is_open: true,
            issued: 1,
            spare: Vec::new(),
        }
    }

    /// Whether the pool has not been shut down.
    #[inline]
    pub(super) fn is_open(&self) -> bool {
        self.is_open
    }

    /// A guard for the task with this key (LIVENESS-1).
    #[inline]
    pub(super) fn issue_for(&mut self, engine: &Arc<ScheduleEngine>, key: Key) -> Guard {
        self.issued += 1;
        let engine = self.spare.pop().unwrap_or_else(|| Arc::clone(engine));
        let engine = Some(engine);
        Guard { engine, key }
    }

    /// A guard for anything else.
    pub(super) fn issue(&mut self, engine: &Arc<ScheduleEngine>) -> Guard {
        self.issue_for(engine, Key::NONE)
    }

    /// The shutdown. The pool's own guard goes with what this returns.
    pub(super) fn close(&mut self, engine: &Arc<ScheduleEngine>) -> Closed {
        let was_open = std::mem::replace(&mut self.is_open, false);
        // LIVENESS-4
        engine.runs.counts.lock().is_closing = true;
        Closed {
            _pool: was_open.then(|| Guard {
                engine: Some(Arc::clone(engine)),
                key: Key::NONE,
            }),
            _spare: std::mem::take(&mut self.spare),
        }
    }

    #[cfg(all(test, not(any(millpond_loom, millpond_shuttle))))]
    pub(super) fn spare_len(&self) -> usize {
        self.spare.len()
    }

    /// Keeps a reference for the next guard, or returns it.
    #[inline]
    fn keep(&mut self, engine: Arc<ScheduleEngine>) -> Option<Arc<ScheduleEngine>> {
        if self.spare.len() == MAX_SPARE {
            return Some(engine);
        }
        self.spare.push(engine);
        None
    }
}

impl Guard {
    /// The body begins that was due at `due`, in nanoseconds. Returns how late it is, in nanoseconds, and what is to
    /// be dropped when the body has ended.
    pub(super) fn begin(mut self, due: u64) -> (u64, Running) {
        let engine = self.engine.take();
        let engine = engine.expect("it is only taken here and in the drop");
        let late = engine.runs.begin(&engine, due);
        Inside::of(&*engine).keep();
        let running = Running {
            engine: Some(engine),
            is_until_delivered: false,
            end: BodyEnd::Failed,
        };
        (late, running)
    }
}

/// The body will not run: a task that is still in the queue leaves it, in the same step.
impl Drop for Guard {
    fn drop(&mut self) {
        let Some(engine) = self.engine.take() else {
            return;
        };
        if engine.is_forked() {
            return;
        }
        if self.key != Key::NONE && engine.tracks_handed_over() {
            executor::discount_witness();
        }
        let mut state = engine.slot.lock();
        let tombstone = state.remove_cancelled(self.key);
        // BOOKS-3: a key is that of a task that runs once.
        state.cancelled += u64::from(self.key != Key::NONE);
        state.guards.issued -= 1;
        if state.guards.is_open {
            let unkept = state.guards.keep(engine);
            drop(state);
            // SCHEDULE-3: not under the lock, for they may be the last of something.
            drop((tombstone, unkept));
            return;
        }
        drop(state);
        drop(tombstone);
        if engine.has_no_guards() {
            engine.terminate();
        }
    }
}

impl PoolState {
    /// Takes out a task whose closure is gone. If it is still pending, its handle has cancelled it.
    #[inline]
    fn remove_cancelled(&mut self, key: Key) -> Option<Entry> {
        self.pending.remove(key)
    }
}

/// The runs of a pool: the other side of the counts, and how late runs began.
pub(super) struct Runs {
    counts: Mutex<RunCounts>,
}

struct RunCounts {
    lateness: Distribution,
    /// Bodies that have begun and not ended, and threads that have tasks in hand.
    active: usize,
    /// Guards that were given up on this side.
    ended: u64,
    /// Bodies that have ended, and those of them that failed (BOOKS-2).
    completed: u64,
    failed: u64,
    is_closing: bool,
    is_stopped: bool,
    /// Whether a stop waits for the dispatcher's task, and is to be woken by bodies that begin.
    is_awaited: bool,
}

impl RunCounts {
    fn totals(&self) -> RunTotals {
        RunTotals {
            lateness: self.lateness.clone(),
            completed: self.completed,
            failed: self.failed,
        }
    }
}

/// How late bodies began, one value for each, and how many have ended.
pub(super) struct RunTotals {
    pub(super) lateness: Distribution,
    pub(super) completed: u64,
    pub(super) failed: u64,
}

/// How a body ended, for the counts (BOOKS-2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum BodyEnd {
    /// By a panic, unless it says otherwise.
    Failed,
    Succeeded,
    /// It has been counted.
    Recorded,
}

impl RunCounts {
    fn record(&mut self, end: BodyEnd) {
        self.completed += u64::from(end != BodyEnd::Recorded);
        self.failed += u64::from(end == BodyEnd::Failed);
    }
}

impl Runs {
    pub(super) fn new() -> Self {
        Runs {
            counts: Mutex::new(RunCounts {
                lateness: Distribution::new(),
                active: 0,
                ended: 0,
                completed: 0,
                failed: 0,
                is_closing: false,
                is_stopped: false,
                is_awaited: false,
            }),
        }
    }

    /// What has been counted at one moment.
    pub(super) fn totals(&self) -> RunTotals {
        self.counts.lock().totals()
    }

    /// The same for a forked process, where the lock may be held by no thread.
    pub(super) fn totals_if_free(&self) -> Option<RunTotals> {
        self.counts.try_lock().map(|counts| counts.totals())
    }

    /// From now on bodies that begin wake the stop that waits for the dispatcher.
    pub(super) fn announce_begins(&self) {
        self.counts.lock().is_awaited = true;
    }

    fn begin(&self, engine: &ScheduleEngine, due: u64) -> u64 {
        let now = engine.nanos(Deadline::at(engine.clock.now()));
        let late = now.saturating_sub(due);
        let mut counts = self.counts.lock();
        counts.lateness.add(Duration::from_nanos(late));
        counts.active += 1;
        let is_awaited = counts.is_awaited;
        drop(counts);
        if is_awaited {
            engine.dispatch_queue.wake_stop();
        }
        late
    }
}

/// The guard of a body that runs, to be dropped with the body.
pub(super) struct Running {
    engine: Option<Arc<ScheduleEngine>>,
    is_until_delivered: bool,
    end: BodyEnd,
}

impl Running {
    /// LIVENESS-2: keeps the guard until the outcome is delivered, if the executor is not the pool's own.
    pub(super) fn until_delivered(mut self) -> Self {
        self.is_until_delivered = self.engine().owned.is_none();
        self
    }

    pub(super) fn engine(&self) -> &ScheduleEngine {
        self.engine.as_ref().expect("it is only taken in the drop")
    }

    /// The body has ended without a panic; it is counted when this is dropped.
    pub(super) fn succeed(&mut self) {
        self.end = BodyEnd::Succeeded;
    }

    /// The body has ended: counts it now, before others learn of it.
    pub(super) fn record_end(&mut self, has_failed: bool) {
        self.end = if has_failed {
            BodyEnd::Failed
        } else {
            BodyEnd::Succeeded
        };
        self.record();
    }

    fn record(&mut self) {
        let end = std::mem::replace(&mut self.end, BodyEnd::Recorded);
        if end != BodyEnd::Recorded && !self.engine().is_forked() {
            self.engine().runs.counts.lock().record(end);
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if self.is_until_delivered {
            self.record();
        }
        let Some(engine) = self.engine.take() else {
            return;
        };
        if self.is_until_delivered {
            when_delivered(engine);
        } else {
            engine.end_run(self.end);
        }
    }
}

impl Delivered for ScheduleEngine {
    fn delivered(self: Arc<Self>) {
        self.end_run(BodyEnd::Recorded);
    }
}

/// Having tasks in hand, until it is dropped.
pub(super) struct InHand<'a>(&'a ScheduleEngine);

impl<'a> InHand<'a> {
    /// Goes on until what is [attached](InHand::attach) again is dropped, perhaps by another thread.
    pub(super) fn detach(self) {
        std::mem::forget(self);
    }

    /// Takes over from one that was [detached](InHand::detach).
    pub(super) fn attach(engine: &'a ScheduleEngine) -> Self {
        InHand(engine)
    }
}

impl Drop for InHand<'_> {
    fn drop(&mut self) {
        self.0.end_activity(None);
    }
}

impl ScheduleEngine {
    /// The caller takes tasks in hand; it holds the lock of the queue that they come from (LIVENESS-5).
    pub(super) fn take_in_hand(&self) -> InHand<'_> {
        self.runs.counts.lock().active += 1;
        InHand(self)
    }

    /// A body has ended, and its outcome is delivered as far as the pool waits for that.
    fn end_run(&self, end: BodyEnd) {
        self.end_activity(Some(end));
        // Not before: what that drops is part of the task, too.
        Inside::leave(self);
    }

    /// A body has ended, whose guard goes with it, or a thread has no more tasks in hand.
    fn end_activity(&self, body: Option<BodyEnd>) {
        if self.is_forked() {
            return;
        }
        let (is_last_of_stop, is_closing) = {
            let mut counts = self.runs.counts.lock();
            counts.active -= 1;
            if let Some(end) = body {
                counts.ended += 1;
                counts.record(end);
            }
            (counts.active == 0 && counts.is_stopped, counts.is_closing)
        };
        if is_last_of_stop || (body.is_some() && is_closing && self.has_no_guards()) {
            self.terminate();
        }
    }

    /// A run of a series, which was planned, will not begin (BOOKS-3).
    pub(super) fn record_unrun(&self) {
        if let Some(mut state) = self.live_state() {
            state.cancelled += 1;
        }
    }

    /// Whether no guard is left (LIVENESS-4).
    fn has_no_guards(&self) -> bool {
        let state = self.state();
        self.runs.counts.lock().ended == state.guards.issued
    }

    /// The pool has been stopped, and its tasks are handed back: from now on only activity keeps it alive.
    pub(super) fn stop_waiting_for_guards(&self) {
        let is_inactive = {
            let mut counts = self.runs.counts.lock();
            counts.is_stopped = true;
            counts.active == 0
        };
        if is_inactive {
            self.terminate();
        }
    }

    /// Cancels a task that came too late for a stop. The timer's thread leaves that to another thread
    /// (SCHEDULE-3), which has the task in hand.
    pub(super) fn cancel_late(self: &Arc<Self>, task: Task) {
        if !is_timer_thread() {
            task.cancel(CancelReason::ShutDown);
            return;
        }
        let engine = Arc::clone(self);
        self.take_in_hand().detach();
        run_off_timer(Owner::of(&**self, Work::Drop), move || {
            let _in_hand = InHand::attach(&engine);
            task.cancel(CancelReason::ShutDown);
        });
    }
}
