//! Text files below a root directory, of two forms: a single line, and lines `key: value`.

use std::fs;
use std::path::Path;

/// A tree that looks like `/`. A file that cannot be read is `None`.
#[derive(Debug)]
pub(super) struct Source<'a> {
    root: &'a Path,
}

impl<'a> Source<'a> {
    pub(super) fn new(root: &'a Path) -> Self {
        Self { root }
    }

    pub(super) fn text(&self, path: &str) -> Option<String> {
        // Kernel files give absolute paths; joined as they are, they would leave the root.
        let bytes = fs::read(self.root.join(path.trim_start_matches('/'))).ok()?;
        Some(String::from_utf8_lossy(&bytes).into_owned())
    }

    /// The first line of a file, trimmed; an empty one counts as unreadable.
    pub(super) fn line(&self, path: &str) -> Option<String> {
        let text = self.text(path)?;
        let line = text.lines().next()?.trim();
        (!line.is_empty()).then(|| line.to_owned())
    }
}

/// All values of the lines `key: value`.
pub(super) fn values<'t>(text: &'t str, key: &'t str) -> impl Iterator<Item = &'t str> {
    text.lines().filter_map(move |line| {
        let (name, value) = line.split_once(':')?;
        (name.trim() == key).then(|| value.trim())
    })
}

/// The first value of `key` that is not empty.
pub(super) fn value<'t>(text: &'t str, key: &'t str) -> Option<&'t str> {
    values(text, key).find(|value| !value.is_empty())
}
