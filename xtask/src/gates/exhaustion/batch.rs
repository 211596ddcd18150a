//! Test programs as they are, where everything is there but scarce.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use anyhow::Result;

use super::child::{self, End};
use super::judge::{self, Fault, Verdict};
use super::{Body, Row, pass};
use crate::house::House;
use crate::stage::Stage;

/// No program takes so long.
const LIMIT: Duration = Duration::from_secs(240);

/// Bodies are as patient as in any other run of the tests.
const FACTOR: f64 = 1.0;

/// How many bodies are run alone when their program has come to a bad end.
const MOST_ALONE: usize = 300;

/// Runs the programs of these bodies, all of them in each.
pub(super) fn run(
    house: &House,
    stage: &mut Stage,
    condition: &str,
    bodies: &[Body<'_>],
) -> Result<Row> {
    let begin = Instant::now();
    let mut row = Row::new(condition);
    for of_one in bodies.chunk_by(|one, other| one.program.name == other.program.name) {
        let program = of_one[0].program;
        let mut command = program.command(&house.root, condition, FACTOR);
        command.arg("--exact");
        command.args(of_one.iter().map(|body| body.name));
        let ran = child::run(&mut command, LIMIT)?;
        let passed = passed(&ran.output);
        let (good, bad): (Vec<_>, Vec<_>) = of_one
            .iter()
            .copied()
            .partition(|body| passed.contains(body.name));
        row.passed += good.len();
        let end = ran.end;
        stage.say(&format!(
            "{condition}: {}: {} bodies, {} have not passed",
            program.name,
            of_one.len(),
            bad.len()
        ))?;
        if bad.is_empty() && end != End::Code(0) {
            let detail = format!("all bodies passed, and then it ended with {end:?}");
            row.count(of_one[0], FACTOR, Verdict::Fault(Fault::Abort, detail));
        }
        let (alone, rest) = bad.split_at(bad.len().min(MOST_ALONE));
        pass::each(
            house,
            stage,
            condition,
            alone,
            FACTOR,
            judge::of_unrefused,
            |body, _, verdict| row.count(body, FACTOR, verdict),
        )?;
        for &body in rest {
            let detail = format!("not run, its program ended with {end:?}");
            row.count(body, FACTOR, Verdict::Fault(Fault::Abort, detail));
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
