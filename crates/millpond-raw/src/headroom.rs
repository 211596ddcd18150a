//! How much of the present thread's stack is left.
//!
//! For code that runs other code nested in itself, and would rather do something else than run into
//! the end of the stack, which is the end of the process.
//!
//! # Invariants
//!
//! - **Z1** The thread asks about itself, and what it asks into are locals of its own, initialised by
//!   the call that succeeds before they are read, and destroyed once.

/// A thread's stack, as it is now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stack {
    /// How many bytes it has.
    pub size: usize,
    /// How many of them are left.
    pub left: usize,
}

/// The present thread's stack; `None` where the platform does not say.
///
/// ```
/// if let Some(stack) = millpond_raw::headroom::here() {
///     assert!(stack.left < stack.size);
/// }
/// ```
pub fn here() -> Option<Stack> {
    let (lowest, size) = which::bounds()?;
    let local = 0_u8;
    let now = (&raw const local).addr();
    let left = now.checked_sub(lowest)?;
    (left <= size).then_some(Stack { size, left })
}

#[cfg(all(target_os = "linux", not(any(millpond_loom, millpond_shuttle))))]
mod which {
    use crate::sync::local;
    use core::cell::Cell;
    use core::mem::MaybeUninit;

    local! {
        /// What was asked once does not change; 0 and 0 if nobody has asked.
        static BOUNDS: Cell<(usize, usize)> = Cell::new((0, 0));
    }

    /// The lowest address, and the size.
    pub(super) fn bounds() -> Option<(usize, usize)> {
        let known = BOUNDS.try_with(Cell::get).ok()?;
        if known.1 != 0 {
            return Some(known);
        }
        let asked = ask()?;
        let _ = BOUNDS.try_with(|bounds| bounds.set(asked));
        Some(asked)
    }

    fn ask() -> Option<(usize, usize)> {
        let mut attributes = MaybeUninit::<libc::pthread_attr_t>::uninit();
        // SAFETY: Z1 - it asks nothing but who we are.
        let this = unsafe { libc::pthread_self() };
        // SAFETY: Z1 - about this very thread, into a local.
        let failed = unsafe { libc::pthread_getattr_np(this, attributes.as_mut_ptr()) };
        if failed != 0 {
            return None;
        }
        let (mut lowest, mut size) = (core::ptr::null_mut(), 0);
        // SAFETY: Z1 - initialised by the call above, and the places are locals.
        let failed = unsafe {
            libc::pthread_attr_getstack(attributes.as_ptr(), &raw mut lowest, &raw mut size)
        };
        // SAFETY: Z1 - initialised by the first call, and not used again.
        unsafe { libc::pthread_attr_destroy(attributes.as_mut_ptr()) };
        (failed == 0 && size > 0).then(|| (lowest.addr(), size))
    }
}

#[cfg(not(all(target_os = "linux", not(any(millpond_loom, millpond_shuttle)))))]
mod which {
    /// Nobody says, or the threads are a checker's.
    pub(super) fn bounds() -> Option<(usize, usize)> {
        None
    }
}

// Address sanitizer has locals elsewhere, and then nobody knows.
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
            0 => here().expect("linux says").left,
            _ => deeper(levels - 1),
        };
        black_box(&ballast);
        left
    }

    #[test]
    fn what_is_used_is_not_left() {
        let size = 1 << 20;
        let thread = thread::start(None, Some(size), move || {
            let stack = here().expect("linux says");
            // The system may have a larger one at hand, from a thread that has ended.
            assert!(stack.size >= size);
            assert!(stack.left > size / 2 && stack.left < stack.size);
            let used = stack.left - deeper(100);
            assert!((100_000..size / 2).contains(&used), "{used}");
        });
        thread.unwrap().join().unwrap();
    }
}
