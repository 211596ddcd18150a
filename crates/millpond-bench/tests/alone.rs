//! Candidates in a process of their own: this program starts itself, as the bench does. So it is a
//! program without a test harness, whose greeting would be another one.
#![forbid(unsafe_code)]

use anyhow::{Context, Result, ensure};
use millpond_bench::harness::{Found, Settings};
use millpond_bench::peers::guest::{Order, own};
use millpond_bench::program::{self, Options};
use millpond_bench::progress::Silent;
use millpond_bench::workloads::scheduled;
use std::time::Duration;

fn main() -> Result<()> {
    if own::is_asked() {
        return program::run(&Options::default(), None, &mut std::io::stdout());
    }
    what_a_process_of_its_own_cannot_do_is_told()?;
    timers_hold_memory_and_an_idle_one_wakes_nobody()?;
    println!("alone: ok");
    Ok(())
}

fn what_a_process_of_its_own_cannot_do_is_told() -> Result<()> {
    let order = Order {
        work: "mill",
        executor: "tokio-sleep",
        producers: 1,
        operations: 1,
        warm_up_millis: 0,
    };
    let error = own::start()?.run(&order).map(drop).unwrap_err();
    ensure!(
        format!("{error:#}") == "in Rust: there is no work mill",
        "{error:#}"
    );
    Ok(())
}

/// Those that take a process of their own, in the fewest and shortest rounds.
fn measured(name: &str) -> Result<Found> {
    let workloads = (scheduled::SUITE.workloads)();
    let workload = workloads.iter().find(|one| one.name.starts_with(name));
    let settings = Settings {
        rounds: 1,
        round_time: Duration::from_millis(1),
    };
    workload
        .with_context(|| format!("there is no workload {name:?}"))?
        .measure(settings, None, &Silent)
}

fn timers_hold_memory_and_an_idle_one_wakes_nobody() -> Result<()> {
    let here = [
        "millpond",
        "scheduled-thread-pool",
        "tokio sleep",
        "async-io timer",
    ];
    for (name, rows_each) in [("memory", 2), ("one timer an hour away", 2)] {
        let found = measured(name)?;
        for candidate in here {
            let rows = found
                .rows
                .iter()
                .filter(|row| row.candidate.starts_with(candidate));
            let medians: Vec<f64> = rows.map(|row| row.spread.median).collect();
            ensure!(
                medians.len() >= rows_each,
                "{name}: {candidate}: {medians:?}"
            );
            // The closure alone has two words.
            ensure!(
                name != "memory" || medians[0] > 16.0,
                "{name}: {candidate}: {medians:?}"
            );
        }
        for (candidate, reason) in &found.absent {
            ensure!(
                candidate.starts_with("Java") || candidate.starts_with("Go"),
                "{candidate}: {reason}"
            );
        }
    }
    Ok(())
}
