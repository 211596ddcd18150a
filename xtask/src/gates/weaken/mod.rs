//! Is each ordering needed, and would the models notice if it were missing?
//!
//! For every labelled ordering of `millpond-raw` and `millpond`: it alone is taken back to
//! `Relaxed`, and the loom models of its crate are asked. One of them must fail. A mutant that survives
//! means that the ordering is not needed, or that nothing models it: either the code or the models
//! must change, or the label's comment says `unmodelled: why`.
//!
//! All mutants are in one program ([`switch`]), built from a copy of the crates ([`copy`]) where the
//! loom models build, so that the dependencies are there already. A table says which model to ask
//! first ([`hints`]); on the code as it is that model must pass.

pub mod copy;
pub mod hints;
pub mod mutate;
pub mod switch;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};

use self::hints::Hints;
use self::mutate::{Fate, Mutant};
use super::built;
use super::models::{self, Checker};
use crate::house::{House, Switch, cargo_in, with_flags};
use crate::stage::{Stage, Watched};
use crate::table::{Outcome, Verdict};

/// How long one model may run on a mutant.
const MUTANT_LIMIT: Duration = Duration::from_secs(120);

/// How long models may run on the code as it is.
const SOUND_LIMIT: Duration = Duration::from_secs(1200);

/// Which orderings, and how.
#[derive(Clone, Debug, Default, PartialEq, Eq, clap::Args)]
pub struct Choice {
    /// Only orderings with these labels, such as L-own
    pub labels: Vec<String>,
    /// Show the orderings and run nothing
    #[arg(long)]
    pub list: bool,
    /// Ask every model, the quickest first, and write anew which of them notices what
    #[arg(long, conflicts_with_all = ["list", "labels"])]
    pub renew: bool,
    /// Ask about orderings only of which the table says who notices them: minutes instead of an hour
    #[arg(long, conflicts_with = "renew")]
    pub known: bool,
}

/// The gate: every labelled ordering that the table knows.
///
/// # Errors
/// If a crate cannot be read, copied or built.
pub fn run_all(house: &House, stage: &mut Stage) -> Result<Outcome> {
    let known = true;
    run(
        house,
        stage,
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
        .find(|label| !all.iter().any(|one| one.bears(label)))
    {
        bail!("no ordering bears the label [{unknown}]: see `cargo xtask weaken --list`");
    }
    Ok(all
        .into_iter()
        .filter(|one| labels.iter().any(|label| one.bears(label)))
        .collect())
}

/// Asks about the chosen orderings.
///
/// # Errors
/// If a crate cannot be read or copied, or a program cannot be started.
pub fn run(house: &House, stage: &mut Stage, choice: &Choice) -> Result<Outcome> {
    let all = mutants(&house.root, &[])?;
    let mut chosen = mutants(&house.root, &choice.labels)?;
    let work = house.target_of("weaken").join("work");
    let changed = switch::files(&house.root, &all, &folders())?;
    copy::workspace(&house.root, &work, &changed)?;
    let mut bench = Bench {
        house,
        work,
        models: Vec::new(),
    };
    if !bench.build(stage)? {
        return Ok(Outcome::failed("the models do not build"));
    }
    if bench.models.is_empty() {
        return Ok(Outcome::failed("there are no loom models"));
    }
    let hints = match choice.renew {
        true => Hints::default(),
        false => Hints::read(&house.root),
    };
    let first = |mutant: &Mutant| hints.of(mutant, &all);
    let before = chosen.len();
    chosen.retain(|mutant| !choice.known || mutant.unmodelled.is_some() || first(mutant).is_some());
    let unasked = before - chosen.len();
    let is_sound = match choice.renew {
        true => bench.sort(stage)?,
        false => bench.pass(stage, &chosen.iter().filter_map(first).collect())?,
    };
    if !is_sound {
        return Ok(Outcome::failed("the models fail on the code as it is"));
    }
    let (mut fates, mut elsewhere) = (Vec::new(), 0);
    for (index, mutant) in chosen.iter().enumerate() {
        stage.say(&format!("mutant {}/{}: {mutant}", index + 1, chosen.len()))?;
        let fate = bench.try_out(stage, mutant, first(mutant))?;
        if let Fate::Caught(model) = &fate {
            elsewhere += usize::from(Some(model.as_str()) != first(mutant));
        }
        fates.push(fate);
    }
    stage.say(&mutate::table(&chosen, &fates))?;
    let mut outcome = mutate::judge(&fates);
    if unasked > 0 {
        outcome.note = format!("{}, {unasked} not asked about", outcome.note);
    }
    if choice.renew {
        Hints::learn(&all, &fates).write(&house.root)?;
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
    program: PathBuf,
    test: String,
}

impl Model {
    /// `loom_models::park::no_wake_is_lost`.
    fn name(&self) -> String {
        format!("{}::{}", name_of(&self.program), self.test)
    }
}

/// The models, in the order in which they are asked.
struct Bench<'a> {
    house: &'a House,
    work: PathBuf,
    models: Vec<Model>,
}

impl Bench<'_> {
    /// Builds the models of the copy and lists them; false if they do not build.
    fn build(&mut self, stage: &mut Stage) -> Result<bool> {
        for package in models::CRATES {
            let mut command = cargo_in(&self.work);
            command
                .args(models::arguments(Checker::Loom, &[package]))
                .arg("--no-run")
                .env(
                    "RUSTFLAGS",
                    with_flags("RUSTFLAGS", &format!("--cfg {}", Switch::Loom.cfg())),
                )
                .env(
                    "CARGO_TARGET_DIR",
                    self.house.target_of(Switch::Loom.name()),
                );
            let Some(programs) = built::programs(stage, &mut command)? else {
                return Ok(false);
            };
            for program in programs {
                let listed = Command::new(&program).arg("--list").output()?;
                let listed = String::from_utf8_lossy(&listed.stdout).into_owned();
                let tests = listed
                    .lines()
                    .filter_map(|line| line.strip_suffix(": test"));
                self.models.extend(tests.map(|test| Model {
                    package,
                    program: program.clone(),
                    test: test.to_string(),
                }));
            }
        }
        Ok(true)
    }

    /// Whether the models of these names pass on the code as it is.
    fn pass(&self, stage: &mut Stage, names: &BTreeSet<&str>) -> Result<bool> {
        let needed = || {
            self.models
                .iter()
                .filter(|one| names.contains(one.name().as_str()))
        };
        let programs: BTreeSet<&PathBuf> = needed().map(|one| &one.program).collect();
        for program in programs {
            let of_it = needed().filter(|one| one.program == *program);
            let mut command = self.command(program);
            command.args(of_it.map(|one| &one.test));
            if stage.watch(&mut command, SOUND_LIMIT, |_| false)? != Watched::Ended(true) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Sorts the models by the time that they take on the code as it is; false if one fails there.
    fn sort(&mut self, stage: &mut Stage) -> Result<bool> {
        let mut timed = Vec::new();
        for model in &self.models {
            let begin = Instant::now();
            let mut command = self.command(&model.program);
            command.arg(&model.test);
            if stage.watch(&mut command, SOUND_LIMIT, |_| false)? != Watched::Ended(true) {
                return Ok(false);
            }
            timed.push((begin.elapsed(), model.clone()));
        }
        timed.sort_by_key(|(time, _)| *time);
        self.models = timed.into_iter().map(|(_, model)| model).collect();
        Ok(true)
    }

    /// Asks the models of the mutant's crate, this one first, until one fails.
    fn try_out(&self, stage: &mut Stage, mutant: &Mutant, first: Option<&str>) -> Result<Fate> {
        if let Some(reason) = &mutant.unmodelled {
            return Ok(Fate::NotModelled(reason.clone()));
        }
        let of_crate = |one: &&Model| mutant.file.starts_with(folder_of(one.package));
        let mut asked: Vec<&Model> = self.models.iter().filter(of_crate).collect();
        asked.sort_by_key(|one| Some(one.name().as_str()) != first);
        let mut fate = Fate::Survived;
        for model in asked {
            let mut command = self.command(&model.program);
            command
                .arg(&model.test)
                .env(switch::VARIABLE, mutant.number.to_string())
                // What a mutant does wrong is of no interest, and takes longer to print than to find.
                .env("RUST_BACKTRACE", "0");
            let failed = |line: &str| line.starts_with("test ") && line.ends_with(" ... FAILED");
            match stage.watch(&mut command, MUTANT_LIMIT, failed)? {
                Watched::Stopped(_) | Watched::Ended(false) => {
                    return Ok(Fate::Caught(model.name()));
                }
                Watched::Ended(true) => {}
                Watched::OutOfTime => fate = Fate::OutOfTime(model.name()),
            }
        }
        Ok(fate)
    }

    /// A run of those models of a program whose names follow.
    fn command(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        command
            .current_dir(&self.work)
            .arg("--exact")
            .env_remove(switch::VARIABLE);
        command
    }
}

/// Where the crates lie in the workspace.
fn folders() -> Vec<String> {
    models::CRATES.iter().map(|name| folder_of(name)).collect()
}

/// Where a crate lies in the workspace.
fn folder_of(name: &str) -> String {
    format!("crates/{name}")
}

/// `loom_lock-0123456789abcdef` is `loom_lock`.
fn name_of(program: &Path) -> String {
    let stem = program.file_stem().unwrap_or_default().to_string_lossy();
    stem.rsplit_once('-')
        .map_or(stem.as_ref(), |(name, _)| name)
        .to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_is_named_after_its_file() {
        assert_eq!(name_of(Path::new("/t/loom_lock-0f")), "loom_lock");
    }
}
