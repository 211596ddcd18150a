//! A point in time that may be never.
//!
//! Durations from users go up to `Duration::MAX`, five hundred thousand million years, and adding
//! one to an `Instant` overflows. Java's schedulers have had three bugs of that kind. Here an
//! overflow means *never*, deadlines are absolute, and nothing is ever negated or subtracted from.

use std::fmt;
use std::time::{Duration, Instant};

/// A point in time until which something may take, or [`NEVER`](Deadline::NEVER).
///
/// Deadlines compare by urgency: what comes sooner is less, and never is the greatest.
///
/// ```
/// use millpond::time::{Clock, Deadline};
/// use std::time::Duration;
///
/// let clock = Clock::system();
/// let soon = Deadline::after(clock.now(), Duration::from_secs(1));
/// assert!(soon < Deadline::NEVER);
/// assert_eq!(Deadline::after(clock.now(), Duration::MAX), Deadline::NEVER);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Deadline(Option<Instant>);

impl Deadline {
    /// No deadline at all.
    pub const NEVER: Deadline = Deadline(None);

    /// The deadline at `instant`.
    ///
    /// ```
    /// use millpond::time::{Deadline, ManualClock};
    /// use std::time::Duration;
    ///
    /// let now = ManualClock::new().clock().now();
    /// assert!(Deadline::at(now) < Deadline::NEVER);
    /// ```
    pub fn at(instant: Instant) -> Self {
        Deadline(Some(instant))
    }

    /// The deadline `timeout` after `now`; never, if that is further than time can be told.
    ///
    /// ```
    /// use millpond::time::{Deadline, ManualClock};
    /// use std::time::Duration;
    ///
    /// let now = ManualClock::new().clock().now();
    /// assert_eq!(Deadline::after(now, Duration::from_secs(1)), Deadline::at(now + Duration::from_secs(1)));
    /// assert_eq!(Deadline::after(now, Duration::MAX), Deadline::NEVER);
    /// ```
    pub fn after(now: Instant, timeout: Duration) -> Self {
        Deadline(now.checked_add(timeout))
    }

    /// When it is, unless it is never.
    ///
    /// ```
    /// use millpond::time::{Deadline, ManualClock};
    /// use std::time::Duration;
    ///
    /// let now = ManualClock::new().clock().now();
    /// assert_eq!(Deadline::at(now).instant(), Some(now));
    /// assert_eq!(Deadline::NEVER.instant(), None);
    /// ```
    pub fn instant(self) -> Option<Instant> {
        self.0
    }

    /// Whether it has come by `now`.
    ///
    /// ```
    /// use millpond::time::{Deadline, ManualClock};
    /// use std::time::Duration;
    ///
    /// let now = ManualClock::new().clock().now();
    /// let soon = Deadline::after(now, Duration::from_secs(1));
    /// assert!(!soon.has_passed(now) && soon.has_passed(now + Duration::from_secs(1)));
    /// ```
    pub fn has_passed(self, now: Instant) -> bool {
        self.0.is_some_and(|instant| instant <= now)
    }

    /// How long there is left at `now`: zero if it has passed, `None` if it is never.
    ///
    /// ```
    /// use millpond::time::{Deadline, ManualClock};
    /// use std::time::Duration;
    ///
    /// let now = ManualClock::new().clock().now();
    /// let soon = Deadline::after(now, Duration::from_secs(3));
    /// assert_eq!(soon.remaining(now + Duration::from_secs(1)), Some(Duration::from_secs(2)));
    /// assert_eq!(Deadline::NEVER.remaining(now), None);
    /// ```
    pub fn remaining(self, now: Instant) -> Option<Duration> {
        self.0.map(|instant| instant.saturating_duration_since(now))
    }
}

impl Ord for Deadline {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        match (self.0, other.0) {
            (Some(mine), Some(theirs)) => mine.cmp(&theirs),
            // `None` is the least option and the greatest deadline.
            (mine, theirs) => mine.is_none().cmp(&theirs.is_none()),
        }
    }
}

impl PartialOrd for Deadline {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl fmt::Debug for Deadline {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(instant) => instant.fmt(f),
            None => f.write_str("never"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::Clock;

    #[test]
    fn never_comes_after_everything_and_never_passes() {
        let now = Clock::system().now();
        assert!(Deadline::at(now) < Deadline::NEVER);
        assert!(Deadline::NEVER <= Deadline::NEVER);
        assert!(!Deadline::NEVER.has_passed(now));
        assert_eq!(Deadline::NEVER.remaining(now), None);
    }

    #[test]
    fn no_patience_at_all_has_passed_at_once() {
        let now = Clock::system().now();
        let deadline = Deadline::after(now, Duration::ZERO);
        assert!(deadline.has_passed(now));
        assert_eq!(deadline.remaining(now), Some(Duration::ZERO));
    }

    #[test]
    fn the_sooner_is_the_less() {
        let now = Clock::system().now();
        let later = Deadline::after(now, Duration::from_nanos(1));
        assert!(Deadline::at(now) < later);
        assert!(!later.has_passed(now));
    }
}
