//! Unsafe code is confined to one crate; the roots of all others forbid it.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use proc_macro2::{Delimiter, TokenTree};
use toml::{Table, Value};

use super::{RAW, unsafes};
use crate::report::Report;
use crate::text::files;
use crate::text::source::Source;
use crate::text::tokens::{group, is_sign, is_word};

/// Checks every package but `millpond-raw`: sources, tests, benches, examples and build scripts.
///
/// # Errors
/// If a file cannot be read or is not Rust.
pub fn check(root: &Path) -> Result<Report> {
    let mut report = Report::default();
    let packages = files::packages(root)?;
    for package in packages
        .iter()
        .filter(|package| !package.ends_with("millpond-raw"))
    {
        for file in files::below(root, &package.to_string_lossy(), "rs")? {
            report.checked += 1;
            for one in unsafes::find(&Source::read(root, &file)?) {
                report.add(
                    &file,
                    one.line,
                    format!("unsafe code belongs in {RAW}, behind a safe interface"),
                );
            }
        }
        for file in roots(root, package)? {
            if !forbids_unsafe(&Source::read(root, &file)?) {
                report.add(&file, 1, "a crate root says `#![forbid(unsafe_code)]`");
            }
        }
    }
    // Examples may also be in the top folder, without a package of their own.
    for file in files::below(root, "examples", "rs")? {
        for one in unsafes::find(&Source::read(root, &file)?) {
            report.add(&file, one.line, "examples show safe code only");
        }
    }
    report.findings.sort();
    report
        .findings
        .dedup_by(|a, b| (&a.file, a.line) == (&b.file, b.line));
    Ok(report)
}

/// The root files of the package's libraries and programs.
fn roots(root: &Path, package: &Path) -> Result<Vec<PathBuf>> {
    let file = package.join("Cargo.toml");
    let manifest: Table = files::read(root, &file)?
        .parse()
        .with_context(|| format!("{} is no manifest", file.display()))?;
    let mut found: Vec<PathBuf> = ["src/lib.rs", "src/main.rs"]
        .iter()
        .map(|name| package.join(name))
        .collect();
    let bins = package.join("src/bin");
    for file in files::below(root, &bins.to_string_lossy(), "rs")? {
        let in_folder = file
            .strip_prefix(&bins)
            .unwrap_or(&file)
            .components()
            .count()
            > 1;
        if !in_folder || file.ends_with("main.rs") {
            found.push(file);
        }
    }
    let library = manifest.get("lib").into_iter();
    let programs = manifest
        .get("bin")
        .and_then(Value::as_array)
        .into_iter()
        .flatten();
    for target in library.chain(programs) {
        if let Some(path) = target.get("path").and_then(Value::as_str) {
            found.push(package.join(path));
        }
    }
    found.retain(|file| root.join(file).is_file());
    found.sort();
    found.dedup();
    Ok(found)
}

fn forbids_unsafe(source: &Source) -> bool {
    let tokens: Vec<TokenTree> = source.tokens.clone().into_iter().collect();
    tokens.windows(3).any(|three| {
        let inner = is_sign(Some(&three[0]), '#') && is_sign(Some(&three[1]), '!');
        let attribute = group(Some(&three[2]), Delimiter::Bracket).unwrap_or_default();
        let names = group(attribute.get(1), Delimiter::Parenthesis).unwrap_or_default();
        inner
            && is_word(attribute.first(), "forbid")
            && names.iter().any(|name| is_word(Some(name), "unsafe_code"))
    })
}
