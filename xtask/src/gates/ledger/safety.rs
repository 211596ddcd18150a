//! Every `unsafe` in `millpond-raw` cites an invariant that its module states.

use std::path::Path;

use anyhow::Result;

use super::RAW;
use super::headers::{self, Headers, cited, stated};
use super::unsafes::{self, Form, Unsafe};
use crate::report::Report;
use crate::text::files;
use crate::text::source::{Line, Source};

/// Checks the sources of `millpond-raw`.
///
/// # Errors
/// If a file cannot be read or is not Rust.
pub fn check(root: &Path) -> Result<Report> {
    let mut report = Report::default();
    let mut headers = Headers::default();
    let top = Path::new(RAW).join("src");
    for file in files::below(root, &top.to_string_lossy(), "rs")? {
        let source = Source::read(root, &file)?;
        report.checked += 1;
        check_header(&source, &mut report);
        let known = headers.around(root, &top, &file)?;
        let known: Vec<&str> = known.iter().filter_map(|line| stated(line)).collect();
        for one in unsafes::find(&source) {
            report.checked += 1;
            if let Some(wrong) = judge(&source, &one, &known) {
                report.add(&file, one.line, wrong);
            }
        }
    }
    Ok(report)
}

fn check_header(source: &Source, report: &mut Report) {
    let mut seen: Vec<String> = Vec::new();
    for (line, text) in headers::own(source) {
        let Some(id) = stated(&text) else { continue };
        if seen.iter().any(|other| other == id) {
            report.add(
                &source.path,
                line,
                format!("invariant {id} is stated twice: number it anew"),
            );
        }
        seen.push(id.to_string());
    }
}

fn judge(source: &Source, one: &Unsafe, known: &[&str]) -> Option<String> {
    match one.form {
        Form::Type | Form::Demand { documented: true } => return None,
        Form::Demand { documented: false } => {
            return Some("its documentation has no `# Safety` section".into());
        }
        Form::Promise => {}
    }
    let Some(comment) = one
        .starts
        .iter()
        .find_map(|start| safety_above(source, *start))
    else {
        return Some("no `// SAFETY: ` comment is directly above".into());
    };
    let ids = cited(&comment);
    if ids.is_empty() {
        return Some(
            "SAFETY cites no invariant: name one of the header, as in `SAFETY: TASK-3 - ..`".into(),
        );
    }
    let unknown: Vec<&str> = ids.into_iter().filter(|id| !known.contains(id)).collect();
    let first = unknown.first()?;
    Some(format!(
        "SAFETY cites {}, which no header around states (`//! - **{first}** ..`)",
        unknown.join(", ")
    ))
}

/// The text behind `SAFETY: ` in the comment block above line `start`, attributes skipped.
fn safety_above(source: &Source, start: usize) -> Option<String> {
    let mut number = start.checked_sub(1)?;
    while source.line(number).is_some_and(Line::is_attribute) {
        number -= 1;
    }
    let mut block = Vec::new();
    while let Some(line) = source.line(number)
        && line.is_comment_only()
        && let Some(text) = line.plain_comment()
    {
        block.push(text.trim());
        number -= 1;
    }
    block.reverse();
    let text = block.join(" ");
    text.split_once("SAFETY: ")
        .map(|(_, behind)| behind.to_string())
}
