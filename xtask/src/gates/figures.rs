//! README and `docs/compare.md` say what the published figures say.

use anyhow::Result;

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
        workspace.cargo(&["test", "--workspace", "--all-features", "--test", "figures"]);
    let ended = step.run(&mut tests)?;
    Ok(Outcome::of_tests(
        ended.success,
        Counts::of_output(&ended.output),
    ))
}
