//! On which CPUs a thread may run.
//!
//! A new thread inherits the mask of the thread that starts it. So [`with_cpus`] starts a thread that is pinned from its
//! first instruction on, and an impossible mask is an error *before* the thread exists.
//!
//! Elsewhere than on Linux, and in models, nothing can be pinned and no CPU is known.
//!
//! # Invariants
//!
//! - **AFFINITY-1** A mask is passed with its own length in bytes; the system reads, or writes, no more than that.
//! - **AFFINITY-2** Both calls concern the calling thread only.

use std::io;

/// Calls `f` while the current thread may run on these CPUs only, and restores what was before, also when `f` unwinds.
///
/// ```
/// use millpond_raw::affinity;
///
/// let here = affinity::with_cpus(&[0], affinity::current_cpu);
/// // Where it can be done and is allowed.
/// assert!(matches!(here, Err(_) | Ok(Some(0))));
/// ```
///
/// # Errors
///
/// None of the CPUs exists and is allowed for this process, or the system cannot do it. Then `f` is not called.
pub fn with_cpus<R>(cpus: &[u32], f: impl FnOnce() -> R) -> io::Result<R> {
    struct Restore(Vec<u32>);

    impl Drop for Restore {
        fn drop(&mut self) {
            // It was allowed before. If it is not any more the system has put the thread somewhere else itself.
            let _ = os::set(&self.0);
        }
    }

    let before = os::get()?;
    let is_same = before == cpus;
    let _restore = Restore(before);
    if !is_same {
        os::set(cpus)?;
    }
    Ok(f())
}

/// The CPUs that the current thread may run on.
///
/// # Errors
///
/// The system does not know.
pub fn current_cpus() -> io::Result<Vec<u32>> {
    os::get()
}

/// The CPU that the current thread runs on at this moment, if the system knows.
#[inline]
pub fn current_cpu() -> Option<u32> {
    os::current_cpu()
}

#[cfg(all(
    target_os = "linux",
    not(any(millpond_loom, millpond_shuttle, millpond_portable))
))]
mod os {
    use core::ffi::c_ulong;
    use std::io;

    const BITS: usize = c_ulong::BITS as usize;

    /// As many CPUs as any kernel is built for. The system says so if that is not enough.
    const MOST: usize = 1 << 16;

    pub(super) fn get() -> io::Result<Vec<u32>> {
        let mut mask = vec![0 as c_ulong; MOST / BITS];
        let bytes = size_of_val(mask.as_slice());
        // SAFETY: AFFINITY-1, AFFINITY-2 - 0 is the calling thread, and the mask has this many bytes.
        let failed = unsafe { libc::sched_getaffinity(0, bytes, mask.as_mut_ptr().cast()) };
        if failed != 0 {
            return Err(io::Error::last_os_error());
        }
        let is_set = |cpu: &usize| mask[cpu / BITS] >> (cpu % BITS) & 1 == 1;
        Ok((0..MOST).filter(is_set).map(|cpu| cpu as u32).collect())
    }

    pub(super) fn set(cpus: &[u32]) -> io::Result<()> {
        let top = cpus.iter().max().map_or(0, |top| *top as usize);
        if top >= MOST {
            return Err(io::Error::from(io::ErrorKind::InvalidInput));
        }
        let mut mask = vec![0 as c_ulong; top / BITS + 1];
        for cpu in cpus {
            mask[*cpu as usize / BITS] |= 1 << (*cpu as usize % BITS);
        }
        let bytes = size_of_val(mask.as_slice());
        // SAFETY: AFFINITY-1, AFFINITY-2 - 0 is the calling thread, and the mask has this many bytes.
        let failed = unsafe { libc::sched_setaffinity(0, bytes, mask.as_ptr().cast()) };
        if failed == 0 {
            Ok(())
        } else {
            Err(io::Error::last_os_error())
        }
    }

    #[inline]
    pub(super) fn current_cpu() -> Option<u32> {
        // SAFETY: AFFINITY-2 - it takes nothing and returns a number.
        u32::try_from(unsafe { libc::sched_getcpu() }).ok()
    }
}

#[cfg(not(all(
    target_os = "linux",
    not(any(millpond_loom, millpond_shuttle, millpond_portable))
)))]
mod os {
    use std::io;

    fn unsupported() -> io::Error {
        let text = "threads cannot be pinned to CPUs on this system";
        io::Error::new(io::ErrorKind::Unsupported, text)
    }

    pub(super) fn get() -> io::Result<Vec<u32>> {
        Err(unsupported())
    }

    pub(super) fn set(_cpus: &[u32]) -> io::Result<()> {
        Err(unsupported())
    }

    #[inline]
    pub(super) fn current_cpu() -> Option<u32> {
        None
    }
}

#[cfg(all(
    test,
    target_os = "linux",
    not(any(millpond_loom, millpond_shuttle, millpond_portable))
))]
mod tests {
    use super::*;
    use crate::sync::thread;
    use std::panic::{AssertUnwindSafe, catch_unwind};

    #[test]
    fn a_thread_that_is_started_inside_stays_on_the_cpus_and_the_caller_does_not() {
        let before = current_cpus().expect("Linux knows the mask");
        for cpu in &before {
            let start = || thread::spawn(|| (current_cpus().unwrap(), current_cpu()));
            let there = with_cpus(&[*cpu], start).expect("it is allowed").join();
            assert_eq!(there.unwrap(), (vec![*cpu], Some(*cpu)));
        }
        assert_eq!(current_cpus().unwrap(), before);
    }

    #[test]
    fn a_panic_inside_restores_the_mask() {
        let before = current_cpus().expect("Linux knows the mask");
        let inside = || with_cpus(&before[..1], || panic!("inside"));
        let caught = catch_unwind(AssertUnwindSafe(inside));
        assert!(caught.is_err());
        assert_eq!(current_cpus().unwrap(), before);
    }

    #[test]
    fn cpus_that_do_not_exist_are_an_error_and_nothing_is_called() {
        for none in [&[][..], &[60_000], &[u32::MAX]] {
            let called = with_cpus(none, || unreachable!("there is no such CPU"));
            assert!(called.is_err(), "{none:?}");
        }
    }
}
