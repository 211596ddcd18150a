//! How punctually the system wakes a thread that sleeps until a time.
//!
//! Linux lets sleepers oversleep, by 50 microseconds as a rule, so that one interrupt may wake several.
//! A thread that rings for others what is due is better [`punctual`]. So are the threads that it starts
//! meanwhile: a thread begins with the slack of the one that starts it.
//!
//! Elsewhere than on Linux, and in models, every thread sleeps as it does.
//!
//! # Invariants
//!
//! - **V1** These two calls take and return numbers, touch no memory, and concern the thread that calls.
//!   What they are told is taken back on the same thread.

use core::marker::PhantomData;

/// As long as it is there its thread is woken in time.
#[derive(Debug)]
#[must_use = "a thread is punctual as long as this is there"]
pub struct Punctual {
    /// How many nanoseconds it was allowed to oversleep before.
    before: Option<u32>,
    // It is about one thread.
    _stays_here: PhantomData<*const ()>,
}

/// Has the present thread woken in time from now on, as far as the system can.
///
/// ```
/// use millpond_raw::slack;
///
/// let _punctual = slack::punctual();
/// // Sleeps of this thread end when they should.
/// ```
pub fn punctual() -> Punctual {
    let before = os::get();
    if before.is_some() {
        os::set(1);
    }
    Punctual {
        before,
        _stays_here: PhantomData,
    }
}

impl Drop for Punctual {
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
        // SAFETY: V1 - no arguments, and a number comes back.
        let slack = unsafe { libc::prctl(libc::PR_GET_TIMERSLACK) };
        u32::try_from(slack).ok()
    }

    pub(super) fn set(nanos: u32) {
        // SAFETY: V1 - a number goes in.
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
    fn a_thread_is_punctual_as_long_as_it_wants_to_be_and_so_are_those_it_starts_meanwhile() {
        let here = os::get().expect("Linux tells");
        let of_new_thread = || thread::spawn(os::get).join().unwrap();
        let there = thread::spawn(move || {
            let punctual = punctual();
            assert_eq!((os::get(), of_new_thread()), (Some(1), Some(1)));
            drop(punctual);
            (os::get(), of_new_thread())
        });
        assert_eq!(there.join().unwrap(), (Some(here), Some(here)));
        assert_eq!(os::get(), Some(here), "that is no concern of other threads");
    }
}
