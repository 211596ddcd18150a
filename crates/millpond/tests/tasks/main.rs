//! What tasks and clocks promise, on real threads and a manual clock.

#![cfg(not(any(millpond_loom, millpond_shuttle)))]
#![allow(
    clippy::disallowed_types,
    clippy::disallowed_methods,
    reason = "a test stands outside: it uses std's threads, clocks and channels beside what it tests"
)]

mod alarm;
mod expiry;
mod finish;
mod handle;
mod scope_future;
