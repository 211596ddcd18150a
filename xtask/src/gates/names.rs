//! Predicates ask, and the vocabulary is short.
//!
//! - A function called `is_..`, `has_..`, `may_..` or `can_..` answers a question: it returns something
//!   and does not take `&mut self`. A function that acts is called by a verb. Tests, whose names are
//!   sentences, may begin with any word.
//! - `docs/words.md` explains the words that are our own. More than [`MAX_WORDS`] of them would be a
//!   language of its own.

use std::path::Path;

use anyhow::Result;
use proc_macro2::{Delimiter, TokenTree};

use crate::gates::{PREDICATES, WORDS};
use crate::report::{Report, Rule};
use crate::step::Step;
use crate::table::Outcome;
use crate::text::files;
use crate::text::markdown::Document;
use crate::text::source::Source;
use crate::text::tokens::{self, Next, Position, group, is_sign, is_word, word};
use crate::workspace::Workspace;

/// How predicates begin.
const ASKING: &[&str] = &["is_", "has_", "may_", "can_"];

/// Predicates that may take `&mut self` or return nothing, as `file: name`, each with its reason.
const ALLOWED: &[(&str, &str)] = &[];

const DOCUMENT: &str = "docs/words.md";

/// How many rows the tables of `docs/words.md` have at most.
pub const MAX_WORDS: usize = 40;

/// Checks the sources in `crates`, `examples` and `xtask`, and the vocabulary.
///
/// # Errors
/// If a file cannot be read or is not Rust.
pub fn check(root: &Path) -> Result<Report> {
    check_with(root, PREDICATES, WORDS)
}

/// The same, with both rules given.
///
/// # Errors
/// As [`check`].
pub fn check_with(root: &Path, predicates: Rule, words: Rule) -> Result<Report> {
    let mut report = Report::default();
    for folder in ["crates", "examples", "xtask"] {
        for file in files::below(root, folder, "rs")? {
            check_predicates(&Source::read(root, &file)?, predicates, &mut report);
        }
    }
    check_words(root, words, &mut report)?;
    Ok(report)
}

/// The gate.
///
/// # Errors
/// As [`check`].
pub fn run(workspace: &Workspace, step: &mut Step) -> Result<Outcome> {
    Outcome::of_report(&check(&workspace.root)?, step)
}

fn check_words(root: &Path, rule: Rule, report: &mut Report) -> Result<()> {
    let document = Path::new(DOCUMENT);
    if !root.join(document).is_file() {
        return Ok(());
    }
    report.checked += 1;
    let tables = Document::parse(&files::read(root, document)?).tables;
    let rows: usize = tables.iter().map(|table| table.len() - 1).sum();
    if rows > MAX_WORDS {
        let text = format!("{rows} rows, of which {MAX_WORDS} are allowed: use the field's words");
        report.add_under(rule, document, 0, text);
    }
    Ok(())
}

fn check_predicates(source: &Source, rule: Rule, report: &mut Report) {
    tokens::walk(&source.tokens, &mut |position| {
        if let Some(name) = predicate(position) {
            report.checked += 1;
            let key = format!("{}: {name}", source.path.display());
            let is_allowed = ALLOWED.iter().any(|(allowed, _)| *allowed == key);
            if let Some(what) = acts(position)
                && !is_allowed
            {
                let text = format!("`{name}` {what}: a predicate asks, call this one by a verb");
                report.add_under(rule, &source.path, position.line(), text);
            }
        }
        Next::Enter
    });
}

/// The name of the function that `fn` here declares, if it is a predicate's and no test's.
fn predicate(position: &Position<'_>) -> Option<String> {
    if !is_word(Some(position.token()), "fn") || is_test(position) {
        return None;
    }
    let name = word(position.ahead(1))?;
    ASKING
        .iter()
        .any(|start| name.starts_with(start))
        .then_some(name)
}

/// Whether the function has the attribute `#[test]`.
fn is_test(position: &Position<'_>) -> bool {
    let attribute = |back| group(position.back(back), Delimiter::Bracket);
    let mut back = 1;
    while let Some(words) = attribute(back) {
        if is_word(words.first(), "test") {
            return true;
        }
        back += 2;
    }
    false
}

/// Why the function at `position` is no predicate.
fn acts(position: &Position<'_>) -> Option<&'static str> {
    let (at, parameters) = parameters(position)?;
    let is_unit = match (
        position.ahead(at + 1),
        position.ahead(at + 2),
        position.ahead(at + 3),
    ) {
        (arrow, _, answer) if is_sign(arrow, '-') => {
            group(answer, Delimiter::Parenthesis).is_some_and(|tuple| tuple.is_empty())
        }
        _ => true,
    };
    let mut receiver = parameters
        .split(|token| is_sign(Some(token), ','))
        .next()
        .unwrap_or_default();
    // `&'a mut self`
    if let [and, quote, TokenTree::Ident(_), rest @ ..] = receiver
        && is_sign(Some(and), '&')
        && is_sign(Some(quote), '\'')
    {
        receiver = rest;
    } else if let [and, rest @ ..] = receiver
        && is_sign(Some(and), '&')
    {
        receiver = rest;
    } else {
        receiver = &[];
    }
    let takes_mut = is_word(receiver.first(), "mut") && is_word(receiver.get(1), "self");
    match (takes_mut, is_unit) {
        (true, _) => Some("takes `&mut self`"),
        (false, true) => Some("returns nothing"),
        (false, false) => None,
    }
}

/// The parameters of the function at `position`, and how many tokens ahead they are.
fn parameters(position: &Position<'_>) -> Option<(usize, Vec<TokenTree>)> {
    let mut depth = 0;
    let mut at = 2;
    loop {
        let token = position.ahead(at)?;
        // The arrow of `F: Fn() -> T` closes nothing.
        let is_arrow = is_sign(position.ahead(at - 1), '-');
        if is_sign(Some(token), '<') {
            depth += 1;
        } else if is_sign(Some(token), '>') && !is_arrow {
            depth -= 1;
        } else if depth == 0
            && let Some(parameters) = group(Some(token), Delimiter::Parenthesis)
        {
            return Some((at, parameters));
        }
        at += 1;
    }
}
