//! How many events are logged when no listener hears them.
//!
//! The thousandth line of a failing series on the standard error says no more than the first, and hides everything else
//! there. So at most [`BURST`] events are logged in a [`PERIOD`]. Further ones are counted, and one line tells how many
//! those were: when the period is over (an alarm rings, which the first of them asks for), or when the engine ends.

use std::time::{Duration, Instant};

/// The number of events that are logged in a period.
pub(super) const BURST: u32 = 16;

/// As long as the pause between two reports of dropped tasks (`executor/dropped`).
pub(super) const PERIOD: Duration = Duration::from_secs(10);

/// The log of one engine. Kept under the lock of its events.
#[derive(Debug, Default)]
pub(super) struct LogLimit {
    /// When the period began.
    since: Option<Instant>,
    logged: u32,
    unlogged: u64,
    has_alarm: bool,
}

/// What to do with an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub(super) enum Step {
    Log,
    /// Drop it: it is counted.
    Drop,
    /// Drop it, and set an alarm that [flushes](LogLimit::flush) after this time.
    DropAndSetAlarm(Duration),
}

impl LogLimit {
    pub(super) fn add(&mut self, now: Instant) -> Step {
        let left = self.left_of_period(now);
        if left.is_none() {
            (self.since, self.logged) = (Some(now), 0);
        }
        if self.logged < BURST {
            self.logged += 1;
            return Step::Log;
        }
        self.unlogged += 1;
        match left {
            Some(left) if !self.has_alarm => {
                self.has_alarm = true;
                Step::DropAndSetAlarm(left)
            }
            _ => Step::Drop,
        }
    }

    /// The alarm could not be set: the next event that is dropped asks for it again, and the first one of the next
    /// period tells.
    pub(super) fn alarm_failed(&mut self) {
        self.has_alarm = false;
    }

    /// The alarm rings. Returns how long it is to ring again if the period is not over: by a manual clock it rings
    /// whenever the clock is moved.
    pub(super) fn ring(&mut self, now: Instant) -> Option<Duration> {
        let left = self.left_of_period(now);
        self.has_alarm = left.is_some() && self.unlogged > 0;
        left.filter(|_| self.has_alarm)
    }

    /// Takes the number of events that were not logged, if a period is over.
    pub(super) fn take_if_over(&mut self, now: Instant) -> u64 {
        if self.left_of_period(now).is_some() {
            return 0;
        }
        self.take()
    }

    /// Takes the number of events that were not logged.
    pub(super) fn take(&mut self) -> u64 {
        std::mem::take(&mut self.unlogged)
    }

    /// `None` if there is no period, or if the clock shows less than it did.
    fn left_of_period(&self, now: Instant) -> Option<Duration> {
        let passed = now.checked_duration_since(self.since?)?;
        let left = PERIOD.checked_sub(passed)?;
        (!left.is_zero()).then_some(left)
    }
}

#[cfg(all(test, not(any(millpond_loom, millpond_shuttle))))]
mod tests {
    use super::*;
    use crate::time::Clock;

    #[test]
    fn a_burst_is_logged_and_the_rest_of_the_period_is_counted() {
        let (mut log, start) = (LogLimit::default(), Clock::system().now());
        for _ in 0..BURST {
            assert_eq!(log.add(start), Step::Log);
        }
        let half = start + PERIOD / 2;
        assert_eq!(log.add(half), Step::DropAndSetAlarm(PERIOD / 2));
        for _ in 0..9 {
            assert_eq!(log.add(half), Step::Drop);
        }
        assert_eq!(log.take_if_over(half), 0);
        assert_eq!(log.ring(half), Some(PERIOD / 2), "it was moved too early");
        let end = start + PERIOD;
        assert_eq!(log.ring(end), None);
        assert_eq!((log.take_if_over(end), log.take_if_over(end)), (10, 0));
        assert_eq!(log.add(end), Step::Log, "another period");
    }

    #[test]
    fn an_alarm_that_could_not_be_set_is_asked_for_again() {
        let (mut log, start) = (LogLimit::default(), Clock::system().now());
        for _ in 0..BURST {
            assert_eq!(log.add(start), Step::Log);
        }
        for _ in 0..2 {
            assert_eq!(log.add(start), Step::DropAndSetAlarm(PERIOD));
            log.alarm_failed();
        }
        assert_eq!(log.take(), 2);
    }

    #[test]
    fn a_clock_that_goes_back_begins_another_period() {
        let (mut log, start) = (LogLimit::default(), Clock::system().now());
        for _ in 0..BURST {
            assert_eq!(log.add(start + PERIOD), Step::Log);
        }
        assert_eq!(log.add(start), Step::Log);
    }
}
