//! Which customer comes when, and with what: decided by the seed and by time alone, and never by how the pools
//! are doing. A shop that is slow does not get fewer customers for it (an open loop).
//!
//! There are two kinds of source. A [`Crowd`] comes by chance, more of it at flood: orders and
//! pictures. [`Rounds`] come by the clock: mails.

use std::time::Duration;

use super::random::Random;
use super::tide::Tide;

/// A customer with work for a department.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Visit {
    /// When, in the shop's time.
    pub(super) at: Duration,
    pub(super) job: Job,
}

/// The work.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Job {
    pub(super) name: &'static str,
    pub(super) work: Work,
}

/// The kind of work: computing or waiting, and how much.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Work {
    /// Waits for an answer from somewhere else for this long.
    Wait(Duration),
    /// Computes, for about this long.
    Paint(Duration),
}

/// The source of visits.
pub(super) trait Source: Send {
    /// All visits from where the plan ends so far until `until`, in order, if `load` times as many
    /// come as usual.
    fn plan(&mut self, until: Duration, load: f64) -> Vec<Visit>;
}

/// A kind of visit on the menu: how often, and how long it takes on average.
#[derive(Clone, Copy, Debug)]
pub(super) struct Usual {
    pub(super) name: &'static str,
    /// Of so many, compared with the others.
    pub(super) share: f64,
    pub(super) takes: Duration,
    pub(super) work: fn(Duration) -> Work,
}

/// Customers, independent of each other (Poisson), that come with the tide.
#[derive(Debug)]
pub(super) struct Crowd {
    random: Random,
    tide: Tide,
    /// How many come in a second when the tide is at 1.
    rate: f64,
    usual: &'static [Usual],
    planned: Duration,
    /// How much has to flow by until the next one comes; 1 on average.
    gap: f64,
}

/// The tide is taken as constant for so long.
const STEP: Duration = Duration::from_millis(5);

impl Crowd {
    pub(super) fn new(seed: u64, tide: Tide, rate: f64, usual: &'static [Usual]) -> Self {
        let mut random = Random::new(seed);
        let gap = random.gap();
        Crowd {
            random,
            tide,
            rate,
            usual,
            planned: Duration::ZERO,
            gap,
        }
    }

    fn job(&mut self) -> Job {
        let all: f64 = self.usual.iter().map(|usual| usual.share).sum();
        let mut left = self.random.between(0.0, all);
        let chosen = self.usual.iter().find(|usual| {
            left -= usual.share;
            left < 0.0
        });
        let usual = chosen.unwrap_or(&self.usual[0]);
        // At least half of the usual time, and now and then several times as long.
        let times = 0.5 + 0.5 * self.random.gap();
        Job {
            name: usual.name,
            work: (usual.work)(usual.takes.mul_f64(times)),
        }
    }
}

impl Source for Crowd {
    fn plan(&mut self, until: Duration, load: f64) -> Vec<Visit> {
        let mut visits = Vec::new();
        while self.planned < until {
            let step = STEP.min(until - self.planned);
            let rate = self.rate * load * self.tide.height(self.planned);
            let mut flows = rate * step.as_secs_f64();
            let mut at = self.planned;
            while self.gap < flows {
                flows -= self.gap;
                at += Duration::from_secs_f64(self.gap / rate);
                self.gap = self.random.gap();
                let job = self.job();
                visits.push(Visit { at, job });
            }
            self.gap -= flows;
            self.planned += step;
        }
        visits
    }
}

/// Something that is due again and again.
#[derive(Clone, Copy, Debug)]
pub(super) struct Round {
    pub(super) job: Job,
    /// How much time is between two of them.
    pub(super) every: Duration,
    /// When it is due first.
    pub(super) from: Duration,
    /// How many there are to do each time.
    pub(super) many: usize,
}

/// Everything that is due by the clock. Load makes it due more often.
#[derive(Debug)]
pub(super) struct Rounds {
    rounds: Vec<Round>,
    planned: Duration,
}

impl Rounds {
    pub(super) fn new(rounds: &[Round]) -> Self {
        Rounds {
            rounds: rounds.to_vec(),
            planned: Duration::ZERO,
        }
    }
}

impl Source for Rounds {
    fn plan(&mut self, until: Duration, load: f64) -> Vec<Visit> {
        let mut visits = Vec::new();
        let passed = until.saturating_sub(self.planned);
        for round in &mut self.rounds {
            // `from` is when it is due next, by a clock that runs `load` times as fast.
            let mut ahead = round.from;
            while ahead < passed.mul_f64(load) {
                let at = self.planned + ahead.div_f64(load);
                let job = round.job;
                visits.extend((0..round.many).map(|_| Visit { at, job }));
                ahead += round.every;
            }
            round.from = ahead - passed.mul_f64(load);
        }
        self.planned = until;
        visits.sort_by_key(|visit| visit.at);
        visits
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SEED: u64 = 7;
    const SECOND: Duration = Duration::from_secs(1);
    const MENU: &[Usual] = &[
        Usual {
            name: "often",
            share: 3.0,
            takes: Duration::from_millis(10),
            work: Work::Wait,
        },
        Usual {
            name: "rare",
            share: 1.0,
            takes: Duration::from_millis(40),
            work: Work::Paint,
        },
    ];

    fn crowd(seed: u64) -> Crowd {
        Crowd::new(seed, Tide::new(seed), 50.0, MENU)
    }

    #[test]
    fn the_same_seed_brings_the_same_crowd_however_the_plan_is_cut() {
        let whole = crowd(SEED).plan(10 * SECOND, 1.0);
        let mut in_parts = crowd(SEED);
        let parts: Vec<Visit> = (1..=500)
            .flat_map(|part| in_parts.plan(part * SECOND / 50, 1.0))
            .collect();
        assert_eq!(whole, parts);
        assert_ne!(whole, crowd(SEED + 1).plan(10 * SECOND, 1.0));
    }

    #[test]
    fn as_many_come_as_the_tide_brings() {
        let tide = Tide::new(SEED);
        let steps = 0..60_000;
        let heights: f64 = steps
            .map(|step| tide.height(Duration::from_millis(step)))
            .sum();
        let expected = 50.0 * heights / 1000.0;
        let came = crowd(SEED).plan(60 * SECOND, 1.0).len() as f64;
        let spread = 4.0 * expected.sqrt();
        assert!(
            (came - expected).abs() < spread,
            "seed {SEED}: {came}, {expected}"
        );
    }

    #[test]
    fn a_plan_is_in_order_and_within_its_time() {
        let mut crowd = crowd(SEED);
        crowd.plan(2 * SECOND, 1.0);
        let visits = crowd.plan(5 * SECOND, 3.0);
        assert!(visits.is_sorted_by_key(|visit| visit.at));
        assert!(visits[0].at >= 2 * SECOND);
        assert!(visits[visits.len() - 1].at < 5 * SECOND);
    }

    #[test]
    fn errands_come_in_the_shares_of_the_menu() {
        let visits = crowd(SEED).plan(60 * SECOND, 4.0);
        let rare = visits.iter().filter(|visit| visit.job.name == "rare");
        let share = rare.count() as f64 / visits.len() as f64;
        assert!((0.23..0.27).contains(&share), "seed {SEED}: {share}");
    }

    #[test]
    fn without_load_nobody_comes_and_later_they_come_again() {
        let mut crowd = crowd(SEED);
        assert!(crowd.plan(20 * SECOND, 0.0).is_empty());
        assert!(!crowd.plan(40 * SECOND, 1.0).is_empty());
        let mut rounds = Rounds::new(&[round(100, 0, 1)]);
        assert!(rounds.plan(20 * SECOND, 0.0).is_empty());
        assert_eq!(rounds.plan(21 * SECOND, 1.0).len(), 10);
    }

    fn round(every: u64, from: u64, many: usize) -> Round {
        Round {
            job: Job {
                name: "mail",
                work: Work::Wait(Duration::ZERO),
            },
            every: Duration::from_millis(every),
            from: Duration::from_millis(from),
            many,
        }
    }

    #[test]
    fn rounds_are_due_by_the_clock_and_many_at_once() {
        let mut rounds = Rounds::new(&[round(400, 100, 1), round(1000, 500, 3)]);
        let due: Vec<u128> = [1, 2]
            .into_iter()
            .flat_map(|part| rounds.plan(part * SECOND / 2, 1.0))
            .map(|visit| visit.at.as_millis())
            .collect();
        assert_eq!(due, [100, 500, 500, 500, 500, 900]);
    }

    #[test]
    fn twice_the_load_makes_rounds_due_twice_as_often() {
        let mut rounds = Rounds::new(&[round(100, 0, 1)]);
        assert_eq!(rounds.plan(SECOND, 1.0).len(), 10);
        assert_eq!(rounds.plan(2 * SECOND, 2.0).len(), 20);
        assert_eq!(rounds.plan(3 * SECOND, 0.5).len(), 5);
    }
}
