//! What becomes of accepted tasks when `main` returns?
//!
//! ```sh
//! cargo run -p examples --example 38_main_ends
//! ```
//!
//! ```text
//! main returns at once: 0 of 3 orders were written
//! main closes the pool first: 3 of 3 orders were written
//! ```

#![forbid(unsafe_code)]

use millpond::interrupt;
use millpond::prelude::*;
use std::error::Error;
use std::process::Command;
use std::sync::mpsc;
use std::time::Duration;

/// A program that submits three tasks and ends.
fn program(closes: bool) -> Result<(), Box<dyn Error>> {
    let pool = preset::single("orders").build()?;
    let (returns, returned) = mpsc::channel::<()>();
    pool.execute(move || {
        // Until `main` is about to end, and then it takes a moment.
        let _ = returned.recv();
        let _ = interrupt::sleep(Duration::from_millis(200));
    })?;
    for order in 1..=3 {
        pool.execute(move || println!("order {order}"))?;
    }
    drop(returns);
    if closes {
        pool.close()?;
    }
    Ok(())
}

fn main() -> Result<(), Box<dyn Error>> {
    if let Some(how) = std::env::args().nth(1) {
        return program(how == "closes");
    }
    let own = std::env::current_exe()?;
    for (how, what) in [
        ("returns", "main returns at once"),
        ("closes", "main closes the pool first"),
    ] {
        let output = Command::new(&own).arg(how).output()?;
        let written = String::from_utf8(output.stdout)?.lines().count();
        println!("{what}: {written} of 3 orders were written");
    }
    Ok(())
}
