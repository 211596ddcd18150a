//! How do I change a pool while it runs?
//!
//! ```sh
//! cargo run -p examples --example 13_pool_live_resize
//! ```
//!
//! ```text
//! 1 worker, 5 tasks wait
//! 4 workers, 2 tasks wait
//! rejected as a whole: core 4 is above max 3: raise max or lower core, or change both at once
//! still core 4, max 4, capacity 100
//! 2 workers are left, and no task was interrupted
//! ```

#![forbid(unsafe_code)]

use millpond::executor::{ExecutorExt, Lifecycle};
use millpond::interrupt;
use millpond::manage::Patch;
use millpond::pool::{Queue, ThreadPool};
use millpond::queue::{BlockingQueue, FifoQueue};
use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

fn main() -> Result<(), Box<dyn Error>> {
    let pool = ThreadPool::builder("mill")
        .core(1)
        .max(1)
        .queue(Queue::bounded(100))
        .build()?;
    let sluice = Arc::new(FifoQueue::unbounded());
    let tasks: Vec<_> = (0..6)
        .map(|_| {
            let water = Arc::clone(&sluice);
            pool.submit(move || water.take())
        })
        .collect::<Result<_, _>>()?;
    until(|| pool.snapshot().active == 1);
    let now = pool.snapshot();
    println!("{} worker, {} tasks wait", now.workers, now.queued);

    // More workers, at once: they start for what waits. Several parameters change together.
    pool.apply(&Patch::new().core(4).max(4))?;
    until(|| pool.snapshot().queued == 2);
    let now = pool.snapshot();
    println!("{} workers, {} tasks wait", now.workers, now.queued);

    // All or nothing: an invalid patch changes nothing.
    let error = pool.apply(&Patch::new().max(3).capacity(5)).unwrap_err();
    println!("rejected as a whole: {error}");
    let (core, max) = (pool.core(), pool.max());
    let capacity = pool.capacity().unwrap_or(usize::MAX);
    println!("still core {core}, max {max}, capacity {capacity}");

    // Fewer workers: those that are busy finish what they do, then they leave.
    pool.apply(&Patch::new().core(2).max(2))?;
    for _ in 0..6 {
        sluice.put("water")?;
    }
    for task in tasks {
        assert_eq!(task.join()??, "water");
    }
    until(|| pool.snapshot().workers == 2);
    println!("2 workers are left, and no task was interrupted");
    pool.close()?;
    Ok(())
}

fn until(reached: impl Fn() -> bool) {
    while !reached() {
        let _ = interrupt::sleep(Duration::from_millis(1));
    }
}
