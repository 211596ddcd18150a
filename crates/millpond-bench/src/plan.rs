//! When tasks come, decided before the first of them does.
//!
//! Arrivals are independent of each other (Poisson): some come at once, and then for a while none
//! does. Or bursts are: so many arrivals come at once each time, and the bursts are independent of each
//! other. The same seed, rate and number give the same plan, so all candidates of a run get the same.

use std::time::Duration;

/// The times of arrival, counted from the start of the round; none is before the one before it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan(Vec<Duration>);

impl Plan {
    /// `arrivals` at `rate` per second.
    pub fn poisson(seed: u64, rate: f64, arrivals: u64) -> Self {
        let (mut random, mut at) = (Random(seed), 0.0);
        let next = |_| {
            // An exponential gap: what is left of 1 is never 0, so this is never infinite.
            at += -(1.0 - random.share()).ln() / rate;
            Duration::from_secs_f64(at)
        };
        Plan((0..arrivals).map(next).collect())
    }

    /// `arrivals` at `rate` per second, so many of them at once each time.
    pub fn bursts(seed: u64, rate: f64, arrivals: u64, at_once: u64) -> Self {
        let at_once = at_once.max(1);
        let bursts = Self::poisson(seed, rate / at_once as f64, arrivals.div_ceil(at_once));
        let each = |&at| std::iter::repeat_n(at, at_once as usize);
        let all = bursts.0.iter().flat_map(each);
        Plan(all.take(arrivals as usize).collect())
    }

    /// All arrivals, in order.
    pub fn arrivals(&self) -> &[Duration] {
        &self.0
    }

    /// When the last one comes.
    pub fn end(&self) -> Duration {
        self.0.last().copied().unwrap_or_default()
    }
}

/// Numbers that follow no order, the same for the same seed: a Weyl sequence, well mixed (SplitMix64).
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// Begins.
    pub fn new(seed: u64) -> Self {
        Random(seed)
    }

    fn word(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Puts `items` in an order that none was more likely to get than any other.
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            let place = (self.share() * (last + 1) as f64) as usize;
            items.swap(last, place.min(last));
        }
    }

    /// From 0 to just below 1.
    pub fn share(&mut self) -> f64 {
        (self.word() >> 11) as f64 / (1_u64 << 53) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SEED: u64 = 7;

    #[test]
    fn every_order_is_as_likely_as_any_other_and_a_seed_repeats_it() {
        let mut random = Random::new(SEED);
        let mut orders = std::collections::BTreeMap::<[u8; 3], u32>::new();
        for _ in 0..6_000 {
            let mut items = [1, 2, 3];
            random.shuffle(&mut items);
            *orders.entry(items).or_default() += 1;
        }
        assert_eq!(orders.len(), 6);
        // A thousand each, give or take 29: five times that is beyond chance.
        let is_fair = |count: &u32| (850..1_150).contains(count);
        assert!(orders.values().all(is_fair), "seed {SEED}: {orders:?}");
        let shuffled = |seed| {
            let mut items: Vec<u32> = (0..20).collect();
            Random::new(seed).shuffle(&mut items);
            items
        };
        assert_eq!(shuffled(SEED), shuffled(SEED));
        assert_ne!(shuffled(SEED), shuffled(SEED + 1));
    }

    #[test]
    fn the_same_seed_gives_the_same_plan_and_another_gives_another() {
        let plan = |seed| Plan::poisson(seed, 1_000.0, 100);
        assert_eq!(plan(SEED), plan(SEED));
        assert_ne!(plan(SEED), plan(SEED + 1));
    }

    #[test]
    fn as_many_come_as_the_rate_says() {
        let end = Plan::poisson(SEED, 1_000.0, 100_000).end().as_secs_f64();
        // The end of so many gaps spreads by a third of a percent.
        assert!((98.5..101.5).contains(&end), "seed {SEED}: {end} s");
    }

    #[test]
    fn gaps_are_as_uneven_as_those_of_independent_arrivals() {
        let plan = Plan::poisson(SEED, 1_000.0, 100_000);
        let arrivals = plan.arrivals();
        assert!(arrivals.is_sorted());
        let gap = |pair: &[Duration]| (pair[1] - pair[0]).as_secs_f64() * 1e3;
        let gaps: Vec<f64> = arrivals.windows(2).map(gap).collect();
        // Of exponential gaps 63 % are below their mean, and their deviation is their mean.
        let below = gaps.iter().filter(|&&gap| gap < 1.0).count();
        let share = below as f64 / gaps.len() as f64;
        assert!((0.62..0.645).contains(&share), "seed {SEED}: {share}");
        let square = gaps.iter().map(|gap| (gap - 1.0).powi(2)).sum::<f64>();
        let deviation = (square / gaps.len() as f64).sqrt();
        assert!(
            (0.97..1.03).contains(&deviation),
            "seed {SEED}: {deviation}"
        );
    }

    #[test]
    fn bursts_come_at_once_and_at_the_same_rate() {
        let plan = Plan::bursts(SEED, 1_000.0, 99_995, 10);
        assert_eq!(plan.arrivals().len(), 99_995);
        for burst in plan.arrivals().chunks(10) {
            assert!(burst.iter().all(|at| *at == burst[0]), "{burst:?}");
        }
        let starts: Vec<_> = plan.arrivals().iter().step_by(10).collect();
        assert!(starts.windows(2).all(|pair| pair[0] < pair[1]));
        let end = plan.end().as_secs_f64();
        // Ten thousand gaps: their sum spreads by one percent.
        assert!((97.0..103.0).contains(&end), "seed {SEED}: {end} s");
    }
}
