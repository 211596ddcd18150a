//! The program runs as the README says, and shows something.

use anyhow::Result;

use crate::house::House;
use crate::stage::Stage;
use crate::table::Outcome;

/// The gate.
///
/// # Errors
/// If cargo cannot be started.
pub fn run(house: &House, stage: &mut Stage) -> Result<Outcome> {
    // Built apart, so that what is judged below was printed by the program and not by cargo.
    let build = ["build", "--release", "--bin", "millpond"];
    if !stage.run(&mut house.cargo(&build))?.success {
        return Ok(Outcome::failed("it does not build"));
    }
    let ended =
        stage.run(&mut house.cargo(&["run", "--quiet", "--release", "--bin", "millpond"]))?;
    Ok(judge(ended.success, &ended.output))
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
