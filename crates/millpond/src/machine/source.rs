//! Text below a root directory, and the two shapes it comes in: a single line, and `key: value`.

use std::fs;
use std::path::{Path, PathBuf};

/// A tree that looks like `/`. Whatever cannot be read is `None`.
#[derive(Debug)]
pub(super) struct Source<'a> {
    root: &'a Path,
}

impl<'a> Source<'a> {
    pub(super) fn new(root: &'a Path) -> Self {
        Self { root }
    }

    /// Kernel files give absolute paths; joined as they are, they would leave the root.
    fn place(&self, path: &str) -> PathBuf {
        self.root.join(path.trim_start_matches('/'))
    }

    pub(super) fn text(&self, path: &str) -> Option<String> {
        let bytes = fs::read(self.place(path)).ok()?;
        Some(String::from_utf8_lossy(&bytes).into_owned())
    }

    /// The first line of a file, trimmed; an empty one counts as unreadable.
    pub(super) fn line(&self, path: &str) -> Option<String> {
        let text = self.text(path)?;
        let line = text.lines().next()?.trim();
        (!line.is_empty()).then(|| line.to_owned())
    }

    pub(super) fn link(&self, path: &str) -> Option<String> {
        fs::read_link(self.place(path))
            .ok()?
            .into_os_string()
            .into_string()
            .ok()
    }

    /// The numbers `n` of the entries named `<prefix><n>` in a folder, in order.
    pub(super) fn numbered(&self, folder: &str, prefix: &str) -> Vec<u32> {
        let Ok(entries) = fs::read_dir(self.place(folder)) else {
            return Vec::new();
        };
        let mut numbers: Vec<u32> = entries
            .filter_map(|entry| {
                entry
                    .ok()?
                    .file_name()
                    .to_str()?
                    .strip_prefix(prefix)?
                    .parse()
                    .ok()
            })
            .collect();
        numbers.sort_unstable();
        numbers
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

/// The value of `key` in bytes, from a line such as `MemTotal: 2048 kB`.
pub(super) fn kilobytes(text: &str, key: &str) -> Option<u64> {
    let number = value(text, key)?.strip_suffix("kB")?.trim();
    number.parse::<u64>().ok()?.checked_mul(1024)
}
