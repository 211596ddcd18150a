//! How many dropped tasks nobody has been told of yet.
//!
//! Tasks are dropped in crowds, under overload, and a notice for each would be a load of its own. So the
//! first is told at once, and those that follow when [`PAUSE`] is over, with their number: by the alarm
//! that the first of them asks for, or at the end.
//!
//! - **D1** A count leaves the tally in the step that tells it ([`DropTally::take`]), and from
//!   [`Step::Tell`] to that step nobody else tells. So the numbers that are told add up to all that were
//!   dropped, however long a listener takes.
//! - **D2** If no alarm can be had, or if time goes back, the next task that is dropped is told at once or asks
//!   for an alarm again.

use super::DroppedTask;
use std::time::{Duration, Instant};

/// How long it is quiet after a notice.
pub(crate) const PAUSE: Duration = Duration::from_secs(10);

/// Counts dropped tasks, for one who tells of them.
#[derive(Debug)]
pub(crate) struct DropTally {
    last_told: Option<Instant>,
    dropped: u64,
    latest: Option<DroppedTask>,
    /// D1: somebody is about to take the count.
    is_being_told: bool,
    has_alarm: bool,
    /// There is no later: whatever comes now is told at once.
    is_over: bool,
}

/// What is to be done about a dropped task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// Nothing: it will be told with others.
    Wait,
    /// Somebody must [flush](DropTally::flush) after this time.
    SetAlarm(Duration),
    /// It is to be told now.
    Tell,
}

impl DropTally {
    pub(crate) const fn new() -> Self {
        DropTally {
            last_told: None,
            dropped: 0,
            latest: None,
            is_being_told: false,
            has_alarm: false,
            is_over: false,
        }
    }

    /// One was dropped.
    pub(crate) fn add(&mut self, task: DroppedTask, now: Instant) -> Step {
        self.dropped += 1;
        self.latest = Some(task);
        if self.is_being_told {
            return Step::Wait;
        }
        match self.left_of_pause(now) {
            Some(left) if !self.is_over => match std::mem::replace(&mut self.has_alarm, true) {
                true => Step::Wait,
                false => Step::SetAlarm(left),
            },
            _ => self.begin(now),
        }
    }

    /// The alarm could not be set (D2).
    pub(crate) fn alarm_failed(&mut self) {
        self.has_alarm = false;
    }

    /// The alarm rings. One of a manual clock does whenever that is moved, so the pause may not be over.
    pub(crate) fn flush(&mut self, now: Instant) -> Step {
        self.has_alarm = false;
        if self.dropped == 0 || self.is_being_told {
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
    pub(crate) fn end(&mut self, now: Instant) -> bool {
        self.is_over = true;
        self.flush(now) == Step::Tell
    }

    /// What is to be told, by the one who was said to [tell](Step::Tell): the last of them, and how many
    /// there were.
    pub(crate) fn take(&mut self) -> Option<(DroppedTask, u64)> {
        self.is_being_told = false;
        let dropped = std::mem::take(&mut self.dropped);
        self.latest.take().map(|latest| (latest, dropped))
    }

    fn begin(&mut self, now: Instant) -> Step {
        self.last_told = Some(now);
        self.is_being_told = true;
        Step::Tell
    }

    /// D2: nothing, if the clock shows less than it did.
    fn left_of_pause(&self, now: Instant) -> Option<Duration> {
        let since = now.checked_duration_since(self.last_told?)?;
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
            made_at: Location::caller(),
            reason: CancelReason::Expired,
        }
    }

    fn told(tally: &mut DropTally) -> u64 {
        tally.take().map_or(0, |(_, dropped)| dropped)
    }

    #[test]
    fn the_first_is_told_at_once_and_the_rest_together() {
        let (mut tally, start) = (DropTally::new(), Clock::system().now());
        assert_eq!(tally.add(task(), start), Step::Tell);
        assert_eq!(told(&mut tally), 1);
        assert_eq!(tally.add(task(), start), Step::SetAlarm(PAUSE));
        for _ in 0..26 {
            assert_eq!(tally.add(task(), start), Step::Wait);
        }
        assert_eq!(tally.flush(start + PAUSE / 2), Step::SetAlarm(PAUSE / 2));
        assert_eq!(tally.flush(start + PAUSE), Step::Tell);
        assert_eq!(told(&mut tally), 27);
        assert_eq!(tally.flush(start + PAUSE), Step::Wait, "nothing is left");
    }

    #[test]
    fn what_comes_while_one_is_about_to_tell_is_told_with_it() {
        let (mut tally, start) = (DropTally::new(), Clock::system().now());
        assert_eq!(tally.add(task(), start), Step::Tell);
        assert_eq!(tally.add(task(), start + 2 * PAUSE), Step::Wait);
        assert_eq!(tally.flush(start), Step::Wait);
        assert!(!tally.end(start));
        assert_eq!(told(&mut tally), 2);
    }

    #[test]
    fn an_alarm_that_could_not_be_set_is_asked_for_again_and_a_pause_ends_without_it() {
        let (mut tally, start) = (DropTally::new(), Clock::system().now());
        assert_eq!(tally.add(task(), start), Step::Tell);
        assert_eq!(told(&mut tally), 1);
        for _ in 0..2 {
            assert_eq!(tally.add(task(), start), Step::SetAlarm(PAUSE));
            tally.alarm_failed();
        }
        assert_eq!(tally.add(task(), start + PAUSE), Step::Tell);
        assert_eq!(told(&mut tally), 3);
    }

    #[test]
    fn a_clock_that_goes_back_does_not_make_the_pause_longer() {
        let (mut tally, start) = (DropTally::new(), Clock::system().now());
        assert_eq!(tally.add(task(), start + 9 * PAUSE), Step::Tell);
        assert_eq!(told(&mut tally), 1);
        assert_eq!(tally.add(task(), start), Step::Tell);
        assert_eq!(told(&mut tally), 1);
    }

    #[test]
    fn after_the_end_each_is_told_at_once() {
        let (mut tally, start) = (DropTally::new(), Clock::system().now());
        assert!(!tally.end(start));
        for _ in 0..2 {
            assert_eq!(tally.add(task(), start), Step::Tell);
            assert_eq!(told(&mut tally), 1);
        }
    }
}
