//! `docs/safety.md` lists exactly the files with unsafe code, and its proofs exist.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use anyhow::Result;

use super::{RAW, unsafes};
use crate::report::Report;
use crate::text::files;
use crate::text::markdown::{Cell, Document};
use crate::text::source::Source;

const DOCUMENT: &str = "docs/safety.md";

/// Checks the document against the sources.
///
/// # Errors
/// If a file cannot be read or is not Rust.
pub fn check(root: &Path) -> Result<Report> {
    let mut report = Report::default();
    let file = Path::new(DOCUMENT);
    let unsafe_files = files_with_unsafe(root)?;
    if !root.join(file).is_file() {
        report.add(
            file,
            0,
            "the ledger is missing: a table with the columns module, promise, proof",
        );
        return Ok(report);
    }
    let document = Document::parse(&files::read(root, file)?);
    let mut listed = BTreeSet::new();
    for (line, row, proof_column) in rows(&document) {
        report.checked += 1;
        let Some(module) = row.first().and_then(|cell| cell.codes.first()) else {
            report.add(
                file,
                line,
                "the first column names a file in backticks, as in `sync/lock.rs`",
            );
            continue;
        };
        listed.insert(PathBuf::from(module));
        if !unsafe_files.contains(Path::new(module)) {
            let what = format!("`{module}` is no file of {RAW}/src with unsafe code: drop the row");
            report.add(file, line, what);
        }
        check_proofs(root, line, module, row.get(proof_column), &mut report);
    }
    for source in unsafe_files.difference(&listed) {
        let full = Path::new(RAW).join("src").join(source);
        report.add(
            &full,
            0,
            format!("has unsafe code but no row in {DOCUMENT}"),
        );
    }
    Ok(report)
}

/// The rows of every table that has a proof column, with the column's index.
fn rows(document: &Document) -> Vec<(usize, &[Cell], usize)> {
    let mut rows = Vec::new();
    for table in &document.tables {
        let Some(((_, head), body)) = table.split_first() else {
            continue;
        };
        let proof = head
            .iter()
            .position(|cell| cell.text.trim().eq_ignore_ascii_case("proof"));
        if let Some(proof) = proof {
            rows.extend(
                body.iter()
                    .map(|(line, row)| (*line, row.as_slice(), proof)),
            );
        }
    }
    rows
}

fn check_proofs(root: &Path, line: usize, module: &str, cell: Option<&Cell>, report: &mut Report) {
    let file = Path::new(DOCUMENT);
    let codes = cell.map(|cell| cell.codes.as_slice()).unwrap_or_default();
    let mut proofs = codes.iter().filter(|code| code.ends_with(".rs")).peekable();
    if proofs.peek().is_none() {
        report.add(
            file,
            line,
            format!("no proof for `{module}`: name its test or model file"),
        );
    }
    for proof in proofs {
        if !root.join(RAW).join(proof).is_file() {
            report.add(
                file,
                line,
                format!("the proof `{proof}` does not exist below {RAW}"),
            );
        }
    }
}

fn files_with_unsafe(root: &Path) -> Result<BTreeSet<PathBuf>> {
    let top = Path::new(RAW).join("src");
    let mut found = BTreeSet::new();
    for file in files::below(root, &top.to_string_lossy(), "rs")? {
        if !unsafes::find(&Source::read(root, &file)?).is_empty() {
            found.insert(file.strip_prefix(&top).unwrap_or(&file).to_path_buf());
        }
    }
    Ok(found)
}
