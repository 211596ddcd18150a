//! What happens to a task when my pool is full?
//!
//! ```sh
//! cargo run -p examples --example 12_pool_refusal
//! ```
//!
//! ```text
//! refused: the executor is saturated (1 of 1 places in its queue taken, its only worker busy): try again later, or give it more room
//! and here is the closure again: it owns "barley"
//! the handler keeps "oats" for later
//! later: ground oats
//! ```

#![forbid(unsafe_code)]

use millpond::executor::ExecutorExt;
use millpond::pool::{Queue, Rejection, ThreadPool};
use millpond::queue::{BlockingQueue, LinkedQueue};
use millpond::task::{Task, TaskSpec};
use std::error::Error;
use std::sync::Arc;

fn main() -> Result<(), Box<dyn Error>> {
    let pool = ThreadPool::builder("mill")
        .core(1)
        .max(1)
        .queue(Queue::bounded(1))
        .build()?;
    // One task that runs until it is told to stop, and one that waits behind it.
    let stop = Arc::new(LinkedQueue::unbounded());
    let until = Arc::clone(&stop);
    let running = pool.submit(move || until.take())?;
    let waiting = pool.submit(|| "rye")?;

    // The policy is `Abort`, unless you choose another: everything comes back.
    let grain = String::from("barley");
    let refused = pool.submit(move || grain).unwrap_err();
    println!("refused: {}", refused.reason);
    println!(
        "and here is the closure again: it owns {:?}",
        (refused.task)()
    );

    // A policy of your own. Here it keeps the task for later; dropping it would cancel its handle.
    let later: Arc<LinkedQueue<Task>> = Arc::new(LinkedQueue::unbounded());
    let shelf = Arc::clone(&later);
    pool.set_rejection(Rejection::custom(move |task, refusal| {
        println!(
            "the handler keeps {:?} for later",
            task.name().unwrap_or("a task")
        );
        match shelf.offer(task) {
            Ok(()) => Ok(()),
            Err(full) => refusal.give_back(full.element),
        }
    }));
    let kept = pool.submit_spec(TaskSpec::new().name("oats"), || "ground oats")?;

    stop.put(())?;
    running.join()??;
    assert_eq!(waiting.join()?, "rye");
    while let Some(task) = later.poll() {
        task.run();
    }
    println!("later: {}", kept.join()?);
    Ok(())
}
