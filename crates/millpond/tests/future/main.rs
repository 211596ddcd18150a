//! Completable results.

#[path = "../proptest_kit/mod.rs"]
mod proptest_kit;

mod graphs;
mod small;
