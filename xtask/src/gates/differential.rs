//! The differential test: scripts on Java's `ThreadPoolExecutor` and on our pool, logs compared. The
//! program is an example of `millpond-conform`; `docs/differential.md` says how to read it.

use std::path::PathBuf;
use std::process::Command;

use anyhow::Result;

use super::built;
use crate::house::House;
use crate::stage::Stage;
use crate::table::Outcome;

/// The seed of the scripts that every run of the house plays.
const SEED: u64 = 20_261_105;

/// How many of those.
const COUNT: u64 = 2_500;

/// Where the written scripts are.
const WRITTEN: &str = "crates/millpond-conform/scripts";

/// Which scripts to play. Without any choice: those of `cargo xtask test`.
#[derive(Clone, Debug, Default, PartialEq, Eq, clap::Args)]
pub struct Scripts {
    /// Where the random scripts begin; that of `cargo xtask test` if only `--count` is given
    #[arg(long)]
    pub seed: Option<u64>,
    /// How many random scripts
    #[arg(long)]
    pub count: Option<u64>,
    /// A script, or a folder of scripts (*.txt)
    #[arg(long, value_name = "PATH")]
    pub scripts: Vec<PathBuf>,
    /// Show the logs too
    #[arg(long)]
    pub show: bool,
    /// Show where the two differ on purpose and why, and play nothing
    #[arg(long)]
    pub decisions: bool,
}

/// The arguments of the program.
fn arguments(scripts: &Scripts) -> Vec<String> {
    let Scripts {
        seed,
        count,
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
    match (seed, count) {
        (None, None) if paths.is_empty() => {
            say("--seed", SEED.to_string());
            say("--count", COUNT.to_string());
            say("--scripts", WRITTEN.to_owned());
        }
        (None, None) => {}
        (seed, count) => {
            say("--seed", seed.unwrap_or(SEED).to_string());
            say("--count", count.unwrap_or(1).to_string());
        }
    }
    if *show {
        words.push("--show".to_owned());
    }
    words
}

/// Plays these scripts.
///
/// # Errors
/// If cargo cannot be started.
pub fn run(house: &House, stage: &mut Stage, scripts: &Scripts) -> Result<Outcome> {
    // As the tests are built, who have built it already: that it is quicker optimised does not make
    // up for building everything once more.
    let mut build = house.cargo(&["build", "--workspace", "--all-features"]);
    let Some(program) = built::example(stage, &mut build, "differential")? else {
        return Ok(Outcome::failed("it does not build"));
    };
    let mut play = Command::new(program);
    play.current_dir(&house.root)
        .args(arguments(&found_here(scripts)?));
    let ended = stage.run(&mut play)?;
    Ok(judge(ended.success, &ended.output))
}

/// The same scripts; the program runs in the root, but paths are meant from where the user is.
fn found_here(scripts: &Scripts) -> Result<Scripts> {
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
pub fn run_all(house: &House, stage: &mut Stage) -> Result<Outcome> {
    run(house, stage, &Scripts::default())
}

fn judge(success: bool, output: &str) -> Outcome {
    if !success {
        let error = output.lines().find_map(|line| line.strip_prefix("error: "));
        let reason = error.unwrap_or("docs/differential.md says how to read what is above");
        return Outcome::failed(reason);
    }
    // The note is what was played: `2514 scripts, 57000 steps`.
    let played = output.lines().find(|line| line.contains(" scripts, "));
    let played = played.and_then(|line| line.split(':').next());
    Outcome::passed(played.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::Verdict;

    fn words(scripts: &Scripts) -> String {
        arguments(scripts).join(" ")
    }

    #[test]
    fn without_a_choice_the_house_plays_its_own() {
        let all = words(&Scripts::default());
        assert!(all.contains("--seed 20261105 --count 2500"), "{all}");
        assert!(
            all.ends_with("--scripts crates/millpond-conform/scripts"),
            "{all}"
        );
    }

    #[test]
    fn a_choice_is_all_that_is_played() {
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
        let files = Scripts {
            scripts: vec!["a.txt".into()],
            show: true,
            ..Scripts::default()
        };
        assert_eq!(words(&files), "--scripts a.txt --show");
    }

    #[test]
    fn the_note_says_what_was_played_and_a_failure_is_one() {
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
