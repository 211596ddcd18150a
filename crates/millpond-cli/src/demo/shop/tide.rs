//! The tide: how many customers come, compared with a usual moment.
//!
//! Waves follow each other, each as high as the seed decides. Between two waves it is ebb, and all pools
//! are bored; at the top of a wave more comes than they can do. The height at a time depends on nothing
//! but the seed and the time, and is as quickly told after a day as at the start.

use std::f64::consts::PI;
use std::fmt;
use std::time::Duration;

use super::random::Random;

/// How much comes at the lowest.
const EBB: f64 = 0.3;
/// How much comes at the top of a wave, at least and at most.
const TOPS: (f64, f64) = (5.0, 7.0);
/// How many seconds a wave takes.
const LENGTH: f64 = 11.0;

/// Above this it is flood, below the other one it is ebb.
const FLOOD_FROM: f64 = 2.5;
const EBB_UNTIL: f64 = 0.8;

#[derive(Clone, Copy, Debug)]
pub(crate) struct Tide {
    seed: u64,
}

/// A word for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Level {
    Ebb,
    Rising,
    Flood,
    Falling,
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Level::Ebb => "ebb",
            Level::Rising => "rising",
            Level::Flood => "flood",
            Level::Falling => "falling",
        })
    }
}

impl Tide {
    pub(super) fn new(seed: u64) -> Self {
        Tide { seed }
    }

    /// Which wave it is, and which part of it is over.
    fn wave(at: Duration) -> (u64, f64) {
        let waves = at.as_secs_f64() / LENGTH;
        (waves as u64, waves.fract())
    }

    fn top(self, wave: u64) -> f64 {
        let mut random = Random::new(self.seed);
        let mut of_wave = Random::new(random.word().wrapping_add(wave));
        of_wave.between(TOPS.0, TOPS.1)
    }

    /// How much comes at this time of the shop, 1 being usual.
    pub(crate) fn height(self, at: Duration) -> f64 {
        let (wave, part) = Self::wave(at);
        // A bell, narrow enough for the flood to be shorter than the ebb.
        EBB + (self.top(wave) - EBB) * (PI * part).sin().powi(6)
    }

    pub(crate) fn level(self, at: Duration) -> Level {
        let height = self.height(at);
        let (_, part) = Self::wave(at);
        let is_rising = part < 0.5;
        match height {
            _ if height < EBB_UNTIL => Level::Ebb,
            _ if height > FLOOD_FROM => Level::Flood,
            _ if is_rising => Level::Rising,
            _ => Level::Falling,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tenths(seconds: u64) -> impl Iterator<Item = Duration> {
        (0..seconds * 10).map(|tenth| Duration::from_millis(100 * tenth))
    }

    #[test]
    fn the_tide_stays_between_ebb_and_the_highest_top_and_reaches_both() {
        for seed in 0..20 {
            let tide = Tide::new(seed);
            let heights: Vec<f64> = tenths(60).map(|at| tide.height(at)).collect();
            let least = heights.iter().copied().fold(f64::MAX, f64::min);
            let most = heights.iter().copied().fold(0.0, f64::max);
            assert!((EBB..EBB + 0.01).contains(&least), "seed {seed}: {least}");
            assert!(
                (TOPS.0 - 0.1..TOPS.1).contains(&most),
                "seed {seed}: {most}"
            );
        }
    }

    #[test]
    fn the_first_flood_comes_within_ten_seconds_whatever_the_seed() {
        for seed in 0..100 {
            let tide = Tide::new(seed);
            let floods = tenths(8).any(|at| tide.level(at) == Level::Flood);
            assert!(floods, "seed {seed}");
            assert_eq!(tide.level(Duration::ZERO), Level::Ebb);
        }
    }

    #[test]
    fn it_rises_before_a_flood_and_falls_after_it() {
        let tide = Tide::new(7);
        let mut levels: Vec<Level> = tenths(30).map(|at| tide.level(at)).collect();
        levels.dedup();
        let four = [Level::Ebb, Level::Rising, Level::Flood, Level::Falling];
        for (number, level) in levels.iter().enumerate() {
            assert_eq!(*level, four[number % 4], "{levels:?}");
        }
    }

    #[test]
    fn no_two_waves_are_equally_high() {
        let tide = Tide::new(7);
        let top = |wave: u32| {
            tide.height(Duration::from_secs_f64(LENGTH) * wave + Duration::from_millis(5_500))
        };
        assert!((1..20).all(|wave| top(wave) != top(wave - 1)));
    }

    #[test]
    fn the_height_does_not_jump() {
        let tide = Tide::new(7);
        let heights: Vec<f64> = tenths(60).map(|at| tide.height(at)).collect();
        for pair in heights.windows(2) {
            assert!((pair[1] - pair[0]).abs() < 0.4, "{pair:?}");
        }
    }
}
