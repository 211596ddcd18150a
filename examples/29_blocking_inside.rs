//! What happens if tasks of a fork-join pool block?
//!
//! Others go on: spare workers take their places. At the bound they wait, and the pool says so.
//!
//! ```sh
//! cargo run -p examples --example 29_blocking_inside
//! ```
//!
//! ```text
//! two millers wait for grain; the only worker is one of them
//! the cart came in a queue of ours: wheat
//! the ship came in a channel of the standard library: rye
//! three wait, and the cart is queued behind them
//! mill: 3 workers are blocked and work waits, but there are no more than 2 spares. It waits until a worker comes back: raise max_spares, or block less in this pool
//! with one spare more the cart comes: oats oats oats
//! ```

#![forbid(unsafe_code)]
#![allow(
    clippy::disallowed_types,
    clippy::disallowed_methods,
    reason = "it blocks in a channel of the standard library, and waits for a state"
)]

use millpond::executor::{ExecutorExt, Lifecycle};
use millpond::forkjoin::{self, ForkJoinPool};
use millpond::queue::{BlockingQueue, FifoQueue};
use std::error::Error;
use std::sync::{Arc, mpsc};

fn main() -> Result<(), Box<dyn Error>> {
    let (tell, told) = mpsc::channel();
    let pool = ForkJoinPool::builder("mill")
        .parallelism(1)
        .max_spares(2)
        .on_event(move |event| _ = tell.send(event.to_string()))
        .build()?;
    let blocked = |count| {
        while pool.snapshot().blocked < count {
            std::thread::yield_now();
        }
    };

    let carts = Arc::new(FifoQueue::unbounded());
    let from = Arc::clone(&carts);
    let by_cart = pool.submit(move || from.take())?;
    let (ship, ships) = mpsc::channel();
    // Nobody sees that this one waits, so it says so.
    let by_ship = pool.submit(move || forkjoin::blocking(|| ships.recv()))?;
    blocked(2);
    println!("two millers wait for grain; the only worker is one of them");
    let to = Arc::clone(&carts);
    pool.submit(move || to.put("wheat"))?.join()??;
    println!("the cart came in a queue of ours: {}", by_cart.join()??);
    pool.submit(move || ship.send("rye"))?.join()??;
    println!(
        "the ship came in a channel of the standard library: {}",
        by_ship.join()??
    );

    let mut wait = Vec::new();
    for _ in 0..3 {
        let from = Arc::clone(&carts);
        wait.push(pool.submit(move || from.take())?);
    }
    blocked(3);
    println!("three wait, and the cart is queued behind them");
    pool.execute(move || (0..3).for_each(|_| _ = carts.put("oats")))?;
    println!("{}", told.recv()?);
    pool.set_max_spares(3)?;
    let mut sacks = Vec::new();
    for each in wait {
        sacks.push(each.join()??);
    }
    println!("with one spare more the cart comes: {}", sacks.join(" "));
    pool.close()?;
    Ok(())
}
