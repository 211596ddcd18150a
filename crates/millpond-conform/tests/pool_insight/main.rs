//! What a pool knows of itself: figures by name, what its workers do, what hangs, and what it says.

#![allow(
    clippy::disallowed_types,
    clippy::disallowed_methods,
    reason = "a test stands outside: it uses std's locks, and burns the time that it measures"
)]

mod metrics;
mod mill;
mod watched;
