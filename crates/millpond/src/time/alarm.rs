//! Waking a future at a time.
//!
//! A thread that waits for a time sleeps until then; a future has to be woken. [`Clock::alarm`] sees
//! to that:
//!
//! | clock | who rings |
//! |---|---|
//! | the system's | a thread of the process, `millpond-alarm-1` |
//! | one with a ringer of its own ([`Clock::with_ringer`]) | a thread that its factory starts |
//! | a manual one | whoever moves its hand |
//!
//! `ringer.rs` says how the thread comes and goes, and what happens if it cannot be had.
//!
//! Models have no clock but the manual one (see `millpond_raw::sync::Futex`). There an alarm of the
//! system's clock rings at once.

use super::ringer::{self, Ringer, Spot};
use super::{Clock, Deadline};
use millpond_raw::quiet;
use millpond_raw::waits::{Ticket, Waits};
use std::fmt;
use std::sync::Arc;
use std::task::Waker;

/// An alarm that is set; dropping it takes it back.
pub(crate) struct Alarm(Set);

enum Set {
    /// Rung already, or for never.
    Nowhere,
    Hand(Clock, Ticket),
    Ringer(Arc<Ringer>, Spot),
}

impl Clock {
    /// Sees to it that `waker` is called at `deadline`, or soon after; perhaps for no reason earlier.
    pub(crate) fn alarm(&self, deadline: Deadline, waker: &Waker) -> Alarm {
        let Some(instant) = deadline.instant() else {
            return Alarm(Set::Nowhere);
        };
        let own = self.ringer().cloned();
        let hand = self.manual_parts().filter(|_| own.is_none());
        if let Some((now, sleepers)) = hand {
            if let Some(ticket) = sleepers.enlist(waker, || now() < instant) {
                return Alarm(Set::Hand(self.clone(), ticket));
            }
        } else if let Some(ringer) = own.or_else(ringer::of_process) {
            let spot = ringer.set(self, instant, waker.clone());
            return Alarm(Set::Ringer(ringer, spot));
        }
        quiet::wake(waker.clone());
        Alarm(Set::Nowhere)
    }
}

impl Drop for Alarm {
    fn drop(&mut self) {
        match &self.0 {
            Set::Nowhere => {}
            Set::Hand(clock, ticket) => {
                if let Some((_, sleepers)) = clock.manual_parts() {
                    Waits::leave(sleepers, *ticket);
                }
            }
            Set::Ringer(ringer, spot) => ringer.take_back(*spot),
        }
    }
}

impl fmt::Debug for Alarm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.0 {
            Set::Nowhere => "Alarm(rung)",
            Set::Hand(..) | Set::Ringer(..) => "Alarm(set)",
        })
    }
}
