//! PCT schedules of every scenario, with more threads than loom can take.
//!
//! Run with `cargo xtask models shuttle`. Each scenario runs under 1,000 schedules for each depth
//! from 1 to 4: a depth of d finds every bug that needs d ordering constraints with a probability
//! that can be told. `MILLPOND_SCHEDULES` changes the number. A failure prints the schedule, and
//! `shuttle::replay` runs it again.
#![cfg(millpond_shuttle)]

mod scenarios;

use std::io::Write as _;

fn schedules() -> usize {
    match std::env::var("MILLPOND_SCHEDULES") {
        Err(_) => 1_000,
        Ok(text) => text.parse().unwrap_or_else(|_| {
            panic!("MILLPOND_SCHEDULES is `{text}`: give it the number of schedules per depth")
        }),
    }
}

fn pct(scenario: fn()) {
    for depth in 1..=4 {
        shuttle::check_pct(scenario, schedules(), depth);
    }
    // Not by a macro: what those write into a test that passes nobody sees.
    let line = format!("{} schedules walked\n", 4 * schedules());
    let _ = std::io::stderr().write_all(line.as_bytes());
}

scenarios::drive!(pct);
