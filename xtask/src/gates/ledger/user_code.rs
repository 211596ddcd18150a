//! Every `catch_unwind` around user code calls the guard of `user_code`.
//!
//! In test builds the guard checks that user code runs under no lock of ours and not on the timer's thread. The module
//! that catches panics ([`CATCHING`]) calls the guard itself. A `catch_unwind` anywhere else must call it within a few
//! lines. Code for tests alone is left out. User code that is called without catching panics is not found here, but by
//! the values of the test kit, which call the guard.

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

/// The module that catches panics and calls the guard, by its old and its new name.
const CATCHING: [&str; 2] = [
    "crates/millpond-raw/src/catch_panic.rs",
    "crates/millpond-raw/src/catch_panic.rs",
];

/// Calls of the guard.
const GUARDS: &[&str] = &["user_code::", "except_locks(", "under_own_locks("];

/// How many lines away such a call may be.
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
        let code = sources.iter().filter(|source| {
            !is_for_tests(source, &test_files)
                && CATCHING.iter().all(|file| source.path != Path::new(file))
        });
        for source in code {
            for line in catches(source) {
                report.checked += 1;
                if !is_guarded(source, line) {
                    let advice = "catch its panics as `millpond-raw` does, or call `user_code::check` before it";
                    let text = format!("user code is called without the guard: {advice}");
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
    tokens::walk(&source.tokens, &mut |position| {
        if let Some(steps) = test_only_item(position) {
            return Next::Skip(steps);
        }
        let is_call = group(position.ahead(1), Delimiter::Parenthesis).is_some();
        if is_word(Some(position.token()), "catch_unwind") && is_call {
            found.push(position.line());
        }
        Next::Enter
    });
    found
}

fn is_guarded(source: &Source, line: usize) -> bool {
    (line.saturating_sub(NEAR)..=line + NEAR)
        .filter_map(|near| source.line(near))
        .any(|near| {
            let code = near.code.trim_start();
            !code.starts_with("use ") && GUARDS.iter().any(|guard| code.contains(guard))
        })
}
