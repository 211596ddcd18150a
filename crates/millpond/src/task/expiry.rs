//! Deadlines of tasks, enforced by the threads that wait for them.
//!
//! An executor cancels a task whose deadline has passed when its turn comes. That may be long after: the queue does not
//! move, or no worker is left. A waiter need not wait for that. A join looks again at the deadline, and a future sets an
//! alarm; if the task is unstarted then, the waiter cancels it as expired, as its executor would have done. Its place in
//! the queue is freed.
//!
//! A task without a waiter costs no alarm. A thread that waits for one of many tasks checks all deadlines ([`Expiry`]).
//!
//! Always the waiter cancels, on its own thread: cancelling drops the user's closure, which must not happen on the
//! timer's thread.

use super::CancelReason;
use super::inline::Claimable;
use super::meta::Meta;
use crate::time::{Alarm, Clock, Deadline};
use millpond_raw::task as raw;
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::task::Waker;

/// Cancels the task if it is unstarted and its deadline has passed. Otherwise returns the time of the next check; never,
/// if none is needed.
pub(super) fn check(task: &impl Claimable) -> Deadline {
    let meta = task.meta();
    let deadline = meta.start_by();
    if deadline == Deadline::NEVER || task.state().is_claimed() {
        return Deadline::NEVER;
    }
    if !deadline.has_passed(meta.clock().now()) {
        return deadline;
    }
    let reason = meta.expiry().unwrap_or(CancelReason::Expired);
    if task.cancel_unstarted(reason) {
        meta.tag.count_tombstone();
    }
    Deadline::NEVER
}

/// The deadline of a task, for a thread that waits for one of many and does not have the handle.
pub(crate) struct Expiry(raw::Witness<Meta>);

impl Expiry {
    pub(super) fn of<T>(task: &raw::Handle<T, Meta>) -> Self {
        Expiry(task.witness())
    }

    /// Cancels the task if it is unstarted and its deadline has passed. Otherwise returns the time of the next check;
    /// never, if none is needed.
    ///
    /// Cancelling drops a closure and calls wakers: not under a lock, and not on the timer's thread.
    pub(crate) fn check(&self) -> Deadline {
        check(&self.0)
    }

    /// The clock of its deadline.
    pub(crate) fn clock(&self) -> Clock {
        self.0.meta().clock()
    }
}

/// Wakes a future at the deadline of its task.
#[derive(Debug, Default)]
pub(super) struct DeadlineAlarm(Option<Box<Alarm>>);

// The alarm is replaced as a whole, so a panic leaves it consistent.
impl UnwindSafe for DeadlineAlarm {}
impl RefUnwindSafe for DeadlineAlarm {}

impl DeadlineAlarm {
    pub(super) const fn new() -> Self {
        DeadlineAlarm(None)
    }

    /// Before a future polls the task: cancels it if it has expired; otherwise sets the alarm to wake `waker`.
    pub(super) fn check(&mut self, task: &impl Claimable, waker: &Waker) {
        let former = self.0.take();
        let again = check(task);
        if again != Deadline::NEVER {
            let alarm = task.meta().clock().alarm_for_future(again, waker);
            self.0 = Some(Box::new(alarm));
        }
        drop(former);
    }
}
