//! Finding `unsafe` in tokens, which leaves out comments, strings and documentation.

use proc_macro2::{Delimiter, TokenTree};

use crate::text::source::Source;
use crate::text::tokens::{self, Next, Position, group, is_sign, is_word, line_of};

/// What an `unsafe` introduces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// `unsafe { .. }`, `unsafe impl`, `unsafe extern`, `#[unsafe(..)]`: a promise made here.
    Promise,
    /// `unsafe fn`, `unsafe trait`: a promise that others must make.
    Demand {
        /// True if its documentation has a `# Safety` section.
        documented: bool,
    },
    /// `unsafe fn(..)` as a type: it promises nothing.
    Type,
}

/// One `unsafe`.
#[derive(Clone, Debug)]
pub struct Unsafe {
    /// Its line.
    pub line: usize,
    /// What it introduces.
    pub form: Form,
    /// Lines above which its comment may be: its own, and those where the expression, argument or
    /// statement around it begins.
    pub starts: Vec<usize>,
}

/// Every `unsafe` of a file, macros included.
pub fn find(source: &Source) -> Vec<Unsafe> {
    let mut found = Vec::new();
    tokens::walk(&source.tokens, &mut |position| {
        if is_word(Some(position.token()), "unsafe") && !is_sign(position.back(1), '$') {
            found.push(Unsafe {
                line: position.line(),
                form: form(position),
                starts: starts(position),
            });
        }
        Next::Enter
    });
    found
}

fn form(position: &Position<'_>) -> Form {
    let mut at = 1;
    if is_word(position.ahead(1), "extern") {
        // `unsafe extern "C" fn` is a function, `unsafe extern "C" { .. }` a block.
        at = if matches!(position.ahead(2), Some(TokenTree::Literal(_))) {
            3
        } else {
            2
        };
    }
    if is_word(position.ahead(at), "fn") {
        return match position.ahead(at + 1) {
            Some(TokenTree::Group(_)) => Form::Type,
            _ => Form::Demand {
                documented: documented(position),
            },
        };
    }
    if is_word(position.ahead(1), "trait") || is_word(position.ahead(1), "auto") {
        Form::Demand {
            documented: documented(position),
        }
    } else {
        Form::Promise
    }
}

/// Walks back over qualifiers and attributes and looks for the section.
fn documented(position: &Position<'_>) -> bool {
    let mut back = 1;
    loop {
        let token = position.back(back);
        let qualifier = ["pub", "const", "async", "default"]
            .iter()
            .any(|word| is_word(token, word))
            || group(token, Delimiter::Parenthesis).is_some();
        if qualifier {
            back += 1;
        } else if let Some(attribute) = group(token, Delimiter::Bracket) {
            let text = attribute
                .get(2)
                .map(ToString::to_string)
                .unwrap_or_default();
            if is_word(attribute.first(), "doc") && text.contains("# Safety") {
                return true;
            }
            back += 2;
        } else {
            return false;
        }
    }
}

fn starts(position: &Position<'_>) -> Vec<usize> {
    let mut lines = vec![position.line()];
    let mut here = *position;
    loop {
        lines.push(line_of(&here.level[first_of_item(&here)]));
        match here.outer {
            Some(outer) if here.delimiter != Delimiter::Brace => here = *outer,
            _ => break,
        }
    }
    lines.dedup();
    lines
}

/// Where the statement, argument or match arm around the token begins.
fn first_of_item(position: &Position<'_>) -> usize {
    let ends_an_item = |token: &TokenTree| {
        is_sign(Some(token), ';')
            || is_sign(Some(token), ',')
            || group(Some(token), Delimiter::Brace).is_some()
    };
    position.level[..position.at]
        .iter()
        .rposition(ends_an_item)
        .map_or(0, |index| index + 1)
}
