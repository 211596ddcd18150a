//! The command line. Gates without arguments come from the table; the rest is spelled out here.

use anyhow::Result;
use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};

use crate::gates::chaos::{self, Rounds};
use crate::gates::differential::{self, Scripts};
use crate::gates::exhaustion;
use crate::gates::models::{self, Checker};
use crate::gates::programs::{self, Programs};
use crate::gates::sanitize::{self, Sanitizer};
use crate::gates::soak;
use crate::gates::weaken;
use crate::house::House;
use crate::needs::{self, Larder};
use crate::runner::{self, aligned};
use crate::stage::Stage;
use crate::table::{Door, GATES, Gate, Outcome, Verdict};

/// The house's gates: everything that is checked before a change is good.
#[derive(Debug, Parser)]
#[command(
    name = "cargo xtask",
    bin_name = "cargo xtask",
    disable_help_subcommand = true
)]
struct Cli {
    #[command(subcommand)]
    command: Task,
}

#[derive(Debug, Subcommand)]
enum Task {
    /// Run every step there is to test, then sum up
    Test {
        /// Run these steps only
        #[arg(long, value_name = "NAME", value_delimiter = ',')]
        only: Vec<String>,
        /// Leave these steps out
        #[arg(long, value_name = "NAME", value_delimiter = ',')]
        skip: Vec<String>,
        /// Show the steps and run nothing
        #[arg(long)]
        list: bool,
    },
    /// Run the models of millpond-raw: loom, shuttle, or both
    Models {
        /// Whose models
        checker: Option<Checker>,
        /// Only models whose name contains this
        filter: Option<String>,
    },
    /// Weaken each labelled ordering and demand that a loom model fails
    Weaken(weaken::Choice),
    /// Run the tests of millpond-raw and millpond under asan, tsan, or both
    Sanitize {
        /// Which sanitizer
        sanitizer: Option<Sanitizer>,
    },
    /// Play scripts on Java's thread pool and on ours, and compare the logs
    Differential(Scripts),
    /// Run the behaviour suites in processes that are short of threads, CPUs, stack
    Exhaustion(exhaustion::Choice),
    /// Play everything at once on the pool in a chaos build, and check that no task is lost
    Chaos(Rounds),
    /// Play random programs with many engines at once, and check that no task is lost
    Programs(Programs),
    /// Run everything that is random with fresh seeds, round after round, for hours
    Soak(soak::Choice),
    /// Show which outside programs are here and which are missing
    Needs,
}

/// The whole command line: commands with arguments, and one for each gate without.
pub fn command() -> clap::Command {
    let own = GATES.iter().filter(|gate| gate.door == Door::Own);
    Cli::command()
        .subcommands(own.map(|gate| clap::Command::new(gate.name).about(gate.help)))
        .after_help(format!(
            "Steps of `cargo xtask test`, in order:\n{}",
            steps(GATES.iter())
        ))
}

fn steps<'a>(gates: impl Iterator<Item = &'a Gate>) -> String {
    let rows: Vec<[String; 3]> = gates
        .map(|gate| {
            [
                format!("  {}", gate.name),
                gate.help.into(),
                format!("cargo xtask {}", gate.call()),
            ]
        })
        .collect();
    aligned(&rows)
}

/// Reads the arguments and does what they say; true if everything holds.
///
/// # Errors
/// If the house is not found, a name is unknown or a log cannot be written.
pub fn main() -> Result<bool> {
    let matches = command().get_matches();
    let house = House::find()?;
    if let Some((name, _)) = matches.subcommand()
        && let Some(gate) = Gate::named(name).filter(|gate| gate.door == Door::Own)
    {
        let mut stage = stage(&house, gate.name)?;
        return Ok(close(
            gate.name,
            &runner::perform(&house, gate, &mut Larder::new(), &mut stage),
        ));
    }
    let cli = Cli::from_arg_matches(&matches).unwrap_or_else(|error| error.exit());
    match cli.command {
        Task::Test { only, skip, list } => {
            let chosen = runner::choose(&only, &skip)?;
            if list {
                print!("{}", steps(chosen.into_iter()));
                return Ok(true);
            }
            runner::run(&house, &chosen)
        }
        Task::Models { checker, filter } => {
            let checkers = checker.map_or(vec![Checker::Loom, Checker::Shuttle], |one| vec![one]);
            all(checkers, |one| {
                let name = one.switch().name();
                alone(&house, name, |stage| {
                    models::run(&house, stage, one, filter.as_deref())
                })
            })
        }
        Task::Weaken(choice) if choice.list => {
            let mutants = weaken::mutants(&house.root, &choice.labels)?;
            mutants.iter().for_each(|mutant| println!("{mutant}"));
            Ok(true)
        }
        Task::Weaken(choice) => alone(&house, "weaken", |stage| {
            weaken::run(&house, stage, &choice)
        }),
        Task::Sanitize { sanitizer } => {
            let sanitizers =
                sanitizer.map_or(vec![Sanitizer::Asan, Sanitizer::Tsan], |one| vec![one]);
            all(sanitizers, |one| {
                alone(&house, one.name(), |stage| {
                    sanitize::run(&house, stage, one)
                })
            })
        }
        Task::Differential(scripts) => alone(&house, "differential", |stage| {
            differential::run(&house, stage, &scripts)
        }),
        Task::Exhaustion(choice) => alone(&house, "exhaustion", |stage| {
            exhaustion::run(&house, stage, &choice)
        }),
        Task::Chaos(rounds) => {
            let name = if rounds.tests { "chaos" } else { "chaos-pool" };
            alone(&house, name, |stage| chaos::run(&house, stage, &rounds))
        }
        Task::Programs(chosen) => alone(&house, "programs", |stage| {
            match chosen == Programs::default() {
                true => programs::run_all(&house, stage),
                false => programs::run(&house, stage, &chosen),
            }
        }),
        Task::Soak(choice) => soak::run(&house, &choice),
        Task::Needs => {
            let (table, complete) = needs::overview();
            print!("{table}");
            Ok(complete)
        }
    }
}

/// Does all of them, even if one fails.
fn all<T>(items: Vec<T>, mut each: impl FnMut(T) -> Result<bool>) -> Result<bool> {
    let mut good = true;
    for item in items {
        good &= each(item)?;
    }
    Ok(good)
}

/// Runs one gate with arguments, its needs first, with everything it prints on the terminal.
fn alone(
    house: &House,
    name: &str,
    run: impl FnOnce(&mut Stage) -> Result<Outcome>,
) -> Result<bool> {
    let mut stage = stage(house, name)?;
    if let Some(gate) = Gate::named(name)
        && let Err(missing) = Larder::new().prepare(gate, &mut stage)?
    {
        return Ok(close(name, &Outcome::failed(missing)));
    }
    let outcome = run(&mut stage)?;
    Ok(close(name, &outcome))
}

fn stage(house: &House, name: &str) -> Result<Stage> {
    Stage::open(
        &house.target_of("xtask").join(format!("{name}.log")),
        |line| println!("{line}"),
    )
}

fn close(name: &str, outcome: &Outcome) -> bool {
    match &outcome.verdict {
        Verdict::Passed if outcome.note.is_empty() => println!("{name}: ok"),
        Verdict::Passed => println!("{name}: ok, {}", outcome.note),
        Verdict::Failed(reason) => println!("{name}: FAILED, {reason}"),
        Verdict::Skipped(reason) => println!("{name}: skipped, {reason}"),
    }
    !matches!(outcome.verdict, Verdict::Failed(_))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_well_formed() {
        command().debug_assert();
    }

    #[test]
    fn every_gate_appears_in_the_help_with_its_sentence_and_its_call() {
        let help = command().render_long_help().to_string();
        for gate in GATES {
            let call = format!("cargo xtask {}", gate.call());
            let step = |line: &&str| {
                line.split_whitespace().next() == Some(gate.name) && line.contains(&call)
            };
            let line = help
                .lines()
                .find(step)
                .unwrap_or_else(|| panic!("no {}: {help}", gate.name));
            assert!(line.contains(gate.help), "{line}");
        }
    }

    #[test]
    fn every_call_in_the_help_is_understood() {
        for gate in GATES {
            let words = ["cargo xtask"].into_iter().chain(gate.call().split(' '));
            assert!(
                command().try_get_matches_from(words).is_ok(),
                "{}",
                gate.call()
            );
        }
    }
}
