//! Which model notices which missing ordering: a table that was learnt, to ask that model first.
//!
//! It saves time and proves nothing. A row that is missing or wrong makes the gate ask all models,
//! and say so; `cargo xtask weaken --renew` learns the table anew.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use super::mutate::{Fate, Mutant};
use crate::runner::aligned;

/// The first lines of the file.
const HEAD: &str = "\
# Which model notices that a labelled ordering is missing: file, labels, ordering, which of those of
# the same name, model. It is asked first, which saves time; it proves nothing. Written by
# `cargo xtask weaken --renew`.
";

/// Models by the places that they are to be asked about.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Hints(BTreeMap<String, String>);

/// Where the table is.
pub fn file(root: &Path) -> PathBuf {
    root.join("xtask").join("weaken.txt")
}

impl Hints {
    /// The table of a house; an empty one if it has none.
    pub fn read(root: &Path) -> Self {
        let text = fs::read_to_string(file(root)).unwrap_or_default();
        let rows = text.lines().filter(|line| !line.starts_with('#'));
        let rows = rows.filter_map(|line| {
            let mut words: Vec<&str> = line.split_whitespace().collect();
            let model = words.pop()?;
            Some((words.join(" "), model.to_string()))
        });
        Hints(rows.collect())
    }

    /// What was learnt. Mutants that were not caught have no row.
    pub fn learn(mutants: &[Mutant], fates: &[Fate]) -> Self {
        let rows = mutants.iter().zip(fates).filter_map(|(mutant, fate)| {
            let Fate::Caught(model) = fate else {
                return None;
            };
            Some((place(mutant, mutants), model.clone()))
        });
        Hints(rows.collect())
    }

    /// The model for one of all the mutants.
    pub fn of(&self, mutant: &Mutant, all: &[Mutant]) -> Option<&str> {
        self.0.get(&place(mutant, all)).map(String::as_str)
    }

    /// Writes the table of a house.
    ///
    /// # Errors
    /// If that is impossible.
    pub fn write(&self, root: &Path) -> Result<()> {
        let file = file(root);
        let text = format!("{HEAD}{}", self.rows());
        fs::write(&file, text).with_context(|| format!("cannot write {}", file.display()))
    }

    fn rows(&self) -> String {
        let rows = self
            .0
            .iter()
            .map(|(place, model)| [place.clone(), model.clone()]);
        aligned(&rows.collect::<Vec<_>>())
    }
}

/// Where a mutant is, said so that lines above it may come and go.
fn place(mutant: &Mutant, all: &[Mutant]) -> String {
    let name = |one: &Mutant| {
        let labels = one.labels.join("] [");
        format!("{} [{labels}] {}", one.file.display(), one.ordering)
    };
    let own = name(mutant);
    let before = all
        .iter()
        .filter(|one| one.number < mutant.number && name(one) == own);
    format!("{own} {}", before.count() + 1)
}
