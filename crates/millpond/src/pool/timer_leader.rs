//! The timer leader: an idle worker that waits for a task and, at the same time, for a time.
//!
//! A [`TimerSource`] is given to the pool by a scheduler, which has tasks that are due later and owns the pool. One idle worker at
//! a time leads it. It is idle like any other, listed in the queue and woken for tasks; but it parks no longer than the
//! source says, and then dispatches: one task that is due comes into the queue, and the leader takes it (FIFO-9). What else is
//! due is dispatched when the leader resigns, and wakes other workers.
//!
//! - **TIMERLEADER-1** A leader resigns before it runs a task, times out, or acts on a change. So a leader is awake and
//!   searching, or parks until it is called.
//! - **TIMERLEADER-2** A leader that resigns and does not return at once wakes the other idle workers, if no other thread looks
//!   for what is due. One that only acts on a change does return, and wakes nobody: waking is such a change, and two
//!   workers would wake each other again and again.

use super::engine::PoolEngine;
use super::task_queue::TaskQueue;
use crate::executor::{TimerSource, TimerSourceOffer, TimerStatus};
use crate::interrupt::Search;
use crate::task::Task;
use crate::time::Deadline;
use millpond_raw::sync::atomic::{AtomicBool, Ordering};
use millpond_raw::sync::{Mutex, local};
use millpond_raw::time_slice::{self, ShortSlice};
use millpond_raw::timer_slack::{self, MinimalSlack};
use millpond_raw::{catch_panic, park};
use std::cell::{Cell, RefCell};
use std::fmt;
use std::sync::Arc;

local! {
    /// A worker that has once been leader is woken in time from then on, and let in at once if all CPUs are in use.
    static PUNCTUAL: RefCell<Option<(MinimalSlack, ShortSlice)>> = const { RefCell::new(None) };
}

/// The timer source of a pool, if it was given one.
#[derive(Default)]
pub(super) struct TimerSlot {
    is_there: AtomicBool,
    offer: Mutex<Option<TimerSourceOffer>>,
}

impl PoolEngine {
    /// Accepts the timer source, unless the pool has one, or its queue does not count searching workers.
    pub(super) fn accept_timer_source(&self, new: TimerSourceOffer) {
        if !self.queue.has_searching() {
            return;
        }
        let mut offer = self.idle.timer.offer.lock();
        let former = offer.as_ref().and_then(TimerSourceOffer::get);
        if former.is_some() {
            drop(offer);
            // POOL-4: it may be the last reference.
            drop(former);
            return;
        }
        *offer = Some(new);
        self.idle.timer.is_there.store(true, Ordering::Relaxed);
        drop(offer);
        // One of the idle workers may lead it.
        self.wake_idle_workers();
    }

    /// Makes the calling worker the leader, if there is a timer source without one.
    pub(super) fn lead_timer(&self) -> Option<TimerLeader<'_>> {
        if !self.idle.timer.is_there.load(Ordering::Relaxed) {
            return None;
        }
        let source = self.idle.timer.offer.lock().as_ref()?.get()?;
        if !source.try_lead(&park::current().waker()) {
            return None;
        }
        PUNCTUAL.with(|own| {
            own.borrow_mut()
                .get_or_insert_with(|| (timer_slack::minimize(), time_slice::shorten()));
        });
        Some(TimerLeader {
            engine: self,
            source,
            is_returning: Cell::new(false),
        })
    }
}

/// Being the leader, until it is dropped.
pub(super) struct TimerLeader<'a> {
    engine: &'a PoolEngine,
    source: Arc<dyn TimerSource>,
    is_returning: Cell<bool>,
}

impl TimerLeader<'_> {
    /// Searches for a task, and dispatches when it is time. `takes` is called when it is about to poll, and when it has
    /// polled and found nothing. Returns a task, or until when to park; never, if something has changed.
    pub(super) fn seek(
        &self,
        queue: &TaskQueue,
        takes: impl Fn(bool),
        has_changed: impl Fn() -> bool,
    ) -> Result<Task, Deadline> {
        let is_ready = || queue.hint().is_some_and(|hint| hint.is_ready);
        let attempt = || {
            takes(true);
            let got = queue.poll();
            if got.is_none() {
                takes(false);
            }
            got
        };
        loop {
            let status = self.source.check();
            match status {
                TimerStatus::Due => self.dispatch(queue),
                // The queue is looked at once more when the worker parks.
                TimerStatus::Park { until, is_far } if !is_far && !is_ready() => return Err(until),
                TimerStatus::Park { .. } => {}
            }
            let got = queue.as_searching(|| {
                if is_ready() {
                    if let Some(task) = attempt() {
                        return Some(task);
                    }
                }
                if status == TimerStatus::Due || has_changed() {
                    return None;
                }
                Search::begin()?.run(is_ready, attempt, || queue.len())
            });
            match (got, status) {
                (Some(task), _) => return Ok(task),
                (None, TimerStatus::Park { until, .. }) => return Err(until),
                (None, TimerStatus::Due) if has_changed() => return Err(Deadline::NEVER),
                // Another worker has taken it, or it was rejected.
                (None, TimerStatus::Due) => {}
            }
        }
    }

    /// Dispatches a task for the leader itself, which does not count as searching meanwhile: dispatching may start a
    /// thread, or drop a task that was rejected, and that is user code (FIFO-7, FIFO-9).
    fn dispatch(&self, queue: &TaskQueue) {
        queue.push_for_self(|| catch_panic::call(|| Arc::clone(&self.source).dispatch_one()));
    }

    /// It leaves only to act on a change (TIMERLEADER-2).
    pub(super) fn set_returning(&self) {
        self.is_returning.set(true);
    }

    /// Whether it is to look again, although it parks.
    pub(super) fn is_called(&self) -> bool {
        self.source.is_called()
    }
}

impl Drop for TimerLeader<'_> {
    fn drop(&mut self) {
        let source = Arc::clone(&self.source);
        let is_needed = catch_panic::call(|| source.resign()) == Some(true);
        if is_needed && !self.is_returning.get() {
            // TIMERLEADER-2
            self.engine.wake_idle_workers();
        }
    }
}

impl fmt::Debug for TimerSlot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.is_there.fmt(f)
    }
}
