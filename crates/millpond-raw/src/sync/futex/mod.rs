//! A 32-bit word that threads can sleep on.
//!
//! [`Futex::wait`] sleeps as long as the word holds the expected value; [`Futex::wake_one`] and
//! [`Futex::wake_all`] wake sleepers. Comparing the word and falling asleep are one step with respect to a
//! wake, so a waker that changes the word *before* it wakes cannot be missed.
//!
//! | backend | how |
//! |---|---|
//! | Linux | the system call, private to the process, deadlines on the monotonic clock |
//! | portable | a table of std locks and condition variables, by address |
//! | loom, shuttle | a lock and a condition variable of the checker, in the word itself |
//!
//! The models' lock stands for the bucket lock inside the kernel. It orders more than the kernel promises: a
//! model cannot fail for an ordering that only a sleeping thread needs. So the protocols on top never rely on
//! a futex for visibility, only on their own atomics.
//!
//! | file | what |
//! |---|---|
//! | `linux` | the system call |
//! | `portable` | a table of std locks and condition variables |
//! | `model` | a lock and a condition variable of the checker |
//!
//! # Deadlines in models
//!
//! A checker has no clock. There a timed wait yields once and then reports [`Woken::TimedOut`], as if the
//! deadline had been near: both orders, the wake first and the time-out first, are explored.

#[cfg(all(
    target_os = "linux",
    not(any(millpond_loom, millpond_shuttle, millpond_portable))
))]
mod linux;
#[cfg(any(millpond_loom, millpond_shuttle))]
mod model;
#[cfg(all(
    any(not(target_os = "linux"), millpond_portable),
    not(any(millpond_loom, millpond_shuttle))
))]
mod portable;

#[cfg(all(
    target_os = "linux",
    not(any(millpond_loom, millpond_shuttle, millpond_portable))
))]
use linux::Sleepers;
#[cfg(any(millpond_loom, millpond_shuttle))]
use model::Sleepers;
#[cfg(all(
    any(not(target_os = "linux"), millpond_portable),
    not(any(millpond_loom, millpond_shuttle))
))]
use portable::Sleepers;

#[cfg(all(
    target_os = "linux",
    millpond_portable,
    not(any(millpond_loom, millpond_shuttle))
))]
pub(crate) use portable::reset_after_fork;

use super::atomic::AtomicU32;
use core::ops::Deref;
use std::time::Instant;

/// Why a wait ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "a wait may end spuriously: check the word again, unless it timed out"]
pub enum Woken {
    /// A wake, another value in the word, or a spurious wake-up.
    Maybe,
    /// The deadline has passed.
    TimedOut,
}

/// A 32-bit word that threads can sleep on. It is an [`AtomicU32`] in every other respect.
///
/// ```
/// use millpond_raw::sync::{Futex, atomic::Ordering};
///
/// let word = Futex::new(0);
/// word.store(1, Ordering::Relaxed);
/// // The word no longer holds 0, so this returns at once.
/// let _ = word.wait(0, None);
/// word.wake_all();
/// ```
#[derive(Debug)]
pub struct Futex {
    word: AtomicU32,
    sleepers: Sleepers,
}

impl Futex {
    const_outside_models! {
        /// A word that holds `value`.
        pub fn new(value: u32) -> Self {
            Futex {
                word: AtomicU32::new(value),
                sleepers: Sleepers::new(),
            }
        }
    }

    /// Sleeps while the word holds `expected`, until a wake or the deadline. May return spuriously.
    pub fn wait(&self, expected: u32, deadline: Option<Instant>) -> Woken {
        self.sleepers.wait(&self.word, expected, deadline)
    }

    /// Wakes one sleeper, if there is one.
    pub fn wake_one(&self) {
        self.sleepers.wake_one(&self.word);
    }

    /// Wakes every sleeper.
    pub fn wake_all(&self) {
        self.sleepers.wake_all(&self.word);
    }
}

impl Deref for Futex {
    type Target = AtomicU32;

    #[inline]
    fn deref(&self) -> &AtomicU32 {
        &self.word
    }
}

#[cfg(all(test, not(any(millpond_loom, millpond_shuttle))))]
mod tests {
    #![allow(clippy::disallowed_methods, reason = "the futex is below the clock")]

    use super::*;
    use crate::sync::atomic::Ordering;
    use std::time::Duration;

    #[test]
    fn a_word_that_differs_is_not_slept_on() {
        let word = Futex::new(1);
        assert_eq!(word.wait(0, None), Woken::Maybe);
    }

    #[test]
    fn a_deadline_in_the_past_times_out_at_once() {
        let word = Futex::new(0);
        assert_eq!(word.wait(0, Some(Instant::now())), Woken::TimedOut);
    }

    #[test]
    fn a_deadline_is_never_reported_early() {
        let word = Futex::new(0);
        let deadline = Instant::now() + Duration::from_millis(12);
        while word.wait(0, Some(deadline)) != Woken::TimedOut {}
        assert!(Instant::now() >= deadline);
    }

    #[test]
    fn a_wake_after_a_change_reaches_every_sleeper() {
        let word = Futex::new(0);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    while word.load(Ordering::Relaxed) == 0 {
                        let _ = word.wait(0, None);
                    }
                });
            }
            word.store(1, Ordering::Relaxed);
            word.wake_all();
        });
    }
}
