//! How do I cancel work that a pool has not done yet?
//!
//! ```sh
//! cargo run -p examples --example 14_pool_cancellation
//! ```
//!
//! ```text
//! queued: the task was cancelled: a handle requested it
//! its place is free again: another task fits
//! running: it noticed, after some rounds
//! removed: the task was cancelled: it was removed from its queue
//! ```

#![forbid(unsafe_code)]

use millpond::executor::{ExecutorExt, Lifecycle};
use millpond::interrupt;
use millpond::pool::{Queue, ThreadPool};
use std::error::Error;
use std::sync::mpsc;

fn main() -> Result<(), Box<dyn Error>> {
    let pool = ThreadPool::builder("mill")
        .core(1)
        .max(1)
        .queue(Queue::bounded(1))
        .build()?;
    // A long task looks at its token now and then. Blocking calls of millpond do so by themselves.
    let (begin, begun) = mpsc::channel();
    let (noticed, wait_for_it) = mpsc::channel();
    let running = pool.submit(move || {
        let _ = begin.send(());
        while interrupt::check().is_ok() {
            std::hint::spin_loop();
        }
        noticed.send("it noticed, after some rounds")
    })?;
    begun.recv()?;

    // A task that waits is gone at once, with all that its closure owns.
    let queued = pool.submit(|| "never")?;
    queued.cancel();
    println!("queued: {}", queued.join().unwrap_err());
    let next = pool.submit(|| "next")?;
    println!("its place is free again: another task fits");

    // A task that runs is asked to stop; nothing is killed.
    running.interrupt();
    println!("running: {}", wait_for_it.recv()?);
    assert_eq!(next.join()?, "next");

    // Taking a task out of the queue cancels it, too.
    let (hold, held) = mpsc::channel::<()>();
    let (begin, begun) = mpsc::channel();
    pool.execute(move || {
        let _ = begin.send(());
        let _ = held.recv();
    })?;
    begun.recv()?;
    let unwanted = pool.submit(|| "never")?;
    assert!(pool.remove(&unwanted));
    println!("removed: {}", unwanted.join().unwrap_err());
    drop(hold);
    pool.close()?;
    Ok(())
}
