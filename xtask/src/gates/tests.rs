//! The tests in a plain build, on the portable fallback, and under chaos.

use anyhow::Result;

use crate::counts::Counts;
use crate::step::Step;
use crate::table::{Outcome, Verdict};
use crate::workspace::{Switch, Workspace};

/// Fixed, so that a failure can be repeated. Any three numbers would do.
const SEEDS: [u64; 3] = [1, 20_260_701, 0x9E37_79B9_7F4A_7C15];

/// The variable with the seed of the chaos backend.
pub(super) const SEED: &str = "MILLPOND_CHAOS_SEED";

/// All tests and documentation examples of the workspace, with all features. The portable and chaos
/// builds have the default features.
///
/// # Errors
/// If cargo cannot be started.
pub fn run(workspace: &Workspace, step: &mut Step) -> Result<Outcome> {
    let ended = step.run(&mut workspace.cargo(&[
        "test",
        "--workspace",
        "--all-features",
        "--no-fail-fast",
    ]))?;
    Ok(Outcome::of_tests(
        ended.success,
        Counts::of_output(&ended.output),
    ))
}

/// The tests of the library crates without futexes.
///
/// # Errors
/// If cargo cannot be started.
pub fn run_portable(workspace: &Workspace, step: &mut Step) -> Result<Outcome> {
    let arguments = [
        "test",
        "-p",
        "millpond-raw",
        "-p",
        "millpond",
        // The examples of the documentation do not block.
        "--lib",
        "--tests",
        "--no-fail-fast",
    ];
    let ended = step.run(&mut workspace.cargo_under(Switch::Portable, &arguments))?;
    Ok(Outcome::of_tests(
        ended.success,
        Counts::of_output(&ended.output),
    ))
}

/// The tests of `millpond-raw` with random yields, once per seed.
///
/// # Errors
/// If cargo cannot be started.
pub fn run_chaos(workspace: &Workspace, step: &mut Step) -> Result<Outcome> {
    let mut tests = Counts::default();
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
        let mut command = workspace.cargo_under(Switch::Chaos, &arguments);
        let ended = step.run(command.env(SEED, seed.to_string()))?;
        let ran = Counts::of_output(&ended.output);
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
        step.say(&format!("failed with {}", bad_seeds.join(" and ")))?;
    }
    outcome.note = format!("{} seeds", SEEDS.len());
    Ok(outcome)
}
