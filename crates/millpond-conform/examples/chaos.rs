//! Plays rounds of chaos on the pool and judges its books: `cargo xtask chaos`.
//!
//! An example and not a binary, because `cargo run` in the workspace must find exactly one program.

#![forbid(unsafe_code)]
#![allow(
    clippy::disallowed_types,
    clippy::disallowed_methods,
    reason = "it stands outside what it tests"
)]

use clap::Parser;
use millpond_conform::chaos::{Counts, Played, play};
use millpond_conform::kit::{Watchdog, delays};
use std::process::ExitCode;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// Plays rounds of everything at once on a ThreadPool, and judges its books after each.
#[derive(Debug, Parser)]
struct Arguments {
    /// For how long; fractions are minutes, too
    #[arg(long, default_value_t = 1.0)]
    minutes: f64,
    /// At most so many rounds
    #[arg(long, default_value_t = u64::MAX)]
    rounds: u64,
    /// The seed of all rounds
    #[arg(long)]
    seed: u64,
    /// Play this round only, again and again
    #[arg(long)]
    round: Option<u64>,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let seed = arguments.seed;
    println!("seed {seed}");
    if millpond_raw::sync::chaos::seed().is_none() {
        println!("note: built without millpond_chaos, so nothing yields but by itself");
    }
    let time = Duration::try_from_secs_f64(arguments.minutes * 60.0).unwrap_or(Duration::MAX);
    let (begin, mut told) = (Instant::now(), Instant::now());
    let (mut counts, mut rounds) = (Counts::default(), 0_u64);
    while rounds == 0 || (rounds < arguments.rounds && begin.elapsed() < time) {
        let round = arguments.round.unwrap_or(rounds);
        let played = watched(seed, round);
        rounds += 1;
        if !played.wrong.is_empty() {
            println!(
                "\nround {round} of seed {seed} went wrong after {:.1?}:",
                begin.elapsed()
            );
            played
                .wrong
                .iter()
                .take(20)
                .for_each(|wrong| println!("- {wrong}"));
            println!(
                "{}",
                how_to_replay(seed, round, &format!("{:?}", played.shape))
            );
            return ExitCode::FAILURE;
        }
        counts.merge(played.counts);
        if told.elapsed() >= Duration::from_secs(1) {
            told = Instant::now();
            println!("{}", line(&counts, rounds));
        }
    }
    println!("{}", line(&counts, rounds));
    println!("\nwhat happened, how often:\n{counts}");
    println!(
        "{rounds} rounds, {} tasks: the books balance",
        counts.get("tasks")
    );
    ExitCode::SUCCESS
}

/// A round that hangs is a violation like any other, and says who waits where.
fn watched(seed: u64, round: u64) -> Played {
    let drawn = Arc::new(Mutex::new(String::new()));
    let shown = Arc::clone(&drawn);
    let _watchdog = Watchdog::arm_with("a round of chaos", delays::longer(), move |report| {
        let shape = drawn.lock().map(|shape| shape.clone()).unwrap_or_default();
        println!("\nround {round} of seed {seed} does not end (CHAOS-1):\n{report}");
        println!("{}", how_to_replay(seed, round, &shape));
        std::process::exit(1);
    });
    play(seed, round, |shape| {
        if let Ok(mut text) = shown.lock() {
            *text = format!("{shape:?}");
        }
    })
}

fn how_to_replay(seed: u64, round: u64, shape: &str) -> String {
    format!(
        "its shape: {shape}\nto play it again and again:\n    cargo xtask chaos --seed {seed} \
         --round {round} --minutes 1"
    )
}

fn line(counts: &Counts, rounds: u64) -> String {
    let names = [
        "tasks",
        "tasks run",
        "tasks rejected",
        "tasks handed back",
        "cancelled by a handle",
        "figure discarded",
        "figure expired",
        "figure shed",
        "figure thread_failures",
        "patches applied",
    ];
    let counts = names.map(|name| {
        format!(
            "{} {}",
            counts.get(name),
            name.trim_start_matches("figure ")
        )
    });
    format!("{rounds} rounds: {}", counts.join(", "))
}
