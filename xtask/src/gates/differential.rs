//! The differential test: scripts on Java's `ThreadPoolExecutor`, `ForkJoinPool` and `CompletableFuture` and on ours, logs compared. The
//! program is an example of `millpond-conform`; `docs/differential.md` says how to read it.

use std::path::PathBuf;
use std::process::Command;

use anyhow::Result;

use super::built;
use crate::step::Step;
use crate::table::Outcome;
use crate::workspace::Workspace;

/// The seed of the scripts of `cargo xtask test`.
const SEED: u64 = 20_261_105;

/// How many of those.
const COUNT: u64 = 3_000;

/// How many for completable futures.
const FUTURES: u64 = 2_500;

/// The folder of scripts that were written by hand.
const WRITTEN: &str = "crates/millpond-conform/scripts";

/// Which scripts. By default, those of `cargo xtask test`.
#[derive(Clone, Debug, Default, PartialEq, Eq, clap::Args)]
pub struct Scripts {
    /// The seed of the random scripts; that of `cargo xtask test` if only `--count` is given
    #[arg(long)]
    pub seed: Option<u64>,
    /// How many random scripts
    #[arg(long)]
    pub count: Option<u64>,
    /// How many random scripts for completable futures
    #[arg(long)]
    pub futures: Option<u64>,
    /// A script, or a folder of scripts (*.txt)
    #[arg(long, value_name = "PATH")]
    pub scripts: Vec<PathBuf>,
    /// Show the logs too
    #[arg(long)]
    pub show: bool,
    /// Show where the two differ on purpose and why, and run nothing
    #[arg(long)]
    pub decisions: bool,
}

/// The arguments of the program.
fn arguments(scripts: &Scripts) -> Vec<String> {
    let Scripts {
        seed,
        count,
        futures,
        scripts: paths,
        show,
        decisions,
    } = scripts;
    if *decisions {
        return vec!["--decisions".to_owned()];
    }
    let mut words = Vec::new();
    let mut say = |name: &str, value: String| words.extend([name.to_owned(), value]);
    for path in paths {
        say("--scripts", path.display().to_string());
    }
    match (seed, count, futures) {
        (None, None, None) if paths.is_empty() => {
            say("--seed", SEED.to_string());
            say("--count", COUNT.to_string());
            say("--futures", FUTURES.to_string());
            say("--scripts", WRITTEN.to_owned());
        }
        (None, None, None) => {}
        (seed, None, Some(futures)) => {
            say("--seed", seed.unwrap_or(SEED).to_string());
            say("--futures", futures.to_string());
        }
        (seed, count, futures) => {
            say("--seed", seed.unwrap_or(SEED).to_string());
            say("--count", count.unwrap_or(1).to_string());
            if let Some(futures) = futures {
                say("--futures", futures.to_string());
            }
        }
    }
    if *show {
        words.push("--show".to_owned());
    }
    words
}

/// Runs these scripts.
///
/// # Errors
/// If cargo cannot be started.
pub fn run(workspace: &Workspace, step: &mut Step, scripts: &Scripts) -> Result<Outcome> {
    // With the flags of the step `tests`, which has built it already. An optimised build would run
    // faster, but not by as much as building everything again takes.
    let mut build = workspace.cargo(&["build", "--workspace", "--all-features"]);
    let Some(program) = built::example(step, &mut build, "differential")? else {
        return Ok(Outcome::failed("it does not build"));
    };
    let mut command = Command::new(program);
    command
        .current_dir(&workspace.root)
        .args(arguments(&absolute(scripts)?));
    let ended = step.run(&mut command)?;
    Ok(judge(ended.success, &ended.output))
}

/// The same with absolute paths: the program runs in the root, not in the user's folder.
fn absolute(scripts: &Scripts) -> Result<Scripts> {
    let paths = scripts.scripts.iter().map(std::path::absolute);
    Ok(Scripts {
        scripts: paths.collect::<Result<_, _>>()?,
        ..scripts.clone()
    })
}

/// The gate.
///
/// # Errors
/// If cargo cannot be started.
pub fn run_all(workspace: &Workspace, step: &mut Step) -> Result<Outcome> {
    run(workspace, step, &Scripts::default())
}

fn judge(success: bool, output: &str) -> Outcome {
    if !success {
        let error = output.lines().find_map(|line| line.strip_prefix("error: "));
        let reason = error.unwrap_or("docs/differential.md says how to read what is above");
        return Outcome::failed(reason);
    }
    // The note says what has run: `3025 scripts, 66000 steps`.
    let note = output.lines().find(|line| line.contains(" scripts, "));
    let note = note.and_then(|line| line.split(':').next());
    Outcome::passed(note.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::Verdict;

    fn words(scripts: &Scripts) -> String {
        arguments(scripts).join(" ")
    }

    #[test]
    fn by_default_the_scripts_of_the_gate_run() {
        let all = words(&Scripts::default());
        assert!(
            all.contains("--seed 20261105 --count 3000 --futures 2500"),
            "{all}"
        );
        assert!(
            all.ends_with("--scripts crates/millpond-conform/scripts"),
            "{all}"
        );
    }

    #[test]
    fn only_the_chosen_scripts_run() {
        let seed = Scripts {
            seed: Some(7),
            ..Scripts::default()
        };
        assert_eq!(words(&seed), "--seed 7 --count 1");
        let count = Scripts {
            count: Some(9),
            ..Scripts::default()
        };
        assert_eq!(words(&count), "--seed 20261105 --count 9");
        let futures = Scripts {
            seed: Some(7),
            futures: Some(1),
            ..Scripts::default()
        };
        assert_eq!(words(&futures), "--seed 7 --futures 1");
        let files = Scripts {
            scripts: vec!["a.txt".into()],
            show: true,
            ..Scripts::default()
        };
        assert_eq!(words(&files), "--scripts a.txt --show");
    }

    #[test]
    fn the_note_says_what_has_run_and_a_failure_says_why() {
        let output = "500 random scripts from seed 42\n10 scripts, 200 steps: taken 3 in 1s\n";
        let outcome = judge(true, output);
        assert_eq!(outcome.verdict, Verdict::Passed);
        assert_eq!(outcome.note, "10 scripts, 200 steps");
        let failed = |reason: &str| Verdict::Failed(reason.into());
        let how_to_read = "docs/differential.md says how to read what is above";
        assert_eq!(judge(false, output).verdict, failed(how_to_read));
        assert_eq!(
            judge(false, "x\nerror: no Java\n").verdict,
            failed("no Java")
        );
    }
}
