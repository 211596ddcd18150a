//! The promises about allocations, counted. It installs an allocator of its own and counts what the
//! whole process allocates, so it is one program without a test harness beside it.
#![forbid(unsafe_code)]

use anyhow::{Context, Result, ensure};
use millpond_bench::alloc::{self, CountingAlloc};
use millpond_bench::harness::{Settings, Workload};
use millpond_bench::progress::Silent;
use millpond_bench::workloads::task;
use std::time::Duration;

#[global_allocator]
static ALLOC: CountingAlloc = CountingAlloc::new();

fn main() -> Result<()> {
    counting_finds_exactly_what_is_allocated()?;
    a_task_is_one_allocation(&task::round_trip())?;
    println!("allocations: ok");
    Ok(())
}

fn counting_finds_exactly_what_is_allocated() -> Result<()> {
    let boxes = |count: u64| {
        let once = std::hint::black_box(vec![0_u8; 100]);
        for _ in 0..2 * count {
            drop(std::hint::black_box(Box::new(once.len())));
        }
        Ok(())
    };
    let per_operation = alloc::per_operation(&ALLOC, 1_000, boxes)?;
    ensure!(
        per_operation == 2.0,
        "two boxes were counted as {per_operation}"
    );
    Ok(())
}

fn a_task_is_one_allocation(workload: &Workload) -> Result<()> {
    let settings = Settings {
        rounds: 1,
        round_time: Duration::from_micros(100),
    };
    let rows = workload.measure(settings, Some(&ALLOC), &Silent)?.rows;
    let ours = rows.iter().find(|row| row.standing.is_ours());
    let ours = ours.context("there is no row of ours")?;
    let allocations = ours.per_operation.allocations;
    ensure!(
        allocations == Some(1.0),
        "make, run and join costs {allocations:?} allocations instead of one"
    );
    Ok(())
}
