//! Invariant ids: each is stated once in the repository, and each that is cited is stated.
//!
//! An id names its module and its rule: `WORKERS-1`, `TASK-OUT`. A `//!` header states it as a list
//! item, `- **WORKERS-1** ..`; a heading of a document may state one too (`## JAVA-1. ..`). Comments
//! and documents cite it. A word of that form that means something else starts with one of [`FOREIGN`].
//!
//! Ids of the old form (`W1`) say nothing about their module and are stated more than once. They are
//! counted until [`OLD_STYLE_IDS`] makes them an error; then old-style
//! words in comments are errors too, because they can only cite a rule that is gone.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use anyhow::Result;

use super::headers::{self, Form, citations, form, stated};
use crate::gates::OLD_STYLE_IDS;
use crate::report::{Report, Rule};
use crate::text::files;
use crate::text::markdown::Document;
use crate::text::source::Source;

/// First words of what looks like an id and is none: standards, bug trackers, file names, the days
/// in cron expressions and the zones in time-zone strings.
const FOREIGN: &[&str] = &[
    "UTF", "ISO", "RFC", "SHA", "JDK", "JSR", "LICENSE", "MON", "TUE", "WED", "THU", "FRI", "SAT",
    "SUN", "CET", "EST",
];

/// Old-style words that are no ids: the levels of the crates.
const OLD_FOREIGN: &[&str] = &["L0", "L1", "L2", "L3", "L4", "L5"];

/// Where ids are stated and cited. The sources of the gates only talk about the form.
const FOLDERS: &[&str] = &["crates", "examples"];

/// Checks the sources in `crates` and `examples` and every document below `root`.
///
/// # Errors
/// If a file cannot be read or is not Rust.
pub fn check(root: &Path) -> Result<Report> {
    check_with(root, OLD_STYLE_IDS)
}

/// The same, with ids of the old form under `old_style`.
///
/// # Errors
/// As [`check`].
pub fn check_with(root: &Path, old_style: Rule) -> Result<Report> {
    let mut ids = Ids::default();
    for folder in FOLDERS {
        for file in files::below(root, folder, "rs")? {
            ids.read_source(&Source::read(root, &file)?);
        }
    }
    for file in files::owned(root)? {
        if file.extension().is_some_and(|extension| extension == "md") {
            ids.read_document(&file, &files::read(root, &file)?);
        }
    }
    Ok(ids.report(old_style))
}

#[derive(Debug)]
struct Mention {
    id: String,
    file: PathBuf,
    line: usize,
}

#[derive(Debug, Default)]
struct Ids {
    stated: Vec<Mention>,
    cited: Vec<Mention>,
}

impl Ids {
    fn read_source(&mut self, source: &Source) {
        let mut own = BTreeMap::new();
        for (line, text) in headers::own(source) {
            if let Some(id) = stated(&text) {
                self.state(id, &source.path, line);
                own.insert(line, id.to_string());
            }
        }
        for (index, line) in source.lines.iter().enumerate() {
            let Some((_, text)) = &line.comment else {
                continue;
            };
            let line = index + 1;
            // The line that states an id may cite others.
            let cited = citations(text).filter(|id| own.get(&line).is_none_or(|own| own != id));
            for id in cited {
                self.cite(id, &source.path, line);
            }
        }
    }

    fn read_document(&mut self, file: &Path, text: &str) {
        for (line, heading) in Document::parse(text).headings {
            let first = heading.split(['.', ' ']).next().unwrap_or_default();
            if form(first).is_some() {
                self.state(first, file, line);
            }
        }
        for (index, line) in text.lines().enumerate() {
            for id in citations(line) {
                self.cite(id, file, index + 1);
            }
        }
    }

    fn state(&mut self, id: &str, file: &Path, line: usize) {
        self.stated.push(Mention::new(id, file, line));
    }

    fn cite(&mut self, id: &str, file: &Path, line: usize) {
        self.cited.push(Mention::new(id, file, line));
    }

    fn report(&self, old_style: Rule) -> Report {
        let mut report = Report {
            checked: self.stated.len(),
            ..Report::default()
        };
        let mut first: BTreeMap<&str, &Mention> = BTreeMap::new();
        let mut old = BTreeSet::new();
        for one in &self.stated {
            if form(&one.id) == Some(Form::Old) {
                old.insert(one.id.as_str());
                if old_style == Rule::Enforced {
                    let advice = "name its module and its rule, as in `WORKERS-1`";
                    let text = format!("`{}` is an id of the old form: {advice}", one.id);
                    report.add(&one.file, one.line, text);
                }
            } else if let Some(other) = first.insert(&one.id, one) {
                let (file, line) = (other.file.display(), other.line);
                let text = format!("`{}` is stated in {file}:{line} already", one.id);
                report.add(&one.file, one.line, text);
            }
        }
        if old_style == Rule::Pending && !old.is_empty() {
            let count = self.stated.len() - first.len();
            report.pending.push(format!(
                "{} ids of the old form name {count} invariants",
                old.len()
            ));
        }
        for one in &self.cited {
            let wrong = match form(&one.id) {
                Some(Form::Named) => !first.contains_key(one.id.as_str()) && !is_foreign(&one.id),
                _ => {
                    old_style == Rule::Enforced
                        && !old.contains(one.id.as_str())
                        && !OLD_FOREIGN.contains(&one.id.as_str())
                }
            };
            report.checked += 1;
            if wrong {
                let text = format!("no header states the invariant `{}`", one.id);
                report.add(&one.file, one.line, text);
            }
        }
        report
    }
}

impl Mention {
    fn new(id: &str, file: &Path, line: usize) -> Self {
        Self {
            id: id.to_string(),
            file: file.to_path_buf(),
            line,
        }
    }
}

fn is_foreign(id: &str) -> bool {
    let first = id.split('-').next().unwrap_or_default();
    FOREIGN.contains(&first)
}
