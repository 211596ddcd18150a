//! The behaviour suites in processes that are short of something.
//!
//! The variable `MILLPOND_EXHAUST` says of what (`crates/millpond-raw/src/sync/exhaust.rs`). There are
//! two kinds of conditions:
//!
//! - *Threads are refused*: all from the n-th on, or that of the process-wide timer. A test that expects
//!   more threads than there are may fail, but its process must not abort, hang or spin, and its error
//!   must be clear: [`judge`] has the rules. Each test has a process of its own, so that n counts from
//!   its first step. A test that was refused nothing with n threads is not run with n + 1.
//! - *Something is scarce*: one CPU, tiny stacks, a thousand other executors. All tests have to pass.
//!   Each test program runs as a whole; a test that fails there is run alone.
//!
//! A test at fault is run again, with five times the timeouts, or with the normal ones if it was refused
//! nothing: a busy machine is no fault.

mod batch;
pub mod child;
pub mod judge;
mod pass;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::Result;

use self::judge::{Fault, Verdict};
use super::built;
use crate::runner::aligned;
use crate::step::Step;
use crate::table::Outcome;
use crate::workspace::Workspace;

/// The package whose tests are run.
const PACKAGE: &str = "crates/millpond-conform";

/// Tests that start no thread of the library.
const LEFT_OUT: [&str; 3] = ["coverage", "cron", "differential"];

/// How many threads there are before threads are refused, in turn. `--condition threads:N` chooses others.
const THREADS: [u64; 2] = [0, 1];

/// The same, each for one test in [`SHARES`], to save time: most of them are one body for several implementations.
const SHARED: [u64; 2] = [2, 3];

const SHARES: usize = 8;

/// What is scarce, in turn. A worker that runs a test's closure and prints a panic, without optimisation, needs most
/// of this stack.
const SCARCE: [&str; 3] = ["cpus:1", "stack:131072", "engines:1024"];

/// The factor on all timeouts of tests that are refused threads: many of them wait in vain.
const SHORT: f64 = 0.1;

/// How much longer the timeouts are in the second run.
const SECOND_RUN: f64 = 5.0;

/// The factor in every other run, and in the second run of a test that was refused nothing.
const NORMAL: f64 = 1.0;

/// The factor of the second run for tests that were refused nothing: they only lacked time.
const UNREFUSED: f64 = 2.0;

/// Which conditions and tests. By default, those of `cargo xtask test`.
#[derive(Clone, Debug, Default, PartialEq, Eq, clap::Args)]
pub struct Choice {
    /// What to be short of, for all tests: threads:N, timer, cpus:1, stack:BYTES or engines:N
    #[arg(long = "condition", value_name = "WORD")]
    pub conditions: Vec<String>,
    /// Only tests whose name contains this
    pub filter: Option<String>,
}

/// A test program.
#[derive(Clone, Debug)]
struct Program {
    name: String,
    path: PathBuf,
}

/// A test.
#[derive(Clone, Copy, Debug)]
struct TestCase<'a> {
    program: &'a Program,
    name: &'a str,
}

impl TestCase<'_> {
    /// The command that runs it in a process of its own.
    fn command(&self, root: &Path, condition: &str, factor: f64) -> Command {
        let mut command = self.program.command(root, condition, factor);
        command.args(["--exact", self.name, "--nocapture", "--test-threads=1"]);
        command
    }

    /// The command that repeats it.
    fn replay(&self, condition: &str, factor: f64) -> String {
        format!(
            "MILLPOND_EXHAUST={condition} MILLPOND_DELAY_FACTOR={factor} MILLPOND_STRESS_ROUNDS={ROUNDS} \
             cargo test -p millpond-conform --test {} -- --exact {} --nocapture",
            self.program.name, self.name
        )
    }
}

/// How many rounds a stress test has: enough under a shortage.
const ROUNDS: &str = "20";

impl Program {
    fn command(&self, root: &Path, condition: &str, factor: f64) -> Command {
        let mut command = Command::new(&self.path);
        command
            .current_dir(root.join(PACKAGE))
            .env("MILLPOND_EXHAUST", condition)
            .env("MILLPOND_DELAY_FACTOR", factor.to_string())
            .env("MILLPOND_STRESS_ROUNDS", ROUNDS)
            .env("MILLPOND_CASES", "5")
            .env("RUST_BACKTRACE", "0");
        command
    }

    /// The names of its tests that contain `filter`.
    fn tests(&self, root: &Path, filter: Option<&str>) -> Result<Vec<String>> {
        let mut list = self.command(root, "", 1.0);
        list.arg("--list");
        let ran = child::run(&mut list, Duration::from_secs(60))?;
        let names = ran
            .output
            .lines()
            .filter_map(|line| line.strip_suffix(": test"));
        let wanted = names.filter(|name| filter.is_none_or(|text| name.contains(text)));
        Ok(wanted.map(str::to_owned).collect())
    }
}

/// A test at fault.
struct Found {
    fault: Fault,
    /// The test, its fault, and how to repeat it.
    text: String,
}

/// The results under one condition.
struct Row {
    condition: String,
    passed: usize,
    clear: usize,
    unmet: usize,
    found: Vec<Found>,
    time: Duration,
}

impl Row {
    fn new(condition: &str) -> Self {
        Row {
            condition: condition.to_owned(),
            passed: 0,
            clear: 0,
            unmet: 0,
            found: Vec::new(),
            time: Duration::ZERO,
        }
    }

    /// Counts a test. A fault is also returned, to be printed at once: the end may be minutes away.
    fn count(&mut self, test: TestCase<'_>, factor: f64, verdict: Verdict) -> Option<String> {
        match verdict {
            Verdict::Passed => self.passed += 1,
            Verdict::Clear => self.clear += 1,
            Verdict::Unmet => self.unmet += 1,
            Verdict::Fault(fault, detail) => {
                let (condition, program) = (&self.condition, &test.program.name);
                let told = format!("{condition}: {program} {}: {fault}: {detail}", test.name);
                let text = format!("{told}\n    {}", test.replay(condition, factor));
                self.found.push(Found { fault, text });
                return Some(told);
            }
        }
        None
    }

    fn tests(&self) -> usize {
        self.passed + self.clear + self.unmet + self.found.len()
    }

    fn cells(&self) -> [String; 11] {
        let faults =
            Fault::ALL.map(|one| self.found.iter().filter(move |found| found.fault == one));
        let [abort, hang, spin, unclear, lost] = faults.map(|found| found.count().to_string());
        let [tests, passed, clear, unmet] =
            [self.tests(), self.passed, self.clear, self.unmet].map(|count| count.to_string());
        let seconds = format!("{:.1}", self.time.as_secs_f64());
        let condition = self.condition.clone();
        [
            condition, tests, passed, clear, unmet, abort, hang, spin, unclear, lost, seconds,
        ]
    }
}

/// The gate.
///
/// # Errors
/// If cargo or a test cannot be started.
pub fn run_all(workspace: &Workspace, step: &mut Step) -> Result<Outcome> {
    run(workspace, step, &Choice::default())
}

/// Runs these tests under these conditions.
///
/// # Errors
/// If cargo or a test cannot be started.
pub fn run(workspace: &Workspace, step: &mut Step, choice: &Choice) -> Result<Outcome> {
    if !cfg!(target_os = "linux") {
        return Ok(Outcome::skipped("it needs /proc, which only Linux has"));
    }
    let Some(programs) = programs(workspace, step)? else {
        return Ok(Outcome::failed("it does not build"));
    };
    let mut names = Vec::new();
    for program in &programs {
        names.push(program.tests(&workspace.root, choice.filter.as_deref())?);
    }
    let both = programs.iter().zip(&names);
    let tests: Vec<TestCase<'_>> = both
        .flat_map(|(program, names)| names.iter().map(move |name| TestCase { program, name }))
        .collect();
    step.say(&format!(
        "{} tests in {} programs",
        tests.len(),
        programs.len()
    ))?;
    if tests.is_empty() {
        return Ok(Outcome::failed("there is no such test"));
    }
    let rows = match choice.conditions.as_slice() {
        [] => all_conditions(workspace, step, &tests)?,
        chosen => {
            let each = chosen.iter().map(|condition| {
                if is_refusal(condition) {
                    Ok(pass::run(workspace, step, condition, &tests)?.0)
                } else {
                    batch::run(workspace, step, condition, &tests)
                }
            });
            each.collect::<Result<_>>()?
        }
    };
    report(step, &rows)
}

fn is_refusal(condition: &str) -> bool {
    condition.starts_with("threads:") || condition == "timer"
}

fn all_conditions(
    workspace: &Workspace,
    step: &mut Step,
    tests: &[TestCase<'_>],
) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    let mut asked = tests.to_vec();
    let mut needs_threads = None;
    for most in THREADS {
        let (row, refused) = pass::run(workspace, step, &format!("threads:{most}"), &asked)?;
        rows.push(row);
        needs_threads.get_or_insert_with(|| refused.clone());
        asked = refused;
    }
    for (turn, most) in SHARED.into_iter().enumerate() {
        let own = asked.iter().skip(turn).step_by(SHARES);
        let own: Vec<_> = own.copied().collect();
        rows.push(pass::run(workspace, step, &format!("threads:{most}"), &own)?.0);
    }
    // A test that needs no thread at all does not need the timer's.
    let needs_threads = needs_threads.unwrap_or_default();
    rows.push(pass::run(workspace, step, "timer", &needs_threads)?.0);
    for condition in SCARCE {
        rows.push(batch::run(workspace, step, condition, tests)?);
    }
    Ok(rows)
}

fn report(step: &mut Step, rows: &[Row]) -> Result<Outcome> {
    for found in rows.iter().flat_map(|row| &row.found) {
        step.say(&found.text)?;
    }
    step.say(&table(rows))?;
    let tests: usize = rows.iter().map(Row::tests).sum();
    let faults: usize = rows.iter().map(|row| row.found.len()).sum();
    Ok(match faults {
        0 => Outcome::passed(format!("{tests} runs under {} conditions", rows.len())),
        _ => Outcome::failed(format!("{faults} of {tests} runs are at fault")),
    })
}

fn table(rows: &[Row]) -> String {
    let head = "condition tests passed clear unmet abort hang spin unclear lost seconds";
    let mut words = head.split(' ').map(str::to_owned);
    let mut all = vec![std::array::from_fn(|_| words.next().unwrap_or_default())];
    all.extend(rows.iter().map(Row::cells));
    aligned(&all)
}

/// The test programs, with the flags of the step `tests`, which has built them already.
fn programs(workspace: &Workspace, step: &mut Step) -> Result<Option<Vec<Program>>> {
    let mut names = Vec::new();
    for entry in std::fs::read_dir(workspace.root.join(PACKAGE).join("tests"))? {
        let path = entry?.path();
        let is_test = if path.is_dir() {
            path.join("main.rs").is_file()
        } else {
            path.extension().is_some_and(|end| end == "rs")
        };
        let stem = path
            .file_stem()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        if is_test && !LEFT_OUT.contains(&stem.as_str()) {
            names.push(stem);
        }
    }
    names.sort();
    let mut build = workspace.cargo(&["test", "--workspace", "--all-features", "--no-run"]);
    for name in &names {
        build.args(["--test", name]);
    }
    let Some(built) = built::programs(step, &mut build)? else {
        return Ok(None);
    };
    let mut programs: Vec<Program> = built
        .into_iter()
        .filter(|program| program.is_of(PACKAGE) && names.contains(&program.name()))
        .map(|program| Program {
            name: program.name(),
            path: program.path,
        })
        .collect();
    programs.sort_by(|one, other| one.name.cmp(&other.name));
    Ok(Some(programs))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fault_is_reported_with_its_test_its_condition_and_the_command_that_repeats_it() {
        let program = Program {
            name: "pools".into(),
            path: "/t/pools-0f".into(),
        };
        let test = TestCase {
            program: &program,
            name: "array::pool_ends::it_ends",
        };
        let mut row = Row::new("threads:1");
        row.count(test, 0.1, Verdict::Passed);
        row.count(test, 0.1, Verdict::Clear);
        row.count(test, 0.1, Verdict::Fault(Fault::Hang, "wedged".into()));
        let text = &row.found[0].text;
        assert!(text.contains("threads:1: pools array::pool_ends::it_ends: hang: wedged"));
        assert!(text.contains(
            "MILLPOND_EXHAUST=threads:1 MILLPOND_DELAY_FACTOR=0.1 MILLPOND_STRESS_ROUNDS=20 \
             cargo test -p millpond-conform --test pools -- --exact array::pool_ends::it_ends"
        ));
        let table = table(&[row]);
        let cells: Vec<&str> = table.lines().nth(1).unwrap().split_whitespace().collect();
        assert_eq!(
            cells[..10],
            ["threads:1", "3", "1", "1", "0", "0", "1", "0", "0", "0"]
        );
    }
}
