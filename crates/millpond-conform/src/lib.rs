//! Behaviour suites: what every implementation of a trait of millpond must do, written once.
//!
//! | where | what |
//! |---|---|
//! | [`kit`] | devices for honest race tests: delays, parked actors, latches, sinks, watchdogs, stress |
//! | [`suites`] | the behaviours; a suite is a macro, and each implementation asks for it in a line |
//! | [`differential`] | scripts played on Java's thread pool and on ours; `java/` is Java's player |
//! | [`chaos`] | everything at once on the pool, and books that must balance |
//! | [`programs`] | random programs with many engines at once, and books that must balance |
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
//! | `MILLPOND_DELAY_FACTOR` | multiplies every delay and patience; raise it on slow machines |
//! | `MILLPOND_EXHAUST` | what the process is short of, such as `threads:0`: `docs/hacking.md` |
//! | `MILLPOND_STRESS_ROUNDS` | how many rounds a stress test runs |
//! | `MILLPOND_STRESS_SEED` | the seed of the stress tests; a failure prints the one it had |
//! | `MILLPOND_SEED`, `MILLPOND_CASES` | the seed of what proptest draws, and how many cases |

#![forbid(unsafe_code)]
#![allow(
    clippy::disallowed_types,
    clippy::disallowed_methods,
    reason = "a test kit stands outside what it tests: it uses std's threads, locks and clocks beside it"
)]

pub mod chaos;
pub mod coverage;
pub mod differential;
pub mod kit;
pub mod programs;
pub mod suites;
