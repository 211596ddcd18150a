//! The promises about allocations, counted. It installs an allocator of its own and counts what the
//! whole process allocates, so it is one program without a test harness beside it.
#![forbid(unsafe_code)]

use anyhow::{Context, Result, ensure};
use millpond::queue::{BlockingQueue, FifoQueue};
use millpond::task::{Task, TaskSpec};
use millpond_bench::alloc::{self, CountingAlloc};
use millpond_bench::harness::{Settings, Workload};
use millpond_bench::progress::Silent;
use millpond_bench::workloads::task;
use millpond_raw::sync::thread;
use std::sync::Arc;
use std::time::Duration;

#[global_allocator]
static ALLOC: CountingAlloc = CountingAlloc::new();

fn main() -> Result<()> {
    counting_finds_exactly_what_is_allocated()?;
    a_task_allocates_nothing_once_warm(&task::round_trip())?;
    a_task_in_memory_of_its_own_is_one_allocation()?;
    tasks_from_one_thread_to_another_allocate_next_to_nothing_once_warm()?;
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

fn a_task_allocates_nothing_once_warm(workload: &Workload) -> Result<()> {
    let settings = Settings {
        rounds: 1,
        round_time: Duration::from_micros(100),
    };
    let rows = workload.measure(settings, Some(&ALLOC), &Silent)?.rows;
    let ours = rows.iter().find(|row| row.standing.is_ours());
    let ours = ours.context("there is no row of ours")?;
    let allocations = ours.per_operation.allocations;
    ensure!(
        allocations == Some(0.0),
        "make, run and join costs {allocations:?} allocations instead of none"
    );
    Ok(())
}

/// Larger than any slab, so that it has memory of its own, which is never warm.
fn a_task_in_memory_of_its_own_is_one_allocation() -> Result<()> {
    let large = [1_u8; 1000];
    let (sum, counts) = ALLOC.count(|| {
        let (task, handle) =
            millpond::task::new(move || large.iter().copied().map(u32::from).sum());
        let _ = task.run();
        handle.join()
    });
    let sum: u32 = sum?;
    ensure!(
        (sum, counts.allocations, counts.frees) == (1000, 1, 1),
        "a task in memory of its own: {counts:?}"
    );
    Ok(())
}

/// What the consumer takes: a task, or `None` to end.
type Belt = Arc<FifoQueue<Option<Task>>>;

/// How often a round is sent while allocations are counted.
const ROUNDS: u64 = 5;

fn tasks_from_one_thread_to_another_allocate_next_to_nothing_once_warm() -> Result<()> {
    let belt: Belt = Arc::new(FifoQueue::bounded(1024)?);
    let consumer = thread::spawn({
        let belt = Arc::clone(&belt);
        move || {
            while let Some(task) = belt.take().expect("nobody interrupts the consumer") {
                let _ = task.run();
            }
        }
    });
    for _ in 0..5 {
        send_round(&belt)?;
    }
    let (sent, counts) = ALLOC.count(|| (0..ROUNDS).try_for_each(|_| send_round(&belt)));
    sent?;
    belt.put(None).ok().context("the belt takes the end")?;
    consumer.join().ok().context("the consumer ends well")?;
    // Who waits for the last task of a round, or runs far ahead of the other, may find no memory on its
    // own rack now and then: one in a thousand tasks would be too many.
    ensure!(
        counts.allocations <= 20 * ROUNDS,
        "{ROUNDS} times 20,001 tasks from one thread to another: {counts:?} instead of next to none"
    );
    Ok(())
}

/// Small tasks, tasks with a name and more to carry, and one that is waited for.
fn send_round(belt: &Belt) -> Result<()> {
    let put = |task| belt.put(Some(task)).ok().context("the belt takes a task");
    for number in 0..10_000_u64 {
        let small = move || {
            std::hint::black_box(number);
        };
        put(TaskSpec::new().build_detached(small))?;
        // As large a slab as the lists of whoever has to wait for the last one.
        let more = [number; 8];
        let named = TaskSpec::new().name("carries more");
        let carries = move || {
            std::hint::black_box(more);
        };
        put(named.build_detached(carries))?;
    }
    let (last, handle) = millpond::task::new(|| ());
    put(last)?;
    Ok(handle.join()?)
}
