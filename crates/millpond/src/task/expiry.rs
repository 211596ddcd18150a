//! The deadline of a task, seen to by those who wait for it.
//!
//! Executors drop a task whose deadline has passed when its turn comes. That may be long after: the queue
//! stands, or nobody runs it at all. Who waits for it need not wait for that. A join looks again when the
//! deadline comes, and a future sets an alarm; whoever is there first and finds that nobody has started
//! the task cancels it as expired, as its executor would have. Its place in the queue is given back.
//!
//! A task that nobody waits for costs no alarm: it makes no difference to anybody when it is dropped.
//!
//! Who waits for one of many, and has no eye on any of them, lets an alarm see to each ([`Expiry`]).

use super::CancelReason;
use super::in_place::Claimable;
use super::meta::Meta;
use crate::time::{Alarm, Deadline};
use millpond_raw::sync::Mutex;
use millpond_raw::task as raw;
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::sync::Arc;
use std::task::{Wake, Waker};

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

/// Sees to it that a task is cancelled at its deadline if nobody has started it, until it is dropped.
///
/// # Rules
///
/// - **E1** Nothing is done under the lock: to cancel drops a closure and calls wakers, which may drop this,
///   and an alarm may ring while it is being set.
/// - **E2** Alarms may ring early; a manual clock rings them whenever its hand is moved. So whoever is rung
///   looks, and sets another. Who is rung while somebody is at that leaves word, and is not waited for; the
///   other one looks again.
/// - **E3** If there is no thread that rings, an alarm rings at once, again and again. After a few times it is
///   left to the executor, who drops the task when its turn comes.
pub(crate) struct Expiry(Arc<Watch>);

struct Watch {
    task: raw::Witness<Meta>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    alarm: Option<Alarm>,
    /// Somebody looks, and sets an alarm.
    is_looked_at: bool,
    /// It has rung meanwhile.
    has_rung: bool,
    is_over: bool,
}

/// E3.
const TRIES: u32 = 8;

impl Expiry {
    pub(super) fn of<T>(task: &raw::Handle<T, Meta>) -> Self {
        Expiry(Arc::new(Watch {
            task: task.witness(),
            state: Mutex::new(State::default()),
        }))
    }

    /// What begins the watch, for who has to let go of it first.
    pub(crate) fn start(&self) -> impl FnOnce() + use<> {
        let watch = Arc::clone(&self.0);
        move || watch.look()
    }
}

impl Drop for Expiry {
    fn drop(&mut self) {
        let mut state = self.0.state.lock();
        state.is_over = true;
        let alarm = state.alarm.take();
        drop(state);
        drop(alarm); // E1
    }
}

impl Watch {
    fn look(self: &Arc<Self>) {
        {
            let mut state = self.state.lock();
            state.has_rung = true;
            if state.is_over || std::mem::replace(&mut state.is_looked_at, true) {
                return;
            }
        }
        for _ in 0..TRIES {
            self.state.lock().has_rung = false;
            let again = look(&self.task);
            let clock = self.task.meta().clock();
            let alarm = clock.alarm(again, &Waker::from(Arc::clone(self)));
            let mut state = self.state.lock();
            let is_done = state.is_over || again == Deadline::NEVER || !state.has_rung;
            let unneeded = match state.is_over {
                true => Some(alarm),
                false => state.alarm.replace(alarm),
            };
            state.is_looked_at = !is_done;
            drop(state);
            drop(unneeded); // E1
            if is_done {
                return;
            }
        }
        self.state.lock().is_looked_at = false;
    }
}

impl Wake for Watch {
    fn wake(self: Arc<Self>) {
        self.look();
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
            let alarm = task.meta().clock().alarm(again, waker);
            self.0 = Some(Box::new(alarm));
        }
        drop(former);
    }
}
