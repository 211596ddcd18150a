//! How much of the current thread's stack is left.
//!
//! For code that runs other code nested in itself, and has an alternative to overflowing the stack, which
//! would end the process.
//!
//! # Invariants
//!
//! - **STACKSPACE-1** The thread asks about itself. The out-parameters are its own locals, initialised by a
//!   successful call before they are read, and destroyed once.

/// The stack of a thread at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StackSpace {
    /// Its size in bytes.
    pub size: usize,
    /// The bytes that are left.
    pub left: usize,
}

/// The current thread's stack; `None` where the platform does not say.
///
/// ```
/// if let Some(stack) = millpond_raw::stack_space::current() {
///     assert!(stack.left < stack.size);
/// }
/// ```
pub fn current() -> Option<StackSpace> {
    let (lowest, size) = which::bounds()?;
    let local = 0_u8;
    let now = (&raw const local).addr();
    let left = now.checked_sub(lowest)?;
    (left <= size).then_some(StackSpace { size, left })
}

#[cfg(all(target_os = "linux", not(any(millpond_loom, millpond_shuttle))))]
mod which {
    use crate::sync::local;
    use core::cell::Cell;
    use core::mem::MaybeUninit;

    local! {
        /// The bounds do not change, so they are cached; zeros until they are known.
        static BOUNDS: Cell<(usize, usize)> = Cell::new((0, 0));
    }

    /// The lowest address, and the size.
    pub(super) fn bounds() -> Option<(usize, usize)> {
        let known = BOUNDS.try_with(Cell::get).ok()?;
        if known.1 != 0 {
            return Some(known);
        }
        let queried = query()?;
        let _ = BOUNDS.try_with(|bounds| bounds.set(queried));
        Some(queried)
    }

    fn query() -> Option<(usize, usize)> {
        let mut attributes = MaybeUninit::<libc::pthread_attr_t>::uninit();
        // SAFETY: STACKSPACE-1 - it returns the current thread.
        let this = unsafe { libc::pthread_self() };
        // SAFETY: STACKSPACE-1 - about this thread, into a local.
        let failed = unsafe { libc::pthread_getattr_np(this, attributes.as_mut_ptr()) };
        if failed != 0 {
            return None;
        }
        let (mut lowest, mut size) = (core::ptr::null_mut(), 0);
        // SAFETY: STACKSPACE-1 - initialised by the call above; the out-parameters are locals.
        let failed = unsafe {
            libc::pthread_attr_getstack(attributes.as_ptr(), &raw mut lowest, &raw mut size)
        };
        // SAFETY: STACKSPACE-1 - initialised by the first call, and not used again.
        unsafe { libc::pthread_attr_destroy(attributes.as_mut_ptr()) };
        (failed == 0 && size > 0).then(|| (lowest.addr(), size))
    }
}

#[cfg(not(all(target_os = "linux", not(any(millpond_loom, millpond_shuttle)))))]
mod which {
    /// Unknown, or the threads are a checker's.
    pub(super) fn bounds() -> Option<(usize, usize)> {
        None
    }
}

// Address sanitizer keeps locals off the stack, so the answer is unknown there.
#[cfg(all(
    test,
    target_os = "linux",
    not(any(millpond_loom, millpond_shuttle, millpond_plain_memory))
))]
mod tests {
    use super::*;
    use crate::sync::thread;
    use core::hint::black_box;

    fn deeper(levels: usize) -> usize {
        let ballast = black_box([0_u8; 1000]);
        let left = match levels {
            0 => current().expect("Linux knows the bounds").left,
            _ => deeper(levels - 1),
        };
        black_box(&ballast);
        left
    }

    #[test]
    fn used_stack_is_not_left() {
        let size = 1 << 20;
        let thread = thread::start(None, Some(size), move || {
            let stack = current().expect("Linux knows the bounds");
            // The system may reuse a larger stack of a thread that has ended.
            assert!(stack.size >= size);
            assert!(stack.left > size / 2 && stack.left < stack.size);
            let used = stack.left - deeper(100);
            assert!((100_000..size / 2).contains(&used), "{used}");
        });
        thread.unwrap().join().unwrap();
    }
}
