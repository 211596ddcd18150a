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

/// For how many minutes the house plays, at most.
const MINUTES: f64 = 1.0 / 3.0;

/// How many rounds the house plays, at most: a faster machine plays none that nobody has seen.
const ROUNDS: u64 = 1_500;

/// What to play. Without any choice: what `cargo xtask test` plays.
#[derive(Clone, Debug, Default, PartialEq, clap::Args)]
pub struct Rounds {
    /// For how long; 0.5 is half a minute
    #[arg(long)]
    pub minutes: Option<f64>,
    /// The seed of all rounds; that of `cargo xtask test` if only `--minutes` is given
    #[arg(long)]
    pub seed: Option<u64>,
    /// Play this round of the seed again and again
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
    let mut play = Command::new(&program);
    play.current_dir(&house.root).args(arguments(rounds));
    let seed = rounds.seed.unwrap_or(SEED);
    play.env(under_chaos::SEED, seed.to_string());
    let ended = stage.run(&mut play)?;
    Ok(match judge(ended.success, &ended.output) {
        Ok(note) => Outcome::passed(note),
        Err(reason) => Outcome::failed(reason),
    })
}

/// The gate.
///
/// # Errors
/// If cargo cannot be started.
pub fn run_all(house: &House, stage: &mut Stage) -> Result<Outcome> {
    run(house, stage, &Rounds::default())
}

/// What was played: `812 rounds, 57000 tasks, seed 7`; or which round went wrong.
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

    fn words(rounds: &Rounds) -> String {
        arguments(rounds).join(" ")
    }

    #[test]
    fn without_a_choice_the_house_plays_so_many_rounds_of_its_own_seed() {
        let all = words(&Rounds::default());
        assert!(all.ends_with("--seed 20261116 --rounds 1500"), "{all}");
    }

    #[test]
    fn a_choice_is_all_that_is_played() {
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
    fn the_note_says_what_was_played_and_a_failure_which_round_it_was() {
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
            "a program that says nothing has gone blind"
        );
    }
}
