//! Random programs over the public API with many engines at once, and a ledger for each engine. What
//! runs them is an example of `millpond-conform`.

use std::path::PathBuf;
use std::process::Command;

use anyhow::Result;

use super::built;
use super::tests as under_chaos;
use crate::step::Step;
use crate::table::Outcome;
use crate::workspace::{Switch, Workspace};

/// The first seed of the programs of `cargo xtask test`.
const SEED: u64 = 1;

/// How many minutes each of its two runs takes at most.
const MINUTES: f64 = 1.5;

/// How many programs each has at most, so that a faster machine runs none that was never run before.
const COUNT: u64 = 3_000;

/// Which programs. By default, those of `cargo xtask test`, in a plain and in a chaos build.
#[derive(Clone, Debug, Default, PartialEq, clap::Args)]
pub struct Programs {
    /// For how long; 0.5 is half a minute
    #[arg(long)]
    pub minutes: Option<f64>,
    /// The seed of the first program
    #[arg(long)]
    pub seed: Option<u64>,
    /// How many programs at most
    #[arg(long)]
    pub count: Option<u64>,
    /// Repeat the program in this file
    #[arg(long, conflicts_with = "seed")]
    pub file: Option<PathBuf>,
    /// Print the program, and run nothing
    #[arg(long)]
    pub show: bool,
    /// Remove lines from the program while it still fails
    #[arg(long)]
    pub shrink: bool,
    /// In a chaos build
    #[arg(long)]
    pub chaos: bool,
}

/// The arguments of the example.
fn arguments(programs: &Programs) -> Result<Vec<String>> {
    let mut words = Vec::new();
    let mut say = |name: &str, value: String| words.extend([name.to_owned(), value]);
    match &programs.file {
        // The example runs in the root, not in the user's folder.
        Some(file) => say("--file", std::path::absolute(file)?.display().to_string()),
        None => say("--seed", programs.seed.unwrap_or(SEED).to_string()),
    }
    say("--minutes", programs.minutes.unwrap_or(1.0).to_string());
    if let Some(count) = programs.count {
        say("--count", count.to_string());
    }
    let flags = [(programs.show, "--show"), (programs.shrink, "--shrink")];
    words.extend(
        flags
            .iter()
            .filter(|flag| flag.0)
            .map(|flag| flag.1.to_owned()),
    );
    Ok(words)
}

/// Runs these programs.
///
/// # Errors
/// If cargo cannot be started.
pub fn run(workspace: &Workspace, step: &mut Step, programs: &Programs) -> Result<Outcome> {
    let mut build = if programs.chaos {
        workspace.cargo_under(Switch::Chaos, &["build", "-p", "millpond-conform"])
    } else {
        // With the flags of the step `tests`, which has built it already.
        workspace.cargo(&["build", "--workspace", "--all-features"])
    };
    let Some(example) = built::example(step, &mut build, "programs")? else {
        return Ok(Outcome::failed("it does not build"));
    };
    let mut command = Command::new(example);
    command
        .current_dir(&workspace.root)
        .args(arguments(programs)?);
    let seed = programs.seed.unwrap_or(SEED);
    command.env(under_chaos::SEED, seed.to_string());
    let ended = step.run(&mut command)?;
    let is_run = !programs.show && !programs.shrink;
    Ok(match ended.success {
        true if !is_run => Outcome::passed(""),
        success => judge(success, &ended.output),
    })
}

/// The gate.
///
/// # Errors
/// If cargo cannot be started.
pub fn run_all(workspace: &Workspace, step: &mut Step) -> Result<Outcome> {
    let mut notes = Vec::new();
    for chaos in [false, true] {
        let programs = Programs {
            minutes: Some(MINUTES),
            count: Some(COUNT),
            chaos,
            ..Programs::default()
        };
        let outcome = run(workspace, step, &programs)?;
        if outcome.verdict != crate::table::Verdict::Passed {
            return Ok(outcome);
        }
        notes.push(outcome.note);
    }
    Ok(Outcome::passed(format!("{} under chaos", notes.join("; "))))
}

/// What has run, as in `3000 programs, 280000 tasks`; or which program failed.
fn judge(success: bool, output: &str) -> Outcome {
    let line = |part: &str| output.lines().find(|line| line.contains(part));
    let played = line(" tasks: the books balance").and_then(|line| line.split(':').next());
    match (success, played) {
        (true, Some(played)) => Outcome::passed(played),
        (true, None) => Outcome::failed("it does not say what it ran"),
        (false, _) => {
            let wrong = line("the program of ").unwrap_or("it ended with an error");
            Outcome::failed(wrong.trim_end_matches(':'))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::Verdict;

    fn words(programs: &Programs) -> String {
        arguments(programs).unwrap().join(" ")
    }

    #[test]
    fn without_a_seed_it_is_the_fixed_one() {
        assert_eq!(words(&Programs::default()), "--seed 1 --minutes 1");
        let chosen = Programs {
            seed: Some(7),
            count: Some(1),
            shrink: true,
            ..Programs::default()
        };
        assert_eq!(words(&chosen), "--seed 7 --minutes 1 --count 1 --shrink");
    }

    #[test]
    fn the_note_says_what_has_run_and_a_failure_names_its_program() {
        let good =
            "seed 1\n3 programs: 8 tasks, last seed 3\n3 programs, 9 tasks: the books balance\n";
        assert_eq!(judge(true, good).note, "3 programs, 9 tasks");
        let bad = "seed 1\n\nthe program of --seed 9 --count 1 went wrong:\n- lost\n";
        let failed = |reason: &str| Verdict::Failed(reason.into());
        let reason = "the program of --seed 9 --count 1 went wrong";
        assert_eq!(judge(false, bad).verdict, failed(reason));
        assert_ne!(judge(true, "").verdict, Verdict::Passed);
        assert_ne!(judge(false, "").verdict, Verdict::Passed);
    }
}
