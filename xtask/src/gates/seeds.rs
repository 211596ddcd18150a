//! Random tests use one fixed seed.
//!
//! A test with a fresh seed may pass on one machine and fail on the next. So the seed of `cargo test`
//! and `cargo xtask test` comes from `crates/millpond-raw/tests/seed_kit/mod.rs`, and proptest is
//! configured by `crates/millpond/tests/proptest_kit/mod.rs`. This gate rejects all other sources of
//! randomness that we know of. Only `cargo xtask soak` uses fresh seeds.

use std::path::Path;

use anyhow::Result;

use crate::report::Report;
use crate::step::Step;
use crate::table::Outcome;
use crate::text::files;
use crate::text::source::Source;
use crate::workspace::Workspace;

/// The files that may use them: the two kits, and the soak.
const ALLOWED: &[&str] = &[
    "crates/millpond-raw/tests/seed_kit/mod.rs",
    "crates/millpond/tests/proptest_kit/mod.rs",
    "xtask/src/gates/soak/fresh.rs",
];

/// What to use instead.
const SEED_KIT: &str = "take the seed from `seed_kit`, or a generator of `millpond-conform`";
const PROPTEST_KIT: &str = "configure proptest by `proptest_kit::config` or `proptest_kit::ask`";
const SHUTTLE_DRIVE: &str = "run it by `shuttle_drive::pct`, which has a fixed seed";

/// Sources of randomness, and what to use instead.
const SOURCES: &[(&str, &str)] = &[
    ("RandomState", SEED_KIT),
    ("OsRng", SEED_KIT),
    ("from_entropy", SEED_KIT),
    ("from_os_rng", SEED_KIT),
    ("getrandom", SEED_KIT),
    ("fastrand", SEED_KIT),
    ("rand::random", SEED_KIT),
    ("rand::rng", SEED_KIT),
    ("thread_rng", SEED_KIT),
    ("ProptestConfig", PROPTEST_KIT),
    ("TestRng", PROPTEST_KIT),
    ("TestRunner", PROPTEST_KIT),
    ("check_random", SHUTTLE_DRIVE),
    ("check_urw", SHUTTLE_DRIVE),
    ("check_pct", SHUTTLE_DRIVE),
    ("PctScheduler::new", SHUTTLE_DRIVE),
    ("RandomScheduler::new", SHUTTLE_DRIVE),
];

/// Shuttle's own generator: its numbers are part of the schedule.
const OF_THE_SCHEDULE: &str = "shuttle::rand::thread_rng";

/// Checks every Rust file below `root`.
///
/// # Errors
/// If a file cannot be read.
pub fn check(root: &Path) -> Result<Report> {
    let mut report = Report::default();
    for folder in ["crates", "examples", "xtask"] {
        for file in files::below(root, folder, "rs")? {
            if ALLOWED.iter().all(|allowed| file != Path::new(allowed)) {
                file_of(&Source::read(root, &file)?, &mut report);
            }
        }
    }
    Ok(report)
}

/// The gate.
///
/// # Errors
/// As [`check`].
pub fn run(workspace: &Workspace, step: &mut Step) -> Result<Outcome> {
    Outcome::of_report(&check(&workspace.root)?, step)
}

fn file_of(source: &Source, report: &mut Report) {
    report.checked += 1;
    for (index, line) in source.lines.iter().enumerate() {
        let code = line.code.replace(OF_THE_SCHEDULE, "");
        let mut wrong = |text: String| report.add(&source.path, index + 1, text);
        for (word, instead) in SOURCES {
            if has_word(&code, word) {
                wrong(format!("`{word}` makes every run different: {instead}"));
            }
        }
        if code.contains("proptest! {") {
            let following = source.lines[index + 1..].iter();
            let first = following
                .map(|line| line.code.trim())
                .find(|code| !code.is_empty());
            let is_set_up = first.is_some_and(|code| code.contains("proptest_kit::config("));
            if !is_set_up {
                let by = "#![proptest_config(crate::proptest_kit::config(256))]";
                wrong(format!(
                    "a `proptest!` uses a fresh seed in every run unless it begins with `{by}`"
                ));
            }
        }
    }
}

/// Whether `word` occurs in the code as a whole word.
fn has_word(code: &str, word: &str) -> bool {
    let is_letter = |letter: char| letter.is_alphanumeric() || letter == '_';
    code.match_indices(word).any(|(at, _)| {
        let before = code[..at].chars().next_back();
        let after = code[at + word.len()..].chars().next();
        !before.is_some_and(is_letter) && !after.is_some_and(is_letter)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_inside_a_longer_one_is_another_word() {
        assert!(has_word("RandomState::new()", "RandomState"));
        assert!(!has_word("NotRandomState::new()", "RandomState"));
        assert!(!has_word(
            "PctScheduler::new_from_seed(1)",
            "PctScheduler::new"
        ));
    }
}
