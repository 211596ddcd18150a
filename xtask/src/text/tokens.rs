//! Walking through tokens, with their context.

use proc_macro2::{Delimiter, TokenStream, TokenTree};

/// A token and the tokens around it.
#[derive(Clone, Copy, Debug)]
pub struct Position<'a> {
    /// All tokens of the innermost group.
    pub level: &'a [TokenTree],
    /// The index in `level`.
    pub at: usize,
    /// The delimiter of the innermost group; none for the file itself.
    pub delimiter: Delimiter,
    /// The position of that group in the group around it.
    pub outer: Option<&'a Position<'a>>,
}

impl<'a> Position<'a> {
    /// The token here.
    pub fn token(&self) -> &'a TokenTree {
        &self.level[self.at]
    }

    /// The token `steps` ahead.
    pub fn ahead(&self, steps: usize) -> Option<&'a TokenTree> {
        self.level.get(self.at + steps)
    }

    /// The token `steps` back.
    pub fn back(&self, steps: usize) -> Option<&'a TokenTree> {
        self.at.checked_sub(steps).map(|index| &self.level[index])
    }

    /// The line this token starts on.
    pub fn line(&self) -> usize {
        line_of(self.token())
    }
}

/// How the walk continues.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// Go on, into groups too.
    Enter,
    /// Go on after this many further tokens of this level.
    Skip(usize),
}

/// Visits every token, outer before inner.
pub fn walk(tokens: &TokenStream, visit: &mut dyn FnMut(&Position<'_>) -> Next) {
    walk_level(tokens, Delimiter::None, None, visit);
}

fn walk_level(
    tokens: &TokenStream,
    delimiter: Delimiter,
    outer: Option<&Position<'_>>,
    visit: &mut dyn FnMut(&Position<'_>) -> Next,
) {
    let level: Vec<TokenTree> = tokens.clone().into_iter().collect();
    let mut at = 0;
    while at < level.len() {
        let position = Position {
            level: &level,
            at,
            delimiter,
            outer,
        };
        match visit(&position) {
            Next::Skip(steps) => at += steps,
            Next::Enter => {
                if let TokenTree::Group(group) = &level[at] {
                    walk_level(&group.stream(), group.delimiter(), Some(&position), visit);
                }
            }
        }
        at += 1;
    }
}

/// The line a token starts on.
pub fn line_of(token: &TokenTree) -> usize {
    match token {
        TokenTree::Group(group) => group.span_open().start().line,
        other => other.span().start().line,
    }
}

/// True if the token is this identifier.
pub fn is_word(token: Option<&TokenTree>, word: &str) -> bool {
    matches!(token, Some(TokenTree::Ident(ident)) if ident == word)
}

/// True if the token is this punctuation.
pub fn is_sign(token: Option<&TokenTree>, sign: char) -> bool {
    matches!(token, Some(TokenTree::Punct(punct)) if punct.as_char() == sign)
}

/// The identifier, if the token is one.
pub fn word(token: Option<&TokenTree>) -> Option<String> {
    match token {
        Some(TokenTree::Ident(ident)) => Some(ident.to_string()),
        _ => None,
    }
}

/// The tokens in the group, if the token is one with this delimiter.
pub fn group(token: Option<&TokenTree>, delimiter: Delimiter) -> Option<Vec<TokenTree>> {
    match token {
        Some(TokenTree::Group(group)) if group.delimiter() == delimiter => {
            Some(group.stream().into_iter().collect())
        }
        _ => None,
    }
}

/// If an attribute starts here that says `cfg(test)` (or `all(test, ..)`, not `not(test)`): how
/// many tokens it and its item take.
pub fn test_only_item(position: &Position<'_>) -> Option<usize> {
    if !is_sign(Some(position.token()), '#') {
        return None;
    }
    let attribute = group(position.ahead(1), Delimiter::Bracket)?;
    if !is_word(attribute.first(), "cfg") {
        return None;
    }
    let TokenTree::Group(condition) = attribute.get(1)? else {
        return None;
    };
    if !requires_test(&condition.stream()) {
        return None;
    }
    let ends = |token: &TokenTree| {
        is_sign(Some(token), ';') || group(Some(token), Delimiter::Brace).is_some()
    };
    let behind = position.level[position.at + 2..].iter().position(ends)?;
    Some(2 + behind)
}

fn requires_test(condition: &TokenStream) -> bool {
    let tokens: Vec<TokenTree> = condition.clone().into_iter().collect();
    match tokens.as_slice() {
        [only] => is_word(Some(only), "test"),
        [all, TokenTree::Group(list)] if is_word(Some(all), "all") => list
            .stream()
            .into_iter()
            .any(|token| is_word(Some(&token), "test")),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::str::FromStr;

    fn words_outside_tests(text: &str) -> Vec<String> {
        let mut words = Vec::new();
        walk(&TokenStream::from_str(text).unwrap(), &mut |position| {
            if let Some(steps) = test_only_item(position) {
                return Next::Skip(steps);
            }
            words.extend(word(Some(position.token())));
            Next::Enter
        });
        words
    }

    #[test]
    fn test_modules_are_skipped_and_nothing_else() {
        let text =
            "a; #[cfg(test)] mod t { b; } #[cfg(not(test))] c; #[cfg(all(test, x))] use d; e;";
        let words = words_outside_tests(text);
        assert!(words.contains(&"a".into()) && words.contains(&"c".into()));
        assert!(words.contains(&"e".into()));
        assert!(
            !words.contains(&"b".into()) && !words.contains(&"d".into()),
            "{words:?}"
        );
    }
}
