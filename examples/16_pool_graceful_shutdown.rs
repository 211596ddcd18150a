//! How do I end my service without losing work?
//!
//! ```sh
//! cargo run -p examples --example 16_pool_graceful_shutdown
//! ```
//!
//! ```text
//! after the shutdown nothing is accepted: the executor has been shut down: it takes no more tasks
//! not done in time: stop what runs, keep the rest
//! the running task was asked to stop, and saved its place
//! 3 tasks never started: order-1, order-2, order-3
//! terminated
//! ```

#![forbid(unsafe_code)]

use millpond::executor::{ExecutorExt, Lifecycle};
use millpond::interrupt;
use millpond::preset;
use millpond::task::TaskSpec;
use std::error::Error;
use std::sync::mpsc;
use std::time::Duration;

fn main() -> Result<(), Box<dyn Error>> {
    let pool = preset::single("orders").build()?;
    let (started, has_started) = mpsc::channel();
    let (say, said) = mpsc::channel();
    pool.execute(move || {
        let _ = started.send(());
        // A long task, but a polite one: an interrupt ends its sleep.
        if interrupt::sleep(Duration::from_secs(3600)).is_err() {
            let _ = say.send("the running task was asked to stop, and saved its place");
        }
    })?;
    has_started.recv()?;
    for number in 1..=3 {
        let spec = TaskSpec::new().name(format!("order-{number}"));
        drop(pool.submit_with(spec, || ())?);
    }

    // First gently: nothing new, and what is there may finish.
    pool.shutdown();
    let rejected = pool.execute(|| ()).unwrap_err();
    println!(
        "after the shutdown nothing is accepted: {}",
        rejected.reason
    );
    if !pool.await_termination_timeout(Duration::from_millis(20))? {
        // Then firmly: what has not started comes back, to be written down for the next start.
        println!("not done in time: stop what runs, keep the rest");
        let unstarted = pool.shutdown_now();
        println!("{}", said.recv()?);
        let names: Vec<_> = unstarted.iter().filter_map(|task| task.name()).collect();
        println!("{} tasks never started: {}", names.len(), names.join(", "));
    }
    pool.await_termination()?;
    assert!(pool.is_terminated());
    println!("terminated");
    Ok(())
}
