//! The page of the benchmarks in a browser: every plot is there and legible.

use anyhow::Result;

use super::program::NO_SKIP;
use crate::counts::Counts;
use crate::step::Step;
use crate::table::Outcome;
use crate::workspace::Workspace;

/// The gate.
///
/// # Errors
/// If cargo cannot be started.
pub fn run(workspace: &Workspace, step: &mut Step) -> Result<Outcome> {
    // With the features of the step `tests`, which has built it already.
    let mut tests =
        workspace.cargo(&["test", "--workspace", "--all-features", "--test", "browser"]);
    let ended = step.run(tests.env(NO_SKIP, "1"))?;
    Ok(Outcome::of_tests(
        ended.success,
        Counts::of_output(&ended.output),
    ))
}
