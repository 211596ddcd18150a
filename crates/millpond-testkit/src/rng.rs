//! Random numbers from a seed: SplitMix64 (Steele, Lea and Flood, 2014), eight lines, no dependency.

use std::time::Duration;

/// A random number generator that always does the same with the same seed.
#[derive(Clone, Debug)]
pub struct Rng(u64);

impl Rng {
    /// A generator for this seed.
    pub fn new(seed: u64) -> Self {
        Rng(seed)
    }

    /// Any number.
    pub fn any(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `limit`.
    pub fn below(&mut self, limit: usize) -> usize {
        let limit = u64::try_from(limit.max(1)).unwrap_or(u64::MAX);
        usize::try_from(self.any() % limit).unwrap_or(0)
    }

    /// Yes, once in `times`.
    pub fn once_in(&mut self, times: usize) -> bool {
        self.below(times) == 0
    }

    /// Another generator, independent of what this one does next.
    pub fn fork(&mut self) -> Rng {
        Rng(self.any())
    }

    /// Lets a random, very short time pass: nothing, a few spins, or a yield. It moves the
    /// interleaving about; no test waits for it.
    pub fn jitter(&mut self) {
        match self.below(4) {
            0 => std::thread::yield_now(),
            1 => (0..self.below(200)).for_each(|_| std::hint::spin_loop()),
            _ => {}
        }
    }

    /// A timeout between none and a few microseconds, sometimes an extreme one.
    pub fn timeout(&mut self) -> Duration {
        match self.below(8) {
            0 => Duration::ZERO,
            1 => Duration::from_nanos(1),
            _ => Duration::from_micros(self.any() % 60),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_gives_the_same_numbers_and_another_gives_others() {
        let draw = |seed| {
            let mut rng = Rng::new(seed);
            [rng.any(), rng.any(), rng.fork().any()]
        };
        assert_eq!(draw(7), draw(7));
        assert_ne!(draw(7), draw(8));
    }

    #[test]
    fn numbers_stay_below_their_limit_and_reach_all_of_it() {
        let mut rng = Rng::new(1);
        let mut seen = [false; 5];
        (0..200).for_each(|_| seen[rng.below(5)] = true);
        assert_eq!(seen, [true; 5]);
        assert_eq!(rng.below(0), 0);
    }
}
