//! Fresh seeds: the one place of the house that draws from the system's entropy.

use std::hash::{BuildHasher, RandomState};

/// A seed that nobody has seen yet, short enough to be typed.
pub(super) fn seed() -> u64 {
    RandomState::new().hash_one("fresh") >> 16
}
