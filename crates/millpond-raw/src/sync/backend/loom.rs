//! loom: every interleaving of a small model, with the orderings of the C++ memory model.

#![allow(
    clippy::disallowed_types,
    clippy::disallowed_methods,
    reason = "this is the seam"
)]

pub use ::loom::cell::{ConstPtr, MutPtr, UnsafeCell};
pub use ::loom::hint;

#[doc(hidden)]
pub use ::loom as __loom;

/// Atomics, orderings and fences.
pub mod atomic {
    pub use ::loom::sync::atomic::{
        AtomicBool, AtomicI64, AtomicPtr, AtomicU8, AtomicU32, AtomicU64, AtomicUsize, Ordering,
        fence,
    };
}

/// Threads.
pub mod thread {
    pub use ::loom::thread::{JoinHandle, Thread, ThreadId, current, spawn, yield_now};
    pub use ::std::thread::panicking;

    /// Starts a thread; a model has no stacks to size.
    ///
    /// # Errors
    ///
    /// Never: models that need a failing one bring a factory that fails.
    pub fn start<T: Send + 'static>(
        name: Option<String>,
        _stack_size: Option<usize>,
        f: impl FnOnce() -> T + Send + 'static,
    ) -> std::io::Result<JoinHandle<T>> {
        match name {
            Some(name) => ::loom::thread::Builder::new().name(name).spawn(f),
            None => Ok(spawn(f)),
        }
    }
}

/// Declares a thread-local value.
#[doc(hidden)]
#[macro_export]
macro_rules! __millpond_local {
    ($(#[$attr:meta])* $vis:vis static $name:ident: $kind:ty = $initial:expr;) => {
        $crate::sync::__loom::thread_local! {
            $(#[$attr])*
            $vis static $name: $kind = $initial;
        }
    };
}

pub use crate::__millpond_local as local;
