//! Stress of the pool in a chaos build, which yields, spins and sleeps at random before every atomic
//! operation. Each random round has a ledger of every task; the program is an example of
//! `millpond-conform`. The tests of `millpond-raw` under chaos are in [`super::tests`].

use std::process::Command;

use anyhow::Result;

use super::built;
use super::tests as under_chaos;
use crate::step::Step;
use crate::table::Outcome;
use crate::workspace::{Switch, Workspace};

/// The seed of the rounds of `cargo xtask test`.
const SEED: u64 = 20_261_116;

/// How many minutes they take at most.
const MINUTES: f64 = 1.0 / 3.0;

/// How many there are at most, so that a faster machine runs no round that was never run before.
const ROUNDS: u64 = 1_500;

/// Which rounds. By default, those of `cargo xtask test`.
#[derive(Clone, Debug, Default, PartialEq, clap::Args)]
pub struct Rounds {
    /// For how long; 0.5 is half a minute
    #[arg(long)]
    pub minutes: Option<f64>,
    /// The seed of all rounds; that of `cargo xtask test` if only `--minutes` is given
    #[arg(long)]
    pub seed: Option<u64>,
    /// Repeat this round of the seed
    #[arg(long, requires = "seed")]
    pub round: Option<u64>,
    /// Run the tests of millpond-raw under chaos instead
    #[arg(long, conflicts_with_all = ["minutes", "seed", "round"])]
    pub tests: bool,
}

/// The arguments of the program.
fn arguments(rounds: &Rounds) -> Vec<String> {
    let run = |minutes: f64, seed: u64, more: (&'static str, Option<u64>)| {
        let mut words = vec!["--minutes".to_owned(), minutes.to_string()];
        let more = [("--seed", Some(seed)), more];
        for (name, value) in more {
            words.extend(
                value
                    .into_iter()
                    .flat_map(|value| [name.to_owned(), value.to_string()]),
            );
        }
        words
    };
    match (rounds.minutes, rounds.seed) {
        (None, None) => run(MINUTES, SEED, ("--rounds", Some(ROUNDS))),
        (minutes, seed) => {
            let seed = seed.unwrap_or(SEED);
            run(minutes.unwrap_or(1.0), seed, ("--round", rounds.round))
        }
    }
}

/// Runs these rounds.
///
/// # Errors
/// If cargo cannot be started.
pub fn run(workspace: &Workspace, step: &mut Step, rounds: &Rounds) -> Result<Outcome> {
    if rounds.tests {
        return under_chaos::run_chaos(workspace, step);
    }
    // Not optimised: it yields and sleeps most of the time, so a round takes only a third longer.
    let mut build = workspace.cargo_under(Switch::Chaos, &["build", "-p", "millpond-conform"]);
    let Some(program) = built::example(step, &mut build, "chaos")? else {
        return Ok(Outcome::failed("it does not build"));
    };
    let mut command = Command::new(&program);
    command.current_dir(&workspace.root).args(arguments(rounds));
    let seed = rounds.seed.unwrap_or(SEED);
    command.env(under_chaos::SEED, seed.to_string());
    let ended = step.run(&mut command)?;
    Ok(match judge(ended.success, &ended.output) {
        Ok(note) => Outcome::passed(note),
        Err(reason) => Outcome::failed(reason),
    })
}

/// The gate.
///
/// # Errors
/// If cargo cannot be started.
pub fn run_all(workspace: &Workspace, step: &mut Step) -> Result<Outcome> {
    run(workspace, step, &Rounds::default())
}

/// What has run, as in `812 rounds, 57000 tasks, seed 7`; or which round failed.
fn judge(success: bool, output: &str) -> Result<String, String> {
    let line = |part: &str| output.lines().find(|line| line.contains(part));
    if !success {
        let wrong = line(" of seed ").unwrap_or("it ended with an error");
        return Err(wrong.trim_end_matches(':').to_owned());
    }
    let Some((played, _)) = line(" tasks: ").and_then(|line| line.split_once(": ")) else {
        return Err("it does not say what it ran".to_owned());
    };
    let seed = line("seed ").unwrap_or_default();
    Ok(format!("{played}, {seed}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(rounds: &Rounds) -> String {
        arguments(rounds).join(" ")
    }

    #[test]
    fn by_default_a_fixed_number_of_rounds_runs_from_a_fixed_seed() {
        let all = words(&Rounds::default());
        assert!(all.ends_with("--seed 20261116 --rounds 1500"), "{all}");
    }

    #[test]
    fn only_the_chosen_rounds_run() {
        let chosen = Rounds {
            minutes: Some(0.5),
            seed: Some(7),
            round: Some(3),
            tests: false,
        };
        assert_eq!(words(&chosen), "--minutes 0.5 --seed 7 --round 3");
        let longer = Rounds {
            minutes: Some(2.0),
            ..Rounds::default()
        };
        assert_eq!(words(&longer), "--minutes 2 --seed 20261116");
    }

    #[test]
    fn the_note_says_what_has_run_and_a_failure_names_its_round() {
        let good = "seed 7\n3 rounds: 9 tasks\n\n3 rounds, 9 tasks: the books balance\n";
        assert_eq!(judge(true, good).unwrap(), "3 rounds, 9 tasks, seed 7");
        let bad = "seed 7\n\nround 3 of seed 7 went wrong after 1s:\n- lost\n";
        assert_eq!(
            judge(false, bad).unwrap_err(),
            "round 3 of seed 7 went wrong after 1s"
        );
        assert!(judge(false, "").is_err());
        assert!(
            judge(true, "").is_err(),
            "a program that prints nothing has run nothing"
        );
    }
}
