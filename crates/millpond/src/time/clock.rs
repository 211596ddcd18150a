//! The Time seam: the system's clock, or one that a test advances.
//!
//! A wait with a deadline goes through the clock as well ([`Clock::park_until`]). On the system's
//! clock it sleeps until the deadline. On a manual clock it sleeps until it is woken, and every
//! [`ManualClock::advance`] wakes every waiter that has a deadline, to check the new time. That is the whole
//! difference; code that waits cannot tell which clock it waits by.

use super::Deadline;
use super::timer::Timer;
use super::wall::ManualWall;
use crate::thread::ThreadFactory;
use millpond_raw::park::{Site, Strand, Woken};
use millpond_raw::sync::Mutex;
use millpond_raw::wait_queue::WaitQueue;
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// What time it is, and how to wait until a later one.
///
/// ```
/// use millpond::time::{Clock, ManualClock};
/// use std::time::Duration;
///
/// let manual = ManualClock::new();
/// let clock = manual.clock();
/// let before = clock.now();
/// manual.advance(Duration::from_secs(3600));
/// assert_eq!(clock.now() - before, Duration::from_secs(3600));
/// ```
#[derive(Clone, Default)]
pub struct Clock {
    /// `None` for the plain system clock. Every task has a clock, so it is one word.
    parts: Option<Arc<ClockParts>>,
}

/// The parts of a clock that is not the plain system clock.
struct ClockParts {
    /// `None` for the system's time.
    manual: Option<Arc<Manual>>,
    /// The timer that fires its alarms, if it has one of its own.
    timer: Option<Arc<Timer>>,
}

struct Manual {
    now: Mutex<Instant>,
    wall: ManualWall,
    sleepers: WaitQueue,
}

impl Clock {
    /// The system's monotonic clock.
    ///
    /// ```
    /// use millpond::time::Clock;
    ///
    /// let clock = Clock::system();
    /// assert!(clock.now() <= clock.now());
    /// ```
    pub fn system() -> Self {
        Clock::default()
    }

    /// Whether this is the plain system clock, without a timer of its own.
    pub(crate) fn is_system(&self) -> bool {
        self.parts.is_none()
    }

    /// Whether this is a manual clock.
    pub(crate) fn is_manual(&self) -> bool {
        self.manual().is_some()
    }

    /// Whether both show the same time at every moment: both the system's, or both of the same manual clock.
    pub(crate) fn agrees_with(&self, other: &Clock) -> bool {
        match (self.manual(), other.manual()) {
            (None, None) => true,
            (Some(own), Some(other)) => Arc::ptr_eq(own, other),
            _ => false,
        }
    }

    /// The same clock, with alarms fired by a thread that `threads` starts.
    ///
    /// A future that waits for a time, such as `recv()` of a [`DelayQueue`](crate::queue::DelayQueue),
    /// has to be woken when it comes. Usually one thread of the process does that; on a manual clock, the
    /// thread that advances it. Here it is a thread of this factory: it is started with the first alarm
    /// of this clock or of its clones, and ends when it has had no alarm for a second of this clock.
    ///
    /// If the factory fails, futures poll until there is a thread or the time has come: each poll asks for a
    /// thread again, and parks the polling thread for a millisecond. Meanwhile a pool has no watchdog, and
    /// [`ScheduledPool::schedule`](crate::schedule::ScheduledPool::schedule) rejects tasks that are not due at
    /// once.
    ///
    /// ```
    /// use millpond::thread::Threads;
    /// use millpond::time::Clock;
    ///
    /// let clock = Clock::system().with_timer(Threads::named("orders-timer").stack_size(64 * 1024));
    /// # let _ = clock;
    /// ```
    #[must_use]
    pub fn with_timer(&self, threads: impl ThreadFactory) -> Self {
        let parts = ClockParts {
            manual: self.manual().cloned(),
            timer: Some(Arc::new(Timer::new(self.now(), threads))),
        };
        Clock {
            parts: Some(Arc::new(parts)),
        }
    }

    fn manual(&self) -> Option<&Arc<Manual>> {
        self.parts.as_ref()?.manual.as_ref()
    }

    /// The timer that fires its alarms, if it has one of its own.
    pub(super) fn timer(&self) -> Option<&Arc<Timer>> {
        self.parts.as_ref()?.timer.as_ref()
    }

    /// The time.
    ///
    /// ```
    /// use millpond::time::ManualClock;
    /// use std::time::Duration;
    ///
    /// let manual = ManualClock::new();
    /// let noon = manual.clock().now();
    /// manual.advance(Duration::from_secs(60));
    /// assert_eq!(manual.clock().now() - noon, Duration::from_secs(60));
    /// ```
    #[allow(clippy::disallowed_methods, reason = "this is the seam")]
    pub fn now(&self) -> Instant {
        match self.manual() {
            None => Instant::now(),
            Some(manual) => *manual.now.lock(),
        }
    }

    /// The time, unless this is a manual clock: that may stand still, and a pause by it would never end.
    pub(crate) fn system_now(&self) -> Option<Instant> {
        (!self.is_manual()).then(|| self.now())
    }

    /// The deadline `timeout` from now; never, if that is past the end of [`Instant`].
    ///
    /// ```
    /// use millpond::time::{Deadline, ManualClock};
    /// use std::time::Duration;
    ///
    /// let clock = ManualClock::new().clock();
    /// let soon = clock.deadline(Duration::from_secs(1));
    /// assert_eq!(soon.remaining(clock.now()), Some(Duration::from_secs(1)));
    /// assert_eq!(clock.deadline(Duration::MAX), Deadline::NEVER);
    /// ```
    pub fn deadline(&self, timeout: Duration) -> Deadline {
        Deadline::after(self.now(), timeout)
    }

    /// The time of a manual clock, and its waiters; `None` for the system's clock.
    pub(super) fn manual_parts(&self) -> Option<(impl Fn() -> Instant, &WaitQueue)> {
        let manual = self.manual()?;
        Some((|| *manual.now.lock(), &manual.sleepers))
    }

    /// The wall time of a manual clock; `None` for the system's clock.
    pub(super) fn manual_wall(&self) -> Option<&ManualWall> {
        Some(&self.manual()?.wall)
    }

    /// Parks the strand until it is woken, until the deadline, or for no reason.
    pub fn park_until(&self, here: &Strand, site: Site, deadline: Deadline) -> Woken {
        let Some(instant) = deadline.instant() else {
            here.park(site);
            return Woken::Maybe;
        };
        let Some(manual) = self.manual() else {
            return here.park_until(site, instant);
        };
        // Registered before the time is read: an advance after the read wakes us.
        if let Some(ticket) = manual
            .sleepers
            .register(&here.waker(), || *manual.now.lock() < instant)
        {
            here.park(site);
            manual.sleepers.unregister(ticket);
        }
        if *manual.now.lock() < instant {
            Woken::Maybe
        } else {
            Woken::TimedOut
        }
    }
}

impl fmt::Debug for Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.manual().is_some() {
            "Clock(manual)"
        } else {
            "Clock(system)"
        })
    }
}

/// A clock that stands still until [`advance`](ManualClock::advance) moves it.
///
/// ```
/// use millpond::task;
/// use millpond::time::ManualClock;
/// use std::time::Duration;
///
/// let manual = ManualClock::new();
/// let tomorrow = manual.clock().deadline(Duration::from_secs(86_400));
/// let (_task, mut handle) = task::TaskSpec::new().clock(manual.clock()).build(|| ());
/// let mover = std::thread::spawn(move || manual.advance(Duration::from_secs(86_400)));
/// // A day passes at once.
/// assert!(handle.join_until(tomorrow).unwrap_err().is_timed_out());
/// # mover.join().unwrap();
/// ```
#[derive(Clone)]
pub struct ManualClock {
    manual: Arc<Manual>,
}

impl ManualClock {
    /// A manual clock that shows the time of its creation.
    ///
    /// ```
    /// use millpond::time::ManualClock;
    ///
    /// let manual = ManualClock::new();
    /// assert_eq!(manual.clock().now(), manual.clock().now());
    /// ```
    pub fn new() -> Self {
        let now = Clock::system().now();
        ManualClock {
            manual: Arc::new(Manual {
                now: Mutex::new(now),
                wall: ManualWall::new(now),
                sleepers: WaitQueue::new(),
            }),
        }
    }

    /// The clock for pools, queues and tasks. All clocks of one manual clock show the same time.
    ///
    /// ```
    /// use millpond::pool::ThreadPool;
    /// use millpond::time::ManualClock;
    ///
    /// let manual = ManualClock::new();
    /// let pool = ThreadPool::builder("mill").clock(manual.clock()).build()?;
    /// assert_eq!(format!("{:?}", manual.clock()), "Clock(manual)");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn clock(&self) -> Clock {
        let parts = ClockParts {
            manual: Some(Arc::clone(&self.manual)),
            timer: None,
        };
        Clock {
            parts: Some(Arc::new(parts)),
        }
    }

    /// Advances the clock, and wakes every waiter that has a deadline on it.
    ///
    /// ```
    /// use millpond::time::ManualClock;
    /// use std::time::Duration;
    ///
    /// let manual = ManualClock::new();
    /// let later = manual.clock().deadline(Duration::from_secs(3600));
    /// assert!(!later.has_passed(manual.clock().now()));
    /// manual.advance(Duration::from_secs(3600));
    /// assert!(later.has_passed(manual.clock().now()));
    /// ```
    pub fn advance(&self, by: Duration) {
        {
            let mut now = self.manual.now.lock();
            *now = now.checked_add(by).unwrap_or(*now);
        }
        self.manual.sleepers.wake_all();
    }

    /// The number of waiters with a deadline on this clock.
    ///
    /// ```
    /// use millpond::task::TaskSpec;
    /// use millpond::time::ManualClock;
    /// use std::time::Duration;
    ///
    /// let manual = ManualClock::new();
    /// let (_task, mut handle) = TaskSpec::new().clock(manual.clock()).build(|| ());
    /// let waiter = std::thread::spawn(move || handle.join_timeout(Duration::from_secs(5)).is_err());
    /// while manual.sleepers() == 0 {
    ///     std::thread::yield_now();
    /// }
    /// // The other thread waits for its deadline: let time pass.
    /// manual.advance(Duration::from_secs(5));
    /// assert!(waiter.join().unwrap());
    /// ```
    pub fn sleepers(&self) -> usize {
        self.manual.sleepers.len()
    }
}

impl Default for ManualClock {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for ManualClock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ManualClock")
            .field("sleepers", &self.sleepers())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use millpond_raw::park;
    use millpond_raw::sync::thread;

    const HERE: Site = Site::new("clock.test");

    #[test]
    fn a_manual_clock_stands_still_until_it_is_moved() {
        let manual = ManualClock::new();
        let clock = manual.clock();
        let start = clock.now();
        assert_eq!(clock.now(), start);
        manual.advance(Duration::from_millis(5));
        assert_eq!(manual.clock().now(), start + Duration::from_millis(5));
    }

    #[test]
    fn moving_a_clock_past_the_end_of_time_leaves_it_where_it_is() {
        let manual = ManualClock::new();
        let start = manual.clock().now();
        manual.advance(Duration::MAX);
        assert_eq!(manual.clock().now(), start);
    }

    #[test]
    fn a_sleeper_wakes_when_its_deadline_is_reached_and_not_before() {
        let manual = ManualClock::new();
        let clock = manual.clock();
        let deadline = clock.deadline(Duration::from_secs(2));
        let sleeper = thread::spawn(move || {
            let mut wakeups = 0;
            while clock.park_until(&park::current(), HERE, deadline) != Woken::TimedOut {
                wakeups += 1;
            }
            wakeups
        });
        while manual.sleepers() == 0 {
            thread::yield_now();
        }
        manual.advance(Duration::from_secs(1));
        while manual.sleepers() == 0 {
            thread::yield_now();
        }
        manual.advance(Duration::from_secs(1));
        assert_eq!(sleeper.join().unwrap(), 1);
        assert_eq!(manual.sleepers(), 0);
    }

    #[test]
    fn a_deadline_that_has_passed_is_not_slept_on() {
        for clock in [Clock::system(), ManualClock::new().clock()] {
            let deadline = clock.deadline(Duration::ZERO);
            assert_eq!(
                clock.park_until(&park::current(), HERE, deadline),
                Woken::TimedOut
            );
        }
    }
}
