//! The deadline of a task, seen to by those who wait for it.
//!
//! Executors drop a task whose deadline has passed when its turn comes. That may be long after: the queue
//! stands, or nobody runs it at all. Who waits for it need not wait for that. A join looks again when the
//! deadline comes, and a future sets an alarm; whoever is there first and finds that nobody has started
//! the task cancels it as expired, as its executor would have. Its place in the queue is given back.
//!
//! A task that nobody waits for costs no alarm: it makes no difference to anybody when it is dropped.

use super::CancelReason;
use super::in_place::Claimable;
use crate::time::{Alarm, Deadline};
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
            let alarm = task.meta().clock().alarm(again, waker);
            self.0 = Some(Box::new(alarm));
        }
        drop(former);
    }
}
