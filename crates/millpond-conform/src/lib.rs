//! Behaviour suites: what every implementation of a trait of millpond must do, written once.
//!
//! | where | what |
//! |---|---|
//! | [`kit`] | the crate `millpond-testkit`: devices for exact race tests: delays, parked actors, latches, sinks, watchdogs, stress |
//! | [`suites`] | the behaviours; a suite is a macro, and each implementation asks for it in a line |
//! | [`differential`] | scripts that run on Java's thread pool and on ours; `java/` is Java's player |
//! | [`chaos`] | all operations at once on the pool, and a ledger that must balance |
//! | [`programs`] | random programs with many engines at once, and ledgers that must balance |
//! | `tests/` | those lines, the tests of the kit, and the check of the coverage table |
//! | `rows/` | the behaviours by name, in our words, and why some do not apply to us |
//! | `COVERAGE.md` | which test holds which behaviour; generated, and checked by `tests/coverage.rs` |
//!
//! A body that holds rows says so in its documentation, in a line that begins with `Holds:`. After a
//! change, `MILLPOND_RENEW=1 cargo test -p millpond-conform --test coverage` writes the table anew.
//!
//! # Switches
//!
//! | variable | what it does |
//! |---|---|
//! | `MILLPOND_DELAY_FACTOR` | multiplies every delay and timeout; raise it on slow machines |
//! | `MILLPOND_EXHAUST` | what the process lacks, such as `threads:0`: `docs/testing.md` |
//! | `MILLPOND_STRESS_ROUNDS` | how many rounds a stress test runs |
//! | `MILLPOND_STRESS_SEED` | the seed of the stress tests; a failure prints the one it had |
//! | `MILLPOND_SEED`, `MILLPOND_CASES` | the seed of proptest, and the number of cases |

#![forbid(unsafe_code)]
#![allow(
    clippy::disallowed_types,
    clippy::disallowed_methods,
    reason = "a test kit stands outside what it tests: it uses std's threads, locks and clocks beside it"
)]

pub mod chaos;
pub mod coverage;
pub mod differential;
pub mod programs;
pub mod suites;

pub use millpond_testkit as kit;
