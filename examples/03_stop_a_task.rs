//! How do I stop a running task?
//!
//! ```sh
//! cargo run -p examples --example 03_stop_a_task
//! ```
//!
//! ```text
//! the handle: task cancelled: cancelled on request
//! who waited: interrupted: the running task was asked to stop
//! who computed: stopped between two rounds
//! ```

#![forbid(unsafe_code)]

use millpond::executor::{ExecutorExt, Lifecycle, ThreadPerTask};
use millpond::interrupt;
use millpond::queue::{BlockingQueue, LinkedQueue};
use std::error::Error;
use std::sync::Arc;

fn main() -> Result<(), Box<dyn Error>> {
    let threads = ThreadPerTask::builder("mill", 4).build()?;
    let begun = Arc::new(LinkedQueue::unbounded());
    let ends = Arc::new(LinkedQueue::unbounded());

    // Every blocking call of millpond obeys an interrupt. The task sees an error, like any other,
    // and cleans up in its own time.
    let (begin, end) = (Arc::clone(&begun), Arc::clone(&ends));
    let waits = threads.submit(move || {
        begin.put(()).expect("nobody interrupts it yet");
        let empty: LinkedQueue<u32> = LinkedQueue::unbounded();
        if let Err(interrupted) = empty.take() {
            end.put(interrupted.to_string()).expect("reported once");
        }
    })?;
    begun.take()?;
    waits.interrupt();
    if let Err(error) = waits.join() {
        println!("the handle: {error}");
    }
    println!("who waited: {}", ends.take()?);

    // A task that does not block asks now and then.
    let (begin, end) = (Arc::clone(&begun), Arc::clone(&ends));
    let computes = threads.submit(move || {
        begin.put(()).expect("nobody interrupts it yet");
        while interrupt::check().is_ok() {
            std::hint::spin_loop();
        }
        let last_words = "stopped between two rounds".to_owned();
        end.put(last_words).expect("reported once");
    })?;
    begun.take()?;
    computes.interrupt();
    threads.close()?;
    println!("who computed: {}", ends.take()?);
    Ok(())
}
