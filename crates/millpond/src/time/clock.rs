//! The Time seam: the system's clock, or one that a test moves by hand.
//!
//! A wait with a deadline goes through the clock as well ([`Clock::park_until`]). On the system's
//! clock it sleeps until the deadline. On a manual clock it sleeps until it is woken, and every
//! [`ManualClock::advance`] wakes all who have a deadline, to look at the new time. That is the whole
//! difference; code that waits cannot tell which clock it waits by.

use super::Deadline;
use super::timer::Timer;
use super::wall::ManualWall;
use crate::thread::ThreadFactory;
use millpond_raw::park::{Site, Strand, Woken};
use millpond_raw::sync::Mutex;
use millpond_raw::waits::Waits;
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// What time it is, and how to wait until a later one.
///
/// ```
/// use millpond::time::{Clock, ManualClock};
/// use std::time::Duration;
///
/// let hand = ManualClock::new();
/// let clock = hand.clock();
/// let before = clock.now();
/// hand.advance(Duration::from_secs(3600));
/// assert_eq!(clock.now() - before, Duration::from_secs(3600));
/// ```
#[derive(Clone, Default)]
pub struct Clock {
    /// `None` is the system's, and nothing else. Every task has a clock, so it is one word.
    own: Option<Arc<Own>>,
}

/// What a clock has that the system's has not.
struct Own {
    /// `None` is the system's time.
    manual: Option<Arc<Manual>>,
    /// Who rings its alarms, if it is not the usual one.
    timer: Option<Arc<Timer>>,
}

struct Manual {
    now: Mutex<Instant>,
    wall: ManualWall,
    sleepers: Waits,
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

    /// Whether it shows the same time as the other one, by whatever timer.
    pub(crate) fn is(&self, other: &Clock) -> bool {
        match (self.manual(), other.manual()) {
            (None, None) => true,
            (Some(one), Some(other)) => Arc::ptr_eq(one, other),
            _ => false,
        }
    }

    /// Whether it is the system's and nothing else.
    pub(crate) fn is_system(&self) -> bool {
        self.own.is_none()
    }

    /// Whether a test moves it by hand.
    pub(crate) fn is_manual(&self) -> bool {
        self.manual().is_some()
    }

    /// The same clock, with alarms rung by a thread that `threads` starts.
    ///
    /// A future that waits for a time, such as `recv()` of a [`DelayQueue`](crate::queue::DelayQueue),
    /// has to be woken when it comes. Usually one thread of the process does that, on a manual clock
    /// whoever moves the hand. Here it is a thread of this factory: it is started with the first alarm
    /// of this clock or of its clones, and ends when it has had none for a second of this clock.
    ///
    /// If the factory refuses, futures look for themselves until there is a thread or the time has come:
    /// each look asks for a thread again, and rests the thread that polls for a millisecond. A pool goes
    /// on without its watch for so long, and [`ScheduledPool::schedule`](crate::schedule::ScheduledPool::schedule)
    /// refuses what is not due at once.
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
        let own = Own {
            manual: self.manual().cloned(),
            timer: Some(Arc::new(Timer::new(self.now(), threads))),
        };
        Clock {
            own: Some(Arc::new(own)),
        }
    }

    fn manual(&self) -> Option<&Arc<Manual>> {
        self.own.as_ref()?.manual.as_ref()
    }

    /// Who rings its alarms, if it is not the usual one.
    pub(super) fn timer(&self) -> Option<&Arc<Timer>> {
        self.own.as_ref()?.timer.as_ref()
    }

    /// The time.
    ///
    /// ```
    /// use millpond::time::ManualClock;
    /// use std::time::Duration;
    ///
    /// let hand = ManualClock::new();
    /// let noon = hand.clock().now();
    /// hand.advance(Duration::from_secs(60));
    /// assert_eq!(hand.clock().now() - noon, Duration::from_secs(60));
    /// ```
    #[allow(clippy::disallowed_methods, reason = "this is the seam")]
    pub fn now(&self) -> Instant {
        match self.manual() {
            None => Instant::now(),
            Some(manual) => *manual.now.lock(),
        }
    }

    /// The deadline `patience` from now; never, if that is further than time can be told.
    ///
    /// ```
    /// use millpond::time::{Deadline, ManualClock};
    /// use std::time::Duration;
    ///
    /// let clock = ManualClock::new().clock();
    /// let soon = clock.deadline(Duration::from_secs(1));
    /// assert_eq!(soon.left(clock.now()), Some(Duration::from_secs(1)));
    /// assert_eq!(clock.deadline(Duration::MAX), Deadline::NEVER);
    /// ```
    pub fn deadline(&self, patience: Duration) -> Deadline {
        Deadline::after(self.now(), patience)
    }

    /// How a manual clock tells the time, and who waits by it; `None` for the system's.
    pub(super) fn manual_parts(&self) -> Option<(impl Fn() -> Instant, &Waits)> {
        let manual = self.manual()?;
        Some((|| *manual.now.lock(), &manual.sleepers))
    }

    /// How a manual clock tells the time of day; `None` for the system's.
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
        // On the list before the look at the time: an advance after the look wakes us.
        if let Some(ticket) = manual
            .sleepers
            .enlist(&here.waker(), || *manual.now.lock() < instant)
        {
            here.park(site);
            manual.sleepers.leave(ticket);
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

/// The hand that moves a manual clock.
///
/// ```
/// use millpond::task;
/// use millpond::time::ManualClock;
/// use std::time::Duration;
///
/// let hand = ManualClock::new();
/// let tomorrow = hand.clock().deadline(Duration::from_secs(86_400));
/// let (_task, mut handle) = task::TaskSpec::new().clock(hand.clock()).build(|| ());
/// let mover = std::thread::spawn(move || hand.advance(Duration::from_secs(86_400)));
/// // A day passes at once.
/// assert!(handle.join_until(tomorrow).unwrap_err().is_timed_out());
/// # mover.join().unwrap();
/// ```
#[derive(Clone)]
pub struct ManualClock {
    manual: Arc<Manual>,
}

impl ManualClock {
    /// A clock that stands still, at the time it was made.
    ///
    /// ```
    /// use millpond::time::ManualClock;
    ///
    /// let hand = ManualClock::new();
    /// assert_eq!(hand.clock().now(), hand.clock().now());
    /// ```
    pub fn new() -> Self {
        let now = Clock::system().now();
        ManualClock {
            manual: Arc::new(Manual {
                now: Mutex::new(now),
                wall: ManualWall::new(now),
                sleepers: Waits::new(),
            }),
        }
    }

    /// The clock that this hand moves. All clocks of one hand show the same time.
    ///
    /// ```
    /// use millpond::pool::ThreadPool;
    /// use millpond::time::ManualClock;
    ///
    /// let hand = ManualClock::new();
    /// let pool = ThreadPool::builder("mill").clock(hand.clock()).build()?;
    /// assert_eq!(format!("{:?}", hand.clock()), "Clock(manual)");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn clock(&self) -> Clock {
        let own = Own {
            manual: Some(Arc::clone(&self.manual)),
            timer: None,
        };
        Clock {
            own: Some(Arc::new(own)),
        }
    }

    /// Moves the clock on, and wakes everyone who waits by it for a deadline.
    ///
    /// ```
    /// use millpond::time::ManualClock;
    /// use std::time::Duration;
    ///
    /// let hand = ManualClock::new();
    /// let later = hand.clock().deadline(Duration::from_secs(3600));
    /// assert!(!later.has_passed(hand.clock().now()));
    /// hand.advance(Duration::from_secs(3600));
    /// assert!(later.has_passed(hand.clock().now()));
    /// ```
    pub fn advance(&self, by: Duration) {
        {
            let mut now = self.manual.now.lock();
            *now = now.checked_add(by).unwrap_or(*now);
        }
        self.manual.sleepers.wake_all();
    }

    /// How many wait for a deadline of this clock now.
    ///
    /// ```
    /// use millpond::task::TaskSpec;
    /// use millpond::time::ManualClock;
    /// use std::time::Duration;
    ///
    /// let hand = ManualClock::new();
    /// let (_task, mut handle) = TaskSpec::new().clock(hand.clock()).build(|| ());
    /// let waits = std::thread::spawn(move || handle.join_timeout(Duration::from_secs(5)).is_err());
    /// while hand.sleepers() == 0 {
    ///     std::thread::yield_now();
    /// }
    /// // Somebody waits for a deadline, so it is time to let time pass.
    /// hand.advance(Duration::from_secs(5));
    /// assert!(waits.join().unwrap());
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
        let hand = ManualClock::new();
        let clock = hand.clock();
        let start = clock.now();
        assert_eq!(clock.now(), start);
        hand.advance(Duration::from_millis(5));
        assert_eq!(hand.clock().now(), start + Duration::from_millis(5));
    }

    #[test]
    fn moving_a_clock_past_the_end_of_time_leaves_it_where_it_is() {
        let hand = ManualClock::new();
        let start = hand.clock().now();
        hand.advance(Duration::MAX);
        assert_eq!(hand.clock().now(), start);
    }

    #[test]
    fn a_sleeper_wakes_when_its_deadline_is_reached_and_not_before() {
        let hand = ManualClock::new();
        let clock = hand.clock();
        let deadline = clock.deadline(Duration::from_secs(2));
        let sleeper = thread::spawn(move || {
            let mut looks = 0;
            while clock.park_until(&park::current(), HERE, deadline) != Woken::TimedOut {
                looks += 1;
            }
            looks
        });
        while hand.sleepers() == 0 {
            thread::yield_now();
        }
        hand.advance(Duration::from_secs(1));
        while hand.sleepers() == 0 {
            thread::yield_now();
        }
        hand.advance(Duration::from_secs(1));
        assert_eq!(sleeper.join().unwrap(), 1);
        assert_eq!(hand.sleepers(), 0);
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
