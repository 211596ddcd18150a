//! The deadline of a task, seen to by those who wait for it.
//!
//! Executors drop a task whose deadline has passed when its turn comes. That may be long after: the queue
//! stands, or nobody runs it at all. Who waits for it need not wait for that. A join looks again when the
//! deadline comes, and a future sets an alarm; whoever is there first and finds that nobody has started
//! the task cancels it as expired, as its executor would have. Its place in the queue is given back.
//!
//! A task that nobody waits for costs no alarm: it makes no difference to anybody when it is dropped.
//!
//! Who waits for one of many has an eye on the deadlines of all of them ([`Expiry`]).
//!
//! Whatever is waited for, it is whoever waits that cancels, in its own thread: to cancel drops the user's
//! closure, which is not for the thread of the timer.

use super::CancelReason;
use super::in_place::Claimable;
use super::meta::Meta;
use crate::time::{Alarm, Clock, Deadline};
use millpond_raw::task as raw;
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::task::Waker;

/// Cancels the task if its deadline has passed and nobody has started it. Otherwise returns when that
/// will be; never, if it cannot be any more.
pub(super) fn look(task: &impl Claimable) -> Deadline {
    let meta = task.meta();
    let deadline = meta.deadline();
    if deadline == Deadline::NEVER || task.state().is_claimed() {
        return Deadline::NEVER;
    }
    if !deadline.has_passed(meta.clock().now()) {
        return deadline;
    }
    if task.give_up(CancelReason::Expired) {
        meta.home.count_gone();
    }
    Deadline::NEVER
}

/// The deadline of a task, for who waits for one of many and has not the handle in hand.
pub(crate) struct Expiry(raw::Witness<Meta>);

impl Expiry {
    pub(super) fn of<T>(task: &raw::Handle<T, Meta>) -> Self {
        Expiry(task.witness())
    }

    /// Cancels the task if its deadline has passed and nobody has started it. Otherwise returns when to look
    /// again; never, if there is no need to.
    ///
    /// To cancel drops a closure and calls wakers: not under a lock, and not on the thread of the timer.
    pub(crate) fn look(&self) -> Deadline {
        look(&self.0)
    }

    /// By which its deadline is.
    pub(crate) fn clock(&self) -> Clock {
        self.0.meta().clock()
    }
}

/// What wakes a future when the deadline of its task comes.
#[derive(Debug, Default)]
pub(super) struct Bell(Option<Box<Alarm>>);

// It is set and taken back whole, whatever panics meanwhile.
impl UnwindSafe for Bell {}
impl RefUnwindSafe for Bell {}

impl Bell {
    pub(super) const fn new() -> Self {
        Bell(None)
    }

    /// Before a future looks at the task: cancels it if it is too late, and lets `waker` be woken when it will
    /// be.
    pub(super) fn look(&mut self, task: &impl Claimable, waker: &Waker) {
        let former = self.0.take();
        let again = look(task);
        if again != Deadline::NEVER {
            let alarm = task.meta().clock().alarm_for_future(again, waker);
            self.0 = Some(Box::new(alarm));
        }
        drop(former);
    }
}
