//! How do I wait with a timeout, and cancel?
//!
//! ```sh
//! cargo run -p examples --example 02_wait_and_cancel
//! ```
//!
//! ```text
//! after 20 ms: the task was not finished within the timeout
//! waited again: rye
//! cancelled in time: true
//! its handle: the task was cancelled: a handle requested it
//! the body went on and took: oats
//! ```

#![forbid(unsafe_code)]

use millpond::executor::{ExecutorExt, Lifecycle, ThreadPerTask};
use millpond::queue::{BlockingQueue, FifoQueue};
use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

fn main() -> Result<(), Box<dyn Error>> {
    let threads = ThreadPerTask::builder("mill", 4).build()?;
    let grain = Arc::new(FifoQueue::unbounded());
    let taken = Arc::new(FifoQueue::unbounded());

    let from = Arc::clone(&grain);
    let mut handle = threads.submit(move || from.take())?;
    if let Err(error) = handle.join_timeout(Duration::from_millis(20)) {
        println!("after 20 ms: {error}");
    }
    // A timeout ends the wait and not the task, so one can wait again.
    grain.put("rye")?;
    println!("waited again: {}", handle.join()??);

    let (from, to) = (Arc::clone(&grain), Arc::clone(&taken));
    let begun = Arc::new(FifoQueue::unbounded());
    let begin = Arc::clone(&begun);
    let handle = threads.submit(move || {
        begin.put(()).expect("it is not interrupted");
        let grain = from.take().expect("it is not interrupted");
        to.put(grain).expect("it is not interrupted");
    })?;
    begun.take()?;
    // Cancelling finishes the handle at once. A body that has begun goes on: to ask it to stop,
    // interrupt (03_stop_a_task).
    println!("cancelled in time: {}", handle.cancel());
    if let Err(error) = handle.join() {
        println!("its handle: {error}");
    }
    grain.put("oats")?;
    threads.close()?;
    println!("the body went on and took: {}", taken.take()?);
    Ok(())
}
