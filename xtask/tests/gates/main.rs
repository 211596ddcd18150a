//! Every gate falls when a violation is planted, and stands on the clean twin.
//!
//! Each test builds a small tree of its own in a temporary folder. One program for all of them, so
//! that the gates are linked once.
#![forbid(unsafe_code)]

mod cargo_gates;
mod exhaustion;
mod layers;
mod ledger;
mod links;
mod orderings;
mod runs;
mod seeds;
mod tree;
mod user_code;
mod weaken;
