//! Fresh seeds, from the system's entropy.

use std::hash::{BuildHasher, RandomState};

/// A random seed, short enough to be typed.
pub(super) fn seed() -> u64 {
    RandomState::new().hash_one("fresh") >> 16
}
