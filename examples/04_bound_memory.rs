//! How do I bound memory between producers and consumers?
//!
//! ```sh
//! cargo run -p examples --example 04_bound_memory
//! ```
//!
//! ```text
//! sack 3 comes back: the queue has no room now
//! ground 1, 2, 3, 4, 5, 6
//! with room for 100: 98 more would fit
//! ```

#![forbid(unsafe_code)]

use millpond::executor::{ExecutorExt, Lifecycle, ThreadPerTask};
use millpond::queue::{BlockingQueue, FifoQueue};
use std::error::Error;
use std::sync::Arc;

fn main() -> Result<(), Box<dyn Error>> {
    let queue = Arc::new(FifoQueue::bounded(2)?);
    queue.offer(1)?;
    queue.offer(2)?;
    // `offer` does not wait. A rejected element is yours again.
    if let Err(full) = queue.offer(3) {
        println!("sack {} comes back: {}", full.element, full.reason);
    }

    // `put` waits for room: the producer is held back to the consumer's pace.
    let threads = ThreadPerTask::builder("mill", 4).build()?;
    let into = Arc::clone(&queue);
    let producer = threads.submit(move || (3..=6).try_for_each(|sack| into.put(sack)))?;
    let mut ground = Vec::new();
    while ground.len() < 6 {
        assert!(queue.len() <= 2);
        ground.push(queue.take()?.to_string());
    }
    producer.join()??;
    println!("ground {}", ground.join(", "));

    // The bound can be changed while the queue is in use.
    queue.set_capacity(100)?;
    queue.put(7)?;
    queue.put(8)?;
    let room = queue.remaining_capacity();
    println!("with room for 100: {room} more would fit");
    threads.close()?;
    Ok(())
}
