//! std: what users run. Chaos runs on it too.
//!
//! Atomics and thread functions are thin wrappers and not re-exports, for two reasons: `clippy.toml` can then
//! tell ours from std's, which it forbids; and in chaos builds every atomic operation is a point of
//! disturbance.

#![allow(
    clippy::disallowed_types,
    clippy::disallowed_methods,
    reason = "this is the seam"
)]

pub mod atomic;

pub use super::cell::{ConstPtr, MutPtr, UnsafeCell};

/// Hints for spin loops.
pub mod hint {
    pub use std::hint::spin_loop;
}

/// Threads.
pub mod thread {
    pub use std::thread::{JoinHandle, Thread, ThreadId, current, panicking};

    /// Starts a thread with a name and a stack size; `None` means the platform's default.
    ///
    /// # Errors
    ///
    /// The operating system's error, or that the name contains a zero byte.
    pub fn start<T: Send + 'static>(
        name: Option<String>,
        stack_size: Option<usize>,
        f: impl FnOnce() -> T + Send + 'static,
    ) -> std::io::Result<JoinHandle<T>> {
        #[cfg(any(test, feature = "probe"))]
        let stack_size = crate::sync::exhaust::admit(name.as_deref(), stack_size)?;
        let mut builder = std::thread::Builder::new();
        if let Some(name) = name {
            if name.contains('\0') {
                return Err(std::io::Error::new(
                    std::io::ErrorKind::InvalidInput,
                    format!("thread name {name:?} contains a zero byte: leave it out"),
                ));
            }
            builder = builder.name(name);
        }
        if let Some(size) = stack_size {
            builder = builder.stack_size(size);
        }
        builder.spawn(f)
    }

    /// Starts a thread, or panics.
    pub fn spawn<T: Send + 'static>(f: impl FnOnce() -> T + Send + 'static) -> JoinHandle<T> {
        start(None, None, f).expect("the operating system starts a thread")
    }

    /// Yields to other threads.
    pub fn yield_now() {
        std::thread::yield_now();
    }
}

/// Declares a thread-local value with a constant initial value.
#[doc(hidden)]
#[macro_export]
macro_rules! __millpond_local {
    ($(#[$attr:meta])* $vis:vis static $name:ident: $kind:ty = $initial:expr;) => {
        ::std::thread_local! {
            $(#[$attr])*
            $vis static $name: $kind = const { $initial };
        }
    };
}

/// Declares a static, which checkers make anew for each run of a model.
#[doc(hidden)]
#[macro_export]
macro_rules! __millpond_global {
    ($(#[$attr:meta])* static $name:ident: $kind:ty = $initial:expr;) => {
        $(#[$attr])*
        static $name: $kind = $initial;
    };
}

pub use crate::__millpond_global as global;
pub use crate::__millpond_local as local;
