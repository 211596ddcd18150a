//! Calling and dropping users' values without letting their panics escape.
//!
//! A destructor, a waker or a panic payload is user code. When it panics on a worker it must cost nothing but
//! itself: not the worker, not a count, not another task, not a lock. A payload's own destructor may panic
//! too, and so may the payload of *that* panic, without end; after [`MAX_NESTED_PANICS`] of them the next is
//! leaked.
//!
//! All entry points are checked by [`user_code`]: nothing is called or dropped here under a lock.
//!
//! Where a panic must not escape because it would unwind frames that own memory in use by other threads,
//! [`or_abort`] aborts the process instead.
//!
//! With `panic = "abort"` nothing is caught here, and nothing needs to be.

use crate::sync::IN_MODEL;
use crate::user_code::{self, Kind};
use std::any::Any;
use std::io::Write;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::task::Waker;

/// The payload of a panic.
pub type Payload = Box<dyn Any + Send + 'static>;

/// Runs `f`, and discards its panic.
///
/// ```
/// use millpond_raw::catch_panic;
///
/// assert_eq!(catch_panic::call(|| 7), Some(7));
/// assert_eq!(catch_panic::call(|| -> u8 { std::panic::resume_unwind(Box::new("ignored")) }), None);
/// ```
#[inline]
#[track_caller]
pub fn call<R>(f: impl FnOnce() -> R) -> Option<R> {
    user_code::check(Kind::Contained);
    contain(f)
}

#[inline]
fn contain<R>(f: impl FnOnce() -> R) -> Option<R> {
    match catch_unwind(AssertUnwindSafe(f)) {
        Ok(value) => Some(value),
        Err(payload) => {
            discard(payload);
            None
        }
    }
}

/// Drops `value`, and discards a panic of its destructor.
#[inline]
#[track_caller]
pub fn drop<V>(value: V) {
    user_code::check(Kind::Destructor);
    let _ = contain(move || core::mem::drop(value));
}

/// Wakes, and discards a panic of the waker.
#[track_caller]
pub fn wake(waker: Waker) {
    user_code::check(Kind::Waker);
    let _ = contain(move || waker.wake());
}

/// Drops a waker, if there is one, and discards its panic. Unlike other destructors this may run on the
/// timer's thread.
#[track_caller]
pub fn drop_waker(waker: impl Into<Option<Waker>>) {
    user_code::check(Kind::Waker);
    if let Some(waker) = waker.into() {
        let _ = contain(move || core::mem::drop(waker));
    }
}

/// As [`drop_waker`], for an array of them.
#[inline]
#[track_caller]
pub fn drop_wakers<const N: usize>(wakers: [Option<Waker>; N]) {
    user_code::check(Kind::Waker);
    let _ = contain(move || core::mem::drop(wakers));
}

/// Runs `f`, and aborts the process with a message if it unwinds. `what` says what was going on.
pub(crate) fn or_abort<R>(what: &str, f: impl FnOnce() -> R) -> R {
    struct Abort<'a>(&'a str);

    impl Drop for Abort<'_> {
        #[cold]
        fn drop(&mut self) {
            if IN_MODEL {
                return;
            }
            // Not `eprintln!`, which panics if standard error is closed.
            let _ = writeln!(
                std::io::stderr(),
                "fatal: a panic while {}: unwinding would free memory that is in use; aborting",
                self.0
            );
            std::process::abort();
        }
    }

    let armed = Abort(what);
    let value = f();
    core::mem::forget(armed);
    value
}

/// How many payloads are dropped, each from a panic of the one before, until one is leaked.
const MAX_NESTED_PANICS: usize = 16;

/// Drops a payload; if that panics, drops the new payload, and so on.
#[cold]
fn discard(mut payload: Payload) {
    for _ in 0..MAX_NESTED_PANICS {
        match catch_unwind(AssertUnwindSafe(move || core::mem::drop(payload))) {
            Ok(()) => return,
            Err(next) => payload = next,
        }
    }
    core::mem::forget(payload);
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::panic::{panic_any, resume_unwind};

    struct Grenade(u32);

    impl Drop for Grenade {
        fn drop(&mut self) {
            if self.0 > 0 {
                resume_unwind(Box::new(Grenade(self.0 - 1)));
            }
        }
    }

    #[test]
    fn a_destructor_that_panics_costs_only_itself() {
        super::drop(Grenade(1));
    }

    #[test]
    fn payloads_that_panic_when_dropped_are_survived_to_any_depth() {
        for depth in 0..6 {
            assert!(call(|| resume_unwind(Box::new(Grenade(depth)))).is_none());
        }
    }

    #[cfg(all(target_os = "linux", not(any(millpond_loom, millpond_shuttle))))]
    #[test]
    fn a_panic_that_must_not_get_out_ends_the_process() {
        use crate::fork::{Child, run_in_child};
        let lives = run_in_child(30, || or_abort("nothing happens", || 7)).unwrap();
        assert_eq!(lives, Child::Exited(7));
        let dies = run_in_child(30, || {
            or_abort("the test is on", || resume_unwind(Box::new(())))
        });
        assert_eq!(dies.unwrap(), Child::Killed(libc::SIGABRT));
    }

    #[test]
    fn a_panic_with_any_type_is_swallowed() {
        assert!(call(|| panic_any(3_u8)).is_none());
    }
}
