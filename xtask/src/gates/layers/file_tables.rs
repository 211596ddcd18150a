//! The file table of a folder is complete: `| file | what |` at the top of its `mod.rs` lists every module that the
//! file declares, and nothing else.
//!
//! It is in the header (`//!`), or in the plain comment (`//`) below it: that of a module which users see on its page
//! is in the comment, because files are nothing to them.
//!
//! A folder of [`LIBRARIES`] with two or more modules has such a table. Wherever else one exists (any
//! crate, a `lib.rs` too) it is checked just the same. The first column names modules in backticks, one
//! or several: `` `ctl` ``, `` `ctl.rs` ``, `` [`ctl`] ``. Modules for tests alone are left out.

use std::collections::BTreeSet;
use std::path::Path;

use anyhow::Result;
use proc_macro2::TokenTree;

use crate::gates::FILE_TABLES;
use crate::report::{Report, Rule};
use crate::text::files;
use crate::text::markdown::Document;
use crate::text::source::Source;
use crate::text::tokens::{self, Next, is_sign, is_word, test_only_item};

/// The crates whose folders must have a table.
const LIBRARIES: &[&str] = &[
    "crates/millpond/src",
    "crates/millpond-raw/src",
    "crates/millpond-stack/src",
];

/// Checks every `mod.rs` and `lib.rs` in `crates`.
///
/// # Errors
/// If a file cannot be read or is not Rust.
pub fn check(root: &Path) -> Result<Report> {
    check_with(root, FILE_TABLES)
}

/// The same, with violations under `rule`.
///
/// # Errors
/// As [`check`].
pub fn check_with(root: &Path, rule: Rule) -> Result<Report> {
    let mut report = Report::default();
    for file in files::below(root, "crates", "rs")? {
        if file.ends_with("mod.rs") || file.ends_with("lib.rs") {
            check_file(&Source::read(root, &file)?, rule, &mut report);
        }
    }
    Ok(report)
}

fn check_file(source: &Source, rule: Rule, report: &mut Report) {
    let file = &source.path;
    let declared = declared(source);
    let Some(table) = listed(source) else {
        let is_required =
            file.ends_with("mod.rs") && LIBRARIES.iter().any(|it| file.starts_with(it));
        if is_required && declared.len() > 1 {
            report.checked += 1;
            let names = quoted(&declared);
            let text =
                format!("the top of the file has no table `| file | what |`; it lists {names}");
            report.add_under(rule, file, 1, text);
        }
        return;
    };
    report.checked += 1;
    let names: BTreeSet<String> = table.iter().map(|(_, name)| name.clone()).collect();
    let missing: BTreeSet<String> = declared.difference(&names).cloned().collect();
    if !missing.is_empty() {
        let text = format!("the file table lacks {}", quoted(&missing));
        report.add_under(rule, file, table.first().map_or(1, |row| row.0), text);
    }
    for (line, name) in table {
        if !declared.contains(&name) {
            let text = format!("the file table lists `{name}`, which is no module of this folder");
            report.add_under(rule, file, line, text);
        }
    }
}

fn quoted(names: &BTreeSet<String>) -> String {
    let names: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
    names.join(", ")
}

/// The modules of `mod name;`, but for those of `#[cfg(test)]`.
fn declared(source: &Source) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    tokens::walk(&source.tokens, &mut |position| {
        if let Some(steps) = test_only_item(position) {
            return Next::Skip(steps);
        }
        if is_word(Some(position.token()), "mod")
            && let Some(TokenTree::Ident(name)) = position.ahead(1)
            && is_sign(position.ahead(2), ';')
            && position.outer.is_none()
        {
            found.insert(name.to_string());
        }
        Next::Enter
    });
    found
}

/// The names in the first column of the file table, each with its line; nothing without a table. If there is one in the
/// header and another one in the notes below, both count.
fn listed(source: &Source) -> Option<Vec<(usize, String)>> {
    let tables = [listed_in(&source.header()), listed_in(&source.notes())];
    tables.into_iter().flatten().reduce(|mut all, more| {
        all.extend(more);
        all
    })
}

fn listed_in(lines: &[(usize, &str)]) -> Option<Vec<(usize, String)>> {
    let text: Vec<&str> = lines.iter().map(|(_, text)| *text).collect();
    let document = Document::parse(&text.join("\n"));
    let mut tables = document.tables.iter();
    let table = tables.find(|table| {
        let head = table.first().and_then(|(_, head)| head.first());
        head.is_some_and(|cell| cell.text.trim() == "file")
    })?;
    let mut found = Vec::new();
    for (row, cells) in &table[1..] {
        let line = lines.get(row - 1).map_or(0, |(line, _)| *line);
        for code in cells
            .first()
            .map(|cell| cell.codes.as_slice())
            .unwrap_or_default()
        {
            let name = code.trim_end_matches('/').trim_end_matches(".rs");
            found.push((line, name.trim_start_matches("r#").to_string()));
        }
    }
    Some(found)
}
