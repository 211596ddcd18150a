//! A histogram of durations that one thread writes and any thread may read.
//!
//! # Buckets
//!
//! Log-linear: the nanoseconds from one power of two to the next are one *octave*, and each octave is divided
//! into 16 buckets of the same width. So a bucket is never wider than a sixteenth of its values, from
//! one nanosecond to centuries.
//!
//! ```text
//!  0 1 2 ... 15 | 16 17 ... 31 | 32 34 ... 62 | 64 68 ... 124 | ...
//!   one each    |   one each   |   two each   |   four each   |
//! ```
//!
//! Most histograms use only a few octaves. The memory of an octave is allocated with its first value,
//! so an empty histogram has half a kilobyte, and each octave in use an eighth of one.

use super::{Count, Distribution};
use millpond_raw::once_box::OnceBox;

/// Buckets in an octave.
pub(super) const SPLIT: usize = 16;
const SPLIT_BITS: u32 = SPLIT.trailing_zeros();
/// The first octave has all values below [`SPLIT`].
pub(super) const OCTAVES: usize = 64 - SPLIT_BITS as usize + 1;

type Octave = [Count; SPLIT];

/// The durations that one thread has measured.
#[derive(Debug)]
pub(crate) struct Histogram {
    sum: Count,
    /// A power of two, so that the compiler needs no bounds check.
    octaves: [OnceBox<Octave>; OCTAVES.next_power_of_two()],
}

impl Histogram {
    pub(crate) fn new() -> Self {
        Histogram {
            octaves: std::array::from_fn(|_| OnceBox::new()),
            sum: Count::default(),
        }
    }

    /// Adds a value. Only the owner calls it.
    #[inline]
    pub(crate) fn add(&self, nanos: u64) {
        let (octave, bucket) = bucket_of(nanos);
        // By a manual clock every task may wait for years.
        self.sum.saturating_add(nanos);
        let octave = octave % self.octaves.len();
        let octave = match self.octaves[octave].get() {
            Some(octave) => octave,
            None => self.allocate(octave),
        };
        octave[bucket].add(1);
    }

    #[cold]
    fn allocate(&self, octave: usize) -> &Octave {
        self.octaves[octave].get_or_init(Octave::default)
    }

    /// Moves all values to another histogram of the same owner.
    pub(crate) fn move_to(&self, other: &Histogram) {
        for (number, counts) in self.octaves.iter().enumerate() {
            let Some(counts) = counts.get() else { continue };
            let others = other.octaves[number].get();
            let others = others.unwrap_or_else(|| other.allocate(number));
            for (count, other) in counts.iter().zip(others) {
                other.add(count.take());
            }
        }
        other.sum.add(self.sum.take());
    }

    /// Adds all values to a distribution.
    pub(crate) fn add_to(&self, all: &mut Distribution) {
        for (octave, counts) in self.octaves.iter().enumerate() {
            let Some(counts) = counts.get() else { continue };
            for (bucket, count) in counts.iter().enumerate() {
                all.add_many(octave * SPLIT + bucket, count.get());
            }
        }
        all.add_sum(self.sum.get());
    }
}

/// Octave and bucket of a value.
#[inline]
pub(super) fn bucket_of(nanos: u64) -> (usize, usize) {
    // The buckets of the first two octaves have one value each.
    let highest = 63 - (nanos | SPLIT as u64).leading_zeros();
    let width_bits = highest - SPLIT_BITS;
    let number = width_bits as usize * SPLIT + (nanos >> width_bits) as usize;
    (number / SPLIT, number % SPLIT)
}

/// The smallest and the largest value of a bucket, by its number.
pub(super) fn bounds(number: usize) -> (u64, u64) {
    let (octave, bucket) = (number / SPLIT, (number % SPLIT) as u64);
    if octave == 0 {
        return (bucket, bucket);
    }
    let width_bits = octave as u32 - 1;
    let low = (SPLIT as u64 + bucket) << width_bits;
    (low, low + ((1 << width_bits) - 1))
}

#[cfg(all(test, not(any(millpond_loom, millpond_shuttle))))]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn buckets_are_adjacent_from_zero_to_the_largest_duration() {
        let mut next = 0;
        for number in 0..OCTAVES * SPLIT {
            let (low, high) = bounds(number);
            assert_eq!(low, next, "bucket {number}");
            assert!(
                high - low <= low / SPLIT as u64,
                "bucket {number} is too wide"
            );
            for value in [low, high] {
                let (octave, bucket) = bucket_of(value);
                assert_eq!(octave * SPLIT + bucket, number, "{value}");
            }
            next = high.wrapping_add(1);
        }
        assert_eq!(next, 0, "the last bucket ends where u64 does");
    }

    #[test]
    fn the_sum_of_centuries_saturates() {
        let histogram = Histogram::new();
        for nanos in [u64::MAX - 1, u64::MAX, 7] {
            histogram.add(nanos);
        }
        let mut all = Distribution::new();
        histogram.add_to(&mut all);
        assert_eq!(all.count(), 3);
        assert_eq!(all.total().as_nanos(), u128::from(u64::MAX));
        assert_eq!(all.max().as_nanos(), u128::from(u64::MAX));
    }

    proptest! {
        #![proptest_config(crate::proptest_kit::config(256))]

        /// Against the exact values, sorted.
        #[test]
        fn percentiles_are_those_of_the_exact_values_up_to_a_bucket(
            values in prop::collection::vec(0_u64..1 << 40, 1..300),
            per_mille in 0_u32..=1000,
        ) {
            let histogram = Histogram::new();
            values.iter().for_each(|value| histogram.add(*value));
            let mut all = Distribution::new();
            histogram.add_to(&mut all);
            let mut sorted = values;
            sorted.sort_unstable();
            let rank = (sorted.len() * per_mille as usize).div_ceil(1000).max(1);
            let exact = sorted[rank - 1];
            let told = all.quantile(f64::from(per_mille) / 1000.0).as_nanos() as u64;
            let (low, high) = {
                let (octave, bucket) = bucket_of(exact);
                bounds(octave * SPLIT + bucket)
            };
            prop_assert!((low..=high).contains(&told), "{} is told as {}", exact, told);
            prop_assert_eq!(all.count(), sorted.len() as u64);
            let sum: u64 = sorted.iter().sum();
            prop_assert_eq!(all.mean().as_nanos() as u64, sum / sorted.len() as u64);
        }
    }
}
