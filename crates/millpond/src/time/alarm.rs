//! Waking a future at a time.
//!
//! A thread that waits for a time sleeps until then; a future has to be woken. [`Clock::alarm`] sees
//! to that:
//!
//! | clock | who rings |
//! |---|---|
//! | the system's | the timer of the process: a thread, `millpond-timer-1` |
//! | one with a timer of its own ([`Clock::with_timer`]) | a thread that its factory starts |
//! | a manual one | whoever moves its hand |
//!
//! `timer.rs` says how the thread comes and goes, and what happens if it cannot be had.
//!
//! Models have no clock but the manual one (see `millpond_raw::sync::Futex`). There an alarm of the
//! system's clock rings at once.

use super::timer::{self, Timer};
use super::wheel::Key;
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
    Timer(Arc<Timer>, Key),
}

impl Clock {
    /// Sees to it that `waker` is called at `deadline`, or soon after; perhaps for no reason earlier.
    pub(crate) fn alarm(&self, deadline: Deadline, waker: &Waker) -> Alarm {
        let Some(instant) = deadline.instant() else {
            return Alarm(Set::Nowhere);
        };
        let own = self.timer().cloned();
        let hand = self.manual_parts().filter(|_| own.is_none());
        if let Some((now, sleepers)) = hand {
            if let Some(ticket) = sleepers.enlist(waker, || now() < instant) {
                return Alarm(Set::Hand(self.clone(), ticket));
            }
        } else if let Some(timer) = own.or_else(timer::of_process) {
            let key = timer.set(self, deadline, waker.clone());
            return Alarm(key.map_or(Set::Nowhere, |key| Set::Timer(timer, key)));
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
            Set::Timer(timer, key) => timer.take_back(*key),
        }
    }
}

impl fmt::Debug for Alarm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.0 {
            Set::Nowhere => "Alarm(rung)",
            Set::Hand(..) | Set::Timer(..) => "Alarm(set)",
        })
    }
}
