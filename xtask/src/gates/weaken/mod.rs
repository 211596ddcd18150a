//! Mutation test: each labelled ordering of `millpond-raw` and `millpond` is weakened to `Relaxed`, one
//! at a time, and one of the loom models of its crate must fail. If none does, the ordering is not
//! needed or not modelled: the code or the models must change, or the comment of the label says
//! `unmodelled: why`.
//!
//! All mutants are in one program ([`switch`]), built from a copy of the crates ([`copy`]) in the build
//! directory of the loom models, which has the dependencies. A table says which model to run first
//! ([`hints`]); that model must pass on the original code.

pub mod copy;
pub mod hints;
pub mod mutate;
pub mod switch;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};

use self::hints::Hints;
use self::mutate::{Fate, Mutant};
use super::built;
use super::models::{self, Checker};
use crate::step::{Step, Watched};
use crate::table::{Outcome, Verdict};
use crate::workspace::{Switch, Workspace, cargo_in, with_flags};

/// How long one model may run on a mutant.
const MUTANT_LIMIT: Duration = Duration::from_secs(120);

/// How long models may run on the original code.
const SOUND_LIMIT: Duration = Duration::from_secs(1200);

/// Which orderings, and how.
#[derive(Clone, Debug, Default, PartialEq, Eq, clap::Args)]
pub struct Choice {
    /// Only orderings with these labels, such as L-own
    pub labels: Vec<String>,
    /// Show the orderings and run nothing
    #[arg(long)]
    pub list: bool,
    /// Run every model, the quickest first, and write the table anew
    #[arg(long, conflicts_with_all = ["list", "labels"])]
    pub renew: bool,
    /// Only orderings that are in the table: minutes instead of an hour
    #[arg(long, conflicts_with = "renew")]
    pub known: bool,
}

/// The gate: every labelled ordering that the table knows.
///
/// # Errors
/// If a crate cannot be read, copied or built.
pub fn run_all(workspace: &Workspace, step: &mut Step) -> Result<Outcome> {
    let known = true;
    run(
        workspace,
        step,
        &Choice {
            known,
            ..Choice::default()
        },
    )
}

/// The mutants of these labels, or of all.
///
/// # Errors
/// If a source cannot be read or a label marks nothing.
pub fn mutants(root: &Path, labels: &[String]) -> Result<Vec<Mutant>> {
    let all = mutate::mutants(root, &folders())?;
    if labels.is_empty() {
        return Ok(all);
    }
    if let Some(unknown) = labels
        .iter()
        .find(|label| !all.iter().any(|one| one.has_label(label)))
    {
        bail!("no ordering has the label [{unknown}]: see `cargo xtask weaken --list`");
    }
    Ok(all
        .into_iter()
        .filter(|one| labels.iter().any(|label| one.has_label(label)))
        .collect())
}

/// Tests the chosen orderings.
///
/// # Errors
/// If a crate cannot be read or copied, or a program cannot be started.
pub fn run(workspace: &Workspace, step: &mut Step, choice: &Choice) -> Result<Outcome> {
    let all = mutants(&workspace.root, &[])?;
    let mut chosen = mutants(&workspace.root, &choice.labels)?;
    let work = workspace.target_of("weaken").join("work");
    let changed = switch::files(&workspace.root, &all, &folders())?;
    copy::workspace(&workspace.root, &work, &changed)?;
    let mut models = Models {
        workspace,
        work,
        models: Vec::new(),
    };
    if !models.build(step)? {
        return Ok(Outcome::failed("the models do not build"));
    }
    if models.models.is_empty() {
        return Ok(Outcome::failed("there are no loom models"));
    }
    let hints = if choice.renew {
        Hints::default()
    } else {
        Hints::read(&workspace.root)
    };
    let first = |mutant: &Mutant| hints.of(mutant, &all);
    let before = chosen.len();
    chosen.retain(|mutant| !choice.known || mutant.unmodelled.is_some() || first(mutant).is_some());
    let unknown = before - chosen.len();
    let is_sound = if choice.renew {
        models.sort(step)?
    } else {
        models.pass(step, &chosen.iter().filter_map(first).collect())?
    };
    if !is_sound {
        return Ok(Outcome::failed("the models fail on the original code"));
    }
    let (mut fates, mut elsewhere) = (Vec::new(), 0);
    for (index, mutant) in chosen.iter().enumerate() {
        step.say(&format!("mutant {}/{}: {mutant}", index + 1, chosen.len()))?;
        let fate = models.try_out(step, mutant, first(mutant))?;
        if let Fate::Caught(model) = &fate {
            elsewhere += usize::from(Some(model.as_str()) != first(mutant));
        }
        fates.push(fate);
    }
    step.say(&mutate::table(&chosen, &fates))?;
    let mut outcome = mutate::judge(&fates);
    if unknown > 0 {
        outcome.note = format!("{}, {unknown} not in the table", outcome.note);
    }
    if choice.renew {
        let table = Hints::read(&workspace.root).learn(&chosen, &fates, &all);
        table.write(&workspace.root)?;
    } else if elsewhere > 0 && outcome.verdict == Verdict::Passed {
        let advice = "not as xtask/weaken.txt says: `cargo xtask weaken --renew`";
        outcome.note = format!("{}, {elsewhere} {advice}", outcome.note);
    }
    Ok(outcome)
}

/// One model: a test of a program.
#[derive(Clone, Debug)]
struct Model {
    /// The crate that it belongs to.
    package: &'static str,
    /// `loom_models::park::no_wake_is_lost`.
    name: String,
    program: PathBuf,
    test: String,
}

/// The models, in the order in which they run.
struct Models<'a> {
    workspace: &'a Workspace,
    work: PathBuf,
    models: Vec<Model>,
}

impl Models<'_> {
    /// Builds the models of the copy and lists them; false if they do not build.
    fn build(&mut self, step: &mut Step) -> Result<bool> {
        // Both crates at once, as in the step `loom`, so that cargo reuses the dependencies.
        let mut command = cargo_in(&self.work);
        let flags = with_flags("RUSTFLAGS", &format!("--cfg {}", Switch::Loom.cfg()));
        let target = self.workspace.target_of(Switch::Loom.name());
        command
            .args(models::arguments(Checker::Loom, &models::CRATES))
            .arg("--no-run")
            .env("RUSTFLAGS", flags)
            .env("CARGO_TARGET_DIR", target);
        let Some(programs) = built::programs(step, &mut command)? else {
            return Ok(false);
        };
        for program in programs {
            let mut packages = models::CRATES.into_iter();
            let Some(package) = packages.find(|name| program.is_of(&folder_of(name))) else {
                continue;
            };
            let path = self.keep(&program.path)?;
            let listed = Command::new(&path).arg("--list").output()?;
            let listed = String::from_utf8_lossy(&listed.stdout).into_owned();
            let tests = listed
                .lines()
                .filter_map(|line| line.strip_suffix(": test"));
            self.models.extend(tests.map(|test| Model {
                package,
                name: format!("{}::{test}", program.name()),
                program: path.clone(),
                test: test.to_string(),
            }));
        }
        Ok(true)
    }

    /// A copy of a program, because `cargo xtask models loom` builds the original in its place.
    fn keep(&self, program: &Path) -> Result<PathBuf> {
        let folder = self.work.join("programs");
        fs::create_dir_all(&folder)?;
        let copy = folder.join(program.file_name().unwrap_or_default());
        fs::copy(program, &copy)?;
        Ok(copy)
    }

    /// Whether the models of these names pass on the original code.
    fn pass(&self, step: &mut Step, names: &BTreeSet<&str>) -> Result<bool> {
        let needed = || {
            self.models
                .iter()
                .filter(|one| names.contains(one.name.as_str()))
        };
        let programs: BTreeSet<&PathBuf> = needed().map(|one| &one.program).collect();
        for program in programs {
            let of_it = needed().filter(|one| one.program == *program);
            let mut command = self.command(program);
            command.args(of_it.map(|one| &one.test));
            if step.watch(&mut command, SOUND_LIMIT, |_| false)? != Watched::Ended(true) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Sorts the models by their time on the original code; false if one fails there.
    fn sort(&mut self, step: &mut Step) -> Result<bool> {
        let mut timed = Vec::new();
        for model in &self.models {
            let begin = Instant::now();
            let mut command = self.command(&model.program);
            command.arg(&model.test);
            if step.watch(&mut command, SOUND_LIMIT, |_| false)? != Watched::Ended(true) {
                return Ok(false);
            }
            timed.push((begin.elapsed(), model.clone()));
        }
        timed.sort_by_key(|(time, _)| *time);
        self.models = timed.into_iter().map(|(_, model)| model).collect();
        Ok(true)
    }

    /// Runs the models of the mutant's crate, `first` first, until one fails.
    fn try_out(&self, step: &mut Step, mutant: &Mutant, first: Option<&str>) -> Result<Fate> {
        if let Some(reason) = &mutant.unmodelled {
            return Ok(Fate::NotModelled(reason.clone()));
        }
        let of_crate = |one: &&Model| mutant.file.starts_with(folder_of(one.package));
        let mut candidates: Vec<&Model> = self.models.iter().filter(of_crate).collect();
        // Without a hint, the models named after the file come first: `turns::..` for `turns.rs`.
        let of_file = mutant
            .file
            .file_stem()
            .unwrap_or_default()
            .to_string_lossy();
        let is_of_file = |one: &Model| one.test.split("::").any(|part| part == of_file);
        candidates.sort_by_key(|one| (Some(one.name.as_str()) != first, !is_of_file(one)));
        let mut fate = Fate::Survived;
        for model in candidates {
            let mut command = self.command(&model.program);
            command
                .arg(&model.test)
                .env(switch::VARIABLE, mutant.number.to_string())
                // The backtrace of a mutant is of no interest and takes long to print.
                .env("RUST_BACKTRACE", "0");
            let failed = |line: &str| line.starts_with("test ") && line.ends_with(" ... FAILED");
            match step.watch(&mut command, MUTANT_LIMIT, failed)? {
                Watched::Stopped(_) | Watched::Ended(false) => {
                    return Ok(Fate::Caught(model.name.clone()));
                }
                Watched::Ended(true) => {}
                Watched::OutOfTime => fate = Fate::OutOfTime(model.name.clone()),
            }
        }
        Ok(fate)
    }

    /// A program; the names of the models to run follow.
    fn command(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        command
            .current_dir(&self.work)
            .arg("--exact")
            .env_remove(switch::VARIABLE);
        command
    }
}

/// The folders of the crates.
fn folders() -> Vec<String> {
    models::CRATES.iter().map(|name| folder_of(name)).collect()
}

/// The folder of a crate.
fn folder_of(name: &str) -> String {
    format!("crates/{name}")
}
