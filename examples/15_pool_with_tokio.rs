//! How do I keep blocking or heavy work out of my async runtime?
//!
//! ```sh
//! cargo run -p examples --example 15_pool_with_tokio
//! ```
//!
//! ```text
//! three requests, answered in order: a digest of 1 MB, 2 MB, 3 MB
//! the pool is full: answer 503 at once, and keep the runtime free
//! ```

#![forbid(unsafe_code)]

use millpond::executor::{ExecutorExt, Lifecycle};
use millpond::pool::{Queue, ThreadPool};
use millpond::queue::{BlockingQueue, FifoQueue};
use std::error::Error;
use std::sync::Arc;

fn main() -> Result<(), Box<dyn Error>> {
    let runtime = tokio::runtime::Builder::new_current_thread().build()?;
    // Two threads for heavy work, at most four requests that wait.
    let heavy = ThreadPool::builder("heavy")
        .core(2)
        .max(2)
        .queue(Queue::bounded(4))
        .build()?;

    runtime.block_on(async {
        // A handle is a future. The runtime's threads stay free while the pool works.
        let one = heavy.submit(|| digest(1))?;
        let two = heavy.submit(|| digest(2))?;
        let three = heavy.submit(|| digest(3))?;
        let answers = [one.await?, two.await?, three.await?];
        println!(
            "three requests, answered in order: a digest of {}",
            answers.join(", ")
        );
        Ok::<_, Box<dyn Error>>(())
    })?;

    // `submit` never waits, unless the policy says so: an async caller is never blocked by surprise.
    let gate = Arc::new(FifoQueue::unbounded());
    let mut held = 0;
    let rejected = loop {
        let gate = Arc::clone(&gate);
        match heavy.submit(move || gate.take()) {
            Ok(_) => held += 1,
            Err(rejected) => break rejected,
        }
    };
    assert!(rejected.reason.is_saturated());
    println!("the pool is full: answer 503 at once, and keep the runtime free");
    (0..held).try_for_each(|_| gate.put(()))?;
    heavy.close()?;
    Ok(())
}

fn digest(megabytes: usize) -> String {
    let sum = vec![1_u8; megabytes << 20]
        .iter()
        .fold(0_u32, |sum, byte| sum.rotate_left(1) ^ u32::from(*byte));
    assert!(sum < u32::MAX);
    format!("{megabytes} MB")
}
