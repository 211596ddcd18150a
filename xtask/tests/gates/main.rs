//! Every gate fails on a planted violation and passes on the clean twin.
//!
//! Each test builds a small tree of its own in a temporary folder. One program for all of them, so
//! that the gates are linked once.
#![forbid(unsafe_code)]

mod cargo_gates;
mod exhaustion;
mod file_tables;
mod ids;
mod layers;
mod ledger;
mod links;
mod names;
mod orderings;
mod runs;
mod seeds;
mod tree;
mod user_code;
mod weaken;
