//! The program runs as the README says and prints something, and its demo works in a terminal.

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
    let cargo = |arguments: &[&str]| {
        let mut cargo = workspace.cargo(arguments);
        cargo.envs(QUICKER);
        cargo
    };
    // Built first, so that the output below is the program's and not cargo's.
    let build = ["build", "--release", "--bin", "millpond"];
    if !step.run(&mut cargo(&build))?.success {
        return Ok(Outcome::failed("it does not build"));
    }
    let ended = step.run(&mut cargo(&[
        "run",
        "--quiet",
        "--release",
        "--bin",
        "millpond",
    ]))?;
    Ok(judge(ended.success, &ended.output))
}

/// Nothing is measured here, so the program is not optimised across crates, which takes most of the time
/// of its build.
const QUICKER: [(&str, &str); 2] = [
    ("CARGO_PROFILE_RELEASE_LTO", "off"),
    ("CARGO_PROFILE_RELEASE_CODEGEN_UNITS", "16"),
];

/// With this variable a test fails, instead of being skipped, if an external program is missing.
pub(super) const NO_SKIP: &str = "MILLPOND_NO_SKIP";

/// The demo in tmux.
///
/// # Errors
/// If cargo cannot be started.
pub fn run_in_a_terminal(workspace: &Workspace, step: &mut Step) -> Result<Outcome> {
    // With the features of the step `tests`, which has built it already.
    let mut tests = workspace.cargo(&[
        "test",
        "--workspace",
        "--all-features",
        "--test",
        "terminal",
    ]);
    let ended = step.run(tests.env(NO_SKIP, "1"))?;
    Ok(Outcome::of_tests(
        ended.success,
        Counts::of_output(&ended.output),
    ))
}

fn judge(success: bool, output: &str) -> Outcome {
    let shown = output
        .lines()
        .filter(|line| !line.trim().is_empty())
        .count();
    match (success, shown) {
        (false, _) => Outcome::failed("it ended with an error"),
        (true, 0) => Outcome::failed("it printed nothing"),
        (true, lines) => Outcome::passed(format!("{lines} lines")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::Verdict;

    #[test]
    fn a_silent_or_failing_program_does_not_pass() {
        assert_eq!(judge(true, "pond\n").verdict, Verdict::Passed);
        assert_ne!(judge(true, " \n").verdict, Verdict::Passed);
        assert_ne!(judge(false, "pond\n").verdict, Verdict::Passed);
    }
}
