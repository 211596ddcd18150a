//! The Sync seam: atomics, locks, cells and threads under one name, whatever checks them.
//!
//! All code of millpond takes its primitives from here and from nowhere else (`clippy.toml` forbids the std
//! ones), so the same source runs under four backends:
//!
//! | backend | switch | what it checks |
//! |---|---|---|
//! | std | none | nothing: this is what users run |
//! | loom | `--cfg millpond_loom` | every interleaving of a small model, weak memory included |
//! | shuttle | `--cfg millpond_shuttle` | random and PCT schedules of whole protocols |
//! | chaos | `--cfg millpond_chaos` | std with seeded random yields at labelled points ([`chaos`]) |
//!
//! `--cfg millpond_traffic` goes with std, too: it records every access, to count what a task costs on a
//! machine with more cores ([`traffic`]).
//!
//! With the feature `probe` thread starts can be made to fail from outside, see `exhaust`.
//!
//! `--cfg millpond_portable` goes with std: it selects the futex of platforms without one, so that the
//! fallback is built and tested on Linux too.
//!
//! | file | what |
//! |---|---|
//! | `backend` | the primitives of std, loom and shuttle |
//! | `futex` | a word to sleep on |
//! | `lock` | the mutex |
//! | `biased` | a lock that is nearly free for one thread |
//! | `fences` | fences of which one side is free |
//! | `chaos` | seeded random yields |
//! | `exhaust` | failures of thread starts on demand |
//! | `traffic` | a record of every access |
//!
//! # What is ours
//!
//! [`Mutex`] and the parkers of [`crate::park`] are built on [`Futex`], a 32-bit word to sleep on. Reasons:
//! std's mutex is not instrumented and gives false races under a thread sanitizer; its condition variable
//! makes a system call per notify even without a waiter; and a checker can only explore what it can see.
//! Under loom and shuttle the futex is a model (a lock and a condition variable of the checker), while lock
//! and parker are the very code users run.
//!
//! `Arc` is std's: its protocol is not ours to prove, and wakers are made of it.

#[cfg(all(millpond_loom, millpond_shuttle))]
compile_error!("millpond_loom and millpond_shuttle are two backends: choose one");

/// A function that is `const`, except under checkers, whose primitives belong to one run of a model.
macro_rules! const_outside_models {
    ($(#[$attr:meta])* $vis:vis fn $name:ident($($arg:ident: $kind:ty)?) -> $made:ty $body:block) => {
        $(#[$attr])*
        #[cfg(not(any(millpond_loom, millpond_shuttle)))]
        $vis const fn $name($($arg: $kind)?) -> $made $body

        $(#[$attr])*
        #[cfg(any(millpond_loom, millpond_shuttle))]
        $vis fn $name($($arg: $kind)?) -> $made $body
    };
}

pub(crate) use const_outside_models;

mod backend;
mod biased;
pub mod chaos;
#[cfg(all(
    any(test, feature = "probe"),
    not(any(millpond_loom, millpond_shuttle))
))]
pub mod exhaust;
mod fences;
pub(crate) mod futex;
mod lock;
pub mod traffic;

#[cfg(any(millpond_loom, millpond_shuttle))]
#[doc(hidden)]
pub use backend::__checker;
pub use backend::{ConstPtr, MutPtr, UnsafeCell, atomic, global, hint, local, thread};
pub use biased::{BiasKey, BiasedMutex, CALM};
pub use futex::{Futex, Woken};
#[allow(unused_imports, reason = "only where processes fork")]
pub(crate) use lock::RawLock;
pub use lock::{Mutex, MutexGuard};

/// Whether a checker runs this. Then a panic is a failed model on its way to the checker, which must not be
/// caught, and nothing aborts the process.
pub(crate) const IN_MODEL: bool = cfg!(any(millpond_loom, millpond_shuttle));

/// How often a waiter spins before it sleeps. Models do not spin: it multiplies schedules that do not differ.
pub const fn spins() -> u32 {
    if IN_MODEL { 0 } else { 64 }
}
