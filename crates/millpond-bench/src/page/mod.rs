//! The page: a run in one file of HTML, for any browser, without a network.
//!
//! ```text
//!   Record -> panels: bars | curve | ladder -> svg    what is drawn
//!                  `-> tables                         the same in numbers
//!          -> summary                                 what it comes to, losses first
//! ```
//!
//! What is drawn how:
//!
//! - **bars** for one workload: a bar per candidate, from zero, the best on top, ours in colour. A
//!   candidate that is many times worse than all that matters would press the others flat, so its
//!   bar is torn off; its number stands beside it all the same.
//! - **a curve** for points: a line per candidate. An axis whose values span more than
//!   [`scale::WIDE`] is logarithmic, and so is one of times. Where workers are counted, the
//!   universal scalability law that fits ours is drawn beside it.
//! - **a ladder** for candidates that do not compete, such as what the machine costs: dots on one
//!   logarithmic scale.
//!
//! Plots are as wide as a phone and stand side by side where there is room: what is legible there is
//! legible everywhere. There is no script. Colours are variables, so that the page follows the
//! reader's choice of light or dark; no meaning hangs on colour alone. Names come from outside, so
//! every one passes [`text::escape`].

mod bars;
mod curve;
mod ladder;
mod panels;
mod scale;
mod suite;
mod summary;
mod svg;
mod tables;
mod text;

use crate::record::Record;
use std::fmt::Write;
use text::escape;

/// The name of the page in its folder.
pub const FILE: &str = "index.html";

/// The page of a run.
pub fn html(record: &Record) -> String {
    let suites = suite::all(record);
    let mut page = String::from("<!doctype html>\n<html lang=\"en\">\n<head>\n");
    page += "<meta charset=\"utf-8\">\n<title>Millpond beside its peers</title>\n";
    page += "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n";
    page += "<meta name=\"color-scheme\" content=\"light dark\">\n<style>\n";
    page += include_str!("style.css");
    page += &curve::highlights();
    page += "</style>\n</head>\n<body>\n";
    page += &summary::head(record);
    page += "<main>\n";
    page += &summary::contents(&suites);
    page += &summary::losses(record);
    page += &summary::overview(record);
    for suite in &suites {
        page += &suite.html();
    }
    page += &notes(record);
    page += include_str!("reading.html");
    page += "</main>\n</body>\n</html>\n";
    page
}

/// Further notes: those of the suites, and why a reference is no peer.
fn notes(record: &Record) -> String {
    let rows = record.rows.iter();
    let reasons = rows.filter_map(|row| Some((row.because.as_deref()?, row.candidate.as_str())));
    let mut references: Vec<(&str, &str)> = reasons.collect();
    references.sort_unstable();
    references.dedup();
    if references.is_empty() && record.notes.is_empty() {
        return String::new();
    }
    let mut html = String::from("<section id=\"notes\">\n<h2>Notes</h2>\n<ul class=\"notes\">\n");
    for note in &record.notes {
        let _ = writeln!(html, "<li>{}</li>", escape(note));
    }
    // One reason may be that of many.
    for those in references.chunk_by(|(one, _), (other, _)| one == other) {
        let names: Vec<String> = those.iter().map(|(_, name)| escape(name)).collect();
        let because = escape(those[0].0);
        let _ = writeln!(
            html,
            "<li>For reference: <b>{}</b>: {because}</li>",
            names.join(", ")
        );
    }
    html += "</ul>\n</section>\n";
    html
}

#[cfg(test)]
mod tests;
