//! The timer slack of a thread: how late the system may wake it from a timed sleep.
//!
//! Linux may wake a sleeping thread late, by 50 microseconds by default, so that one interrupt can wake
//! several. A thread that serves timers for others calls [`minimize`]. Threads that it starts meanwhile
//! inherit the slack.
//!
//! Elsewhere than on Linux, and in models, this does nothing.
//!
//! # Invariants
//!
//! - **SLACK-1** Both calls take and return numbers, touch no memory, and concern the calling thread. The
//!   slack is restored on the same thread.

use core::marker::PhantomData;

/// Restores the timer slack of its thread on drop.
#[derive(Debug)]
#[must_use = "the slack is restored when this is dropped"]
pub struct MinimalSlack {
    /// The former slack in nanoseconds.
    before: Option<u32>,
    // It belongs to one thread.
    _stays_here: PhantomData<*const ()>,
}

/// Minimises the timer slack of the current thread until the guard is dropped.
///
/// ```
/// use millpond_raw::timer_slack;
///
/// let _guard = timer_slack::minimize();
/// // Timed sleeps of this thread end on time.
/// ```
pub fn minimize() -> MinimalSlack {
    let before = os::get();
    if before.is_some() {
        os::set(1);
    }
    MinimalSlack {
        before,
        _stays_here: PhantomData,
    }
}

impl Drop for MinimalSlack {
    fn drop(&mut self) {
        if let Some(before) = self.before {
            os::set(before);
        }
    }
}

#[cfg(all(
    target_os = "linux",
    not(any(millpond_loom, millpond_shuttle, millpond_portable))
))]
mod os {
    /// In nanoseconds, if the system knows.
    pub(super) fn get() -> Option<u32> {
        // SAFETY: SLACK-1 - no arguments, and it returns a number.
        let slack = unsafe { libc::prctl(libc::PR_GET_TIMERSLACK) };
        u32::try_from(slack).ok()
    }

    pub(super) fn set(nanos: u32) {
        // SAFETY: SLACK-1 - the argument is a number.
        let failed = unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, libc::c_ulong::from(nanos)) };
        debug_assert_eq!(failed, 0, "a thread may always set its own slack");
    }
}

#[cfg(not(all(
    target_os = "linux",
    not(any(millpond_loom, millpond_shuttle, millpond_portable))
)))]
mod os {
    pub(super) fn get() -> Option<u32> {
        None
    }

    pub(super) fn set(_nanos: u32) {}
}

#[cfg(all(
    test,
    target_os = "linux",
    not(any(millpond_loom, millpond_shuttle, millpond_portable))
))]
mod tests {
    use super::*;
    use crate::sync::thread;

    #[test]
    fn the_slack_is_minimal_until_the_guard_drops_and_new_threads_inherit_it() {
        let here = os::get().expect("Linux knows the slack");
        let of_new_thread = || thread::spawn(os::get).join().unwrap();
        let there = thread::spawn(move || {
            let guard = minimize();
            assert_eq!((os::get(), of_new_thread()), (Some(1), Some(1)));
            drop(guard);
            (os::get(), of_new_thread())
        });
        assert_eq!(there.join().unwrap(), (Some(here), Some(here)));
        assert_eq!(os::get(), Some(here), "other threads are not affected");
    }
}
