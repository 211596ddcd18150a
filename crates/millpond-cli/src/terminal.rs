//! Writing to the standard output. Colours, and where they may be used: on a terminal that can show
//! them, unless `NO_COLOR` is set to anything (see <https://no-color.org>).

use std::env;
use std::io::{self, ErrorKind, IsTerminal, Write};

use anyhow::{Context, Result};

/// A reader that has seen enough (`millpond | head`) is no error.
pub(crate) fn print(text: &str) -> Result<()> {
    match write_out(text) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        outcome => outcome.context("cannot write to standard output"),
    }
}

/// Writes it at once.
pub(crate) fn write_out(text: &str) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    stdout.write_all(text.as_bytes())?;
    stdout.flush()
}

/// Whether the user does not want colours at all.
pub(crate) fn colours_are_unwanted() -> bool {
    env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty())
}

/// Paints text, or leaves it as it is.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Paint {
    on: bool,
}

impl Paint {
    pub(crate) fn for_stdout() -> Self {
        let unwanted = colours_are_unwanted();
        let dumb = env::var_os("TERM").is_some_and(|term| term == "dumb");
        Self {
            on: io::stdout().is_terminal() && !unwanted && !dumb,
        }
    }

    #[cfg(test)]
    pub(crate) fn fixed(on: bool) -> Self {
        Self { on }
    }

    fn code(self, code: &str, text: &str) -> String {
        if self.on {
            format!("\x1b[{code}m{text}\x1b[0m")
        } else {
            text.to_owned()
        }
    }

    pub(crate) fn title(self, text: &str) -> String {
        self.code("1;36", text)
    }

    pub(crate) fn strong(self, text: &str) -> String {
        self.code("1", text)
    }

    pub(crate) fn good(self, text: &str) -> String {
        self.code("32", text)
    }

    pub(crate) fn faint(self, text: &str) -> String {
        self.code("2", text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_colours_text_stays_as_it_is() {
        assert_eq!(Paint::fixed(false).title("pond"), "pond");
    }

    #[test]
    fn a_painted_text_ends_its_colour() {
        assert_eq!(Paint::fixed(true).good("ready"), "\x1b[32mready\x1b[0m");
    }
}
