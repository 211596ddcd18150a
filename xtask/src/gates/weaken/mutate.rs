//! Mutants and their results as plain data.

use std::fmt;
use std::path::{Path, PathBuf};

use anyhow::Result;

use crate::gates::ledger::orderings::{self, Spot};
use crate::table::Outcome;

/// One ordering, to be weakened to `Relaxed`.
#[derive(Clone, Debug)]
pub struct Mutant {
    /// Its number in the workspace, from 1.
    pub number: usize,
    /// The labels on the line.
    pub labels: Vec<String>,
    /// The file, relative to the root.
    pub file: PathBuf,
    /// The line of the ordering.
    pub line: usize,
    /// The ordering as it is.
    pub ordering: String,
    /// Where it is.
    pub spot: Spot,
    /// Why no model can detect it, if the comment says so.
    pub unmodelled: Option<String>,
}

impl Mutant {
    /// True if the line has this label, which may be in brackets.
    pub fn has_label(&self, label: &str) -> bool {
        let label = label.trim_start_matches('[').trim_end_matches(']');
        self.labels.iter().any(|own| own == label)
    }
}

impl fmt::Display for Mutant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let file = self.file.file_name().unwrap_or_default().to_string_lossy();
        write!(
            f,
            "[{}] {file}:{} {}",
            self.labels.join("] ["),
            self.line,
            self.ordering
        )
    }
}

/// The result of a mutant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fate {
    /// This model failed, as it should.
    Caught(String),
    /// Every model passed.
    Survived,
    /// The comment says why no model can detect it.
    NotModelled(String),
    /// This model ran into its time limit.
    OutOfTime(String),
}

impl fmt::Display for Fate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fate::Caught(test) => write!(f, "caught by {test}"),
            Fate::Survived => f.write_str("SURVIVED"),
            Fate::NotModelled(reason) => write!(f, "not modelled: {reason}"),
            Fate::OutOfTime(model) => write!(f, "UNDECIDED: {model} ran out of time"),
        }
    }
}

/// One mutant for each labelled strong ordering of these packages.
///
/// # Errors
/// If a source cannot be read.
pub fn mutants(root: &Path, packages: &[String]) -> Result<Vec<Mutant>> {
    let mut ends = Vec::new();
    for package in packages {
        ends.extend(orderings::ends(root, package)?);
    }
    let labelled = ends.into_iter().filter(|end| !end.labels.is_empty());
    Ok(labelled
        .enumerate()
        .map(|(index, end)| Mutant {
            number: index + 1,
            unmodelled: unmodelled(&end.comment),
            labels: end.labels,
            file: end.file,
            line: end.ordering.line,
            ordering: end.ordering.name,
            spot: end.ordering.spot,
        })
        .collect())
}

/// The reason behind `unmodelled:`; a word without a reason is none.
fn unmodelled(comment: &str) -> Option<String> {
    let (_, reason) = comment.split_once("unmodelled:")?;
    let reason = reason.trim();
    (!reason.is_empty()).then(|| reason.to_string())
}

/// The mutants and their results, as a table.
pub fn table(mutants: &[Mutant], fates: &[Fate]) -> String {
    let mut rows = vec![[
        "label".to_string(),
        "place".into(),
        "ordering".into(),
        "verdict".into(),
    ]];
    for (mutant, fate) in mutants.iter().zip(fates) {
        rows.push([
            format!("[{}]", mutant.labels.join("] [")),
            format!("{}:{}", mutant.file.display(), mutant.line),
            mutant.ordering.clone(),
            fate.to_string(),
        ]);
    }
    crate::runner::aligned(&rows)
}

/// The outcome of the gate.
pub fn judge(fates: &[Fate]) -> Outcome {
    let caught = fates
        .iter()
        .filter(|fate| matches!(fate, Fate::Caught(_)))
        .count();
    let excused = fates
        .iter()
        .filter(|fate| matches!(fate, Fate::NotModelled(_)))
        .count();
    let open = fates.len() - caught - excused;
    match (open, caught) {
        (0, 0) => Outcome::failed("no mutant was tried"),
        (0, _) => Outcome::passed(format!("{caught} caught, {excused} not modelled")),
        _ => Outcome::failed(format!("{open} of {} mutants were not caught", fates.len())),
    }
}
