//! The models: loom walks every interleaving of small cases, of `millpond-raw` and of a pool with a
//! worker or two; shuttle random schedules of larger ones, those of the library's queues, executors
//! and pools included.

use std::process::Command;

use anyhow::Result;

use crate::house::{House, Switch};
use crate::stage::Stage;
use crate::table::Outcome;
use crate::tally::Tally;

/// Who explores the interleavings.
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

/// The arguments that choose the models of `checker` in these crates.
pub fn arguments(checker: Checker, crates: &[&str]) -> Vec<String> {
    let pattern = format!("{}_*", checker.switch().name());
    let crates = crates.iter().flat_map(|name| ["-p", name]);
    ["test", "--profile", "models", "--test", &pattern]
        .into_iter()
        .chain(crates)
        .map(String::from)
        .collect()
}

fn command(house: &House, checker: Checker, filter: Option<&str>) -> Command {
    let mut command = house.cargo_under(checker.switch(), &[]);
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
    house: &House,
    stage: &mut Stage,
    checker: Checker,
    filter: Option<&str>,
) -> Result<Outcome> {
    run_from(house, stage, checker, filter, None)
}

/// The same from another seed than the fixed one of the tests.
///
/// # Errors
/// If cargo cannot be started.
pub fn run_from(
    house: &House,
    stage: &mut Stage,
    checker: Checker,
    filter: Option<&str>,
    seed: Option<u64>,
) -> Result<Outcome> {
    let mut command = command(house, checker, filter);
    if let Some(seed) = seed {
        command.env("MILLPOND_SEED", seed.to_string());
    }
    let ended = stage.run(&mut command)?;
    let mut outcome = Outcome::of_tests(ended.success, Tally::of_output(&ended.output));
    let walked = schedules(&ended.output);
    if walked > 0 {
        outcome.note = format!("{walked} schedules");
        stage.say(&format!("{walked} schedules in all"))?;
    }
    Ok(outcome)
}

/// How many schedules the models say that they have walked.
fn schedules(output: &str) -> u64 {
    let walked = output.lines().filter_map(|line| {
        // A test that runs alone has its name printed before.
        let (front, _) = line.split_once(" schedules walked")?;
        front.rsplit(' ').next()?.parse::<u64>().ok()
    });
    walked.sum()
}

/// The gate `loom`.
///
/// # Errors
/// If cargo cannot be started.
pub fn run_loom(house: &House, stage: &mut Stage) -> Result<Outcome> {
    run(house, stage, Checker::Loom, None)
}

/// The gate `shuttle`.
///
/// # Errors
/// If cargo cannot be started.
pub fn run_shuttle(house: &House, stage: &mut Stage) -> Result<Outcome> {
    run(house, stage, Checker::Shuttle, None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn schedules_add_up_wherever_they_stand_in_a_line() {
        let output = "4000 schedules walked\ntest a ... ok\ntest b ... 2000 schedules walked\nok\n";
        assert_eq!(schedules(output), 6000);
        assert_eq!(schedules("no schedules walked by anybody"), 0);
    }
}
