//! The parts of a soak: what is random, how to run it from a seed, and how to have it again.

use anyhow::Result;

use crate::gates::chaos::{self, Rounds};
use crate::gates::differential::{self, Scripts};
use crate::gates::models::{self, Checker};
use crate::gates::programs::{self, Programs};
use crate::house::House;
use crate::runner::aligned;
use crate::stage::Stage;
use crate::table::Outcome;
use crate::tally::Tally;

/// For how many minutes one part plays that can play for any time.
const MINUTES: f64 = 1.0;

/// How many scripts the differential test plays.
const SCRIPTS: u64 = 1_000;

/// One part.
#[derive(Debug)]
pub(super) struct Part {
    pub(super) name: &'static str,
    /// One line of help.
    pub(super) help: &'static str,
    /// The gate of the house that asks the same from a fixed seed, if it needs other programs.
    pub(super) gate: Option<&'static str>,
    pub(super) run: fn(&House, &mut Stage, u64) -> Result<Outcome>,
    /// The command that does the same again.
    pub(super) replay: fn(u64) -> String,
    /// Where a counterexample is kept.
    pub(super) keep: &'static str,
}

/// The random tests of the library, by the modules that they are in.
const LIBRARY: &[&str] = &[
    "test",
    "-p",
    "millpond",
    "--lib",
    "--",
    "adapt::codel",
    "meter::histogram",
    "pool::line",
    "queue::ring",
    "queue::twin",
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

/// The variable of the seed of everything but the stress tests, and of those.
const SEED: &str = "MILLPOND_SEED";
const STRESS_SEED: &str = "MILLPOND_STRESS_SEED";

const BY_NAME: &str = "as a test with a name that says what was wrong, in the file that found it";
const COUNTEREXAMPLES: &str =
    "as a file in crates/millpond-conform/counterexamples, see its README.md";

/// Every part, those first that take the least time.
pub(super) const PARTS: &[Part] = &[
    Part {
        name: "library",
        help: "random tests inside the library: wheel, rings, lines, histograms, shedding",
        gate: None,
        run: |house, stage, seed| tests(house, stage, LIBRARY, SEED, seed),
        replay: |seed| typed(LIBRARY, SEED, seed),
        keep: BY_NAME,
    },
    Part {
        name: "queues",
        help: "every flavor of queue against its model",
        gate: None,
        run: |house, stage, seed| tests(house, stage, QUEUES, SEED, seed),
        replay: |seed| typed(QUEUES, SEED, seed),
        keep: COUNTEREXAMPLES,
    },
    Part {
        name: "pool",
        help: "the pool against its model",
        gate: None,
        run: |house, stage, seed| tests(house, stage, POOL, SEED, seed),
        replay: |seed| typed(POOL, SEED, seed),
        keep: BY_NAME,
    },
    Part {
        name: "cron",
        help: "cron expressions, times and zones against models",
        gate: None,
        run: |house, stage, seed| tests(house, stage, CRON, SEED, seed),
        replay: |seed| typed(CRON, SEED, seed),
        keep: BY_NAME,
    },
    Part {
        name: "programs",
        help: "random programs with many engines at once",
        gate: None,
        run: |house, stage, seed| programs::run(house, stage, &programs_of(seed, false)),
        replay: |seed| format!("cargo xtask programs --seed {seed}; the log names the program"),
        keep: COUNTEREXAMPLES,
    },
    Part {
        name: "programs-chaos",
        help: "the same in a build that yields and sleeps wherever threads can meet",
        gate: None,
        run: |house, stage, seed| programs::run(house, stage, &programs_of(seed, true)),
        replay: |seed| {
            format!("cargo xtask programs --chaos --seed {seed}; the log names the program")
        },
        keep: COUNTEREXAMPLES,
    },
    Part {
        name: "chaos",
        help: "everything at once on one pool, in such a build",
        gate: None,
        run: |house, stage, seed| {
            let rounds = Rounds {
                minutes: Some(MINUTES),
                seed: Some(seed),
                ..Rounds::default()
            };
            chaos::run(house, stage, &rounds)
        },
        replay: |seed| format!("cargo xtask chaos --seed {seed}; the log names the round"),
        keep: BY_NAME,
    },
    Part {
        name: "stress",
        help: "the stress tests of the behaviour suites",
        gate: None,
        run: |house, stage, seed| tests(house, stage, STRESS, STRESS_SEED, seed),
        replay: |seed| typed(STRESS, STRESS_SEED, seed),
        keep: BY_NAME,
    },
    Part {
        name: "differential",
        help: "random scripts on Java's pool and on ours",
        gate: Some("differential"),
        run: |house, stage, seed| {
            let scripts = Scripts {
                seed: Some(seed),
                count: Some(SCRIPTS),
                ..Scripts::default()
            };
            differential::run(house, stage, &scripts)
        },
        replay: |seed| format!("cargo xtask differential --seed {seed} --count {SCRIPTS}"),
        keep: "as a script in crates/millpond-conform/scripts",
    },
    Part {
        name: "shuttle",
        help: "random schedules of the models",
        gate: None,
        run: |house, stage, seed| {
            models::run_from(house, stage, Checker::Shuttle, None, Some(seed))
        },
        replay: |seed| format!("{SEED}={seed} cargo xtask models shuttle NAME"),
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

fn tests(
    house: &House,
    stage: &mut Stage,
    arguments: &[&str],
    variable: &str,
    seed: u64,
) -> Result<Outcome> {
    let mut command = house.cargo(arguments);
    let ended = stage.run(command.env(variable, seed.to_string()))?;
    let tally = Tally::of_output(&ended.output);
    let mut outcome = Outcome::of_tests(ended.success, tally);
    outcome.note = format!("{tally}");
    Ok(outcome)
}

fn typed(arguments: &[&str], variable: &str, seed: u64) -> String {
    format!("{variable}={seed} cargo {}", arguments.join(" "))
}
