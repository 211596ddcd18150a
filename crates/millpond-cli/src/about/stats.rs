//! Samples and their percentiles.

use millpond_bench::stats::nearest_rank;

/// The durations of many rounds, in nanoseconds.
#[derive(Debug, Default)]
pub(super) struct Samples {
    nanos: Vec<f64>,
    /// How often the thing itself was done: more than there are samples, if it was timed in
    /// batches.
    rounds: u64,
}

/// The summary that is shown of them.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Summary {
    pub(super) p50: f64,
    pub(super) p99: f64,
    pub(super) rounds: u64,
}

impl Samples {
    /// Adds the mean of a batch of `rounds`.
    pub(super) fn push(&mut self, nanos: f64, rounds: u64) {
        self.nanos.push(nanos);
        self.rounds += rounds;
    }

    pub(super) fn len(&self) -> usize {
        self.nanos.len()
    }

    /// `None` without a single sample.
    pub(super) fn summary(mut self) -> Option<Summary> {
        self.nanos.sort_unstable_by(f64::total_cmp);
        Some(Summary {
            p50: percentile(&self.nanos, 50)?,
            p99: percentile(&self.nanos, 99)?,
            rounds: self.rounds,
        })
    }
}

/// By the rule of the bench.
fn percentile(sorted: &[f64], percent: u64) -> Option<f64> {
    let rank = nearest_rank(sorted.len() as u64, percent * 10);
    sorted.get(usize::try_from(rank - 1).ok()?).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn up_to(last: u32) -> Vec<f64> {
        (1..=last).map(f64::from).collect()
    }

    #[test]
    fn percentiles_of_one_to_a_hundred_are_their_own_numbers() {
        let hundred = up_to(100);
        for percent in 1..=100 {
            assert_eq!(percentile(&hundred, percent), Some(percent as f64));
        }
    }

    #[test]
    fn few_samples_round_up_to_the_next_one_that_happened() {
        assert_eq!(percentile(&up_to(1), 50), Some(1.0));
        assert_eq!(percentile(&up_to(1), 99), Some(1.0));
        assert_eq!(percentile(&up_to(4), 50), Some(2.0));
        assert_eq!(percentile(&up_to(5), 50), Some(3.0));
        assert_eq!(percentile(&up_to(10), 99), Some(10.0));
        assert_eq!(percentile(&up_to(200), 99), Some(198.0));
        assert_eq!(percentile(&[], 50), None);
    }

    #[test]
    fn a_summary_does_not_depend_on_the_order_of_samples() {
        let mut samples = Samples::default();
        for nanos in up_to(1000).into_iter().rev() {
            samples.push(nanos, 10);
        }
        assert_eq!(
            samples.summary(),
            Some(Summary {
                p50: 500.0,
                p99: 990.0,
                rounds: 10_000
            })
        );
    }

    #[test]
    fn no_samples_have_no_summary() {
        assert_eq!(Samples::default().summary(), None);
    }
}
