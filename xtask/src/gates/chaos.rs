//! Chaos: builds of ours that yield, spin and sleep wherever threads can meet. The pool as a whole
//! plays in such a build, round by random round, with a ledger of every task; the program is an
//! example of `millpond-conform`. The tests of `millpond-raw` under chaos are in
//! [`super::tests`].

use std::process::Command;

use anyhow::Result;

use super::built;
use super::tests as under_chaos;
use crate::house::{House, Switch};
use crate::stage::Stage;
use crate::table::Outcome;

/// The seed of the rounds that every run of the house plays.
const SEED: u64 = 20_261_116;

/// For how many minutes each of the two runs of the house plays.
const MINUTES: f64 = 1.0 / 6.0;

/// What to play. Without any choice: what `cargo xtask test` plays, a fixed seed and a fresh one.
#[derive(Clone, Debug, Default, PartialEq, clap::Args)]
pub struct Rounds {
    /// For how long; 0.5 is half a minute
    #[arg(long)]
    pub minutes: Option<f64>,
    /// The seed of all rounds; a fresh one, which is printed, if only `--minutes` is given
    #[arg(long)]
    pub seed: Option<u64>,
    /// Play this round of the seed again and again
    #[arg(long, requires = "seed")]
    pub round: Option<u64>,
    /// Run the tests of millpond-raw under chaos instead
    #[arg(long, conflicts_with_all = ["minutes", "seed", "round"])]
    pub tests: bool,
}

/// The runs of the program, each with its arguments.
fn runs(rounds: &Rounds) -> Vec<Vec<String>> {
    let run = |minutes: f64, seed: Option<u64>, round: Option<u64>| {
        let mut words = vec!["--minutes".to_owned(), minutes.to_string()];
        let more = [("--seed", seed), ("--round", round)];
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
        (None, None) => vec![run(MINUTES, Some(SEED), None), run(MINUTES, None, None)],
        (minutes, seed) => vec![run(minutes.unwrap_or(1.0), seed, rounds.round)],
    }
}

/// Plays these rounds.
///
/// # Errors
/// If cargo cannot be started.
pub fn run(house: &House, stage: &mut Stage, rounds: &Rounds) -> Result<Outcome> {
    if rounds.tests {
        return under_chaos::run_chaos(house, stage);
    }
    // Not optimised: most of the time it yields and sleeps, and a round takes a third longer.
    let mut build = house.cargo_under(Switch::Chaos, &["build", "-p", "millpond-conform"]);
    let Some(program) = built::example(stage, &mut build, "chaos")? else {
        return Ok(Outcome::failed("it does not build"));
    };
    let mut notes = Vec::new();
    for arguments in runs(rounds) {
        let mut play = Command::new(&program);
        play.current_dir(&house.root).args(arguments);
        if let Some(seed) = rounds.seed {
            play.env(under_chaos::SEED, seed.to_string());
        }
        let ended = stage.run(&mut play)?;
        match judge(ended.success, &ended.output) {
            Ok(note) => notes.push(note),
            Err(reason) => return Ok(Outcome::failed(reason)),
        }
    }
    Ok(Outcome::passed(notes.join("; ")))
}

/// The gate.
///
/// # Errors
/// If cargo cannot be started.
pub fn run_all(house: &House, stage: &mut Stage) -> Result<Outcome> {
    run(house, stage, &Rounds::default())
}

/// What was played: `812 rounds, 57000 tasks, fresh seed 7`; or which round went wrong.
fn judge(success: bool, output: &str) -> Result<String, String> {
    let line = |part: &str| output.lines().find(|line| line.contains(part));
    if !success {
        let wrong = line(" of seed ").unwrap_or("it ended with an error");
        return Err(wrong.trim_end_matches(':').to_owned());
    }
    let Some((played, _)) = line(" tasks: ").and_then(|line| line.split_once(": ")) else {
        return Err("it does not say what it played".to_owned());
    };
    let seed = line("seed ").unwrap_or_default();
    Ok(format!("{played}, {seed}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(rounds: &Rounds) -> Vec<String> {
        runs(rounds).iter().map(|words| words.join(" ")).collect()
    }

    #[test]
    fn without_a_choice_the_house_plays_its_own_seed_and_a_fresh_one() {
        let all = words(&Rounds::default());
        assert_eq!(all.len(), 2);
        assert!(all[0].contains("--seed 20261116"), "{all:?}");
        assert!(!all[1].contains("--seed"), "{all:?}");
    }

    #[test]
    fn a_choice_is_all_that_is_played() {
        let chosen = Rounds {
            minutes: Some(0.5),
            seed: Some(7),
            round: Some(3),
            tests: false,
        };
        assert_eq!(words(&chosen), ["--minutes 0.5 --seed 7 --round 3"]);
        let fresh = Rounds {
            minutes: Some(2.0),
            ..Rounds::default()
        };
        assert_eq!(words(&fresh), ["--minutes 2"]);
    }

    #[test]
    fn the_note_says_what_was_played_and_a_failure_which_round_it_was() {
        let good = "fresh seed 7\n3 rounds: 9 tasks\n\n3 rounds, 9 tasks: the books balance\n";
        assert_eq!(
            judge(true, good).unwrap(),
            "3 rounds, 9 tasks, fresh seed 7"
        );
        let bad = "seed 7\n\nround 3 of seed 7 went wrong after 1s:\n- lost\n";
        assert_eq!(
            judge(false, bad).unwrap_err(),
            "round 3 of seed 7 went wrong after 1s"
        );
        assert!(judge(false, "").is_err());
        assert!(
            judge(true, "").is_err(),
            "a program that says nothing has gone blind"
        );
    }
}
