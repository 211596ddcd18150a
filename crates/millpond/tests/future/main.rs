//! Completable results.

#![cfg(not(any(millpond_loom, millpond_shuttle)))]
#![allow(
    clippy::disallowed_types,
    clippy::disallowed_methods,
    reason = "a test stands outside: it uses std's threads and locks beside what it tests"
)]

#[path = "../graph_kit/mod.rs"]
mod graph_kit;
#[path = "../proptest_kit/mod.rs"]
mod proptest_kit;

mod bridges;
mod graphs;
mod linked;
mod random;
mod select;
mod small;
mod watching;
