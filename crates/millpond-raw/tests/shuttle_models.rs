//! PCT schedules of every scenario, with more threads than loom can handle.
//!
//! Run with `cargo xtask models shuttle`. Each scenario runs under 1,000 schedules for each depth from 1 to
//! 4: a depth of d finds every bug that needs d ordering constraints with a known probability.
//! `MILLPOND_SCHEDULES` changes the number, `MILLPOND_SEED` the seed, which is fixed otherwise. A failure
//! prints the schedule, and `shuttle::replay` runs it again.
#![cfg(millpond_shuttle)]

mod scenarios;
mod seed_kit;

use shuttle::Runner;
use shuttle::scheduler::PctScheduler;
use std::io::Write as _;

fn schedules() -> usize {
    seed_kit::number("MILLPOND_SCHEDULES").map_or(1_000, |schedules| schedules as usize)
}

fn pct(scenario: fn()) {
    for depth in 1..=4 {
        let scheduler = PctScheduler::new_from_seed(seed_kit::seed(), depth, schedules());
        Runner::new(scheduler, shuttle::Config::default()).run(scenario);
    }
    // Not by a macro, whose output is captured in a test that passes.
    let line = format!("{} schedules walked\n", 4 * schedules());
    let _ = std::io::stderr().write_all(line.as_bytes());
}

scenarios::drive!(pct);
