//! Scheduled pools, on a manual clock wherever time matters.

#![cfg(not(any(millpond_loom, millpond_shuttle)))]
#![allow(
    clippy::disallowed_types,
    reason = "a test stands outside: it uses std's locks beside what it tests"
)]

#[path = "../proptest_kit/mod.rs"]
mod proptest_kit;

mod books;
mod calendar;
mod dispatcher;
mod ends;
mod events;
mod failures;
mod kit;
mod leader;
mod modes;
mod once;
mod own_pool;
mod picture;
mod stop;
