//! The command line. Gates without arguments come from the table; the others are listed here.

use anyhow::Result;
use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};

use crate::gates::chaos::{self, Rounds};
use crate::gates::differential::{self, Scripts};
use crate::gates::exhaustion;
use crate::gates::models::{self, Checker};
use crate::gates::programs::{self, Programs};
use crate::gates::sanitize::{self, Sanitizer};
use crate::gates::scale;
use crate::gates::soak;
use crate::gates::weaken;
use crate::needs::{self, Installer};
use crate::runner::{self, aligned};
use crate::step::Step;
use crate::table::{GATES, Gate, Invocation, Outcome, Verdict};
use crate::workspace::Workspace;

/// The gates: everything that is checked before a change is merged.
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
    /// Run all steps, then sum up
    Test {
        /// Run these steps only
        #[arg(long, value_name = "NAME", value_delimiter = ',')]
        only: Vec<String>,
        /// Skip these steps
        #[arg(long, value_name = "NAME", value_delimiter = ',')]
        skip: Vec<String>,
        /// Show the steps and run nothing
        #[arg(long)]
        list: bool,
    },
    /// Run the models of millpond-raw and millpond: loom, shuttle, or both
    Models {
        /// Which model checker
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
    /// Run scripts on Java's thread pool and on ours, and compare the logs
    Differential(Scripts),
    /// Run the behaviour suites in processes that are short of threads, CPUs, stack
    Exhaustion(exhaustion::Choice),
    /// Stress the pool in a chaos build, and check that no task is lost
    Chaos(Rounds),
    /// Run random programs with many engines at once, and check that no task is lost
    Programs(Programs),
    /// Run all random tests with fresh seeds, round after round, for hours
    Soak(soak::Choice),
    /// Compute what the pool would do on more cores, and write it into docs/design/scale.md
    Scale,
    /// Show which external programs are installed and which are missing
    Needs,
}

/// The whole command line: commands with arguments, and one for each gate without.
pub fn command() -> clap::Command {
    let own = GATES
        .iter()
        .filter(|gate| gate.invocation == Invocation::Own);
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

/// Runs the command in the arguments; true if everything passed.
///
/// # Errors
/// If the workspace is not found, a name is unknown or a log cannot be written.
pub fn main() -> Result<bool> {
    let matches = command().get_matches();
    let workspace = Workspace::find()?;
    if let Some((name, _)) = matches.subcommand()
        && let Some(gate) = Gate::named(name).filter(|gate| gate.invocation == Invocation::Own)
    {
        let mut step = step(&workspace, gate.name)?;
        return Ok(close(
            gate.name,
            &runner::run_gate(&workspace, gate, &mut Installer::new(), &mut step),
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
            runner::run(&workspace, &chosen)
        }
        Task::Models { checker, filter } => {
            let checkers = checker.map_or(vec![Checker::Loom, Checker::Shuttle], |one| vec![one]);
            all(checkers, |one| {
                let name = one.switch().name();
                alone(&workspace, name, |step| {
                    models::run(&workspace, step, one, filter.as_deref())
                })
            })
        }
        Task::Weaken(choice) if choice.list => {
            let mutants = weaken::mutants(&workspace.root, &choice.labels)?;
            mutants.iter().for_each(|mutant| println!("{mutant}"));
            Ok(true)
        }
        Task::Weaken(choice) => alone(&workspace, "weaken", |step| {
            weaken::run(&workspace, step, &choice)
        }),
        Task::Sanitize { sanitizer } => {
            let sanitizers =
                sanitizer.map_or(vec![Sanitizer::Asan, Sanitizer::Tsan], |one| vec![one]);
            all(sanitizers, |one| {
                alone(&workspace, one.name(), |step| {
                    sanitize::run(&workspace, step, one)
                })
            })
        }
        Task::Differential(scripts) => alone(&workspace, "differential", |step| {
            differential::run(&workspace, step, &scripts)
        }),
        Task::Exhaustion(choice) => alone(&workspace, "exhaustion", |step| {
            exhaustion::run(&workspace, step, &choice)
        }),
        Task::Chaos(rounds) => {
            let name = if rounds.tests { "chaos" } else { "chaos-pool" };
            alone(&workspace, name, |step| {
                chaos::run(&workspace, step, &rounds)
            })
        }
        Task::Programs(chosen) => alone(&workspace, "programs", |step| {
            if chosen == Programs::default() {
                programs::run_all(&workspace, step)
            } else {
                programs::run(&workspace, step, &chosen)
            }
        }),
        Task::Soak(choice) => soak::run(&workspace, &choice),
        Task::Scale => alone(&workspace, "scale", |step| scale::run(&workspace, step)),
        Task::Needs => {
            let (table, complete) = needs::overview();
            print!("{table}");
            Ok(complete)
        }
    }
}

/// Runs all of them, even if one fails.
fn all<T>(items: Vec<T>, mut each: impl FnMut(T) -> Result<bool>) -> Result<bool> {
    let mut good = true;
    for item in items {
        good &= each(item)?;
    }
    Ok(good)
}

/// Runs one gate with arguments after its needs are met; its output goes to the terminal.
fn alone(
    workspace: &Workspace,
    name: &str,
    run: impl FnOnce(&mut Step) -> Result<Outcome>,
) -> Result<bool> {
    let mut step = step(workspace, name)?;
    if let Some(gate) = Gate::named(name)
        && let Err(missing) = Installer::new().prepare(gate, &mut step)?
    {
        return Ok(close(name, &Outcome::failed(missing)));
    }
    let outcome = run(&mut step)?;
    Ok(close(name, &outcome))
}

fn step(workspace: &Workspace, name: &str) -> Result<Step> {
    Step::open(&workspace.log_of(name), |line| println!("{line}"))
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
    fn the_command_line_is_valid() {
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
    fn every_call_in_the_help_is_valid() {
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
