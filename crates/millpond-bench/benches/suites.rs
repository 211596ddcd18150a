//! `cargo bench -p millpond-bench -- [SUITE...] [--quick] [--json FILE]`: all suites of the house.
#![forbid(unsafe_code)]

use clap::Parser;
use millpond_bench::alloc::CountingAlloc;
use millpond_bench::ctrl_c;
use millpond_bench::program::{self, Options};
use std::process::ExitCode;

#[global_allocator]
static ALLOC: CountingAlloc = CountingAlloc::new();

/// Measures millpond and its peers side by side.
#[derive(Debug, Parser)]
#[command(bin_name = "cargo bench -p millpond-bench --")]
struct Command {
    #[command(flatten)]
    options: Options,

    /// What `cargo bench` tells every bench.
    #[arg(long, hide = true)]
    bench: bool,
}

fn main() -> ExitCode {
    let command = Command::parse();
    let run = || {
        ctrl_c::leave_in_order()?;
        program::run(&command.options, Some(&ALLOC), &mut std::io::stdout())
    };
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("bench: {error:#}");
            ExitCode::FAILURE
        }
    }
}
