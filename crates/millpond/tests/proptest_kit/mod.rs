//! How every proptest of the workspace is set up: from the one seed of the tests, without files.
//!
//! Proptest by itself draws a fresh seed for each run and keeps what failed in files beside the
//! source. Here the seed is that of `seed_kit`, and what failed once is kept by name, as a test or as
//! a script in `crates/millpond-conform/counterexamples`.

#![allow(
    dead_code,
    reason = "each test program is a crate of its own and uses a part of this"
)]

#[path = "../../../millpond-raw/tests/seed_kit/mod.rs"]
mod seed_kit;

use proptest::strategy::Strategy;
use proptest::test_runner::{Config, RngSeed, TestRunner};
use std::fmt::Debug;

pub(crate) use seed_kit::{number, seed};

/// Under a lock of ours: the first call makes proptest's defaults, and a thread sanitizer does not see how std's lazy
/// values order the others behind it. Models have no lock outside their runs, and no sanitizer.
fn defaults() -> Config {
    #[cfg(not(any(millpond_loom, millpond_shuttle)))]
    let _alone = {
        static ONE_AT_A_TIME: millpond_raw::sync::Mutex<()> = millpond_raw::sync::Mutex::new(());
        ONE_AT_A_TIME.lock()
    };
    Config::default()
}

/// So many cases, or `MILLPOND_CASES`, from the seed of this run.
pub(crate) fn config(cases: u32) -> Config {
    let cases = number("MILLPOND_CASES").map_or(cases, |cases| {
        u32::try_from(cases).expect("MILLPOND_CASES is below 2^32")
    });
    Config {
        cases,
        // What failed is printed; nothing is written into the tree, and nothing is read from it.
        failure_persistence: None,
        rng_seed: RngSeed::Fixed(seed()),
        ..defaults()
    }
}

/// Asks a question of so many cases. If it panics, the smallest case is printed, and how to have it
/// again.
#[track_caller]
pub(crate) fn ask<S: Strategy<Value: Debug>>(cases: u32, of: &S, question: impl Fn(S::Value)) {
    let config = config(cases);
    let cases = config.cases;
    let run = TestRunner::new(config).run(of, |case| {
        question(case);
        Ok(())
    });
    if let Err(failure) = run {
        let seed = seed();
        panic!("to run it again: MILLPOND_SEED={seed} MILLPOND_CASES={cases}\n{failure}");
    }
}
