//! How do I slow down producers that are faster than my pool?
//!
//! ```sh
//! cargo run -p examples --example 11_pool_back_pressure
//! ```
//!
//! ```text
//! block: 1000 tasks done, never more than 8 waited
//! caller runs: 1000 tasks done, never more than 8 waited
//! ```

#![forbid(unsafe_code)]

use millpond::executor::{ExecutorExt, Lifecycle};
use millpond::pool::{Queue, RejectionPolicy, ThreadPool};
use std::error::Error;
use std::time::Duration;

fn main() -> Result<(), Box<dyn Error>> {
    // The producer waits for room, an hour if need be; then the closure would come back.
    grind("block", RejectionPolicy::Block(Duration::from_secs(3600)))?;
    // Or the producer does the work itself. That brakes it, and needs no timeout.
    grind("caller runs", RejectionPolicy::CallerRuns)?;
    Ok(())
}

fn grind(name: &'static str, when_full: RejectionPolicy) -> Result<(), Box<dyn Error>> {
    let pool = ThreadPool::builder(name)
        .core(2)
        .max(2)
        .queue(Queue::bounded(8))
        .rejection(when_full)
        .build()?;
    let mut most_waiting = 0;
    for sack in 0..1000_u64 {
        pool.execute(move || {
            std::hint::black_box((0..sack).sum::<u64>());
        })?;
        most_waiting = most_waiting.max(pool.snapshot().queued);
    }
    pool.close()?;
    let snapshot = pool.snapshot();
    let done = snapshot.completed;
    assert!(most_waiting <= 8);
    println!("{name}: {done} tasks done, never more than 8 waited");
    Ok(())
}
