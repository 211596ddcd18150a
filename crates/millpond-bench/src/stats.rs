//! From samples to figures.

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

/// Two operations out of all, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Quantiles {
    /// Half of them are no slower than this one.
    pub p50: u64,
    /// 99 of 100 are no slower than this one.
    pub p99: u64,
}

impl Quantiles {
    /// Sorts `times` and picks; `None` if there are none.
    ///
    /// ```
    /// use millpond_bench::stats::Quantiles;
    ///
    /// let mut times: Vec<u64> = (1..=200).rev().collect();
    /// assert_eq!(Quantiles::of(&mut times), Some(Quantiles { p50: 100, p99: 198 }));
    /// ```
    pub fn of(times: &mut [u64]) -> Option<Self> {
        times.sort_unstable();
        // The smallest that is no less than so many percent of all.
        let percent = |percent: usize| {
            let rank = (times.len() * percent).div_ceil(100);
            times.get(rank.max(1) - 1).copied()
        };
        Some(Quantiles {
            p50: percent(50)?,
            p99: percent(99)?,
        })
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

    #[test]
    fn quantiles_are_operations_that_really_were() {
        let of = |times: &[u64]| Quantiles::of(&mut times.to_vec()).map(|q| (q.p50, q.p99));
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
}
