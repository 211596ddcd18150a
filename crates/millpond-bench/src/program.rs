//! The command line: the same for `cargo bench` and for the `millpond` program.

use crate::alloc::CountingAlloc;
use crate::harness::{Settings, Suite, Workload};
use crate::machine::{Surroundings, Ticks};
use crate::peers::guest::{self, install::install};
use crate::progress::{Bar, Watched};
use crate::report::{Report, Row};
use crate::table;
use crate::workloads::SUITES;
use anyhow::{Context, Result, bail};
use clap::Args;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// What to measure, how thoroughly, and where to leave the figures.
#[derive(Args, Clone, Debug, Default)]
pub struct Options {
    /// The suites to run; all of them if none is named
    #[arg(value_name = "SUITE")]
    pub suites: Vec<String>,

    /// Few and short rounds: for a look, not for figures that are quoted
    #[arg(long)]
    pub quick: bool,

    /// Rounds that count, instead of 10 (3 with --quick)
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub rounds: Option<u16>,

    /// Only workloads whose name contains TEXT, as in --only 1p1c
    #[arg(long, value_name = "TEXT")]
    pub only: Option<String>,

    /// Also write the figures to FILE, one object per row
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,

    /// First get the languages of the peers that are missing: Java, Go, Python (as root on Debian)
    #[arg(long)]
    pub install: bool,

    /// Name the suites and their workloads, and measure nothing
    #[arg(long)]
    pub list: bool,
}

impl Options {
    /// How long and how often.
    pub fn settings(&self) -> Settings {
        let settings = if self.quick {
            Settings::QUICK
        } else {
            Settings::FULL
        };
        let rounds = self.rounds.map_or(settings.rounds, usize::from);
        Settings { rounds, ..settings }
    }

    /// The workloads that are meant.
    ///
    /// # Errors
    ///
    /// If there is no such suite, or no such workload in them.
    pub fn workloads(&self) -> Result<Vec<Workload>> {
        let mut chosen = Vec::new();
        for suite in self.chosen_suites()? {
            chosen.extend((suite.workloads)());
        }
        if let Some(text) = &self.only {
            chosen.retain(|workload| workload.name.contains(text.as_str()));
            if chosen.is_empty() {
                bail!("no workload has {text:?} in its name: see --list");
            }
        }
        Ok(chosen)
    }

    /// What the suites say about their figures, once they have been measured.
    fn notes(&self, rows: &[Row]) -> Result<Vec<String>> {
        let notes = |suite: &Suite| {
            let own = rows.iter().filter(|row| row.suite == suite.name);
            let own: Vec<Row> = own.cloned().collect();
            (suite.notes)(&own)
        };
        Ok(self.chosen_suites()?.into_iter().flat_map(notes).collect())
    }

    fn chosen_suites(&self) -> Result<Vec<&'static Suite>> {
        if self.suites.is_empty() {
            return Ok(SUITES.iter().collect());
        }
        let find = |name: &String| {
            let suite = SUITES.iter().find(|suite| suite.name == name);
            suite.with_context(|| {
                let known: Vec<_> = SUITES.iter().map(|suite| suite.name).collect();
                format!(
                    "there is no suite {name:?}: the suites are {}",
                    known.join(", ")
                )
            })
        };
        self.suites.iter().map(find).collect()
    }
}

/// Measures what `options` ask for, and writes tables to `out` as they come. Allocations are counted
/// if the program has installed `allocator`.
///
/// # Errors
///
/// If there is nothing to measure, a candidate does not do its work, or the figures cannot be
/// written.
pub fn run(
    options: &Options,
    allocator: Option<&CountingAlloc>,
    out: &mut dyn Write,
) -> Result<()> {
    let workloads = options.workloads()?;
    if options.list {
        return list(&workloads, out);
    }
    if let Some(file) = &options.json {
        // Minutes of measuring should not end in "no such folder".
        write_figures(file, "")?;
    }
    if options.install {
        install(out)?;
    }
    let settings = options.settings();
    guest::rounds_take(settings.round_time);
    let mut machine = Surroundings::read();
    let ticks = Ticks::read();
    write!(out, "{}{}", machine.lines(), table::LEGEND)?;
    let bar = Bar::new(
        workloads
            .iter()
            .map(|workload| workload.steps(settings))
            .sum(),
    );
    let watched = Watched::new(&bar, PATIENCE, give_up);
    let mut rows: Vec<Row> = Vec::new();
    let mut said = Vec::new();
    for workload in &workloads {
        let mut found = workload.measure(settings, allocator, &watched)?;
        // Who is not here is not here for the next workload either: to say so once is enough.
        found.absent.retain(|(_, reason)| !said.contains(reason));
        said.extend(found.absent.iter().map(|(_, reason)| reason.clone()));
        bar.aside(|| write!(out, "\n{}", table::found(&found)))?;
        rows.extend(found.rows);
    }
    drop(watched);
    bar.finish();
    write!(
        out,
        "\n{}\n{}",
        table::overview(&rows),
        table::summary(&rows)
    )?;
    let notes = options.notes(&rows)?;
    for note in &notes {
        writeln!(out, "  .     {note}")?;
    }
    machine.steal_percent = ticks.and_then(|before| Ticks::read()?.steal_since(before));
    if let Some(file) = &options.json {
        let text = serde_json::to_string_pretty(&Report {
            machine,
            notes,
            rows,
        })?;
        write_figures(file, &(text + "\n"))?;
    }
    Ok(())
}

fn write_figures(file: &Path, text: &str) -> Result<()> {
    fs::write(file, text).with_context(|| format!("cannot write the figures to {}", file.display()))
}

/// A step takes a fraction of a second. One that takes this long never ends.
const PATIENCE: Duration = Duration::from_secs(60);

/// Threads that wait for ever cannot be ended one by one.
fn give_up(label: &str) {
    eprintln!("\nbench: {label} has not come back for {PATIENCE:?}: it hangs, so this ends here");
    std::process::exit(1);
}

fn list(workloads: &[Workload], out: &mut dyn Write) -> Result<()> {
    for suite in SUITES {
        let mut names = workloads
            .iter()
            .filter(|workload| workload.suite == suite.name)
            .peekable();
        if names.peek().is_some() {
            writeln!(out, "{}: {}", suite.name, suite.about)?;
        }
        for workload in names {
            let candidates: Vec<_> = workload.candidates.iter().map(|one| one.name).collect();
            writeln!(out, "  {}: {}", workload.name, candidates.join(", "))?;
        }
    }
    Ok(())
}
