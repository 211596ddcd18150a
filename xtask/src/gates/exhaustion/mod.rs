//! Exhaustion: every body of the behaviour suites, in a process that is short of something.
//!
//! The variable `MILLPOND_EXHAUST` says of what (`crates/millpond-raw/src/sync/exhaust.rs`). There
//! are two kinds of shortage:
//!
//! - *Threads are refused*: all from the n-th on, n = 0, 1, 2 and so on, or that of the process-wide
//!   timer. A body that expects more threads than there are may fail then, but its process must not
//!   abort, hang or spin, and what it is told must be clear: [`judge`] has the rules. Each body has a
//!   process of its own, so that n counts from its first step. Who was refused nothing with n threads
//!   is not asked again with n + 1.
//! - *Everything is there, but scarce*: one CPU, tiny stacks, a thousand other executors. All bodies
//!   have to pass. Each test program runs as it is; a body that fails among the others is run alone.
//!
//! A body that is at fault is looked at twice, the second time with five times the patience: a busy
//! machine is no fault.

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
use crate::house::House;
use crate::runner::aligned;
use crate::stage::Stage;
use crate::table::Outcome;

/// The package whose tests are run.
const PACKAGE: &str = "crates/millpond-conform";

/// Tests that start no thread of the library, or are about the kit itself.
const LEFT_OUT: [&str; 4] = ["coverage", "cron", "differential", "wedge"];

/// From which thread on threads are refused, in turn. Others can be asked for by `--condition threads:N`: where
/// the timer has the only thread, a scheduled task that is due waits until another thread can be had, which
/// some bodies take for a hang.
const THREADS: [u64; 1] = [0];

/// What is scarce, in turn. A worker that runs a test's closures in a build without optimisation, and prints
/// a panic, takes most of this stack.
const SCARCE: [&str; 3] = ["cpus:1", "stack:131072", "engines:1024"];

/// How patient bodies are that are refused threads: many of them wait in vain.
const HASTY: f64 = 0.1;

/// How much more patient they are at the second look.
const AGAIN: f64 = 5.0;

/// Which conditions and bodies. Without any choice: those of `cargo xtask test`.
#[derive(Clone, Debug, Default, PartialEq, Eq, clap::Args)]
pub struct Choice {
    /// What to be short of, for all bodies: threads:N, timer, cpus:1, stack:BYTES or engines:N
    #[arg(long = "condition", value_name = "WORD")]
    pub conditions: Vec<String>,
    /// Only bodies whose name contains this
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
struct Body<'a> {
    program: &'a Program,
    name: &'a str,
}

impl Body<'_> {
    /// The command that runs it in a process of its own.
    fn command(&self, root: &Path, condition: &str, factor: f64) -> Command {
        let mut command = self.program.command(root, condition, factor);
        command.args(["--exact", self.name, "--nocapture", "--test-threads=1"]);
        command
    }

    /// What one types to see it again.
    fn replay(&self, condition: &str, factor: f64) -> String {
        format!(
            "MILLPOND_EXHAUST={condition} MILLPOND_DELAY_FACTOR={factor} MILLPOND_STRESS_ROUNDS={ROUNDS} \
             cargo test -p millpond-conform --test {} -- --exact {} --nocapture",
            self.program.name, self.name
        )
    }
}

/// How many rounds a stress body has: enough to get somewhere under a shortage.
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

/// A body at fault.
struct Found {
    fault: Fault,
    /// What happened to which body, and how to see it again.
    text: String,
}

/// What came of one condition.
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

    /// Counts a body. A fault is also returned, to be told at once: the end may be minutes away.
    fn count(&mut self, body: Body<'_>, factor: f64, verdict: Verdict) -> Option<String> {
        match verdict {
            Verdict::Passed => self.passed += 1,
            Verdict::Clear => self.clear += 1,
            Verdict::Unmet => self.unmet += 1,
            Verdict::Fault(fault, detail) => {
                let (condition, program) = (&self.condition, &body.program.name);
                let told = format!("{condition}: {program} {}: {fault}: {detail}", body.name);
                let text = format!("{told}\n    {}", body.replay(condition, factor));
                self.found.push(Found { fault, text });
                return Some(told);
            }
        }
        None
    }

    fn bodies(&self) -> usize {
        self.passed + self.clear + self.unmet + self.found.len()
    }

    fn cells(&self) -> [String; 11] {
        let faults =
            Fault::ALL.map(|one| self.found.iter().filter(move |found| found.fault == one));
        let [abort, hang, spin, unclear, lost] = faults.map(|found| found.count().to_string());
        let [bodies, passed, clear, unmet] =
            [self.bodies(), self.passed, self.clear, self.unmet].map(|count| count.to_string());
        let seconds = format!("{:.1}", self.time.as_secs_f64());
        let condition = self.condition.clone();
        [
            condition, bodies, passed, clear, unmet, abort, hang, spin, unclear, lost, seconds,
        ]
    }
}

/// The gate.
///
/// # Errors
/// If cargo or a test cannot be started.
pub fn run_all(house: &House, stage: &mut Stage) -> Result<Outcome> {
    run(house, stage, &Choice::default())
}

/// Runs these bodies under these conditions.
///
/// # Errors
/// If cargo or a test cannot be started.
pub fn run(house: &House, stage: &mut Stage, choice: &Choice) -> Result<Outcome> {
    if !cfg!(target_os = "linux") {
        return Ok(Outcome::skipped("it measures by /proc, which is Linux's"));
    }
    let Some(programs) = programs(house, stage)? else {
        return Ok(Outcome::failed("it does not build"));
    };
    let mut names = Vec::new();
    for program in &programs {
        names.push(program.tests(&house.root, choice.filter.as_deref())?);
    }
    let both = programs.iter().zip(&names);
    let bodies: Vec<Body<'_>> = both
        .flat_map(|(program, names)| names.iter().map(move |name| Body { program, name }))
        .collect();
    stage.say(&format!(
        "{} bodies in {} programs",
        bodies.len(),
        programs.len()
    ))?;
    if bodies.is_empty() {
        return Ok(Outcome::failed("there are no such bodies"));
    }
    let rows = match choice.conditions.as_slice() {
        [] => all_conditions(house, stage, &bodies)?,
        chosen => {
            let each = chosen.iter().map(|condition| match is_refusal(condition) {
                true => Ok(pass::run(house, stage, condition, &bodies)?.0),
                false => batch::run(house, stage, condition, &bodies),
            });
            each.collect::<Result<_>>()?
        }
    };
    report(stage, &rows)
}

fn is_refusal(condition: &str) -> bool {
    condition.starts_with("threads:") || condition == "timer"
}

fn all_conditions(house: &House, stage: &mut Stage, bodies: &[Body<'_>]) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    let mut asked = bodies.to_vec();
    let mut needs_threads = None;
    for most in THREADS {
        let (row, refused) = pass::run(house, stage, &format!("threads:{most}"), &asked)?;
        rows.push(row);
        needs_threads.get_or_insert_with(|| refused.clone());
        asked = refused;
    }
    // Who asks for no thread at all does not ask for the timer's.
    let needs_threads = needs_threads.unwrap_or_default();
    rows.push(pass::run(house, stage, "timer", &needs_threads)?.0);
    for condition in SCARCE {
        rows.push(batch::run(house, stage, condition, bodies)?);
    }
    Ok(rows)
}

fn report(stage: &mut Stage, rows: &[Row]) -> Result<Outcome> {
    for found in rows.iter().flat_map(|row| &row.found) {
        stage.say(&found.text)?;
    }
    stage.say(&table(rows))?;
    let bodies: usize = rows.iter().map(Row::bodies).sum();
    let faults: usize = rows.iter().map(|row| row.found.len()).sum();
    Ok(match faults {
        0 => Outcome::passed(format!("{bodies} runs under {} conditions", rows.len())),
        _ => Outcome::failed(format!("{faults} of {bodies} runs are at fault")),
    })
}

fn table(rows: &[Row]) -> String {
    let head = "condition bodies passed clear unmet abort hang spin unclear lost seconds";
    let mut words = head.split(' ').map(str::to_owned);
    let mut all = vec![std::array::from_fn(|_| words.next().unwrap_or_default())];
    all.extend(rows.iter().map(Row::cells));
    aligned(&all)
}

/// The test programs, built as `cargo xtask tests` builds them, which has built them already.
fn programs(house: &House, stage: &mut Stage) -> Result<Option<Vec<Program>>> {
    let mut names = Vec::new();
    for entry in std::fs::read_dir(house.root.join(PACKAGE).join("tests"))? {
        let path = entry?.path();
        let is_test = match path.is_dir() {
            true => path.join("main.rs").is_file(),
            false => path.extension().is_some_and(|end| end == "rs"),
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
    let mut build = house.cargo(&["test", "--workspace", "--all-features", "--no-run"]);
    for name in &names {
        build.args(["--test", name]);
    }
    let manifest = format!("{PACKAGE}/Cargo.toml");
    let Some(paths) = built::programs_of(stage, &mut build, &manifest)? else {
        return Ok(None);
    };
    // Cargo adds a dash and a hash to the name.
    let name_of = |path: &Path| {
        let stem = path.file_stem()?.to_string_lossy().into_owned();
        let (name, _) = stem.rsplit_once('-')?;
        names.iter().find(|known| *known == name).cloned()
    };
    let mut programs: Vec<Program> = paths
        .into_iter()
        .filter_map(|path| name_of(&path).map(|name| Program { name, path }))
        .collect();
    programs.sort_by(|one, other| one.name.cmp(&other.name));
    Ok(Some(programs))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fault_is_told_with_its_body_its_condition_and_the_command_that_shows_it_again() {
        let program = Program {
            name: "pools".into(),
            path: "/t/pools-0f".into(),
        };
        let body = Body {
            program: &program,
            name: "array::pool_ends::it_ends",
        };
        let mut row = Row::new("threads:1");
        row.count(body, 0.1, Verdict::Passed);
        row.count(body, 0.1, Verdict::Clear);
        row.count(body, 0.1, Verdict::Fault(Fault::Hang, "wedged".into()));
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
