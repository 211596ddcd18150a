//! The tests, as they are, on the portable fallback, and under chaos.

use anyhow::Result;

use crate::house::{House, Switch};
use crate::stage::Stage;
use crate::table::{Outcome, Verdict};
use crate::tally::Tally;

/// Fixed, so that a failure can be had again. Any three numbers would do; they only have to stay.
const SEEDS: [u64; 3] = [1, 20_260_701, 0x9E37_79B9_7F4A_7C15];

/// The variable through which the chaos backend takes its seed.
pub(super) const SEED: &str = "MILLPOND_CHAOS_SEED";

/// Every test and documentation example of the workspace, those behind features included; the
/// portable and chaos runs take the default features.
///
/// # Errors
/// If cargo cannot be started.
pub fn run(house: &House, stage: &mut Stage) -> Result<Outcome> {
    let ended = stage.run(&mut house.cargo(&[
        "test",
        "--workspace",
        "--all-features",
        "--no-fail-fast",
    ]))?;
    Ok(Outcome::of_tests(
        ended.success,
        Tally::of_output(&ended.output),
    ))
}

/// The same code where there is no futex, without the examples of the documentation.
///
/// # Errors
/// If cargo cannot be started.
pub fn run_portable(house: &House, stage: &mut Stage) -> Result<Outcome> {
    let arguments = [
        "test",
        "-p",
        "millpond-raw",
        "-p",
        "millpond",
        // The examples of the documentation have nothing to wait for.
        "--lib",
        "--tests",
        "--no-fail-fast",
    ];
    let ended = stage.run(&mut house.cargo_under(Switch::Portable, &arguments))?;
    Ok(Outcome::of_tests(
        ended.success,
        Tally::of_output(&ended.output),
    ))
}

/// The same code with random yields, once per seed.
///
/// # Errors
/// If cargo cannot be started.
pub fn run_chaos(house: &House, stage: &mut Stage) -> Result<Outcome> {
    let mut tests = Tally::default();
    let mut bad_seeds = Vec::new();
    for seed in SEEDS {
        let arguments = [
            "test",
            "-p",
            "millpond-raw",
            "--lib",
            "--tests",
            "--no-fail-fast",
        ];
        let mut command = house.cargo_under(Switch::Chaos, &arguments);
        let ended = stage.run(command.env(SEED, seed.to_string()))?;
        let ran = Tally::of_output(&ended.output);
        tests.add(ran);
        if Outcome::of_tests(ended.success, ran).verdict != Verdict::Passed {
            bad_seeds.push(format!("{SEED}={seed}"));
        }
    }
    let mut outcome = Outcome::of_tests(bad_seeds.is_empty(), tests);
    if let Verdict::Failed(reason) = &mut outcome.verdict
        && !bad_seeds.is_empty()
    {
        *reason = format!("{reason} with {}", bad_seeds.join(" and "));
        stage.say(&format!("failed with {}", bad_seeds.join(" and ")))?;
    }
    outcome.note = format!("{} seeds", SEEDS.len());
    Ok(outcome)
}
