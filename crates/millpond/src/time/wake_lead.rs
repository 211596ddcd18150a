//! Waking up a little before a deadline, to be on time.
//!
//! A thread that sleeps until a time wakes some microseconds late, even with the smallest timer slack
//! (`millpond_raw::timer_slack`): that is the latency of the wake-up. So the thread keeps a moving average of
//! its latency, sleeps until that much before the deadline, and passes the rest yielding. If less than
//! [`MIN_SLEEP`] is left it does not sleep at all, for it would certainly be late.
//!
//! Where other threads want the CPU ([`contention`]) no thread yields for this, nor wakes up early: it sleeps until the
//! deadline, and at least for [`MIN_SLEEP_CONTENDED`].
//!
//! On a manual clock there is no latency, and no thread yields.

use super::{Clock, Deadline};
use crate::thread::contention;
use std::time::{Duration, Instant};

/// The shortest sleep. A shorter wait is passed yielding, which costs less: where this was measured
/// (`measure.rs`, on a virtual machine), a sleep took 14 microseconds of a CPU, and ended as late.
const MIN_SLEEP: Duration = Duration::from_micros(10);

/// The shortest sleep where the CPU is contended. The thread is late there anyway, and a sleep for each of many
/// deadlines would cost more CPU than there is; so it wakes up once for those of 25 microseconds.
const MIN_SLEEP_CONTENDED: Duration = Duration::from_micros(25);

/// The largest lead. The latency was 15 microseconds on a busy machine and 65 on an idle one where this was
/// measured.
const MAX_LEAD: Duration = Duration::from_micros(100);

/// The largest lead of a wait that is shorter than the latency: the thread will be late, but does not yield all
/// the time if deadlines are close together.
const MAX_LEAD_OF_SHORT_SLEEP: Duration = Duration::from_micros(20);

/// The moving average of how late a thread wakes up.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct WakeLead(Duration);

/// How to wait for a deadline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WaitPlan {
    /// Too near for a sleep: yield until then.
    Yield,
    Sleep(Deadline),
}

impl WakeLead {
    /// How to wait until `due`, which has not come.
    pub(crate) fn plan(self, clock: &Clock, due: Deadline, now: Instant) -> WaitPlan {
        if clock.is_manual() {
            WaitPlan::Sleep(due)
        } else {
            self.plan_by_system(due, now, contention::may_yield())
        }
    }

    fn plan_by_system(self, due: Deadline, now: Instant, may_yield: bool) -> WaitPlan {
        if !may_yield {
            return WaitPlan::Sleep(due.max(Deadline::after(now, MIN_SLEEP_CONTENDED)));
        }
        let up = self.before(due, now);
        if up <= Deadline::after(now, MIN_SLEEP) {
            WaitPlan::Yield
        } else {
            WaitPlan::Sleep(up)
        }
    }

    /// When to wake up for it.
    fn before(self, due: Deadline, now: Instant) -> Deadline {
        let is_short = due <= Deadline::after(now, self.0 + MIN_SLEEP);
        let lead = if is_short {
            self.0.min(MAX_LEAD_OF_SHORT_SLEEP)
        } else {
            self.0
        };
        let early = due.instant().and_then(|due| due.checked_sub(lead));
        early.map_or(due, Deadline::at)
    }

    /// Records that a sleep until `until` ended at `now`. Lateness beyond the largest lead has another cause, such
    /// as a busy machine, and counts as the largest lead.
    pub(crate) fn learn(&mut self, clock: &Clock, until: Deadline, now: Instant) {
        let (false, Some(until)) = (clock.is_manual(), until.instant()) else {
            return;
        };
        let late = now.saturating_duration_since(until).min(MAX_LEAD);
        self.0 = (self.0 * 7 + late) / 8;
    }
}

#[cfg(all(test, not(any(millpond_loom, millpond_shuttle))))]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn a_thread_learns_how_late_it_wakes_up_and_wakes_up_that_much_earlier() {
        let clock = Clock::system();
        let now = clock.now();
        let due = Deadline::after(now, SECOND);
        let mut lead = WakeLead::default();
        assert_eq!(lead.plan_by_system(due, now, true), WaitPlan::Sleep(due));
        let late = Duration::from_micros(8);
        for _ in 0..100 {
            lead.learn(&clock, Deadline::at(now), now + late);
        }
        assert!(late - lead.0 < Duration::from_nanos(100), "{lead:?}");
        let up = Deadline::at(now + SECOND - lead.0);
        assert_eq!(lead.plan_by_system(due, now, true), WaitPlan::Sleep(up));
        // The lead is bounded however late the thread was.
        for _ in 0..100 {
            lead.learn(&clock, Deadline::at(now), now + SECOND);
        }
        assert!(lead.0 <= MAX_LEAD && lead.0 > MAX_LEAD / 2, "{lead:?}");
        let soon = Deadline::after(now, MAX_LEAD / 2);
        let up = Deadline::at(now + MAX_LEAD / 2 - MAX_LEAD_OF_SHORT_SLEEP);
        assert_eq!(
            lead.plan_by_system(soon, now, true),
            WaitPlan::Sleep(up),
            "a short sleep is still a sleep"
        );
        let at_once = Deadline::after(now, MIN_SLEEP);
        assert_eq!(lead.plan_by_system(at_once, now, true), WaitPlan::Yield);
        let never = Deadline::NEVER;
        assert_eq!(
            lead.plan_by_system(never, now, true),
            WaitPlan::Sleep(never)
        );
    }

    #[test]
    fn where_the_cpu_is_contended_a_thread_sleeps_until_the_deadline_and_not_too_briefly() {
        let now = Clock::system().now();
        let lead = WakeLead(MAX_LEAD);
        let due = Deadline::after(now, SECOND);
        assert_eq!(lead.plan_by_system(due, now, false), WaitPlan::Sleep(due));
        let near = Deadline::after(now, Duration::from_nanos(1));
        let least = Deadline::after(now, MIN_SLEEP_CONTENDED);
        assert_eq!(
            lead.plan_by_system(near, now, false),
            WaitPlan::Sleep(least)
        );
    }

    #[test]
    fn on_a_manual_clock_no_thread_wakes_up_early_or_yields() {
        let clock = super::super::ManualClock::new().clock();
        let now = clock.now();
        let mut lead = WakeLead::default();
        lead.learn(&clock, Deadline::at(now), now + SECOND);
        let near = Deadline::after(now, Duration::from_nanos(1));
        assert_eq!(lead.plan(&clock, near, now), WaitPlan::Sleep(near));
    }
}
