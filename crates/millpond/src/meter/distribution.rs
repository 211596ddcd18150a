//! The sum of histograms.

use super::histogram::{OCTAVES, SPLIT, bounds, bucket_of};
use std::fmt;
use std::time::Duration;

/// A distribution of durations: count, mean and percentiles.
///
/// A percentile is exact to a sixteenth: durations are counted in buckets of that width. Count and mean
/// are exact.
///
/// ```
/// use millpond::executor::{ExecutorExt, Lifecycle};
/// use millpond::pool::ThreadPool;
///
/// let pool = ThreadPool::builder("mill").core(1).build()?;
/// pool.submit(|| 7)?.join()?;
/// pool.close()?;
/// let run = pool.metrics().run;
/// assert_eq!(run.count(), 1);
/// println!("median {:?}, p99 {:?}, worst {:?}", run.quantile(0.5), run.quantile(0.99), run.max());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct Distribution {
    buckets: Vec<u64>,
    count: u64,
    sum: u128,
}

impl Distribution {
    /// An empty distribution.
    ///
    /// ```
    /// use millpond::meter::Distribution;
    ///
    /// assert_eq!(Distribution::new().count(), 0);
    /// ```
    pub fn new() -> Self {
        Distribution {
            buckets: Vec::new(),
            count: 0,
            sum: 0,
        }
    }

    /// Adds one duration.
    ///
    /// ```
    /// use millpond::meter::Distribution;
    /// use std::time::Duration;
    ///
    /// let mut trips = Distribution::new();
    /// trips.add(Duration::from_millis(3));
    /// assert_eq!((trips.count(), trips.total()), (1, Duration::from_millis(3)));
    /// ```
    pub fn add(&mut self, duration: Duration) {
        let nanos = u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
        let (octave, bucket) = bucket_of(nanos);
        self.add_many(octave * SPLIT + bucket, 1);
        self.add_sum(nanos);
    }

    /// Adds all durations of another distribution.
    ///
    /// ```
    /// use millpond::meter::Distribution;
    /// use std::time::Duration;
    ///
    /// let (mut north, mut south) = (Distribution::new(), Distribution::new());
    /// north.add(Duration::from_millis(1));
    /// south.add(Duration::from_millis(3));
    /// north.merge(&south);
    /// assert_eq!((north.count(), north.mean()), (2, Duration::from_millis(2)));
    /// ```
    pub fn merge(&mut self, other: &Distribution) {
        for (number, count) in other.buckets.iter().enumerate() {
            self.add_many(number, *count);
        }
        self.sum = self.sum.saturating_add(other.sum);
    }

    pub(super) fn add_many(&mut self, number: usize, count: u64) {
        if count == 0 {
            return;
        }
        if self.buckets.is_empty() {
            self.buckets = vec![0; OCTAVES * SPLIT];
        }
        let bucket = &mut self.buckets[number];
        *bucket = bucket.saturating_add(count);
        self.count = self.count.saturating_add(count);
    }

    pub(super) fn add_sum(&mut self, nanos: u64) {
        self.sum = self.sum.saturating_add(u128::from(nanos));
    }

    /// The durations that were added since an earlier copy of this distribution.
    ///
    /// ```
    /// use millpond::meter::Distribution;
    /// use std::time::Duration;
    ///
    /// let mut trips = Distribution::new();
    /// trips.add(Duration::from_secs(1));
    /// let noon = trips.clone();
    /// trips.add(Duration::from_millis(3));
    /// let afternoon = trips.since(&noon);
    /// assert_eq!((afternoon.count(), afternoon.mean()), (1, Duration::from_millis(3)));
    /// ```
    #[must_use]
    pub fn since(&self, earlier: &Distribution) -> Distribution {
        let mut later = Distribution::new();
        for (number, count) in self.buckets.iter().enumerate() {
            let before = earlier.buckets.get(number).copied().unwrap_or(0);
            later.add_many(number, count.saturating_sub(before));
        }
        later.sum = self.sum.saturating_sub(earlier.sum);
        later
    }

    /// How many durations were added.
    ///
    /// ```
    /// use millpond::meter::Distribution;
    /// use std::time::Duration;
    ///
    /// let mut trips = Distribution::new();
    /// (1..=10).for_each(|n| trips.add(Duration::from_millis(n)));
    /// assert_eq!(trips.count(), 10);
    /// ```
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Their sum.
    ///
    /// ```
    /// use millpond::meter::Distribution;
    /// use std::time::Duration;
    ///
    /// let mut trips = Distribution::new();
    /// (1..=10).for_each(|n| trips.add(Duration::from_millis(n)));
    /// assert_eq!(trips.total(), Duration::from_millis(55));
    /// ```
    pub fn total(&self) -> Duration {
        let nanos = u64::try_from(self.sum).unwrap_or(u64::MAX);
        Duration::from_nanos(nanos)
    }

    /// Their mean; 0 if there are none.
    ///
    /// ```
    /// use millpond::meter::Distribution;
    /// use std::time::Duration;
    ///
    /// let mut trips = Distribution::new();
    /// assert_eq!(trips.mean(), Duration::ZERO);
    /// (1..=3).for_each(|n| trips.add(Duration::from_millis(n)));
    /// assert_eq!(trips.mean(), Duration::from_millis(2));
    /// ```
    pub fn mean(&self) -> Duration {
        match self.count {
            0 => Duration::ZERO,
            count => {
                let nanos = self.sum / u128::from(count);
                Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
            }
        }
    }

    /// The duration that this share of them does not exceed: 0.5 for the median, 0.99 for p99. 0 if there
    /// are none.
    ///
    /// ```
    /// use millpond::meter::Distribution;
    /// use std::time::Duration;
    ///
    /// let mut trips = Distribution::new();
    /// (1..=1000).for_each(|n| trips.add(Duration::from_micros(n)));
    /// let p99 = trips.quantile(0.99).as_micros();
    /// assert!((990 - 990 / 16..=990 + 990 / 16).contains(&p99), "{p99}");
    /// ```
    #[doc(alias = "percentile")]
    pub fn quantile(&self, share: f64) -> Duration {
        let share = if share.is_nan() {
            1.0
        } else {
            share.clamp(0.0, 1.0)
        };
        // Rounding errors of the product must not raise the rank.
        let rank = (share * self.count as f64 - 1e-6).ceil().max(1.0) as u64;
        let mut seen = 0_u64;
        for (number, count) in self.buckets.iter().enumerate() {
            seen = seen.saturating_add(*count);
            if *count > 0 && seen >= rank {
                let (low, high) = bounds(number);
                return Duration::from_nanos(low + (high - low) / 2);
            }
        }
        self.max()
    }

    /// The longest duration, rounded up to the end of its bucket; 0 if there are none.
    ///
    /// ```
    /// use millpond::meter::Distribution;
    /// use std::time::Duration;
    ///
    /// let mut trips = Distribution::new();
    /// trips.add(Duration::from_millis(3));
    /// let worst = trips.max();
    /// assert!(worst >= Duration::from_millis(3) && worst < Duration::from_millis(4));
    /// ```
    pub fn max(&self) -> Duration {
        let last = self.buckets.iter().rposition(|count| *count > 0);
        Duration::from_nanos(last.map_or(0, |number| bounds(number).1))
    }

    /// The buckets that are not empty: the upper bound, inclusive, and the number of durations in the bucket.
    ///
    /// ```
    /// use millpond::meter::Distribution;
    /// use std::time::Duration;
    ///
    /// let mut trips = Distribution::new();
    /// [1, 1, 5].map(|n| trips.add(Duration::from_secs(n)));
    /// let counts: Vec<u64> = trips.buckets().map(|(_, count)| count).collect();
    /// assert_eq!(counts, [2, 1]);
    /// ```
    pub fn buckets(&self) -> impl Iterator<Item = (Duration, u64)> + '_ {
        let filled = self.buckets.iter().enumerate();
        filled
            .filter(|(_, count)| **count > 0)
            .map(|(number, count)| (Duration::from_nanos(bounds(number).1), *count))
    }
}

impl Default for Distribution {
    fn default() -> Self {
        Distribution::new()
    }
}

impl fmt::Debug for Distribution {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Distribution")
            .field("count", &self.count)
            .field("mean", &self.mean())
            .field("p50", &self.quantile(0.5))
            .field("p99", &self.quantile(0.99))
            .field("max", &self.max())
            .finish()
    }
}

#[cfg(all(test, not(any(millpond_loom, millpond_shuttle))))]
mod tests {
    use super::*;

    fn of(millis: &[u64]) -> Distribution {
        let mut all = Distribution::new();
        for millis in millis {
            all.add(Duration::from_millis(*millis));
        }
        all
    }

    fn is_about(told: Duration, millis: u64) -> bool {
        let exact = Duration::from_millis(millis);
        told.abs_diff(exact) <= exact / 16
    }

    #[test]
    fn an_empty_distribution_is_all_zeros() {
        let nothing = Distribution::new();
        let all = (
            nothing.count(),
            nothing.mean(),
            nothing.quantile(0.5),
            nothing.max(),
        );
        assert_eq!(all, (0, Duration::ZERO, Duration::ZERO, Duration::ZERO));
        assert_eq!(nothing.buckets().count(), 0);
    }

    #[test]
    fn durations_added_later_are_the_difference_and_add_up_again() {
        let early = of(&[1, 2, 3]);
        let mut both = early.clone();
        let late = of(&[100, 200]);
        both.merge(&late);
        assert_eq!(both.since(&early), late);
        assert_eq!(both.count(), 5);
        assert_eq!(both.mean(), Duration::from_micros(61_200));
        assert!(is_about(both.quantile(0.5), 3), "{both:?}");
        assert!(is_about(both.quantile(1.0), 200), "{both:?}");
        assert_eq!(both.total(), Duration::from_millis(306));
    }

    #[test]
    fn counts_saturate() {
        let mut all = of(&[1, 3, 1_000]);
        for _ in 0..200 {
            let twice = all.clone();
            all.merge(&twice);
        }
        assert_eq!(all.count(), u64::MAX);
        assert_eq!(all.total(), Duration::from_nanos(u64::MAX));
        assert!(is_about(all.quantile(0.1), 1), "{all:?}");
        assert!(is_about(all.max(), 1_000), "{all:?}");
        assert_eq!(all.since(&all).count(), 0);
    }

    #[test]
    fn a_share_out_of_range_is_clamped() {
        let some = of(&[1, 10]);
        assert_eq!(some.quantile(-1.0), some.quantile(0.0));
        assert_eq!(some.quantile(7.0), some.quantile(1.0));
        assert_eq!(some.quantile(f64::NAN), some.quantile(1.0));
    }
}
