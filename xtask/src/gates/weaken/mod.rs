//! Is each ordering needed, and would the models notice if it were missing?
//!
//! For every labelled ordering in `millpond-raw` and `millpond` the crates are copied, that one
//! ordering is taken back to `Relaxed` ([`mutate`]), and the loom models of its crate run on the copy.
//! One of them must fail. A
//! mutant that survives means that the ordering is not needed, or that nothing models it: either
//! the code or the models must change, or the label's comment says `unmodelled: why`.
//!
//! The copy is a workspace of its own but builds where the loom models build, so that the
//! dependencies are there already.

pub mod copy;
pub mod mutate;

use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, bail};

use self::mutate::{Fate, Mutant};
use super::models::{self, Checker};
use crate::house::{House, Switch, cargo_in, with_flags};
use crate::stage::{Stage, Watched};
use crate::table::Outcome;

/// How long the models of one mutant may run.
const MUTANT_LIMIT: Duration = Duration::from_secs(120);

/// How long one file of models may run on the code as it is.
const SOUND_LIMIT: Duration = Duration::from_secs(1200);

/// The gate: every fourth ordering of the ground floor, to keep it short. All of them, and those of the
/// library, whose models take minutes for each mutant, are for `cargo xtask weaken` by hand.
///
/// # Errors
/// If the crate cannot be read, copied or built as it is.
pub fn run_all(house: &House, stage: &mut Stage) -> Result<Outcome> {
    let mutants = mutate::mutants(&house.root, &folder_of("millpond-raw"))?;
    judge(house, stage, mutants.into_iter().step_by(4).collect())
}

/// The mutants of these labels, or of all.
///
/// # Errors
/// If a source cannot be read or a label marks nothing.
pub fn mutants(root: &Path, labels: &[String]) -> Result<Vec<Mutant>> {
    let mut all = Vec::new();
    for name in models::CRATES {
        all.extend(mutate::mutants(root, &folder_of(name))?);
    }
    if labels.is_empty() {
        return Ok(all);
    }
    if let Some(unknown) = labels
        .iter()
        .find(|label| !all.iter().any(|one| one.bears(label)))
    {
        bail!("no ordering bears the label [{unknown}]: see `cargo xtask weaken --list`");
    }
    Ok(all
        .into_iter()
        .filter(|one| labels.iter().any(|label| one.bears(label)))
        .collect())
}

/// Runs the mutants of these labels, or of all.
///
/// # Errors
/// If the crate cannot be read or copied.
pub fn run(house: &House, stage: &mut Stage, labels: &[String]) -> Result<Outcome> {
    let mutants = mutants(&house.root, labels)?;
    judge(house, stage, mutants)
}

fn judge(house: &House, stage: &mut Stage, mutants: Vec<Mutant>) -> Result<Outcome> {
    let work = house.target_of("weaken").join("work");
    copy::workspace(&house.root, &work)?;
    let bench = Bench { house, work };
    let needed = |name: &&&str| {
        mutants
            .iter()
            .any(|mutant| mutant.file.starts_with(folder_of(name)))
    };
    for name in models::CRATES.iter().filter(needed) {
        let Some(programs) = bench.build(stage, name)? else {
            return Ok(Outcome::failed("the models do not build"));
        };
        if programs.is_empty() {
            return Ok(Outcome::failed(format!("{name} has no loom models")));
        }
        for program in &programs {
            match stage.watch(&mut bench.command(program, name), SOUND_LIMIT, |_| false)? {
                Watched::Ended(true) => {}
                _ => return Ok(Outcome::failed("the models fail on the code as it is")),
            }
        }
    }
    let mut fates = Vec::new();
    for (index, mutant) in mutants.iter().enumerate() {
        stage.say(&format!("mutant {}/{}: {mutant}", index + 1, mutants.len()))?;
        fates.push(bench.try_out(stage, mutant)?);
    }
    stage.say(&mutate::table(&mutants, &fates))?;
    Ok(mutate::judge(&fates))
}

struct Bench<'a> {
    house: &'a House,
    work: PathBuf,
}

impl Bench<'_> {
    /// Changes the copy, asks the models, changes it back.
    fn try_out(&self, stage: &mut Stage, mutant: &Mutant) -> Result<Fate> {
        if let Some(reason) = &mutant.unmodelled {
            return Ok(Fate::NotModelled(reason.clone()));
        }
        let file = self.work.join(&mutant.file);
        let sound = std::fs::read_to_string(&file)
            .with_context(|| format!("the copy lost {}", mutant.file.display()))?;
        std::fs::write(&file, mutate::apply(&sound, &mutant.edit)?)?;
        let fate = self.ask_models(stage, mutant);
        std::fs::write(&file, sound)?;
        fate
    }

    fn ask_models(&self, stage: &mut Stage, mutant: &Mutant) -> Result<Fate> {
        let name = crate_of(&mutant.file);
        let Some(mut programs) = self.build(stage, name)? else {
            return Ok(Fate::DoesNotBuild);
        };
        programs.sort_by_key(|program| !mutate::is_about(&name_of(program), &mutant.file));
        for program in &programs {
            let mut command = self.command(program, name);
            match stage.watch(&mut command, MUTANT_LIMIT, |line| {
                failed_test(line).is_some()
            })? {
                Watched::Stopped(line) => {
                    let test = failed_test(&line).unwrap_or_default().to_string();
                    return Ok(Fate::Caught(format!("{}::{test}", name_of(program))));
                }
                Watched::Ended(false) => return self.name_crash(stage, program, name),
                Watched::Ended(true) => {}
                Watched::OutOfTime => return Ok(Fate::OutOfTime(name_of(program))),
            }
        }
        Ok(Fate::Survived)
    }

    /// A program that crashed did not say in which test. Run one by one, tests are named before
    /// they start, so the last one named is the one.
    fn name_crash(&self, stage: &mut Stage, program: &Path, name: &str) -> Result<Fate> {
        let last = RefCell::new(String::new());
        let mut command = self.command(program, name);
        command.arg("--test-threads=1");
        stage.watch(&mut command, MUTANT_LIMIT, |line| {
            if line.starts_with("test ") {
                last.replace(line.to_string());
            }
            false
        })?;
        let file = name_of(program);
        Ok(Fate::Caught(match started_test(&last.into_inner()) {
            Some(test) => format!("a crash in {file}::{test}"),
            None => format!("a crash in {file}"),
        }))
    }

    /// Builds the loom models of a crate of the copy; none if they do not build.
    fn build(&self, stage: &mut Stage, name: &str) -> Result<Option<Vec<PathBuf>>> {
        let mut command = cargo_in(&self.work);
        command
            .args(models::arguments(Checker::Loom, &[name]))
            .args(["--no-run", "--message-format=json-render-diagnostics"])
            .env(
                "RUSTFLAGS",
                with_flags("RUSTFLAGS", &format!("--cfg {}", Switch::Loom.cfg())),
            )
            .env(
                "CARGO_TARGET_DIR",
                self.house.target_of(Switch::Loom.name()),
            );
        let ended = stage.run(&mut command)?;
        let programs = ended.output.lines().filter_map(executable).collect();
        Ok(ended.success.then_some(programs))
    }

    fn command(&self, program: &Path, name: &str) -> Command {
        let mut command = Command::new(program);
        command.current_dir(self.work.join(folder_of(name)));
        command
    }
}

/// Where a crate lies in the workspace.
fn folder_of(name: &str) -> String {
    format!("crates/{name}")
}

/// The crate that a file belongs to.
fn crate_of(file: &Path) -> &'static str {
    let inside = |name: &&&str| file.starts_with(folder_of(name));
    models::CRATES
        .iter()
        .find(inside)
        .unwrap_or(&models::CRATES[0])
}

/// The test program in one of cargo's JSON messages.
fn executable(message: &str) -> Option<PathBuf> {
    let (_, behind) = message.split_once("\"executable\":\"")?;
    behind.split_once('"').map(|(path, _)| PathBuf::from(path))
}

/// `loom_lock-0123456789abcdef` is `loom_lock`.
fn name_of(program: &Path) -> String {
    let stem = program.file_stem().unwrap_or_default().to_string_lossy();
    stem.rsplit_once('-')
        .map_or(stem.as_ref(), |(name, _)| name)
        .to_string()
}

/// The name in `test NAME ... FAILED`.
fn failed_test(line: &str) -> Option<&str> {
    line.strip_prefix("test ")?.strip_suffix(" ... FAILED")
}

/// The name in `test NAME ...` without a result behind it.
fn started_test(line: &str) -> Option<&str> {
    line.strip_prefix("test ")?.trim_end().strip_suffix(" ...")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cargo_and_the_tests_print_is_understood() {
        let message =
            r#"{"reason":"compiler-artifact","executable":"/t/loom_lock-0f","fresh":true}"#;
        assert_eq!(executable(message), Some("/t/loom_lock-0f".into()));
        assert_eq!(executable(r#"{"executable":null}"#), None);
        assert_eq!(name_of(Path::new("/t/loom_lock-0f")), "loom_lock");
        assert_eq!(failed_test("test a::b ... FAILED"), Some("a::b"));
        assert_eq!(failed_test("test a::b ... ok"), None);
        assert_eq!(started_test("test a::b ... "), Some("a::b"));
        assert_eq!(started_test("test a::b ... ok"), None);
    }
}
