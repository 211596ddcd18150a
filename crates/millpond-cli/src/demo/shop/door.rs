//! The doors: one thread for each department lets customers in at the planned time.
//!
//! A policy that holds callers up (`block`, `caller runs`) holds up the door, and later customers wait
//! outside. They do not stay away for that; a customer that has waited for [`PATIENCE`] gives up.

use std::sync::Arc;
use std::time::Duration;

use millpond::interrupt;

use super::department::Department;
use super::sluice::Sluice;
use super::visits::Source;

/// How far ahead the arrivals are planned: a new load takes effect after that.
const SLICE: Duration = Duration::from_millis(50);
/// The longest that a door sleeps without looking whether it is to be closed.
const NAP: Duration = Duration::from_millis(50);
/// How long a customer waits at a door that is held up.
const PATIENCE: Duration = Duration::from_secs(2);

pub(super) struct Door {
    pub(super) department: Department,
    pub(super) sluice: Arc<Sluice>,
    pub(super) source: Box<dyn Source>,
}

impl Door {
    /// Lets people in until the sluice is closed.
    pub(super) fn attend(mut self) {
        let mut planned = Duration::ZERO;
        loop {
            planned += SLICE;
            let load = f64::from(self.sluice.load()) / 100.0;
            for visit in self.source.plan(planned, load) {
                let Some(late) = self.wait_for(visit.at) else {
                    return;
                };
                if late > PATIENCE {
                    self.department.ledger().note_giving_up();
                } else {
                    self.department.submit(visit.job);
                }
            }
            if self.wait_for(planned).is_none() {
                return;
            }
        }
    }

    /// Waits until that time of the shop. Returns how late it is; nothing, if the sluice is closed.
    fn wait_for(&self, at: Duration) -> Option<Duration> {
        loop {
            let now = self.sluice.time();
            if self.sluice.is_closed() {
                return None;
            }
            if now >= at {
                self.department.ledger().note_lateness(now - at);
                return Some(now - at);
            }
            // Not a task, so it cannot be interrupted.
            interrupt::sleep(NAP.min(at - now)).unwrap_or_default();
        }
    }
}
