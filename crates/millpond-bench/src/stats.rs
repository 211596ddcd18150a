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
}
