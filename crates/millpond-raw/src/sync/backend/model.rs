//! The checkers: loom explores every interleaving of a small model, with the orderings of the C++ memory
//! model; shuttle explores random and PCT schedules, with sequentially consistent memory. They offer the same
//! items under the same names, except cells, which only loom checks.

#![allow(
    clippy::disallowed_types,
    clippy::disallowed_methods,
    reason = "this is the seam"
)]

#[cfg(millpond_loom)]
#[doc(hidden)]
pub use ::loom as __checker;
#[cfg(millpond_shuttle)]
#[doc(hidden)]
pub use ::shuttle as __checker;

#[cfg(millpond_shuttle)]
pub use super::cell::{ConstPtr, MutPtr, UnsafeCell};
#[cfg(millpond_loom)]
pub use ::loom::cell::{ConstPtr, MutPtr, UnsafeCell};

pub use __checker::hint;

/// Atomics, orderings and fences.
pub mod atomic {
    pub use super::__checker::sync::atomic::{
        AtomicBool, AtomicI64, AtomicPtr, AtomicU8, AtomicU32, AtomicU64, AtomicUsize, Ordering,
        fence,
    };
}

/// Threads.
pub mod thread {
    pub use super::__checker::thread::{
        Builder, JoinHandle, Thread, ThreadId, current, spawn, yield_now,
    };
    pub use ::std::thread::panicking;

    /// Starts a thread; a model has no stacks to size.
    ///
    /// # Errors
    ///
    /// Never: models that need a failing start use a factory that fails.
    pub fn start<T: Send + 'static>(
        name: Option<String>,
        _stack_size: Option<usize>,
        f: impl FnOnce() -> T + Send + 'static,
    ) -> std::io::Result<JoinHandle<T>> {
        match name {
            Some(name) => Builder::new().name(name).spawn(f),
            None => Ok(spawn(f)),
        }
    }
}

/// Declares a thread-local value.
#[doc(hidden)]
#[macro_export]
macro_rules! __millpond_local {
    ($(#[$attr:meta])* $vis:vis static $name:ident: $kind:ty = $initial:expr;) => {
        $crate::sync::__checker::thread_local! {
            $(#[$attr])*
            $vis static $name: $kind = $initial;
        }
    };
}

/// Declares a static that all threads of a model share.
#[doc(hidden)]
#[macro_export]
macro_rules! __millpond_global {
    ($(#[$attr:meta])* static $name:ident: $kind:ty = $initial:expr;) => {
        $crate::sync::__checker::lazy_static! {
            $(#[$attr])*
            static ref $name: $kind = $initial;
        }
    };
}

pub use crate::__millpond_global as global;
pub use crate::__millpond_local as local;
