//! Who contains the panics of user code otherwise than through `quiet`, asks the guard of `user_code` first.
//!
//! That user code runs under no lock of ours and not on the timer's thread is checked when it is called, in test builds
//! (`crates/millpond-raw/src/user_code.rs`). The doors of `quiet` do that by themselves. A `catch_unwind` elsewhere is a
//! call into user code past those doors, so the guard must be asked near it, by name. Code that exists for tests alone is
//! left out. What neither passes a door nor contains panics is not found here; the values of the test kit find it.

use std::path::{Path, PathBuf};

use anyhow::Result;
use proc_macro2::Delimiter;

use super::orderings::is_for_tests;
use crate::report::Report;
use crate::text::files;
use crate::text::source::Source;
use crate::text::tokens::{self, Next, group, is_word, test_only_item};

/// The crates that call user code.
const CRATES: &[&str] = &["crates/millpond-raw", "crates/millpond"];

/// The doors themselves.
const DOORS: &str = "crates/millpond-raw/src/quiet.rs";

/// What asks the guard.
const ASKS: &[&str] = &["user_code::", "except_locks(", "under_own_locks("];

/// How many lines away that may be.
const NEAR: usize = 12;

/// Checks both crates below `root`.
///
/// # Errors
/// If a file cannot be read or is not Rust.
pub fn check(root: &Path) -> Result<Report> {
    let mut report = Report::default();
    for package in CRATES {
        let top = Path::new(package).join("src");
        let mut sources = Vec::new();
        for file in files::below(root, &top.to_string_lossy(), "rs")? {
            sources.push(Source::read(root, &file)?);
        }
        let test_files: Vec<PathBuf> = super::orderings::all_test_files(&sources);
        let code = sources
            .iter()
            .filter(|source| !is_for_tests(source, &test_files) && source.path != Path::new(DOORS));
        for source in code {
            for line in catches(source) {
                report.looked_at += 1;
                if !asks_near(source, line) {
                    let advice = "call it through `quiet`, or ask `user_code::check` before it";
                    let text = format!("user code is called past the guard: {advice}");
                    report.add(&source.path, line, text);
                }
            }
        }
    }
    Ok(report)
}

/// The lines with a call of `catch_unwind` outside test-only items.
fn catches(source: &Source) -> Vec<usize> {
    let mut found = Vec::new();
    tokens::walk(&source.tokens, &mut |place| {
        if let Some(steps) = test_only_item(place) {
            return Next::Skip(steps);
        }
        let is_call = group(place.ahead(1), Delimiter::Parenthesis).is_some();
        if is_word(Some(place.token()), "catch_unwind") && is_call {
            found.push(place.line());
        }
        Next::Enter
    });
    found
}

fn asks_near(source: &Source, line: usize) -> bool {
    (line.saturating_sub(NEAR)..=line + NEAR)
        .filter_map(|near| source.line(near))
        .any(|near| {
            let code = near.code.trim_start();
            !code.starts_with("use ") && ASKS.iter().any(|asks| code.contains(asks))
        })
}
