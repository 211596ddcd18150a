//! The parts of a soak: how to run each from a seed, and how to repeat it.

use anyhow::Result;

use crate::counts::Counts;
use crate::gates::chaos::{self, Rounds};
use crate::gates::differential::{self, Scripts};
use crate::gates::models::{self, Checker};
use crate::gates::programs::{self, Programs};
use crate::runner::aligned;
use crate::step::Step;
use crate::table::Outcome;
use crate::workspace::Workspace;

/// How many minutes a part runs that can run for any time.
const MINUTES: f64 = 1.0;

/// How many scripts the differential test runs.
const SCRIPTS: u64 = 1_000;

/// One part.
#[derive(Debug)]
pub(super) struct Part {
    pub(super) name: &'static str,
    /// One line of help.
    pub(super) help: &'static str,
    /// The gate that does the same from a fixed seed, if it needs other programs.
    pub(super) gate: Option<&'static str>,
    how: How,
    /// Where a counterexample is kept.
    pub(super) keep: &'static str,
}

/// How a part is run from a seed.
#[derive(Debug)]
enum How {
    /// `cargo` with these arguments and the seed in this variable.
    Cargo(&'static [&'static str], &'static str),
    /// By a gate, and the command that does the same again.
    Gate(
        fn(&Workspace, &mut Step, u64) -> Result<Outcome>,
        fn(u64) -> String,
    ),
}

impl Part {
    /// Runs it from this seed.
    ///
    /// # Errors
    /// If cargo cannot be started.
    pub(super) fn run(&self, workspace: &Workspace, step: &mut Step, seed: u64) -> Result<Outcome> {
        let (arguments, variable) = match self.how {
            How::Gate(run, _) => return run(workspace, step, seed),
            How::Cargo(arguments, variable) => (arguments, variable),
        };
        let mut command = workspace.cargo(arguments);
        let ended = step.run(command.env(variable, seed.to_string()))?;
        let tally = Counts::of_output(&ended.output);
        let mut outcome = Outcome::of_tests(ended.success, tally);
        outcome.note = tally.to_string();
        Ok(outcome)
    }

    /// The command that does the same again.
    pub(super) fn replay(&self, seed: u64) -> String {
        match self.how {
            How::Gate(_, replay) => replay(seed),
            How::Cargo(arguments, variable) => {
                format!("{variable}={seed} cargo {}", arguments.join(" "))
            }
        }
    }
}

/// The random tests inside the library, by module.
const LIBRARY: &[&str] = &[
    "test",
    "-p",
    "millpond",
    "--lib",
    "--",
    "adapt::codel",
    "meter::histogram",
    "pool::task_queue",
    "queue::ring",
    "queue::two_lock",
    "time::wheel",
];

const QUEUES: &[&str] = &["test", "-p", "millpond-conform", "--test", "queue_model"];
const POOL: &[&str] = &["test", "-p", "millpond-conform", "--test", "pool_model"];
const CRON: &[&str] = &["test", "-p", "millpond-conform", "--test", "cron"];

const STRESS: &[&str] = &[
    "test",
    "-p",
    "millpond-conform",
    "--test",
    "queues",
    "--test",
    "executors",
    "--test",
    "pools",
    "--test",
    "scheduled",
    "--no-fail-fast",
];

/// The variables with the seed: of all random tests but the stress tests, and of these.
const SEED: &str = "MILLPOND_SEED";
const STRESS_SEED: &str = "MILLPOND_STRESS_SEED";

const BY_NAME: &str = "as a test whose name says what was wrong, in the file that found it";
const COUNTEREXAMPLES: &str =
    "as a file in crates/millpond-conform/counterexamples, see its README.md";

/// Every part, the quickest first.
pub(super) const PARTS: &[Part] = &[
    Part {
        name: "library",
        help: "random tests inside the library: wheel, rings, lines, histograms, shedding",
        gate: None,
        how: How::Cargo(LIBRARY, SEED),
        keep: BY_NAME,
    },
    Part {
        name: "queues",
        help: "every flavor of queue against its model",
        gate: None,
        how: How::Cargo(QUEUES, SEED),
        keep: COUNTEREXAMPLES,
    },
    Part {
        name: "pool",
        help: "the pool against its model",
        gate: None,
        how: How::Cargo(POOL, SEED),
        keep: BY_NAME,
    },
    Part {
        name: "cron",
        help: "cron expressions, times and zones against models",
        gate: None,
        how: How::Cargo(CRON, SEED),
        keep: BY_NAME,
    },
    Part {
        name: "programs",
        help: "random programs with many engines at once",
        gate: None,
        how: How::Gate(
            |workspace, step, seed| programs::run(workspace, step, &programs_of(seed, false)),
            |seed| format!("cargo xtask programs --seed {seed}; the log names the program"),
        ),
        keep: COUNTEREXAMPLES,
    },
    Part {
        name: "programs-chaos",
        help: "the same in a chaos build",
        gate: None,
        how: How::Gate(
            |workspace, step, seed| programs::run(workspace, step, &programs_of(seed, true)),
            |seed| format!("cargo xtask programs --chaos --seed {seed}; the log names the program"),
        ),
        keep: COUNTEREXAMPLES,
    },
    Part {
        name: "chaos",
        help: "stress of one pool in a chaos build",
        gate: None,
        how: How::Gate(
            |workspace, step, seed| {
                let rounds = Rounds {
                    minutes: Some(MINUTES),
                    seed: Some(seed),
                    ..Rounds::default()
                };
                chaos::run(workspace, step, &rounds)
            },
            |seed| format!("cargo xtask chaos --seed {seed}; the log names the round"),
        ),
        keep: BY_NAME,
    },
    Part {
        name: "stress",
        help: "the stress tests of the behaviour suites",
        gate: None,
        how: How::Cargo(STRESS, STRESS_SEED),
        keep: BY_NAME,
    },
    Part {
        name: "differential",
        help: "random scripts on Java's pools and futures and on ours",
        gate: Some("differential"),
        how: How::Gate(
            |workspace, step, seed| {
                let scripts = Scripts {
                    seed: Some(seed),
                    count: Some(SCRIPTS),
                    futures: Some(SCRIPTS),
                    ..Scripts::default()
                };
                differential::run(workspace, step, &scripts)
            },
            |seed| {
                format!(
                    "cargo xtask differential --seed {seed} --count {SCRIPTS} --futures {SCRIPTS}"
                )
            },
        ),
        keep: "as a script in crates/millpond-conform/scripts",
    },
    Part {
        name: "shuttle",
        help: "random schedules of the models",
        gate: None,
        how: How::Gate(
            |workspace, step, seed| {
                models::run_from(workspace, step, Checker::Shuttle, None, Some(seed))
            },
            |seed| format!("{SEED}={seed} cargo xtask models shuttle NAME"),
        ),
        keep: "the schedule that was printed, with MILLPOND_REPLAY, and a scenario that shows it sooner",
    },
];

/// The parts, for the help.
pub(super) fn help() -> String {
    let rows: Vec<[String; 2]> = PARTS
        .iter()
        .map(|part| [format!("  {}", part.name), part.help.to_owned()])
        .collect();
    format!("Parts, in the order of a round:\n{}", aligned(&rows))
}

fn programs_of(seed: u64, chaos: bool) -> Programs {
    Programs {
        minutes: Some(MINUTES),
        seed: Some(seed),
        chaos,
        ..Programs::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    /// A filter that matches nothing would pass.
    #[test]
    fn every_module_of_the_library_that_is_named_exists() {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates/millpond/src");
        for module in LIBRARY.iter().filter(|word| word.contains("::")) {
            let path = source.join(module.replace("::", "/"));
            let exists = path.is_dir() || path.with_extension("rs").is_file();
            assert!(exists, "there is no module {module}");
        }
    }
}
