//! The time of day, behind the Time seam.
//!
//! A clock has two times. [`Clock::now`] is the one to wait by: it never goes back, and cannot be
//! set. [`Clock::wall`] is what the clock on the wall shows: date and time, as people and calendars use
//! them. An administrator sets it, the network corrects it, and then it jumps, forwards or back.
//!
//! # Invariants
//!
//! - **WALL-1** The wall time of a manual clock follows its monotonic time: what [`ManualClock::advance`] adds
//!   to one it adds to the other.
//! - **WALL-2** [`ManualClock::set_wall`] moves the wall time alone. No deadline comes nearer.
//! - **WALL-3** A step of the wall time of a manual clock wakes all waiters, to check it again. The operating
//!   system does not announce such a step: a waiter for a time of day by the system's clock has to check it
//!   now and then.

use super::{Clock, ManualClock};
use millpond_raw::sync::Mutex;
use std::time::{Instant, SystemTime};

/// The wall time of a manual clock when it was last set, and the monotonic time then (WALL-1).
pub(super) struct ManualWall(Mutex<(Instant, SystemTime)>);

impl ManualWall {
    /// Starts at the system's wall time.
    pub(super) fn new(now: Instant) -> Self {
        ManualWall(Mutex::new((now, Clock::system().wall())))
    }

    fn set(&self, now: Instant, wall: SystemTime) {
        *self.0.lock() = (now, wall);
    }

    fn at(&self, now: Instant) -> SystemTime {
        let (since, wall) = *self.0.lock();
        let passed = now.saturating_duration_since(since);
        // A calendar that ends stands still at its end.
        wall.checked_add(passed).unwrap_or(wall)
    }
}

impl Clock {
    /// The date and the time of day, which can be set: two readings may be in the wrong order.
    ///
    /// The system's clock has the system's. A manual clock has one of its own, which begins as the
    /// system's and advances with it.
    ///
    /// To wait, or to measure, take [`now`](Clock::now).
    ///
    /// ```
    /// use millpond::time::ManualClock;
    /// use std::time::{Duration, SystemTime};
    ///
    /// let manual = ManualClock::new();
    /// let new_year = SystemTime::UNIX_EPOCH + Duration::from_secs(1_767_225_600);
    /// manual.set_wall(new_year);
    /// manual.advance(Duration::from_secs(60));
    /// assert_eq!(manual.clock().wall(), new_year + Duration::from_secs(60));
    /// ```
    #[allow(clippy::disallowed_methods, reason = "this is the seam")]
    pub fn wall(&self) -> SystemTime {
        match self.manual_wall() {
            None => SystemTime::now(),
            Some(wall) => wall.at(self.now()),
        }
    }
}

impl ManualClock {
    /// Sets the wall time, as an administrator does; [`now`](Clock::now) does not change. All waiters of
    /// this clock are woken, to check it again.
    ///
    /// ```
    /// use millpond::time::ManualClock;
    /// use std::time::Duration;
    ///
    /// let manual = ManualClock::new();
    /// let clock = manual.clock();
    /// let (now, wall) = (clock.now(), clock.wall());
    /// // The network says that we are a minute fast.
    /// manual.set_wall(wall - Duration::from_secs(60));
    /// assert_eq!(clock.wall(), wall - Duration::from_secs(60));
    /// assert_eq!(clock.now(), now);
    /// ```
    pub fn set_wall(&self, time: SystemTime) {
        let clock = self.clock();
        if let (Some(wall), Some((now, sleepers))) = (clock.manual_wall(), clock.manual_parts()) {
            wall.set(now(), time);
            sleepers.wake_all();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use millpond_raw::park::{self, Site, Woken};
    use millpond_raw::sync::thread;
    use std::time::Duration;

    const HOUR: Duration = Duration::from_secs(3600);

    #[test]
    fn the_wall_time_advances_with_the_clock_and_starts_at_the_systems() {
        let before = Clock::system().wall();
        let manual = ManualClock::new();
        let start = manual.clock().wall();
        // The system's may be set while this runs, but not by an hour.
        assert!(start > before - HOUR && start < before + HOUR);
        assert_eq!(manual.clock().wall(), start, "it stands still");
        manual.advance(HOUR);
        assert_eq!(manual.clock().wall(), start + HOUR);
    }

    #[test]
    fn a_step_of_the_wall_time_does_not_change_the_monotonic_time() {
        let manual = ManualClock::new();
        let clock = manual.clock();
        manual.advance(HOUR);
        let (now, wall) = (clock.now(), clock.wall());
        for stepped in [wall + 24 * HOUR, wall - 24 * HOUR, SystemTime::UNIX_EPOCH] {
            manual.set_wall(stepped);
            assert_eq!(clock.wall(), stepped);
            assert_eq!(clock.now(), now);
        }
        manual.advance(HOUR);
        assert_eq!(clock.wall(), SystemTime::UNIX_EPOCH + HOUR);
    }

    #[test]
    fn all_clocks_of_one_manual_clock_show_the_same_wall_time() {
        let manual = ManualClock::new();
        let with_timer = manual
            .clock()
            .with_timer(crate::thread::Threads::named("own"));
        manual.set_wall(SystemTime::UNIX_EPOCH);
        assert_eq!(with_timer.wall(), SystemTime::UNIX_EPOCH);
        assert_eq!(manual.clone().clock().wall(), SystemTime::UNIX_EPOCH);
    }

    #[test]
    fn a_wall_time_at_the_end_of_the_calendar_stands_still() {
        let manual = ManualClock::new();
        let mut last = manual.clock().wall();
        let mut step = Duration::MAX;
        while !step.is_zero() {
            match last.checked_add(step) {
                Some(later) => last = later,
                None => step /= 2,
            }
        }
        manual.set_wall(last);
        manual.advance(HOUR);
        assert_eq!(manual.clock().wall(), last);
    }

    #[test]
    fn a_step_of_the_wall_time_wakes_a_sleeper_whose_deadline_has_not_come() {
        let manual = ManualClock::new();
        let clock = manual.clock();
        let deadline = clock.deadline(HOUR);
        let sleeper = thread::spawn(move || {
            clock.park_until(&park::current(), Site::new("wall.test"), deadline)
        });
        while manual.sleepers() == 0 {
            thread::yield_now();
        }
        manual.set_wall(SystemTime::UNIX_EPOCH);
        assert_eq!(sleeper.join().unwrap(), Woken::Maybe);
    }
}
