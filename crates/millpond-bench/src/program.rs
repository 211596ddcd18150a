//! The command line: the same for `cargo bench` and for the `millpond` program.
//!
//! What can go wrong without measuring is found out before: unknown suites, files that cannot be
//! read, places where nothing can be written. Only then the minutes begin.

use crate::alloc::CountingAlloc;
use crate::compare::Comparison;
use crate::condition::Condition;
use crate::harness::{Pace, Settings, Suite, Workload};
use crate::machine::{Surroundings, Ticks};
use crate::origin::{Heading, Origin, Run};
use crate::output_file::OutputFile;
use crate::page;
use crate::peers::guest::{self, install::install, own};
use crate::progress::{Bar, Watched};
use crate::publish::{self, plan::Plan};
use crate::record::Record;
use crate::report::{LeftOutFact, Report, Row};
use crate::table;
use crate::workloads::{self, SUITES};
use anyhow::{Context, Result, bail};
use clap::{ArgGroup, Args};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// What to measure, how thoroughly, and where to leave the figures.
#[derive(Args, Clone, Debug, Default)]
#[command(group = ArgGroup::new("outputs").args(["report", "compare"]).multiple(true))]
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

    /// The machine is quiet, busy with loops at nice 19, or has one CPU
    #[arg(long, value_enum, default_value_t, value_name = "CONDITION")]
    pub condition: Condition,

    /// Candidates take turns in orders drawn by N [default: 17]
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,

    /// So many milliseconds for each candidate of a workload, in 3 rounds at least
    #[arg(long, value_name = "MS", value_parser = clap::value_parser!(u64).range(1..))]
    #[arg(conflicts_with = "quick")]
    pub budget: Option<u64>,

    /// Rounds of so many milliseconds, instead of 100 (20 with --quick or --budget)
    #[arg(long, value_name = "MS", value_parser = clap::value_parser!(u64).range(1..=10_000))]
    pub round: Option<u64>,

    /// Do not count allocations
    #[arg(long)]
    pub no_allocations: bool,

    /// Also write the figures to FILE, one object per row
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,

    /// Also make a page with plots: DIR/index.html, for any browser
    #[arg(long, value_name = "DIR")]
    pub report: Option<PathBuf>,

    /// Also say what got better or worse beyond noise since OLD, a file of --json
    #[arg(long, value_name = "OLD")]
    pub compare: Option<PathBuf>,

    /// For figures to be quoted: the medians of several processes, in DIR/figures.json
    #[arg(long, value_name = "DIR")]
    #[arg(conflicts_with_all = ["quick", "rounds", "only", "condition", "seed", "budget", "round", "no_allocations", "json", "report", "compare"])]
    pub publish: Option<PathBuf>,

    /// Processes of each suite in each condition, for --publish [default: 3]
    #[arg(long, value_name = "N", requires = "publish", value_parser = clap::value_parser!(u64).range(1..=100))]
    pub processes: Option<u64>,

    /// How long --publish should take, in minutes [default: 45]
    #[arg(long, value_name = "N", requires = "publish", value_parser = clap::value_parser!(u64).range(1..=10_000))]
    pub minutes: Option<u64>,

    /// Measure nothing, and take the figures from FILE, for --report and --compare
    #[arg(long, value_name = "FILE", requires = "outputs")]
    #[arg(conflicts_with_all = ["suites", "quick", "rounds", "only", "condition", "seed", "budget", "round", "no_allocations", "publish", "json", "install", "list"])]
    pub from: Option<PathBuf>,

    /// First get the languages of the peers that are missing: Java, Go, Python, Mono (as root on Debian)
    #[arg(long)]
    pub install: bool,

    /// Name the suites and their workloads, and measure nothing
    #[arg(long)]
    pub list: bool,
}

impl Options {
    /// How long and how often.
    pub fn settings(&self) -> Settings {
        let settings = if self.quick || self.budget.is_some() {
            Settings::QUICK
        } else {
            Settings::FULL
        };
        let most = match self.budget {
            Some(_) => Settings::FULL.rounds,
            None => settings.rounds,
        };
        let round_time = self
            .round
            .map_or(settings.round_time, Duration::from_millis);
        Settings {
            rounds: self.rounds.map_or(most, usize::from),
            round_time,
        }
    }

    /// How long, how often and in which order.
    pub fn pace(&self) -> Pace {
        Pace {
            seed: self.seed.unwrap_or(Pace::SEED),
            budget: self.budget.map(Duration::from_millis),
            ..Pace::of(self.settings())
        }
    }

    fn run(&self) -> Run {
        match (self.quick, self.budget) {
            (true, _) => Run::Quick,
            (_, Some(_)) => Run::Budget,
            _ => Run::Full,
        }
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
        let mut all: Vec<String> = Vec::new();
        for note in self.chosen_suites()?.into_iter().flat_map(notes) {
            // Two suites with the same guests say the same about them.
            if !all.contains(&note) {
                all.push(note);
            }
        }
        Ok(all)
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
/// If there is nothing to measure, a candidate does not do its work, or a file cannot be read or
/// written.
pub fn run(
    options: &Options,
    allocator: Option<&CountingAlloc>,
    out: &mut dyn Write,
) -> Result<()> {
    if own::is_asked() {
        return own::take_orders(std::io::stdin().lock(), out, workloads::obey);
    }
    let workloads = options.workloads()?;
    if options.list {
        return list(&workloads, out);
    }
    if let Some(folder) = &options.publish {
        return publish(options, folder, out);
    }
    let allocator = allocator.filter(|_| !options.no_allocations);
    let earlier = options.from.as_deref().map(Record::read).transpose()?;
    let after = After::prepare(options)?;
    let record = match earlier {
        Some(record) => record,
        None => {
            let report = measure(options, &workloads, allocator, out)?;
            if let Some(output_file) = &after.json {
                output_file.write(&(serde_json::to_string_pretty(&report)? + "\n"))?;
            }
            Record::of(&report)?
        }
    };
    after.finish(&record, out)
}

/// Measures everything in processes of their own, and makes the pages of the repository.
fn publish(options: &Options, folder: &Path, out: &mut dyn Write) -> Result<()> {
    if options.install {
        install(out)?;
    }
    let minutes = options.minutes.unwrap_or(45);
    let plan = Plan::new(
        &options.suites,
        options.processes.unwrap_or(3),
        Duration::from_secs(60 * minutes),
    );
    let record = publish::run(&plan, folder, out)?;
    let [ahead, level, behind] = record.verdicts();
    writeln!(
        out,
        "rows of ours: {ahead} ahead, {level} level, {behind} behind"
    )?;
    let is_home = folder.canonicalize().ok() == publish::home().canonicalize().ok();
    if is_home && options.suites.is_empty() {
        for (path, should, _) in publish::pages::all(&crate::origin::root(), &record)? {
            OutputFile::open("a page", &path)?.write(&should)?;
            writeln!(out, "{} is made of them", path.display())?;
        }
    }
    Ok(())
}

/// What is made of the figures once they are there.
struct After {
    json: Option<OutputFile>,
    page: Option<OutputFile>,
    old: Option<Record>,
}

impl After {
    fn prepare(options: &Options) -> Result<Self> {
        let json = options.json.as_deref();
        let page = options.report.as_deref();
        Ok(After {
            old: options.compare.as_deref().map(Record::read).transpose()?,
            json: json
                .map(|file| OutputFile::open("the figures", file))
                .transpose()?,
            page: page
                .map(|folder| OutputFile::open_in("the page", folder, page::FILE))
                .transpose()?,
        })
    }

    fn finish(&self, record: &Record, out: &mut dyn Write) -> Result<()> {
        if let Some(old) = &self.old {
            write!(out, "\n{}", Comparison::of(old, record))?;
        }
        if let Some(output_file) = &self.page {
            output_file.write(&page::html(record))?;
            writeln!(out, "\nThe page is {}", output_file.file().display())?;
        }
        Ok(())
    }
}

fn measure(
    options: &Options,
    workloads: &[Workload],
    allocator: Option<&CountingAlloc>,
    out: &mut dyn Write,
) -> Result<Report> {
    if options.install {
        install(out)?;
    }
    let pace = options.pace();
    let settings = pace.settings;
    guest::rounds_take(settings.round_time);
    let is_counting = allocator.is_some();
    let origin = Origin::read(options.run(), &pace, options.condition, is_counting);
    let heading = Heading {
        is_quick: options.quick,
        condition: options.condition,
    };
    let start = Instant::now();
    let mut machine = Surroundings::read();
    machine.condition = options.condition;
    let ticks = Ticks::read();
    let unoptimised = cfg!(debug_assertions).then_some(UNOPTIMISED);
    if let Some(warning) = unoptimised {
        writeln!(out, "{warning}")?;
    }
    write!(
        out,
        "{}{}{}",
        machine.lines(),
        origin.lines(),
        table::LEGEND
    )?;
    let condition = options.condition.note();
    if let Some(note) = &condition {
        writeln!(out, "{note}")?;
    }
    let _in_condition = options.condition.enter()?;
    let steps = workloads.iter().map(|workload| workload.steps(settings));
    let bar = Bar::new(steps.sum());
    let watched = Watched::new(&bar, PATIENCE, give_up);
    let mut rows: Vec<Row> = Vec::new();
    let mut said = Vec::new();
    let mut left_out: Vec<LeftOutFact> = Vec::new();
    for workload in workloads {
        let mut found = workload.measure_at(&pace, allocator, &watched)?;
        for (candidate, because) in &found.absent {
            let fact = LeftOutFact {
                candidate: (*candidate).to_owned(),
                because: because.to_string(),
            };
            if !left_out.contains(&fact) {
                left_out.push(fact);
            }
        }
        // Who is not here is not here for the next workload either: to say so once is enough.
        found.absent.retain(|(_, reason)| !said.contains(reason));
        said.extend(found.absent.iter().map(|(_, reason)| reason.clone()));
        bar.aside(|| write!(out, "\n{}", table::found(&found, heading)))?;
        rows.extend(found.rows);
    }
    drop(watched);
    bar.finish();
    let (overview, summary) = (table::overview(&rows, heading), table::summary(&rows));
    write!(out, "\n{overview}\n{summary}")?;
    let mut notes = options.notes(&rows)?;
    notes.extend(unoptimised.map(String::from));
    notes.extend(condition);
    for note in &notes {
        writeln!(out, "  .       {note}")?;
    }
    machine.steal_percent = ticks.and_then(|before| Ticks::read()?.steal_since(before));
    Ok(Report {
        machine,
        origin: origin.with_guests(),
        seconds: start.elapsed().as_secs_f64(),
        notes,
        left_out,
        rows,
    })
}

/// What a build for debugging says of its figures.
const UNOPTIMISED: &str = "This program was built for debugging, and so was everything that it \
    measures in its own process: build it with --release before you believe a figure.";

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
