//! How do I stop a running task?
//!
//! ```sh
//! cargo run -p examples --example 03_stop_a_task
//! ```
//!
//! ```text
//! the handle: the task was cancelled: a handle requested it
//! the waiting task: interrupted: the running task was asked to stop
//! the computing task: stopped between two rounds
//! ```

#![forbid(unsafe_code)]

use millpond::executor::{ExecutorExt, Lifecycle, ThreadPerTask};
use millpond::interrupt;
use millpond::queue::{BlockingQueue, FifoQueue};
use std::error::Error;
use std::sync::Arc;

fn main() -> Result<(), Box<dyn Error>> {
    let threads = ThreadPerTask::builder("mill", 4).build()?;
    let begun = Arc::new(FifoQueue::unbounded());
    let ends = Arc::new(FifoQueue::unbounded());

    // Every blocking call of millpond obeys an interrupt. The task sees an error, like any other,
    // and cleans up in its own time.
    let (begin, end) = (Arc::clone(&begun), Arc::clone(&ends));
    let waits = threads.submit(move || {
        begin.put(()).expect("it is not interrupted yet");
        let empty: FifoQueue<u32> = FifoQueue::unbounded();
        if let Err(interrupted) = empty.take() {
            end.put(interrupted.to_string()).expect("reported once");
        }
    })?;
    begun.take()?;
    waits.interrupt();
    if let Err(error) = waits.join() {
        println!("the handle: {error}");
    }
    println!("the waiting task: {}", ends.take()?);

    // A task that does not block asks now and then.
    let (begin, end) = (Arc::clone(&begun), Arc::clone(&ends));
    let computes = threads.submit(move || {
        begin.put(()).expect("it is not interrupted yet");
        while interrupt::check().is_ok() {
            std::hint::spin_loop();
        }
        let last_words = "stopped between two rounds".to_owned();
        end.put(last_words).expect("reported once");
    })?;
    begun.take()?;
    computes.interrupt();
    threads.close()?;
    println!("the computing task: {}", ends.take()?);
    Ok(())
}
