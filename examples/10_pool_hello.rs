//! How do I run closures on a pool of threads?
//!
//! ```sh
//! cargo run -p examples --example 10_pool_hello
//! ```
//!
//! ```text
//! the sum is 5000000050000000
//! squares: 1 4 9 16 25
//! mill: terminated, 0 of 0 workers busy (core 2, max 2, most ever 2), 0 queued of 1024, 6 completed, 0 rejected
//! ```

#![forbid(unsafe_code)]

use millpond::executor::{ExecutorExt, Lifecycle};
use millpond::preset;
use std::error::Error;

fn main() -> Result<(), Box<dyn Error>> {
    // Two workers, named mill-1 and mill-2, and at most 1024 tasks that wait.
    let pool = preset::fixed("mill", 2).build()?;

    // Closures in, handles out. A handle can be joined, or awaited.
    let sum = pool.submit(|| (1..=100_000_000_u64).sum::<u64>())?;
    println!("the sum is {}", sum.join()?);

    // Many at once; the results come in the order of the closures.
    let squares = pool.invoke_all((1..=5).map(|n| move || (n * n).to_string()))?;
    let squares: Vec<String> = squares.into_iter().collect::<Result<_, _>>()?;
    println!("squares: {}", squares.join(" "));

    // Takes nothing new, runs what is there, waits for the end.
    pool.close()?;
    println!("{}", pool.snapshot());
    Ok(())
}
