//! Who is busy with a task: what a pool waits for that has been stopped.
//!
//! Usually [wards](super::ward) say when a pool is over (K2). That of a task which runs once ends when it has
//! run, so it is counted out here, under the lock that is taken for this anyway. But every closure that
//! was scheduled has a ward, and after a stop some of these are with the caller, who may keep them for as
//! long as it likes. So a pool that was stopped is over as soon as no body runs and nobody has a task in
//! its hands.

use super::core::Core;
use crate::executor;
use crate::meter::Distribution;
use crate::task::{CancelReason, Delivered, Task, when_delivered};
use crate::time::{Deadline, Owner, Work, aside, is_timer_thread};
use millpond_raw::sync::Mutex;
use std::sync::Arc;
use std::time::Duration;

/// The bodies of tasks, from their first step to their last.
pub(super) struct Bodies(Mutex<Inside>);

struct Inside {
    /// How late they began.
    lateness: Distribution,
    /// How many have begun and not ended; who has tasks in its hands counts as one.
    busy: usize,
    is_stopped: bool,
    /// Whether a stop waits for the courier, and wants to know what begins.
    is_awaited: bool,
    /// How many tasks that run once have ended, and with them their wards; and whether the shared one is
    /// gone: see [`super::ward`].
    ended: u64,
    is_unshared: bool,
}

impl Bodies {
    pub(super) fn new() -> Self {
        Bodies(Mutex::new(Inside {
            lateness: Distribution::new(),
            busy: 0,
            is_stopped: false,
            is_awaited: false,
            ended: 0,
            is_unshared: false,
        }))
    }

    /// How late they began.
    pub(super) fn lateness(&self) -> Distribution {
        self.0.lock().lateness.clone()
    }

    /// A stop waits for the courier: from now on those that begin let it look again.
    pub(super) fn tell_who_begins(&self) {
        self.0.lock().is_awaited = true;
    }

    /// The ward that is shared is gone.
    pub(super) fn lose_the_shared_ward(&self) {
        self.0.lock().is_unshared = true;
    }

    /// Whether no ward is left, if so many were counted of tasks that run once.
    pub(super) fn were_all(&self, wards: u64) -> bool {
        let inside = self.0.lock();
        inside.is_unshared && inside.ended == wards
    }
}

/// Being busy, until it is dropped.
pub(super) struct Busy<'a> {
    core: &'a Core,
    /// A body runs on this thread, which must not wait for the end.
    _inside: Option<executor::Inside>,
}

impl Core {
    /// A run begins that was due at `due`, in nanoseconds: how late that is, in nanoseconds, too; and what
    /// is to be dropped when it has ended.
    pub(super) fn begins(&self, due: u64) -> (u64, Busy<'_>) {
        let late = self.counts_in(due);
        let _inside = Some(executor::Inside::of(self));
        let core = self;
        (late, Busy { core, _inside })
    }

    /// The same for a task that runs once. It has given up its ward: this is it from now on.
    pub(super) fn begins_once(self: Arc<Self>, due: u64) -> (u64, BusyOnce) {
        let late = self.counts_in(due);
        executor::Inside::of(&*self).keep();
        (late, BusyOnce(Some(self)))
    }

    fn counts_in(&self, due: u64) -> u64 {
        let now = self.nanos(Deadline::at(self.clock.now()));
        let late = now.saturating_sub(due);
        let mut bodies = self.bodies.0.lock();
        bodies.lateness.add(Duration::from_nanos(late));
        bodies.busy += 1;
        let is_awaited = bodies.is_awaited;
        drop(bodies);
        if is_awaited {
            self.bag.look_again();
        }
        late
    }

    /// Who was busy is not any more; `is_ward` if that was the ward of a task, too (K2).
    fn counts_out(&self, is_ward: bool) {
        if self.is_forked() {
            return;
        }
        let (is_over, may_be_over) = {
            let mut bodies = self.bodies.0.lock();
            bodies.busy -= 1;
            bodies.ended += u64::from(is_ward);
            let is_over = bodies.busy == 0 && bodies.is_stopped;
            (is_over, is_ward && bodies.is_unshared)
        };
        if is_over || (may_be_over && self.has_no_ward()) {
            self.is_over_now();
        }
    }

    /// Somebody takes tasks into its hands. Called under the lock of what they are taken from, so that a
    /// stop finds them there, or finds this.
    pub(super) fn busy(&self) -> Busy<'_> {
        self.bodies.0.lock().busy += 1;
        Busy {
            core: self,
            _inside: None,
        }
    }

    /// Cancels a task that nobody will run any more, because the pool has been stopped. The thread of the timer leaves
    /// that to another (K6), which counts as busy.
    pub(super) fn cancel_late(self: &Arc<Self>, task: Task) {
        if !is_timer_thread() {
            task.cancel(CancelReason::ShutDown);
            return;
        }
        let core = Arc::clone(self);
        std::mem::forget(self.busy());
        aside(Owner::of(&**self, Work::Drop), move || {
            let _busy = Busy {
                core: &core,
                _inside: None,
            };
            task.cancel(CancelReason::ShutDown);
        });
    }

    /// It has been stopped, and what it had is handed back: from now on it waits only for who is busy.
    pub(super) fn stops_waiting(&self) {
        let is_over = {
            let mut bodies = self.bodies.0.lock();
            bodies.is_stopped = true;
            bodies.busy == 0
        };
        if is_over {
            self.is_over_now();
        }
    }
}

impl Drop for Busy<'_> {
    fn drop(&mut self) {
        self.core.counts_out(false);
    }
}

/// Being busy with a task that runs once, and its ward. To be dropped with the body.
///
/// An executor that ends with the pool, and is waited for with it, has delivered by then what became of its tasks.
/// One of others goes on, so there the task is over when that is delivered, and not before (K2).
pub(super) struct BusyOnce(Option<Arc<Core>>);

impl BusyOnce {
    pub(super) fn core(&self) -> &Core {
        self.0.as_ref().expect("it is only taken in the drop")
    }
}

impl Drop for BusyOnce {
    fn drop(&mut self) {
        let Some(core) = self.0.take() else {
            return;
        };
        match core.below {
            Some(_) => core.delivered(),
            None => when_delivered(core),
        }
    }
}

impl Delivered for Core {
    fn delivered(self: Arc<Self>) {
        self.counts_out(true);
        // Not before: what that drops is of the task, too.
        executor::Inside::leave(&*self);
    }
}
