//! What a pure gate has to say: where it looked, and what is wrong there.

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

/// The result of one pure gate.
///
/// A gate that looked at nothing has not passed: the folder moved, or the gate went blind.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// Everything that is wrong.
    pub findings: Vec<Finding>,
    /// How many things the gate looked at.
    pub looked_at: usize,
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

    /// Takes over what another report found.
    pub fn merge(&mut self, other: Report) {
        self.findings.extend(other.findings);
        self.looked_at += other.looked_at;
    }

    /// True if something was looked at and nothing is wrong.
    pub fn is_clean(&self) -> bool {
        self.findings.is_empty() && self.looked_at > 0
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut findings = self.findings.clone();
        findings.sort();
        for finding in &findings {
            writeln!(f, "{finding}")?;
        }
        match (findings.len(), self.looked_at) {
            (0, 0) => writeln!(
                f,
                "found nothing to look at: is this the root of the house?"
            ),
            (wrong, seen) => writeln!(f, "{seen} places looked at, {wrong} wrong"),
        }
    }
}
