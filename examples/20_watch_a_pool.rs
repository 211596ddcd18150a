//! What is my pool doing, and what does it do when a task hangs?
//!
//! ```sh
//! cargo run -p examples --example 20_watch_a_pool
//! ```
//!
//! ```text
//! # Metrics, by name
//! sieve: 3 tasks, 12s together
//! # A task hangs, and others wait behind it
//! mill is running: 1 of 1 worker busy, 2 tasks in the queue, which has room for 100.
//! Tasks wait because its only worker is busy, and there may be no more than 1.
//! At this pace the queue drains in about 8.0 s.
//! Half of its tasks waited for up to about 0 s (99 %: 0 s) and ran for up to about 2.0 s (99 %: 8.9 s).
//! grind is on 1 worker.
//! mill-1 has been running grind for 12 s, and no other of its kind has ended.
//! worker 1: grind
//! # The watch sees to it
//! notice: grind has been running for more than 30s
//! notice: it has been interrupted: true
//! grind: interrupted: the running task was asked to stop
//! mill has ended.
//! Half of its tasks waited for up to about 0 s (99 %: 33 s) and ran for up to about 990 ms (99 %: 32 s).
//! So far: 1 task reported for running too long.
//! tasks that ran too long: 1
//! ```

#![forbid(unsafe_code)]

use millpond::executor::{ExecutorExt, Lifecycle};
use millpond::interrupt;
use millpond::pool::{PoolEvent, Queue, RunWarning, ThreadPool};
use millpond::task::{TaskHandle, TaskSpec};
use millpond::time::ManualClock;
use std::error::Error;
use std::time::Duration;

fn main() -> Result<(), Box<dyn Error>> {
    // A clock that only we move, so that this prints the same each time and takes no time.
    let hand = ManualClock::new();
    let limit = RunWarning::after(Duration::from_secs(30)).interrupts();
    let pool = ThreadPool::builder("mill")
        .max(1)
        .queue(Queue::bounded(100))
        .clock(hand.clock())
        .run_warning_for("grind", limit)
        .on_event(tell)
        .build()?;

    println!("# Metrics, by name");
    for takes in [1, 2, 9] {
        sieve(&pool, &hand, Duration::from_secs(takes))?.join()?;
    }
    // The metrics have it a moment after its handle.
    while pool.metrics().completed < 3 {
        interrupt::sleep(Duration::from_millis(1))?;
    }
    for named in pool.metrics_by_name() {
        let (done, run) = (named.metrics.completed, named.metrics.run);
        let all = run.total();
        println!("{}: {done} tasks, {all:?} together", named.label);
    }

    println!("# A task hangs, and others wait behind it");
    let spec = TaskSpec::new().name("grind");
    let hangs = pool.submit_with(spec, || interrupt::sleep(Duration::MAX))?;
    while !hangs.is_started() {
        interrupt::sleep(Duration::from_millis(1))?;
    }
    let waiting = [
        sieve(&pool, &hand, Duration::from_secs(1))?,
        sieve(&pool, &hand, Duration::from_secs(1))?,
    ];
    hand.advance(Duration::from_secs(12));
    for sentence in pool.explain().sentences() {
        println!("{sentence}");
    }
    for worker in pool.workers() {
        let task = worker.task.ok_or("it has nothing to do")?;
        println!("worker {}: {}", worker.number, task.label);
    }

    println!("# The watch sees to it");
    hand.advance(Duration::from_secs(20));
    println!("grind: {}", hangs.join()?.unwrap_err());
    for task in waiting {
        task.join()?;
    }
    pool.close()?;
    for sentence in pool.explain().sentences() {
        println!("{sentence}");
    }
    println!("tasks that ran too long: {}", pool.health().long_runs);
    Ok(())
}

/// Submits a task that takes so long.
fn sieve(
    pool: &ThreadPool,
    hand: &ManualClock,
    takes: Duration,
) -> Result<TaskHandle<()>, Box<dyn Error>> {
    let hand = hand.clone();
    let spec = TaskSpec::new().name("sieve");
    Ok(pool.submit_with(spec, move || hand.advance(takes))?)
}

/// The events of the pool. `println!("{notice}")` would say more: the thread, where the task
/// was made and, with the feature `stack-dump`, where it is.
fn tell(notice: &PoolEvent) {
    if let PoolEvent::LongRunning(run) = notice {
        let limit = run.limit;
        println!(
            "notice: {} has been running for more than {limit:?}",
            run.label
        );
        println!("notice: it has been interrupted: {}", run.is_interrupted);
    }
}
