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

    #[cfg(millpond_shuttle)]
    use super::refused;
    #[cfg(millpond_shuttle)]
    pub use super::refused::{is_any_refused, refuse};

    /// Starts a thread; a model has no stacks to size.
    ///
    /// # Errors
    ///
    /// Its name was refused. Models that need failing starts of a factory's threads use a factory that fails.
    pub fn start<T: Send + 'static>(
        name: Option<String>,
        _stack_size: Option<usize>,
        f: impl FnOnce() -> T + Send + 'static,
    ) -> std::io::Result<JoinHandle<T>> {
        #[cfg(millpond_shuttle)]
        if name.as_deref().is_some_and(refused::is_refused) {
            return Err(std::io::ErrorKind::WouldBlock.into());
        }
        match name {
            Some(name) => Builder::new().name(name).spawn(f),
            None => Ok(spawn(f)),
        }
    }
}

/// Threads of the library's own that a model refuses.
#[cfg(millpond_shuttle)]
mod refused {
    use std::sync::{Mutex, PoisonError};

    ::shuttle::lazy_static! {
        /// Of the present execution. It is std's, so that the checker does not branch on it.
        static ref PREFIXES: Mutex<Vec<&'static str>> = Mutex::new(Vec::new());
    }

    fn with<R>(f: impl FnOnce(&mut Vec<&'static str>) -> R) -> R {
        f(&mut PREFIXES.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// From now on threads whose names begin like this cannot be started, in this execution of the model.
    pub fn refuse(prefix: &'static str) {
        with(|prefixes| prefixes.push(prefix));
    }

    /// Whether this execution of the model refuses threads.
    pub fn is_any_refused() -> bool {
        with(|prefixes| !prefixes.is_empty())
    }

    pub(super) fn is_refused(name: &str) -> bool {
        with(|prefixes| prefixes.iter().any(|prefix| name.starts_with(prefix)))
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
