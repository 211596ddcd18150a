//! A table of which model detects which weakened ordering, so that this model runs first.
//!
//! It saves time and proves nothing. If a row is missing or wrong, all models run, and the gate says so;
//! `cargo xtask weaken --renew` writes the table anew.

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

/// Models by the place of the mutant that they detect.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Hints(BTreeMap<String, String>);

/// Where the table is.
pub fn file(root: &Path) -> PathBuf {
    root.join("xtask").join("weaken.txt")
}

impl Hints {
    /// Reads the table; an empty one if there is none.
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

    /// The table of these results, one for each of `chosen`. A mutant that was not detected has no row. Mutants that
    /// were not chosen keep the rows of this table.
    #[must_use]
    pub fn learn(&self, chosen: &[Mutant], fates: &[Fate], all: &[Mutant]) -> Self {
        let is_chosen = |mutant: &Mutant| chosen.iter().any(|one| one.number == mutant.number);
        let others = all.iter().filter(|mutant| !is_chosen(mutant));
        let kept = others.filter_map(|mutant| {
            let place = place(mutant, all);
            let model = self.0.get(&place)?.clone();
            Some((place, model))
        });
        let learned = chosen.iter().zip(fates).filter_map(|(mutant, fate)| {
            let Fate::Caught(model) = fate else {
                return None;
            };
            Some((place(mutant, all), model.clone()))
        });
        Hints(kept.chain(learned).collect())
    }

    /// The model that detects this mutant.
    pub fn of(&self, mutant: &Mutant, all: &[Mutant]) -> Option<&str> {
        self.0.get(&place(mutant, all)).map(String::as_str)
    }

    /// Writes the table.
    ///
    /// # Errors
    /// If the file cannot be written.
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

/// The place of a mutant, without its line number, which changes often.
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
