//! Plays random programs with many engines and judges their books: `cargo xtask programs`.
//!
//! An example and not a binary, because `cargo run` in the workspace must find exactly one program.

#![forbid(unsafe_code)]
#![allow(
    clippy::disallowed_types,
    clippy::disallowed_methods,
    reason = "it stands outside what it tests"
)]

use anyhow::{Context, Result, bail};
use clap::Parser;
use millpond_conform::kit::{Watchdog, delays};
use millpond_conform::programs::{Program, play};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};
use std::{env, fs};

/// How often a smaller program is played before it is believed to be well.
const TRIES: u32 = 30;

/// Plays random programs over everything at once, and judges their books.
#[derive(Debug, Parser)]
struct Arguments {
    /// For how long; fractions are minutes, too
    #[arg(long, default_value_t = 1.0)]
    minutes: f64,
    /// At most so many programs
    #[arg(long, default_value_t = u64::MAX)]
    count: u64,
    /// Where the seeds of the programs begin
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Play the program of this file again and again
    #[arg(long)]
    file: Option<PathBuf>,
    /// Print the program of the seed, and play nothing
    #[arg(long)]
    show: bool,
    /// Make the program that fails smaller: of the file, or of the seed
    #[arg(long)]
    shrink: bool,
}

fn main() -> ExitCode {
    match run(&Arguments::parse()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: &Arguments) -> Result<bool> {
    let written = arguments.file.as_deref().map(read).transpose()?;
    let first = || written.clone().unwrap_or(Program::draw(arguments.seed));
    if arguments.show {
        print!("{}", first());
        return Ok(true);
    }
    if arguments.shrink {
        return shrink(first());
    }
    println!("seed {}", arguments.seed);
    let time = Duration::try_from_secs_f64(arguments.minutes * 60.0).unwrap_or(Duration::MAX);
    let (begin, mut told) = (Instant::now(), Instant::now());
    let (mut programs, mut tasks) = (0_u64, 0);
    while programs == 0 || (programs < arguments.count && begin.elapsed() < time) {
        let seed = arguments.seed.wrapping_add(programs);
        let program = written.clone().unwrap_or_else(|| Program::draw(seed));
        let again = match &arguments.file {
            Some(file) => format!("--file {}", file.display()),
            None => format!("--seed {seed} --count 1"),
        };
        let played = watched(&program, &again);
        programs += 1;
        tasks += played.tasks;
        if !played.wrong.is_empty() {
            println!("\nthe program of {again} went wrong:");
            played
                .wrong
                .iter()
                .take(20)
                .for_each(|wrong| println!("- {wrong}"));
            println!("{}", how_to_replay(&program, &again));
            return Ok(false);
        }
        if told.elapsed() >= Duration::from_secs(1) {
            told = Instant::now();
            println!("{programs} programs: {tasks} tasks, last seed {seed}");
        }
    }
    println!("{programs} programs, {tasks} tasks: the books balance");
    Ok(true)
}

/// A program that hangs is a violation like any other, and says who waits where.
fn watched(program: &Program, again: &str) -> millpond_conform::programs::Played {
    let (shown, again) = (program.clone(), again.to_owned());
    let _watchdog = Watchdog::arm_with("a program", delays::longer() * 6, move |report| {
        println!("\nthe program of {again} does not end (PROGRAM-1):\n{report}");
        println!("{}", how_to_replay(&shown, &again));
        std::process::exit(1);
    });
    play(program)
}

fn how_to_replay(program: &Program, again: &str) -> String {
    let again_and_again = again.replace(" --count 1", "");
    format!(
        "the program:\n\n{program}\nto play it again: cargo xtask programs {again}\nto make it \
         smaller: cargo xtask programs {again_and_again} --shrink\nto keep it: copy it into a file \
         crates/millpond-conform/counterexamples/program-*.txt"
    )
}

fn read(file: &Path) -> Result<Program> {
    let text =
        fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))?;
    let program = text.parse::<Program>();
    program.map_err(|error| anyhow::anyhow!("{}: {error}", file.display()))
}

/// Leaves lines out as long as what is left fails. Each try is a process of its own, for a program may
/// hang or bring its process down.
fn shrink(mut program: Program) -> Result<bool> {
    let file = env::temp_dir().join(format!("millpond-program-{}.txt", std::process::id()));
    if !fails(&program, &file)? {
        bail!("it did not fail in {TRIES} tries: there is nothing to make smaller");
    }
    loop {
        println!("{} lines", program.to_string().lines().count());
        let mut found = None;
        for smaller in program.smaller() {
            if fails(&smaller, &file)? {
                found = Some(smaller);
                break;
            }
        }
        match found {
            Some(smaller) => program = smaller,
            None => break,
        }
    }
    fs::remove_file(&file)?;
    println!("no line can be left out:\n\n{program}");
    Ok(false)
}

fn fails(program: &Program, file: &Path) -> Result<bool> {
    fs::write(file, program.to_string())?;
    let mut play = Command::new(env::current_exe()?);
    play.arg("--file").arg(file).args(["--minutes", "10"]);
    play.args(["--count", &TRIES.to_string()]);
    // What it prints is of the last one only, which is played by whoever reads this.
    let ended = play.stdout(Stdio::null()).stderr(Stdio::null()).status()?;
    Ok(!ended.success())
}
