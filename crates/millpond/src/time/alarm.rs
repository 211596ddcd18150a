//! Waking a future at a time.
//!
//! A thread that waits for a time sleeps until then; a future has to be woken. [`Clock::alarm`] sees
//! to that. On a manual clock the waker joins those who wait for the hand to move. On the system's
//! clock one thread of the process, the ringer, sleeps until the next alarm; it is started with the
//! first alarm and ends when it has had none for a while.
//!
//! # Rules
//!
//! - **R1** The alarms and whether there is a ringer are under one lock. An alarm that finds no ringer
//!   starts one; a ringer that finds no alarm and ends says so in the same step.
//! - **R2** An alarm that becomes the next one wakes the ringer, which looks again.
//! - **R3** Wakers are called and dropped outside the lock.
//! - **R4** If no thread can be had the alarm rings at once: the future looks, finds that it is early,
//!   and sets the next one. That is busy, but nobody is forgotten.
//!
//! Models have no clock (see `millpond_raw::sync::Futex`); there an alarm rings at once.

use super::{Clock, Deadline};
use millpond_raw::quiet;
use millpond_raw::waits::{Ticket, Waits};
use std::fmt;
use std::task::Waker;
use std::time::Instant;

/// An alarm that is set; dropping it takes it back.
pub(crate) struct Alarm(Set);

enum Set {
    /// Rung already, or for never.
    Nowhere,
    Manual(Clock, Ticket),
    System(Instant, u64),
}

impl Clock {
    /// Sees to it that `waker` is called at `deadline`, or soon after; perhaps for no reason earlier.
    pub(crate) fn alarm(&self, deadline: Deadline, waker: &Waker) -> Alarm {
        let Some(instant) = deadline.instant() else {
            return Alarm(Set::Nowhere);
        };
        if let Some((now, sleepers)) = self.manual_parts() {
            if let Some(ticket) = sleepers.enlist(waker, || now() < instant) {
                return Alarm(Set::Manual(self.clone(), ticket));
            }
        } else if let Some(number) = ringer::set(instant, waker.clone()) {
            return Alarm(Set::System(instant, number));
        }
        quiet::wake(waker.clone());
        Alarm(Set::Nowhere)
    }
}

impl Drop for Alarm {
    fn drop(&mut self) {
        match &self.0 {
            Set::Nowhere => {}
            Set::Manual(clock, ticket) => {
                if let Some((_, sleepers)) = clock.manual_parts() {
                    Waits::leave(sleepers, *ticket);
                }
            }
            Set::System(instant, number) => ringer::take_back(*instant, *number),
        }
    }
}

impl fmt::Debug for Alarm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.0 {
            Set::Nowhere => "Alarm(rung)",
            Set::Manual(..) | Set::System(..) => "Alarm(set)",
        })
    }
}

#[cfg(any(millpond_loom, millpond_shuttle))]
mod ringer {
    use super::{Instant, Waker};

    pub(super) fn set(_: Instant, _: Waker) -> Option<u64> {
        None
    }

    pub(super) fn take_back(_: Instant, _: u64) {}
}

#[cfg(not(any(millpond_loom, millpond_shuttle)))]
mod ringer {
    //! The thread that rings on the system's clock.

    use super::{Clock, Instant, Waker, quiet};
    use crate::thread::{ThreadFactory, Threads};
    use crate::time::Deadline;
    use millpond_raw::park::{self, Site, Woken};
    use millpond_raw::sync::Mutex;
    use std::collections::BTreeMap;
    use std::time::Duration;

    /// How long the ringer stays without an alarm.
    const PATIENCE: Duration = Duration::from_secs(1);

    struct Alarms {
        next_number: u64,
        set: BTreeMap<(Instant, u64), Waker>,
        /// R1: whether there is a ringer, or one is being started.
        has_ringer: bool,
        /// R2: what wakes it, once it runs.
        ringer: Option<Waker>,
    }

    static ALARMS: Mutex<Alarms> = Mutex::new(Alarms {
        next_number: 0,
        set: BTreeMap::new(),
        has_ringer: false,
        ringer: None,
    });

    /// Sets an alarm; `None` if there is nobody to ring it.
    pub(super) fn set(instant: Instant, waker: Waker) -> Option<u64> {
        let mut alarms = ALARMS.lock();
        let number = alarms.next_number;
        alarms.next_number += 1;
        alarms.set.insert((instant, number), waker);
        let is_next = alarms.set.keys().next() == Some(&(instant, number));
        let starts = !std::mem::replace(&mut alarms.has_ringer, true);
        let ringer = alarms.ringer.clone().filter(|_| is_next);
        drop(alarms);
        if let Some(ringer) = ringer {
            ringer.wake();
        }
        if starts
            && Threads::named("millpond-alarm")
                .start(Box::new(ring))
                .is_err()
        {
            // R4: others may have counted on this one meanwhile.
            let mut alarms = ALARMS.lock();
            alarms.has_ringer = false;
            let orphans = std::mem::take(&mut alarms.set);
            drop(alarms);
            orphans.into_values().for_each(quiet::wake);
            return None;
        }
        Some(number)
    }

    pub(super) fn take_back(instant: Instant, number: u64) {
        let waker = ALARMS.lock().set.remove(&(instant, number));
        quiet::drop(waker);
    }

    fn ring() {
        let clock = Clock::system();
        let here = park::current();
        ALARMS.lock().ringer = Some(here.waker());
        let mut idle = Woken::Maybe;
        loop {
            let now = clock.now();
            let mut alarms = ALARMS.lock();
            let later = alarms.set.split_off(&(now, u64::MAX));
            let due = std::mem::replace(&mut alarms.set, later);
            let next = alarms.set.keys().next().map(|(instant, _)| *instant);
            if due.is_empty() && next.is_none() && idle == Woken::TimedOut {
                alarms.has_ringer = false;
                let own = alarms.ringer.take();
                drop(alarms);
                drop(own);
                return;
            }
            drop(alarms);
            due.into_values().for_each(quiet::wake);
            let deadline = next.map_or_else(|| clock.deadline(PATIENCE), Deadline::at);
            idle = clock.park_until(&here, Site::new("alarm.ring"), deadline);
        }
    }
}
