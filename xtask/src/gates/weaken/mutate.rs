//! Mutants as plain data: what is changed, what became of them, what that means.

use std::fmt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::gates::ledger::orderings::{self, Edit};
use crate::table::Outcome;

/// One ordering, taken back to `Relaxed`.
#[derive(Clone, Debug)]
pub struct Mutant {
    /// The labels on the line.
    pub labels: Vec<String>,
    /// The file, relative to the root.
    pub file: PathBuf,
    /// The line of the ordering.
    pub line: usize,
    /// The ordering as it is.
    pub ordering: String,
    /// The change.
    pub edit: Edit,
    /// Why no model can notice, if the comment says so.
    pub unmodelled: Option<String>,
}

impl Mutant {
    /// True if the line bears `label`, with or without its brackets.
    pub fn bears(&self, label: &str) -> bool {
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

/// What became of a mutant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fate {
    /// This model failed, as it should.
    Caught(String),
    /// Every model passed.
    Survived,
    /// The comment says why no model can notice.
    NotModelled(String),
    /// This model was still running when the time was up.
    OutOfTime(String),
    /// The mutant is no valid program.
    DoesNotBuild,
}

impl fmt::Display for Fate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fate::Caught(test) => write!(f, "caught by {test}"),
            Fate::Survived => f.write_str("SURVIVED"),
            Fate::NotModelled(reason) => write!(f, "not modelled: {reason}"),
            Fate::OutOfTime(program) => write!(f, "UNDECIDED: {program} ran out of time"),
            Fate::DoesNotBuild => f.write_str("UNDECIDED: it does not build"),
        }
    }
}

/// One mutant per labelled strong ordering of `package`.
///
/// # Errors
/// If a source cannot be read.
pub fn mutants(root: &Path, package: &str) -> Result<Vec<Mutant>> {
    let ends = orderings::ends(root, package)?;
    Ok(ends
        .into_iter()
        .filter(|end| !end.labels.is_empty())
        .map(|end| Mutant {
            unmodelled: unmodelled(&end.comment),
            labels: end.labels,
            file: end.file,
            line: end.ordering.line,
            ordering: end.ordering.name,
            edit: end.ordering.edit,
        })
        .collect())
}

/// The reason behind `unmodelled:`; a word without a reason is none.
fn unmodelled(comment: &str) -> Option<String> {
    let (_, reason) = comment.split_once("unmodelled:")?;
    let reason = reason.trim();
    (!reason.is_empty()).then(|| reason.to_string())
}

/// The text with the change made.
///
/// # Errors
/// If the place is not in the text.
pub fn apply(text: &str, edit: &Edit) -> Result<String> {
    let mut lines: Vec<String> = text.split('\n').map(String::from).collect();
    let line = lines.get_mut(edit.line - 1).context("the line is gone")?;
    let chars: Vec<char> = line.chars().collect();
    let behind = edit.column + edit.width;
    anyhow::ensure!(behind <= chars.len(), "line {} is too short", edit.line);
    let front: String = chars[..edit.column].iter().collect();
    let back: String = chars[behind..].iter().collect();
    *line = format!("{front}{}{back}", edit.with);
    Ok(lines.join("\n"))
}

/// True if a file of models is named after the file or its folder: it is asked first.
pub fn is_about(model: &str, file: &Path) -> bool {
    let stem = file.file_stem().unwrap_or_default().to_string_lossy();
    let folder = file
        .parent()
        .and_then(Path::file_name)
        .unwrap_or_default()
        .to_string_lossy();
    model
        .split('_')
        .skip(1)
        .any(|word| word == stem || word == folder)
}

/// What was tried and what became of it, as a table.
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

/// What the fates mean for the gate.
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
