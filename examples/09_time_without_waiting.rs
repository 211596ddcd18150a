//! How do I test code about time without waiting?
//!
//! ```sh
//! cargo run -p examples --example 09_time_without_waiting
//! ```
//!
//! ```text
//! at once: None
//! an hour later: Some("session")
//! a day's timeout: the task was not finished within the timeout
//! ```

#![forbid(unsafe_code)]

use millpond::executor::{ExecutorExt, Lifecycle, ThreadPerTask};
use millpond::queue::{BlockingQueue, DelayQueue, FifoQueue};
use millpond::time::ManualClock;
use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

const HOUR: Duration = Duration::from_secs(3600);

fn main() -> Result<(), Box<dyn Error>> {
    // Code that waits takes a clock, and the test advances it.
    let hand = ManualClock::new();

    let sessions = DelayQueue::new().with_clock(hand.clock());
    sessions.offer_after("session", HOUR)?;
    println!("at once: {:?}", sessions.poll());
    hand.advance(HOUR);
    println!("an hour later: {:?}", sessions.poll());

    let threads = ThreadPerTask::builder("mill", 4)
        .clock(hand.clock())
        .build()?;
    let never = Arc::new(FifoQueue::<u32>::unbounded());
    let from = Arc::clone(&never);
    let mut handle = threads.submit(move || from.take())?;
    let tomorrow = hand.clock().deadline(24 * HOUR);
    // Another thread moves the clock while this one waits by it.
    threads.execute(move || hand.advance(24 * HOUR))?;
    if let Err(error) = handle.join_until(tomorrow) {
        println!("a day's timeout: {error}");
    }
    handle.interrupt();
    threads.close()?;
    Ok(())
}
