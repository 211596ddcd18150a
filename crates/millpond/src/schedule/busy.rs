//! Who is busy with a task: what a pool waits for that has been stopped.
//!
//! Usually wards say when a pool is over (K2). But every closure that was scheduled has one, and after a
//! stop some of these are with the caller, who may keep them for as long as it likes. So a pool that was
//! stopped is over as soon as no body runs and nobody has a task in its hands.

use super::core::Core;
use crate::meter::Distribution;
use crate::time::Deadline;
use millpond_raw::sync::Mutex;
use std::time::Duration;

/// The bodies of tasks, from their first step to their last.
pub(super) struct Bodies(Mutex<Inside>);

struct Inside {
    /// How late they began.
    lateness: Distribution,
    /// How many have begun and not ended; who has tasks in its hands counts as one.
    busy: usize,
    is_stopped: bool,
}

impl Bodies {
    pub(super) fn new() -> Self {
        Bodies(Mutex::new(Inside {
            lateness: Distribution::new(),
            busy: 0,
            is_stopped: false,
        }))
    }

    /// How late they began.
    pub(super) fn lateness(&self) -> Distribution {
        self.0.lock().lateness.clone()
    }
}

/// Being busy, until it is dropped.
pub(super) struct Busy<'a>(&'a Core);

impl Core {
    /// A run begins that was due at `due`, in nanoseconds: how late that is, in nanoseconds, too; and what
    /// is to be dropped when it has ended.
    pub(super) fn begins(&self, due: u64) -> (u64, Busy<'_>) {
        let now = self.nanos(Deadline::at(self.clock.now()));
        let late = now.saturating_sub(due);
        let mut bodies = self.bodies.0.lock();
        bodies.lateness.add(Duration::from_nanos(late));
        bodies.busy += 1;
        drop(bodies);
        (late, Busy(self))
    }

    /// Somebody takes tasks into its hands. Called under the lock of what they are taken from, so that a
    /// stop finds them there, or finds this.
    pub(super) fn busy(&self) -> Busy<'_> {
        self.bodies.0.lock().busy += 1;
        Busy(self)
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
        if self.0.is_forked() {
            return;
        }
        let is_over = {
            let mut bodies = self.0.bodies.0.lock();
            bodies.busy -= 1;
            bodies.busy == 0 && bodies.is_stopped
        };
        if is_over {
            self.0.is_over_now();
        }
    }
}
