//! Calling a waker at a time.
//!
//! A thread that waits for a time sleeps until then; a future has to be woken. That is what
//! [`Clock::alarm`] is for:
//!
//! | clock | what fires its alarms |
//! |---|---|
//! | the system's | the timer of the process: a thread, `millpond-timer-1` |
//! | one with a timer of its own ([`Clock::with_timer`]) | a thread that its factory starts |
//! | a manual one | the thread that advances it |
//!
//! `timer.rs` describes the life of the thread, and what happens if it cannot be started.
//!
//! Models have no clock but the manual one (see `millpond_raw::sync::Futex`), with or without a timer of its
//! own. There an alarm by the system's clock has [no thread](NoTimerThread).

use super::timer::{self, Timer};
use super::wheel::Key;
use super::{Clock, Deadline};
use millpond_raw::catch_panic;
use millpond_raw::park::{self, Site};
use millpond_raw::wait_queue::{Ticket, WaitQueue};
use std::fmt;
use std::sync::Arc;
use std::task::Waker;
use std::time::Duration;

/// The pause between two polls of a future that has no timer's thread to wake it.
const POLL_PAUSE: Duration = Duration::from_millis(1);

/// An alarm that is set; dropping it cancels it.
pub(crate) struct Alarm(Registration);

/// The timer's thread could not be started, so nothing fires the alarm for now. The caller decides what that
/// means; see TIMER-4 in `timer.rs`.
pub(crate) struct NoTimerThread {
    /// It is set all the same, and fires in time if another caller starts a thread before it is dropped.
    pub(crate) alarm: Alarm,
}

enum Registration {
    /// The deadline is never, or the alarm cannot be set.
    None,
    Manual(Clock, Ticket),
    Timer(Arc<Timer>, Key),
}

impl Clock {
    /// Calls `waker` at `deadline` or soon after, and perhaps spuriously before. Setting the alarm does not call
    /// it, unless the clock is a manual one and the time has come.
    ///
    /// # Errors
    ///
    /// There is no thread to call it, and none can be started.
    pub(crate) fn alarm(&self, deadline: Deadline, waker: &Waker) -> Result<Alarm, NoTimerThread> {
        let Some(instant) = deadline.instant() else {
            return Ok(Alarm(Registration::None));
        };
        let own = self.timer().cloned();
        let manual = self.manual_parts().filter(|_| own.is_none());
        if let Some((now, sleepers)) = manual {
            return Ok(match sleepers.register(waker, || now() < instant) {
                Some(ticket) => Alarm(Registration::Manual(self.clone(), ticket)),
                None => {
                    catch_panic::wake(waker.clone());
                    Alarm(Registration::None)
                }
            });
        }
        let Some(timer) = own.or_else(timer::of_process) else {
            return Err(NoTimerThread {
                alarm: Alarm(Registration::None),
            });
        };
        match timer.set(self, deadline, waker.clone()) {
            Ok(key) => Ok(Alarm(Registration::Timer(timer, key))),
            Err(timer::NoThread(key)) => Err(NoTimerThread {
                alarm: Alarm(key.map_or(Registration::None, |key| Registration::Timer(timer, key))),
            }),
        }
    }

    /// The same, for a future that is being polled. Without a timer's thread the future wakes itself, as one that
    /// yields, and is polled again; but after a short pause, so that the thread of its executor does not spin.
    pub(crate) fn alarm_for_future(&self, deadline: Deadline, waker: &Waker) -> Alarm {
        self.alarm(deadline, waker).unwrap_or_else(|no_thread| {
            if !self.is_manual() {
                // A token that this park consumes is left again below.
                let pause = deadline.min(self.deadline(POLL_PAUSE));
                let _ = self.park_until(&park::current(), Site::new("alarm.pause"), pause);
            }
            waker.wake_by_ref();
            no_thread.alarm
        })
    }
}

impl Drop for Alarm {
    fn drop(&mut self) {
        match &self.0 {
            Registration::None => {}
            Registration::Manual(clock, ticket) => {
                if let Some((_, sleepers)) = clock.manual_parts() {
                    WaitQueue::unregister(sleepers, *ticket);
                }
            }
            Registration::Timer(timer, key) => timer.cancel(*key),
        }
    }
}

impl fmt::Debug for Alarm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.0 {
            Registration::None => "Alarm(none)",
            Registration::Manual(..) | Registration::Timer(..) => "Alarm(set)",
        })
    }
}

#[cfg(all(test, not(any(millpond_loom, millpond_shuttle))))]
mod tests {
    use super::*;
    use crate::thread::Threads;
    use millpond_raw::park::{self, Site};
    use millpond_raw::sync::atomic::{AtomicUsize, Ordering};
    use millpond_raw::sync::thread;
    use std::ops::Range;
    use std::task::Wake;
    use std::time::{Duration, Instant};

    /// Counts its calls, and those that come too early.
    struct CountingWaker {
        clock: Clock,
        due: Instant,
        fired: Arc<AtomicUsize>,
        early: Arc<AtomicUsize>,
        done: Waker,
    }

    impl Wake for CountingWaker {
        fn wake(self: Arc<Self>) {
            if self.clock.now() < self.due {
                self.early.fetch_add(1, Ordering::Relaxed);
            }
            self.fired.fetch_add(1, Ordering::Relaxed);
            self.done.wake_by_ref();
        }
    }

    #[test]
    fn alarms_that_many_threads_set_and_cancel_fire_once_each_and_none_before_its_time() {
        const EACH: usize = 600;
        let clock = Clock::system().with_timer(Threads::named("own-timer"));
        let setters: Vec<_> = (1..=4_u64)
            .map(|seed| {
                let clock = clock.clone();
                thread::spawn(move || set_and_cancel(&clock, seed, EACH))
            })
            .collect();
        for setter in setters {
            setter.join().unwrap();
        }
    }

    fn set_and_cancel(clock: &Clock, seed: u64, count: usize) {
        let (fired, early) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let here = park::current();
        let mut random = seed;
        let mut waker = |micros: Range<u64>| {
            // Marsaglia's xorshift.
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            let after = micros.start + random % (micros.end - micros.start);
            let due = clock.now() + Duration::from_micros(after);
            let (fired, early) = (Arc::clone(&fired), Arc::clone(&early));
            let (clock, done) = (clock.clone(), here.waker());
            Arc::new(CountingWaker {
                clock,
                due,
                fired,
                early,
                done,
            })
        };
        let alarm = |waker: &Arc<CountingWaker>| {
            clock
                .alarm(Deadline::at(waker.due), &Waker::from(Arc::clone(waker)))
                .ok()
                .unwrap()
        };
        let mut set = Vec::new();
        for _ in 0..count {
            // A minute to an hour away.
            let far = waker(60_000_000..3_600_000_000);
            let soon = waker(0..3_000);
            let cancelled = alarm(&far);
            set.push(alarm(&soon));
            drop(cancelled);
            assert_eq!(Arc::strong_count(&far), 1, "its waker is dropped with it");
        }
        let timeout = clock.deadline(Duration::from_secs(30));
        while fired.load(Ordering::Relaxed) < count {
            let timed_out = timeout.has_passed(clock.now());
            let missing = count - fired.load(Ordering::Relaxed);
            assert!(!timed_out, "seed {seed}: {missing} have not fired");
            let _ = clock.park_until(&here, Site::new("alarm.test"), timeout);
        }
        drop(set);
        assert_eq!(early.load(Ordering::Relaxed), 0, "seed {seed}");
        assert_eq!(fired.load(Ordering::Relaxed), count, "seed {seed}");
    }
}
