//! The futex of Linux.
//!
//! # Invariants
//!
//! - **FUTEX-1** The word outlives the call, which borrows it. The kernel compares and queues by address
//!   only, and never writes to it.
//! - **FUTEX-2** Deadlines are absolute and on `CLOCK_MONOTONIC`, the clock behind [`Instant`], so a wait
//!   that is repeated after a spurious wake-up does not grow. `FUTEX_WAIT_BITSET` is the form that takes an
//!   absolute time.
//! - **FUTEX-3** `timespec` fields are in range: whole seconds and less than 10^9 nanoseconds.

use super::Woken;
use crate::sync::atomic::AtomicU32;
use std::time::{Duration, Instant};

/// The kernel keeps the sleepers; nothing is stored here.
#[derive(Debug)]
pub(super) struct Sleepers;

impl Sleepers {
    pub(super) const fn new() -> Self {
        Sleepers
    }

    pub(super) fn wait(&self, word: &AtomicU32, expected: u32, until: Option<Instant>) -> Woken {
        let Some(deadline) = until else {
            wait(word, expected, core::ptr::null());
            return Woken::Maybe;
        };
        let Some(left) = deadline.checked_duration_since(now()) else {
            return Woken::TimedOut;
        };
        match monotonic_after(left) {
            // Beyond the range of the kernel's clock: never.
            None => {
                wait(word, expected, core::ptr::null());
                Woken::Maybe
            }
            Some(time) if wait(word, expected, &time) == libc::ETIMEDOUT => Woken::TimedOut,
            Some(_) => Woken::Maybe,
        }
    }

    pub(super) fn wake_one(&self, word: &AtomicU32) {
        wake(word, 1);
    }

    pub(super) fn wake_all(&self, word: &AtomicU32) {
        wake(word, i32::MAX);
    }
}

#[allow(
    clippy::disallowed_methods,
    reason = "this is the seam: the kernel wants its own clock"
)]
fn now() -> Instant {
    Instant::now()
}

/// The time on `CLOCK_MONOTONIC` when `left` will have passed, if it is in range.
///
/// [`Instant`] does not expose its value, hence the second read of the clock. The few nanoseconds between the
/// two reads make a wait longer, never shorter.
fn monotonic_after(left: Duration) -> Option<libc::timespec> {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: FUTEX-3 - the call writes a valid `timespec` through a pointer to a live local.
    let failed = unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut time) };
    debug_assert_eq!(failed, 0, "CLOCK_MONOTONIC is always there");
    let then = Duration::new(time.tv_sec.try_into().ok()?, time.tv_nsec.try_into().ok()?)
        .checked_add(left)?;
    time.tv_sec = then.as_secs().try_into().ok()?;
    time.tv_nsec = then.subsec_nanos().into();
    Some(time)
}

/// Waits, and returns the error number, or 0.
fn wait(word: &AtomicU32, expected: u32, until: *const libc::timespec) -> i32 {
    // SAFETY: FUTEX-1 - the word is borrowed; FUTEX-2, FUTEX-3 - `until` is null or points to a time in range.
    let result = unsafe {
        libc::syscall(
            libc::SYS_futex,
            word.as_ptr(),
            libc::FUTEX_WAIT_BITSET | libc::FUTEX_PRIVATE_FLAG,
            expected,
            until,
            core::ptr::null::<u32>(),
            !0_u32,
        )
    };
    if result == 0 {
        0
    } else {
        std::io::Error::last_os_error().raw_os_error().unwrap_or(0)
    }
}

fn wake(word: &AtomicU32, count: i32) {
    // SAFETY: FUTEX-1 - the kernel looks sleepers up by the address and does not dereference it.
    unsafe {
        libc::syscall(
            libc::SYS_futex,
            word.as_ptr(),
            libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG,
            count,
        )
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_deadline_beyond_the_kernels_clock_means_never() {
        assert!(monotonic_after(Duration::MAX).is_none());
    }

    #[test]
    fn nanoseconds_are_carried_into_seconds() {
        let time = monotonic_after(Duration::new(5, 999_999_999)).expect("in range");
        assert!((0..1_000_000_000).contains(&time.tv_nsec));
    }
}
