//! A handler of SIGURG that was installed before ours. It needs a process of its own, because ours is
//! installed once per process.
//!
//! # Invariants
//!
//! - **OLDHANDLER-1** A handler is installed with an action that is valid and points to a function of the
//!   shape that its flags say.
//! - **OLDHANDLER-2** `__errno_location` is the address of the calling thread's own `errno`.
#![cfg(all(
    feature = "stack-dump",
    target_os = "linux",
    any(target_arch = "x86_64", target_arch = "aarch64"),
    not(any(millpond_loom, millpond_shuttle, millpond_portable))
))]

use millpond_raw::stack::{ThreadRef, capture};
use millpond_raw::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

static FOREIGN: AtomicU32 = AtomicU32::new(0);

extern "C" fn count(_signal: libc::c_int) {
    FOREIGN.fetch_add(1, Ordering::Relaxed);
    set_errno(libc::EBADF);
}

fn set_errno(number: i32) {
    // SAFETY: OLDHANDLER-2 - this thread's own.
    let errno = unsafe { libc::__errno_location() };
    // SAFETY: OLDHANDLER-2 - as above.
    unsafe { errno.write(number) };
}

#[test]
fn foreign_signals_reach_the_old_handler_and_ours_do_not() {
    // SAFETY: OLDHANDLER-1 - all zeros is an action without flags and with an empty mask.
    let mut action: libc::sigaction = unsafe { core::mem::zeroed() };
    action.sa_sigaction = count as *const () as libc::sighandler_t;
    // SAFETY: OLDHANDLER-1 - the action is a live local, with a handler of one argument.
    let failed = unsafe { libc::sigaction(libc::SIGURG, &raw const action, core::ptr::null_mut()) };
    assert_eq!(failed, 0);

    let me = [ThreadRef::current()];
    for _ in 0..3 {
        let answers = capture(&me, Duration::from_secs(20));
        assert!(answers[0].is_ok(), "{answers:?}");
    }
    assert_eq!(FOREIGN.load(Ordering::Relaxed), 0, "ours are not passed on");

    set_errno(77);
    // SAFETY: OLDHANDLER-1 - a signal to oneself, which has a handler.
    let failed = unsafe { libc::raise(libc::SIGURG) };
    let errno = std::io::Error::last_os_error().raw_os_error();
    assert_eq!(failed, 0);
    assert_eq!(FOREIGN.load(Ordering::Relaxed), 1);
    assert_eq!(errno, Some(77), "what the old handler does to it is undone");
}
