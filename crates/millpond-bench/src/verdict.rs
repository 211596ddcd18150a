//! Which of two is ahead, or whether that cannot be said.
//!
//! # The rule
//!
//! Ours is *ahead* of a peer, or *behind* it, if both hold; otherwise they are *level*:
//!
//! 1. The medians differ by more than [`SMALLEST`], 5 %. A smaller difference may be real, and nobody would notice it.
//! 2. The values of one are so much better than those of the other that chance alone does it in at most one of 20
//!    cases: the exact rank-sum test of Mann and Whitney, one-sided, at [`CHANCE`]. A value is the figure of a round
//!    where one run is judged, and the median of a process where published figures are. Equal values count
//!    against a difference.
//!
//! The test asks nothing of how values are distributed. With three values on each side all of ours must be better, or all
//! worse; fewer can never decide. With ten, 73 of the 100 pairs must point the same way.
//!
//! # How often it is wrong
//!
//! If ours and one peer are equally good, ours is called behind in at most 5 rows of 100, and ahead in at most 5 of
//! 100: by the second condition alone, and less often where the first one has something to say. The peer that ours is
//! compared with is the best of all that were measured, and among several equal ones the best is so by luck:
//! with three values a side and three equal peers ours is called behind in 10 rows of 100 and ahead in 1, with ten equal
//! peers in 15 and 0. So the rule errs against us. The tests of this file count these rates.
//!
//! A limit is a promise and has no noise: the median is below it, or it is not.

use crate::figure::Better;
use crate::stats::Spread;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Medians that differ by no more than this factor are level, however quiet it was.
pub const SMALLEST: f64 = 1.05;

/// The most that chance may have to do with a difference.
pub const CHANCE: f64 = 0.05;

/// The verdict on a row of ours.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// It is better than the best peer beyond noise, or the limit is kept.
    Ahead,
    /// The difference may be noise.
    Level,
    /// The best peer is better beyond noise, or the limit is not kept.
    Behind,
}

impl Verdict {
    /// All of them, the best first.
    pub const ALL: [Verdict; 3] = [Verdict::Ahead, Verdict::Level, Verdict::Behind];

    /// In one word, for the margin of a table: what is lost is to be seen.
    pub const fn mark(self) -> &'static str {
        match self {
            Verdict::Ahead => "ahead",
            Verdict::Level => "level",
            Verdict::Behind => "BEHIND",
        }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Verdict::Ahead => "ahead",
            Verdict::Level => "level",
            Verdict::Behind => "behind",
        })
    }
}

/// The verdict on `ours` beside `peer`: their values, in any order.
///
/// ```
/// use millpond_bench::figure::Better;
/// use millpond_bench::verdict::{Verdict, between};
///
/// let peer = [50.0, 52.0, 51.0];
/// assert_eq!(between(&[40.0, 41.0, 45.0], &peer, Better::Less), Verdict::Ahead);
/// assert_eq!(between(&[40.0, 41.0, 50.5], &peer, Better::Less), Verdict::Level);
/// assert_eq!(between(&[60.0, 61.0, 59.0], &peer, Better::Less), Verdict::Behind);
/// ```
pub fn between(ours: &[f64], peer: &[f64], better: Better) -> Verdict {
    let (Some(our), Some(their)) = (Spread::of(ours), Spread::of(peer)) else {
        return Verdict::Level;
    };
    let (our, their) = (our.median, their.median);
    let is_less = our < their;
    let is_alike = our > 0.0 && their > 0.0 && (our / their).max(their / our) <= SMALLEST;
    if our == their || is_alike {
        return Verdict::Level;
    }
    let (low, high) = if is_less { (ours, peer) } else { (peer, ours) };
    if chance_of(low, high) > CHANCE {
        return Verdict::Level;
    }
    if is_less == (better == Better::Less) {
        Verdict::Ahead
    } else {
        Verdict::Behind
    }
}

/// How likely it is that `low` is as far below `high` as it is, or farther, if both are drawn alike.
fn chance_of(low: &[f64], high: &[f64]) -> f64 {
    let pairs = low
        .iter()
        .flat_map(|low| high.iter().map(move |high| (low, high)));
    // A tie counts against a difference.
    let against = pairs.filter(|(low, high)| low >= high).count();
    let (few, many) = (low.len(), high.len());
    if few * many > EXACT {
        return normal_chance(few as f64, many as f64, against as f64);
    }
    let ways = arrangements(few, many);
    let as_extreme: f64 = ways[..=against].iter().sum();
    as_extreme / ways.iter().sum::<f64>()
}

/// Up to so many pairs are counted out.
const EXACT: usize = 400;

/// In how many orders of `few` and `many` values so many pairs are the wrong way round, for every number
/// of pairs.
fn arrangements(few: usize, many: usize) -> Vec<f64> {
    // The greatest value is one of the first kind, and then it is above all of the second; or it is
    // one of the second, and above none that counts.
    let mut shorter: Vec<Vec<f64>> = vec![vec![1.0]; many + 1];
    for first in 1..=few {
        let mut row: Vec<Vec<f64>> = vec![vec![1.0]];
        for second in 1..=many {
            let mut ways = vec![0.0; first * second + 1];
            for (pairs, count) in shorter[second].iter().enumerate() {
                ways[pairs + second] += count;
            }
            for (pairs, count) in row[second - 1].iter().enumerate() {
                ways[pairs] += count;
            }
            row.push(ways);
        }
        shorter = row;
    }
    shorter.swap_remove(many)
}

/// The same for very many, by the normal distribution that it comes close to.
fn normal_chance(few: f64, many: f64, against: f64) -> f64 {
    let mean = few * many / 2.0;
    let deviation = (few * many * (few + many + 1.0) / 12.0).sqrt();
    // Half a pair makes up for the steps of the counts.
    let distance = (mean - against - 0.5) / deviation;
    upper_tail(distance)
}

/// The share of a normal distribution beyond so many deviations, to four digits (Zelen and Severo's polynomial).
fn upper_tail(distance: f64) -> f64 {
    if distance < 0.0 {
        return 1.0 - upper_tail(-distance);
    }
    let near = 1.0 / (1.0 + 0.231_641_9 * distance);
    let factors = [
        0.319_381_53,
        -0.356_563_782,
        1.781_477_937,
        -1.821_255_978,
        1.330_274_429,
    ];
    let sum = factors
        .iter()
        .rev()
        .fold(0.0, |sum, factor| (sum + factor) * near);
    (-distance * distance / 2.0).exp() / (2.0 * std::f64::consts::PI).sqrt() * sum
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::Random;

    const SEED: u64 = 0x7665_7264;

    #[test]
    fn three_values_decide_only_if_all_are_on_one_side() {
        let peer = [100.0, 110.0, 120.0];
        let less = |ours: [f64; 3]| between(&ours, &peer, Better::Less);
        assert_eq!(less([50.0, 60.0, 99.0]), Verdict::Ahead);
        assert_eq!(
            less([50.0, 60.0, 100.0]),
            Verdict::Level,
            "a tie decides nothing"
        );
        assert_eq!(less([121.0, 160.0, 150.0]), Verdict::Behind);
        assert_eq!(less([119.0, 160.0, 150.0]), Verdict::Level);
    }

    #[test]
    fn where_more_is_better_it_is_the_other_way_round() {
        let peer = [100.0, 110.0, 120.0];
        assert_eq!(between(&[200.0; 3], &peer, Better::More), Verdict::Ahead);
        assert_eq!(between(&[20.0; 3], &peer, Better::More), Verdict::Behind);
    }

    #[test]
    fn less_than_five_percent_is_level_however_sure_it_is() {
        let (ours, peer) = ([104.0; 10], [100.0; 10]);
        assert_eq!(between(&ours, &peer, Better::Less), Verdict::Level);
        assert_eq!(between(&[106.0; 10], &peer, Better::Less), Verdict::Behind);
    }

    #[test]
    fn fewer_than_three_values_decide_nothing_and_zero_needs_no_ratio() {
        assert_eq!(between(&[1.0; 2], &[9.0; 2], Better::Less), Verdict::Level);
        assert_eq!(between(&[], &[9.0; 2], Better::Less), Verdict::Level);
        assert_eq!(between(&[0.0; 3], &[9.0; 3], Better::Less), Verdict::Ahead);
        assert_eq!(between(&[0.0; 3], &[0.0; 3], Better::Less), Verdict::Level);
    }

    #[test]
    fn one_wild_round_of_ten_changes_nothing() {
        let mut ours = [60.0; 10];
        ours[3] = 9_000.0;
        assert_eq!(between(&ours, &[100.0; 10], Better::Less), Verdict::Ahead);
    }

    /// Every order of `few` and `many` values, by how many pairs are the wrong way round.
    fn counted_out(few: usize, many: usize) -> Vec<f64> {
        let mut ways = vec![0.0; few * many + 1];
        for which in 0_u32..1 << (few + many) {
            if which.count_ones() as usize == few {
                let above = (0..few + many).filter(|place| which >> place & 1 == 1);
                let pairs = above.map(|place| (!which & ((1 << place) - 1)).count_ones() as usize);
                ways[pairs.sum::<usize>()] += 1.0;
            }
        }
        ways
    }

    #[test]
    fn the_arrangements_are_those_that_can_be_counted_out() {
        for (few, many) in [(1, 1), (2, 3), (3, 3), (4, 2), (5, 6)] {
            assert_eq!(
                arrangements(few, many),
                counted_out(few, many),
                "{few} and {many}"
            );
        }
        // 73 of 100 pairs.
        let ten = arrangements(10, 10);
        let chance = |against: usize| ten[..=against].iter().sum::<f64>() / ten.iter().sum::<f64>();
        assert!(chance(27) <= CHANCE && chance(28) > CHANCE);
    }

    #[test]
    fn very_many_are_judged_nearly_as_exactly() {
        let exact = arrangements(20, 20);
        let all: f64 = exact.iter().sum();
        for against in [60, 120, 138, 160] {
            let counted = exact[..=against].iter().sum::<f64>() / all;
            let near = normal_chance(20.0, 20.0, against as f64);
            assert!(
                (counted - near).abs() < 0.002,
                "{against}: {counted} {near}"
            );
        }
    }

    /// How often ours is called behind and ahead, in percent, of many rows in which it is as good as `peers`
    /// others. Values spread by tens of percent, so that the first condition has little to say.
    fn false_alarms(peers: usize, values: usize) -> [f64; 2] {
        const ROWS: usize = 20_000;
        let mut random = Random::new(SEED);
        let mut draw = || -> Vec<f64> { (0..values).map(|_| 1.0 + random.share()).collect() };
        let mut wrong = [0; 2];
        for _ in 0..ROWS {
            let ours = draw();
            let all: Vec<Vec<f64>> = (0..peers).map(|_| draw()).collect();
            let median = |values: &Vec<f64>| Spread::of(values).map_or(0.0, |spread| spread.median);
            let best = all.iter().min_by(|a, b| median(a).total_cmp(&median(b)));
            match between(&ours, best.expect("there are peers"), Better::Less) {
                Verdict::Behind => wrong[0] += 1,
                Verdict::Ahead => wrong[1] += 1,
                Verdict::Level => {}
            }
        }
        wrong.map(|count| f64::from(count) * 100.0 / ROWS as f64)
    }

    #[test]
    fn false_alarms_are_as_rare_as_the_header_says() {
        for (peers, values, behind, ahead) in [
            (1, 3, 5.0, 5.0),
            (3, 3, 10.0, 1.0),
            (10, 3, 15.0, 0.0),
            (1, 10, 5.0, 5.0),
        ] {
            let rates = false_alarms(peers, values);
            let is_near = |rate: f64, said: f64| rate <= said + 0.6 && rate >= said - 1.6;
            assert!(
                is_near(rates[0], behind) && is_near(rates[1], ahead),
                "seed {SEED}, {peers} peers, {values} values: {rates:?}"
            );
        }
    }
}
