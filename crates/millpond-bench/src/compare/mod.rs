//! Two runs, row by row: which rows got better or worse beyond noise.
//!
//! # The rule
//!
//! A row has changed if all three hold:
//!
//! 1. its new median is outside the range of its old rounds, from the smallest to the largest;
//! 2. its old median is outside the range of its new rounds;
//! 3. the medians differ by more than the *noise*.
//!
//! The first two judge by how far rounds spread, whatever their distribution. If nothing has changed,
//! ten rounds a side reach that by chance in about one row of 700, and five in one of 20; three
//! do in one of five, so fewer than [`FEW_ROUNDS`] are warned about.
//!
//! That would be all if rounds of one run were as different as those of two. They are not: where
//! memory happens to lie, or what else runs on the machine, is the same for a whole run. How much that
//! makes is known from the peers of the same suite, which are the same program in both runs: the noise is
//! [`DEVIATIONS`] times their usual deviation (the median of them, which a few that did change do not
//! move), and [`SMALLEST`] at least. On a quiet machine that is a few percent; on a busy one it is
//! more, and fewer changes are reported.
//!
//! # The day
//!
//! The same program takes twice as long on another day, on a machine that is shared. But the peers
//! are the same in both runs: what they have changed by, in the middle, is the *drift*, and the old
//! figures are moved by it before they are judged. It is taken from the workload's own peers if there
//! are [`ENOUGH_PEERS`] of them in both runs, otherwise from those of all rows of the suite in the
//! same unit; if they are too few as well, there is none. So "better" means: better than the peers
//! would let one expect. That also holds for a peer that was exchanged for a younger version.
//!
//! Figures that are zero or below, such as those of an idle pool, have no ratio. They are judged by
//! the first two alone, without drift or noise.

mod table;

use crate::condition::Condition;
use crate::figure::Better;
use crate::machine::Surroundings;
use crate::record::{Record, Row};
use crate::stats::Spread;
use std::cmp::Ordering;

/// Medians that differ by less than this factor do not differ, however quiet it was.
pub const SMALLEST: f64 = 1.05;

/// So many usual deviations of the peers are noise: three times what would be the standard deviation
/// if they were distributed normally.
pub const DEVIATIONS: f64 = 3.0 * 1.482_6;

/// Rounds below this number say little.
pub const FEW_ROUNDS: u64 = 5;

/// So many peers in both runs make a drift.
pub const ENOUGH_PEERS: usize = 3;

/// The differences of two runs.
#[derive(Clone, Debug, PartialEq)]
pub struct Comparison {
    /// Rows that are in both, in the order of the new run.
    pub pairs: Vec<Pair>,
    /// Rows that only the old run has, by name.
    pub gone: Vec<String>,
    /// Rows that only the new run has, by name.
    pub added: Vec<String>,
    /// Reasons to believe less of it.
    pub doubts: Vec<String>,
}

/// One row in both runs.
#[derive(Clone, Debug, PartialEq)]
pub struct Pair {
    /// Suite, workload and candidate.
    pub name: String,
    /// Whether it is one of ours.
    pub is_ours: bool,
    /// The unit of the medians.
    pub unit: String,
    /// The old median.
    pub old: f64,
    /// The new median.
    pub new: f64,
    /// The drift of the peers; 1 if that is not known.
    pub drift: f64,
    /// The factor that is noise.
    pub noise: f64,
    /// The verdict.
    pub verdict: Verdict,
}

/// The verdict on a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It changed for the better, beyond noise.
    Better,
    /// It changed for the worse, beyond noise.
    Worse,
    /// The change may be noise.
    Same,
}

impl Comparison {
    /// Compares two runs.
    pub fn of(old: &Record, new: &Record) -> Self {
        let twins = new.rows.iter().filter_map(|row| {
            let before = twin(&old.rows, row)?;
            let drift = drift(&old.rows, &new.rows, row).filter(|_| before.median > 0.0);
            Some(Twins {
                old: before,
                new: row,
                drift,
            })
        });
        let twins: Vec<Twins<'_>> = twins.collect();
        let pairs = twins.iter().map(|one| one.pair(noise(&twins, one.new)));
        let missing = |rows: &[Row], elsewhere: &[Row]| {
            let alone = rows.iter().filter(|row| twin(elsewhere, row).is_none());
            alone.map(name).collect()
        };
        Comparison {
            pairs: pairs.collect(),
            gone: missing(&old.rows, &new.rows),
            added: missing(&new.rows, &old.rows),
            doubts: doubts(old, new),
        }
    }

    /// The rows with this verdict, ours first, and those that changed most before the others.
    pub fn with(&self, verdict: Verdict) -> Vec<&Pair> {
        let pairs = self.pairs.iter().filter(|pair| pair.verdict == verdict);
        let mut pairs: Vec<&Pair> = pairs.collect();
        let size = |pair: &Pair| pair.ratio().map_or(f64::INFINITY, |ratio| ratio.ln().abs());
        pairs.sort_by(|a, b| {
            let ours_first = b.is_ours.cmp(&a.is_ours);
            ours_first.then(size(b).total_cmp(&size(a)))
        });
        pairs
    }
}

/// A row of both runs, and what its peers have changed by.
struct Twins<'a> {
    old: &'a Row,
    new: &'a Row,
    drift: Option<f64>,
}

impl Twins<'_> {
    /// How far it is from where the drift would have it, as a logarithm.
    fn deviation(&self) -> Option<f64> {
        let ratio = ratio(self.old.median * self.drift?, self.new.median)?;
        Some(ratio.ln().abs())
    }

    fn pair(&self, noise: f64) -> Pair {
        let Twins { old, new, .. } = self;
        let drift = self.drift.unwrap_or(1.0);
        let expected = Spread {
            median: old.median * drift,
            min: old.min * drift,
            max: old.max * drift,
        };
        Pair {
            name: name(new),
            is_ours: new.is_ours(),
            unit: new.unit.clone(),
            old: old.median,
            new: new.median,
            drift,
            noise,
            verdict: verdict(expected, new, noise),
        }
    }
}

impl Pair {
    /// The new median by the old one, with the drift taken out.
    pub fn ratio(&self) -> Option<f64> {
        ratio(self.old * self.drift, self.new)
    }
}

fn verdict(expected: Spread, new: &Row, noise: f64) -> Verdict {
    let is_outside = |value: f64, min: f64, max: f64| value < min || value > max;
    let is_beyond_noise = is_outside(new.median, expected.min, expected.max)
        && is_outside(expected.median, new.min, new.max);
    let is_large =
        ratio(expected.median, new.median).is_none_or(|ratio| ratio.max(ratio.recip()) > noise);
    if !(is_beyond_noise && is_large) {
        return Verdict::Same;
    }
    let is_less = new.median.total_cmp(&expected.median) == Ordering::Less;
    if is_less == (new.better == Better::Less) {
        Verdict::Better
    } else {
        Verdict::Worse
    }
}

fn ratio(old: f64, new: f64) -> Option<f64> {
    (old > 0.0 && new > 0.0).then(|| new / old)
}

fn name(row: &Row) -> String {
    let Row {
        suite,
        workload,
        candidate,
        ..
    } = row;
    let condition = match row.in_condition() {
        Condition::Quiet => String::new(),
        other => format!(", {}", other.words()),
    };
    match row.point() {
        // A workload may be the same all along a curve.
        Some((_, x)) => format!("{suite}{condition}: {workload} (at {x}): {candidate}"),
        None => format!("{suite}{condition}: {workload}: {candidate}"),
    }
}

fn twin<'a>(rows: &'a [Row], of: &Row) -> Option<&'a Row> {
    let key = |row: &Row| {
        (
            row.curve.clone(),
            row.x.map(f64::to_bits),
            row.in_condition(),
        )
    };
    rows.iter().find(|row| {
        (&row.suite, &row.workload, &row.candidate) == (&of.suite, &of.workload, &of.candidate)
            && row.unit == of.unit
            && key(row) == key(of)
    })
}

/// The drift of the peers; `None` if there are too few of them to say.
fn drift(old: &[Row], new: &[Row], of: &Row) -> Option<f64> {
    let among = |is_near: &dyn Fn(&Row) -> bool| {
        let peers = new.iter().filter(|row| !row.is_ours() && is_near(row));
        let ratios = peers.filter_map(|row| ratio(twin(old, row)?.median, row.median));
        let ratios: Vec<f64> = ratios.collect();
        let is_enough = ratios.len() >= ENOUGH_PEERS;
        is_enough.then(|| Spread::of(&ratios).map(|spread| spread.median))?
    };
    let is_in_suite = |row: &Row| {
        row.suite == of.suite && row.unit == of.unit && row.in_condition() == of.in_condition()
    };
    let is_beside =
        |row: &Row| is_in_suite(row) && row.workload == of.workload && row.point() == of.point();
    among(&is_beside).or_else(|| among(&is_in_suite))
}

/// The factor by which rows like `of` differ between two runs of the same.
fn noise(twins: &[Twins<'_>], of: &Row) -> f64 {
    let is_near = |row: &Row| {
        row.suite == of.suite && row.unit == of.unit && row.in_condition() == of.in_condition()
    };
    let peers = twins
        .iter()
        .filter(|one| !one.new.is_ours() && is_near(one.new));
    let deviations: Vec<f64> = peers.filter_map(Twins::deviation).collect();
    let usual = Spread::of(&deviations).filter(|_| deviations.len() >= ENOUGH_PEERS);
    let noise = usual.map_or(0.0, |usual| usual.median * DEVIATIONS).exp();
    noise.max(SMALLEST)
}

fn doubts(old: &Record, new: &Record) -> Vec<String> {
    let mut doubts = Vec::new();
    if hardware(&old.machine) != hardware(&new.machine) {
        let line = |machine: &Surroundings| machine.lines().lines().next().unwrap_or("").to_owned();
        doubts.push(format!(
            "another machine: the old run is from {}; this one from {}. Ratios to the best peer \
             can be compared, these figures hardly",
            line(&old.machine),
            line(&new.machine)
        ));
    }
    let fewest = |record: &Record| record.rows.iter().map(|row| row.rounds).min();
    for (which, record) in [("old", old), ("new", new)] {
        if let Some(rounds) = fewest(record).filter(|&rounds| rounds < FEW_ROUNDS) {
            doubts.push(format!(
                "few rounds: the {which} run has rows of {rounds}, and what so few have in common \
                 may be chance; ten are the usual number"
            ));
        }
        if let Some(load) = record.machine.load_before.filter(|&load| load > 0.5) {
            doubts.push(format!(
                "a busy machine: the load was {load:.1} before the {which} run"
            ));
        }
        if let Some(steal) = record.machine.steal_percent.filter(|&steal| steal > 2.0) {
            doubts.push(format!(
                "a crowded machine: {steal:.0} % of the CPU time of the {which} run went to others"
            ));
        }
    }
    doubts
}

/// The facts that identify a machine.
fn hardware(machine: &Surroundings) -> (Option<&str>, &str, u64) {
    (
        machine.cpu_model.as_deref(),
        &machine.arch,
        machine.effective_cpus.to_bits(),
    )
}

#[cfg(test)]
mod tests;
