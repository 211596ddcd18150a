//! From samples to figures.

use hdrhistogram::Histogram;
use serde::Serialize;

/// The figure of a candidate: the median of its rounds, and how far they spread.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Spread {
    /// The middle one; the mean of the two in the middle if their number is even.
    pub median: f64,
    /// The smallest.
    pub min: f64,
    /// The largest.
    pub max: f64,
}

impl Spread {
    /// The spread of `values`, in any order; `None` if there are none.
    ///
    /// ```
    /// use millpond_bench::stats::Spread;
    ///
    /// let spread = Spread::of(&[9.0, 1.0, 2.0, 4.0]).unwrap();
    /// assert_eq!((spread.median, spread.min, spread.max), (3.0, 1.0, 9.0));
    /// ```
    pub fn of(values: &[f64]) -> Option<Self> {
        let mut sorted = values.to_vec();
        sorted.sort_unstable_by(f64::total_cmp);
        let (&min, &max) = (sorted.first()?, sorted.last()?);
        let upper = sorted.len() / 2;
        let median = if sorted.len() % 2 == 1 {
            sorted[upper]
        } else {
            f64::midpoint(sorted[upper - 1], sorted[upper])
        };
        Some(Spread { median, min, max })
    }
}

/// The times of single operations, as far as they are known: all of them, or reported percentiles.
///
/// They are kept in an HDR histogram with three digits: a round may have millions.
/// (The histogram inside [`millpond`] is coarser, a sixteenth of a value, as befits a pool that never
/// stops counting; two peers that differ by a twentieth would look alike in it.)
#[derive(Clone, Debug, PartialEq)]
pub struct Quantiles(Known);

#[derive(Clone, Debug, PartialEq)]
enum Known {
    All(Histogram<u64>),
    Told(Told),
}

/// Reported percentiles.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Told {
    p50: u64,
    p99: u64,
    p999: Option<u64>,
    max: Option<u64>,
}

/// Significant digits of what is in a histogram.
const DIGITS: u8 = 3;

impl Quantiles {
    /// Of all `times`, in nanoseconds; `None` if there are none.
    ///
    /// ```
    /// use millpond_bench::stats::Quantiles;
    ///
    /// let times: Vec<u64> = (1..=200).rev().collect();
    /// let all = Quantiles::of(&times).unwrap();
    /// assert_eq!((all.p50(), all.p99()), (100, 198));
    /// assert_eq!((all.p999(), all.max()), (Some(200), Some(200)));
    /// ```
    pub fn of(times: &[u64]) -> Option<Self> {
        let mut all = Histogram::new(DIGITS).ok()?;
        for &time in times {
            // It grows with what it gets, up to centuries: nothing is too long for it.
            all.record(time).ok()?;
        }
        (!all.is_empty()).then_some(Quantiles(Known::All(all)))
    }

    /// Of operations that were timed elsewhere, in nanoseconds.
    pub fn told(p50: u64, p99: u64) -> Self {
        Self::told_with_tail(p50, p99, None, None)
    }

    /// The same, with those that are slower still as far as they are reported.
    pub fn told_with_tail(p50: u64, p99: u64, p999: Option<u64>, max: Option<u64>) -> Self {
        Quantiles(Known::Told(Told {
            p50,
            p99,
            p999,
            max,
        }))
    }

    /// Half of them are no slower than this.
    pub fn p50(&self) -> u64 {
        match &self.0 {
            Known::All(all) => at(all, 500),
            Known::Told(told) => told.p50,
        }
    }

    /// 99 of 100 are no slower than this.
    pub fn p99(&self) -> u64 {
        match &self.0 {
            Known::All(all) => at(all, 990),
            Known::Told(told) => told.p99,
        }
    }

    /// 999 of 1,000 are no slower than this.
    pub fn p999(&self) -> Option<u64> {
        match &self.0 {
            Known::All(all) => Some(at(all, 999)),
            Known::Told(told) => told.p999,
        }
    }

    /// The slowest.
    pub fn max(&self) -> Option<u64> {
        match &self.0 {
            Known::All(all) => Some(at(all, 1_000)),
            Known::Told(told) => told.max,
        }
    }
}

/// The rank of a percentile among `count` values, the smallest being the first: THE rule, here, in the guests and in
/// `millpond about`. It is the nearest rank: of all values the smallest that at least so many thousandths of them do
/// not exceed. It is a value that really was; nothing is interpolated.
///
/// ```
/// use millpond_bench::stats::nearest_rank;
///
/// assert_eq!((nearest_rank(200, 500), nearest_rank(200, 990)), (100, 198));
/// // Of fewer than a thousand values p99.9 is the greatest.
/// assert_eq!((nearest_rank(999, 999), nearest_rank(1, 500)), (999, 1));
/// ```
pub fn nearest_rank(count: u64, thousandths: u64) -> u64 {
    // Wide, because a count of nanoseconds times a thousand may not fit.
    let rank = (u128::from(count) * u128::from(thousandths)).div_ceil(1_000);
    u64::try_from(rank).unwrap_or(u64::MAX).max(1)
}

/// The value of that rank, to three digits.
fn at(all: &Histogram<u64>, thousandths: u64) -> u64 {
    let rank = nearest_rank(all.len(), thousandths);
    let mut seen = 0;
    let reached = all.iter_recorded().find(|bucket| {
        seen += bucket.count_since_last_iteration();
        seen >= rank
    });
    reached.map_or_else(
        || all.max(),
        |bucket| all.highest_equivalent(bucket.value_iterated_to()),
    )
}

/// The times of single operations in a row, in microseconds. An unknown value is `null`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Percentiles {
    /// Half of all operations are no slower than this.
    pub p50: Option<f64>,
    /// 99 of 100.
    pub p99: Option<f64>,
    /// 999 of 1,000.
    pub p999: Option<f64>,
    /// The slowest.
    pub max_single: Option<f64>,
}

impl Percentiles {
    /// The medians of the rounds' percentiles, and the slowest of all. It is the same for candidates here and for those
    /// elsewhere, that report percentiles only; and it is how the figures of the rounds become one.
    pub fn of<'a>(rounds: impl Iterator<Item = &'a Quantiles>) -> Self {
        let rounds: Vec<&Quantiles> = rounds.collect();
        let spread = |of: fn(&Quantiles) -> Option<u64>| {
            let micros = |round: &&Quantiles| of(round).map(|nanos| nanos as f64 / 1e3);
            let values: Option<Vec<f64>> = rounds.iter().map(micros).collect();
            Spread::of(&values?)
        };
        let median = |of| spread(of).map(|spread| spread.median);
        Percentiles {
            p50: median(|round| Some(round.p50())),
            p99: median(|round| Some(round.p99())),
            p999: median(Quantiles::p999),
            max_single: spread(Quantiles::max).map(|spread| spread.max),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spread(values: &[f64]) -> (f64, f64, f64) {
        let spread = Spread::of(values).unwrap();
        (spread.median, spread.min, spread.max)
    }

    #[test]
    fn the_median_of_an_odd_number_is_the_one_in_the_middle() {
        assert_eq!(spread(&[5.0]), (5.0, 5.0, 5.0));
        assert_eq!(spread(&[30.0, 10.0, 20.0]), (20.0, 10.0, 30.0));
        assert_eq!(spread(&[1.0, 1.0, 9.0, 9.0, 9.0]), (9.0, 1.0, 9.0));
    }

    #[test]
    fn the_median_of_an_even_number_is_between_the_two_in_the_middle() {
        assert_eq!(spread(&[1.0, 2.0]), (1.5, 1.0, 2.0));
        assert_eq!(spread(&[8.0, 1.0, 4.0, 2.0]), (3.0, 1.0, 8.0));
    }

    #[test]
    fn one_wild_round_moves_the_maximum_and_not_the_median() {
        assert_eq!(spread(&[10.0, 11.0, 12.0, 1e9, 11.0]), (11.0, 10.0, 1e9));
    }

    #[test]
    fn no_rounds_have_no_figure() {
        assert_eq!(Spread::of(&[]), None);
    }

    fn quantiles(times: &[u64]) -> Quantiles {
        Quantiles::of(times).unwrap()
    }

    #[test]
    fn quantiles_are_operations_that_really_were() {
        let of = |times: &[u64]| Quantiles::of(times).map(|q| (q.p50(), q.p99()));
        assert_eq!(of(&[7]), Some((7, 7)));
        assert_eq!(of(&[9, 1]), Some((1, 9)));
        // One slow trip of a hundred is beyond p99, two are not.
        let mut times = vec![5; 99];
        times.push(1_000);
        assert_eq!(of(&times), Some((5, 5)));
        times[0] = 2_000;
        assert_eq!(of(&times), Some((5, 1_000)));
        assert_eq!(of(&[]), None);
    }

    #[test]
    fn one_slow_operation_of_a_thousand_is_beyond_p999_and_two_are_not() {
        let mut times = vec![5; 1_000];
        times[0] = 1_000_000_007;
        let one = quantiles(&times);
        assert_eq!(one.p999(), Some(5));
        assert_eq!(one.max().map(|max| max / 1_000_000), Some(1_000));
        times[1] = 30_000;
        assert!(quantiles(&times).p999().is_some_and(|p999| p999 >= 30_000));
    }

    #[test]
    fn long_times_keep_three_digits() {
        for time in [1_u64, 2_047, 123_456, 987_654_321, 40_000_000_000] {
            // The slowest is another one, so this is not simply the greatest.
            let told = quantiles(&[time, time, 4 * time]).p50();
            assert!(
                told >= time && told - time <= time / 1_000,
                "{time}: {told}"
            );
        }
    }

    #[test]
    fn a_rank_is_the_nearest_one_whatever_the_count() {
        let up_to = |last: u64| (1..=last).collect::<Vec<u64>>();
        for count in [1, 2, 3, 99, 100, 101, 999, 1_000, 1_001, 1_500] {
            let all = quantiles(&up_to(count));
            // These values are so small that the histogram holds each of them.
            assert_eq!(all.p50(), nearest_rank(count, 500), "{count}");
            assert_eq!(all.p99(), nearest_rank(count, 990), "{count}");
            assert_eq!(all.p999(), Some(nearest_rank(count, 999)), "{count}");
            assert_eq!(all.max(), Some(count));
        }
        assert_eq!(nearest_rank(u64::MAX, 1_000), u64::MAX);
    }

    #[test]
    fn a_round_that_was_timed_here_counts_as_one_that_was_told() {
        let mut times = vec![1_000; 1_600];
        times[0] = 2_000_000;
        times[1] = 1_500_000;
        let (calm, slow) = (quantiles(&[1_000; 1_600]), quantiles(&times));
        let told = |all: &Quantiles| {
            Quantiles::told_with_tail(all.p50(), all.p99(), all.p999(), all.max())
        };
        let here = [calm.clone(), slow.clone(), calm.clone()];
        let there = here.clone().map(|all| told(&all));
        let all = Percentiles::of(here.iter());
        assert_eq!(all, Percentiles::of(there.iter()));
        // One bad round of three is none of p99.9, but the slowest is the slowest.
        assert_eq!(all.p999, Some(1.0));
        assert_eq!(all.max_single.map(f64::round), Some(2_001.0));
        assert_eq!(Percentiles::of([].into_iter()), Percentiles::default());
    }

    #[test]
    fn what_was_only_told_has_medians_and_no_tail() {
        let rounds = [(10_000, 90_000), (30_000, 70_000), (20_000, 80_000)];
        let rounds = rounds.map(|(p50, p99)| Quantiles::told(p50, p99));
        assert_eq!((rounds[0].p999(), rounds[0].max()), (None, None));
        let told = Percentiles {
            p50: Some(20.0),
            p99: Some(80.0),
            ..Percentiles::default()
        };
        assert_eq!(Percentiles::of(rounds.iter()), told);
    }

    #[test]
    fn of_tails_that_were_told_the_median_counts_and_of_the_slowest_the_slowest() {
        let rounds = [(500, 900), (700, 800), (600, 4_000)];
        let rounds = rounds.map(|(p999, max)| {
            Quantiles::told_with_tail(1_000, 2_000, Some(p999 * 1_000), Some(max * 1_000))
        });
        let told = Percentiles::of(rounds.iter());
        assert_eq!((told.p999, told.max_single), (Some(600.0), Some(4_000.0)));
    }
}
