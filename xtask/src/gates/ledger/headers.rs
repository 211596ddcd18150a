//! What the headers promise: numbered invariants and labelled pairs.
//!
//! A file may cite what its own `//!` header states, what the header of the module it is part of
//! states, and so on up to the crate's root folder.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use anyhow::Result;

use crate::text::source::Source;

/// Headers of one crate, read once.
#[derive(Debug, Default)]
pub struct Headers {
    known: HashMap<PathBuf, Vec<(usize, String)>>,
}

impl Headers {
    /// The header lines that `file` may cite: its own and those of the modules around it, up to
    /// the folder `top`.
    ///
    /// # Errors
    /// If a header cannot be read.
    pub fn around(&mut self, root: &Path, top: &Path, file: &Path) -> Result<Vec<String>> {
        let mut lines = Vec::new();
        for place in citable(root, top, file) {
            let header = match self.known.get(&place) {
                Some(header) => header,
                None => {
                    let header = own(&Source::read(root, &place)?);
                    self.known.entry(place).or_insert(header)
                }
            };
            lines.extend(header.iter().map(|(_, text)| text.clone()));
        }
        Ok(lines)
    }
}

/// The file itself, and each `mod.rs` (or `folder.rs`) between it and `top`.
fn citable(root: &Path, top: &Path, file: &Path) -> Vec<PathBuf> {
    let mut places = vec![file.to_path_buf()];
    for folder in file.ancestors().skip(1).take_while(|folder| *folder != top) {
        let candidates = [folder.join("mod.rs"), folder.with_extension("rs")];
        places.extend(
            candidates
                .into_iter()
                .filter(|path| root.join(path).is_file()),
        );
    }
    places.dedup();
    places
}

/// The lines of a file's own header.
pub fn own(source: &Source) -> Vec<(usize, String)> {
    source
        .header()
        .into_iter()
        .map(|(line, text)| (line, text.to_string()))
        .collect()
}

/// The invariant that a header line states: `- **T3** ..` states `T3`.
pub fn stated(line: &str) -> Option<&str> {
    let (id, _) = line.trim_start().strip_prefix("- **")?.split_once("**")?;
    is_id(id).then_some(id)
}

/// One or two capitals and a number.
fn is_id(word: &str) -> bool {
    let letters = word.chars().take_while(char::is_ascii_uppercase).count();
    let digits = &word[letters..];
    matches!(letters, 1 | 2) && !digits.is_empty() && digits.chars().all(|c| c.is_ascii_digit())
}

/// The invariants that a text cites.
pub fn cited(text: &str) -> Vec<&str> {
    text.split(|c: char| !c.is_alphanumeric() && c != '_')
        .filter(|word| is_id(word))
        .collect()
}

/// The labels in a text: `[P-tok]` gives `P-tok`.
pub fn labels(text: &str) -> Vec<&str> {
    text.split('[')
        .skip(1)
        .filter_map(|piece| piece.split_once(']').map(|(label, _)| label))
        .filter(|label| is_label(label))
        .collect()
}

/// Up to three capitals, a hyphen, a word in small letters.
fn is_label(text: &str) -> bool {
    let Some((room, pair)) = text.split_once('-') else {
        return false;
    };
    matches!(room.len(), 1..=3)
        && room.chars().all(|c| c.is_ascii_uppercase())
        && !pair.is_empty()
        && pair
            .chars()
            .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invariants_are_stated_as_list_items_only() {
        assert_eq!(stated(" - **T3** the token"), Some("T3"));
        assert_eq!(stated(" **T3** the token"), None);
        assert_eq!(stated(" - **Bold** words"), None);
    }

    #[test]
    fn citations_are_whole_words() {
        assert_eq!(
            cited(" T3, P12 - the UU64 of x86 and ABC1 and A"),
            ["T3", "P12", "UU64"]
        );
    }

    #[test]
    fn labels_have_a_room_and_a_pair() {
        assert_eq!(
            labels("// [P-tok] and [S-pub2] not [x] [p-tok] [P-] [ABCD-x]"),
            ["P-tok", "S-pub2"]
        );
    }
}
