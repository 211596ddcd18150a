//! Chance, by a seed: the same seed gives the same customers.

/// A Weyl sequence, well mixed (SplitMix64).
#[derive(Clone, Debug)]
pub(super) struct Random(u64);

impl Random {
    /// Seeds that are close to each other give sequences that are not.
    pub(super) fn new(seed: u64) -> Self {
        Random(seed)
    }

    pub(super) fn word(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// From 0 to just below 1.
    pub(super) fn share(&mut self) -> f64 {
        (self.word() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// From `low` to just below `high`.
    pub(super) fn between(&mut self, low: f64, high: f64) -> f64 {
        low + (high - low) * self.share()
    }

    /// A gap between two that come independently of each other; 1 on average.
    pub(super) fn gap(&mut self) -> f64 {
        // The rest of 1 is never 0, so this is never infinite.
        -(1.0 - self.share()).ln()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_gives_the_same_numbers_and_its_neighbour_gives_others() {
        let words = |seed| {
            let mut random = Random::new(seed);
            [random.word(), random.word(), random.word()]
        };
        assert_eq!(words(7), words(7));
        assert!(words(7).iter().all(|word| !words(8).contains(word)));
    }

    #[test]
    fn gaps_are_one_on_average() {
        let mut random = Random::new(7);
        let sum: f64 = (0..100_000).map(|_| random.gap()).sum();
        assert!((98_500.0..101_500.0).contains(&sum), "seed 7: {sum}");
    }

    #[test]
    fn a_number_between_two_is_between_them() {
        let mut random = Random::new(7);
        for _ in 0..1000 {
            let number = random.between(2.0, 3.0);
            assert!((2.0..3.0).contains(&number), "seed 7: {number}");
        }
    }
}
