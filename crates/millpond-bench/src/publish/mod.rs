//! Figures to be quoted: medians of several processes on one commit, in every condition.
//!
//! One process may be lucky: where its memory lies stays the same until it ends. So `--publish DIR` runs every suite in
//! processes of its own, three times in each of the three conditions, and takes the median of the processes' medians.
//! Process by process, and not condition by condition, so that the hours of the day are the same for all.
//!
//! | file | what |
//! |---|---|
//! | [`plan`] | which processes there are, and how much time each has |
//! | [`merge`] | many files of figures become one |
//! | [`pages`] | the parts of README and `docs/compare.md` that are made of that one |
//!
//! The file of each process stays in `DIR/processes`, in a folder for the commit and the plan. What is there is not measured
//! again, so a run that was broken off goes on where it ended. When all are there they are merged into
//! `DIR/figures.json`, and if DIR is `docs/figures` the pages are written anew.
//!
//! Sources that were changed since the last commit cannot be published, and neither can a program that is older than they
//! are: nobody could measure it again.

pub mod merge;
pub mod pages;
pub mod plan;

use crate::origin::{Origin, Sources};
use crate::output_file::OutputFile;
use crate::record::{Published, Record};
use anyhow::{Context, Result, bail, ensure};
use plan::{Part, Plan};
use std::collections::BTreeSet;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// The name of the merged file in its folder.
pub const FILE: &str = "figures.json";

/// Measures what is missing of `plan` in processes of its own, and merges all.
///
/// # Errors
///
/// If the sources are not those of a commit, a process fails, or a file cannot be written.
pub fn run(plan: &Plan, folder: &Path, out: &mut dyn Write) -> Result<Record> {
    let commit = publishable(&Sources::read())?;
    let figures = OutputFile::open_in("the figures", folder, FILE)?;
    let short = commit.get(..12).unwrap_or(&commit);
    let processes = folder
        .join("processes")
        .join(format!("{short}-{}", plan.key()));
    fs::create_dir_all(&processes)
        .with_context(|| format!("cannot make the folder {}", processes.display()))?;
    writeln!(out, "{}", plan.text())?;
    let measure = |part: &Part, file: &Path| measure(plan, part, file);
    let done = complete(plan, &commit, &processes, out, measure)?;
    let record = merged(&done)?;
    figures.write(&merge::text(&record)?)?;
    writeln!(out, "The figures are {}", figures.file().display())?;
    Ok(record)
}

/// The commit, if these sources are those of one.
fn publishable(sources: &Sources) -> Result<String> {
    ensure!(
        sources.is_dirty == Some(false),
        "the sources are not those of a commit: commit them first, or measure with --json"
    );
    ensure!(
        sources.is_stale != Some(true),
        "this program is older than its sources: build it anew, as in `cargo run --release -- bench --publish ...`"
    );
    sources.commit.clone().context("there is no commit")
}

/// The figures of every part, measured by `measure` where they are not in `folder`.
fn complete(
    plan: &Plan,
    commit: &str,
    folder: &Path,
    out: &mut dyn Write,
    measure: impl Fn(&Part, &Path) -> Result<()>,
) -> Result<Vec<Record>> {
    let parts = plan.parts();
    let file = |part: &Part| folder.join(format!("{}.json", part.name()));
    let known = |part: &Part| {
        Record::read(&file(part))
            .ok()
            .filter(|record| part.is_of(record, commit))
    };
    let missing: Vec<&Part> = parts.iter().filter(|part| known(part).is_none()).collect();
    let there = parts.len() - missing.len();
    if there > 0 {
        writeln!(
            out,
            "{there} of {} processes were measured before",
            parts.len()
        )?;
    }
    let mut failed: Vec<String> = Vec::new();
    let mut took: Vec<(&Part, Duration)> = Vec::new();
    for (index, part) in missing.iter().enumerate() {
        let start = Instant::now();
        let outcome = measure(part, &file(part)).and_then(|()| {
            let found = known(part).is_some();
            ensure!(found, "it left no figures of this commit");
            Ok(())
        });
        took.push((part, start.elapsed()));
        let left = plan
            .left(&took, &missing[index + 1..])
            .as_secs()
            .div_ceil(60);
        let (number, all, name) = (there + index + 1, parts.len(), part.name());
        let said = match &outcome {
            Ok(()) => format!("{:.0} s", start.elapsed().as_secs_f64()),
            Err(error) => format!("FAILED: {error:#}"),
        };
        writeln!(
            out,
            "[{number}/{all}] {name}: {said}; about {left} min left"
        )?;
        out.flush()?;
        failed.extend(outcome.err().map(|_| name));
    }
    if !failed.is_empty() {
        bail!(
            "{} of {} processes failed ({}): nothing is published; run it again to measure these only",
            failed.len(),
            parts.len(),
            failed.join(", ")
        );
    }
    let all: Option<Vec<Record>> = parts.iter().map(known).collect();
    all.context("figures that were there are gone")
}

/// Runs one part in a process of its own. Its tables go to a file beside its figures.
fn measure(plan: &Plan, part: &Part, file: &Path) -> Result<()> {
    let tables = fs::File::create(file.with_extension("txt"))?;
    let mut command = Command::new(std::env::current_exe()?);
    // `cargo bench` starts a program without a word for the bench.
    command.args(std::env::args_os().nth(1).filter(|word| word == "bench"));
    command.args(plan.arguments(part)).arg("--json").arg(file);
    let errors = tables.try_clone()?;
    let ended = command
        .stdin(Stdio::null())
        .stdout(tables)
        .stderr(errors)
        .status()?;
    ensure!(
        ended.success(),
        "{ended}: see {}",
        file.with_extension("txt").display()
    );
    Ok(())
}

/// All of them in one, with what makes them published.
fn merged(records: &[Record]) -> Result<Record> {
    let mut record = merge::merge(records)?;
    let origins: Vec<&Origin> = records
        .iter()
        .filter_map(|one| one.origin.as_ref())
        .collect();
    // A seed is a process.
    let seeds: BTreeSet<u64> = origins.iter().map(|origin| origin.seed).collect();
    let dates = || origins.iter().map(|origin| origin.date.clone());
    let seconds = records.iter().filter_map(|one| one.seconds).sum::<f64>();
    record.published = Some(Published {
        processes: seeds.len(),
        dates: (
            dates().min().unwrap_or_default(),
            dates().max().unwrap_or_default(),
        ),
        minutes: (seconds / 60.0).round() as u64,
    });
    Ok(record)
}

/// Where published figures are in this repository.
pub fn home() -> PathBuf {
    crate::origin::root().join("docs/figures")
}

#[cfg(test)]
mod tests;
