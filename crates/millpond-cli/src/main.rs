//! The `millpond` program.
//!
//! One module per subcommand. Without a subcommand it runs the demo.
#![forbid(unsafe_code)]
#![allow(
    clippy::disallowed_types,
    clippy::disallowed_methods,
    reason = "a program that measures std's locks, threads and clock beside ours must call them"
)]

mod about;
mod args;
mod bench;
mod demo;
mod terminal;

use std::process::ExitCode;

use clap::Parser;

use args::{Args, Command};

fn main() -> ExitCode {
    let args = Args::parse();
    let outcome = match args.command.unwrap_or(Command::Demo(args.demo)) {
        Command::Demo(options) => demo::run(&options),
        Command::About(options) => about::run(&options),
        Command::Bench(options) => bench::run(&options),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("millpond: {error:#}");
            ExitCode::FAILURE
        }
    }
}
