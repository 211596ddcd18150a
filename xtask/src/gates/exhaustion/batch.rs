//! Whole test programs under a condition where something is scarce.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use anyhow::Result;

use super::child::{self, End};
use super::judge::{self, Fault, Verdict};
use super::{NORMAL, Row, TestCase, pass};
use crate::step::Step;
use crate::workspace::Workspace;

/// No program takes longer.
const LIMIT: Duration = Duration::from_secs(240);

const FACTOR: f64 = NORMAL;

/// How many tests of a failed program are run alone at most.
const MAX_ALONE: usize = 300;

/// Runs the programs of these tests, each with all of its tests.
pub(super) fn run(
    workspace: &Workspace,
    step: &mut Step,
    condition: &str,
    tests: &[TestCase<'_>],
) -> Result<Row> {
    let begin = Instant::now();
    let mut row = Row::new(condition);
    for of_one in tests.chunk_by(|one, other| one.program.name == other.program.name) {
        let program = of_one[0].program;
        let mut command = program.command(&workspace.root, condition, FACTOR);
        command.arg("--exact");
        command.args(of_one.iter().map(|test| test.name));
        let ran = child::run(&mut command, LIMIT)?;
        let passed = passed(&ran.output);
        let (good, bad): (Vec<_>, Vec<_>) = of_one
            .iter()
            .copied()
            .partition(|test| passed.contains(test.name));
        row.passed += good.len();
        let end = ran.end;
        step.say(&format!(
            "{condition}: {}: {} tests, {} have not passed",
            program.name,
            of_one.len(),
            bad.len()
        ))?;
        if bad.is_empty() && end != End::Code(0) {
            let detail = format!("all tests passed, and then it ended with {end:?}");
            row.count(of_one[0], FACTOR, Verdict::Fault(Fault::Abort, detail));
        }
        let (alone, rest) = bad.split_at(bad.len().min(MAX_ALONE));
        pass::each(
            workspace,
            step,
            condition,
            alone,
            FACTOR,
            judge::of_unrefused,
            |test, _, verdict| row.count(test, FACTOR, verdict),
        )?;
        for &test in rest {
            let detail = format!("not run, its program ended with {end:?}");
            row.count(test, FACTOR, Verdict::Fault(Fault::Abort, detail));
        }
    }
    row.time = begin.elapsed();
    Ok(row)
}

/// The tests that libtest says have passed.
fn passed(output: &str) -> HashSet<&str> {
    let lines = output.lines().filter_map(|line| line.strip_prefix("test "));
    lines
        .filter_map(|line| line.strip_suffix(" ... ok"))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_tests_that_passed_have_passed() {
        let output = "running 3 tests\ntest a::b ... ok\ntest c ... FAILED\ntest d ... \n";
        assert_eq!(passed(output), HashSet::from(["a::b"]));
    }
}
