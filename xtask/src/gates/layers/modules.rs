//! Which module of the library may use which.
//!
//! A module may use modules of a strictly lower rank; modules on one rank are siblings and never
//! use each other. The tokens decide, not the `use` items alone: a path in an expression, in a
//! type or in a macro is an import too. Tests inside the source keep the same rule, so that a
//! module can be tested without the ranks above it.
//!
//! `lib.rs` and `prelude.rs` may name everything, and no other module goes through them: `crate::Pool`
//! would hide the module that the name comes from.

use std::path::Path;

use anyhow::Result;
use proc_macro2::{Delimiter, TokenStream, TokenTree};

use crate::report::Report;
use crate::text::files;
use crate::text::source::Source;
use crate::text::tokens::{self, Next, Position, group, is_sign, is_word, word};

/// The table of modules: a line is a rank, lowest first.
const RANKS: &[&[&str]] = &[
    &["thread", "stack", "meter", "machine", "adapt"],
    &["time"],
    &["interrupt"],
    &["task", "queue"],
    &["manage"],
    &["executor"],
    &["engine"],
    &["pool", "schedule", "forkjoin"],
    &["future"],
    &["preset", "serialize"],
];

const LIBRARY: &str = "crates/millpond/src";
const ROOTS: &[&str] = &["lib", "prelude"];

/// Modules of `lib.rs` for tests alone, below all ranks.
const TEST_KITS: &[&str] = &["proptest_kit"];

fn rank(module: &str) -> Option<usize> {
    RANKS.iter().position(|line| line.contains(&module))
}

/// Checks every source file of the library.
///
/// # Errors
/// If a file cannot be read or is not Rust.
pub fn check(root: &Path) -> Result<Report> {
    let mut report = Report::default();
    for file in files::below(root, LIBRARY, "rs")? {
        report.checked += 1;
        let path = module_path(file.strip_prefix(LIBRARY).unwrap_or(&file));
        let Some(module) = path.first() else { continue };
        if ROOTS.contains(&module.as_str()) {
            continue;
        }
        let Some(own) = rank(module) else {
            let advice = "add it to RANKS in xtask/src/gates/layers/modules.rs";
            report.add(&file, 0, format!("module `{module}` has no rank: {advice}"));
            continue;
        };
        let source = Source::read(root, &file)?;
        for import in imports(&source.tokens, path.len()) {
            if let Some(wrong) = judge(module, own, &import.module) {
                report.add(&file, import.line, wrong);
            }
        }
    }
    Ok(report)
}

fn judge(module: &str, own: usize, used: &str) -> Option<String> {
    match rank(used) {
        _ if used == module || TEST_KITS.contains(&used) => None,
        Some(other) if other < own => None,
        Some(other) if other == own => Some(format!(
            "`{module}` uses its sibling `{used}`: both have rank {own}"
        )),
        Some(other) => Some(format!(
            "`{module}` (rank {own}) uses `{used}` (rank {other}): imports point down only"
        )),
        None => Some(format!(
            "`{module}` goes through the crate root for `{used}`: name the module it lives in"
        )),
    }
}

/// `time/wheel.rs` is [time, wheel]; `time/mod.rs` is [time]; `lib.rs` is [lib].
fn module_path(file: &Path) -> Vec<String> {
    let mut path: Vec<String> = file
        .with_extension("")
        .iter()
        .map(|part| part.to_string_lossy().into_owned())
        .collect();
    if path.last().is_some_and(|last| last == "mod") {
        path.pop();
    }
    path
}

struct Import {
    module: String,
    line: usize,
}

/// Every name reached through the crate root, in a module `depth` levels below it.
fn imports(tokens: &TokenStream, depth: usize) -> Vec<Import> {
    let mut found = Vec::new();
    tokens::walk(tokens, &mut |position| {
        let climbed = if is_word(Some(position.token()), "crate") {
            Some(1)
        } else if is_word(Some(position.token()), "super") && !follows_a_path(position) {
            let steps = supers(position);
            (steps == depth + inline_depth(position)).then_some(3 * steps - 2)
        } else {
            None
        };
        if let Some(width) = climbed {
            found.extend(names_behind(position, width));
        }
        Next::Enter
    });
    found
}

/// True for the second `super` of `super::super`: the first one has been counted with it.
fn follows_a_path(position: &Position<'_>) -> bool {
    is_sign(position.back(1), ':')
        && is_sign(position.back(2), ':')
        && is_word(position.back(3), "super")
}

fn supers(position: &Position<'_>) -> usize {
    let mut steps = 1;
    while is_sign(position.ahead(3 * steps - 2), ':')
        && is_sign(position.ahead(3 * steps - 1), ':')
        && is_word(position.ahead(3 * steps), "super")
    {
        steps += 1;
    }
    steps
}

/// How many `mod x { .. }` of this file enclose the position.
fn inline_depth(position: &Position<'_>) -> usize {
    let mut depth = 0;
    let mut around = position.outer;
    let mut delimiter = position.delimiter;
    while let Some(outer) = around {
        let named = matches!(outer.back(1), Some(TokenTree::Ident(_)));
        if delimiter == Delimiter::Brace && named && is_word(outer.back(2), "mod") {
            depth += 1;
        }
        delimiter = outer.delimiter;
        around = outer.outer;
    }
    depth
}

/// The first names behind the root: one, or each of a `{..}` list.
fn names_behind(position: &Position<'_>, width: usize) -> Vec<Import> {
    let line = position.line();
    if !is_sign(position.ahead(width), ':') || !is_sign(position.ahead(width + 1), ':') {
        // `use crate as c` would make every later path invisible.
        let is_renamed = is_word(position.ahead(width), "as");
        let module = "crate as ..".into();
        return is_renamed
            .then_some(Import { module, line })
            .into_iter()
            .collect();
    }
    let behind = position.ahead(width + 2);
    if let Some(module) = word(behind) {
        return vec![Import { module, line }];
    }
    if is_sign(behind, '*') {
        return vec![Import {
            module: "*".into(),
            line,
        }];
    }
    let list = group(behind, Delimiter::Brace).unwrap_or_default();
    list.split(|token| is_sign(Some(token), ','))
        .filter_map(|entry| entry.first())
        .map(|first| Import {
            module: word(Some(first)).unwrap_or_else(|| "*".into()),
            line: tokens::line_of(first),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::str::FromStr;

    fn modules_in(text: &str, depth: usize) -> Vec<String> {
        let tokens = TokenStream::from_str(text).unwrap();
        imports(&tokens, depth)
            .into_iter()
            .map(|import| import.module)
            .collect()
    }

    #[test]
    fn every_way_to_name_a_module_is_seen() {
        assert_eq!(modules_in("use crate::time::Clock;", 1), ["time"]);
        assert_eq!(
            modules_in("use crate::{time::Clock, task, self};", 1),
            ["time", "task", "self"]
        );
        assert_eq!(
            modules_in("fn f() { crate::pool::Pool::new() }", 1),
            ["pool"]
        );
        assert_eq!(
            modules_in("fn f(x: &dyn crate::queue::Queue) {}", 1),
            ["queue"]
        );
        assert_eq!(modules_in("vec![crate::meter::now()];", 1), ["meter"]);
        assert_eq!(
            modules_in("macro_rules! m { () => { $crate::future::x() } }", 1),
            ["future"]
        );
        assert_eq!(modules_in("use crate::*;", 1), ["*"]);
        assert_eq!(modules_in("use crate as root;", 1), ["crate as .."]);
        assert_eq!(modules_in("pub(crate) fn f() {}", 1), [] as [&str; 0]);
    }

    #[test]
    fn supers_count_only_when_they_reach_the_root() {
        assert_eq!(modules_in("use super::clock;", 2), [] as [&str; 0]);
        assert_eq!(modules_in("use super::super::task;", 2), ["task"]);
        assert_eq!(modules_in("use super::task;", 1), ["task"]);
        assert_eq!(
            modules_in("mod t { use super::super::task; use super::own; }", 1),
            ["task"]
        );
        assert_eq!(
            modules_in("mod t { fn f() { super::super::{a, b::C} } }", 1),
            ["a", "b"]
        );
    }
}
