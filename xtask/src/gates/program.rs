//! The program runs as the README says, and shows something; and its demo can be driven in a terminal.

use anyhow::Result;

use crate::house::House;
use crate::stage::Stage;
use crate::table::Outcome;
use crate::tally::Tally;

/// The gate.
///
/// # Errors
/// If cargo cannot be started.
pub fn run(house: &House, stage: &mut Stage) -> Result<Outcome> {
    let cargo = |arguments: &[&str]| {
        let mut cargo = house.cargo(arguments);
        cargo.envs(QUICKER);
        cargo
    };
    // Built apart, so that what is judged below was printed by the program and not by cargo.
    let build = ["build", "--release", "--bin", "millpond"];
    if !stage.run(&mut cargo(&build))?.success {
        return Ok(Outcome::failed("it does not build"));
    }
    let ended = stage.run(&mut cargo(&[
        "run",
        "--quiet",
        "--release",
        "--bin",
        "millpond",
    ]))?;
    Ok(judge(ended.success, &ended.output))
}

/// Nothing is measured here, so the program need not be optimised across crates, which takes most of the
/// time to build it.
const QUICKER: [(&str, &str); 2] = [
    ("CARGO_PROFILE_RELEASE_LTO", "off"),
    ("CARGO_PROFILE_RELEASE_CODEGEN_UNITS", "16"),
];

/// The variable with which a test may not be skipped because something is missing.
pub(super) const NO_SKIP: &str = "MILLPOND_NO_SKIP";

/// The demo in tmux.
///
/// # Errors
/// If cargo cannot be started.
pub fn run_in_a_terminal(house: &House, stage: &mut Stage) -> Result<Outcome> {
    let mut tests = house.cargo(&["test", "-p", "millpond-cli", "--test", "terminal"]);
    let ended = stage.run(tests.env(NO_SKIP, "1"))?;
    Ok(Outcome::of_tests(
        ended.success,
        Tally::of_output(&ended.output),
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
