//! How the models of this crate are driven: PCT schedules, and a count of them.

#![allow(
    dead_code,
    reason = "each test program is a crate of its own and takes what it needs"
)]

#[path = "../../../millpond-raw/tests/seed_kit/mod.rs"]
mod seed_kit;

use shuttle::Runner;
use shuttle::scheduler::{PctScheduler, ReplayScheduler};
use std::io::Write as _;
use std::sync::Arc;

/// How many schedules for each depth: `usual`, or what `MILLPOND_SCHEDULES` says.
fn schedules(usual: usize) -> usize {
    seed_kit::number("MILLPOND_SCHEDULES").map_or(usual, |schedules| schedules as usize)
}

/// Shuttle's usual stacks of 32 KiB are too small for a builder whose pool is made there and moved.
fn config() -> shuttle::Config {
    let mut config = shuttle::Config::default();
    config.stack_size = 128 * 1024;
    config
}

/// Runs the scenario under PCT schedules of depth 1 to 4 from the seed of the tests, `usual` for each,
/// and says how many they were; `cargo xtask models` adds them up. A schedule that fails is printed; `MILLPOND_REPLAY`, the
/// name of a file that holds it, runs that one alone.
pub(crate) fn pct(usual: usize, scenario: impl Fn() + Send + Sync + 'static) {
    let scenario = Arc::new(scenario);
    let scenario = || {
        let scenario = Arc::clone(&scenario);
        move || scenario()
    };
    if let Some(file) = std::env::var_os("MILLPOND_REPLAY") {
        let text = std::fs::read_to_string(file).expect("MILLPOND_REPLAY names a file");
        let schedule: String = text.chars().filter(char::is_ascii_hexdigit).collect();
        let scheduler = ReplayScheduler::new_from_encoded(&schedule);
        Runner::new(scheduler, config()).run(scenario());
        return;
    }
    let schedules = schedules(usual);
    for depth in 1..=4 {
        let scheduler = PctScheduler::new_from_seed(seed_kit::seed(), depth, schedules);
        Runner::new(scheduler, config()).run(scenario());
    }
    // Not by a print macro: the test harness hides what those write in a test that passes.
    let line = format!("{} schedules walked\n", 4 * schedules);
    let _ = std::io::stderr().write_all(line.as_bytes());
}
