//! Measuring how long a call took, without ever failing because a machine is slow.

use super::delays;
use std::time::{Duration, Instant};

/// Runs from when it is made. A lower bound is asserted exactly; the upper bound only says that
/// no wait ran into its timeout.
#[derive(Clone, Copy, Debug)]
pub struct Stopwatch(Instant);

impl Stopwatch {
    /// Starts it.
    pub fn start() -> Self {
        Stopwatch(Instant::now())
    }

    /// The time since.
    pub fn read(&self) -> Duration {
        self.0.elapsed()
    }

    /// Fails unless at least `time` has passed: what was to wait did not wake early.
    ///
    /// # Panics
    ///
    /// If less has passed.
    #[track_caller]
    pub fn assert_at_least(&self, time: Duration) {
        let read = self.read();
        assert!(read >= time, "took {read:?}, but had to take {time:?}");
    }

    /// Fails if a wait ran into its timeout instead of being woken.
    ///
    /// # Panics
    ///
    /// If half of [`delays::long`] has passed.
    #[track_caller]
    pub fn assert_prompt(&self) {
        let (read, most) = (self.read(), delays::long() / 2);
        assert!(
            read < most,
            "took {read:?}: somebody waited out a timeout instead of being woken"
        );
    }
}

/// Looks until it is so: for what another thread does after it has said that it is done.
///
/// # Panics
///
/// If it is not so within [`delays::long`].
#[track_caller]
pub fn until(what: &str, so: impl FnMut() -> bool) {
    until_within(delays::long(), what, so);
}

/// Looks until it is so, or until `timeout` is over. Returns whether it is so.
///
/// The first looks come one after another, because most things are so at once. Later ones leave the
/// CPU to others: a test that waits in vain must not look like one that spins.
pub fn comes_true(timeout: Duration, mut so: impl FnMut() -> bool) -> bool {
    const EAGER: u32 = 1_000;
    const BETWEEN_LOOKS: Duration = Duration::from_micros(200);
    let watch = Stopwatch::start();
    let mut looks = 0_u32;
    while !so() {
        if watch.read() >= timeout {
            return false;
        }
        looks += 1;
        if looks < EAGER {
            std::thread::yield_now()
        } else {
            std::thread::sleep(BETWEEN_LOOKS)
        }
    }
    true
}

#[track_caller]
fn until_within(timeout: Duration, what: &str, so: impl FnMut() -> bool) {
    assert!(comes_true(timeout, so), "not in time: {what}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_that_returns_early_is_caught() {
        let watch = Stopwatch::start();
        watch.assert_prompt();
        let caught = std::panic::catch_unwind(|| watch.assert_at_least(delays::longer()));
        assert!(caught.is_err());
    }

    #[test]
    fn what_does_not_come_is_named() {
        let caught = std::panic::catch_unwind(|| {
            until_within(delays::timeout(), "the sun rises", || false);
        });
        let text = caught.unwrap_err().downcast::<String>().unwrap();
        assert_eq!(*text, "not in time: the sun rises");
    }

    #[test]
    fn a_call_that_returned_only_at_its_timeout_is_caught() {
        let Some(long_ago) = Instant::now().checked_sub(delays::long()) else {
            return; // The machine has not been up that long.
        };
        assert!(std::panic::catch_unwind(|| Stopwatch(long_ago).assert_prompt()).is_err());
    }
}
