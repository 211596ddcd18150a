//! The signal: its handler, sending it, and the handler that was installed before ours.
//!
//! # Orderings
//!
//! - `[SIG-old]` The old handler is published before ours is installed, and our handler reads it: a pointer that is
//!   followed, as in [`crate::once_box::AtomicStaticRef`], which has a model. Our handler never reads null: the kernel
//!   starts it after the call that installed it, and that call comes after the store. On the installing thread that is
//!   program order. On other threads the kernel's lock on the actions orders it: our handler was set under that lock, and
//!   a signal is delivered through it.

use super::target;
use crate::sync::Mutex;
use crate::sync::atomic::{AtomicPtr, Ordering};
use core::ptr::{null, null_mut};

/// Ignored by default and rarely used: the kernel sends it for urgent data on a socket
/// whose owner asked for it.
const SIGNAL: libc::c_int = libc::SIGURG;

/// Its address is the value that our signals carry.
static MARK: u8 = 0;

/// The action that was there before ours. It is never freed: the handler may be reading it.
static OLD: AtomicPtr<libc::sigaction> = AtomicPtr::new(null_mut());

/// Installs our handler, at the first call.
///
/// Only once, even if other code replaces it later: installing it again would make the two handlers call
/// each other for ever if the other one calls ours. Captures then time out.
///
/// # Errors
///
/// The error number of the system.
pub(super) fn install() -> Result<(), i32> {
    static INSTALLED: Mutex<bool> = Mutex::new(false);
    crate::fork::register_lock(&INSTALLED);
    let mut installed = INSTALLED.lock();
    if *installed {
        return Ok(());
    }
    let old = exchange(null())?;
    let mut new = old;
    new.sa_sigaction = on_signal as *const () as libc::sighandler_t;
    // The mask stays that of the old handler, which may rely on it.
    new.sa_flags = libc::SA_SIGINFO | libc::SA_RESTART | libc::SA_ONSTACK;
    let kept = Box::into_raw(Box::new(old));
    // [SIG-old] unmodelled: the other end is started by the kernel; the same protocol has a model in `once_box.rs`
    OLD.store(kept, Ordering::Release);
    exchange(&raw const new)?;
    *installed = true;
    Ok(())
}

/// Sets the action of our signal unless `new` is null, and returns what it was.
fn exchange(new: *const libc::sigaction) -> Result<libc::sigaction, i32> {
    let mut old = core::mem::MaybeUninit::<libc::sigaction>::zeroed();
    // SAFETY: STACK-6 - `new` is null or a live local of the caller's, and the old action is written whole.
    if unsafe { libc::sigaction(SIGNAL, new, old.as_mut_ptr()) } != 0 {
        return Err(last_error());
    }
    // SAFETY: STACK-6 - it was zeroed, which is a valid action, and then written by the call.
    Ok(unsafe { old.assume_init() })
}

fn last_error() -> i32 {
    std::io::Error::last_os_error().raw_os_error().unwrap_or(0)
}

/// The part of a `siginfo_t` that a queued signal fills in, with the padding of 64-bit machines.
#[repr(C)]
struct Queued {
    signal: libc::c_int,
    errno: libc::c_int,
    code: libc::c_int,
    _aligned: libc::c_int,
    pid: libc::pid_t,
    uid: libc::uid_t,
    value: *const u8,
    _rest: [u64; 12],
}

const _: () = assert!(size_of::<Queued>() == size_of::<libc::siginfo_t>());

/// Sends our signal to a thread of this process.
///
/// # Errors
///
/// The error number of the system.
///
/// # Safety
///
/// The id belongs to a living thread of this process that has a target.
pub(super) unsafe fn send(tid: u32) -> Result<(), i32> {
    let pid = std::process::id();
    // SAFETY: STACK-6 - no arguments, no failure.
    let uid = unsafe { libc::getuid() };
    let info = Queued {
        signal: SIGNAL,
        errno: 0,
        code: libc::SI_QUEUE,
        _aligned: 0,
        pid: pid as libc::pid_t,
        uid,
        value: &raw const MARK,
        _rest: [0; 12],
    };
    // SAFETY: STACK-6 - the kernel reads a `siginfo_t` from a live local of that size; STACK-3 - the id
    // is that of a living thread.
    let result = unsafe {
        libc::syscall(
            libc::SYS_rt_tgsigqueueinfo,
            pid,
            tid,
            SIGNAL,
            &raw const info,
        )
    };
    if result == 0 {
        Ok(())
    } else {
        Err(last_error())
    }
}

/// The handler. It obeys STACK-4.
extern "C" fn on_signal(
    signal: libc::c_int,
    info: *mut libc::siginfo_t,
    context: *mut libc::c_void,
) {
    // SAFETY: STACK-6 - the address of this thread's own `errno`.
    let errno = unsafe { libc::__errno_location() };
    // SAFETY: STACK-4 - it is this thread's own, and no other code of this thread runs meanwhile.
    let before = unsafe { errno.read() };
    // SAFETY: STACK-6 - the system's own, until we return.
    let interrupted = unsafe { &*context.cast::<libc::ucontext_t>() };
    target::with_current(|target| target.serve(interrupted));
    // SAFETY: STACK-6 - the system's own, until we return.
    if !is_ours(unsafe { &*info }) {
        call_old(signal, info, context);
    }
    // SAFETY: STACK-4 - as above.
    unsafe { errno.write(before) };
}

fn is_ours(info: &libc::siginfo_t) -> bool {
    if info.si_code != libc::SI_QUEUE {
        return false;
    }
    // SAFETY: STACK-6 - a queued signal carries a value. A foreign signal may carry anything: the value
    // is compared and not followed.
    let value = unsafe { info.si_value() };
    core::ptr::eq(value.sival_ptr.cast_const().cast::<u8>(), &raw const MARK)
}

fn call_old(signal: libc::c_int, info: *mut libc::siginfo_t, context: *mut libc::c_void) {
    type OfOne = extern "C" fn(libc::c_int);
    type OfThree = extern "C" fn(libc::c_int, *mut libc::siginfo_t, *mut libc::c_void);

    // [SIG-old] unmodelled: this end is started by the kernel; the same protocol has a model in `once_box.rs`
    let old = OLD.load(Ordering::Acquire);
    // SAFETY: STACK-7 - null, or an action that is never freed.
    let Some(old) = (unsafe { old.as_ref() }) else {
        return;
    };
    let handler = old.sa_sigaction;
    if handler == libc::SIG_DFL || handler == libc::SIG_IGN {
        return;
    }
    if old.sa_flags & libc::SA_SIGINFO != 0 {
        // SAFETY: STACK-7 - its flags say that it takes three arguments.
        let handler = unsafe { core::mem::transmute::<usize, OfThree>(handler) };
        handler(signal, info, context);
    } else {
        // SAFETY: STACK-7 - its flags say that it takes one argument.
        let handler = unsafe { core::mem::transmute::<usize, OfOne>(handler) };
        handler(signal);
    }
}
