//! `cargo bench -p millpond-bench --features mimalloc --bench mimalloc -- [SUITE...]`: all suites of the house, in a
//! process whose allocator is mimalloc. It counts no allocations.
#![forbid(unsafe_code)]

use clap::Parser;
use millpond_bench::ctrl_c;
use millpond_bench::program::{self, Options};
use std::process::ExitCode;

#[global_allocator]
static ALLOC: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Measures millpond and its peers side by side, all with mimalloc.
#[derive(Debug, Parser)]
#[command(bin_name = "cargo bench -p millpond-bench --features mimalloc --bench mimalloc --")]
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
        let mut out = std::io::stdout();
        if !command.options.list && !millpond_bench::peers::guest::own::is_asked() {
            println!("Every candidate in this process allocates with mimalloc.");
        }
        program::run(&command.options, None, &mut out)
    };
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("bench: {error:#}");
            ExitCode::FAILURE
        }
    }
}
