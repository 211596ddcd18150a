//! Timing short things in batches and long things one by one, within a share of the budget.

use std::time::{Duration, Instant};

use super::stats::Samples;

/// Who is told how far measuring is.
pub(super) trait Progress {
    /// The name of what is measured next.
    fn measuring(&self, what: &str);
    /// How much of the budget is used.
    fn used(&self, milliseconds: u64);
}

/// A batch must be long beside the two clock reads around it (some 50 ns), or they are measured.
const BATCH: Duration = Duration::from_micros(20);

/// On a busy machine a short share may end before any round counts. It goes on for this long.
const EXTENSION: Duration = Duration::from_secs(1);

/// More samples do not move p99, they only cost memory.
const MOST_SAMPLES: usize = 100_000;

/// One probe's share of the budget, and the way to report that it is being used.
pub(super) struct Meter<'a> {
    share: Duration,
    /// What earlier probes used.
    before: Duration,
    progress: &'a dyn Progress,
}

impl<'a> Meter<'a> {
    pub(super) fn new(share: Duration, before: Duration, progress: &'a dyn Progress) -> Self {
        Self {
            share,
            before,
            progress,
        }
    }

    /// Times what is shorter than a clock read: one sample is the mean of a batch.
    pub(super) fn batches(&self, mut round: impl FnMut()) -> Samples {
        let mut batch = |rounds: u64| {
            let start = Instant::now();
            for _ in 0..rounds {
                round();
            }
            start.elapsed()
        };
        let mut rounds = 1;
        // The fastest of a few counts: a first round may be cold, or wait for a thread to start.
        // Later batches find warm caches, so no sample is cold.
        while (0..4).any(|_| batch(rounds) < BATCH) && rounds < 1 << 30 {
            rounds *= 2;
        }
        let mut samples = Samples::default();
        self.while_share_lasts(|| {
            samples.push(batch(rounds).as_nanos() as f64 / rounds as f64, rounds);
            samples.len()
        });
        samples
    }

    /// Times what is long enough to be timed alone. The round says how long it took, so that it
    /// can leave out its preparations; `None` is a round that does not count.
    pub(super) fn singles<const N: usize>(
        &self,
        mut round: impl FnMut() -> Option<[Duration; N]>,
    ) -> [Samples; N] {
        let mut samples: [Samples; N] = std::array::from_fn(|_| Samples::default());
        self.while_share_lasts(|| {
            if let Some(times) = round() {
                for (samples, time) in samples.iter_mut().zip(times) {
                    samples.push(time.as_nanos() as f64, 1);
                }
            }
            samples.first().map_or(MOST_SAMPLES, Samples::len)
        });
        samples
    }

    /// Repeats `sample`, which returns how many there are so far.
    fn while_share_lasts(&self, mut sample: impl FnMut() -> usize) {
        let start = Instant::now();
        loop {
            let count = sample();
            let used = start.elapsed();
            self.progress.used((self.before + used).as_millis() as u64);
            let is_over = used >= self.share && (count > 0 || used >= self.share + EXTENSION);
            if is_over || count >= MOST_SAMPLES {
                return;
            }
        }
    }
}

#[cfg(test)]
pub(super) struct Silent;

#[cfg(test)]
impl Progress for Silent {
    fn measuring(&self, _what: &str) {}
    fn used(&self, _milliseconds: u64) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn even_without_a_share_there_is_one_sample() {
        let meter = Meter::new(Duration::ZERO, Duration::ZERO, &Silent);
        assert_eq!(meter.batches(|| ()).len(), 1);
        let [samples] = meter.singles(|| Some([Duration::from_nanos(7)]));
        assert_eq!(samples.summary().unwrap().p99, 7.0);
    }

    #[test]
    fn rounds_that_do_not_count_are_repeated_and_leave_no_sample() {
        let meter = Meter::new(Duration::ZERO, Duration::ZERO, &Silent);
        let mut rounds = 0;
        let [samples] = meter.singles(|| {
            rounds += 1;
            (rounds > 5).then_some([Duration::from_nanos(7)])
        });
        assert_eq!((rounds, samples.len()), (6, 1));
    }

    #[test]
    fn one_slow_start_does_not_make_batches_short() {
        let meter = Meter::new(Duration::ZERO, Duration::ZERO, &Silent);
        let mut is_first = true;
        let samples = meter.batches(|| {
            let start = Instant::now();
            while is_first && start.elapsed() <= BATCH {}
            is_first = false;
        });
        assert!(samples.summary().unwrap().rounds > 1);
    }

    #[test]
    fn a_batch_is_made_of_many_rounds() {
        let meter = Meter::new(Duration::ZERO, Duration::ZERO, &Silent);
        let mut rounds = 0_u64;
        let samples = meter.batches(|| rounds = std::hint::black_box(rounds + 1));
        assert!(
            rounds > 100,
            "a batch of {BATCH:?} had only {rounds} rounds"
        );
        assert!(samples.summary().unwrap().rounds <= rounds);
    }
}
