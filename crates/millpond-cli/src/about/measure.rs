//! Timing short things in batches and long things one by one, within a share of the budget.

use std::time::{Duration, Instant};

use millpond_bench::workloads::floor::Stopwatch;

use super::stats::Samples;

/// A listener for the progress of measuring.
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
    /// The time that earlier probes used.
    before: Duration,
    progress: &'a dyn Progress,
    /// The samples so far.
    pub(super) samples: Samples,
}

impl<'a> Meter<'a> {
    pub(super) fn new(share: Duration, before: Duration, progress: &'a dyn Progress) -> Self {
        Self {
            share,
            before,
            progress,
            samples: Samples::default(),
        }
    }

    /// Repeats `sample` until the share is used up.
    fn while_share_lasts(&mut self, mut sample: impl FnMut(&mut Samples)) {
        let start = Instant::now();
        loop {
            sample(&mut self.samples);
            let (used, count) = (start.elapsed(), self.samples.len());
            self.progress.used((self.before + used).as_millis() as u64);
            let is_over = used >= self.share && (count > 0 || used >= self.share + EXTENSION);
            if is_over || count >= MOST_SAMPLES {
                return;
            }
        }
    }
}

impl Stopwatch for Meter<'_> {
    /// One sample is the mean of a batch.
    fn short(&mut self, batch: &mut dyn FnMut(u64)) {
        let mut timed = |rounds: u64| {
            let start = Instant::now();
            batch(rounds);
            start.elapsed()
        };
        let mut rounds = 1;
        // The fastest of a few counts: a first round may be cold, or wait for a thread to start.
        // Later batches find warm caches, so no sample is cold.
        while (0..4).any(|_| timed(rounds) < BATCH) && rounds < 1 << 30 {
            rounds *= 2;
        }
        self.while_share_lasts(|samples| {
            samples.push(timed(rounds).as_nanos() as f64 / rounds as f64, rounds);
        });
    }

    fn long(&mut self, round: &mut dyn FnMut() -> Option<Duration>) {
        self.while_share_lasts(|samples| {
            if let Some(time) = round() {
                samples.push(time.as_nanos() as f64, 1);
            }
        });
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

    fn meter() -> Meter<'static> {
        Meter::new(Duration::ZERO, Duration::ZERO, &Silent)
    }

    /// Calls `round` so many times.
    fn each(mut round: impl FnMut()) -> impl FnMut(u64) {
        move |rounds| (0..rounds).for_each(|_| round())
    }

    #[test]
    fn even_without_a_share_there_is_one_sample() {
        let mut short = meter();
        short.short(&mut each(|| ()));
        assert_eq!(short.samples.len(), 1);
        let mut long = meter();
        long.long(&mut || Some(Duration::from_nanos(7)));
        assert_eq!(long.samples.summary().unwrap().p99, 7.0);
    }

    #[test]
    fn rounds_that_do_not_count_are_repeated_and_leave_no_sample() {
        let mut rounds = 0;
        let mut meter = meter();
        meter.long(&mut || {
            rounds += 1;
            (rounds > 5).then_some(Duration::from_nanos(7))
        });
        assert_eq!((rounds, meter.samples.len()), (6, 1));
    }

    #[test]
    fn one_slow_start_does_not_make_batches_short() {
        let mut is_first = true;
        let mut meter = meter();
        meter.short(&mut each(|| {
            let start = Instant::now();
            while is_first && start.elapsed() <= BATCH {}
            is_first = false;
        }));
        assert!(meter.samples.summary().unwrap().rounds > 1);
    }

    #[test]
    fn a_batch_is_made_of_many_rounds() {
        let mut rounds = 0_u64;
        let mut meter = meter();
        meter.short(&mut each(|| rounds = std::hint::black_box(rounds + 1)));
        assert!(meter.samples.summary().unwrap().rounds <= rounds);
        assert!(
            rounds > 100,
            "a batch of {BATCH:?} had only {rounds} rounds"
        );
    }
}
