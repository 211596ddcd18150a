//! Counts dropped tasks, and decides when they are reported.
//!
//! Under overload tasks are dropped in crowds, and a report of each would be a load of its own. So the first is
//! reported at once, and those that follow together, when [`PAUSE`] is over (an alarm rings, which the first of them
//! asks for) or at the end.
//!
//! # Invariants
//!
//! - **DROPPED-1** A count leaves the tally in the step that reports it ([`DropTally::take`]), and from
//!   [`Step::Report`] to that step nobody else reports. So the numbers that are reported add up to all that were
//!   dropped, however long a listener takes.
//! - **DROPPED-2** If no alarm can be set, or if time goes back, the next task that is dropped is reported at once or
//!   asks for an alarm again.

use super::DroppedTask;
use std::time::{Duration, Instant};

/// The shortest time between two reports.
pub(super) const PAUSE: Duration = Duration::from_secs(10);

/// The dropped tasks that have not been reported.
#[derive(Debug)]
pub(super) struct DropTally {
    last_report: Option<Instant>,
    dropped: u64,
    latest: Option<DroppedTask>,
    /// Somebody is about to take the count (DROPPED-1).
    is_being_reported: bool,
    has_alarm: bool,
    /// Every task is reported at once, because there is no later.
    is_over: bool,
}

/// What to do about a dropped task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub(super) enum Step {
    /// Nothing: it will be reported with others.
    Wait,
    /// Set an alarm that [flushes](DropTally::flush) after this time.
    SetAlarm(Duration),
    /// Report it now.
    Report,
}

impl DropTally {
    pub(super) const fn new() -> Self {
        DropTally {
            last_report: None,
            dropped: 0,
            latest: None,
            is_being_reported: false,
            has_alarm: false,
            is_over: false,
        }
    }

    /// A task was dropped.
    pub(super) fn add(&mut self, task: DroppedTask, now: Instant) -> Step {
        self.dropped += 1;
        self.latest = Some(task);
        if self.is_being_reported {
            return Step::Wait;
        }
        match self.left_of_pause(now) {
            Some(_) if self.has_alarm && !self.is_over => Step::Wait,
            Some(left) if !self.is_over => {
                self.has_alarm = true;
                Step::SetAlarm(left)
            }
            _ => self.begin(now),
        }
    }

    /// The alarm could not be set (DROPPED-2).
    pub(super) fn alarm_failed(&mut self) {
        self.has_alarm = false;
    }

    /// The alarm rings. By a manual clock it rings whenever the clock is moved, so the pause may not be over.
    pub(super) fn flush(&mut self, now: Instant) -> Step {
        self.has_alarm = false;
        if self.dropped == 0 || self.is_being_reported {
            return Step::Wait;
        }
        match self.left_of_pause(now) {
            Some(left) if !self.is_over => {
                self.has_alarm = true;
                Step::SetAlarm(left)
            }
            _ => self.begin(now),
        }
    }

    /// As [`flush`](DropTally::flush), for the last time.
    pub(super) fn end(&mut self, now: Instant) -> bool {
        self.is_over = true;
        self.flush(now) == Step::Report
    }

    /// Takes what is to be reported, after [`Step::Report`]: the last task, and how many there were.
    pub(super) fn take(&mut self) -> Option<(DroppedTask, u64)> {
        self.is_being_reported = false;
        let dropped = std::mem::take(&mut self.dropped);
        self.latest.take().map(|latest| (latest, dropped))
    }

    fn begin(&mut self, now: Instant) -> Step {
        self.last_report = Some(now);
        self.is_being_reported = true;
        Step::Report
    }

    /// `None` if the clock shows less than it did (DROPPED-2).
    fn left_of_pause(&self, now: Instant) -> Option<Duration> {
        let since = now.checked_duration_since(self.last_report?)?;
        let left = PAUSE.checked_sub(since)?;
        (!left.is_zero()).then_some(left)
    }
}

#[cfg(all(test, not(any(millpond_loom, millpond_shuttle))))]
mod tests {
    use super::*;
    use crate::task::CancelReason;
    use crate::time::Clock;
    use std::panic::Location;

    fn task() -> DroppedTask {
        DroppedTask {
            name: None,
            location: Location::caller(),
            reason: CancelReason::Expired,
        }
    }

    fn told(tally: &mut DropTally) -> u64 {
        tally.take().map_or(0, |(_, dropped)| dropped)
    }

    #[test]
    fn the_first_is_told_at_once_and_the_rest_together() {
        let (mut tally, start) = (DropTally::new(), Clock::system().now());
        assert_eq!(tally.add(task(), start), Step::Report);
        assert_eq!(told(&mut tally), 1);
        assert_eq!(tally.add(task(), start), Step::SetAlarm(PAUSE));
        for _ in 0..26 {
            assert_eq!(tally.add(task(), start), Step::Wait);
        }
        assert_eq!(tally.flush(start + PAUSE / 2), Step::SetAlarm(PAUSE / 2));
        assert_eq!(tally.flush(start + PAUSE), Step::Report);
        assert_eq!(told(&mut tally), 27);
        assert_eq!(tally.flush(start + PAUSE), Step::Wait, "nothing is left");
    }

    #[test]
    fn what_comes_while_one_is_about_to_tell_is_told_with_it() {
        let (mut tally, start) = (DropTally::new(), Clock::system().now());
        assert_eq!(tally.add(task(), start), Step::Report);
        assert_eq!(tally.add(task(), start + 2 * PAUSE), Step::Wait);
        assert_eq!(tally.flush(start), Step::Wait);
        assert!(!tally.end(start));
        assert_eq!(told(&mut tally), 2);
    }

    #[test]
    fn an_alarm_that_could_not_be_set_is_asked_for_again_and_a_pause_ends_without_it() {
        let (mut tally, start) = (DropTally::new(), Clock::system().now());
        assert_eq!(tally.add(task(), start), Step::Report);
        assert_eq!(told(&mut tally), 1);
        for _ in 0..2 {
            assert_eq!(tally.add(task(), start), Step::SetAlarm(PAUSE));
            tally.alarm_failed();
        }
        assert_eq!(tally.add(task(), start + PAUSE), Step::Report);
        assert_eq!(told(&mut tally), 3);
    }

    #[test]
    fn a_clock_that_goes_back_does_not_make_the_pause_longer() {
        let (mut tally, start) = (DropTally::new(), Clock::system().now());
        assert_eq!(tally.add(task(), start + 9 * PAUSE), Step::Report);
        assert_eq!(told(&mut tally), 1);
        assert_eq!(tally.add(task(), start), Step::Report);
        assert_eq!(told(&mut tally), 1);
    }

    #[test]
    fn after_the_end_each_is_told_at_once() {
        let (mut tally, start) = (DropTally::new(), Clock::system().now());
        assert!(!tally.end(start));
        for _ in 0..2 {
            assert_eq!(tally.add(task(), start), Step::Report);
            assert_eq!(told(&mut tally), 1);
        }
    }
}
