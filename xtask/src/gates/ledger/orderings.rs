//! Every ordering above `Relaxed` carries the label of a pair, the pair is explained in a header,
//! and it has at least two ends.
//!
//! The label is in a comment on the line of the ordering, or on a comment line directly above it. Code
//! for tests alone is left out: its orderings are not part of a protocol.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::Result;
use proc_macro2::{Delimiter, TokenTree};

use super::headers::{Headers, labels};
use crate::report::Report;
use crate::text::files;
use crate::text::source::Source;
use crate::text::tokens::{self, Next, Position, is_sign, is_word, test_only_item, word};

const STRONG: &[&str] = &["Acquire", "Release", "AcqRel", "SeqCst"];

/// The crates whose atomics are part of a protocol.
const CRATES: &[&str] = &["crates/millpond-raw", "crates/millpond"];

/// An ordering above `Relaxed` in the code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Strong {
    /// Its line, from 1.
    pub line: usize,
    /// Its name.
    pub name: String,
    /// What to replace to weaken it.
    pub spot: Spot,
}

/// A path in the code, within one line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spot {
    /// What it names.
    pub kind: Kind,
    /// The line, from 1.
    pub line: usize,
    /// Its first character, from 0.
    pub column: usize,
    /// How many characters it has.
    pub width: usize,
}

/// What a path names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The ordering of an operation: `Ordering::Acquire`.
    Ordering,
    /// The function of a fence: `atomic::fence`. Its ordering cannot be replaced, because a relaxed
    /// fence panics, which would prove nothing.
    Fence,
}

/// A labelled end of a pair.
#[derive(Clone, Debug)]
pub struct End {
    /// The file, relative to the root.
    pub file: PathBuf,
    /// The ordering.
    pub ordering: Strong,
    /// The labels on it; none if it is not labelled.
    pub labels: Vec<String>,
    /// The comment that carries the labels.
    pub comment: String,
}

/// Checks both crates below `root`.
///
/// # Errors
/// If a file cannot be read or is not Rust.
pub fn check(root: &Path) -> Result<Report> {
    let mut report = Report::default();
    for package in CRATES {
        report.merge(check_crate(root, package)?);
    }
    Ok(report)
}

fn check_crate(root: &Path, package: &str) -> Result<Report> {
    let mut report = Report::default();
    let mut headers = Headers::default();
    let mut places: BTreeMap<String, Vec<(PathBuf, usize)>> = BTreeMap::new();
    let top = Path::new(package).join("src");
    for end in ends(root, package)? {
        report.checked += 1;
        let (file, line) = (&end.file, end.ordering.line);
        if end.labels.is_empty() {
            let name = &end.ordering.name;
            let advice = "write its pair, as in `// [P-tok]`, on this line or on the line above";
            report.add(file, line, format!("`{name}` has no label: {advice}"));
        }
        let around = headers.around(root, &top, file)?;
        for label in &end.labels {
            if !around
                .iter()
                .any(|text| labels(text).contains(&label.as_str()))
            {
                report.add(
                    file,
                    line,
                    format!("no header around explains the label [{label}]"),
                );
            }
            places
                .entry(label.clone())
                .or_default()
                .push((file.clone(), line));
        }
    }
    for (label, mut ends) in places {
        ends.dedup();
        if let [(file, line)] = ends.as_slice() {
            report.add(
                file,
                *line,
                format!("[{label}] marks one place only: a pair has two ends"),
            );
        }
    }
    Ok(report)
}

/// Every strong ordering in the sources of `package`, with its labels.
///
/// # Errors
/// If a file cannot be read or is not Rust.
pub fn ends(root: &Path, package: &str) -> Result<Vec<End>> {
    let top = Path::new(package).join("src");
    let mut sources = Vec::new();
    for file in files::below(root, &top.to_string_lossy(), "rs")? {
        sources.push(Source::read(root, &file)?);
    }
    let test_files = all_test_files(&sources);
    let mut found = Vec::new();
    for source in &sources {
        if is_for_tests(source, &test_files) {
            continue;
        }
        found.extend(
            strong(source)
                .into_iter()
                .map(|ordering| labelled(source, ordering)),
        );
    }
    Ok(found)
}

/// The files, without extension, and folders that are for tests alone.
pub(super) fn all_test_files(sources: &[Source]) -> Vec<PathBuf> {
    sources.iter().flat_map(test_files).collect()
}

/// Whether a file is one of them.
pub(super) fn is_for_tests(source: &Source, test_files: &[PathBuf]) -> bool {
    test_files
        .iter()
        .any(|test| source.path.with_extension("") == *test || source.path.starts_with(test))
}

fn labelled(source: &Source, ordering: Strong) -> End {
    let own = source
        .line(ordering.line)
        .and_then(|line| line.plain_comment());
    let above = source
        .line(ordering.line - 1)
        .filter(|line| line.is_comment_only());
    let above = above.and_then(|line| line.plain_comment());
    let comment = [own, above]
        .into_iter()
        .flatten()
        .find(|text| !labels(text).is_empty())
        .unwrap_or_default()
        .trim()
        .to_string();
    let labels = labels(&comment).into_iter().map(String::from).collect();
    End {
        file: source.path.clone(),
        ordering,
        labels,
        comment,
    }
}

/// Every strong ordering outside test-only items.
pub fn strong(source: &Source) -> Vec<Strong> {
    let mut found = Vec::new();
    tokens::walk(&source.tokens, &mut |position| {
        if let Some(steps) = test_only_item(position).or_else(|| import(position)) {
            return Next::Skip(steps);
        }
        if is_strong(position)
            && let Some(spot) = fence(position).or_else(|| spot(position, 0, Kind::Ordering))
        {
            found.push(Strong {
                line: position.line(),
                name: position.token().to_string(),
                spot,
            });
        }
        Next::Enter
    });
    found
}

/// The function, if the ordering is a fence's.
fn fence(position: &Position<'_>) -> Option<Spot> {
    let outer = position.outer?;
    is_word(outer.back(1), "fence")
        .then(|| spot(outer, 1, Kind::Fence))
        .flatten()
}

/// The path whose last word is `last` tokens back.
fn spot(position: &Position<'_>, last: usize, kind: Kind) -> Option<Spot> {
    let end = position.back(last)?.span().end();
    let mut first = last;
    while is_sign(position.back(first + 1), ':') && word(position.back(first + 3)).is_some() {
        first += 3;
    }
    let start = position.back(first)?.span().start();
    // rustfmt does not break a path. If one is broken, its replacement does not build.
    let column = if start.line == end.line {
        start.column
    } else {
        0
    };
    Some(Spot {
        kind,
        line: end.line,
        column,
        width: end.column - column,
    })
}

/// If a `use` item starts here: how many tokens until its end.
fn import(position: &Position<'_>) -> Option<usize> {
    let is_use = is_word(Some(position.token()), "use");
    let end = || {
        position.level[position.at..]
            .iter()
            .position(|token| is_sign(Some(token), ';'))
    };
    if is_use { end() } else { None }
}

/// `Ordering::Acquire` anywhere, or a bare `Acquire` as an argument.
fn is_strong(position: &Position<'_>) -> bool {
    let name = word(Some(position.token()));
    if !name.is_some_and(|name| STRONG.contains(&name.as_str())) {
        return false;
    }
    if is_sign(position.back(1), ':') && is_sign(position.back(2), ':') {
        return is_word(position.back(3), "Ordering");
    }
    let begins = position.at == 0 || is_sign(position.back(1), ',');
    let ends = position.ahead(1).is_none() || is_sign(position.ahead(1), ',');
    let called = position.outer.and_then(|outer| outer.back(1));
    position.delimiter == Delimiter::Parenthesis
        && begins
        && ends
        && matches!(called, Some(TokenTree::Ident(_) | TokenTree::Punct(_)))
}

/// Files of `#[cfg(test)] mod name;`, without extension.
fn test_files(source: &Source) -> Vec<PathBuf> {
    let own = source.path.with_extension("");
    let folder = match own.file_name().and_then(|name| name.to_str()) {
        Some("mod" | "lib" | "main") => own.parent().unwrap_or(&own).to_path_buf(),
        _ => own,
    };
    let mut found = Vec::new();
    tokens::walk(&source.tokens, &mut |position| {
        if let Some(steps) = test_only_item(position) {
            let item = &position.level[position.at..=position.at + steps];
            if let [.., kind, TokenTree::Ident(name), end] = item
                && is_word(Some(kind), "mod")
                && is_sign(Some(end), ';')
            {
                found.push(folder.join(name.to_string()));
            }
            return Next::Skip(steps);
        }
        Next::Enter
    });
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(text: &str) -> Vec<String> {
        let source = Source::parse(Path::new("a.rs"), text.into()).unwrap();
        strong(&source)
            .into_iter()
            .map(|strong| strong.name)
            .collect()
    }

    #[test]
    fn orderings_are_seen_in_both_spellings() {
        assert_eq!(
            names("fn f() { x.load(Ordering::Acquire); x.store(1, Release) }"),
            ["Acquire", "Release"]
        );
        assert_eq!(
            names("fn f() { fence(atomic::Ordering::SeqCst); }"),
            ["SeqCst"]
        );
        assert_eq!(names("m! { x.swap(1, AcqRel) }"), ["AcqRel"]);
    }

    #[test]
    fn imports_relaxed_and_words_of_the_same_name_do_not_count() {
        assert!(names("use Ordering::{Acquire, Release}; fn f() { x.load(Relaxed) }").is_empty());
        assert!(names("struct Release; fn f(a: Release) -> Acquire { Acquire::new() }").is_empty());
        assert!(names("#[cfg(test)] mod tests { fn f() { x.load(Acquire) } }").is_empty());
    }
}
