//! Invariants and labelled pairs in the headers of modules.
//!
//! A file may cite its own `//!` header and the headers of the modules around it, up to the crate's root
//! folder.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use anyhow::Result;

use crate::text::source::Source;

/// The headers of one crate, each read once.
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
        for file in citable(root, top, file) {
            let header = match self.known.get(&file) {
                Some(header) => header,
                None => {
                    let header = own(&Source::read(root, &file)?);
                    self.known.entry(file).or_insert(header)
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

/// The two forms of an invariant's id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// `WORKERS-1`, `TASK-OUT`: a module and a rule.
    Named,
    /// `W1`: one or two capitals and a number of up to two digits.
    Old,
}

/// The invariant that a header line states: `- **TASK-OUT** ..` states `TASK-OUT`.
pub fn stated(line: &str) -> Option<&str> {
    let (id, _) = line.trim_start().strip_prefix("- **")?.split_once("**")?;
    form(id).map(|_| id)
}

/// The form of an id, if `word` is one.
pub fn form(word: &str) -> Option<Form> {
    let letters = word.chars().take_while(char::is_ascii_uppercase).count();
    let behind = &word[letters..];
    let is_part = |part: &str| {
        let sign = |c: char| c.is_ascii_uppercase() || c.is_ascii_digit();
        !part.is_empty() && part.chars().all(sign)
    };
    if let Some(rule) = behind.strip_prefix('-') {
        return (letters >= 2 && rule.split('-').all(is_part)).then_some(Form::Named);
    }
    let is_number = matches!(behind.len(), 1 | 2) && behind.chars().all(|c| c.is_ascii_digit());
    (matches!(letters, 1 | 2) && is_number).then_some(Form::Old)
}

/// The invariants that a text cites.
pub fn cited(text: &str) -> Vec<&str> {
    citations(text).collect()
}

/// The same, as an iterator.
pub fn citations(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_alphanumeric() && c != '_' && c != '-')
        .map(|word| word.trim_matches('-'))
        // `T1-T3` and `C1-like` hold ids of the old form; `WORKERS-1` is one word.
        .flat_map(|word| match form(word) {
            Some(_) => vec![word],
            None => word
                .split('-')
                .filter(|part| form(part).is_some())
                .collect(),
        })
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
        assert_eq!(stated(" - **TASK-OUT** the token"), Some("TASK-OUT"));
        assert_eq!(stated(" **T3** the token"), None);
        assert_eq!(stated(" - **Bold** words"), None);
    }

    #[test]
    fn citations_are_whole_words() {
        assert_eq!(
            cited(" T3, P12 - the UU64 of x86, E0373 and ABC1 and A; G1-G4"),
            ["T3", "P12", "UU64", "G1", "G4"]
        );
        assert_eq!(
            cited("WORKERS-1, (TASK-OUT) and `RING-PUT-2`: not W-1, [T-out] or a-B"),
            ["WORKERS-1", "TASK-OUT", "RING-PUT-2"]
        );
    }

    #[test]
    fn an_id_has_one_of_two_forms() {
        assert_eq!(form("WORKERS-1"), Some(Form::Named));
        assert_eq!(form("TASK-OUT"), Some(Form::Named));
        assert_eq!(form("W12"), Some(Form::Old));
        for word in [
            "W",
            "W-1",
            "W123",
            "WORKERS",
            "WORKERS-",
            "WORKERS-x",
            "Workers-1",
        ] {
            assert_eq!(form(word), None, "{word}");
        }
    }

    #[test]
    fn labels_have_a_room_and_a_pair() {
        assert_eq!(
            labels("// [P-tok] and [S-pub2] not [x] [p-tok] [P-] [ABCD-x]"),
            ["P-tok", "S-pub2"]
        );
    }
}
