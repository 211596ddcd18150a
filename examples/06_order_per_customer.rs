//! How do I keep the order of each customer's tasks?
//!
//! ```sh
//! cargo run -p examples --example 06_order_per_customer
//! ```
//!
//! ```text
//! alice: order, pay, collect
//! bob: order, pay, collect
//! keys with something to do: 0
//! ```

#![forbid(unsafe_code)]

use millpond::executor::{ExecutorExt, Lifecycle, SaturationPolicy, SerialExecutor, ThreadPerTask};
use millpond::queue::{BlockingQueue, FifoQueue, QueueExt};
use std::error::Error;
use std::sync::Arc;

fn main() -> Result<(), Box<dyn Error>> {
    let done = Arc::new(FifoQueue::unbounded());
    // Tasks of one key run one at a time, in order; those of different keys beside each other.
    let threads = ThreadPerTask::builder("shop", 4).at_bound(SaturationPolicy::Block);
    let shop = SerialExecutor::new(threads.build()?);
    for step in ["order", "pay", "collect"] {
        for customer in ["alice", "bob"] {
            let done = Arc::clone(&done);
            shop.key(customer)
                .execute(move || done.put((customer, step)).expect("it has no bound"))?;
        }
    }
    shop.inner().close()?;

    let all = done.snapshot();
    for customer in ["alice", "bob"] {
        let steps: Vec<&str> = all
            .iter()
            .filter(|(who, _)| *who == customer)
            .map(|(_, step)| *step)
            .collect();
        println!("{customer}: {}", steps.join(", "));
    }
    println!("keys with something to do: {}", shop.busy_keys());
    Ok(())
}
