//! A Rust file line by line, split into code and comment.
//!
//! A small lexer, because `proc-macro2` drops comments. It knows just enough of the language to
//! tell code from comments and literals: nested block comments, raw and byte strings, and
//! lifetimes against character literals.

use std::path::{Path, PathBuf};
use std::str::FromStr;

use anyhow::{Result, anyhow};
use proc_macro2::TokenStream;

use super::files;

/// The kind of a comment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// `//` or `/* */`.
    Plain,
    /// `///`: documents the next item.
    Outer,
    /// `//!`: documents the enclosing item.
    Inner,
}

/// One line.
#[derive(Clone, Debug, Default)]
pub struct Line {
    /// The code, without comments and without the contents of literals.
    pub code: String,
    /// The comment on this line, without its slashes.
    pub comment: Option<(Kind, String)>,
}

impl Line {
    /// The plain comment on this line.
    pub fn plain_comment(&self) -> Option<&str> {
        match &self.comment {
            Some((Kind::Plain, text)) => Some(text),
            _ => None,
        }
    }

    /// True if the line holds a comment and no code.
    pub fn is_comment_only(&self) -> bool {
        self.comment.is_some() && self.code.trim().is_empty()
    }

    /// True if the line starts with an attribute.
    pub fn is_attribute(&self) -> bool {
        self.code.trim_start().starts_with("#[")
    }
}

/// A parsed Rust file.
#[derive(Clone, Debug)]
pub struct Source {
    /// Relative to the root.
    pub path: PathBuf,
    /// Its text.
    pub text: String,
    /// Its lines; line 1 is `lines[0]`.
    pub lines: Vec<Line>,
    /// Its tokens.
    pub tokens: TokenStream,
}

impl Source {
    /// Reads `file` below `root`.
    ///
    /// # Errors
    /// If the file cannot be read or is not Rust.
    pub fn read(root: &Path, file: &Path) -> Result<Self> {
        Self::parse(file, files::read(root, file)?)
    }

    /// Reads `text` as the file `path`.
    ///
    /// # Errors
    /// If the text is not Rust.
    pub fn parse(path: &Path, text: String) -> Result<Self> {
        let tokens = TokenStream::from_str(&text).map_err(|error| {
            anyhow!("{}:{}: {error}", path.display(), error.span().start().line)
        })?;
        let lines = Lexer::default().split(&text);
        Ok(Self {
            path: path.to_path_buf(),
            text,
            lines,
            tokens,
        })
    }

    /// Line `number`, counted from 1.
    pub fn line(&self, number: usize) -> Option<&Line> {
        number
            .checked_sub(1)
            .and_then(|index| self.lines.get(index))
    }

    /// The file's `//!` header, as (line number, text).
    pub fn header(&self) -> Vec<(usize, &str)> {
        let mut depth = 0_i32;
        let mut header = Vec::new();
        for (index, line) in self.lines.iter().enumerate() {
            if let (0, Some((Kind::Inner, text))) = (depth, &line.comment) {
                header.push((index + 1, text.as_str()));
            }
            for sign in line.code.chars() {
                depth += i32::from(sign == '{') - i32::from(sign == '}');
            }
        }
        header
    }

    /// The notes for contributors at the top of the file: its plain comment lines before the first code, as (line number,
    /// text).
    pub fn notes(&self) -> Vec<(usize, &str)> {
        let mut notes = Vec::new();
        for (index, line) in self.lines.iter().enumerate() {
            if !line.code.trim().is_empty() {
                break;
            }
            if let Some((Kind::Plain, text)) = &line.comment {
                notes.push((index + 1, text.as_str()));
            }
        }
        notes
    }

    /// Adjacent comment lines of one kind, as (first line number, text).
    pub fn comment_blocks(&self) -> Vec<(usize, String)> {
        let mut blocks: Vec<(usize, String)> = Vec::new();
        let mut open: Option<(Kind, usize)> = None;
        for (index, line) in self.lines.iter().enumerate() {
            let Some((kind, text)) = &line.comment else {
                open = None;
                continue;
            };
            let continues = line.code.trim().is_empty() && open == Some((*kind, index));
            match blocks.last_mut() {
                Some((_, block)) if continues => {
                    block.push('\n');
                    block.push_str(text);
                }
                _ => blocks.push((index + 1, text.clone())),
            }
            open = Some((*kind, index + 1));
        }
        blocks
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    #[default]
    Code,
    LineComment,
    BlockComment(u32),
    Text,
    RawText(usize),
}

#[derive(Debug, Default)]
struct Lexer {
    state: State,
    lines: Vec<Line>,
    line: Line,
}

impl Lexer {
    fn split(mut self, text: &str) -> Vec<Line> {
        let chars: Vec<char> = text.chars().collect();
        let mut at = 0;
        while at < chars.len() {
            if chars[at] == '\n' {
                self.end_line();
                at += 1;
            } else {
                at += self.step(&chars[at..], at.checked_sub(1).map(|before| chars[before]));
            }
        }
        self.end_line();
        self.lines
    }

    fn end_line(&mut self) {
        if self.state == State::LineComment {
            self.state = State::Code;
        }
        if let Some((_, text)) = &mut self.line.comment {
            text.truncate(text.trim_end().len());
        }
        self.lines.push(std::mem::take(&mut self.line));
        if matches!(self.state, State::BlockComment(_)) {
            self.line.comment = Some((Kind::Plain, String::new()));
        }
    }

    /// Consumes the front of `rest`; returns how many characters that was.
    fn step(&mut self, rest: &[char], before: Option<char>) -> usize {
        match self.state {
            State::Code => self.step_code(rest, before),
            State::LineComment => self.comment(rest[0]),
            State::BlockComment(depth) => match rest {
                ['*', '/', ..] if depth == 1 => self.enter(State::Code, 2),
                ['*', '/', ..] => self.enter(State::BlockComment(depth - 1), 2),
                ['/', '*', ..] => self.enter(State::BlockComment(depth + 1), 2),
                _ => self.comment(rest[0]),
            },
            State::Text => match rest {
                ['\\', next, ..] if *next != '\n' => 2,
                ['"', ..] => {
                    self.line.code.push('"');
                    self.enter(State::Code, 1)
                }
                _ => 1,
            },
            State::RawText(hashes) => {
                let closing = rest[0] == '"'
                    && rest[1..].iter().take(hashes).filter(|c| **c == '#').count() == hashes;
                if closing {
                    self.line.code.push('"');
                    return self.enter(State::Code, 1 + hashes);
                }
                1
            }
        }
    }

    fn step_code(&mut self, rest: &[char], before: Option<char>) -> usize {
        match rest {
            ['/', '/', ..] => {
                let (kind, width) = match rest {
                    [_, _, '/', '/', ..] => (Kind::Plain, 2),
                    [_, _, '/', ..] => (Kind::Outer, 3),
                    [_, _, '!', ..] => (Kind::Inner, 3),
                    _ => (Kind::Plain, 2),
                };
                self.line.comment = Some((kind, String::new()));
                self.enter(State::LineComment, width)
            }
            ['/', '*', ..] => {
                if self.line.comment.is_none() {
                    self.line.comment = Some((Kind::Plain, String::new()));
                }
                self.enter(State::BlockComment(1), 2)
            }
            ['"', ..] => {
                self.line.code.push('"');
                self.enter(State::Text, 1)
            }
            ['r', '"' | '#', ..] if !continues_a_raw_prefix(before) => self.raw_text(rest),
            ['\'', '\\', ..] => {
                2 + rest[2..]
                    .iter()
                    .skip(1)
                    .position(|c| *c == '\'')
                    .map_or(1, |p| p + 2)
            }
            ['\'', _, '\'', ..] => 3,
            _ => {
                self.line.code.push(rest[0]);
                1
            }
        }
    }

    fn raw_text(&mut self, rest: &[char]) -> usize {
        let hashes = rest[1..].iter().take_while(|c| **c == '#').count();
        self.line.code.push('r');
        if rest.get(1 + hashes) != Some(&'"') {
            return 1; // a raw identifier such as r#type
        }
        self.line.code.push('"');
        self.enter(State::RawText(hashes), 2 + hashes)
    }

    fn comment(&mut self, sign: char) -> usize {
        if let Some((_, text)) = &mut self.line.comment {
            text.push(sign);
        }
        1
    }

    fn enter(&mut self, state: State, width: usize) -> usize {
        self.state = state;
        width
    }
}

/// In `for"` or `xr"` the `r` ends a word; in `br"` and `cr"` it is still a raw string.
fn continues_a_raw_prefix(before: Option<char>) -> bool {
    before.is_some_and(|c| (c.is_alphanumeric() || c == '_') && c != 'b' && c != 'c')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &str) -> Vec<Line> {
        Lexer::default().split(text)
    }

    #[test]
    fn a_comment_in_a_string_is_code() {
        let lines = lines("let a = \"// no\"; // yes");
        assert_eq!(lines[0].code.trim(), "let a = \"\";");
        assert_eq!(lines[0].plain_comment(), Some(" yes"));
    }

    #[test]
    fn block_comments_nest_and_span_lines() {
        let lines = lines("a /* one /* two */\nstill */ b");
        assert_eq!(lines[0].code.trim(), "a");
        assert_eq!(lines[1].code.trim(), "b");
        assert!(lines[1].plain_comment().unwrap().contains("still"));
    }

    #[test]
    fn lifetimes_are_not_characters() {
        let lines = lines("fn f<'a>(x: &'a str, c: char) { c == '\"' || c == '\\'' } // end");
        assert_eq!(lines[0].plain_comment(), Some(" end"));
        assert!(lines[0].code.contains("'a str"));
    }

    #[test]
    fn raw_strings_end_at_their_hashes() {
        let lines = lines("let a = r#\"x \" // y\"#; let r#type = br\"//\"; // z");
        assert_eq!(lines[0].plain_comment(), Some(" z"));
    }

    #[test]
    fn kinds_of_comments_are_told_apart() {
        let lines = lines("//! in\n/// out\n// plain\n//// plain too");
        let kinds: Vec<_> = lines
            .iter()
            .map(|line| line.comment.as_ref().unwrap().0)
            .collect();
        assert_eq!(kinds, [Kind::Inner, Kind::Outer, Kind::Plain, Kind::Plain]);
    }

    #[test]
    fn only_the_files_own_header_is_its_header() {
        let text = "//! top\n#![allow(x)]\nmod inner {\n    //! inner\n}\n";
        let source = Source::parse(Path::new("a.rs"), text.into()).unwrap();
        assert_eq!(source.header(), [(1, " top")]);
    }
}
