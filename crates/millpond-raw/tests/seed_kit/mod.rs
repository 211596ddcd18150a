//! The one seed of everything that tests draw at random.
//!
//! It is fixed: `cargo test` and `cargo xtask test` draw the same on every machine, today and
//! tomorrow, so what was green stays green until the code changes. Fresh seeds belong to
//! `cargo xtask soak`, which sets `MILLPOND_SEED`, prints it, and has time.
//!
//! `cargo xtask seeds` rejects every other source of randomness in tests.

#![allow(
    dead_code,
    reason = "each test program is a crate of its own and uses a part of this"
)]

/// Any number would do; it only has to stay.
const SEED: u64 = 20_261_117;

/// The seed of this run: the fixed one, or `MILLPOND_SEED`.
pub(crate) fn seed() -> u64 {
    number("MILLPOND_SEED").unwrap_or(SEED)
}

/// The number in a variable of the environment, if it is set.
pub(crate) fn number(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok()?;
    match text.parse() {
        Ok(number) => Some(number),
        Err(_) => panic!("{name} is `{text}`: give it a whole number below 2^64"),
    }
}
