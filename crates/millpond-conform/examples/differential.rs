//! Plays scripts on Java's pool and on ours, and compares the logs: `cargo xtask differential`.
//!
//! An example and not a binary, because `cargo run` in the workspace must find exactly one program.

#![forbid(unsafe_code)]
#![allow(
    clippy::disallowed_methods,
    reason = "it stands outside what it tests, and tells how long it took by std's clock"
)]

use anyhow::{Context, Result, bail};
use clap::Parser;
use millpond_conform::differential::java::{self, Java};
use millpond_conform::differential::script::Script;
use millpond_conform::differential::{
    Ours, Runner, Source, Tally, decisions, generate, generate_futures,
};
use millpond_conform::kit::delays;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;

/// Plays scripts on Java's pools and futures and on ours, and compares the logs.
#[derive(Debug, Parser)]
struct Arguments {
    /// Where the random scripts begin
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// How many random scripts
    #[arg(long, default_value_t = 0)]
    count: u64,
    /// How many random scripts for completable futures
    #[arg(long, default_value_t = 0)]
    futures: u64,
    /// A script, or a folder of scripts (*.txt)
    #[arg(long, value_name = "PATH")]
    scripts: Vec<PathBuf>,
    /// Show the logs too
    #[arg(long)]
    show: bool,
    /// Show the list of decisions with their reasons, and play nothing
    #[arg(long)]
    decisions: bool,
}

fn main() -> ExitCode {
    match differ(Arguments::parse()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn differ(arguments: Arguments) -> Result<bool> {
    if arguments.decisions {
        print!("{}", decisions::TEXT);
        return Ok(true);
    }
    let scripts = written(&arguments.scripts)?;
    let seed = arguments.seed;
    let total = scripts.len() as u64 + arguments.count + arguments.futures;
    if total == 0 {
        bail!("there is nothing to play: say --count N, --futures N or --scripts PATH");
    }
    let random = |seed: u64, count: u64| {
        let of_pools = (0..count).map(move |index| {
            let seed = generate::seed_of(seed, index);
            (Source::Seed(seed), generate::script(seed))
        });
        of_pools.chain((0..arguments.futures).map(move |index| {
            let seed = generate::seed_of(seed, index);
            (Source::Futures(seed), generate_futures::script(seed))
        }))
    };
    let classes = classes()?;
    java::compile(&classes)?;
    let java = Java::start(&classes, delays::long())?;
    println!("against {}", java.version());
    print!("{}", decisions::summary());
    println!("{} written scripts", scripts.len());
    if arguments.count > 0 {
        println!("{} random scripts from seed {seed}", arguments.count);
    }
    if arguments.futures > 0 {
        println!(
            "{} random scripts for futures from seed {seed}",
            arguments.futures
        );
    }
    if arguments.show {
        let all = scripts.iter().cloned().chain(random(seed, arguments.count));
        all.for_each(|(_, script)| show(&script));
    }
    let begin = Instant::now();
    let all = scripts.into_iter().chain(random(seed, arguments.count));
    let mut runner = Runner::new(Ours::new(delays::long()), java);
    let report = runner.run(all, |tally| progress(tally, total))?;
    println!("{} in {:.1?}", report.tally, begin.elapsed());
    if let Some(found) = report.found {
        println!("\n{found}");
        return Ok(false);
    }
    let missing = report.tally.missing();
    if !missing.is_empty() {
        println!(
            "the scripts have gone blind: never seen: {}",
            missing.join(", ")
        );
        return Ok(false);
    }
    println!("both agree");
    Ok(true)
}

/// Reads the scripts that people wrote, in the order of their names.
fn written(paths: &[PathBuf]) -> Result<Vec<(Source, Script)>> {
    let mut files = Vec::new();
    for path in paths {
        if !path.is_dir() {
            files.push(path.clone());
            continue;
        }
        let before = files.len();
        for entry in
            fs::read_dir(path).with_context(|| format!("cannot read {}", path.display()))?
        {
            let file = entry?.path();
            if file.extension().is_some_and(|ending| ending == "txt") {
                files.push(file);
            }
        }
        if files.len() == before {
            bail!("there is no script (*.txt) in {}", path.display());
        }
        files[before..].sort();
    }
    let read = |file: PathBuf| {
        let text =
            fs::read_to_string(&file).with_context(|| format!("cannot read {}", file.display()))?;
        let script = text
            .parse()
            .with_context(|| format!("in {}", file.display()))?;
        match decisions::forbids(&script) {
            None => Ok((Source::File(file), script)),
            Some(decision) => bail!(
                "{} cannot be compared because of {decision}: see --decisions",
                file.display()
            ),
        }
    };
    files.into_iter().map(read).collect()
}

/// The compiled classes lie in the build directory, three floors above this program.
fn classes() -> Result<PathBuf> {
    let program = std::env::current_exe().context("this program cannot find itself")?;
    let target = program.ancestors().nth(3).unwrap_or(Path::new("."));
    Ok(target.join("differential"))
}

fn show(script: &Script) {
    let log = Ours::new(delays::long()).play(script);
    for (step, line) in script.lines().iter().zip(log) {
        println!("{step}\n    {line}");
    }
}

/// A line now and then.
fn progress(tally: &Tally, total: u64) {
    if tally.scripts.is_multiple_of(500) {
        println!("{} of {total} scripts", tally.scripts);
    }
}
