//! How long, how often and in which order: what a run decides, and a workload does not.

use super::Settings;
use crate::plan::Random;
use std::time::{Duration, Instant};

/// The pace of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pace {
    /// The length of a round, and the most rounds there are.
    pub settings: Settings,
    /// The orders in which candidates take their turns are drawn by this.
    pub seed: u64,
    /// So much time for each candidate of a workload, its warm-up included. When that of all of them is over there
    /// are no more rounds; but there are [`Pace::LEAST_ROUNDS`] in any case, so nothing is left out. `None`: as much
    /// as all rounds take.
    pub budget: Option<Duration>,
}

impl Pace {
    /// The seed of a run that is given no other.
    pub const SEED: u64 = 17;

    /// A verdict takes so many rounds.
    pub const LEAST_ROUNDS: usize = 3;

    /// All rounds, in the usual order.
    pub fn of(settings: Settings) -> Self {
        Pace {
            settings,
            seed: Self::SEED,
            budget: None,
        }
    }

    /// The orders of one workload. They do not depend on which other workloads are measured.
    pub(super) fn random(&self, suite: &str, workload: &str) -> Random {
        let bytes = suite.bytes().chain([0]).chain(workload.bytes());
        let mixed = bytes.fold(self.seed, |sum, byte| {
            (sum ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        });
        Random::new(mixed)
    }

    /// The time of a workload begins.
    pub(super) fn start(&self, candidates: usize) -> RoundClock {
        let most = u32::try_from(candidates).unwrap_or(u32::MAX);
        RoundClock {
            start: Instant::now(),
            budget: self.budget.map(|each| each * most),
            rounds: Duration::ZERO,
        }
    }
}

/// The time that a workload has left.
#[derive(Debug)]
pub(super) struct RoundClock {
    start: Instant,
    budget: Option<Duration>,
    /// When the first round began, after the start.
    rounds: Duration,
}

impl RoundClock {
    /// Allows the round with this number, counted from 0, if there is time for it: it takes as long as those before.
    pub(super) fn allow_round(&mut self, round: usize) -> bool {
        let spent = self.start.elapsed();
        if round == 0 {
            self.rounds = spent;
        }
        let Some(budget) = self.budget.filter(|_| round >= Pace::LEAST_ROUNDS) else {
            return true;
        };
        let each = (spent - self.rounds) / u32::try_from(round).unwrap_or(u32::MAX);
        spent + each <= budget
    }
}
