//! What queues promise beyond the suites of `millpond-conform`, on real threads and beside a model.

#![cfg(not(any(millpond_loom, millpond_shuttle)))]
#![allow(
    clippy::disallowed_types,
    clippy::disallowed_methods,
    reason = "a test stands outside: it uses std's threads, clocks and channels beside what it tests"
)]

mod delay_async;
mod handoff;
#[path = "../handoff_kit/mod.rs"]
mod handoff_kit;
mod handoff_model;
mod handoff_stress;
mod transfer;
mod waiting;
