//! Finding `unsafe` in tokens. The word in comments, strings and documentation is none.

use proc_macro2::{Delimiter, TokenTree};

use crate::text::source::Source;
use crate::text::tokens::{self, Next, Place, group, is_sign, is_word, line_of};

/// What an `unsafe` introduces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// `unsafe { .. }`, `unsafe impl`, `unsafe extern`, `#[unsafe(..)]`: a promise made here.
    Promise,
    /// `unsafe fn`, `unsafe trait`: a promise asked of others.
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
    /// Lines above which its comment may stand: its own, and those where the expression,
    /// argument or statement around it begins.
    pub starts: Vec<usize>,
}

/// Every `unsafe` of a file, macros included.
pub fn find(source: &Source) -> Vec<Unsafe> {
    let mut found = Vec::new();
    tokens::walk(&source.tokens, &mut |place| {
        if is_word(Some(place.token()), "unsafe") && !is_sign(place.back(1), '$') {
            found.push(Unsafe {
                line: place.line(),
                form: form(place),
                starts: starts(place),
            });
        }
        Next::Enter
    });
    found
}

fn form(place: &Place<'_>) -> Form {
    let mut at = 1;
    if is_word(place.ahead(1), "extern") {
        // `unsafe extern "C" fn` is a function, `unsafe extern "C" { .. }` a block.
        at = if matches!(place.ahead(2), Some(TokenTree::Literal(_))) {
            3
        } else {
            2
        };
    }
    if is_word(place.ahead(at), "fn") {
        return match place.ahead(at + 1) {
            Some(TokenTree::Group(_)) => Form::Type,
            _ => Form::Demand {
                documented: documented(place),
            },
        };
    }
    match is_word(place.ahead(1), "trait") || is_word(place.ahead(1), "auto") {
        true => Form::Demand {
            documented: documented(place),
        },
        false => Form::Promise,
    }
}

/// Walks back over qualifiers and attributes and looks for the section.
fn documented(place: &Place<'_>) -> bool {
    let mut back = 1;
    loop {
        let token = place.back(back);
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

fn starts(place: &Place<'_>) -> Vec<usize> {
    let mut lines = vec![place.line()];
    let mut here = *place;
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
fn first_of_item(place: &Place<'_>) -> usize {
    let ends_an_item = |token: &TokenTree| {
        is_sign(Some(token), ';')
            || is_sign(Some(token), ',')
            || group(Some(token), Delimiter::Brace).is_some()
    };
    place.level[..place.at]
        .iter()
        .rposition(ends_an_item)
        .map_or(0, |index| index + 1)
}
