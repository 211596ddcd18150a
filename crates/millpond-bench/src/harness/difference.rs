//! The cost of something that can be switched off: the same candidate with and without.
//!
//! The difference is taken round by round, between two turns of the same round, and the row is
//! the median of these differences: what slows the machine down for a second slows both of them down,
//! and falls out. The difference of two medians would not have that.

use super::{Course, Workload};
use crate::figure::{Better, Goal};
use crate::report::{self, PerOperation, Row};
use crate::stats::{Percentiles, Spread};

/// The question: how much more does `with` take than `without`?
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Difference {
    /// The candidate that does more.
    pub with: &'static str,
    /// The one that does not.
    pub without: &'static str,
    /// The limit of the difference, in the unit of the workload's first figure.
    pub below: f64,
}

impl Difference {
    /// A small difference between two noisy figures takes more rounds than their ratio.
    pub const MORE_ROUNDS: usize = 4;

    /// `None` if one of the two is not here.
    pub(super) fn row(&self, workload: &Workload, courses: &[Course<'_>]) -> Option<Row> {
        let figure = workload.figures.first()?;
        let find = |name| courses.iter().find(|course| course.candidate.name == name);
        let (with, without) = (find(self.with)?, find(self.without)?);
        let rounds = with.samples.iter().zip(&without.samples);
        let more = rounds.filter_map(|(with, without)| {
            let (with, without) = ((figure.of)(with)?, (figure.of)(without)?);
            Some(with - without)
        });
        let more: Vec<f64> = more.collect();
        let mut rows = [Row {
            suite: workload.suite,
            workload: format!("{}: difference", workload.name),
            candidate: self.with,
            standing: with.candidate.standing.into(),
            unit: figure.unit.clone(),
            spread: Spread::of(&more)?,
            values: more.clone(),
            percentiles: Percentiles::default(),
            rounds: more.len(),
            operations: with.samples.iter().map(|sample| sample.operations).sum(),
            // A difference allocates nothing and sleeps nowhere.
            per_operation: PerOperation::default(),
            ratio_to_best_peer: None,
            limit: None,
            verdict: None,
            lost: false,
            better: Better::Less,
            fates: None,
            point: None,
        }];
        report::judge(&mut rows, Goal::Below(self.below));
        rows.into_iter().next()
    }
}
