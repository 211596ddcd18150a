//! The report of a pure gate: how much it checked, and what is wrong.

use std::fmt;
use std::path::{Path, PathBuf};

/// One violation, at one place.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Finding {
    /// The file, relative to the root the gate was given.
    pub file: PathBuf,
    /// The line, from 1; 0 means the file as a whole.
    pub line: usize,
    /// What is wrong and what to do.
    pub text: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            0 => write!(f, "{}: {}", self.file.display(), self.text),
            line => write!(f, "{}:{line}: {}", self.file.display(), self.text),
        }
    }
}

/// Whether a violation of a rule fails the gate. A rule that the sources do not follow everywhere is pending.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    /// A violation fails the gate.
    Enforced,
    /// A violation is only printed.
    Pending,
}

/// The result of one pure gate.
///
/// A gate that checked nothing has not passed: what it looks for has moved.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// Everything that is wrong.
    pub findings: Vec<Finding>,
    /// Violations of rules that are [pending](Rule::Pending).
    pub pending: Vec<String>,
    /// How many places the gate checked.
    pub checked: usize,
}

impl Report {
    /// Adds a violation.
    pub fn add(&mut self, file: &Path, line: usize, text: impl Into<String>) {
        self.findings.push(Finding {
            file: file.to_path_buf(),
            line,
            text: text.into(),
        });
    }

    /// Adds a violation of `rule`.
    pub fn add_under(&mut self, rule: Rule, file: &Path, line: usize, text: impl Into<String>) {
        self.add(file, line, text);
        if rule == Rule::Pending {
            let pending = self.findings.pop().map(|finding| finding.to_string());
            self.pending.extend(pending);
        }
    }

    /// Adds another report.
    pub fn merge(&mut self, other: Report) {
        self.findings.extend(other.findings);
        self.pending.extend(other.pending);
        self.checked += other.checked;
    }

    /// True if something was checked and nothing is wrong.
    pub fn is_clean(&self) -> bool {
        self.findings.is_empty() && self.checked > 0
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut findings = self.findings.clone();
        findings.sort();
        for finding in &findings {
            writeln!(f, "{finding}")?;
        }
        for text in &self.pending {
            writeln!(f, "pending: {text}")?;
        }
        match (findings.len(), self.checked) {
            (0, 0) => writeln!(
                f,
                "found nothing to check: is this the root of the workspace?"
            ),
            (wrong, seen) => writeln!(f, "{seen} places checked, {wrong} wrong"),
        }
    }
}
