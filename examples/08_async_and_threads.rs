//! How do I connect async code and threads with a queue?
//!
//! ```sh
//! cargo run -p examples --example 08_async_and_threads
//! ```
//!
//! ```text
//! 1 squared is 1
//! 2 squared is 4
//! 3 squared is 9
//! ```

#![forbid(unsafe_code)]

use millpond::executor::{ExecutorExt, Lifecycle, ThreadPerTask};
use millpond::queue::{AsyncQueue, BlockingQueue, FifoQueue};
use std::error::Error;
use std::sync::Arc;

fn main() -> Result<(), Box<dyn Error>> {
    // One queue, both worlds: threads `put` and `take`, async code has `send` and `recv`.
    let questions = Arc::new(FifoQueue::bounded(1)?);
    let answers = Arc::new(FifoQueue::unbounded());

    let threads = ThreadPerTask::builder("worker", 1).build()?;
    let (from, to) = (Arc::clone(&questions), Arc::clone(&answers));
    // `None` says that no more will come.
    let worker = threads.submit(move || {
        while let Ok(Some(number)) = from.take() {
            to.put((number, number * number)).expect("it has no bound");
        }
    })?;

    let runtime = tokio::runtime::Builder::new_current_thread().build()?;
    runtime.block_on(async {
        for number in 1..=3 {
            questions.send(Some(number)).await?;
        }
        questions.send(None).await?;
        for _ in 1..=3 {
            let (number, square) = answers.recv().await;
            println!("{number} squared is {square}");
        }
        // A handle is a future too.
        worker.await?;
        Ok::<(), Box<dyn Error>>(())
    })?;
    threads.close()?;
    Ok(())
}
