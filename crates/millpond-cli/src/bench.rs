//! `millpond bench`: the bench, as `cargo bench` runs it.
//!
//! Allocations are counted by the program's own allocator, the system's with a tally that is switched
//! on for the runs that count and off for all others: what the rest of the program pays is one load
//! of an unused word.

use std::io::{self, ErrorKind};

use anyhow::{Error, Result};
use millpond_bench::alloc::CountingAlloc;
use millpond_bench::ctrl_c;
use millpond_bench::program::{self, Options};

#[global_allocator]
static ALLOC: CountingAlloc = CountingAlloc::new();

pub(crate) const EXAMPLES: &str = "\
Examples:
  millpond bench --list                   the suites, their workloads and candidates
  millpond bench pool --quick             a first look, in less than a minute
  millpond bench --json now.json --report page
                                          everything, kept, with a page for the browser
  millpond bench pool --compare old.json  what changed since then
  millpond bench --from now.json --compare old.json --report page
                                          the same without measuring
  millpond bench --publish docs/figures   figures to be quoted: 3 processes of every suite in quiet,
                                          busy and on one CPU; goes on where it was broken off

Rows of ours that a peer beats beyond noise stay in, marked BEHIND.";

pub(crate) fn run(options: &Options) -> Result<()> {
    ctrl_c::leave_in_order()?;
    match program::run(options, Some(&ALLOC), &mut io::stdout()) {
        // A reader that has seen enough (`millpond bench | head`) is no error, unless there was
        // more to leave than what it read.
        Err(error) if is_broken_pipe(&error) && !leaves_files(options) => Ok(()),
        outcome => outcome,
    }
}

fn is_broken_pipe(error: &Error) -> bool {
    let mut causes = error
        .chain()
        .filter_map(|cause| cause.downcast_ref::<io::Error>());
    causes.any(|cause| cause.kind() == ErrorKind::BrokenPipe)
}

fn leaves_files(options: &Options) -> bool {
    options.json.is_some() || options.report.is_some() || options.publish.is_some()
}
