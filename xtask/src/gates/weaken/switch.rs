//! One program with all mutants.
//!
//! Building the crates once for each mutant would take most of the time. So in the copy every labelled
//! ordering checks at run time whether it is the one to be weakened, which an environment variable
//! says. Without the variable, none is.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use super::mutate::Mutant;
use crate::gates::ledger::orderings::Kind;

/// The variable with the number of the mutant.
pub const VARIABLE: &str = "MILLPOND_WEAKENED";

/// The file that is added to each crate of the copy.
const MODULE: &str = "weakened";

/// What those files hold.
const HELPER: &str = r#"//! Which labelled ordering is weakened to `Relaxed`. Written by `cargo xtask weaken`.

use std::sync::OnceLock;
use std::sync::atomic::Ordering;

pub(crate) fn is(number: usize) -> bool {
    static CHOSEN: OnceLock<Option<usize>> = OnceLock::new();
    let chosen = || std::env::var("MILLPOND_WEAKENED").ok()?.parse().ok();
    *CHOSEN.get_or_init(chosen) == Some(number)
}

pub(crate) fn at(number: usize, ordering: Ordering) -> Ordering {
    if is(number) { Ordering::Relaxed } else { ordering }
}
"#;

/// The files of the copy that differ from the original, by their paths from the root: a switch at
/// every mutant's place, and the module that the switches call.
///
/// # Errors
/// If a file cannot be read, or a place is not in it.
pub fn files(
    root: &Path,
    mutants: &[Mutant],
    packages: &[String],
) -> Result<BTreeMap<PathBuf, String>> {
    let mut places: BTreeMap<&Path, Vec<&Mutant>> = BTreeMap::new();
    for mutant in mutants {
        places.entry(&mutant.file).or_default().push(mutant);
    }
    let mut changed = BTreeMap::new();
    for (file, mutants) in places {
        changed.insert(
            file.to_path_buf(),
            switched(&read(&root.join(file))?, &mutants)?,
        );
    }
    for package in packages {
        let source = Path::new(package).join("src");
        let top = source.join("lib.rs");
        let text = match changed.remove(&top) {
            Some(text) => text,
            None => read(&root.join(&top))?,
        };
        changed.insert(top, format!("{text}\nmod {MODULE};\n"));
        changed.insert(source.join(MODULE).with_extension("rs"), HELPER.into());
    }
    Ok(changed)
}

fn read(file: &Path) -> Result<String> {
    fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))
}

/// The text with a switch at each mutant's place.
///
/// # Errors
/// If a place is not in the text.
pub fn switched(text: &str, mutants: &[&Mutant]) -> Result<String> {
    let mut lines: Vec<String> = text.split('\n').map(String::from).collect();
    let mut mutants = mutants.to_vec();
    // From the back, so that columns in front stay valid.
    mutants.sort_by_key(|mutant| (mutant.spot.line, mutant.spot.column));
    for mutant in mutants.into_iter().rev() {
        let spot = &mutant.spot;
        let line = lines.get_mut(spot.line - 1).context("the line is gone")?;
        let chars: Vec<char> = line.chars().collect();
        let behind = spot.column + spot.width;
        anyhow::ensure!(behind <= chars.len(), "line {} is too short", spot.line);
        let part = |range: &[char]| range.iter().collect::<String>();
        let front = part(&chars[..spot.column]);
        let (number, path) = (mutant.number, part(&chars[spot.column..behind]));
        let with = match spot.kind {
            Kind::Ordering => format!("crate::{MODULE}::at({number}, {path})"),
            // The weakest fence is a compiler fence, which models do not see.
            Kind::Fence => format!(
                "(if crate::{MODULE}::is({number}) {{ ::core::sync::atomic::compiler_fence }} else {{ {path} }})"
            ),
        };
        *line = format!("{front}{with}{}", part(&chars[behind..]));
    }
    Ok(lines.join("\n"))
}
