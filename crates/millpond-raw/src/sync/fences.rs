//! A pair of fences of which one is free: for a thread that does something all the time, and others that disturb it now
//! and then.
//!
//! Two threads that each write, then read what the other one writes, need a fence in between, or both may read old
//! values. Here the frequent side has a *light* one, which only keeps the compiler from moving accesses. The rare side has
//! a *heavy* one: it lets the kernel make every other thread of the process that runs pass a full fence
//! (`membarrier`). What was written before a light fence is seen behind a heavy one, or what was written before the heavy
//! one is seen behind the light one. A thread that does not run has passed a full fence when the kernel took it off its
//! processor.
//!
//! A heavy fence takes a microsecond or some, and interrupts those processors that run threads of this process.
//!
//! Where there is no such call, [`are_asymmetric`] says no and neither is to be used. In models both are ordinary fences;
//! so a model shows that fences at these places suffice, and not that a light one is as good.
//!
//! # Invariants
//!
//! - **MEMBARRIER-1** The call has no pointers. It does not touch the memory of the process.
//!
//! # Orderings
//!
//! - `[L-fence]` Store-load: a light fence on one side, a heavy one on the other.

use super::atomic::{Ordering, fence};

pub(crate) use which::are_asymmetric;

/// The fence of the frequent side.
#[inline]
pub(crate) fn light() {
    if super::IN_MODEL {
        // [L-fence]
        fence(Ordering::SeqCst);
    } else {
        // [L-fence] unmodelled: only the compiler is kept from moving accesses
        core::sync::atomic::compiler_fence(core::sync::atomic::Ordering::SeqCst);
    }
}

/// The fence of the rare side. Only if they [are asymmetric](are_asymmetric).
#[cold]
pub(crate) fn heavy() {
    // [L-fence]
    fence(Ordering::SeqCst);
    which::interrupt_others();
}

#[cfg(all(
    target_os = "linux",
    not(any(millpond_loom, millpond_shuttle, millpond_portable))
))]
mod which {
    use std::io;
    #[allow(clippy::disallowed_types, reason = "a fact about the process")]
    use std::sync::atomic::{AtomicU8, Ordering};

    const UNKNOWN: u8 = 0;
    const YES: u8 = 1;
    const NO: u8 = 2;

    #[allow(clippy::disallowed_types, reason = "a fact about the process")]
    static KNOWN: AtomicU8 = AtomicU8::new(UNKNOWN);

    /// Whether this process has a heavy fence. The first call finds out.
    #[inline]
    pub(crate) fn are_asymmetric() -> bool {
        match KNOWN.load(Ordering::Relaxed) {
            UNKNOWN => ask(),
            known => known == YES,
        }
    }

    #[cold]
    fn ask() -> bool {
        let is_there = call(libc::MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED).is_ok();
        KNOWN.store(if is_there { YES } else { NO }, Ordering::Relaxed);
        is_there
    }

    /// # Panics
    ///
    /// It aborts the process if the call, which was there, is forbidden by now: then nothing can be known of the others.
    pub(super) fn interrupt_others() {
        if call(libc::MEMBARRIER_CMD_PRIVATE_EXPEDITED).is_ok() {
            return;
        }
        // A forked child may have to register anew.
        let again = call(libc::MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED)
            .and_then(|()| call(libc::MEMBARRIER_CMD_PRIVATE_EXPEDITED));
        if let Err(error) = again {
            eprintln!(
                "millpond: the system call membarrier, which worked before, fails: {error}; let the filter that forbids it \
                 allow it, or install that before the first thread pool"
            );
            std::process::abort();
        }
    }

    fn call(command: libc::c_int) -> io::Result<()> {
        // SAFETY: MEMBARRIER-1 - a number, no flags, no processor.
        match unsafe { libc::syscall(libc::SYS_membarrier, command, 0, 0) } {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }
}

#[cfg(any(millpond_loom, millpond_shuttle))]
mod which {
    pub(crate) const fn are_asymmetric() -> bool {
        true
    }

    pub(super) const fn interrupt_others() {}
}

#[cfg(all(
    any(not(target_os = "linux"), millpond_portable),
    not(any(millpond_loom, millpond_shuttle))
))]
mod which {
    pub(crate) const fn are_asymmetric() -> bool {
        false
    }

    pub(super) const fn interrupt_others() {}
}
