//! The time slice of a thread: for how long others run before it may take a CPU away from them.
//!
//! If all CPUs are in use, a thread that wakes up may have to wait until the thread on its CPU has used up its slice,
//! 3 milliseconds by default, however low the priority of that one is. Linux 6.12 and later lets a thread ask for a
//! shorter slice. Then it is let in at once if it has used less than its share, and in return it is interrupted sooner
//! itself if others want the CPU. Its share stays the same. A thread that serves timers for others calls [`shorten`].
//! Threads that it starts meanwhile inherit the slice.
//!
//! Elsewhere than on Linux, on older kernels, for threads with a real-time, idle or batch policy, and in models, this
//! does nothing.
//!
//! # Invariants
//!
//! - **SLICE-1** Both calls concern the calling thread alone. The kernel reads and writes one `sched_attr`, which
//!   is on the stack and states its own size.

use core::marker::PhantomData;
use core::time::Duration;

/// The shortest slice that Linux grants.
const SHORTEST: Duration = Duration::from_micros(100);

/// Restores the time slice of its thread on drop.
#[derive(Debug)]
#[must_use = "the slice is restored when this is dropped"]
pub struct ShortSlice {
    /// The former slice.
    before: Option<Duration>,
    // It belongs to one thread.
    _stays_here: PhantomData<*const ()>,
}

/// Asks for the shortest time slice for the current thread until the guard is dropped.
///
/// ```
/// use millpond_raw::time_slice;
///
/// let _guard = time_slice::shorten();
/// // This thread gets a CPU sooner when it wakes up on a busy machine.
/// ```
pub fn shorten() -> ShortSlice {
    let before = os::get().filter(|&slice| slice > SHORTEST && os::set(SHORTEST));
    ShortSlice {
        before,
        _stays_here: PhantomData,
    }
}

impl Drop for ShortSlice {
    fn drop(&mut self) {
        if let Some(before) = self.before {
            let _ = os::set(before);
        }
    }
}

#[cfg(all(
    target_os = "linux",
    not(any(millpond_loom, millpond_shuttle, millpond_portable))
))]
mod os {
    use core::mem;
    use core::ptr;
    use core::time::Duration;

    const SIZE: u32 = mem::size_of::<libc::sched_attr>() as u32;

    /// The scheduling parameters of the calling thread, if the system tells.
    fn attributes() -> Option<libc::sched_attr> {
        let mut attributes = libc::sched_attr {
            size: SIZE,
            sched_policy: 0,
            sched_flags: 0,
            sched_nice: 0,
            sched_priority: 0,
            sched_runtime: 0,
            sched_deadline: 0,
            sched_period: 0,
        };
        let own = ptr::from_mut(&mut attributes);
        // SAFETY: SLICE-1 - thread 0 is the calling one, and the kernel writes no more than the size that it is told.
        let failed = unsafe { libc::syscall(libc::SYS_sched_getattr, 0, own, SIZE, 0) };
        (failed == 0).then_some(attributes)
    }

    /// The slice; `None` if the system has none for this thread.
    pub(super) fn get() -> Option<Duration> {
        let attributes = attributes()?;
        // Older kernels leave the field of this policy empty.
        let is_known =
            attributes.sched_policy == libc::SCHED_OTHER as u32 && attributes.sched_runtime > 0;
        is_known.then(|| Duration::from_nanos(attributes.sched_runtime))
    }

    /// Returns whether the system has accepted it.
    pub(super) fn set(slice: Duration) -> bool {
        let Some(mut attributes) = attributes() else {
            return false;
        };
        attributes.size = SIZE;
        attributes.sched_runtime = slice.as_nanos() as u64;
        let own = ptr::from_ref(&attributes);
        // SAFETY: SLICE-1 - thread 0 is the calling one, and the kernel reads no more than the size in the first field.
        unsafe { libc::syscall(libc::SYS_sched_setattr, 0, own, 0) == 0 }
    }
}

#[cfg(not(all(
    target_os = "linux",
    not(any(millpond_loom, millpond_shuttle, millpond_portable))
)))]
mod os {
    use core::time::Duration;

    pub(super) fn get() -> Option<Duration> {
        None
    }

    pub(super) fn set(_slice: Duration) -> bool {
        false
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

    /// Where the kernel has no slices, both are `None`.
    #[test]
    fn the_slice_is_short_until_the_guard_drops_and_other_threads_keep_theirs() {
        let here = os::get();
        let there = thread::spawn(|| {
            let guard = shorten();
            let during = os::get();
            drop(guard);
            (during, os::get())
        });
        let (during, after) = there.join().unwrap();
        assert_eq!(during, here.map(|slice| slice.min(SHORTEST)));
        assert_eq!(after, here, "it is restored");
        assert_eq!(os::get(), here, "other threads are not affected");
    }
}
