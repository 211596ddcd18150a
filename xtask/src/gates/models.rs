//! The models of `millpond-raw` and `millpond`: loom explores every interleaving of small cases,
//! shuttle random schedules of larger ones.

use std::process::Command;

use anyhow::Result;

use crate::counts::Counts;
use crate::step::Step;
use crate::table::Outcome;
use crate::workspace::{Switch, Workspace};

/// A model checker.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Checker {
    /// Every interleaving of small cases.
    Loom,
    /// Random schedules of larger cases.
    Shuttle,
}

impl Checker {
    /// The switch its models are built under.
    pub const fn switch(self) -> Switch {
        match self {
            Checker::Loom => Switch::Loom,
            Checker::Shuttle => Switch::Shuttle,
        }
    }
}

/// The crates that have models.
pub const CRATES: [&str; 2] = ["millpond-raw", "millpond"];

/// The arguments of cargo that build and run the models of `checker` in these crates.
pub fn arguments(checker: Checker, crates: &[&str]) -> Vec<String> {
    let pattern = format!("{}_*", checker.switch().name());
    let crates = crates.iter().flat_map(|name| ["-p", name]);
    ["test", "--profile", "models", "--test", &pattern]
        .into_iter()
        .chain(crates)
        .map(String::from)
        .collect()
}

fn command(workspace: &Workspace, checker: Checker, filter: Option<&str>) -> Command {
    let mut command = workspace.cargo_under(checker.switch(), &[]);
    command
        .args(arguments(checker, &CRATES))
        .arg("--no-fail-fast")
        .args(filter);
    command
}

/// Runs the models of one checker whose name contains `filter`.
///
/// # Errors
/// If cargo cannot be started.
pub fn run(
    workspace: &Workspace,
    step: &mut Step,
    checker: Checker,
    filter: Option<&str>,
) -> Result<Outcome> {
    run_from(workspace, step, checker, filter, None)
}

/// The same, from another seed than the fixed one.
///
/// # Errors
/// If cargo cannot be started.
pub fn run_from(
    workspace: &Workspace,
    step: &mut Step,
    checker: Checker,
    filter: Option<&str>,
    seed: Option<u64>,
) -> Result<Outcome> {
    let mut command = command(workspace, checker, filter);
    if let Some(seed) = seed {
        command.env("MILLPOND_SEED", seed.to_string());
    }
    let ended = step.run(&mut command)?;
    let mut outcome = Outcome::of_tests(ended.success, Counts::of_output(&ended.output));
    let walked = schedules(&ended.output);
    if walked > 0 {
        outcome.note = format!("{walked} schedules");
        step.say(&format!("{walked} schedules in all"))?;
    }
    Ok(outcome)
}

/// The sum of the schedules that the models report.
fn schedules(output: &str) -> u64 {
    let walked = output.lines().filter_map(|line| {
        // The name of a test that runs alone stands on the same line.
        let (front, _) = line.split_once(" schedules walked")?;
        front.rsplit(' ').next()?.parse::<u64>().ok()
    });
    walked.sum()
}

/// The gate `loom`.
///
/// # Errors
/// If cargo cannot be started.
pub fn run_loom(workspace: &Workspace, step: &mut Step) -> Result<Outcome> {
    run(workspace, step, Checker::Loom, None)
}

/// The gate `shuttle`.
///
/// # Errors
/// If cargo cannot be started.
pub fn run_shuttle(workspace: &Workspace, step: &mut Step) -> Result<Outcome> {
    run(workspace, step, Checker::Shuttle, None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn schedules_are_summed_wherever_they_are_in_a_line() {
        let output = "4000 schedules walked\ntest a ... ok\ntest b ... 2000 schedules walked\nok\n";
        assert_eq!(schedules(output), 6000);
        assert_eq!(schedules("no schedules walked by anybody"), 0);
    }
}
