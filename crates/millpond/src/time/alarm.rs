//! Waking somebody at a time.
//!
//! A thread that waits for a time sleeps until then; a future has to be woken. [`Clock::alarm`] sees
//! to that:
//!
//! | clock | who rings |
//! |---|---|
//! | the system's | the timer of the process: a thread, `millpond-timer-1` |
//! | one with a timer of its own ([`Clock::with_timer`]) | a thread that its factory starts |
//! | a manual one | whoever moves its hand |
//!
//! `timer.rs` says how the thread comes and goes, and what happens if it cannot be had.
//!
//! Models have no clock but the manual one (see `millpond_raw::sync::Futex`), with or without a timer of its
//! own. There an alarm by the system's clock is [unattended](Unattended).

use super::timer::{self, Timer};
use super::wheel::Key;
use super::{Clock, Deadline};
use millpond_raw::park::{self, Site};
use millpond_raw::quiet;
use millpond_raw::waits::{Ticket, Waits};
use std::fmt;
use std::sync::Arc;
use std::task::Waker;
use std::time::Duration;

/// For how long a future that nobody rings rests its thread between two looks, at most.
const REST: Duration = Duration::from_millis(1);

/// An alarm that is set; dropping it takes it back.
pub(crate) struct Alarm(Set);

/// An alarm that nobody rings, for the time being: the timer's thread could not be started. Whoever sets
/// one decides what that means; R4 in `timer.rs` says who does what.
pub(crate) struct Unattended {
    /// It is set all the same, and rung in time if somebody else gets a thread before it is dropped.
    pub(crate) alarm: Alarm,
}

enum Set {
    /// For never, or it cannot be set.
    Nowhere,
    Hand(Clock, Ticket),
    Timer(Arc<Timer>, Key),
}

impl Clock {
    /// Sees to it that `waker` is called at `deadline`, or soon after; perhaps for no reason earlier. It is
    /// not called by this call, unless the clock is a manual one and the time has come.
    ///
    /// # Errors
    ///
    /// Nobody can be had to call it.
    pub(crate) fn alarm(&self, deadline: Deadline, waker: &Waker) -> Result<Alarm, Unattended> {
        let Some(instant) = deadline.instant() else {
            return Ok(Alarm(Set::Nowhere));
        };
        let own = self.timer().cloned();
        let hand = self.manual_parts().filter(|_| own.is_none());
        if let Some((now, sleepers)) = hand {
            return Ok(match sleepers.enlist(waker, || now() < instant) {
                Some(ticket) => Alarm(Set::Hand(self.clone(), ticket)),
                None => {
                    quiet::wake(waker.clone());
                    Alarm(Set::Nowhere)
                }
            });
        }
        let Some(timer) = own.or_else(timer::of_process) else {
            return Err(Unattended {
                alarm: Alarm(Set::Nowhere),
            });
        };
        match timer.set(self, deadline, waker.clone()) {
            Ok(key) => Ok(Alarm(Set::Timer(timer, key))),
            Err(timer::Unattended(key)) => Err(Unattended {
                alarm: Alarm(key.map_or(Set::Nowhere, |key| Set::Timer(timer, key))),
            }),
        }
    }

    /// The same, for a future that is being polled. If nobody can be had to wake it, it wakes itself, as one
    /// does that yields, and looks again; but not before it has rested a little: the thread of its executor
    /// is slow then, and does not spin.
    pub(crate) fn alarm_for_future(&self, deadline: Deadline, waker: &Waker) -> Alarm {
        self.alarm(deadline, waker).unwrap_or_else(|unattended| {
            if !self.is_manual() {
                // A token that this takes is left again below.
                let rest = deadline.min(self.deadline(REST));
                let _ = self.park_until(&park::current(), Site::new("alarm.rest"), rest);
            }
            waker.wake_by_ref();
            unattended.alarm
        })
    }
}

impl Drop for Alarm {
    fn drop(&mut self) {
        match &self.0 {
            Set::Nowhere => {}
            Set::Hand(clock, ticket) => {
                if let Some((_, sleepers)) = clock.manual_parts() {
                    Waits::leave(sleepers, *ticket);
                }
            }
            Set::Timer(timer, key) => timer.take_back(*key),
        }
    }
}

impl fmt::Debug for Alarm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.0 {
            Set::Nowhere => "Alarm(none)",
            Set::Hand(..) | Set::Timer(..) => "Alarm(set)",
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

    /// Notes when it is rung too early, and that it is rung.
    struct Bell {
        clock: Clock,
        due: Instant,
        rung: Arc<AtomicUsize>,
        early: Arc<AtomicUsize>,
        done: Waker,
    }

    impl Wake for Bell {
        fn wake(self: Arc<Self>) {
            if self.clock.now() < self.due {
                self.early.fetch_add(1, Ordering::Relaxed);
            }
            self.rung.fetch_add(1, Ordering::Relaxed);
            self.done.wake_by_ref();
        }
    }

    #[test]
    fn alarms_that_many_threads_set_and_take_back_ring_once_each_and_none_before_its_time() {
        const EACH: usize = 600;
        let clock = Clock::system().with_timer(Threads::named("own-timer"));
        let setters: Vec<_> = (1..=4_u64)
            .map(|seed| {
                let clock = clock.clone();
                thread::spawn(move || set_and_take_back(&clock, seed, EACH))
            })
            .collect();
        for setter in setters {
            setter.join().unwrap();
        }
    }

    fn set_and_take_back(clock: &Clock, seed: u64, count: usize) {
        let (rung, early) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let here = park::current();
        let mut random = seed;
        let mut bell = |micros: Range<u64>| {
            // Marsaglia's xorshift.
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            let after = micros.start + random % (micros.end - micros.start);
            let due = clock.now() + Duration::from_micros(after);
            let (rung, early) = (Arc::clone(&rung), Arc::clone(&early));
            let (clock, done) = (clock.clone(), here.waker());
            Arc::new(Bell {
                clock,
                due,
                rung,
                early,
                done,
            })
        };
        let alarm = |bell: &Arc<Bell>| {
            clock
                .alarm(Deadline::at(bell.due), &Waker::from(Arc::clone(bell)))
                .ok()
                .unwrap()
        };
        let mut set = Vec::new();
        for _ in 0..count {
            // A minute to an hour away.
            let far = bell(60_000_000..3_600_000_000);
            let soon = bell(0..3_000);
            let fickle = alarm(&far);
            set.push(alarm(&soon));
            drop(fickle);
            assert_eq!(Arc::strong_count(&far), 1, "its waker has gone with it");
        }
        let patience = clock.deadline(Duration::from_secs(30));
        while rung.load(Ordering::Relaxed) < count {
            let out_of_patience = patience.has_passed(clock.now());
            let missing = count - rung.load(Ordering::Relaxed);
            assert!(!out_of_patience, "seed {seed}: {missing} have not rung");
            let _ = clock.park_until(&here, Site::new("alarm.test"), patience);
        }
        drop(set);
        assert_eq!(early.load(Ordering::Relaxed), 0, "seed {seed}");
        assert_eq!(rung.load(Ordering::Relaxed), count, "seed {seed}");
    }
}
