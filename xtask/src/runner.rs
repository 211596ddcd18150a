//! `cargo xtask test`: every step in order, progress, a summary, one closing line.
//!
//! A failed step does not stop the run: one look at the end shows everything that is wrong. What
//! a step prints goes to a log named after it in the build directory; its tail is shown if it fails.

use std::fs;
use std::io::IsTerminal;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use indicatif::{ProgressBar, ProgressStyle};

use crate::house::House;
use crate::needs::Larder;
use crate::stage::Stage;
use crate::table::{GATES, Gate, Outcome, Verdict};
use crate::tally::Tally;

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
pub fn run(house: &House, steps: &[&'static Gate]) -> Result<bool> {
    let mut larder = Larder::new();
    let mut done: Vec<Done> = Vec::new();
    for (index, gate) in steps.iter().enumerate() {
        let progress = Progress::start(gate, index + 1, steps.len());
        let begin = Instant::now();
        let bar = progress.bar.clone();
        let mut stage = Stage::open(&log_of(house, gate), move |line| {
            if let Some(bar) = &bar {
                bar.set_message(line.trim().to_string());
            }
        })?
        .impatient();
        let outcome = perform(house, gate, &mut larder, &mut stage);
        let step = Done {
            gate,
            outcome,
            time: begin.elapsed(),
        };
        progress.finish(&step);
        if let Verdict::Failed(_) = step.outcome.verdict {
            show_tail(house, gate);
        }
        done.push(step);
    }
    println!("\n{}", summary(&done));
    let sum = total(done.iter().map(|step| &step.outcome));
    println!("{sum}");
    Ok(sum.failed == 0)
}

/// Runs one gate on a stage, needs first. An error inside a gate is a failure of that gate.
pub fn perform(house: &House, gate: &Gate, larder: &mut Larder, stage: &mut Stage) -> Outcome {
    let outcome = match larder.prepare(gate, stage) {
        Ok(Ok(())) => (gate.run)(house, stage),
        Ok(Err(missing)) => Ok(Outcome::failed(missing)),
        Err(error) => Err(error),
    };
    outcome.unwrap_or_else(|error| {
        // The log may be the very thing that failed; the verdict carries the message anyway.
        let _ = stage.say(&format!("error: {error:#}"));
        Outcome::failed(format!("{error:#}"))
    })
}

/// The sum of all steps.
pub fn total<'a>(outcomes: impl Iterator<Item = &'a Outcome>) -> Tally {
    let mut sum = Tally::default();
    outcomes.for_each(|outcome| sum.add(outcome.tally()));
    sum
}

fn log_of(house: &House, gate: &Gate) -> PathBuf {
    house.target_of("xtask").join(format!("{}.log", gate.name))
}

fn show_tail(house: &House, gate: &Gate) {
    let path = log_of(house, gate);
    let text = fs::read_to_string(&path).unwrap_or_default();
    let lines: Vec<&str> = text.lines().collect();
    let from = lines.len().saturating_sub(TAIL);
    println!(
        "--- {} (from line {} of {})",
        gate.name,
        from + 1,
        path.display()
    );
    for line in &lines[from..] {
        println!("{line}");
    }
    println!("--- end of {}", gate.name);
}

fn summary(done: &[Done]) -> String {
    let mut rows = vec![["step", "verdict", "seconds", "tests", "note"].map(String::from)];
    for step in done {
        let (verdict, reason) = match &step.outcome.verdict {
            Verdict::Passed => ("ok", ""),
            Verdict::Failed(reason) => ("FAILED", reason.as_str()),
            Verdict::Skipped(reason) => ("skipped", reason.as_str()),
        };
        let tests = step
            .outcome
            .tests
            .map(|tests| (tests.passed + tests.failed).to_string());
        let notes = [reason, &step.outcome.note].map(str::trim);
        rows.push([
            step.gate.name.into(),
            verdict.into(),
            format!("{:.1}", step.time.as_secs_f64()),
            tests.unwrap_or_else(|| "-".into()),
            notes
                .into_iter()
                .filter(|note| !note.is_empty())
                .collect::<Vec<_>>()
                .join("; "),
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

/// A spinner for people, plain lines for logs.
struct Progress {
    bar: Option<ProgressBar>,
    title: String,
}

impl Progress {
    fn start(gate: &Gate, number: usize, of: usize) -> Self {
        let title = format!("[{number}/{of}] {}", gate.name);
        let bar = std::io::stderr().is_terminal().then(|| {
            let bar = ProgressBar::new_spinner().with_prefix(title.clone());
            if let Ok(style) =
                ProgressStyle::with_template("{spinner} {prefix} {elapsed} {wide_msg}")
            {
                bar.set_style(style);
            }
            bar.enable_steady_tick(Duration::from_millis(120));
            bar
        });
        Self { bar, title }
    }

    fn finish(self, step: &Done) {
        if let Some(bar) = self.bar {
            bar.finish_and_clear();
        }
        let seconds = step.time.as_secs_f64();
        let verdict = match &step.outcome.verdict {
            Verdict::Passed => "ok".to_string(),
            Verdict::Failed(reason) => format!("FAILED ({reason})"),
            Verdict::Skipped(reason) => format!("skipped ({reason})"),
        };
        println!("{} ... {verdict} {seconds:.1}s", self.title);
    }
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
    fn an_unknown_or_empty_choice_is_refused() {
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
        let tests = Tally {
            passed: 10,
            failed: 1,
            skipped: 0,
        };
        let outcomes = [
            Outcome::passed(""),
            Outcome::of_tests(false, tests),
            Outcome::skipped("not here"),
        ];
        let sum = total(outcomes.iter());
        assert_eq!(sum.to_string(), "11 passed, 1 failed, 1 skipped");
    }
}
