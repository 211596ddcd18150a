//! The shortest sleep of a thread that waits for due times.
//!
//! A thread that sleeps until a time wakes up some microseconds late, even with the smallest timer slack
//! (`millpond_raw::timer_slack`), and to fall asleep and wake up costs more CPU than most tasks. So what is due sooner
//! than [`MIN_SLEEP`] is slept through: where due times follow each other closely the thread wakes up once for
//! several of them.
//!
//! It waits in no other way. A thread that yields until a time has come loses its CPU for a whole time slice where
//! anybody else wants it ([`contention`](crate::thread::contention)), and all that is due meanwhile is milliseconds late;
//! and where due times are close together it never sleeps at all.

use super::{Clock, Deadline};
use std::time::{Duration, Instant};

/// With 100,000 due times in a second a thread wakes up for three or four of them at once, and half of the tasks begin
/// less than 20 microseconds late.
const MIN_SLEEP: Duration = Duration::from_micros(15);

impl Clock {
    /// Until when a thread sleeps for what is due then, which has not come. On a manual clock, until then: sleeping costs
    /// nothing there.
    pub(crate) fn sleep_until(&self, due: Deadline, now: Instant) -> Deadline {
        if self.is_manual() {
            due
        } else {
            due.max(Deadline::after(now, MIN_SLEEP))
        }
    }
}

#[cfg(all(test, not(any(millpond_loom, millpond_shuttle))))]
mod tests {
    use super::*;

    #[test]
    fn a_thread_sleeps_until_the_due_time_and_not_too_briefly() {
        let clock = Clock::system();
        let now = clock.now();
        let later = Deadline::after(now, Duration::from_secs(1));
        assert_eq!(clock.sleep_until(later, now), later);
        let least = Deadline::after(now, MIN_SLEEP);
        let near = Deadline::after(now, Duration::from_nanos(1));
        assert_eq!(clock.sleep_until(near, now), least);
        assert_eq!(clock.sleep_until(Deadline::NEVER, now), Deadline::NEVER);
    }

    #[test]
    fn on_a_manual_clock_a_thread_sleeps_until_the_due_time_however_near_it_is() {
        let clock = super::super::ManualClock::new().clock();
        let now = clock.now();
        let near = Deadline::after(now, Duration::from_nanos(1));
        assert_eq!(clock.sleep_until(near, now), near);
    }
}
