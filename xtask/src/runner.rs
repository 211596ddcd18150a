//! `cargo xtask test`: every step in order, a summary, and one closing line.
//!
//! A failed step does not stop the run, so the end shows everything that is wrong. The output of a
//! step goes to a log named after it in the build directory; the end of that log is shown if the step
//! fails.

use std::io::Write;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};

use crate::counts::Counts;
use crate::needs::Installer;
use crate::step::Step;
use crate::table::{GATES, Gate, Outcome, Verdict};
use crate::workspace::Workspace;

/// How many lines of a failed step's log are shown.
const TAIL: usize = 200;

/// Chooses steps by name.
///
/// # Errors
/// If a name is no step's; the message lists the names there are.
pub fn choose(only: &[String], skip: &[String]) -> Result<Vec<&'static Gate>> {
    if let Some(unknown) = only
        .iter()
        .chain(skip)
        .find(|name| Gate::named(name).is_none())
    {
        let names: Vec<&str> = GATES.iter().map(|gate| gate.name).collect();
        bail!(
            "there is no step `{unknown}`; there are: {}",
            names.join(", ")
        );
    }
    let is_chosen = |gate: &&Gate| {
        let named = |names: &[String]| names.iter().any(|name| name == gate.name);
        (only.is_empty() || named(only)) && !named(skip)
    };
    let chosen: Vec<&Gate> = GATES.iter().filter(is_chosen).collect();
    if chosen.is_empty() {
        bail!("no step is left: `--skip` takes away what `--only` names");
    }
    Ok(chosen)
}

/// A step that has run.
struct Done {
    gate: &'static Gate,
    outcome: Outcome,
    time: Duration,
}

/// Runs the steps; true if none failed. The last line printed is the closing line.
///
/// # Errors
/// If a log cannot be written.
pub fn run(workspace: &Workspace, gates: &[&'static Gate]) -> Result<bool> {
    let mut installer = Installer::new();
    let mut done: Vec<Done> = Vec::new();
    for (index, gate) in gates.iter().enumerate() {
        print!("[{}/{}] {} ... ", index + 1, gates.len(), gate.name);
        std::io::stdout().flush()?;
        let begin = Instant::now();
        let mut step = Step::open(&workspace.log_of(gate.name), |_| ())?.limit_silence();
        let outcome = run_gate(workspace, gate, &mut installer, &mut step);
        let time = begin.elapsed();
        println!("{} {:.1}s", outcome.verdict, time.as_secs_f64());
        if let Verdict::Failed(_) = outcome.verdict {
            println!("{}", step.tail(TAIL));
        }
        done.push(Done {
            gate,
            outcome,
            time,
        });
    }
    println!("\n{}", summary(&done));
    let sum = total(done.iter().map(|step| &step.outcome));
    println!("{sum}");
    Ok(sum.failed == 0)
}

/// Runs one gate after its needs are met. An error inside a gate is a failure of that gate.
pub fn run_gate(
    workspace: &Workspace,
    gate: &Gate,
    installer: &mut Installer,
    step: &mut Step,
) -> Outcome {
    let outcome = match installer.prepare(gate, step) {
        Ok(Ok(())) => (gate.run)(workspace, step),
        Ok(Err(missing)) => Ok(Outcome::failed(missing)),
        Err(error) => Err(error),
    };
    outcome.unwrap_or_else(|error| {
        // The log may be the very thing that failed; the verdict carries the message anyway.
        let _ = step.say(&format!("error: {error:#}"));
        Outcome::failed(format!("{error:#}"))
    })
}

/// The sum of all steps.
pub fn total<'a>(outcomes: impl Iterator<Item = &'a Outcome>) -> Counts {
    let mut sum = Counts::default();
    outcomes.for_each(|outcome| sum.add(outcome.counts()));
    sum
}

fn summary(done: &[Done]) -> String {
    let mut rows = vec![["step", "seconds", "tests", "verdict", "note"].map(String::from)];
    for step in done {
        let ran = |tests: Counts| (tests.passed + tests.failed).to_string();
        rows.push([
            step.gate.name.into(),
            format!("{:.1}", step.time.as_secs_f64()),
            step.outcome.tests.map_or("-".into(), ran),
            step.outcome.verdict.to_string(),
            step.outcome.note.clone(),
        ]);
    }
    aligned(&rows)
}

/// Rows with aligned columns; the first row is the head.
pub fn aligned<const N: usize>(rows: &[[String; N]]) -> String {
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max();
    let widths: Vec<usize> = (0..N).map(|column| width(column).unwrap_or(0)).collect();
    let mut text = String::new();
    for row in rows {
        let cells = row
            .iter()
            .zip(&widths)
            .map(|(cell, width)| format!("{cell:width$}"));
        text.push_str(cells.collect::<Vec<_>>().join("  ").trim_end());
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(only: &[&str], skip: &[&str]) -> Result<Vec<&'static str>> {
        let owned = |names: &[&str]| names.iter().map(ToString::to_string).collect::<Vec<_>>();
        Ok(choose(&owned(only), &owned(skip))?
            .iter()
            .map(|gate| gate.name)
            .collect())
    }

    #[test]
    fn steps_are_chosen_by_name_and_keep_their_order() {
        assert_eq!(names(&["links", "fmt"], &[]).unwrap(), ["fmt", "links"]);
        assert_eq!(names(&["links", "fmt"], &["fmt"]).unwrap(), ["links"]);
        assert_eq!(names(&[], &[]).unwrap().len(), GATES.len());
    }

    #[test]
    fn an_unknown_or_empty_choice_is_an_error() {
        assert!(
            names(&["lynx"], &[])
                .unwrap_err()
                .to_string()
                .contains("links")
        );
        assert!(names(&[], &["lynx"]).is_err());
        assert!(names(&["fmt"], &["fmt"]).is_err());
    }

    #[test]
    fn the_sum_counts_tests_and_gates() {
        let tests = Counts::new(10, 1, 0);
        let outcomes = [
            Outcome::passed(""),
            Outcome::of_tests(false, tests),
            Outcome::skipped("not here"),
        ];
        let sum = total(outcomes.iter());
        assert_eq!(sum.to_string(), "11 passed, 1 failed, 1 skipped");
    }
}
