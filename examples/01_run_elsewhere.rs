//! How do I run a closure elsewhere and get its result?
//!
//! ```sh
//! cargo run -p examples --example 01_run_elsewhere
//! ```
//!
//! ```text
//! computed in thread mill-1: 20! = 2432902008176640000
//! a panic comes to the handle: the task panicked: the dam broke
//! ```

#![forbid(unsafe_code)]

use millpond::executor::{ExecutorExt, Lifecycle, ThreadPerTask};
use std::error::Error;
use std::thread;

fn main() -> Result<(), Box<dyn Error>> {
    // At most 4 threads at a time; a fifth task would be rejected.
    let threads = ThreadPerTask::builder("mill", 4).build()?;

    let handle = threads.submit(|| {
        let product: u64 = (1..=20).product();
        (thread::current().name().map(str::to_owned), product)
    })?;
    // In async code: `handle.await?`.
    let (thread, product) = handle.join()?;
    let thread = thread.unwrap_or_default();
    println!("computed in thread {thread}: 20! = {product}");

    // `resume_unwind` is a panic without a message on the terminal.
    let broken =
        threads.submit(|| -> u64 { std::panic::resume_unwind(Box::new("the dam broke")) })?;
    if let Err(error) = broken.join() {
        println!("a panic comes to the handle: {error}");
    }

    threads.close()?;
    Ok(())
}
