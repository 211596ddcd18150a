//! What a pool does when more comes than it can do: who is shed, who comes first, and what is said.
//!
//! One worker, and time by hand: a task takes as long as it moves the clock, so whole overloads are
//! played to the millisecond.

#![allow(
    clippy::disallowed_types,
    clippy::disallowed_methods,
    reason = "a test stands outside: it uses std's locks beside what it tests"
)]

mod dropped;
mod mill;
mod neighbours;
mod order;
mod shed;
