//! What happens to a task when my pool is full?
//!
//! ```sh
//! cargo run -p examples --example 12_pool_rejection
//! ```
//!
//! ```text
//! rejected: the queue is full (1 of 1) and the only worker is busy: try again later, or give it more room
//! and here is the closure again: it owns "barley"
//! the handler keeps "oats" for later
//! later: ground oats
//! ```

#![forbid(unsafe_code)]

use millpond::executor::ExecutorExt;
use millpond::pool::{Queue, RejectionPolicy, ThreadPool};
use millpond::queue::{BlockingQueue, FifoQueue};
use millpond::task::{Task, TaskSpec};
use std::error::Error;
use std::sync::Arc;

fn main() -> Result<(), Box<dyn Error>> {
    let pool = ThreadPool::builder("mill")
        .core(1)
        .max(1)
        .queue(Queue::bounded(1))
        .build()?;
    // One task that runs until it is interrupted, and one that waits behind it.
    let stop = Arc::new(FifoQueue::unbounded());
    let until = Arc::clone(&stop);
    let running = pool.submit(move || until.take())?;
    let waiting = pool.submit(|| "rye")?;

    // The policy is `Abort`, unless you choose another: everything comes back.
    let grain = String::from("barley");
    let rejected = pool.submit(move || grain).unwrap_err();
    println!("rejected: {}", rejected.reason);
    println!(
        "and here is the closure again: it owns {:?}",
        (rejected.task)()
    );

    // A policy of your own. Here it keeps the task for later; dropping it would cancel its handle.
    let later: Arc<FifoQueue<Task>> = Arc::new(FifoQueue::unbounded());
    let shelf = Arc::clone(&later);
    pool.set_rejection(RejectionPolicy::custom(move |task, context| {
        println!(
            "the handler keeps {:?} for later",
            task.name().unwrap_or("a task")
        );
        match shelf.offer(task) {
            Ok(()) => Ok(()),
            Err(full) => context.give_back(full.element),
        }
    }));
    let kept = pool.submit_with(TaskSpec::new().name("oats"), || "ground oats")?;

    stop.put(())?;
    running.join()??;
    assert_eq!(waiting.join()?, "rye");
    while let Some(task) = later.poll() {
        task.run();
    }
    println!("later: {}", kept.join()?);
    Ok(())
}
