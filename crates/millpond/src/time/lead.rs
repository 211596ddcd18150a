//! Getting up a little before a time.
//!
//! A thread that sleeps until a time wakes some microseconds late, even if the system is asked to wake it in
//! time (`millpond_raw::slack`): that is what it takes to wake up. So it learns how many they are, of late,
//! and goes to sleep until so much before the time; what is left then it waits awake. For what is nearer than
//! [`NEAR`] it does not go to sleep at all: such a nap would end late for certain.
//!
//! By a clock that is moved by hand nobody is late, and nobody waits awake.

use super::{Clock, Deadline};
use std::time::{Duration, Instant};

/// How near a time is that is waited for awake. Less than a nap costs: where this was measured
/// (`measure.rs`, on a virtual machine), one took 14 microseconds of a CPU, and ended as late.
const NEAR: Duration = Duration::from_micros(10);

/// How much earlier than the time it gets up, at most. It is what it takes to wake up, of late; so there is
/// little left to wait awake, mostly. Where this was measured it took 15 microseconds on a busy machine, and
/// 65 on an idle one.
const MOST_LEAD: Duration = Duration::from_micros(100);

/// The same for a time that is nearer than it takes to wake up: the nap will end late, but the thread is
/// not awake all the time where times come thick and fast.
const MOST_LEAD_OF_NAP: Duration = Duration::from_micros(20);

/// How late a thread wakes up, of late.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Lead(Duration);

/// How to pass the time until something is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rest {
    /// It is too near for a sleep.
    Awake,
    Asleep(Deadline),
}

impl Lead {
    /// How to rest until `due`, which has not come.
    pub(crate) fn rest(self, clock: &Clock, due: Deadline, now: Instant) -> Rest {
        if clock.is_manual() {
            return Rest::Asleep(due);
        }
        let up = self.before(due, now);
        match up <= Deadline::after(now, NEAR) {
            true => Rest::Awake,
            false => Rest::Asleep(up),
        }
    }

    /// When to get up for it.
    fn before(self, due: Deadline, now: Instant) -> Deadline {
        let is_nap = due <= Deadline::after(now, self.0 + NEAR);
        let lead = match is_nap {
            true => self.0.min(MOST_LEAD_OF_NAP),
            false => self.0,
        };
        let early = due.instant().and_then(|due| due.checked_sub(lead));
        early.map_or(due, Deadline::at)
    }

    /// It was to sleep until `until`, and it is `now`. What was far too late was somebody else's fault: it
    /// counts as much as the most.
    pub(crate) fn learn(&mut self, clock: &Clock, until: Deadline, now: Instant) {
        let (false, Some(until)) = (clock.is_manual(), until.instant()) else {
            return;
        };
        let late = now.saturating_duration_since(until).min(MOST_LEAD);
        self.0 = (self.0 * 7 + late) / 8;
    }
}

#[cfg(all(test, not(any(millpond_loom, millpond_shuttle))))]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn a_thread_learns_how_late_it_wakes_up_and_gets_up_so_much_earlier() {
        let clock = Clock::system();
        let now = clock.now();
        let due = Deadline::after(now, SECOND);
        let mut lead = Lead::default();
        assert_eq!(lead.rest(&clock, due, now), Rest::Asleep(due));
        let late = Duration::from_micros(8);
        for _ in 0..100 {
            lead.learn(&clock, Deadline::at(now), now + late);
        }
        assert!(late - lead.0 < Duration::from_nanos(100), "{lead:?}");
        let up = Deadline::at(now + SECOND - lead.0);
        assert_eq!(lead.rest(&clock, due, now), Rest::Asleep(up));
        // A machine that was busy for long does not make it get up at midnight.
        for _ in 0..100 {
            lead.learn(&clock, Deadline::at(now), now + SECOND);
        }
        assert!(lead.0 <= MOST_LEAD && lead.0 > MOST_LEAD / 2, "{lead:?}");
        let soon = Deadline::after(now, MOST_LEAD / 2);
        let up = Deadline::at(now + MOST_LEAD / 2 - MOST_LEAD_OF_NAP);
        assert_eq!(
            lead.rest(&clock, soon, now),
            Rest::Asleep(up),
            "a nap is not given up for it"
        );
        let at_once = Deadline::after(now, NEAR);
        assert_eq!(lead.rest(&clock, at_once, now), Rest::Awake);
        let never = Deadline::NEVER;
        assert_eq!(lead.rest(&clock, never, now), Rest::Asleep(never));
    }

    #[test]
    fn by_a_clock_that_is_moved_by_hand_nobody_gets_up_early_or_waits_awake() {
        let clock = super::super::ManualClock::new().clock();
        let now = clock.now();
        let mut lead = Lead::default();
        lead.learn(&clock, Deadline::at(now), now + SECOND);
        let near = Deadline::after(now, Duration::from_nanos(1));
        assert_eq!(lead.rest(&clock, near, now), Rest::Asleep(near));
    }
}
